/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options whose value is one of a few words: --format and others. */
#ifndef VP_CMD_COMMON_CHOICE_H
#define VP_CMD_COMMON_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/options.h"

/* *ret is the index of `text` in `names`. The error lists all names, with spelling suggestions. */
struct vp_error *vp_choose(const char *option, const char *text, const char *const *names,
			   size_t n_names, size_t *ret) VP_MUST_CHECK;

struct vp_format_words {
	const char *format;
	bool json, csv;
};

#define VP_FORMAT_OPTIONS(words, json_name, csv_name, formats)                                     \
	{0, "format", VP_OPTION_TEXT, &(words)->format, "FORMAT", formats " (default: text)"},     \
	    {0, "json", VP_OPTION_FLAG, &(words)->json, NULL, "same as --format " json_name},      \
	{                                                                                          \
		0, "csv", VP_OPTION_FLAG, &(words)->csv, NULL, "same as --format " csv_name        \
	}

/* The chosen name; the first one without --format. --json: the first name that starts with
 * "json". */
struct vp_error *vp_choose_format(const struct vp_format_words *words, const char *const *names,
				  size_t n_names, const char **ret) VP_MUST_CHECK;
/* The same for text, json and csv; the second for text and json only. */
struct vp_error *vp_choose_table_format(const struct vp_format_words *words,
					const char **ret) VP_MUST_CHECK;
struct vp_error *vp_choose_text_or_json(const struct vp_format_words *words,
					const char **ret) VP_MUST_CHECK;

#endif
