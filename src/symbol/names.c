/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loading of symbol maps, and lookup of an address in a process: mappings over time,
 * JIT-compiled code. */
#include "symbol/names.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/intern.h"
#include "base/map.h"
#include "maps/format.h"
#include "maps/image.h"
#include "symbol/names_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/text.h"
#include "symbol/demangle.h"

enum {
	/* Maximum depth of forks without exec that is searched for a mapping. */
	MAX_FORKS = 64,
	/* Maximum mappings visited per address; overlapping ones are few in valid maps. */
	MAX_OVERLAPS = 1000,
	MAX_OLDER_CODE = 64, /* JIT symbols at one address */
};

static const char *intern_clean(struct vp_names *names, const char *text, size_t size)
{
	struct vp_buffer clean = {0};

	vp_text_clean(text, size, &clean);
	uint32_t id = vp_intern_add(&names->strings, vp_buffer_text(&clean), clean.size);
	vp_buffer_deinit(&clean);
	return vp_intern_text(&names->strings, id);
}

const char *vp_names_text(struct vp_names *names, vp_text offset)
{
	struct vp_buffer text = {0};

	vp_maps_unescape(vp_maps_word(&names->maps, offset), &text);
	const char *result = intern_clean(names, vp_buffer_text(&text), text.size);
	vp_buffer_deinit(&text);
	return result;
}

const char *vp_names_function(struct vp_names *names, const char *symbol)
{
	struct vp_buffer text = {0};

	vp_demangle(symbol, &text);
	const char *result = intern_clean(names, vp_buffer_text(&text), text.size);
	vp_buffer_deinit(&text);
	return result;
}

const char *vp_names_function_text(struct vp_names *names, vp_text offset)
{
	const uint32_t *known = vp_map_find(&names->function_of_text, offset);
	bool inserted;

	if (known)
		return vp_intern_text(&names->strings, *known);
	VP_AUTO_FREE char *symbol = vp_maps_string(&names->maps, offset);
	const char *result = vp_names_function(names, symbol);
	uint32_t id = vp_intern_string(&names->strings, result);
	vp_map_insert(&names->function_of_text, offset, id, &inserted);
	return result;
}

struct numbered_mapping {
	uint32_t space, line;
	uint64_t start;
};

static int by_space_and_start(const void *left, const void *right)
{
	const struct numbered_mapping *a = left, *b = right;

	if (a->space != b->space)
		return a->space < b->space ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->line < b->line ? -1 : 1;
}

static void add_mapping(struct vp_names *names, const struct numbered_mapping *which)
{
	const struct vp_maps_mapping *from = &names->maps.mappings.at[which->line];
	struct vp_names_space *space = &names->spaces.at[which->space];
	uint64_t highest_end = from->end;

	if (!space->mappings++) {
		space->first_mapping = (uint32_t)names->mappings.count;
	} else {
		uint64_t before = names->mappings.at[names->mappings.count - 1].highest_end;
		highest_end = before > highest_end ? before : highest_end;
	}
	vp_vec_push(&names->mappings,
		    ((struct vp_names_mapping){.start = from->start,
					       .end = from->end,
					       .pgoff = from->pgoff,
					       .from_ns = from->from_ns,
					       .highest_end = highest_end,
					       .line = which->line,
					       .module = vp_names_module_of(names, from)}));
}

static void index_mappings(struct vp_names *names)
{
	struct vp_maps *maps = &names->maps;
	struct numbered_mapping *order =
	    vp_realloc_array(NULL, maps->mappings.count, sizeof(*order));

	for (uint32_t i = 0; i < maps->mappings.count; i++)
		order[i] = (struct numbered_mapping){maps->mappings.at[i].space, i,
						     maps->mappings.at[i].start};
	qsort(order, maps->mappings.count, sizeof(*order), by_space_and_start);
	for (uint32_t i = 0; i < maps->mappings.count; i++)
		add_mapping(names, &order[i]);
	free(order);
	vp_vec_deinit(&maps->mappings);
}

