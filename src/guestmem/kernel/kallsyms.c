/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/kernel/kallsyms.h"

#include <string.h>

#include "guestmem/memory/guest_view.h"

enum {
	TOKENS = 256,
	MIN_SYMBOLS = 1000,
	MAX_SYMBOLS = 4 << 20,
	MAX_TABLES = 32 << 20, /* bytes from num_syms to token_table */
	MAX_TRIES = 64,        /* candidates for the token table */
	FIRST_SYMBOLS = 16,    /* symbols whose type is checked */
	MARKED = 256,          /* symbols per marker */
};
/* Maximum number of names visited by a search: several times the symbols of any kernel. */
#define MAX_STEPS (1UL << 26)

struct search {
	const unsigned char *image;
	size_t size;
	uint64_t va;
	uint64_t steps;
	struct vp_kallsyms tables;
};

static uint32_t u32_at(const struct search *search, uint64_t at)
{
	uint32_t value;

	memcpy(&value, search->image + at, sizeof(value));
	return value;
}

static uint64_t kallsyms_u64_at(const struct search *search, uint64_t at)
{
	uint64_t value;

	memcpy(&value, search->image + at, sizeof(value));
	return value;
}

static bool holds(const struct search *search, uint64_t at, uint64_t size)
{
	return at <= search->size && size <= search->size - at;
}

static uint64_t align(uint64_t at, uint64_t to)
{
	return (at + to - 1) / to * to;
}

/* Whether the 256 texts at `at` are followed by the array of their offsets; *ret: its offset in the
 * image. */
static bool has_token_index(const struct search *search, uint64_t at, uint64_t *ret)
{
	uint16_t offsets[TOKENS];
	uint64_t end = at;

	for (unsigned i = 0; i < TOKENS; i++) {
		if (end >= search->size || end - at > UINT16_MAX)
			return false;
		offsets[i] = (uint16_t)(end - at);
		const void *zero = memchr(search->image + end, 0, search->size - end);
		if (!zero)
			return false;
		end = (uint64_t)((const unsigned char *)zero - search->image) + 1;
	}
	/* The array is aligned to 8 bytes until 7.x, since then to 4. */
	for (uint64_t to = 8; to >= 4; to -= 4) {
		uint64_t index = align(end, to);
		if (holds(search, index, sizeof(offsets)) &&
		    !memcmp(search->image + index, offsets, sizeof(offsets))) {
			*ret = index;
			return true;
		}
	}
	return false;
}

/* Whether a token table has its token '0' at `digit`, after 48 other texts. */
static bool try_token_table(struct search *search, uint64_t digit)
{
	uint64_t start = digit;

	for (unsigned i = 0; i < '0'; i++) {
		const unsigned char *before =
		    start > 1 ? memrchr(search->image, 0, start - 1) : NULL;
		if (!before)
			return false;
		start = (uint64_t)(before - search->image) + 1;
	}
	search->tables.token_table = start;
	return has_token_index(search, start, &search->tables.token_index);
}

/* Finds the tokens of the digits, which are the digits themselves in every table: symbol names
 * contain numbers. */
const char *vp_kallsyms_find_candidate(const char *bytes, size_t size)
{
	static const char digits[] = "0\0001\0002\0003\0004\0005\0006\0007\0008\0009";

	return memmem(bytes, size, digits, sizeof(digits));
}

static bool find_token_table(struct search *search, uint64_t from, uint64_t *digit)
{
	const char *image = (const char *)search->image;

	for (unsigned tries = 0; tries < MAX_TRIES; tries++) {
		const char *found = vp_kallsyms_find_candidate(image + from, search->size - from);
		if (!found)
			return false;
		*digit = (uint64_t)(found - image);
		if (try_token_table(search, *digit))
			return true;
		from = *digit + 1;
	}
	return false;
}

