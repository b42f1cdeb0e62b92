/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of code that JIT compilers of this host made: /tmp/perf-PID.map, as perf report reads them.
 */
#ifndef VP_HOST_HOST_JIT_H
#define VP_HOST_HOST_JIT_H

#include <sys/types.h>

#include "base/macros.h"
#include "base/meanwhile.h"
#include "maps/writer.h"

/* A process that has, or had, executable memory of no file. */
struct vp_host_jit {
	uint64_t space; /* its address space in the symbol map */
	uint32_t pid;
	uid_t uid;
	bool is_alive; /* its own /tmp is looked in, and the pid is that in its own namespace */
};

/* Writes what the processes' maps name, as far as the files are of the process's user or root's.
 * Errors: why some are missing; the others are written. */
struct vp_error *vp_host_jit_write(struct vp_maps_writer *writer, const struct vp_host_jit *jits,
				   size_t count,
				   const struct vp_meanwhile *meanwhile) VP_MUST_CHECK;

#endif