static int by_space_and_addr(const void *left, const void *right)
{
	const struct vp_maps_jit *a = left, *b = right;

	if (a->space != b->space)
		return a->space < b->space ? -1 : 1;
	if (a->symbol.addr != b->symbol.addr)
		return a->symbol.addr < b->symbol.addr ? -1 : 1;
	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	return a->symbol.name < b->symbol.name ? -1 : 1;
}

static void index_jit(struct vp_names *names)
{
	struct vp_maps *maps = &names->maps;

	if (maps->jit.count)
		qsort(maps->jit.at, maps->jit.count, sizeof(*maps->jit.at), by_space_and_addr);
	for (uint32_t i = 0; i < maps->jit.count; i++) {
		struct vp_names_space *space = &names->spaces.at[maps->jit.at[i].space];
		if (!space->jits++)
			space->first_jit = i;
	}
}

static void index_all(struct vp_names *names)
{
	vp_vec_each (&names->maps.spaces, space)
		vp_vec_push(&names->spaces,
			    ((struct vp_names_space){.comm = vp_names_text(names, space->comm)}));
	vp_names_index_spaces(names);
	vp_names_index_kernel(names);
	vp_names_index_modules(names);
	index_mappings(names);
	index_jit(names);
	names->function_of_symbol =
	    vp_alloc((names->maps.symbols.count + 1) * sizeof(*names->function_of_symbol));
}

struct vp_error *vp_names_load(const char *path, const struct vp_names_options *options,
			       struct vp_names **names)
{
	static const struct vp_names_options usual = {0};
	struct vp_names *loaded = vp_alloc(sizeof(*loaded));
	struct vp_error *error = vp_maps_load(path, &loaded->maps);

	if (error) {
		free(loaded);
		return error;
	}
	pthread_mutex_init(&loaded->looking, NULL);
	if (!options)
		options = &usual;
	loaded->root = vp_strdup(options->root ? options->root : "");
	loaded->debug_dir = vp_strdup(options->debug_dir ? options->debug_dir : "/usr/lib/debug");
	loaded->no_files = options->no_files;
	loaded->map_only = options->map_only;
	index_all(loaded);
	*names = loaded;
	return NULL;
}

struct vp_error *vp_names_load_kallsyms(const char *path, struct vp_names **names)
{
	struct vp_names *loaded = vp_alloc(sizeof(*loaded));
	struct vp_error *error = vp_maps_load_kallsyms(path, &loaded->maps);

	if (error) {
		free(loaded);
		return error;
	}
	pthread_mutex_init(&loaded->looking, NULL);
	loaded->map_only = true;
	index_all(loaded);
	*names = loaded;
	return NULL;
}

static void by_key_deinit(struct vp_names_by_key *by_key)
{
	vp_map_deinit(&by_key->lives_of_key);
	vp_vec_deinit(&by_key->lives);
	vp_vec_deinit(&by_key->order);
}

void vp_names_free(struct vp_names *names)
{
	if (!names)
		return;
	vp_vec_each (&names->modules, module) {
		if (module->file) {
			vp_image_deinit(module->file);
			free(module->file);
		}
		free(module->used);
	}
	vp_vec_deinit(&names->modules);
	vp_intern_deinit(&names->module_ids);
	vp_intern_deinit(&names->image_ids);
	vp_vec_deinit(&names->image_of_id);
	vp_vec_deinit(&names->mappings);
	vp_vec_deinit(&names->spaces);
	by_key_deinit(&names->by_root);
	by_key_deinit(&names->by_pid);
	vp_vec_deinit(&names->kernel);
	vp_map_deinit(&names->module_base);
	vp_vec_deinit(&names->module_bases);
	vp_intern_deinit(&names->strings);
	vp_map_deinit(&names->function_of_text);
	free(names->function_of_symbol);
	vp_maps_deinit(&names->maps);
	vp_names_free(names->second);
	pthread_mutex_destroy(&names->looking);
	free(names->root);
	free(names->debug_dir);
	free(names);
}

