/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/maps.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"

enum { KEPT_WARNINGS = 20 };

struct parser {
	struct vp_maps *maps;
	const char *label;
	struct vp_cursor words; /* of the current line */
	uint64_t line;          /* number of the current line, from 1 */
	struct vp_map space_of_id;
	bool in_image; /* s lines are valid here */
	bool full;     /* a limit was exceeded and reported */
};

static void keep_warning(struct parser *parser, char *sentence)
{
	struct vp_maps *maps = parser->maps;

	if (maps->warning_count++ < KEPT_WARNINGS)
		vp_vec_push(&maps->warnings, sentence);
	else
		free(sentence);
}

static void maps_expected(struct parser *parser, const char *what)
{
	struct vp_maps *maps = parser->maps;

	if (maps->warning_count < KEPT_WARNINGS)
		keep_warning(parser, vp_format("%s:%" PRIu64 ": expected %s", parser->label,
					       parser->line, what));
	else
		maps->warning_count++;
}

/* Whether another element fits the limit; reports the first excess. */
static bool maps_room_for(struct parser *parser, size_t count, size_t limit, const char *what)
{
	if (count < limit)
		return true;
	if (!parser->full)
		keep_warning(parser,
			     vp_format("%s:%" PRIu64 ": more than %zu %s, the rest is ignored",
				       parser->label, parser->line, limit, what));
	parser->full = true;
	return false;
}

static vp_text text_word(struct parser *parser)
{
	struct vp_slice word = vp_cursor_word(&parser->words);

	if (!vp_cursor_ok(&parser->words))
		return 0;
	return (vp_text)(word.bytes - parser->maps->text.bytes);
}

static bool line_is_over(struct parser *parser)
{
	return vp_cursor_ok(&parser->words) && !vp_cursor_left(&parser->words);
}

/* Reads a space id; returns its index, or UINT32_MAX. */
static uint32_t space_word(struct parser *parser)
{
	uint64_t id = vp_cursor_decimal(&parser->words);
	uint32_t *index = vp_map_find(&parser->space_of_id, id);

	return vp_cursor_ok(&parser->words) && index ? *index : UINT32_MAX;
}

static void parse_machine(struct parser *parser)
{
	struct vp_slice kind = vp_cursor_word(&parser->words);
	vp_text name = text_word(parser);

	if (!line_is_over(parser) || (!vp_slice_is(kind, "guest") && !vp_slice_is(kind, "host"))) {
		maps_expected(parser, "'machine guest|host NAME'");
		return;
	}
	parser->maps->guest = vp_slice_is(kind, "guest");
	parser->maps->machine = name;
}

static void parse_kernel(struct parser *parser)
{
	vp_text release = text_word(parser);
	struct vp_build_id id;

	if (!vp_build_id_parse(vp_cursor_word(&parser->words), &id) || !line_is_over(parser)) {
		maps_expected(parser, "'kernel RELEASE BUILDID'");
		return;
	}
	parser->maps->release = release;
	parser->maps->kernel_build_id = id;
}

static void parse_source(struct parser *parser)
{
	struct vp_slice source = vp_cursor_word(&parser->words);

	if (!line_is_over(parser) || !vp_slice_is(source, "memory"))
		maps_expected(parser, "'source memory'");
	else
		parser->maps->from_memory = true;
}

static void parse_paging(struct parser *parser)
{
	uint64_t levels = vp_cursor_decimal(&parser->words);
	struct vp_slice word = vp_cursor_word(&parser->words);
	uint64_t kpti = vp_cursor_decimal(&parser->words);

	if (!line_is_over(parser) || !vp_slice_is(word, "kpti") || kpti > 1 || levels < 3 ||
	    levels > 5) {
		maps_expected(parser, "'address-bits LEVELS kpti 0|1'");
		return;
	}
	parser->maps->levels = (unsigned)levels;
	parser->maps->kpti = kpti;
}

static void parse_clock(struct parser *parser)
{
	struct vp_maps_clock clock = {.mono_ns = vp_cursor_decimal(&parser->words)};

	clock.tsc = vp_cursor_decimal(&parser->words);
	if (vp_cursor_left(&parser->words))
		clock.error_ns = vp_cursor_decimal(&parser->words);
	if (!line_is_over(parser))
		maps_expected(parser, "'clock MONO_NS TSC [ERROR_NS]'");
	else if (maps_room_for(parser, parser->maps->clocks.count, VP_MAPS_MAX_CLOCKS,
			       "clock lines"))
		vp_vec_push(&parser->maps->clocks, clock);
}

