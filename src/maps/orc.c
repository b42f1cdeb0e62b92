/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/orc.h"

#include <inttypes.h>
#include <string.h>

#include "base/cursor.h"
#include "base/file.h"
#include "base/search.h"

enum { MAX_RULES = 1 << 20, MAX_ENTRIES = 1 << 24, MAX_BYTES = 512 << 20 };

static const char *const register_names[] = {
    [VP_ORC_NONE] = "none",       [VP_ORC_PREV_SP] = "prev",
    [VP_ORC_AX] = "ax",           [VP_ORC_DX] = "dx",
    [VP_ORC_DI] = "di",           [VP_ORC_BP] = "bp",
    [VP_ORC_SP] = "sp",           [VP_ORC_R10] = "r10",
    [VP_ORC_R13] = "r13",         [VP_ORC_BP_INDIRECT] = "(bp)",
    [VP_ORC_SP_INDIRECT] = "(sp)"};

static const char *const kind_names[] = {[VP_ORC_UNDEFINED] = "undefined",
					 [VP_ORC_OUTERMOST] = "outermost",
					 [VP_ORC_CALL] = "call",
					 [VP_ORC_REGS] = "regs",
					 [VP_ORC_IRET_REGS] = "iret-regs"};

struct parser {
	struct vp_orc *orc;
	uint64_t last; /* address of the previous entry */
};

static bool take_orc_name(struct vp_cursor *words, const char *const *names, uint8_t count,
			  uint8_t *ret)
{
	struct vp_slice word = vp_cursor_word(words);

	for (uint8_t i = 0; i < count; i++)
		if (vp_slice_is(word, names[i])) {
			*ret = i;
			return true;
		}
	return false;
}

/* Parses a signed decimal number. */
static bool take_offset(struct vp_cursor *words, int16_t *ret)
{
	struct vp_slice word = vp_cursor_word(words);
	bool negative = word.size && word.bytes[0] == '-';
	struct vp_cursor digits = vp_cursor_of(word.bytes + negative, word.size - negative);
	uint64_t value = vp_cursor_decimal(&digits);

	*ret = (int16_t)(negative ? -(int64_t)value : (int64_t)value);
	return vp_cursor_ok(&digits) && value <= INT16_MAX;
}

static bool take_rule(struct parser *parser, struct vp_cursor *words)
{
	struct vp_orc_rule rule = {0};

	if (!take_orc_name(words, register_names, VP_ORC_REGISTERS, &rule.sp_reg) ||
	    !take_offset(words, &rule.sp_offset) ||
	    !take_orc_name(words, register_names, VP_ORC_REGISTERS, &rule.bp_reg) ||
	    !take_offset(words, &rule.bp_offset) ||
	    !take_orc_name(words, kind_names, VP_ORC_KINDS, &rule.kind) ||
	    parser->orc->rules.count == MAX_RULES)
		return false;
	vp_vec_push(&parser->orc->rules, rule);
	return true;
}

static bool orc_take_entry(struct parser *parser, struct vp_cursor *words, bool absolute)
{
	uint64_t start = vp_cursor_hex(words), rule = vp_cursor_hex(words);
	uint64_t from = absolute ? start : parser->last + start;

	if (!vp_cursor_ok(words) || rule >= parser->orc->rules.count ||
	    parser->orc->entries.count == MAX_ENTRIES)
		return false;
	parser->last = from;
	vp_vec_push(&parser->orc->entries, ((struct vp_orc_entry){from, (uint32_t)rule}));
	return true;
}

/* Parses a line other than the first and the last. */
static bool take_orc_line(struct parser *parser, struct vp_slice what, struct vp_cursor *words)
{
	if (vp_slice_is(what, "d") || vp_slice_is(what, "a"))
		return orc_take_entry(parser, words, what.bytes[0] == 'a');
	if (vp_slice_is(what, "r"))
		return take_rule(parser, words);
	return vp_slice_is(what, "kernel");
}

static int by_address(const void *left, const void *right)
{
	const struct vp_orc_entry *a = left, *b = right;

	return (a->from > b->from) - (a->from < b->from);
}

