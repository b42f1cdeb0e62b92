/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/btf_excerpt.h"

#include <string.h>

#include <bpf/btf.h>

#include "base/intern.h"
#include "base/map.h"

struct excerpt {
	struct vp_intern names;  /* names to include */
	struct vp_map number_of; /* key: source << 32 | id there; value: id in the excerpt or 0 */
	uint32_t source, own;    /* present source; its own types start at this id */
	struct btf *made;
	bool failed;
};

static bool has_candidates(const struct btf_type *type)
{
	uint32_t kind = btf_kind(type);

	return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION || kind == BTF_KIND_ENUM ||
	       kind == BTF_KIND_ENUM64 || kind == BTF_KIND_TYPEDEF || kind == BTF_KIND_INT;
}

static void note_names(struct excerpt *excerpt, const struct btf *wanted)
{
	for (uint32_t id = 1; id < btf__type_cnt(wanted); id++) {
		const struct btf_type *type = btf__type_by_id(wanted, id);
		const char *name = btf__name_by_offset(wanted, type->name_off);
		if (!has_candidates(type) || !name || !name[0])
			continue;
		const char *flavour = strstr(name, "___");
		size_t size = flavour && flavour > name ? (size_t)(flavour - name) : strlen(name);
		(void)vp_intern_add(&excerpt->names, name, size);
	}
}

static uint32_t add_type(struct excerpt *excerpt, const struct btf *from, uint32_t id);

/* Redirects the type's references to copies. Copying may move the type in memory. */
static void btf_excerpt_add_parts(struct excerpt *excerpt, const struct btf *from,
				  const struct btf_type *type, uint32_t copy)
{
	uint32_t count = btf_is_composite(type) ? btf_vlen(type) : 0, number;

	for (uint32_t i = 0; i < count; i++) {
		number = add_type(excerpt, from, btf_members(type)[i].type);
		btf_members((struct btf_type *)btf__type_by_id(excerpt->made, copy))[i].type =
		    number;
	}
	if (btf_is_array(type)) {
		number = add_type(excerpt, from, btf_array(type)->type);
		btf_array((struct btf_type *)btf__type_by_id(excerpt->made, copy))->type = number;
		number = add_type(excerpt, from, btf_array(type)->index_type);
		btf_array((struct btf_type *)btf__type_by_id(excerpt->made, copy))->index_type =
		    number;
	} else if (btf_is_mod(type) || btf_is_typedef(type)) {
		number = add_type(excerpt, from, type->type);
		((struct btf_type *)btf__type_by_id(excerpt->made, copy))->type = number;
	} else if (btf_is_ptr(type)) {
		((struct btf_type *)btf__type_by_id(excerpt->made, copy))->type = 0;
	}
}

/* Copies the type and its parts; returns its id in the excerpt, 0: none. */
static uint32_t add_type(struct excerpt *excerpt, const struct btf *from, uint32_t id)
{
	const struct btf_type *type = id ? btf__type_by_id(from, id) : NULL;
	bool inserted;

	if (!type || excerpt->failed)
		return 0;
	uint64_t source = id >= excerpt->own ? excerpt->source : 0;
	uint32_t *known = vp_map_insert(&excerpt->number_of, source << 32 | id, 0, &inserted);
	if (!inserted)
		return *known;
	int copy = btf__add_type(excerpt->made, from, type);
	if (copy < 0) {
		excerpt->failed = true;
		return 0;
	}
	*known = (uint32_t)copy;
	btf_excerpt_add_parts(excerpt, from, type, (uint32_t)copy);
	return (uint32_t)copy;
}

static void add_named(struct excerpt *excerpt, const struct btf *from)
{
	for (uint32_t id = excerpt->own; id < btf__type_cnt(from); id++) {
		const struct btf_type *type = btf__type_by_id(from, id);
		if (!type->name_off || !has_candidates(type))
			continue;
		const char *name = btf__name_by_offset(from, type->name_off);
		if (name && vp_intern_has(&excerpt->names, name))
			(void)add_type(excerpt, from, id);
	}
}

struct btf *vp_btf_excerpt(const struct btf *const *from, size_t count, const struct btf *wanted)
{
	struct excerpt excerpt = {.made = btf__new_empty()};

	if (!excerpt.made)
		return NULL;
	note_names(&excerpt, wanted);
	for (uint32_t i = 0; i < count; i++) {
		excerpt.source = i;
		excerpt.own = i ? btf__type_cnt(from[0]) : 1;
		if (from[i])
			add_named(&excerpt, from[i]);
	}
	vp_map_deinit(&excerpt.number_of);
	vp_intern_deinit(&excerpt.names);
	if (!excerpt.failed)
		return excerpt.made;
	btf__free(excerpt.made);
	return NULL;
}
