/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/nearest.h"
#include "cmd/common/terminal.h"

static const struct vp_option *find_long(const struct vp_option *options, size_t n_options,
					 const char *word, size_t size)
{
	for (size_t i = 0; i < n_options; i++)
		if (options[i].type != VP_OPTION_HEADING && !strncmp(options[i].name, word, size) &&
		    !options[i].name[size])
			return &options[i];
	return NULL;
}

/* The error for an unknown option, with spelling suggestions. */
static struct vp_error *unknown_long(const struct vp_option *options, size_t n_options,
				     const char *word, size_t size)
{
	struct vp_nearest nearest;

	vp_nearest_init(&nearest, (struct vp_slice){word, size});
	for (size_t i = 0; i < n_options; i++)
		if (options[i].help && options[i].type != VP_OPTION_HEADING)
			vp_nearest_add(&nearest, options[i].name);
	vp_nearest_add(&nearest, "help");
	VP_AUTO_FREE char *meant = vp_nearest_text_with(&nearest, "--");
	return vp_error_usage("unknown option '--%.*s'%s", (int)size, word, meant);
}

static const struct vp_option *find_letter(const struct vp_option *options, size_t n_options,
					   char letter)
{
	for (size_t i = 0; i < n_options; i++)
		if (options[i].letter == letter)
			return &options[i];
	return NULL;
}

static struct vp_error *set_count(const struct vp_option *option, const char *text)
{
	static const struct {
		char suffix;
		uint64_t factor;
	} suffixes[] = {{0, 1}, {'k', 1000}, {'K', 1000}, {'M', 1000000}, {'G', 1000000000}};
	char *end;
	errno = 0;
	uint64_t value = strtoull(text, &end, 10);

	for (size_t i = 0; i < VP_ARRAY_SIZE(suffixes); i++) {
		if (*end != suffixes[i].suffix || (*end && end[1]) || end == text ||
		    text[0] == '-' || value == 0 || errno)
			continue;
		if (__builtin_mul_overflow(value, suffixes[i].factor, &value))
			break;
		*(uint64_t *)option->value = value;
		return NULL;
	}
	return vp_error_usage("option --%s: expected a positive number, not '%s'", option->name,
			      text);
}

bool vp_option_read_time(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9},   {"s", 1e9},  {"ms", 1e6},   {"us", 1e3},
		     {"ns", 1.0}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
	size_t size = strspn(text, "0123456789."); /* no hexadecimal numbers, signs or exponents */
	VP_AUTO_FREE char *number = vp_strndup(text, size);
	char *end;
	double value = strtod(number, &end);

	for (size_t i = 0; size && !*end && i < VP_ARRAY_SIZE(units); i++) {
		double ns = value * units[i].ns + 0.5;
		if (strcmp(text + size, units[i].name) != 0)
			continue;
		if (ns < 1 || ns > (double)VP_OPTION_MAX_SECONDS * 1e9)
			break;
		*ret_ns = (uint64_t)ns;
		return true;
	}
	return false;
}

static struct vp_error *set_seconds(const struct vp_option *option, const char *text)
{
	if (vp_option_read_time(text, option->value))
		return NULL;
	return vp_error_usage("option --%s: expected a time such as 5, 0.3, 500ms or 10m, "
			      "not '%s'",
			      option->name, text);
}

static struct vp_error *set_pages(const struct vp_option *option, const char *text)
{
	static const char suffixes[] = "BKMG";
	char *end;
	uint64_t bytes = strtoull(text, &end, 10), pages = 1, page = (uint64_t)getpagesize();
	const char *suffix = *end ? strchr(suffixes, *end) : NULL;

	if (!suffix)
		return set_count(option, text);
	if (end == text || text[0] == '-' || end[1] || !bytes ||
	    bytes > UINT64_MAX >> (10 * (suffix - suffixes) + 1))
		return vp_error_usage("option --%s: expected a number of pages, or of bytes such "
				      "as 64M, not '%s'",
				      option->name, text);
	bytes <<= 10 * (suffix - suffixes);
	while (pages * page < bytes)
		pages *= 2;
	*(uint64_t *)option->value = pages;
	return NULL;
}

/* Sets the value for the last value of the preceding option in the table. */
static struct vp_error *set_of_last(const struct vp_option *option, const char *text)
{
	const struct vp_texts *others = option[-1].value;
	struct vp_texts *own = option->value;

	if (!others->count)
		return vp_error_usage("option --%s: expected --%s before it", option->name,
				      option[-1].name);
	while (own->count < others->count)
		vp_vec_push(own, (const char *)NULL);
	own->at[others->count - 1] = text;
	return NULL;
}

/* Joined names are never freed: the command uses them until it exits. */
static char *joined_names[4];

static struct vp_error *options_add_name(const struct vp_option *option, const char *text)
{
	const char **names = option->value;
	size_t index = 0;

	if (!text[0] || strchr(text, '\n'))
		return vp_error_usage("option --%s: expected a name", option->name);
	if (!*names) {
		*names = text;
		return NULL;
	}
	while (index + 1 < VP_ARRAY_SIZE(joined_names) && joined_names[index] &&
	       joined_names[index] != *names)
		index++;
	char *both = vp_format("%s\n%s", *names, text);
	free(joined_names[index]);
	joined_names[index] = both;
	*names = both;
	return NULL;
}

