/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest's map text made from its memory: its kernel's symbols, and the mappings of the processes
 * that were seen. Times are the host's.
 */
#ifndef VP_GUESTMEM_DUMP_H
#define VP_GUESTMEM_DUMP_H

#include "base/macros.h"
#include "guestmem/kernel.h"
#include "guestmem/runtimes.h"

struct vp_guest_dump;

struct vp_guest_dump *vp_guest_dump_new(void);
void vp_guest_dump_free(struct vp_guest_dump *dump);
/* The kernel was found: keeps what of it goes into every map text, for when its memory is gone. */
void vp_guest_dump_keep(struct vp_guest_dump *dump, const struct vp_guest_kernel *kernel);
/* Process `tgid`, with a task at `address`, was seen at `time` (ns): reads its mappings unless they
 * are known. If it is another process by now, nothing is done. */
void vp_guest_dump_see(struct vp_guest_dump *dump, const struct vp_guest_kernel *kernel,
		       uint64_t address, uint32_t tgid, uint64_t time);
/* The runtimes of the processes that were seen. */
struct vp_guest_runtimes *vp_guest_dump_runtimes(struct vp_guest_dump *dump);
/*
 * Reads the mappings of processes that still run again and writes it all to `fd`; `processes` is
 * how many. Without any process seen before, all that there are.
 */
struct vp_error *vp_guest_dump_write(struct vp_guest_dump *dump,
				     const struct vp_guest_kernel *kernel, int fd, bool symbols,
				     size_t *processes) VP_MUST_CHECK;

#endif
