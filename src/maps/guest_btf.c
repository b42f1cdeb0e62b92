/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/guest_btf.h"

#include <linux/btf.h>
#include <string.h>

enum {
	MAX_TYPES = 4 << 20,
	/* Limit of nesting: unnamed structs in unions, typedefs of typedefs. */
	MAX_DEPTH = 16,
	/* Limit of members visited per query, against malicious nesting. */
	MAX_STEPS = 1 << 18,
};

struct search {
	const struct vp_guest_btf *btf;
	unsigned steps;
};

struct type {
	struct btf_type head;
	const char *behind; /* data after the head … */
	uint32_t count;     /* … and number of its elements */
};

/* Size of the data after a type's head; false: unknown kind. */
static bool btf_size_after(const struct btf_type *head, size_t *ret)
{
	size_t count = BTF_INFO_VLEN(head->info);

	switch (BTF_INFO_KIND(head->info)) {
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		*ret = 0;
		return true;
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		*ret = 4;
		return true;
	case BTF_KIND_ARRAY:
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		*ret = BTF_INFO_KIND(head->info) == BTF_KIND_ARRAY ? 12 : 12 * count;
		return true;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		*ret = 8 * count;
		return true;
	default:
		return false;
	}
}

static bool btf_find_types(struct vp_guest_btf *btf)
{
	struct vp_cursor cursor = vp_cursor_of(btf->types.bytes, btf->types.size);

	while (vp_cursor_left(&cursor)) {
		struct btf_type head;
		size_t behind, at = vp_cursor_offset(&cursor);
		struct vp_slice bytes = vp_cursor_bytes(&cursor, sizeof(head));
		if (!vp_cursor_ok(&cursor) || btf->offsets.count == MAX_TYPES)
			return false;
		memcpy(&head, bytes.bytes, sizeof(head));
		if (!btf_size_after(&head, &behind))
			return false;
		vp_cursor_bytes(&cursor, behind);
		if (!vp_cursor_ok(&cursor))
			return false;
		vp_vec_push(&btf->offsets, (uint32_t)at);
	}
	return true;
}

static struct vp_slice part(const char *bytes, size_t size, uint64_t offset, uint64_t length)
{
	if (offset > size || length > size - offset)
		return (struct vp_slice){NULL, 0};
	return (struct vp_slice){bytes + offset, length};
}

struct vp_error *vp_guest_btf_init(const void *bytes, size_t size, struct vp_guest_btf *ret)
{
	struct btf_header header;

	*ret = (struct vp_guest_btf){0};
	if (size < sizeof(header) || size > UINT32_MAX)
		return vp_error_new("the kernel's BTF is too short");
	memcpy(&header, bytes, sizeof(header));
	if (header.magic != BTF_MAGIC || header.hdr_len < sizeof(header))
		return vp_error_new("the kernel's BTF has a bad header");
	ret->types = part(bytes, size, (uint64_t)header.hdr_len + header.type_off, header.type_len);
	ret->strings = part(bytes, size, (uint64_t)header.hdr_len + header.str_off, header.str_len);
	if (!ret->types.size || !ret->strings.size || !btf_find_types(ret)) {
		vp_guest_btf_deinit(ret);
		return vp_error_new("the kernel's BTF is damaged");
	}
	return NULL;
}

void vp_guest_btf_deinit(struct vp_guest_btf *btf)
{
	vp_vec_deinit(&btf->offsets);
}

/* Finds the type with that id; 0 is void. */
static bool btf_type_of(const struct vp_guest_btf *btf, uint32_t id, struct type *ret)
{
	if (!id || id > btf->offsets.count)
		return false;
	const char *at = btf->types.bytes + btf->offsets.at[id - 1];
	memcpy(&ret->head, at, sizeof(ret->head));
	ret->behind = at + sizeof(ret->head);
	ret->count = BTF_INFO_VLEN(ret->head.info);
	return true;
}

/* Whether the string at `name` is `text`, of `size` bytes. */
static bool btf_is_named(const struct vp_guest_btf *btf, uint32_t name, const char *text,
			 size_t size)
{
	if (name >= btf->strings.size || btf->strings.size - name <= size)
		return false;
	const char *at = btf->strings.bytes + name;
	return !memcmp(at, text, size) && !at[size];
}

static bool is_struct(const struct type *type)
{
	uint32_t kind = BTF_INFO_KIND(type->head.info);

	return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION;
}

/* Resolves typedefs and qualifiers to a struct. */
static bool real_type(const struct vp_guest_btf *btf, uint32_t id, struct type *ret)
{
	for (unsigned depth = 0; depth < MAX_DEPTH && btf_type_of(btf, id, ret); depth++) {
		uint32_t kind = BTF_INFO_KIND(ret->head.info);
		if (kind != BTF_KIND_TYPEDEF && kind != BTF_KIND_CONST &&
		    kind != BTF_KIND_VOLATILE && kind != BTF_KIND_TYPE_TAG)
			return true;
		id = ret->head.type;
	}
	return false;
}

