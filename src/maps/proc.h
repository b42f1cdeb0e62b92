/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads this machine's /proc and /sys into a symbol map. */
#ifndef VP_MAPS_PROC_H
#define VP_MAPS_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "base/macros.h"
#include "maps/writer.h"

struct vp_proc_mapping {
	uint64_t start, end, pgoff;
	const char *path; /* as the kernel has it; "//anon" without one */
};

enum vp_proc_mappings {
	VP_PROC_GONE,    /* no such process, or not to the end */
	VP_PROC_STOPPED, /* `each` had enough, or the bytes were used up */
	VP_PROC_ALL,
};
/*
 * Calls `each` for every executable mapping in /proc/PID/maps until it returns false. The process's
 * user decides how many there are: at most *bytes of text are read, and subtracted from it.
 */
enum vp_proc_mappings
vp_proc_mappings(uint32_t pid, size_t *bytes,
		 bool (*each)(void *context, const struct vp_proc_mapping *mapping), void *context);
/* Identifies the program that the process executes: changes with exec, not with a new name. 0: it
 * is gone. */
uint64_t vp_proc_program(uint32_t pid);
/* Calls `each` with the pid of every process in /proc. */
struct vp_error *vp_proc_processes(void (*each)(void *context, uint32_t pid),
				   void *context) VP_MUST_CHECK;
/* The process's name into `comm`; false if it is gone. */
bool vp_proc_comm(uint32_t pid, char comm[16]);
/* When it was started, in the kernel's clock ticks since the boot; 0: it is gone. */
uint64_t vp_proc_start_time(uint32_t pid);
/* Its pid in its own, innermost pid namespace. */
uint32_t vp_proc_inner_pid(uint32_t pid);

/* The machine, kernel and address-bits lines. */
void vp_proc_write_machine(struct vp_maps_writer *writer, bool guest);
/* A k line per line of /proc/kallsyms, or an n line saying why not. */
void vp_proc_write_kallsyms(struct vp_maps_writer *writer);

/* Events of the CPU that found no room in its ring of ftrace's, since the tracefs instance at
 * `instance` was made. Errors: the kernel does not show it. */
struct vp_error *vp_proc_ftrace_lost(const char *instance, uint32_t cpu,
				     uint64_t *ret) VP_MUST_CHECK;

#endif