static void parse_kernel_symbol(struct parser *parser)
{
	struct vp_maps_kernel_symbol symbol = {.addr = vp_cursor_hex(&parser->words)};

	symbol.size = vp_cursor_hex(&parser->words);
	struct vp_slice type = vp_cursor_word(&parser->words);
	symbol.name = text_word(parser);
	if (vp_cursor_left(&parser->words))
		symbol.module = text_word(parser);
	if (!line_is_over(parser) || type.size != 1) {
		maps_expected(parser, "'k ADDR SIZE TYPE NAME [MODULE]'");
		return;
	}
	symbol.type = type.bytes[0];
	if (maps_room_for(parser, parser->maps->kernel.count, VP_MAPS_MAX_SYMBOLS,
			  "kernel symbols"))
		vp_vec_push(&parser->maps->kernel, symbol);
}

static void parse_space(struct parser *parser)
{
	struct vp_maps *maps = parser->maps;
	struct vp_maps_space space = {.id = vp_cursor_decimal(&parser->words)};
	uint64_t tgid = vp_cursor_decimal(&parser->words);
	bool inserted;

	space.root = vp_cursor_hex(&parser->words);
	space.start_ns = vp_cursor_decimal(&parser->words);
	space.end_ns = vp_cursor_decimal(&parser->words);
	space.comm = text_word(parser);
	if (!line_is_over(parser) || tgid > UINT32_MAX ||
	    (space.end_ns && space.end_ns < space.start_ns)) {
		maps_expected(parser, "'a ID TGID ROOT START_NS END_NS COMM' with START <= END");
		return;
	}
	space.tgid = (uint32_t)tgid;
	if (!maps_room_for(parser, maps->spaces.count, VP_MAPS_MAX_SPACES, "address spaces"))
		return;
	vp_map_insert(&parser->space_of_id, space.id, (uint32_t)maps->spaces.count, &inserted);
	if (inserted)
		vp_vec_push(&maps->spaces, space);
	else
		maps_expected(parser, "a new address space ID");
}

static void parse_fork(struct parser *parser)
{
	uint32_t child = space_word(parser);
	uint32_t parent = space_word(parser);

	/* A parent must precede its child, so that chains of parents are finite. */
	if (!line_is_over(parser) || child == UINT32_MAX || parent >= child)
		maps_expected(parser, "'f ID PARENT' with known address space IDs");
	else
		parser->maps->spaces.at[child].parent = parent + 1;
}

static void maps_parse_mapping(struct parser *parser)
{
	struct vp_maps *maps = parser->maps;
	struct vp_maps_mapping mapping = {.space = space_word(parser)};

	mapping.start = vp_cursor_hex(&parser->words);
	mapping.end = vp_cursor_hex(&parser->words);
	mapping.pgoff = vp_cursor_hex(&parser->words);
	mapping.from_ns = vp_cursor_decimal(&parser->words);
	mapping.build_id = text_word(parser);
	mapping.path = text_word(parser);
	if (!line_is_over(parser) || mapping.end <= mapping.start) {
		maps_expected(parser,
			      "'m ID START END PGOFF FROM_NS BUILDID PATH' with START < END");
		return;
	}
	if (mapping.space == UINT32_MAX)
		maps_expected(parser, "a known address space ID");
	else if (maps_room_for(parser, maps->mappings.count, VP_MAPS_MAX_MAPPINGS, "mappings"))
		vp_vec_push(&maps->mappings, mapping);
}

static void parse_image(struct parser *parser)
{
	struct vp_maps *maps = parser->maps;
	struct vp_maps_image image = {.first = maps->symbols.count};
	bool known = vp_build_id_parse(vp_cursor_word(&parser->words), &image.build_id);

	image.path = text_word(parser);
	parser->in_image = false;
	if (!line_is_over(parser) || !known) {
		maps_expected(parser, "'i BUILDID PATH'");
		return;
	}
	if (!maps_room_for(parser, maps->images.count, VP_MAPS_MAX_IMAGES, "images"))
		return;
	vp_vec_push(&maps->images, image);
	parser->in_image = true;
}

static struct vp_maps_symbol symbol_words(struct parser *parser)
{
	struct vp_maps_symbol symbol = {.addr = vp_cursor_hex(&parser->words)};

	symbol.size = vp_cursor_hex(&parser->words);
	symbol.name = text_word(parser);
	return symbol;
}

static void parse_symbol(struct parser *parser)
{
	struct vp_maps *maps = parser->maps;
	struct vp_maps_symbol symbol = symbol_words(parser);

	if (!line_is_over(parser)) {
		maps_expected(parser, "'s OFFSET SIZE NAME'");
		return;
	}
	if (!parser->in_image) {
		maps_expected(parser, "an 'i' line before the first 's' line");
		return;
	}
	if (!maps_room_for(parser, maps->symbols.count, VP_MAPS_MAX_SYMBOLS, "symbols"))
		return;
	vp_vec_push(&maps->symbols, symbol);
	maps->images.at[maps->images.count - 1].count++;
}

