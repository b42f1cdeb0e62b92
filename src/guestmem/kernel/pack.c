/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/kernel/pack.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/error.h"
#include "guestmem/memory/guest_view.h"

enum { PACK_VERSION = 6, LARGEST_STRUCT = 1 << 20 };

static const struct member {
	const char *type, *member;
	size_t pack_offset; /* offset in struct vp_kernel_pack */
} members[] = {
#define ENTRY(id, type, member) {type, member, offsetof(struct vp_kernel_pack, at.id)},
    VP_PACK_MEMBERS(ENTRY)
#undef ENTRY
};

static const struct member values[] = {
#define ENTRY(id, type, name) {type, name, offsetof(struct vp_kernel_pack, value.id)},
    VP_PACK_VALUES(ENTRY)
#undef ENTRY
};

static const struct symbol {
	const char *name;
	size_t pack_offset;
} symbols[] = {
#define ENTRY(id, name) {name, offsetof(struct vp_kernel_pack, symbol.id)},
    VP_PACK_SYMBOLS(ENTRY)
#undef ENTRY
};

static const struct table {
	const char *name;
	size_t pack_offset;
} tables[] = {
    {"names", offsetof(struct vp_kernel_pack, kallsyms.names)},
    {"token_table", offsetof(struct vp_kernel_pack, kallsyms.token_table)},
    {"token_index", offsetof(struct vp_kernel_pack, kallsyms.token_index)},
    {"offsets", offsetof(struct vp_kernel_pack, kallsyms.offsets)},
    {"base", offsetof(struct vp_kernel_pack, kallsyms.base)},
};

static void *pack_field(struct vp_kernel_pack *pack, size_t pack_offset)
{
	return (char *)pack + pack_offset;
}

static const void *const_field(const struct vp_kernel_pack *pack, size_t pack_offset)
{
	return (const char *)pack + pack_offset;
}

void vp_kernel_pack_init(struct vp_kernel_pack *pack)
{
	*pack = (struct vp_kernel_pack){0};
	for (size_t i = 0; i < VP_ARRAY_SIZE(members); i++)
		*(uint32_t *)pack_field(pack, members[i].pack_offset) = VP_PACK_NONE;
	for (size_t i = 0; i < VP_ARRAY_SIZE(values); i++)
		*(uint32_t *)pack_field(pack, values[i].pack_offset) = VP_PACK_NONE;
	for (size_t i = 0; i < VP_ARRAY_SIZE(symbols); i++)
		((struct vp_pack_symbol *)pack_field(pack, symbols[i].pack_offset))->offset =
		    VP_PACK_NONE;
}

/* Stores a kernel symbol in the pack, if needed. `text`: address of _text. */
static void kernel_pack_add(struct vp_kernel_pack *pack, const struct vp_kallsyms_symbol *symbol,
			    uint64_t text)
{
	uint64_t offset = symbol->percpu ? symbol->addr : symbol->addr - text;

	if (offset > VP_KERNEL_IMAGE_MAX)
		return;
	for (size_t i = 0; i < VP_ARRAY_SIZE(symbols); i++)
		if (!strcmp(symbols[i].name, symbol->name)) {
			struct vp_pack_symbol *known = pack_field(pack, symbols[i].pack_offset);
			*known = (struct vp_pack_symbol){(uint32_t)offset, symbol->percpu};
		}
}

struct collecting {
	struct vp_kernel_pack *pack;
	uint64_t text;
	bool has_text;
};

static bool find_text(void *context, const struct vp_kallsyms_symbol *symbol)
{
	struct collecting *collecting = context;
	const bool is_text = !strcmp(symbol->name, "_text");

	/* On Arm, _text is listed only with CONFIG_KALLSYMS_ALL. It is at the last aligned address
	 * before _stext. */
	if (is_text)
		collecting->text = symbol->addr;
	else if (!collecting->has_text && !strcmp(symbol->name, "_stext"))
		collecting->text = (symbol->addr - 1) / VP_ARM_KERNEL_ALIGN * VP_ARM_KERNEL_ALIGN;
	collecting->has_text |= collecting->text != 0;
	return !is_text;
}

static bool pack_collect(void *context, const struct vp_kallsyms_symbol *symbol)
{
	const struct collecting *collecting = context;

	kernel_pack_add(collecting->pack, symbol, collecting->text);
	return true;
}

bool vp_kernel_pack_symbols(struct vp_kernel_pack *pack, const char *image, size_t size,
			    uint64_t *text)
{
	struct collecting collecting = {.pack = pack};

	if (!vp_kallsyms_each(&pack->kallsyms, image, size, find_text, &collecting) ||
	    !collecting.has_text)
		return false;
	*text = collecting.text;
	return vp_kallsyms_each(&pack->kallsyms, image, size, pack_collect, &collecting);
}