void vp_names_files_used(const struct vp_names *names, vp_names_paths *ret)
{
	vp_vec_each (&names->modules, module)
		if (module->used)
			vp_vec_push(ret, module->used);
	if (names->second)
		vp_names_files_used(names->second, ret);
}

const struct vp_maps *vp_names_maps(const struct vp_names *names)
{
	return &names->maps;
}

static bool is_same_code(const struct vp_names_mapping *a, const struct vp_names_mapping *b)
{
	return a->module == b->module && a->pgoff - a->start == b->pgoff - b->start;
}

/* The mapping of `addr` in `space` itself: of those that existed by `time` the last one in the
 * map, otherwise the earliest one. Sets *varies if the result may differ at another time. */
static const struct vp_names_mapping *find_own_mapping(const struct vp_names *names, uint32_t space,
						       uint64_t addr, uint64_t time, bool *varies)
{
	const struct vp_names_space *owner = &names->spaces.at[space];
	const struct vp_names_mapping *first, *best = NULL;

	if (!owner->mappings)
		return NULL;
	first = names->mappings.at + owner->first_mapping;
	size_t above = VP_FIRST(i, owner->mappings, first[i].start > addr);
	for (size_t i = above, looked = 0; i-- > 0 && looked < MAX_OVERLAPS; looked++) {
		const struct vp_names_mapping *mapping = &first[i];
		if (mapping->highest_end <= addr)
			break;
		if (mapping->end <= addr)
			continue;
		*varies |= best && !is_same_code(mapping, best);
		bool there = mapping->from_ns <= time, best_there = best && best->from_ns <= time;
		if (!best || (there && !best_there) ||
		    (there && best_there && mapping->line > best->line) ||
		    (!there && !best_there && mapping->from_ns < best->from_ns))
			best = mapping;
	}
	return best;
}

static const struct vp_names_mapping *find_mapping(const struct vp_names *names, uint32_t space,
						   uint64_t addr, uint64_t time, bool *varies)
{
	for (unsigned depth = 0; depth < MAX_FORKS; depth++) {
		const struct vp_names_mapping *mapping =
		    find_own_mapping(names, space, addr, time, varies);
		const struct vp_maps_space *life = &names->maps.spaces.at[space];
		if (mapping || !life->parent)
			return mapping;
		/* Mappings that the parent added after the fork do not apply to the child. */
		if (life->start_ns && life->start_ns < time)
			time = life->start_ns;
		space = life->parent - 1;
	}
	return NULL;
}

static bool has_code(const struct vp_names *names, uint32_t space, uint64_t addr, uint64_t time)
{
	const struct vp_maps_space *life = &names->maps.spaces.at[space];
	bool varies = false;

	return life->start_ns <= time && (!life->end_ns || life->end_ns > time) &&
	       find_mapping(names, space, addr, time, &varies);
}

uint32_t vp_names_space_by_address(const struct vp_names *names, uint32_t first, uint64_t addr,
				   uint64_t host_ns)
{
	uint64_t time = vp_names_machine_time(names, host_ns);
	uint32_t found = VP_NAMES_NO_SPACE;

	if (first < names->spaces.count && has_code(names, first, addr, time))
		return first;
	for (uint32_t space = 0; space < names->spaces.count; space++) {
		if (!has_code(names, space, addr, time))
			continue;
		if (found != VP_NAMES_NO_SPACE)
			return VP_NAMES_NO_SPACE;
		found = space;
	}
	return found;
}

/* Whether `symbol`, which precedes `best`, is better: the latest one that existed at that time,
 * or if none did, the earliest one. */
static bool is_better_jit(const struct vp_maps_jit *symbol, const struct vp_maps_jit *best,
			  uint64_t time)
{
	bool there = symbol->from_ns <= time;

	if (!best || there != (best->from_ns <= time))
		return !best || there;
	return there ? symbol->from_ns > best->from_ns : symbol->from_ns < best->from_ns;
}

/* JIT symbol at `addr` in `space` itself. Another function may have been there before. Sets
 * *varies if the result may differ at another time. */