static void parse_jit(struct parser *parser)
{
	struct vp_maps_jit jit = {.space = space_word(parser)};

	jit.symbol = symbol_words(parser);
	if (vp_cursor_left(&parser->words))
		jit.from_ns = vp_cursor_decimal(&parser->words);
	if (!line_is_over(parser) || jit.space == UINT32_MAX)
		maps_expected(parser,
			      "'j ID ADDR SIZE NAME [FROM_NS]' with a known address space ID");
	else if (maps_room_for(parser, parser->maps->jit.count, VP_MAPS_MAX_SYMBOLS, "JIT symbols"))
		vp_vec_push(&parser->maps->jit, jit);
}

static void parse_note(struct parser *parser)
{
	vp_text note = text_word(parser);

	if (!line_is_over(parser))
		maps_expected(parser, "'n TEXT'");
	else if (maps_room_for(parser, parser->maps->notes.count, VP_MAPS_MAX_NOTES, "notes"))
		vp_vec_push(&parser->maps->notes, note);
}

static void parse_end(struct parser *parser)
{
	uint64_t lines = vp_cursor_decimal(&parser->words);

	if (line_is_over(parser) && lines == parser->line - 1)
		parser->maps->complete = true;
	else
		maps_expected(parser, "'end LINES' with the number of lines before it");
}

static void maps_parse_line(struct parser *parser, struct vp_slice line)
{
	static const struct {
		const char *keyword;
		void (*parse)(struct parser *parser);
	} kinds[] = {
	    /* frequent ones first */
	    {"s", parse_symbol},       {"k", parse_kernel_symbol},
	    {"m", maps_parse_mapping}, {"a", parse_space},
	    {"f", parse_fork},         {"j", parse_jit},
	    {"i", parse_image},        {"n", parse_note},
	    {"clock", parse_clock},    {"machine", parse_machine},
	    {"source", parse_source},  {"kernel", parse_kernel},
	    {"end", parse_end},        {"address-bits", parse_paging},
	};

	parser->line++;
	if (line.size > VP_MAPS_MAX_LINE) {
		maps_expected(parser, "a line of at most 8192 bytes");
		return;
	}
	parser->words = vp_cursor_of(line.bytes, line.size);
	struct vp_slice keyword = vp_cursor_word(&parser->words);
	for (size_t i = 0; i < VP_ARRAY_SIZE(kinds); i++)
		if (vp_slice_is(keyword, kinds[i].keyword)) {
			kinds[i].parse(parser);
			return;
		}
	maps_expected(parser, "one of the words machine, kernel, address-bits, clock, "
			      "k, a, f, m, i, s, j, n, end");
}

static struct vp_error *parse_version(struct parser *parser, struct vp_cursor *cursor)
{
	struct vp_slice line = {"", 0};

	vp_cursor_line(cursor, &line);
	parser->line = 1;
	parser->words = vp_cursor_of(line.bytes, line.size);
	bool ours = vp_slice_is(vp_cursor_word(&parser->words), "vperf-maps");
	uint64_t version = vp_cursor_decimal(&parser->words);
	if (!ours || !line_is_over(parser))
		return vp_error_new("'%s' is not a symbol map: expected 'vperf-maps %d' in line 1",
				    parser->label, VP_MAPS_VERSION);
	if (version != VP_MAPS_VERSION)
		return vp_error_new("'%s' is a symbol map of version %" PRIu64
				    ", this vperf reads version %d",
				    parser->label, version, VP_MAPS_VERSION);
	return NULL;
}

struct vp_error *vp_maps_parse(const char *label, struct vp_buffer *text, struct vp_maps *maps)
{
	struct parser parser = {.maps = maps, .label = label};
	struct vp_slice line;

	*maps = (struct vp_maps){.text = *text};
	*text = (struct vp_buffer){0};
	if (maps->text.size > VP_MAPS_MAX_BYTES)
		return vp_error_new("'%s' has more than %zu bytes", label, VP_MAPS_MAX_BYTES);
	struct vp_cursor cursor = vp_cursor_of(maps->text.bytes, maps->text.size);
	VP_TRY(parse_version(&parser, &cursor));
	while (!maps->complete && vp_cursor_line(&cursor, &line))
		maps_parse_line(&parser, line);
	vp_map_deinit(&parser.space_of_id);