void vp_kernel_pack_members(struct vp_kernel_pack *pack, const struct vp_guest_btf *btf)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(members); i++) {
		struct vp_guest_member found;
		if (vp_guest_btf_member(btf, members[i].type, members[i].member, &found) &&
		    found.offset < LARGEST_STRUCT)
			*(uint32_t *)pack_field(pack, members[i].pack_offset) = found.offset;
	}
	for (size_t i = 0; i < VP_ARRAY_SIZE(values); i++) {
		uint32_t value;
		if (vp_guest_btf_enumerator(btf, values[i].type, values[i].member, &value) &&
		    value < LARGEST_STRUCT)
			*(uint32_t *)pack_field(pack, values[i].pack_offset) = value;
	}
	pack->page_size_of = vp_guest_btf_size(btf, "page");
	pack->inode_size_of = vp_guest_btf_size(btf, "inode");
}

const char *vp_kernel_pack_lacks(const struct vp_kernel_pack *pack)
{
	/* On Arm, a register points to the page tables, in which the direct map is found. */
	const bool arm = pack->symbol.entry_task.offset != VP_PACK_NONE;
	const struct vp_pack_symbol here = {0};
	const struct vp_pack_symbol top = arm ? here : pack->symbol.init_top_pgt;
	const struct vp_pack_symbol direct = arm ? here : pack->symbol.page_offset_base;
	const struct {
		uint32_t value;
		const char *name;
	} needed[] = {
	    {pack->symbol.init_task.offset, "symbol init_task (CONFIG_KALLSYMS_ALL)"},
	    {top.offset, "symbol init_top_pgt"},
	    {direct.offset, "symbol page_offset_base"},
	    {pack->at.task_pid, "the layout of its structs: it has no BTF (CONFIG_DEBUG_INFO_BTF)"},
	    {pack->at.task_tgid, "the offset of task_struct.tgid"},
	    {pack->at.task_comm, "the offset of task_struct.comm"},
	    {pack->at.task_mm, "the offset of task_struct.mm"},
	    {pack->at.task_tasks, "the offset of task_struct.tasks"},
	    {pack->at.mm_pgd, "the offset of mm_struct.pgd"},
	};

	for (size_t i = 0; i < VP_ARRAY_SIZE(needed); i++)
		if (needed[i].value == VP_PACK_NONE)
			return needed[i].name;
	return NULL;
}

/* Writes a line per known value; returns the number of lines. */
static unsigned write_offsets(const struct vp_kernel_pack *pack, const char *what,
			      const struct member *known, size_t n, struct vp_buffer *text)
{
	unsigned lines = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t offset = *(const uint32_t *)const_field(pack, known[i].pack_offset);
		if (offset == VP_PACK_NONE)
			continue;
		vp_buffer_printf(text, "%s %s.%s %x\n", what, known[i].type, known[i].member,
				 offset);
		lines++;
	}
	return lines;
}

void vp_kernel_pack_write(const struct vp_kernel_pack *pack, struct vp_buffer *text)
{
	unsigned lines = 3;

	vp_buffer_printf(text, "vperf-pack %d\nkernel ", PACK_VERSION);
	vp_build_id_put(&pack->build_id, text);
	vp_buffer_string(text, " ");
	vp_maps_escape(pack->release, text);
	vp_buffer_printf(text, "\nkallsyms %u %d\n", pack->kallsyms.count, pack->kallsyms.encoding);
	for (size_t i = 0; i < VP_ARRAY_SIZE(tables); i++, lines++)
		vp_buffer_printf(text, "table %s %" PRIx64 "\n", tables[i].name,
				 *(const uint64_t *)const_field(pack, tables[i].pack_offset));
	for (size_t i = 0; i < VP_ARRAY_SIZE(symbols); i++) {
		const struct vp_pack_symbol *symbol = const_field(pack, symbols[i].pack_offset);
		if (symbol->offset == VP_PACK_NONE)
			continue;
		vp_buffer_printf(text, "%s %s %x\n", symbol->percpu ? "percpu" : "symbol",
				 symbols[i].name, symbol->offset);
		lines++;
	}
	lines += write_offsets(pack, "member", members, VP_ARRAY_SIZE(members), text);
	lines += write_offsets(pack, "value", values, VP_ARRAY_SIZE(values), text);
	if (pack->derived) {
		vp_buffer_string(text, "derived 1\n");
		lines++;
	}
	vp_buffer_printf(
	    text, "size page %x\nsize inode %x\nevidence %" PRIx64 " %" PRIx64 "\nend %u\n",
	    pack->page_size_of, pack->inode_size_of, pack->seed, pack->hash, lines + 3);
}

static void pack_take_symbol(struct vp_kernel_pack *pack, struct vp_slice name, uint64_t offset,
			     bool percpu)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(symbols); i++)
		if (vp_slice_is(name, symbols[i].name))
			*(struct vp_pack_symbol *)pack_field(pack, symbols[i].pack_offset) =
			    (struct vp_pack_symbol){(uint32_t)offset, percpu};
}