static const struct vp_maps_jit *find_own_jit(const struct vp_names *names, uint32_t space,
					      uint64_t addr, uint64_t time, bool *varies)
{
	const struct vp_names_space *owner = &names->spaces.at[space];
	const struct vp_maps_jit *first, *best = NULL;

	if (!owner->jits)
		return NULL;
	first = names->maps.jit.at + owner->first_jit;
	size_t above = VP_FIRST(i, owner->jits, first[i].symbol.addr > addr);
	for (size_t i = above, looked = 0; i-- > 0 && looked < MAX_OLDER_CODE; looked++) {
		const struct vp_maps_jit *jit = &first[i];
		if (addr - jit->symbol.addr >= jit->symbol.size)
			continue;
		*varies |= best && best->from_ns != jit->from_ns;
		if (is_better_jit(jit, best, time))
			best = jit;
	}
	return best;
}

static void find_jit(struct vp_names *names, uint32_t space, uint64_t addr, uint64_t time,
		     struct vp_name *name)
{
	const struct vp_maps_jit *jit = NULL;

	for (unsigned depth = 0; depth < MAX_FORKS && !jit; depth++) {
		const struct vp_maps_space *life = &names->maps.spaces.at[space];
		jit = find_own_jit(names, space, addr, time, &name->varies);
		if (!jit && !life->parent)
			return;
		space = life->parent - 1;
	}
	if (!jit)
		return;
	name->function = vp_names_function_text(names, jit->symbol.name);
	name->function_offset = addr - jit->symbol.addr;
}

bool vp_names_process(const struct vp_names *names, uint32_t space, const char **comm,
		      uint32_t *pid)
{
	if (space >= names->spaces.count)
		return names->second &&
		       vp_names_process(names->second, vp_names_in_fallback(names, space), comm,
					pid);
	*comm = names->spaces.at[space].comm;
	*pid = names->maps.spaces.at[space].tgid;
	return true;
}

bool vp_names_life(const struct vp_names *names, uint32_t space, uint64_t *start_ns,
		   uint64_t *end_ns)
{
	if (space >= names->spaces.count)
		return false;
	*start_ns = names->maps.spaces.at[space].start_ns;
	*end_ns = names->maps.spaces.at[space].end_ns;
	return true;
}

static void find_in_process(struct vp_names *names, uint32_t space, uint64_t addr, uint64_t host_ns,
			    struct vp_name *name)
{
	uint64_t time = vp_names_machine_time(names, host_ns);
	const struct vp_names_mapping *mapping =
	    find_mapping(names, space, addr, time, &name->varies);
	if (mapping) {
		vp_names_find_in_module(names, mapping->module,
					addr - mapping->start + mapping->pgoff, name);
		uint64_t left = mapping->end - addr + name->function_offset;
		name->function_size = left < name->function_size ? left : name->function_size;
	}
	if (!name->function)
		find_jit(names, space, addr, time, name);
}

void vp_names_find(struct vp_names *names, uint32_t space, bool kernel, uint64_t addr,
		   uint64_t host_ns, struct vp_name *name)
{
	*name = (struct vp_name){.module_offset = addr};
	vp_names_process(names, space, &name->comm, &name->pid);
	pthread_mutex_lock(&names->looking);
	if (kernel)
		vp_names_find_kernel(names, addr, name);
	else if (space < names->spaces.count)
		find_in_process(names, space, addr, host_ns, name);
	pthread_mutex_unlock(&names->looking);
	if ((!name->function || name->nameless) && names->second)
		vp_names_find_fallback(names, space, kernel, addr, host_ns, name);
}

bool vp_names_is_anonymous(const char *path)
{
	/* As in /proc/PID/maps. */
	static const char *const starts[] = {"//anon", "/memfd:", "/dev/zero", "/anon_hugepage",
					     "/SYSV"};

	for (size_t i = 0; path && i < VP_ARRAY_SIZE(starts); i++)
		if (!strncmp(path, starts[i], strlen(starts[i])))
			return true;
	return false;
}
