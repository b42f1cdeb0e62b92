/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of JIT-compiled code on this host, from /tmp/perf-PID.map as in perf report. */
#ifndef VP_HOST_HOST_JIT_H
#define VP_HOST_HOST_JIT_H

#include <sys/types.h>

#include "base/macros.h"
#include "base/meanwhile.h"
#include "maps/writer.h"

/* A process that has or had executable memory without a file. */
struct vp_host_jit {
	uint64_t space; /* id of its address space in the symbol map */
	uint32_t pid;
	uid_t uid;
	bool is_alive; /* its own /tmp is searched, with the pid in its own namespace */
};

/* Writes the symbols of the processes' perf maps, of files owned by the process's user or root.
 * Errors: the reason for missing symbols; the others are written. */
struct vp_error *vp_host_jit_write(struct vp_maps_writer *writer, const struct vp_host_jit *jits,
				   size_t count,
				   const struct vp_meanwhile *meanwhile) VP_MUST_CHECK;

#endif