static uint32_t size_of(const struct vp_guest_btf *btf, uint32_t id)
{
	struct type type;

	if (!real_type(btf, id, &type))
		return 0;
	switch (BTF_INFO_KIND(type.head.info)) {
	case BTF_KIND_PTR:
		return 8;
	case BTF_KIND_INT:
	case BTF_KIND_ENUM:
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return type.head.size;
	default:
		return 0;
	}
}

static bool btf_find_member(struct search *search, const struct type *type, const char *path,
			    unsigned depth, struct vp_guest_member *ret)
{
	const struct vp_guest_btf *btf = search->btf;
	const char *dot = strchr(path, '.');
	size_t size = dot ? (size_t)(dot - path) : strlen(path);
	bool flagged =
	    BTF_INFO_KFLAG(type->head.info); /* the upper bits are the size of a bit field */

	for (uint32_t i = 0; i < type->count && depth < MAX_DEPTH; i++) {
		struct btf_member member;
		struct type inner;
		if (search->steps >= MAX_STEPS)
			return false;
		search->steps++;
		memcpy(&member, type->behind + i * sizeof(member), sizeof(member));
		bool named = btf_is_named(btf, member.name_off, path, size);
		if (!named && member.name_off)
			continue;
		uint32_t bits = flagged ? BTF_MEMBER_BIT_OFFSET(member.offset) : member.offset;
		if (named && !dot) {
			*ret = (struct vp_guest_member){bits / 8, size_of(btf, member.type)};
			return true;
		}
		if (real_type(btf, member.type, &inner) && is_struct(&inner) &&
		    btf_find_member(search, &inner, named ? dot + 1 : path, depth + 1, ret)) {
			ret->offset += bits / 8;
			return true;
		}
	}
	return false;
}

/* Several structs may have the same name: chooses the largest, since local ones are small. An
 * unnamed struct may be named by a typedef. */
static bool find_struct(const struct vp_guest_btf *btf, const char *name, struct type *ret)
{
	size_t size = strlen(name);
	bool found = false;

	for (uint32_t id = 1; id <= btf->offsets.count; id++) {
		struct type type;
		if (btf_type_of(btf, id, &type) &&
		    btf_is_named(btf, type.head.name_off, name, size) &&
		    real_type(btf, id, &type) && is_struct(&type) &&
		    (!found || type.head.size > ret->head.size)) {
			*ret = type;
			found = true;
		}
	}
	return found;
}

bool vp_guest_btf_member(const struct vp_guest_btf *btf, const char *type, const char *member,
			 struct vp_guest_member *ret)
{
	struct search search = {.btf = btf};
	struct type found;

	return find_struct(btf, type, &found) && btf_find_member(&search, &found, member, 0, ret);
}

uint32_t vp_guest_btf_size(const struct vp_guest_btf *btf, const char *type)
{
	struct type found;

	return find_struct(btf, type, &found) ? found.head.size : 0;
}

static bool find_enumerator(const struct vp_guest_btf *btf, const struct type *type,
			    const char *name, uint32_t *ret)
{
	size_t size = strlen(name);

	for (uint32_t i = 0; i < type->count; i++) {
		struct btf_enum item;
		memcpy(&item, type->behind + i * sizeof(item), sizeof(item));
		if (btf_is_named(btf, item.name_off, name, size)) {
			*ret = (uint32_t)item.val;
			return true;
		}
	}
	return false;
}

bool vp_guest_btf_enumerator(const struct vp_guest_btf *btf, const char *type, const char *name,
			     uint32_t *ret)
{
	size_t size = strlen(type);

	for (uint32_t id = 1; id <= btf->offsets.count; id++) {
		struct type found;
		if (btf_type_of(btf, id, &found) &&
		    BTF_INFO_KIND(found.head.info) == BTF_KIND_ENUM &&
		    btf_is_named(btf, found.head.name_off, type, size) &&
		    find_enumerator(btf, &found, name, ret))
			return true;
	}
	return false;
}

bool vp_guest_btf_percpu(const struct vp_guest_btf *btf, const char *name, uint32_t *ret)
{
	static const char section_name[] = ".data..percpu";
	size_t size = strlen(name);

	for (uint32_t id = 1; id <= btf->offsets.count; id++) {
		struct type section, variable;
		if (!btf_type_of(btf, id, &section) ||
		    BTF_INFO_KIND(section.head.info) != BTF_KIND_DATASEC ||
		    !btf_is_named(btf, section.head.name_off, section_name,
				  sizeof(section_name) - 1))
			continue;
		for (uint32_t i = 0; i < section.count; i++) {
			struct btf_var_secinfo item;
			memcpy(&item, section.behind + i * sizeof(item), sizeof(item));
			if (!btf_type_of(btf, item.type, &variable) ||
			    !btf_is_named(btf, variable.head.name_off, name, size))
				continue;
			*ret = item.offset;
			return true;
		}
	}
	return false;
}
