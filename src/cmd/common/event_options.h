/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options shared by commands that print events: time window, pCPUs. */
#ifndef VP_CMD_COMMON_EVENT_OPTIONS_H
#define VP_CMD_COMMON_EVENT_OPTIONS_H

#include "analyze/common/health.h"
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
	/* Parsed options; of several recordings, those of the present one. */
	const char *directory;
	uint64_t from, to; /* CLOCK_MONOTONIC, ns */
	struct vp_pcpus pcpus;
	struct vp_clock_text clock;
	/* The first one of several recordings: +OFFSET counts from its start. */
	uint64_t first_start;
	int64_t first_offset;
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
/* Number of recordings that are read, at least 1. */
size_t vp_event_options_count(const struct vp_event_options *options);
/* Sets the directory, the window and the clock to those of a recording. */
struct vp_error *vp_event_options_part(struct vp_event_options *options,
				       size_t index) VP_MUST_CHECK;
/*
 * Calls `one` for each recording in order of time, with `options` set to it. It appends notes. If
 * there are several, those that it cannot use become notes, and a note has the gaps between them.
 * Errors: that of the only one, or none can be used.
 */
struct vp_error *vp_event_options_each(struct vp_event_options *options,
				       struct vp_error *(*one)(void *context, vp_sentences *notes),
				       void *context, vp_sentences *notes) VP_MUST_CHECK;
/* Appends a sentence if times of several recordings are printed by clocks of different boots. */
void vp_event_options_note_boots(const struct vp_event_options *options, vp_sentences *notes);
/* Appends copies of notes, each once; prints notes on stderr; frees them. */
void vp_event_notes_add(vp_sentences *notes, const vp_sentences *from);
void vp_event_notes_say(const char *verb, const vp_sentences *notes);
void vp_event_notes_deinit(vp_sentences *notes);
void vp_event_options_deinit(struct vp_event_options *options);

#endif
