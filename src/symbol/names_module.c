/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols of mapped files: from the symbol map, otherwise from the files. */
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"
#include "maps/format.h"
#include "maps/image.h"
#include "maps/maps.h"
#include "symbol/names.h"
#include "symbol/names_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"

static void remember_image(struct vp_names *names, const char *id, size_t size, uint32_t image)
{
	uint32_t key = vp_intern_add(&names->image_ids, id, size);

	if (key == names->image_of_id.count) {
		vp_vec_push(&names->image_of_id, image);
		return;
	}
	/* The map may contain the image twice: first without, then with symbols. */
	uint32_t *known = &names->image_of_id.at[key];
	if (!names->maps.images.at[*known].count)
		*known = image;
}

static void build_id_key(const struct vp_build_id *id, struct vp_buffer *key)
{
	key->size = 0;
	vp_build_id_put(id, key);
}

void vp_names_index_modules(struct vp_names *names)
{
	struct vp_buffer key = {0};

	for (uint32_t i = 0; i < names->maps.images.count; i++) {
		const struct vp_maps_image *image = &names->maps.images.at[i];
		const char *path = vp_names_text(names, image->path);
		if (image->build_id.size) {
			build_id_key(&image->build_id, &key);
			remember_image(names, key.bytes, key.size, i);
		}
		/* A path starts with '/' or '[' and cannot be confused with a build-id. */
		remember_image(names, path, strlen(path), i);
	}
	vp_buffer_deinit(&key);
}

uint32_t vp_names_module_of(struct vp_names *names, const struct vp_maps_mapping *mapping)
{
	struct vp_slice path = vp_maps_word(&names->maps, mapping->path);
	const char *both = names->maps.text.bytes + mapping->build_id;
	size_t size = (size_t)(path.bytes + path.size - both);
	uint32_t id = vp_intern_add(&names->module_ids, both, size);

	if (id == names->modules.count) {
		struct vp_names_module module = {.image = UINT32_MAX};
		/* An invalid build-id counts as unknown. */
		vp_build_id_parse(vp_maps_word(&names->maps, mapping->build_id), &module.build_id);
		module.path = vp_names_text(names, mapping->path);
		vp_vec_push(&names->modules, module);
	}
	return id;
}

