/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names for kernel addresses. */
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "maps/format.h"
#include "maps/maps.h"
#include "symbol/names.h"
#include "symbol/names_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/text.h"

/* Assumed size of the last symbol of the kernel or a module, which has no next one. */
enum { LAST_SYMBOL_SIZE = 64 * 1024 };

static int names_kernel_by_addr(const void *left, const void *right)
{
	const struct vp_maps_kernel_symbol *a = left, *b = right;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static bool same_module(const struct vp_maps *maps, vp_text a, vp_text b)
{
	struct vp_slice first = vp_maps_word(maps, a), second = vp_maps_word(maps, b);

	return first.size == second.size && !memcmp(first.bytes, second.bytes, first.size);
}

/* Lower is preferred: global before local, then the fewest leading underscores. */
static unsigned rank(const struct vp_maps *maps, const struct vp_maps_kernel_symbol *symbol)
{
	struct vp_slice name = vp_maps_word(maps, symbol->name);
	unsigned value = symbol->type == 'T' ? 0 : symbol->type == 't' ? 4 : 8;

	for (size_t i = 0; i < name.size && i < 3 && name.bytes[i] == '_'; i++)
		value += 16;
	return value;
}

/* The best text symbol among those at the address of `at`; NULL: none. */
static const struct vp_maps_kernel_symbol *best_at(const struct vp_maps *maps, size_t at,
						   size_t after)
{
	const struct vp_maps_kernel_symbol *best = NULL;

	for (size_t i = at; i < after; i++) {
		const struct vp_maps_kernel_symbol *symbol = &maps->kernel.at[i];
		if (vp_maps_is_text(symbol->type) &&
		    (!best || rank(maps, symbol) < rank(maps, best)))
			best = symbol;
	}
	return best;
}

static uint64_t names_kernel_end_of(const struct vp_maps *maps,
				    const struct vp_maps_kernel_symbol *symbol, size_t next)
{
	uint64_t size = symbol->size ? symbol->size : LAST_SYMBOL_SIZE;

	if (next < maps->kernel.count) {
		const struct vp_maps_kernel_symbol *after = &maps->kernel.at[next];
		uint64_t gap = after->addr - symbol->addr;
		if (gap < size ||
		    (!symbol->size && same_module(maps, symbol->module, after->module)))
			size = gap;
	}
	uint64_t end;
	return __builtin_add_overflow(symbol->addr, size, &end) ? UINT64_MAX : end;
}

static void names_kernel_keep_symbol(struct vp_names *names,
				     const struct vp_maps_kernel_symbol *symbol, size_t next)
{
	vp_vec_push(&names->kernel, ((struct vp_names_kernel_symbol){
					.addr = symbol->addr,
					.end = names_kernel_end_of(&names->maps, symbol, next),
					.name = symbol->name,
					.module = symbol->module}));
	if (!symbol->module)
		return;
	struct vp_slice module = vp_maps_word(&names->maps, symbol->module);
	uint32_t id = vp_intern_add(&names->strings, module.bytes, module.size);
	bool inserted;
	vp_map_insert(&names->module_base, id, (uint32_t)names->module_bases.count, &inserted);
	if (inserted)
		vp_vec_push(&names->module_bases, symbol->addr);
}

void vp_names_index_kernel(struct vp_names *names)
{
	struct vp_maps *maps = &names->maps;

	if (maps->kernel.count)
		qsort(maps->kernel.at, maps->kernel.count, sizeof(*maps->kernel.at),
		      names_kernel_by_addr);
	for (size_t i = 0, next; i < maps->kernel.count; i = next) {
		for (next = i; next < maps->kernel.count &&
			       maps->kernel.at[next].addr == maps->kernel.at[i].addr;
		     next++)
			if (vp_slice_is(vp_maps_word(maps, maps->kernel.at[next].name), "_text"))
				names->kernel_text = maps->kernel.at[i].addr;
		const struct vp_maps_kernel_symbol *best = best_at(maps, i, next);
		if (best)
			names_kernel_keep_symbol(names, best, next);
	}
}

/* "[kvm]" for kvm or [kvm], as in kallsyms. */
static const char *module_name(struct vp_names *names, struct vp_slice word)
{
	struct vp_buffer text = {0}, clean = {0};
	bool bare = !word.size || word.bytes[0] != '[';

	vp_buffer_string(&text, bare ? "[" : "");
	vp_maps_unescape(word, &text);
	vp_buffer_string(&text, bare ? "]" : "");
	vp_text_clean(text.bytes, text.size, &clean);
	uint32_t id = vp_intern_add(&names->strings, vp_buffer_text(&clean), clean.size);
	vp_buffer_deinit(&text);
	vp_buffer_deinit(&clean);
	return vp_intern_text(&names->strings, id);
}

static void name_module(struct vp_names *names, const struct vp_names_kernel_symbol *symbol,
			uint64_t addr, struct vp_name *name)
{
	struct vp_slice word = vp_maps_word(&names->maps, symbol->module);
	uint32_t id = vp_intern_add(&names->strings, word.bytes, word.size);
	uint32_t *base = vp_map_find(&names->module_base, id);

	name->module = module_name(names, word);
	if (base)
		name->module_offset = addr - names->module_bases.at[*base];
}

void vp_names_find_kernel(struct vp_names *names, uint64_t addr, struct vp_name *name)
{
	size_t above = VP_FIRST(i, names->kernel.count, names->kernel.at[i].addr > addr);
	struct vp_names_kernel_symbol *symbol = above ? &names->kernel.at[above - 1] : NULL;
	name->module = "[kernel]";
	if (names->kernel_text && addr >= names->kernel_text)
		name->module_offset = addr - names->kernel_text;
	if (!symbol || addr >= symbol->end)
		return;
	if (!symbol->function)
		symbol->function = vp_names_function_text(names, symbol->name);
	name->function = symbol->function;
	name->function_offset = addr - symbol->addr;
	name->function_size = symbol->end - symbol->addr;
	if (above < names->kernel.count && names->kernel.at[above].addr < symbol->end)
		name->function_size = names->kernel.at[above].addr - symbol->addr;
	if (symbol->module)
		name_module(names, symbol, addr, name);
}
