/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of JIT-compiled code from a guest's /tmp/perf-PID.map files, from their resident part in
 * the guest's page cache. */
#ifndef VP_GUESTMEM_SYMBOLS_JIT_H
#define VP_GUESTMEM_SYMBOLS_JIT_H

#include "base/cursor.h"
#include "guestmem/tasks/tasks.h"
#include "maps/writer.h"

struct vp_guest_jit;

struct vp_guest_jit *vp_guest_jit_new(const struct vp_guest_kernel *kernel,
				      struct vp_maps_writer *writer);
void vp_guest_jit_free(struct vp_guest_jit *jit);
/* The process's pid in its innermost pid namespace; `leader`: its main thread. */
uint32_t vp_guest_inner_pid(const struct vp_guest_kernel *kernel,
			    const struct vp_guest_task *leader);
/* Writes the symbols of process `pid`'s perf map, in the /tmp of that task, as symbols of address
 * space `space`; a note reports missing pages. */
void vp_guest_jit_write(struct vp_guest_jit *jit, const struct vp_guest_task *task, uint32_t pid,
			uint64_t space);

/* One symbol of a perf map; `name` is not terminated. */
struct vp_jit_symbol {
	uint64_t addr, size;
	struct vp_slice name;
};
/* Parses a line `ADDR SIZE NAME`, numbers hexadecimal with or without 0x; false: malformed. */
bool vp_jit_line_parse(struct vp_slice line, struct vp_jit_symbol *ret);

#endif
