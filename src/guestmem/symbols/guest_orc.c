/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/symbols/guest_orc.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"
#include "guestmem/symbols/modules.h"
#include "maps/orc.h"

enum { MAX_ENTRIES = 1 << 22, FLUSH_SIZE = 256 << 10 };

/*
 * struct orc_entry. The last byte has changed: since v6.4 (fb799447ae29 "x86,objtool: Split
 * UNWIND_HINT_EMPTY in two") kinds have separate numbers; before, `end` distinguished the outermost
 * frame from an undefined one, and 0 was a call.
 */
struct packed_entry {
	int16_t sp_offset, bp_offset;
	uint8_t registers; /* of the stack pointer in the low half, of RBP in the high half */
	uint8_t kind;
} __attribute__((packed));

/* The kernel's register numbers, before and after a change between v6.12 and v7.2. */
static const uint8_t older_registers[16] = {
    VP_ORC_NONE, VP_ORC_PREV_SP, VP_ORC_DX,  VP_ORC_DI,          VP_ORC_BP,
    VP_ORC_SP,   VP_ORC_R10,     VP_ORC_R13, VP_ORC_BP_INDIRECT, VP_ORC_SP_INDIRECT};
static const uint8_t newer_registers[16] = {
    VP_ORC_NONE, VP_ORC_AX,  VP_ORC_DX,      VP_ORC_SP,          VP_ORC_BP,         VP_ORC_DI,
    VP_ORC_R10,  VP_ORC_R13, VP_ORC_PREV_SP, VP_ORC_SP_INDIRECT, VP_ORC_BP_INDIRECT};
enum { OLDER_SP = 5, NEWER_SP = 3 };

/* A pair of tables: addresses, relative to the entry itself, and rules. */
struct tables {
	uint64_t ips, rules;
	uint64_t count;
};

struct writing {
	struct vp_orc_writer writer;
	const struct vp_guest_kernel *kernel;
	bool older_kinds;
	const uint8_t *registers; /* indexed by the kernel's numbers; NULL: unknown so far */
	int fd, result;           /* result of writes: 0 or -errno */
	size_t entries;
};

static uint8_t guest_orc_kind_of(const struct packed_entry *entry, bool older)
{
	static const uint8_t newer_kinds[] = {VP_ORC_UNDEFINED, VP_ORC_OUTERMOST, VP_ORC_CALL,
					      VP_ORC_REGS, VP_ORC_IRET_REGS};
	static const uint8_t older_kinds[] = {VP_ORC_CALL, VP_ORC_REGS, VP_ORC_IRET_REGS,
					      VP_ORC_UNDEFINED};

	if (!older)
		return (entry->kind & 7) < VP_ARRAY_SIZE(newer_kinds) ? newer_kinds[entry->kind & 7]
								      : VP_ORC_UNDEFINED;
	if (!(entry->registers & 15)) /* `end` is the bit after `type` and, in v6.3, `signal` */
		return entry->kind & 0xc ? VP_ORC_OUTERMOST : VP_ORC_UNDEFINED;
	return older_kinds[entry->kind & 3];
}

static struct vp_orc_rule rule_of(const struct writing *writing, const struct packed_entry *entry)
{
	return (struct vp_orc_rule){.sp_offset = entry->sp_offset,
				    .bp_offset = entry->bp_offset,
				    .sp_reg = writing->registers[entry->registers & 15],
				    .bp_reg = writing->registers[entry->registers >> 4],
				    .kind = guest_orc_kind_of(entry, writing->older_kinds)};
}

/* Detects the register numbering: the rules of nearly all kernel code use RSP. */
static const uint8_t *registers_of(const struct packed_entry *entries, uint64_t count)
{
	uint64_t older = 0, newer = 0;

	for (uint64_t i = 0; i < count; i++) {
		older += (entries[i].registers & 15) == OLDER_SP;
		newer += (entries[i].registers & 15) == NEWER_SP;
	}
	return newer > older ? newer_registers : older_registers;
}

static void guest_orc_flush(struct writing *writing, size_t least)
{
	struct vp_buffer *text = &writing->writer.text;

	if (text->size < least)
		return;
	if (!writing->result)
		writing->result = vp_fd_write_all(writing->fd, text->bytes, text->size);
	text->size = 0;
}

