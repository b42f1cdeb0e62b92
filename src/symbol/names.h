/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resolves addresses of one machine with its symbol map (maps/format.h).
 *
 * The process is found by CR3 (guest samples) or pid, and by time, since both are reused; the
 * function by the mapping at that time.
 */
#ifndef VP_SYMBOL_NAMES_H
#define VP_SYMBOL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "maps/maps.h"

struct vp_names;
typedef VP_VEC(const char *) vp_names_paths; /* paths of files that provided names */

#define VP_NAMES_NO_SPACE UINT32_MAX

struct vp_names_options {
	const char *root;      /* folder with the machine's files; NULL: "/" */
	const char *debug_dir; /* folder with separate debug files; NULL: "/usr/lib/debug" */
	bool no_files;         /* do not read files under `root` */
	bool map_only;         /* no files and no debuginfod servers: only the symbol map */
};

/*
 * Relation of the machine's clock to the host's: a straight line through up to two instants at
 * which both are known. With one instant, both run at the same speed; with none (the host) they are
 * the same clock.
 */
struct vp_names_clock {
	unsigned instants; /* 0, 1 or 2 */
	uint64_t machine_ns[2];
	uint64_t host_ns[2];
	uint64_t error_ns; /* maximum error of a converted time */
};

struct vp_name {
	const char *function; /* demangled, or "MODULE:0xOFFSET" if nameless; NULL: unknown */
	bool nameless;        /* only the extent of the function is known, not its name */
	/* Path of the file, "[kernel]", or "[kvm]" for a kernel module; NULL: unknown. */
	const char *module;
	uint64_t function_offset; /* offset of the address in the function */
	uint64_t function_size;   /* the result is valid for that many bytes from the function's
				     start; 0: unknown */
	uint64_t module_offset;   /* offset in the file; in the kernel, from _text; otherwise the
				     address */
	/* Without a function, in a file with functions around: the code between two of them, as
	 * offsets in the file. gap_end 0: unknown. */
	uint64_t gap_start, gap_end;
	bool varies;      /* another file is mapped there at other times: do not cache the result */
	const char *comm; /* NULL: no process */
	uint32_t pid;     /* 0: no process */
};

/* Reads the symbol map at `path`; free with vp_names_free(). Errors: unreadable, or not a symbol
 * map. Malformed lines are reported in vp_names_maps(). */
struct vp_error *vp_names_load(const char *path, const struct vp_names_options *options,
			       struct vp_names **names) VP_MUST_CHECK;
/* Reads System.map or a copy of /proc/kallsyms: kernel names only. */
struct vp_error *vp_names_load_kallsyms(const char *path, struct vp_names **names) VP_MUST_CHECK;
void vp_names_free(struct vp_names *names);

/* The parsed map: notes and warnings for the user, clocks, kernel release. */
const struct vp_maps *vp_names_maps(const struct vp_names *names);
/* Appends the paths of files (or copies from debuginfod servers) that provided names. */
void vp_names_files_used(const struct vp_names *names, vp_names_paths *ret);
/* Sets the clock; call it before lookups with times. */
void vp_names_set_clock(struct vp_names *names, const struct vp_names_clock *clock);

/* Adds `second`, taking it over, as a fallback for unknown CR3s and pids, and for code without a
 * function. It is ignored where it contradicts `names`. It has a clock of its own. */
void vp_names_set_fallback(struct vp_names *names, struct vp_names *second);
/* The fallback, or NULL. */
const struct vp_names *vp_names_fallback(const struct vp_names *names);

/*
 * The address space with that CR3 (as the hardware holds it) or pid at that host time;
 * VP_NAMES_NO_SPACE: not found. If no life of that CR3 covers the time, the nearest one within the
 * clock's error plus 20 ms is used.
 */
uint32_t vp_names_space_by_root(const struct vp_names *names, uint64_t cr3, uint64_t host_ns);
uint32_t vp_names_space_by_pid(const struct vp_names *names, uint32_t pid, uint64_t host_ns);
/*
 * The address space with code at that address, for a sample without CR3 and pid. If several match:
 * `first` if it is one of them, otherwise none. VP_NAMES_NO_SPACE: not found. The fallback map is
 * not searched.
 */
uint32_t vp_names_space_by_address(const struct vp_names *names, uint32_t first, uint64_t addr,
				   uint64_t host_ns);
/* Process of an address space; false: invalid `space`. */
bool vp_names_process(const struct vp_names *names, uint32_t space, const char **comm,
		      uint32_t *pid);
/* Start and end of an address space, in the machine's clock as in the symbol map; false: only the
 * fallback knows it. */
bool vp_names_life(const struct vp_names *names, uint32_t space, uint64_t *start_ns,
		   uint64_t *end_ns);

/* Resolves `addr` in the kernel, or in `space` at that time. Strings live as long as `names`. The
 * first address in a file may read that file. Thread-safe. */
void vp_names_find(struct vp_names *names, uint32_t space, bool kernel, uint64_t addr,
		   uint64_t host_ns, struct vp_name *name);
/* Whether a mapping with this path has no file, so that code in it was generated: //anon, shared
 * anonymous memory, a memfd. NULL: false. */
bool vp_names_is_anonymous(const char *path);

#endif
