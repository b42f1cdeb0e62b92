/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Option tables of commands: used for parsing and for --help. */
#ifndef VP_CMD_COMMON_OPTIONS_H
#define VP_CMD_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

enum vp_option_type {
	VP_OPTION_FLAG,    /* bool: set to true */
	VP_OPTION_HEADING, /* not an option: heading of the following ones in --help */
	VP_OPTION_TEXT,    /* const char * */
	VP_OPTION_MAYBE,   /* const char *: "" without a value; the value must be attached:
			      --name=VALUE, -xVALUE */
	VP_OPTION_TEXTS,   /* struct vp_texts: can be repeated */
	VP_OPTION_NAMES,   /* const char *: can be repeated; one name per line */
	VP_OPTION_OF_LAST, /* struct vp_texts: applies to the last value of the preceding option in
			      the table; stored at its index; NULL for other values */
	VP_OPTION_PAGES,   /* uint64_t: number of pages; or bytes with a suffix B, K, M or G, as in
			      perf, rounded up to a power of two of pages */
	VP_OPTION_COUNT,   /* uint64_t: a positive number, optionally with suffix k, M or G */
	VP_OPTION_SECONDS, /* uint64_t, ns: a time above 0 in seconds, with a fraction (0.3) or a
			      unit (500ms, 10s, 5m) */
};

/* Maximum of VP_OPTION_SECONDS. */
enum { VP_OPTION_MAX_SECONDS = 1000000000 };

struct vp_texts {
	const char **at;
	size_t count;
	size_t room;
};

struct vp_option {
	char letter;      /* or 0 */
	const char *name; /* without dashes */
	enum vp_option_type type;
	void *value;          /* variable of the option's type, in the command's struct */
	const char *argument; /* name of the argument in --help; NULL for a flag */
	const char *help;     /* NULL: not in --help */
	/* VP_OPTION_MAYBE: whether the next word looks like a value that should have been attached
	 * with '='. */
	bool (*is_value)(const char *word);
};

/* Parses argv[1] … up to the first word that is not an option, or "--". *rest: the following words
 * (n_rest). Options may follow operands unless `stop_at_operand`. *help: --help was given. */
struct vp_error *vp_options_parse(const struct vp_option *options, size_t n_options, int argc,
				  char **argv, bool stop_at_operand, struct vp_texts *rest,
				  bool *help) VP_MUST_CHECK;
/* Parses a time like VP_OPTION_SECONDS; false: malformed. */
bool vp_option_read_time(const char *text, uint64_t *ret_ns);
/* Prints a text to stdout after `left`, wrapped to the terminal's width and indented by the width
 * of `left`. */
void vp_options_wrap(const char *left, const char *text);
/* Prints the options for --help to stdout. */
void vp_options_help(const struct vp_option *options, size_t n_options);

#endif
