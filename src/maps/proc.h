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
	const char *path; /* as in /proc/PID/maps; "//anon" without a file */
};

enum vp_proc_mappings {
	VP_PROC_GONE,    /* the process is missing or exited meanwhile */
	VP_PROC_STOPPED, /* `each` returned false, or the limit of bytes was reached */
	VP_PROC_ALL,
};
/*
 * Calls `each` for every executable mapping in /proc/PID/maps until it returns false. Their number
 * is under the control of the process's user: at most *bytes of text are read, and subtracted from
 * it.
 */
enum vp_proc_mappings
vp_proc_mappings(uint32_t pid, size_t *bytes,
		 bool (*each)(void *context, const struct vp_proc_mapping *mapping), void *context);
/* Identifies the program of a process: changes with exec, not with a new comm. 0: the process is
 * gone. */
uint64_t vp_proc_program(uint32_t pid);
/* Calls `each` with the pid of every process in /proc. */
struct vp_error *vp_proc_processes(void (*each)(void *context, uint32_t pid),
				   void *context) VP_MUST_CHECK;
/* Reads the process's name into `comm`; false: the process is gone. */
bool vp_proc_comm(uint32_t pid, char comm[16]);
/* Start time of the process in clock ticks since boot; 0: the process is gone. */
uint64_t vp_proc_start_time(uint32_t pid);
/* The process's pid in its innermost pid namespace. */
uint32_t vp_proc_inner_pid(uint32_t pid);

/* Writes the lines machine, kernel and address-bits. */
void vp_proc_write_machine(struct vp_maps_writer *writer, bool guest);
/* Writes a k line per line of /proc/kallsyms, or an n line with the reason. */
void vp_proc_write_kallsyms(struct vp_maps_writer *writer);

/* Number of events lost in the CPU's ftrace ring buffer since the tracefs instance at `instance`
 * was created. Errors: the kernel does not report it. */
struct vp_error *vp_proc_ftrace_lost(const char *instance, uint32_t cpu,
				     uint64_t *ret) VP_MUST_CHECK;

#endif