/* Reads the length of the name at *at, and advances *at to its first token; 0: invalid. */
static uint32_t name_length(const unsigned char *image, uint64_t end, uint64_t *at)
{
	if (*at >= end)
		return 0;
	uint32_t length = image[(*at)++];
	if (length & 0x80) {
		if (*at >= end)
			return 0;
		length = (length & 0x7f) | (uint32_t)image[(*at)++] << 7;
	}
	return length <= end - *at ? length : 0;
}

static bool is_type(char c)
{
	return c && strchr("ABbDdGgRrSsTtUuVvWw", c) != NULL;
}

static char first_char(const struct search *search, unsigned char token)
{
	const struct vp_kallsyms *tables = &search->tables;
	uint16_t offset;

	memcpy(&offset, search->image + tables->token_index + 2 * token, sizeof(offset));
	return (char)search->image[tables->token_table + offset];
}

/* Whether the `count` names at `names` are valid, and followed by their markers. */
static bool has_markers(struct search *search, uint64_t names, uint32_t count)
{
	uint64_t end = search->tables.token_table, at = names, marked = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (i == MARKED)
			marked = at - names;
		uint32_t length = name_length(search->image, end, &at);
		if (!length || search->steps++ > MAX_STEPS ||
		    (i < FIRST_SYMBOLS && !is_type(first_char(search, search->image[at]))))
			return false;
		at += length;
	}
	for (uint64_t to = 4; to <= 8; to += 4) {
		uint64_t markers = align(at, to);
		if (!holds(search, markers, 16) || u32_at(search, markers))
			continue;
		/* Markers have 64 bits until v4.20 (80ffbaa5b1bd). */
		if (u32_at(search, markers + 4) == marked ||
		    (!u32_at(search, markers + 4) &&
		     kallsyms_u64_at(search, markers + 8) == marked))
			return true;
	}
	return false;
}

/* Finds the number of symbols, and the names after it, backwards from the token table. */
static bool find_names(struct search *search, uint64_t *num_syms)
{
	struct vp_kallsyms *tables = &search->tables;
	uint64_t last = tables->token_table / 4 * 4;
	uint64_t first = last > MAX_TABLES ? last - MAX_TABLES : 0;

	for (uint64_t at = last; at >= first + 4 && search->steps <= MAX_STEPS;) {
		at -= 4;
		uint32_t count = u32_at(search, at);
		if (count < MIN_SYMBOLS || count > MAX_SYMBOLS)
			continue;
		for (uint64_t to = 4; to <= 8; to += 4) {
			if (!has_markers(search, align(at + 4, to), count))
				continue;
			tables->names = align(at + 4, to);
			tables->count = count;
			*num_syms = at;
			return true;
		}
	}
	return false;
}

static uint64_t address(const struct search *search, uint32_t i, bool *percpu)
{
	const struct vp_kallsyms *tables = &search->tables;
	uint64_t at = tables->offsets + 4 * (uint64_t)i;
	int32_t value = (int32_t)u32_at(search, at);

	*percpu = false;
	switch (tables->encoding) {
	case VP_KALLSYMS_RELATIVE:
		return tables->base + (uint32_t)value;
	case VP_KALLSYMS_PERCPU:
		*percpu = value >= 0;
		return value >= 0 ? (uint64_t)value : tables->base - 1 - (uint64_t)(int64_t)value;
	case VP_KALLSYMS_SELF_RELATIVE:
		return tables->base + at + (uint64_t)(int64_t)value;
	}
	return 0;
}

static bool in_image(const struct search *search, uint64_t addr)
{
	return search->va ? addr - search->va <= VP_KERNEL_IMAGE_MAX : addr >> 63;
}

/* Whether the offsets result in ascending addresses within the image. */
static bool try_offsets(struct search *search, uint64_t offsets, enum vp_kallsyms_encoding encoding,
			uint64_t base)
{
	struct vp_kallsyms *tables = &search->tables;
	uint64_t before = 0;
	uint32_t relative = 0;

	if (!holds(search, offsets, 4 * (uint64_t)tables->count))
		return false;
	tables->offsets = offsets;
	tables->encoding = encoding;
	tables->base = base;
	for (uint32_t i = 0; i < tables->count; i++) {
		bool percpu;
		uint64_t addr = address(search, i, &percpu);
		if (percpu)
			continue;
		bool inside = encoding == VP_KALLSYMS_SELF_RELATIVE
				  ? addr - base <= VP_KERNEL_IMAGE_MAX
				  : addr - base <= VP_KERNEL_IMAGE_MAX && in_image(search, addr);
		if (!inside || addr < before)
			return false;
		before = addr;
		relative++;
	}
	return relative >= MIN_SYMBOLS;
}