static void sort_entries(struct vp_orc *orc)
{
	for (size_t i = 1; i < orc->entries.count; i++)
		if (orc->entries.at[i].from < orc->entries.at[i - 1].from) {
			qsort(orc->entries.at, orc->entries.count, sizeof(*orc->entries.at),
			      by_address);
			return;
		}
}

struct vp_error *vp_orc_parse(const char *label, const void *text, size_t size, struct vp_orc *ret)
{
	struct vp_cursor cursor = vp_cursor_of(text, size);
	struct parser parser = {.orc = ret};
	struct vp_slice line;
	uint64_t lines = 1;

	*ret = (struct vp_orc){0};
	if (!vp_cursor_line(&cursor, &line) || !vp_slice_is(line, "vperf-orc 1"))
		return vp_error_new(
		    "'%s' is not an unwind table file: expected 'vperf-orc 1' in line 1", label);
	for (; !ret->whole && vp_cursor_line(&cursor, &line); lines++) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		struct vp_slice what = vp_cursor_word(&words);
		if (vp_slice_is(what, "end")) {
			ret->whole = vp_cursor_decimal(&words) == lines && vp_cursor_ok(&words);
			if (ret->whole)
				continue;
		}
		if (!take_orc_line(&parser, what, &words)) {
			vp_orc_deinit(ret);
			return vp_error_new("'%s', line %" PRIu64 ": not a line of unwind tables",
					    label, lines + 1);
		}
	}
	sort_entries(ret);
	return NULL;
}

struct vp_error *vp_orc_load(const char *path, struct vp_orc *ret)
{
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read(path, MAX_BYTES, &text);

	*ret = (struct vp_orc){0};
	if (!error)
		error = vp_orc_parse(path, text.bytes, text.size, ret);
	vp_buffer_deinit(&text);
	return error;
}

void vp_orc_deinit(struct vp_orc *orc)
{
	vp_vec_deinit(&orc->rules);
	vp_vec_deinit(&orc->entries);
	orc->whole = false;
}

const struct vp_orc_rule *vp_orc_find(const struct vp_orc *orc, uint64_t address)
{
	size_t above = VP_FIRST(i, orc->entries.count, orc->entries.at[i].from > address);

	return above ? &orc->rules.at[orc->entries.at[above - 1].rule] : NULL;
}

void vp_orc_writer_init(struct vp_orc_writer *writer, const char *release,
			const struct vp_build_id *build_id)
{
	*writer = (struct vp_orc_writer){.lines = 2};
	vp_buffer_string(&writer->text, "vperf-orc 1\nkernel ");
	vp_maps_escape(release, &writer->text);
	vp_buffer_string(&writer->text, " ");
	vp_build_id_put(build_id, &writer->text);
	vp_buffer_string(&writer->text, "\n");
}

/* The rule's number; writes the rule if it is new. */
static uint32_t orc_number_of(struct vp_orc_writer *writer, const struct vp_orc_rule *rule)
{
	uint64_t bits;
	bool is_new;

	_Static_assert(sizeof(bits) == sizeof(*rule), "a rule is its own key");
	memcpy(&bits, rule, sizeof(bits));
	uint32_t number = *vp_map_insert(&writer->rules, bits, writer->rules.count, &is_new);
	if (is_new) {
		vp_buffer_printf(&writer->text, "r %s %d %s %d %s\n", register_names[rule->sp_reg],
				 rule->sp_offset, register_names[rule->bp_reg], rule->bp_offset,
				 kind_names[rule->kind]);
		writer->lines++;
	}
	return number;
}

void vp_orc_write(struct vp_orc_writer *writer, uint64_t from, const struct vp_orc_rule *rule)
{
	uint32_t number = orc_number_of(writer, rule);
	bool near = writer->last && from >= writer->last;

	vp_buffer_printf(&writer->text, "%s %" PRIx64 " %x\n", near ? "d" : "a",
			 near ? from - writer->last : from, number);
	writer->last = from;
	writer->lines++;
}

void vp_orc_writer_finish(struct vp_orc_writer *writer)
{
	vp_buffer_printf(&writer->text, "end %" PRIu64 "\n", writer->lines);
}

void vp_orc_writer_deinit(struct vp_orc_writer *writer)
{
	vp_buffer_deinit(&writer->text);
	vp_map_deinit(&writer->rules);
}
