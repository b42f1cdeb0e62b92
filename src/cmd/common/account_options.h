/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options and output shared by vperf account, steal and exits. */
#ifndef VP_CMD_COMMON_ACCOUNT_OPTIONS_H
#define VP_CMD_COMMON_ACCOUNT_OPTIONS_H

#include "analyze/account/account_joined.h"
#include "analyze/account/account_recording.h"
#include "analyze/account/account_tables.h"
#include "analyze/common/table.h"
#include "analyze/common/window.h"
#include "base/clock_text.h"
#include "base/macros.h"
#include "cmd/common/choice.h"
#include "cmd/common/options.h"
#include "cmd/common/store_options.h"
#include "cmd/common/time_options.h"
#include "cmd/common/verb.h"

enum vp_account_format { VP_FORMAT_TEXT, VP_FORMAT_JSON, VP_FORMAT_CSV };

struct vp_account_options {
	const char *input, *vm, *vcpu, *sort, *time, *clock_form;
	uint64_t limit;
	struct vp_format_words format;
	bool events, verbose;
	bool needs_exits; /* trace events are not sufficient */
	bool joins;       /* several recordings of a store can be joined */
	struct vp_store_options store;
	struct vp_texts operands;
	/* Parsed options. */
	const char *directory;
	enum vp_account_format chosen;
	bool has_vcpu;
	uint64_t number;
	struct vp_window window;
	struct vp_clock_text clock;
};

#define VP_ACCOUNT_STORE_OPTION(options) VP_STORE_OPTION(&(options)->store)
/* Common options, for the commands' option tables. */
#define VP_ACCOUNT_OPTIONS(options)                                                                \
	{'i',                                                                                      \
	 "input",                                                                                  \
	 VP_OPTION_TEXT,                                                                           \
	 &(options)->input,                                                                        \
	 "DIR",                                                                                    \
	 "recording directory (default: vperf.data)"},                                             \
	    VP_ACCOUNT_STORE_OPTION(options),                                                      \
	    {0,                                                                                    \
	     "vm",                                                                                 \
	     VP_OPTION_NAMES,                                                                      \
	     &(options)->vm,                                                                       \
	     "NAME",                                                                               \
	     "only this VM (name, or pid of its VMM); can be repeated"},                           \
	    {0, "vcpu", VP_OPTION_TEXT, &(options)->vcpu, "N", "only this vCPU"},                  \
	    {0, "time", VP_OPTION_TEXT, &(options)->time, "FROM,TO", VP_TIME_HELP},                \
	    VP_FORMAT_OPTIONS(&(options)->format, "json", "csv", "text, json or csv"),             \
	    {0,                                                                                    \
	     "sort",                                                                               \
	     VP_OPTION_TEXT,                                                                       \
	     &(options)->sort,                                                                     \
	     "COLUMN",                                                                             \
	     "sort by this column, named as in JSON and CSV; numbers largest first"},              \
	    {'v',                                                                                  \
	     "verbose",                                                                            \
	     VP_OPTION_FLAG,                                                                       \
	     &(options)->verbose,                                                                  \
	     NULL,                                                                                 \
	     "text: show columns that are zero everywhere, too, and each check"},                  \
	{                                                                                          \
		0, "limit", VP_OPTION_COUNT, &(options)->limit, "N", "print only the first N rows" \
	}

/* Parses the options' values. Errors: an invalid value. */
struct vp_error *vp_account_options_check(struct vp_account_options *options) VP_MUST_CHECK;
void vp_account_options_deinit(struct vp_account_options *options);
/* Opens the recording or recordings, and the view selected by the options. */
struct vp_error *vp_account_options_open(const struct vp_account_options *options,
					 struct vp_account_recording *rec,
					 struct vp_account_view *view) VP_MUST_CHECK;

/* A table with its key in JSON. */
struct vp_named_table {
	const char *key;
	double least; /* in text without -v: rows with less in the column "percent" are hidden */
	struct vp_table table;
};

/* Prints to stdout; CSV is the first table only. Text ends with the checks, if requested. */
struct vp_error *vp_account_print(const struct vp_account_options *options,
				  const struct vp_account_recording *rec, const char *verb,
				  struct vp_named_table *tables, size_t n_tables,
				  bool checks) VP_MUST_CHECK;

#endif