/* Writes the tables' entries; false: unreadable. */
static bool guest_orc_write_tables(struct writing *writing, const struct tables *tables)
{
	const struct vp_guest_view *view = &writing->kernel->view;

	if (tables->count > MAX_ENTRIES)
		return false;
	VP_AUTO_FREE int32_t *ips = vp_realloc_array(NULL, tables->count + 1, sizeof(*ips));
	VP_AUTO_FREE struct packed_entry *rules =
	    vp_realloc_array(NULL, tables->count + 1, sizeof(*rules));
	if (!vp_guest_view_read(view, tables->ips, ips, tables->count * sizeof(*ips)) ||
	    !vp_guest_view_read(view, tables->rules, rules, tables->count * sizeof(*rules)))
		return false;
	if (!writing->registers)
		writing->registers = registers_of(rules, tables->count);
	for (uint64_t i = 0; i < tables->count; i++) {
		struct vp_orc_rule rule = rule_of(writing, &rules[i]);
		vp_orc_write(&writing->writer, tables->ips + i * sizeof(*ips) + (int64_t)ips[i],
			     &rule);
		guest_orc_flush(writing, FLUSH_SIZE);
	}
	writing->entries += tables->count;
	return true;
}

static bool guest_orc_write_module(void *context, uint64_t module)
{
	struct writing *writing = context;
	const struct vp_guest_view *view = &writing->kernel->view;
	const struct vp_kernel_pack *pack = &writing->kernel->pack;
	struct tables tables;
	uint32_t count;

	bool read = vp_guest_view_u32(view, module + pack->at.module_orcs, &count) &&
		    vp_guest_view_u64(view, module + pack->at.module_orc_ips, &tables.ips) &&
		    vp_guest_view_u64(view, module + pack->at.module_orc, &tables.rules);
	tables.count = read ? count : 0;
	/* Without tables, stacks through the module end there. */
	if (tables.count)
		guest_orc_write_tables(writing, &tables);
	return true;
}

static struct vp_error *tables_of_kernel(const struct vp_guest_kernel *kernel, struct tables *ret)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	uint64_t stop = vp_guest_kernel_symbol(kernel, pack->symbol.stop_orc_ips);
	uint64_t end = vp_guest_kernel_symbol(kernel, pack->symbol.stop_orc);

	ret->ips = vp_guest_kernel_symbol(kernel, pack->symbol.start_orc_ips);
	ret->rules = vp_guest_kernel_symbol(kernel, pack->symbol.start_orc);
	ret->count = (stop - ret->ips) / sizeof(int32_t);
	if (!ret->ips || !ret->rules || stop <= ret->ips || end <= ret->rules)
		return vp_error_new(
		    "the guest's kernel has no unwind tables (CONFIG_UNWINDER_ORC)");
	if (ret->count > MAX_ENTRIES ||
	    (end - ret->rules) / sizeof(struct packed_entry) < ret->count)
		return vp_error_new("the unwind tables of the guest's kernel are inconsistent");
	return NULL;
}

struct vp_error *vp_guest_orc_write(const struct vp_guest_kernel *kernel, int fd, size_t *entries)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	bool newer = pack->at.orc_signal != VP_PACK_NONE && pack->at.orc_end == VP_PACK_NONE;
	struct writing writing = {.kernel = kernel, .older_kinds = !newer, .fd = fd};
	struct tables tables;

	VP_TRY(tables_of_kernel(kernel, &tables));
	vp_orc_writer_init(&writing.writer, pack->release, &pack->build_id);
	bool read = guest_orc_write_tables(&writing, &tables);
	if (read && pack->at.module_orcs != VP_PACK_NONE &&
	    pack->at.module_orc_ips != VP_PACK_NONE && pack->at.module_orc != VP_PACK_NONE)
		vp_guest_modules_each(kernel, guest_orc_write_module, &writing);
	vp_orc_writer_finish(&writing.writer);
	guest_orc_flush(&writing, 0);
	vp_orc_writer_deinit(&writing.writer);
	*entries = writing.entries;
	if (writing.result)
		return vp_error_errno(-writing.result, "cannot write the guest's unwind tables");
	return read ? NULL : vp_error_new("the guest's unwind tables cannot be read");
}
