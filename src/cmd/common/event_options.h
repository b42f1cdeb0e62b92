/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options shared by commands that print events: time window, pCPUs. */
#ifndef VP_CMD_COMMON_EVENT_OPTIONS_H
#define VP_CMD_COMMON_EVENT_OPTIONS_H

#include "base/clock_text.h"
#include "base/macros.h"
#include "base/pcpus.h"
#include "cmd/common/options.h"
#include "cmd/common/store_options.h"
#include "cmd/common/time_options.h"

struct vp_event_options {
	const char *input, *time, *clock_form, *vm, *cpus;
	bool joins; /* several recordings of a store can be joined */
	struct vp_store_options store;
	struct vp_texts operands;
	/* Parsed options. */
	const char *directory;
	uint64_t from, to; /* CLOCK_MONOTONIC, ns */
	struct vp_pcpus pcpus;
	struct vp_clock_text clock;
};

#define VP_EVENT_OPTIONS_OF_ALL_PCPUS(options)                                                     \
	{'i',                                                                                      \
	 "input",                                                                                  \
	 VP_OPTION_TEXT,                                                                           \
	 &(options)->input,                                                                        \
	 "DIR",                                                                                    \
	 "recording directory (default: vperf.data)"},                                             \
	    VP_STORE_OPTION(&(options)->store),                                                    \
	    {0, "time", VP_OPTION_TEXT, &(options)->time, "FROM,TO", VP_TIME_HELP},                \
	{                                                                                          \
		0, "vm", VP_OPTION_NAMES, &(options)->vm, "NAME",                                  \
		    "only this VM and its vCPUs' threads (name, or pid); can be repeated"          \
	}
#define VP_EVENT_OPTIONS(options)                                                                  \
	VP_EVENT_OPTIONS_OF_ALL_PCPUS(options),                                                    \
	{                                                                                          \
		'C', "cpu", VP_OPTION_TEXT, &(options)->cpus, "LIST",                              \
		    "only these pCPUs, such as 0-3,8"                                              \
	}

/* For commands that print times. */
#define VP_CLOCK_OPTION(options)                                                                   \
	{                                                                                          \
		0, "clock", VP_OPTION_TEXT, &(options)->clock_form, "FORM", VP_CLOCK_HELP          \
	}

/* Errors: an invalid value, or more than one recording. */
struct vp_error *vp_event_options_check(struct vp_event_options *options) VP_MUST_CHECK;
void vp_event_options_deinit(struct vp_event_options *options);

#endif
