/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest's symbol map from its memory: kernel symbols, and mappings of the processes seen in
 * samples. Times are host times. */
#ifndef VP_GUESTMEM_SYMBOLS_DUMP_H
#define VP_GUESTMEM_SYMBOLS_DUMP_H

#include "base/macros.h"
#include "guestmem/kernel/kernel.h"
#include "guestmem/symbols/runtimes.h"

struct vp_guest_dump;

struct vp_guest_dump *vp_guest_dump_new(void);
void vp_guest_dump_free(struct vp_guest_dump *dump);
/* Keeps the parts of a newly found kernel that every symbol map needs, in case its memory is
 * lost. */
void vp_guest_dump_keep(struct vp_guest_dump *dump, const struct vp_guest_kernel *kernel);
/* Notes that process `tgid`, with a task at `address`, was sampled at `time` (ns): reads its
 * mappings if they are unknown. Does nothing if the task is another process now. */
void vp_guest_dump_see(struct vp_guest_dump *dump, const struct vp_guest_kernel *kernel,
		       uint64_t address, uint32_t tgid, uint64_t time);
/* The runtimes of the sampled processes. */
struct vp_guest_runtimes *vp_guest_dump_runtimes(struct vp_guest_dump *dump);
/* Reads the mappings of running processes again and writes the symbol map to `fd`; `processes`:
 * their number. If no process was sampled, writes all of them. */
struct vp_error *vp_guest_dump_write(struct vp_guest_dump *dump,
				     const struct vp_guest_kernel *kernel, int fd, bool symbols,
				     size_t *processes) VP_MUST_CHECK;

#endif
