/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Map text (maps/format.h) read into memory. The text is somebody else's: a line that is not as it
 * should be is counted, described, and skipped.
 *
 * Names and paths stay in the text; a `vp_text` has the offset. That keeps 100 MB of symbols at 24
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

/* Where an escaped word begins in the text; it ends at the next blank, newline or end. 0: none. */
typedef uint32_t vp_text;

struct vp_maps_clock {
	uint64_t mono_ns, tsc;
	uint64_t error_ns; /* they were read within this time; 0: not known */
};

struct vp_maps_kernel_symbol {
	uint64_t addr;
	uint64_t size; /* 0: up to the next symbol */
	vp_text name, module;
	char type; /* as in nm(1) and /proc/kallsyms */
};

/* A symbol of an image (`addr` is an offset in its file) or of generated code (an address). */
struct vp_maps_symbol {
	uint64_t addr, size;
	vp_text name;
};

struct vp_maps_space {
	uint64_t id;               /* as in the text */
	uint64_t root;             /* physical address of the top page table; 0: unknown */
	uint64_t start_ns, end_ns; /* 0: before the measurement; still alive */
	uint32_t tgid;
	uint32_t parent; /* index + 1 of the space whose mappings it began with; 0: none */
	vp_text comm;
};

struct vp_maps_mapping {
	uint64_t start, end, pgoff, from_ns;
	uint32_t space; /* index */
	vp_text build_id, path;
};

struct vp_maps_image {
	struct vp_build_id build_id;
	vp_text path;
	size_t first, count; /* its symbols in vp_maps.symbols */
};

struct vp_maps_jit {
	uint32_t space; /* index */
	struct vp_maps_symbol symbol;
	uint64_t from_ns;
};

struct vp_maps {
	struct vp_buffer text;
	bool guest;
	bool from_memory; /* made by the host from the guest's memory; its times are the host's */
	vp_text machine, release;
	struct vp_build_id kernel_build_id;
	unsigned levels; /* of page tables: 4 or 5; 0: unknown */
	bool kpti;
	bool complete; /* the end line is there and right */

	VP_VEC(struct vp_maps_clock) clocks;
	VP_VEC(struct vp_maps_kernel_symbol) kernel;
	VP_VEC(struct vp_maps_space) spaces;
	VP_VEC(struct vp_maps_mapping) mappings;
	VP_VEC(struct vp_maps_image) images;
	VP_VEC(struct vp_maps_symbol) symbols;
	VP_VEC(struct vp_maps_jit) jit;
	VP_VEC(vp_text) notes;

	/* The first few malformed lines as sentences, and how many there were. */
	VP_VEC(char *) warnings;
	uint64_t warning_count;
};

/* Reads the file at `path`. Fails if it cannot be read or does not begin like a symbol map. */
struct vp_error *vp_maps_load(const char *path, struct vp_maps *maps) VP_MUST_CHECK;
/* Reads `text`, which it takes over (and empties); `label` names it in sentences. */
struct vp_error *vp_maps_parse(const char *label, struct vp_buffer *text,
			       struct vp_maps *maps) VP_MUST_CHECK;
void vp_maps_deinit(struct vp_maps *maps);

/* The word at `offset`, still escaped. */
struct vp_slice vp_maps_word(const struct vp_maps *maps, vp_text offset);
/* The word at `offset` unescaped, as a new string. */
char *vp_maps_string(const struct vp_maps *maps, vp_text offset) VP_MUST_CHECK;

/* Whether a symbol's name is "-": only its extent is known. */
bool vp_maps_is_nameless(const struct vp_maps *maps, vp_text name);

/*
 * Reads kallsyms text (System.map, /proc/kallsyms) into maps->kernel. Fails if not one line is as
 * expected or every address is zero.
 */
struct vp_error *vp_maps_load_kallsyms(const char *path, struct vp_maps *maps) VP_MUST_CHECK;

#endif
