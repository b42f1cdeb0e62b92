/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names for the addresses of one machine, from its symbol map (maps/format.h).
 *
 * The process is found by CR3 (of a guest sample) or pid, and by time, since both are reused; the
 * function by the mapping at that time. */
#ifndef VP_SYMBOL_NAMES_H
#define VP_SYMBOL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "maps/maps.h"

struct vp_names;
typedef VP_VEC(const char *) vp_names_paths; /* of the names they came from */

#define VP_NAMES_NO_SPACE UINT32_MAX

struct vp_names_options {
	const char *root;      /* folder that holds the machine's files; NULL: "/" */
	const char *debug_dir; /* of separate debug files; NULL: "/usr/lib/debug" */
	bool no_files;         /* no files under `root` */
	bool map_only;         /* no files at all, nor servers: only the symbol map */
};

/*
 * How the machine's clock relates to the host's: up to two instants at which both are known, and a
 * straight line through them. With one, both clocks run at the same speed; with none (the host)
 * they are the same clock.
 */
struct vp_names_clock {
	unsigned instants; /* 0, 1 or 2 */
	uint64_t machine_ns[2];
	uint64_t host_ns[2];
	uint64_t error_ns; /* bound of the error of a converted time */
};

struct vp_name {
	const char *function; /* demangled, or "MODULE:0xOFFSET" if nameless; NULL: unknown */
	bool nameless;        /* only the extent of the function is known */
	/* Path of the file, "[kernel]", "[kvm]" for a kernel module; NULL: unknown. */
	const char *module;
	uint64_t function_offset; /* offset of the address in the function */
	uint64_t function_size;   /* for that many bytes from its start the answer is the same; 0:
				   * unknown */
	uint64_t
	    module_offset; /* offset in the file; in the kernel, from _text; else the address */
	bool varies;       /* another file was mapped there at another time: ask again then */
	const char *comm;  /* NULL: no process */
	uint32_t pid;      /* 0: no process */
};

/* Reads the symbol map at `path`; free with vp_names_free(). Errors: unreadable, not a symbol map.
 * Malformed lines are in vp_names_maps(). */
struct vp_error *vp_names_load(const char *path, const struct vp_names_options *options,
			       struct vp_names **names) VP_MUST_CHECK;
/* Reads System.map or a copy of /proc/kallsyms: kernel names only. */
struct vp_error *vp_names_load_kallsyms(const char *path, struct vp_names **names) VP_MUST_CHECK;
void vp_names_free(struct vp_names *names);

/* Results of the reading: notes and warnings for the user, clock lines, kernel release. */
const struct vp_maps *vp_names_maps(const struct vp_names *names);
/* Appends the paths of this machine's files (or copies from servers) that gave names. */
void vp_names_files_used(const struct vp_names *names, vp_names_paths *ret);
/* To be called before lookups with times, once the clock is known. */
void vp_names_set_clock(struct vp_names *names, const struct vp_names_clock *clock);

/* Adds `second`, which is taken over, as a fallback of `names`: for processes with an unknown CR3
 * or pid, and for code without a function. Where they contradict each other, it is ignored. Its
 * clock is kept apart. */
void vp_names_set_fallback(struct vp_names *names, struct vp_names *second);
/* NULL: none. */
const struct vp_names *vp_names_fallback(const struct vp_names *names);

/*
 * The address space with that page table root (CR3 as the hardware holds it) or of that process at
 * that host time; VP_NAMES_NO_SPACE: not found. A time outside of each life of that
 * root finds the nearest one within the clock's error and 20 ms.
 */
uint32_t vp_names_space_by_root(const struct vp_names *names, uint64_t cr3, uint64_t host_ns);
uint32_t vp_names_space_by_pid(const struct vp_names *names, uint32_t pid, uint64_t host_ns);
/*
 * The one whose code that address is, for a sample without a CR3 or pid: `first`, if it is one of
 * several. VP_NAMES_NO_SPACE: not found, or several and not `first`. The fallback map is not
 * searched.
 */
uint32_t vp_names_space_by_address(const struct vp_names *names, uint32_t first, uint64_t addr,
				   uint64_t host_ns);
/* Process of an address space; false: invalid `space`. */
bool vp_names_process(const struct vp_names *names, uint32_t space, const char **comm,
		      uint32_t *pid);
/* When it began and ended, by the machine's clock, as the symbol map has it; false for one that
 * only the second knows. */
bool vp_names_life(const struct vp_names *names, uint32_t space, uint64_t *start_ns,
		   uint64_t *end_ns);

/*
 * Names `addr` of the kernel, or of `space` at that time. Strings live as long as `names`. The
 * first address in a file may read that file. Several threads may look up at a time.
 */
void vp_names_find(struct vp_names *names, uint32_t space, bool kernel, uint64_t addr,
		   uint64_t host_ns, struct vp_name *name);

#endif
