/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Language runtimes in a guest's processes: names of code that they make while they run, from their
 * own data in the process's memory. Java (HotSpot) needs no option for that.
 */
#ifndef VP_GUESTMEM_RUNTIMES_H
#define VP_GUESTMEM_RUNTIMES_H

#include "base/buffer.h"
#include "guestmem/process.h"
#include "maps/writer.h"

struct vp_guest_runtimes;

/* A mapping of a process, of that path. */
struct vp_guest_library {
	const struct vp_guest_task *task;
	uint32_t space; /* the process's number in map text */
	const struct vp_guest_mapping *mapping;
	const char *path;
};

struct vp_guest_runtimes *vp_guest_runtimes_new(void);
void vp_guest_runtimes_free(struct vp_guest_runtimes *runtimes);
/* A process has mapped a library: notes it if it is a runtime's. */
void vp_guest_runtimes_add(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
			   const struct vp_guest_library *library);
/* Looks at those that were still starting the last time. */
void vp_guest_runtimes_step(struct vp_guest_runtimes *runtimes,
			    const struct vp_guest_kernel *kernel);
/* A sample hit generated code of process `tgid`. */
void vp_guest_runtimes_hit(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
			   uint32_t tgid, uint64_t addr, uint64_t time);
/* The interpreter of process `tgid` executed that method at a sample. */
void vp_guest_runtimes_hit_method(struct vp_guest_runtimes *runtimes,
				  const struct vp_guest_kernel *kernel, uint32_t tgid,
				  uint64_t method, uint64_t time);
/* Appends a line `java TGID LOW HIGH INTERPRETER_LOW INTERPRETER_HIGH` for each: where its code is;
 * and a line `starting` for each that has none yet. */
void vp_guest_runtimes_list(const struct vp_guest_runtimes *runtimes, struct vp_buffer *answer);
/* Writes all names, and notes that report what is missing. */
void vp_guest_runtimes_write(struct vp_guest_runtimes *runtimes,
			     const struct vp_guest_kernel *kernel, struct vp_maps_writer *writer);

#endif