static bool try_with_base(struct search *search, uint64_t offsets, uint64_t base_at)
{
	if (!holds(search, base_at, 8) || !in_image(search, kallsyms_u64_at(search, base_at)))
		return false;
	uint64_t base = kallsyms_u64_at(search, base_at);
	return try_offsets(search, offsets, VP_KALLSYMS_PERCPU, base) ||
	       try_offsets(search, offsets, VP_KALLSYMS_RELATIVE, base);
}

static bool find_offsets(struct search *search, uint64_t num_syms)
{
	uint64_t size = 4 * (uint64_t)search->tables.count, old = align(size, 8) + 8;
	uint64_t behind = search->tables.token_index + 2 * TOKENS;

	if (num_syms > old && try_with_base(search, num_syms - old, num_syms - 8))
		return true;
	if (try_with_base(search, align(behind, 8), align(align(behind, 8) + size, 8)))
		return true;
	return try_offsets(search, align(behind, 4), VP_KALLSYMS_SELF_RELATIVE, search->va);
}

struct vp_error *vp_kallsyms_find(const char *image, size_t size, uint64_t image_va,
				  struct vp_kallsyms *ret)
{
	struct search search = {
	    .image = (const unsigned char *)image, .size = size, .va = image_va};
	uint64_t digit = 0, num_syms;
	bool tokens = false;

	for (uint64_t from = 0; find_token_table(&search, from, &digit); from = digit + 1) {
		tokens = true;
		if (find_names(&search, &num_syms) && find_offsets(&search, num_syms)) {
			*ret = search.tables;
			return NULL;
		}
	}
	return tokens ? vp_error_new("unknown layout of the kernel's symbol table")
		      : vp_error_new("no kernel symbol table was found (CONFIG_KALLSYMS)");
}

/* Expands the name at *at, and advances *at; false: invalid name. */
static bool expand(const struct search *search, uint64_t *at, struct vp_kallsyms_symbol *symbol)
{
	const struct vp_kallsyms *tables = &search->tables;
	uint32_t length = name_length(search->image, search->size, at);
	size_t used = 0;
	bool first = true;

	if (!length)
		return false;
	for (uint64_t end = *at + length; *at < end; (*at)++) {
		uint64_t text = tables->token_table;
		uint16_t offset;
		memcpy(&offset, search->image + tables->token_index + 2 * search->image[*at],
		       sizeof(offset));
		text += offset;
		for (; text < search->size && search->image[text]; text++) {
			char c = (char)search->image[text];
			if (first)
				symbol->type = c;
			else if (used < sizeof(symbol->name) - 1)
				symbol->name[used++] = c;
			first = false;
		}
	}
	symbol->name[used] = 0;
	return used > 0;
}

bool vp_kallsyms_each(const struct vp_kallsyms *tables, const char *image, size_t size,
		      bool (*each)(void *context, const struct vp_kallsyms_symbol *symbol),
		      void *context)
{
	const struct search search = {
	    .image = (const unsigned char *)image, .size = size, .tables = *tables};
	struct vp_kallsyms_symbol symbol;
	uint64_t at = tables->names;

	if (!holds(&search, tables->offsets, 4 * (uint64_t)tables->count) ||
	    !holds(&search, tables->token_index, 2 * TOKENS) || tables->names > size)
		return false;
	for (uint32_t i = 0; i < tables->count; i++) {
		if (!expand(&search, &at, &symbol))
			return false;
		symbol.addr = address(&search, i, &symbol.percpu);
		if (!each(context, &symbol))
			break;
	}
	return true;
}