	if (!maps->complete)
		keep_warning(
		    &parser,
		    vp_format("%s: truncated at byte %zu: no end line, using what comes before",
			      label, maps->text.size));
	else if (vp_cursor_left(&cursor))
		keep_warning(&parser,
			     vp_format("%s: %zu bytes after the end line at byte %zu are ignored",
				       label, vp_cursor_left(&cursor), vp_cursor_offset(&cursor)));
	return NULL;
}

struct vp_error *vp_maps_load(const char *path, struct vp_maps *maps)
{
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read(path, VP_MAPS_MAX_BYTES, &text);

	*maps = (struct vp_maps){0};
	if (!error)
		error = vp_maps_parse(path, &text, maps);
	vp_buffer_deinit(&text);
	if (error)
		vp_maps_deinit(maps);
	return error;
}

void vp_maps_deinit(struct vp_maps *maps)
{
	vp_vec_each (&maps->warnings, warning)
		free(*warning);
	vp_vec_deinit(&maps->warnings);
	vp_vec_deinit(&maps->clocks);
	vp_vec_deinit(&maps->kernel);
	vp_vec_deinit(&maps->spaces);
	vp_vec_deinit(&maps->mappings);
	vp_vec_deinit(&maps->images);
	vp_vec_deinit(&maps->symbols);
	vp_vec_deinit(&maps->jit);
	vp_vec_deinit(&maps->notes);
	vp_buffer_deinit(&maps->text);
}

struct vp_slice vp_maps_word(const struct vp_maps *maps, vp_text offset)
{
	struct vp_slice word = {"", 0};

	if (!offset || offset >= maps->text.size)
		return word;
	word.bytes = maps->text.bytes + offset;
	size_t left = maps->text.size - offset;
	while (word.size < left && word.bytes[word.size] != ' ' && word.bytes[word.size] != '\t' &&
	       word.bytes[word.size] != '\n')
		word.size++;
	return word;
}

bool vp_maps_is_nameless(const struct vp_maps *maps, vp_text name)
{
	return vp_slice_is(vp_maps_word(maps, name), "-");
}

char *vp_maps_string(const struct vp_maps *maps, vp_text offset)
{
	struct vp_buffer buffer = {0};

	vp_maps_unescape(vp_maps_word(maps, offset), &buffer);
	char *string = vp_strdup(vp_buffer_text(&buffer));
	vp_buffer_deinit(&buffer);
	return string;
}

/* "ffffffff81000000 T _text", with "\t[kvm]" appended for modules. */
static bool parse_kallsyms_line(struct parser *parser, struct vp_slice line)
{
	struct vp_maps *maps = parser->maps;
	struct vp_maps_kernel_symbol symbol = {0};

	parser->words = vp_cursor_of(line.bytes, line.size);
	symbol.addr = vp_cursor_hex(&parser->words);
	struct vp_slice type = vp_cursor_word(&parser->words);
	symbol.name = text_word(parser);
	if (vp_cursor_left(&parser->words))
		symbol.module = text_word(parser);
	if (!line_is_over(parser) || type.size != 1)
		return false;
	symbol.type = type.bytes[0];
	if (symbol.addr &&
	    maps_room_for(parser, maps->kernel.count, VP_MAPS_MAX_SYMBOLS, "kernel symbols"))
		vp_vec_push(&maps->kernel, symbol);
	return true;
}

struct vp_error *vp_maps_load_kallsyms(const char *path, struct vp_maps *maps)
{
	struct parser parser = {.maps = maps, .label = path};
	struct vp_slice line;
	bool any = false;

	*maps = (struct vp_maps){.complete = true};
	/* Offset 0 means "no text" in a vp_text: a newline occupies it. */
	vp_buffer_append(&maps->text, "\n", 1);
	struct vp_error *error = vp_file_read(path, VP_MAPS_MAX_BYTES - 1, &maps->text);
	struct vp_cursor cursor = vp_cursor_of(maps->text.bytes, maps->text.size);
	vp_cursor_line(&cursor, &line);
	while (!error && vp_cursor_line(&cursor, &line)) {
		parser.line++;
		if (parse_kallsyms_line(&parser, line))
			any = true;
		else
			maps_expected(&parser, "'ADDR TYPE NAME [MODULE]'");
	}
	if (!error && !any)
		error = vp_error_new("'%s' has no line like 'ADDR TYPE NAME', as System.map and "
				     "/proc/kallsyms have",
				     path);
	if (!error && !maps->kernel.count)
		error = vp_error_new(
		    "'%s' has only zero addresses: it was copied without root (see kptr_restrict)",
		    path);
	if (error)
		vp_maps_deinit(maps);
	return error;
}
