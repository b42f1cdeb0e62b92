/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/recipe.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/file.h"

enum { MAX_BYTES = 1 << 20, MIN_NS = 10000 };
#define MAX_WIDTH (UINT64_C(1) << 62)

static const char *const per_names[] = {
    [VP_PER_VCPU] = "vcpu", [VP_PER_TASK] = "task", [VP_PER_PCPU] = "pcpu"};

struct parser {
	const char *label;
	const char *line_begin;
	size_t line;
	struct vp_cursor words;
	struct vp_recipe *recipe;
	bool has_interval, has_per;
};

/* An error with the position in the present line. */
#define FAIL(parser, at, ...) recipe_fail(parser, at, vp_format(__VA_ARGS__))

struct vp_error *vp_recipe_fail(const char *label, struct vp_recipe_position position,
				char *sentence)
{
	struct vp_error *error =
	    vp_error_new("%s:%zu:%zu: %s", label, position.line, position.column, sentence);

	free(sentence);
	return error;
}

static struct vp_recipe_position recipe_position_of(const struct parser *parser, const char *at)
{
	return (struct vp_recipe_position){parser->line, (size_t)(at - parser->line_begin) + 1};
}

static struct vp_error *recipe_fail(const struct parser *parser, const char *at, char *sentence)
{
	return vp_recipe_fail(parser->label, recipe_position_of(parser, at), sentence);
}

static void recipe_skip_blanks(struct parser *parser)
{
	struct vp_cursor *words = &parser->words;

	while (words->next < words->end && strchr(" \t\r", *words->next))
		words->next++;
}

/* The next word; of size 0 at the line's end. */
static struct vp_slice next_word(struct parser *parser)
{
	struct vp_cursor *words = &parser->words;

	recipe_skip_blanks(parser);
	struct vp_slice word = {words->next, 0};
	while (words->next < words->end && !strchr(" \t\r", *words->next))
		words->next++;
	word.size = (size_t)(words->next - word.bytes);
	return word;
}

static struct vp_error *expect_end(struct parser *parser)
{
	struct vp_slice word = next_word(parser);

	return word.size
		   ? FAIL(parser, word.bytes, "unexpected word '%.*s'", (int)word.size, word.bytes)
		   : NULL;
}

struct suffix {
	const char *text;
	uint64_t factor;
};

static const struct suffix count_suffixes[] = {{"", 1},        {"k", 1000},       {"K", 1000},
					       {"M", 1000000}, {"G", 1000000000}, {NULL, 0}};
