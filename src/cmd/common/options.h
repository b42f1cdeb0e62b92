/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A verb's options as a table: parsed from it, and printed from it by --help. */
#ifndef VP_CMD_COMMON_OPTIONS_H
#define VP_CMD_COMMON_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

enum vp_option_type {
	VP_OPTION_FLAG,    /* bool: set to true */
	VP_OPTION_HEADING, /* no option: the heading of those after it in --help */
	VP_OPTION_TEXT,    /* const char * */
	VP_OPTION_MAYBE,   /* const char *: "" without a value, which is attached: --name=VALUE,
			      -xVALUE */
	VP_OPTION_TEXTS,   /* struct vp_texts: may be given again and again */
	VP_OPTION_NAMES,   /* const char *: may be given again and again: one name a line */
	VP_OPTION_OF_LAST, /* struct vp_texts: is of the last one of the option before it in the
			      table, and has its index there; others get NULL */
	VP_OPTION_PAGES, /* uint64_t: a number of pages; or of bytes with a suffix B, K, M or G, as
			  * in perf: rounded up to a power of two of pages */
	VP_OPTION_COUNT, /* uint64_t: a positive number, with k, M or G after it if wanted */
	VP_OPTION_SECONDS, /* uint64_t, ns: a time above 0 in seconds, with a fraction (0.3) or a
			      unit (500ms, 10s, 5m) if wanted */
};

/* The longest time of VP_OPTION_SECONDS. */
enum { VP_OPTION_MAX_SECONDS = 1000000000 };

struct vp_texts {
	const char **at;
	size_t count;
	size_t room;
};

struct vp_option {
	char letter;      /* or 0 */
	const char *name; /* without the dashes */
	enum vp_option_type type;
	void *value;          /* of the type's kind, in the verb's own struct */
	const char *argument; /* what --help calls it; NULL for a flag */
	const char *help;     /* NULL: --help does not list it */
	/* VP_OPTION_MAYBE: whether a separate following word looks like the value, which needs a
	 * '='. */
	bool (*is_value)(const char *word);
};

/* Parses argv[1] … up to the first word that is no option, or "--". The following words are
 * *rest (n_rest). Options may follow operands unless `stop_at_operand`. *help is set if --help
 * was given. */
struct vp_error *vp_options_parse(const struct vp_option *options, size_t n_options, int argc,
				  char **argv, bool stop_at_operand, struct vp_texts *rest,
				  bool *help) VP_MUST_CHECK;
/* Reads a time as VP_OPTION_SECONDS does; false if the text is no time. */
bool vp_option_read_time(const char *text, uint64_t *ret_ns);
/* Prints a text to stdout, after `left`, wrapped to the terminal and indented by the width of
 * `left`. */
void vp_options_wrap(const char *left, const char *text);
/* Prints the options' part of --help to stdout. */
void vp_options_help(const struct vp_option *options, size_t n_options);

#endif
