/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Language runtimes in guest processes: names of generated code and of interpreted functions, from
 * the runtime's own data in process memory. Java (HotSpot), Python (CPython) and JavaScript (V8)
 * need no option for that. */
#ifndef VP_GUESTMEM_SYMBOLS_RUNTIMES_H
#define VP_GUESTMEM_SYMBOLS_RUNTIMES_H

#include "base/buffer.h"
#include "guestmem/tasks/process.h"
#include "maps/writer.h"
#include "runtime/java.h"
#include "runtime/v8.h"

struct vp_guest_runtimes;

/* A mapping of a process with its path. */
struct vp_guest_library {
	const struct vp_guest_task *task;
	uint32_t space; /* the process's number in the symbol map */
	const struct vp_guest_mapping *mapping;
	const char *path;
};

struct vp_guest_runtimes *vp_guest_runtimes_new(void);
void vp_guest_runtimes_free(struct vp_guest_runtimes *runtimes);
/* Notes a library mapped by a process if it belongs to a runtime. */
void vp_guest_runtimes_add(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
			   const struct vp_guest_library *library);
/* Checks the runtimes that were still starting. */
void vp_guest_runtimes_step(struct vp_guest_runtimes *runtimes,
			    const struct vp_guest_kernel *kernel);
/* Notes a sample with these addresses in generated code of process `tgid`. */
void vp_guest_runtimes_hit(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
			   uint32_t tgid, const uint64_t *addrs, unsigned count, uint64_t time);
/* Notes a sample in which the interpreter of process `tgid` executed these methods. */
void vp_guest_runtimes_hit_methods(struct vp_guest_runtimes *runtimes,
				   const struct vp_guest_kernel *kernel, uint32_t tgid,
				   const uint64_t *methods, unsigned count, uint64_t time);
/* The Java VM of process `tgid`, without its memory; false: none. */
bool vp_guest_runtimes_java(const struct vp_guest_runtimes *runtimes, uint32_t tgid,
			    struct vp_java_vm *ret);
/* Code that executes JavaScript in a process: compiled code, and V8's own, which includes the
 * interpreter (equal: unknown). */
struct vp_guest_v8_code {
	uint64_t low, high, blob_low, blob_high;
	const struct vp_v8_layout *layout;
};

/* The code of process `tgid`; false: it has no V8. */
bool vp_guest_runtimes_v8(const struct vp_guest_runtimes *runtimes, uint32_t tgid,
			  struct vp_guest_v8_code *ret);
/* Range of the function that executes frames of Python code in process `tgid`; false: none. */
bool vp_guest_runtimes_loop(const struct vp_guest_runtimes *runtimes, uint32_t tgid, uint64_t *low,
			    uint64_t *high);
/* Appends a line per runtime, with the range of its code: `java TGID LOW HIGH INTERPRETER_LOW
 * INTERPRETER_HIGH`, or `python` and the same with the offsets for finding frames, followed by a
 * line `thread TGID TID STATE NATIVE_ID` per thread, or `v8` and the same with the offsets for
 * finding functions; and a line `starting` per runtime without code
 * so far. */
void vp_guest_runtimes_list(const struct vp_guest_runtimes *runtimes, struct vp_buffer *answer);
/* Writes all names, and notes about missing ones. */
void vp_guest_runtimes_write(struct vp_guest_runtimes *runtimes,
			     const struct vp_guest_kernel *kernel, struct vp_maps_writer *writer);

#endif