static struct vp_error *set_option(const struct vp_option *option, const char *text)
{
	switch (option->type) {
	case VP_OPTION_HEADING:
		break;
	case VP_OPTION_FLAG:
		*(bool *)option->value = true;
		return NULL;
	case VP_OPTION_TEXT:
	case VP_OPTION_MAYBE:
		*(const char **)option->value = text;
		return NULL;
	case VP_OPTION_TEXTS:
		vp_vec_push((struct vp_texts *)option->value, text);
		return NULL;
	case VP_OPTION_NAMES:
		return options_add_name(option, text);
	case VP_OPTION_OF_LAST:
		return set_of_last(option, text);
	case VP_OPTION_PAGES:
		return set_pages(option, text);
	case VP_OPTION_COUNT:
		return set_count(option, text);
	case VP_OPTION_SECONDS:
		return set_seconds(option, text);
	}
	return NULL;
}

struct parser {
	const struct vp_option *options;
	size_t n_options;
	int argc, next;
	char **argv;
};

/* Rejects "--trace sched", which would otherwise run a command 'sched' instead of recording these
 * events. */
static struct vp_error *expect_attached(const struct parser *parser, const struct vp_option *option)
{
	const char *word = parser->next < parser->argc ? parser->argv[parser->next] : "-";

	if (word[0] == '-' || !option->is_value || !option->is_value(word))
		return NULL;
	return vp_error_usage("option --%s: its value must be attached: --%s=%s", option->name,
			      option->name, word);
}

/* Sets an option from its attached value, or from the next word. */
static struct vp_error *options_take_value(struct parser *parser, const struct vp_option *option,
					   const char *attached)
{
	if (option->type == VP_OPTION_FLAG)
		return attached ? vp_error_usage("option --%s takes no value", option->name)
				: set_option(option, NULL);
	if (option->type == VP_OPTION_MAYBE) {
		if (!attached)
			VP_TRY(expect_attached(parser, option));
		return set_option(option, attached ? attached : "");
	}
	if (!attached && parser->next == parser->argc)
		return vp_error_usage("option --%s requires an argument (%s)", option->name,
				      option->argument);
	return set_option(option, attached ? attached : parser->argv[parser->next++]);
}

static struct vp_error *options_take_long(struct parser *parser, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t size = equals ? (size_t)(equals - word) : strlen(word);
	const struct vp_option *option = find_long(parser->options, parser->n_options, word, size);

	if (!option)
		return unknown_long(parser->options, parser->n_options, word, size);
	return options_take_value(parser, option, equals ? equals + 1 : NULL);
}

static struct vp_error *options_take_letters(struct parser *parser, const char *letters)
{
	for (; *letters; letters++) {
		const struct vp_option *option =
		    find_letter(parser->options, parser->n_options, *letters);
		if (!option)
			return vp_error_usage("unknown option '-%c'", *letters);
		if (option->type != VP_OPTION_FLAG)
			return options_take_value(parser, option, letters[1] ? letters + 1 : NULL);
		VP_TRY(set_option(option, NULL));
	}
	return NULL;
}

struct vp_error *vp_options_parse(const struct vp_option *options, size_t n_options, int argc,
				  char **argv, bool stop_at_operand, struct vp_texts *rest,
				  bool *help)
{
	struct parser parser = {options, n_options, argc, 1, argv};
	bool operands_only = false;

	*help = false;
	while (parser.next < argc) {
		char *word = argv[parser.next++];
		if (operands_only || word[0] != '-' || !word[1]) {
			vp_vec_push(rest, word);
			operands_only |= stop_at_operand;
		} else if (!strcmp(word, "--")) {
			operands_only = true;
		} else if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
			*help = true;
			return NULL;
		} else if (word[1] == '-') {
			VP_TRY(options_take_long(&parser, word + 2));
		} else {
			VP_TRY(options_take_letters(&parser, word + 1));
		}
	}
	return NULL;
}

enum { LEFT = 31, MIN_TEXT = 28, USUAL_WIDTH = 80 };

/* The width to which help is wrapped. */
static size_t help_width(void)
{
	size_t width = vp_terminal_width();

	return width ? width : USUAL_WIDTH;
}

static void print_wrapped(const char *left, int indent, const char *text)
{
	size_t width = help_width(), before = (size_t)indent + 1, room = MIN_TEXT;

	if (width > before + MIN_TEXT)
		room = width - before;
	printf("%-*s", indent, left);
	if (strlen(left) > (size_t)indent)
		printf("\n%-*s", indent, "");
	while (*text) {
		size_t size = strlen(text);
		if (size > room) {
			for (size = room; size && text[size] != ' '; size--)
				;
			size = size ? size : strcspn(text, " ");
		}
		printf(" %.*s\n", (int)size, text);
		text += size + strspn(text + size, " ");
		if (*text)
			printf("%-*s", indent, "");
	}
}

void vp_options_wrap(const char *left, const char *text)
{
	print_wrapped(left, (int)strlen(left), text);
}

void vp_options_help(const struct vp_option *options, size_t n_options)
{
	for (size_t i = 0; i < n_options; i++) {
		const struct vp_option *option = &options[i];
		char left[64];
		if (option->type == VP_OPTION_HEADING)
			printf("\n%s:\n", option->help);
		if (option->type == VP_OPTION_HEADING || !option->help)
			continue;
		char letter[5] = "    ";
		if (option->letter)
			snprintf(letter, sizeof(letter), "-%c, ", option->letter);
		const char *between = option->type == VP_OPTION_MAYBE ? "[=" : " ";
		snprintf(left, sizeof(left), "  %s--%s%s%s%s", letter, option->name,
			 option->argument ? between : "", option->argument ? option->argument : "",
			 option->type == VP_OPTION_MAYBE ? "]" : "");
		print_wrapped(left, LEFT, option->help);
	}
	print_wrapped("  -h, --help", LEFT, "show this and exit");
}