static int names_module_by_addr(const void *left, const void *right)
{
	const struct vp_maps_symbol *a = left, *b = right;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static void names_module_sort_symbols(struct vp_maps_symbol *symbols, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (symbols[i].addr < symbols[i - 1].addr) {
			qsort(symbols, count, sizeof(*symbols), names_module_by_addr);
			return;
		}
}

static uint32_t image_with_id(struct vp_names *names, const char *id, size_t size)
{
	uint32_t key = vp_intern_add(&names->image_ids, id, size);

	if (key == names->image_of_id.count)
		vp_vec_push(&names->image_of_id, UINT32_MAX);
	return names->image_of_id.at[key];
}

/* The module's image in the symbol map: by build-id, otherwise by path. */
static uint32_t image_of(struct vp_names *names, const struct vp_names_module *module)
{
	uint32_t image = UINT32_MAX;

	if (module->build_id.size) {
		struct vp_buffer key = {0};
		build_id_key(&module->build_id, &key);
		image = image_with_id(names, key.bytes, key.size);
		vp_buffer_deinit(&key);
	}
	if (image != UINT32_MAX)
		return image;
	image = image_with_id(names, module->path, strlen(module->path));
	if (image == UINT32_MAX)
		return image;
	bool other = module->build_id.size && names->maps.images.at[image].build_id.size;
	return other ? UINT32_MAX : image;
}

static size_t names_in_text(const struct vp_names *names, const struct vp_maps_image *image)
{
	size_t count = 0;

	for (size_t i = 0; i < image->count; i++)
		count += !vp_maps_is_nameless(&names->maps,
					      names->maps.symbols.at[image->first + i].name);
	return count;
}

static size_t names_in_file(const struct vp_image *file)
{
	size_t count = 0;

	vp_vec_each (&file->symbols, symbol)
		count += vp_image_symbol_name(file, symbol)[0] != 0;
	return count;
}

/* Whether the file on this machine, which may be stripped, has fewer names than the symbol map. */
static bool is_poorer(const struct vp_names *names, const struct vp_image *file, uint32_t image)
{
	return !file || (image != UINT32_MAX &&
			 names_in_file(file) < names_in_text(names, &names->maps.images.at[image]));
}

static void names_module_resolve(struct vp_names *names, struct vp_names_module *module)
{
	module->resolved = true;
	module->image = image_of(names, module);
	/* The symbols of a file in the guest's page cache may be incomplete. */
	if (names->maps.from_memory) {
		module->file = vp_names_find_file(names, module);
		if (!is_poorer(names, module->file, module->image)) {
			module->image = UINT32_MAX;
			return;
		}
		free(module->used);
		module->used = NULL;
	}
	if (module->image != UINT32_MAX) {
		const struct vp_maps_image *image = &names->maps.images.at[module->image];
		if (image->count) {
			names_module_sort_symbols(names->maps.symbols.at + image->first,
						  image->count);
			return;
		}
	}
	module->image = UINT32_MAX;
	if (!names->maps.from_memory)
		module->file = vp_names_find_file(names, module);
}

/* Names a function without a symbol by its offset in the module. */
static void name_by_offset(struct vp_names *names, uint64_t offset, struct vp_name *name)
{
	const char *base = strrchr(name->module, '/');
	VP_AUTO_FREE char *text =
	    vp_format("%s:0x%" PRIx64, base ? base + 1 : name->module, offset);

	name->function = vp_intern_text(&names->strings, vp_intern_string(&names->strings, text));
	name->nameless = true;
}

/* Size of a symbol at `start`, limited by the next one; `size` 0: unknown. */
static uint64_t size_to_next(uint64_t start, uint64_t size, bool has_next, uint64_t next)
{
	if (has_next && (!size || next - start < size))
		return next - start;
	return size;
}

/* Names a function by its symbol in the symbol map, whose images have been sorted. */
static void name_by_symbol(struct vp_names *names, const struct vp_maps_symbol *symbol,
			   struct vp_name *name)
{
	const char **function = &names->function_of_symbol[symbol - names->maps.symbols.at];

	if (!*function && vp_maps_is_nameless(&names->maps, symbol->name)) {
		name_by_offset(names, symbol->addr, name);
		return;
	}
	if (!*function)
		*function = vp_names_function_text(names, symbol->name);
	name->function = *function;
}

static void find_in_text(struct vp_names *names, const struct vp_maps_image *image, uint64_t offset,
			 struct vp_name *name)
{
	const struct vp_maps_symbol *symbols = names->maps.symbols.at + image->first;
	size_t above = VP_FIRST(i, image->count, symbols[i].addr > offset);

	if (!above)
		return;
	const struct vp_maps_symbol *symbol = &symbols[above - 1];
	if (symbol->size && offset - symbol->addr >= symbol->size) {
		name->gap_start = symbol->addr + symbol->size;
		name->gap_end = above < image->count ? symbols[above].addr : 0;
		return;
	}
	name_by_symbol(names, symbol, name);
	name->function_offset = offset - symbol->addr;
	name->function_size = size_to_next(symbol->addr, symbol->size, above < image->count,
					   above < image->count ? symbols[above].addr : 0);
}

static void names_module_find_in_file(struct vp_names *names, const struct vp_image *image,
				      uint64_t offset, struct vp_name *name)
{
	const struct vp_image_symbol *symbols = image->symbols.at;
	size_t above = VP_FIRST(i, image->symbols.count, symbols[i].offset > offset);

	if (!above)
		return;
	const struct vp_image_symbol *symbol = &symbols[above - 1];
	if (symbol->size && offset - symbol->offset >= symbol->size) {
		name->gap_start = symbol->offset + symbol->size;
		name->gap_end = above < image->symbols.count ? symbols[above].offset : 0;
		return;
	}
	const char *text = vp_image_symbol_name(image, symbol);
	if (text[0])
		name->function = vp_names_function(names, text);
	else
		name_by_offset(names, symbol->offset, name);
	name->function_offset = offset - symbol->offset;
	name->function_size =
	    size_to_next(symbol->offset, symbol->size, above < image->symbols.count,
			 above < image->symbols.count ? symbols[above].offset : 0);
}

void vp_names_find_in_module(struct vp_names *names, uint32_t number, uint64_t offset,
			     struct vp_name *name)
{
	struct vp_names_module *module = &names->modules.at[number];

	if (!module->resolved)
		names_module_resolve(names, module);
	name->module = module->path;
	name->module_offset = offset;
	if (module->image != UINT32_MAX)
		find_in_text(names, &names->maps.images.at[module->image], offset, name);
	else if (module->file)
		names_module_find_in_file(names, module->file, offset, name);
}
