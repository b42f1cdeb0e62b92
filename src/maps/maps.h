/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A symbol map (maps/format.h) in memory. The text is untrusted: malformed lines are counted,
 * described and skipped.
 *
 * Names and paths stay in the text; a `vp_text` is an offset. That keeps 100 MB of symbols at 24
 * bytes each.
 */
#ifndef VP_MAPS_MAPS_H
#define VP_MAPS_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "maps/format.h"

/* Offset of an escaped word in the text; the word ends at the next blank, newline or the end. 0:
 * none. */
typedef uint32_t vp_text;

struct vp_maps_clock {
	uint64_t mono_ns, tsc;
	uint64_t error_ns; /* maximum distance of the two readings, ns; 0: unknown */
};

struct vp_maps_kernel_symbol {
	uint64_t addr;
	uint64_t size; /* 0: up to the next symbol */
	vp_text name, module;
	char type; /* a letter of nm(1) and /proc/kallsyms */
};

/* A symbol of a mapped file (`addr` is a file offset) or of generated code (an address). */
struct vp_maps_symbol {
	uint64_t addr, size;
	vp_text name;
};

struct vp_maps_space {
	uint64_t id;               /* id in the text */
	uint64_t root;             /* physical address of the top page table; 0: unknown */
	uint64_t start_ns, end_ns; /* 0: before the recording; still alive */
	uint32_t tgid;
	uint32_t parent; /* index + 1 of the space whose mappings it inherited (fork); 0: none */
	vp_text comm;
};

struct vp_maps_mapping {
	uint64_t start, end, pgoff, from_ns;
	uint32_t space; /* index of the address space */
	vp_text build_id, path;
};

struct vp_maps_image {
	struct vp_build_id build_id;
	vp_text path;
	size_t first, count; /* its symbols in vp_maps.symbols */
};

struct vp_maps_jit {
	uint32_t space; /* index of the address space */
	struct vp_maps_symbol symbol;
	uint64_t from_ns;
};

struct vp_maps {
	struct vp_buffer text;
	bool guest;
	bool from_memory; /* written by the host from guest memory; its times are host times */
	vp_text machine, release;
	struct vp_build_id kernel_build_id;
	unsigned levels; /* levels of page tables, 4 or 5; 0: unknown */
	bool kpti;
	bool complete; /* the end line is present and correct */

	VP_VEC(struct vp_maps_clock) clocks;
	VP_VEC(struct vp_maps_kernel_symbol) kernel;
	VP_VEC(struct vp_maps_space) spaces;
	VP_VEC(struct vp_maps_mapping) mappings;
	VP_VEC(struct vp_maps_image) images;
	VP_VEC(struct vp_maps_symbol) symbols;
	VP_VEC(struct vp_maps_jit) jit;
	VP_VEC(vp_text) notes;

	/* The first few malformed lines as sentences, and the number of all. */
	VP_VEC(char *) warnings;
	uint64_t warning_count;
};

/* Reads the file at `path`. Errors: unreadable, or no version line. */
struct vp_error *vp_maps_load(const char *path, struct vp_maps *maps) VP_MUST_CHECK;
/* Parses `text`, taking over its bytes; `label` names it in sentences. */
struct vp_error *vp_maps_parse(const char *label, struct vp_buffer *text,
			       struct vp_maps *maps) VP_MUST_CHECK;
void vp_maps_deinit(struct vp_maps *maps);

/* The word at `offset`, still escaped. */
struct vp_slice vp_maps_word(const struct vp_maps *maps, vp_text offset);
/* The word at `offset` unescaped, as a new string. */
char *vp_maps_string(const struct vp_maps *maps, vp_text offset) VP_MUST_CHECK;

/* Whether a symbol's name is "-": a function whose name is unknown. */
bool vp_maps_is_nameless(const struct vp_maps *maps, vp_text name);

/* Reads kallsyms text (System.map, /proc/kallsyms) into maps->kernel. Errors: no valid line, or all
 * addresses are zero. */
struct vp_error *vp_maps_load_kallsyms(const char *path, struct vp_maps *maps) VP_MUST_CHECK;

#endif
