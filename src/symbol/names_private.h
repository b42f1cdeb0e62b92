/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data and functions shared by the files of symbol/. */
#ifndef VP_SYMBOL_NAMES_PRIVATE_H
#define VP_SYMBOL_NAMES_PRIVATE_H

#include <pthread.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "maps/format.h"
#include "maps/image.h"
#include "maps/maps.h"
#include "symbol/names.h"

/* The lives with one key (CR3 or pid): `count` entries of an order, starting at `first`. */
struct vp_names_lives {
	uint32_t first, count;
};

/* Address spaces by a key that is reused over time. */
struct vp_names_by_key {
	struct vp_map lives_of_key; /* value: index into lives */
	VP_VEC(struct vp_names_lives) lives;
	VP_VEC(uint32_t) order; /* spaces by key, then by start */
};

struct vp_names_mapping {
	uint64_t start, end, pgoff, from_ns;
	uint64_t highest_end; /* maximum end of this and all earlier lives in the same space */
	uint32_t line;        /* line number in the text */
	uint32_t module;
};

struct vp_names_space {
	uint32_t first_mapping, mappings;
	uint32_t first_jit, jits;
	const char *comm;
};

/* A mapped file. Its symbols are read when the first address needs them. */
struct vp_names_module {
	struct vp_build_id build_id;
	const char *path;
	bool resolved;
	uint32_t image;        /* index in maps.images; UINT32_MAX: use `file` */
	struct vp_image *file; /* NULL: none */
	char *used;            /* path of `file` */
};

struct vp_names_kernel_symbol {
	uint64_t addr, end;
	vp_text name, module;
	const char *function; /* its name; NULL: not looked up yet */
};

struct vp_names {
	pthread_mutex_t looking; /* protects data that look-ups add: strings, files of modules */
	struct vp_maps maps;
	char *root, *debug_dir;
	bool no_files, map_only;
	struct vp_names_clock clock;
	struct vp_intern strings;
	const char **function_of_symbol; /* of maps.symbols, as in struct vp_names_kernel_symbol */
	struct vp_map function_of_text; /* offset of a symbol in the text → its name in `strings` */

	VP_VEC(struct vp_names_kernel_symbol) kernel; /* text symbols by address, one per address */
	uint64_t kernel_text;                         /* address of _text, or 0 */
	struct vp_map module_base; /* name of a kernel module (interned) → index */
	VP_VEC(uint64_t) module_bases;

	VP_VEC(struct vp_names_space) spaces; /* parallel to maps.spaces */
	struct vp_names_by_key by_root, by_pid;
	VP_VEC(struct vp_names_mapping) mappings; /* by space, start, line */
	struct vp_intern module_ids;              /* "BUILDID PATH" as in the text: module index */
	VP_VEC(struct vp_names_module) modules;
	struct vp_intern image_ids;   /* build-ids and paths of images */
	VP_VEC(uint32_t) image_of_id; /* image with that build-id or path */
	struct vp_names *second;      /* fallback map, or NULL */
};

/* Convert a number of the fallback's address spaces to one of both maps, and back. */
uint32_t vp_names_from_fallback(const struct vp_names *names, uint32_t space);
uint32_t vp_names_in_fallback(const struct vp_names *names, uint32_t space);
/* Completes a result without a function from the fallback map; for other arguments see
 * vp_names_find(). */
void vp_names_find_fallback(struct vp_names *names, uint32_t space, bool kernel, uint64_t addr,
			    uint64_t host_ns, struct vp_name *name);

/* The machine's time at that host time. */
uint64_t vp_names_machine_time(const struct vp_names *names, uint64_t host_ns);
/* The text at `offset`, unescaped, cleaned and interned. */
const char *vp_names_text(struct vp_names *names, vp_text offset);
/* The function's name, demangled, cleaned and interned; from a string, or from the text at
 * `offset`. */
const char *vp_names_function(struct vp_names *names, const char *symbol);
const char *vp_names_function_text(struct vp_names *names, vp_text offset);

/* Build the indices of address spaces and kernel symbols from the map. */
void vp_names_index_spaces(struct vp_names *names);
void vp_names_index_kernel(struct vp_names *names);
/* Resolves an address of the kernel or one of its modules. */
void vp_names_find_kernel(struct vp_names *names, uint64_t addr, struct vp_name *name);

/* The mapped file, from the machine's file system or by its build-id; NULL: not available. */
struct vp_image *vp_names_find_file(const struct vp_names *names, struct vp_names_module *module);

/* Build the index of images; find or add the module (index in `modules`) of a mapping. */
void vp_names_index_modules(struct vp_names *names);
uint32_t vp_names_module_of(struct vp_names *names, const struct vp_maps_mapping *mapping);
/* Resolves a file offset in a module. */
void vp_names_find_in_module(struct vp_names *names, uint32_t module, uint64_t offset,
			     struct vp_name *name);

#endif
