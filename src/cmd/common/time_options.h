/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Option --time FROM,TO: a time window, shared by all commands that read a recording. */
#ifndef VP_CMD_COMMON_TIME_OPTIONS_H
#define VP_CMD_COMMON_TIME_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/common/window.h"
#include "base/clock_text.h"
#include "base/error.h"
#include "base/macros.h"

#define VP_CLOCK_HELP                                                                              \
	"print times as host (seconds of its clock), offset (from the start), time (of day) or "   \
	"rfc3339 (default: host)"
#define VP_TIME_HELP                                                                               \
	"only from FROM to TO: seconds as printed, +OFFSET from the start, a time of day or an "   \
	"RFC 3339 time; either may be left out"

/* The window of the recording in `directory`, CLOCK_MONOTONIC, ns; NULL: 0 and UINT64_MAX. Errors:
 * malformed, ends before it starts, or outside the recording. */
struct vp_error *vp_time_option_parse(const char *text, const char *directory, uint64_t *from,
				      uint64_t *to) VP_MUST_CHECK;
/*
 * The same for a store with recordings from `first` to `last`; all are CLOCK_REALTIME, ns. A time
 * of day is the latest one before `last`; for TO, the first one after FROM. +OFFSET is relative to
 * `first`.
 */
struct vp_error *vp_time_option_of_store(const char *text, uint64_t first, uint64_t last,
					 uint64_t *from, uint64_t *to) VP_MUST_CHECK;
/* RFC 3339, such as "2026-11-25T16:49:05.25Z", as CLOCK_REALTIME, ns; without a zone in the
 * reader's. False: it is not one. */
bool vp_time_date_parse(const char *text, uint64_t *ret);
/* The form of the recording's times; NULL is the host's clock. Errors: another word; a recording
 * whose date is not known. */
struct vp_error *vp_clock_option_parse(const char *text, const char *directory,
				       struct vp_clock_text *ret) VP_MUST_CHECK;
/* The same as struct vp_window. */
struct vp_error *vp_time_option_window(const char *text, const char *directory,
				       struct vp_window *ret) VP_MUST_CHECK;

#endif