static const struct suffix time_suffixes[] = {
    {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};
static const struct suffix no_suffixes[] = {{"", 1}, {NULL, 0}};

/* A number from 1 to `most`, with one of the suffixes. */
static struct vp_error *recipe_take_number(struct parser *parser, const char *what,
					   const struct suffix *suffixes, uint64_t most,
					   uint64_t *ret)
{
	struct vp_slice word = next_word(parser);
	size_t digits = 0;

	while (digits < word.size && word.bytes[digits] >= '0' && word.bytes[digits] <= '9')
		digits++;
	struct vp_cursor number = vp_cursor_of(word.bytes, digits);
	uint64_t value = digits ? vp_cursor_decimal(&number) : 0;
	struct vp_slice rest = {word.bytes + digits, word.size - digits};
	uint64_t factor = 0;
	for (; suffixes->text; suffixes++)
		if (vp_slice_is(rest, suffixes->text))
			factor = suffixes->factor;
	if (!digits || !vp_cursor_ok(&number) || !factor ||
	    __builtin_mul_overflow(value, factor, ret) || !*ret || *ret > most)
		return FAIL(parser, word.bytes, "expected %s, not '%.*s'", what, (int)word.size,
			    word.bytes);
	return NULL;
}

static struct vp_error *take_time_width(struct parser *parser)
{
	struct vp_recipe *recipe = parser->recipe;

	recipe->unit = VP_UNIT_TIME;
	recipe_skip_blanks(parser);
	const char *at = parser->words.next;
	VP_TRY(recipe_take_number(parser, "a time above 0 such as 10ms", time_suffixes, MAX_WIDTH,
				  &recipe->width));
	return recipe->width < MIN_NS
		   ? FAIL(parser, at, "expected a time of at least %d ns, not %" PRIu64, MIN_NS,
			  recipe->width)
		   : NULL;
}

static struct vp_error *take_interval(struct parser *parser)
{
	struct vp_recipe *recipe = parser->recipe;
	struct vp_slice unit = next_word(parser);

	if (!unit.size)
		return FAIL(parser, unit.bytes,
			    "expected a unit and a width, such as "
			    "'instructions 60M' or 'time 10ms'");
	recipe->unit_name = vp_strndup(unit.bytes, unit.size);
	recipe->unit_position = recipe_position_of(parser, unit.bytes);
	if (vp_slice_is(unit, "time"))
		return take_time_width(parser);
	if (vp_slice_is(unit, "exits"))
		recipe->unit = VP_UNIT_EXITS;
	else if (vp_event_find(unit, &recipe->trigger) && recipe->trigger.source == VP_FROM_COUNTER)
		recipe->unit = VP_UNIT_EVENT;
	else
		return FAIL(parser, unit.bytes,
			    "unknown unit '%.*s': expected time, exits or a perf event",
			    (int)unit.size, unit.bytes);
	bool is_time = recipe->unit == VP_UNIT_EVENT && recipe->trigger.unit[0];
	return recipe_take_number(
	    parser, is_time ? "a time above 0 such as 10ms" : "a width above 0 such as 60M",
	    is_time ? time_suffixes : count_suffixes, MAX_WIDTH, &recipe->width);
}

static bool find_per(struct vp_slice word, enum vp_interval_per *ret)
{
	for (uint32_t i = 0; i < VP_ARRAY_SIZE(per_names); i++)
		if (vp_slice_is(word, per_names[i])) {
			*ret = (enum vp_interval_per)i;
			return true;
		}
	return false;
}

static struct vp_error *take_per(struct parser *parser)
{
	struct vp_slice word = next_word(parser);

	return find_per(word, &parser->recipe->per)
		   ? NULL
		   : FAIL(parser, word.bytes, "expected vcpu, task or pcpu, not '%.*s'",
			  (int)word.size, word.bytes);
}

static struct vp_error *check_event(const struct parser *parser, struct vp_slice word,
				    const struct vp_event *event, uint32_t set)
{
	const struct vp_recipe *recipe = parser->recipe;

	if (set && event->source != VP_FROM_COUNTER)
		return FAIL(parser, word.bytes, "'%.*s' is not a perf counter: use 'count' for it",
			    (int)word.size, word.bytes);
	if (recipe->events.count == VP_EVENTS_MAX)
		return FAIL(parser, word.bytes, "expected at most %d events", VP_EVENTS_MAX);
	if (event->source == VP_FROM_COUNTER && recipe->n_counters == VP_COUNTERS_MAX)
		return FAIL(parser, word.bytes, "expected at most %d perf counters",
			    VP_COUNTERS_MAX);
	vp_vec_each (&recipe->events, known)
		if (vp_slice_is(word, known->name))
			return FAIL(parser, word.bytes, "'%.*s' is counted already", (int)word.size,
				    word.bytes);
	return NULL;
}

static struct vp_error *recipe_take_events(struct parser *parser, uint32_t set)
{
	struct vp_recipe *recipe = parser->recipe;
	struct vp_slice word = next_word(parser);

	if (!word.size)
		return FAIL(parser, word.bytes, "expected the name of an event");
	for (; word.size; word = next_word(parser)) {
		struct vp_event event;
		if (!vp_event_find(word, &event))
			return recipe_fail(parser, word.bytes, vp_event_unknown(word));
		VP_TRY(check_event(parser, word, &event, set));
		if (event.source == VP_FROM_COUNTER)
			event.index = recipe->n_counters++;
		vp_vec_push(
		    &recipe->events,
		    ((struct vp_recipe_event){vp_strndup(word.bytes, word.size),
					      recipe_position_of(parser, word.bytes), event, set}));
	}
	return NULL;
}

static struct vp_error *take_set(struct parser *parser)
{
	struct vp_recipe *recipe = parser->recipe;

	if (recipe->n_sets == VP_SETS_MAX)
		return FAIL(parser, parser->line_begin, "expected at most %d sets", VP_SETS_MAX);
	return recipe_take_events(parser, ++recipe->n_sets);
}

static struct vp_error *take_sub_intervals(struct parser *parser)
{
	uint64_t value;

	VP_TRY(
	    recipe_take_number(parser, "a number from 1 to 1000000", no_suffixes, 1000000, &value));
	parser->recipe->sub_intervals = (uint32_t)value;
	return NULL;
}

static struct vp_error *once(const struct parser *parser, struct vp_slice word, bool *given)
{
	bool before = *given;

	*given = true;
	return before ? FAIL(parser, word.bytes, "duplicate statement '%.*s'", (int)word.size,
			     word.bytes)
		      : NULL;
}

static struct vp_error *take_statement(struct parser *parser)
{
	struct vp_recipe *recipe = parser->recipe;
	struct vp_slice word = next_word(parser);
	struct vp_error *error;

	if (!word.size)
		return NULL;
	if (vp_slice_is(word, "interval")) {
		VP_TRY(once(parser, word, &parser->has_interval));
		error = take_interval(parser);
	} else if (vp_slice_is(word, "per")) {
		VP_TRY(once(parser, word, &parser->has_per));
		error = take_per(parser);
	} else if (vp_slice_is(word, "native")) {
		recipe->native = true;
		error = NULL;
	} else if (vp_slice_is(word, "duration")) {
		error = recipe_take_number(parser, "a number of seconds above 0", no_suffixes,
					   1000000000, &recipe->duration);
	} else if (vp_slice_is(word, "sub-intervals")) {
		error = take_sub_intervals(parser);
	} else if (vp_slice_is(word, "set")) {
		error = take_set(parser);
	} else if (vp_slice_is(word, "count")) {
		error = recipe_take_events(parser, 0);
	} else {
		error = FAIL(parser, word.bytes,
			     "unknown statement '%.*s': expected interval, per, native, "
			     "duration, sub-intervals, set or count",
			     (int)word.size, word.bytes);
	}
	return error ? error : expect_end(parser);
}

static void set_defaults(struct vp_recipe *recipe)
{
	static const char instructions[] = "instructions";

	if (recipe->unit_name)
		return;
	vp_event_find((struct vp_slice){instructions, sizeof(instructions) - 1}, &recipe->trigger);
	recipe->unit = VP_UNIT_EVENT;
	recipe->unit_name = vp_strdup(instructions);
	recipe->width = 60000000;
}

/* Whether the subjects of the intervals have the counted events. */
static struct vp_error *check_per(const char *label, const struct vp_recipe *recipe)
{
	if (recipe->unit == VP_UNIT_EXITS && recipe->per == VP_PER_TASK)
		return vp_recipe_fail(label, recipe->unit_position,
				      vp_strdup("a task has no VM exits: expected 'per vcpu' or "
						"'per pcpu' with 'interval exits'"));
	if (recipe->per == VP_PER_VCPU)
		return NULL;
	vp_vec_each (&recipe->events, event)
		if (event->event.source == VP_FROM_GUEST)
			return vp_recipe_fail(
			    label, event->position,
			    vp_format(
				"'%s' is counted per guest CPU: use it with 'per vcpu' or 'native'",
				event->name));
	return NULL;
}

/* Each multiplexed set has a part of the interval. */
static struct vp_error *check_parts(const char *label, size_t line, const struct vp_recipe *recipe)
{
	uint64_t least = recipe->unit == VP_UNIT_TIME ? MIN_NS : 1;

	if (recipe->n_sets < 2 || recipe->width / recipe->sub_intervals >= least)
		return NULL;
	return vp_error_new("%s:%zu:1: the interval is too short for %" PRIu32
			    " sub-intervals: expected at least %" PRIu64 "%s each",
			    label, line, recipe->sub_intervals, least,
			    recipe->unit == VP_UNIT_TIME ? " ns" : "");
}

/* Checks that need the whole recipe. */
static struct vp_error *check_whole(const struct parser *parser)
{
	struct vp_recipe *recipe = parser->recipe;
	const char *label = parser->label;

	set_defaults(recipe);
	if (!recipe->events.count)
		return vp_error_new("%s:%zu:1: the recipe counts nothing: expected a 'set' or "
				    "'count' statement",
				    label, parser->line);
	if (!recipe->sub_intervals)
		recipe->sub_intervals = recipe->n_sets;
	if (recipe->n_sets > recipe->sub_intervals)
		return vp_error_new("%s:%zu:1: %" PRIu32 " sets do not fit into %" PRIu32
				    " sub-intervals: expected at most as many sets",
				    label, parser->line, recipe->n_sets, recipe->sub_intervals);
	VP_TRY(check_parts(label, parser->line, recipe));
	if (recipe->native)
		return vp_recipe_make_native(label, recipe);
	return check_per(label, recipe);
}

struct vp_error *vp_recipe_parse(const char *label, const void *text, size_t size,
				 struct vp_recipe *ret)
{
	struct vp_cursor lines = vp_cursor_of(text, size);
	struct parser parser = {.label = label, .recipe = ret};
	struct vp_error *error = NULL;
	struct vp_slice line;

	*ret = (struct vp_recipe){0};
	vp_cursor_skip_mark(&lines);
	while (!error && vp_cursor_line(&lines, &line)) {
		const char *comment = memchr(line.bytes, '#', line.size);
		parser.line++;
		parser.line_begin = line.bytes;
		parser.words =
		    vp_cursor_of(line.bytes, comment ? (size_t)(comment - line.bytes) : line.size);
		error = take_statement(&parser);
	}
	if (!error)
		error = check_whole(&parser);
	if (error)
		vp_recipe_deinit(ret);
	return error;
}

struct vp_error *vp_recipe_read(const char *path, struct vp_recipe *ret)
{
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read(path, MAX_BYTES, &text);

	if (!error)
		error = vp_recipe_parse(path, text.bytes, text.size, ret);
	vp_buffer_deinit(&text);
	return error;
}

static void write_events(const struct vp_recipe *recipe, struct vp_buffer *text)
{
	uint32_t set = UINT32_MAX;

	vp_vec_each (&recipe->events, event) {
		if (event->set != set)
			vp_buffer_string(text, event->set ? "\nset" : "\ncount");
		vp_buffer_printf(text, " %s", event->name);
		set = event->set;
	}
	vp_buffer_string(text, "\n");
}

void vp_recipe_write(const struct vp_recipe *recipe, struct vp_buffer *text)
{
	bool is_time = recipe->unit == VP_UNIT_TIME ||
		       (recipe->unit == VP_UNIT_EVENT && recipe->trigger.unit[0]);

	vp_buffer_printf(text, "interval %s %" PRIu64 "%s\nper %s\n%s", recipe->unit_name,
			 recipe->width, is_time ? "ns" : "", per_names[recipe->per],
			 recipe->native ? "native\n" : "");
	if (recipe->duration)
		vp_buffer_printf(text, "duration %" PRIu64 "\n", recipe->duration);
	if (recipe->sub_intervals)
		vp_buffer_printf(text, "sub-intervals %" PRIu32, recipe->sub_intervals);
	write_events(recipe, text);
}

void vp_recipe_deinit(struct vp_recipe *recipe)
{
	free(recipe->unit_name);
	vp_vec_each (&recipe->events, event)
		free(event->name);
	vp_vec_deinit(&recipe->events);
	*recipe = (struct vp_recipe){0};
}

struct vp_error *vp_recipe_make_native(const char *label, struct vp_recipe *recipe)
{
	if (recipe->unit == VP_UNIT_EXITS)
		return vp_recipe_fail(label, recipe->unit_position,
				      vp_strdup("without a hypervisor there are no VM exits: "
						"expected another unit with 'native'"));
	if (recipe->per == VP_PER_VCPU)
		recipe->per = VP_PER_TASK;
	recipe->native = true;
	vp_vec_each (&recipe->events, event) {
		struct vp_event native;
		if (event->event.source != VP_FROM_GUEST || recipe->n_counters == VP_COUNTERS_MAX ||
		    !vp_event_native((enum vp_guest_count)event->event.index, &native))
			continue;
		native.index = recipe->n_counters++;
		event->event = native;
	}
	return NULL;
}

uint32_t vp_recipe_find(const struct vp_recipe *recipe, const char *name)
{
	vp_vec_each (&recipe->events, event)
		if (!strcmp(event->name, name))
			return (uint32_t)(event - recipe->events.at);
	return VP_EVENTS_MAX;
}

struct vp_error *vp_recipe_set_per(const char *label, struct vp_recipe *recipe, const char *per)
{
	if (!find_per((struct vp_slice){per, strlen(per)}, &recipe->per))
		return vp_error_usage("option --per: expected vcpu, task or pcpu, not '%s'", per);
	return recipe->native ? vp_recipe_make_native(label, recipe) : check_per(label, recipe);
}