/* Sets the value of STRUCT.MEMBER or ENUM.NAME, if it is in `known`. */
static void take_member(struct vp_kernel_pack *pack, const struct member *known, size_t n,
			struct vp_slice name, uint64_t offset)
{
	for (size_t i = 0; i < n; i++) {
		size_t size = strlen(known[i].type);
		if (name.size > size && !memcmp(name.bytes, known[i].type, size) &&
		    name.bytes[size] == '.' &&
		    vp_slice_is((struct vp_slice){name.bytes + size + 1, name.size - size - 1},
				known[i].member))
			*(uint32_t *)pack_field(pack, known[i].pack_offset) = (uint32_t)offset;
	}
}

static void take_table(struct vp_kernel_pack *pack, struct vp_slice name, uint64_t offset)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(tables); i++)
		if (vp_slice_is(name, tables[i].name))
			*(uint64_t *)pack_field(pack, tables[i].pack_offset) = offset;
}

static bool pack_take_kernel(struct vp_kernel_pack *pack, struct vp_cursor *words)
{
	bool known = vp_build_id_parse(vp_cursor_word(words), &pack->build_id);
	struct vp_buffer release = {0};

	vp_maps_unescape(vp_cursor_rest(words), &release);
	snprintf(pack->release, sizeof(pack->release), "%s", vp_buffer_text(&release));
	vp_buffer_deinit(&release);
	return known && pack->build_id.size;
}

/* Parses a line; false: malformed. */
static bool take_fact(struct vp_kernel_pack *pack, struct vp_slice line)
{
	struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
	struct vp_slice what = vp_cursor_word(&words);

	if (vp_slice_is(what, "kernel"))
		return pack_take_kernel(pack, &words);
	if (vp_slice_is(what, "kallsyms")) {
		uint64_t count = vp_cursor_decimal(&words), encoding = vp_cursor_decimal(&words);
		pack->kallsyms.count = (uint32_t)count;
		pack->kallsyms.encoding = (enum vp_kallsyms_encoding)encoding;
		return vp_cursor_ok(&words) && count <= UINT32_MAX &&
		       encoding >= VP_KALLSYMS_RELATIVE && encoding <= VP_KALLSYMS_SELF_RELATIVE;
	}
	if (vp_slice_is(what, "derived")) {
		pack->derived = vp_cursor_decimal(&words) == 1;
		return pack->derived && vp_cursor_ok(&words);
	}
	if (vp_slice_is(what, "evidence")) {
		pack->seed = vp_cursor_hex(&words);
		pack->hash = vp_cursor_hex(&words);
		return vp_cursor_ok(&words);
	}
	struct vp_slice name = vp_cursor_word(&words);
	uint64_t offset = vp_cursor_hex(&words);
	bool percpu = vp_slice_is(what, "percpu"), table = vp_slice_is(what, "table");
	bool member = vp_slice_is(what, "member"), size = vp_slice_is(what, "size");
	bool value = vp_slice_is(what, "value");
	uint64_t most = member || size || value ? LARGEST_STRUCT : VP_KERNEL_IMAGE_MAX;
	if (!vp_cursor_ok(&words) || offset > most)
		return false;
	if (table)
		take_table(pack, name, offset);
	else if (member)
		take_member(pack, members, VP_ARRAY_SIZE(members), name, offset);
	else if (value)
		take_member(pack, values, VP_ARRAY_SIZE(values), name, offset);
	else if (size && vp_slice_is(name, "page"))
		pack->page_size_of = (uint32_t)offset;
	else if (size && vp_slice_is(name, "inode"))
		pack->inode_size_of = (uint32_t)offset;
	else if (!size)
		pack_take_symbol(pack, name, offset, percpu);
	return table || member || value || size || percpu || vp_slice_is(what, "symbol");
}

struct vp_error *vp_kernel_pack_parse(const char *label, const void *text, size_t size,
				      struct vp_kernel_pack *ret)
{
	struct vp_cursor cursor = vp_cursor_of(text, size);
	VP_AUTO_FREE char *first = vp_format("vperf-pack %d", PACK_VERSION);
	struct vp_slice line;
	uint64_t lines = 1;

	vp_kernel_pack_init(ret);
	if (!vp_cursor_line(&cursor, &line) || !vp_slice_is(line, first))
		return vp_error_new("'%s' is not a kernel pack: expected '%s' in line 1", label,
				    first);
	for (; vp_cursor_line(&cursor, &line); lines++) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		if (vp_slice_is(vp_cursor_word(&words), "end"))
			return vp_cursor_decimal(&words) == lines && vp_cursor_ok(&words) &&
				       ret->build_id.size
				   ? NULL
				   : vp_error_new("'%s' has lines missing", label);
		if (!take_fact(ret, line))
			return vp_error_new("'%s', line %" PRIu64 ": not a line of a kernel pack",
					    label, lines + 1);
	}
	return vp_error_new("'%s' is truncated: its last line, 'end', is missing", label);
}
