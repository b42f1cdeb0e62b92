/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats of times in output. Each is also accepted by --time. */
#ifndef VP_BASE_CLOCK_TEXT_H
#define VP_BASE_CLOCK_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

enum vp_clock_form {
	VP_CLOCK_FORM_HOST,    /* seconds of the host's CLOCK_MONOTONIC: "24.140536145" */
	VP_CLOCK_FORM_OFFSET,  /* since the recording's start: "+0.100000000" */
	VP_CLOCK_FORM_TIME,    /* time of day in the reader's time zone: "16:49:05.123456789" */
	VP_CLOCK_FORM_RFC3339, /* "2026-11-25T16:49:05.123456789+01:00" */
	VP_CLOCK_FORMS
};

/* Zero-initialized: VP_CLOCK_FORM_HOST. */
struct vp_clock_text {
	enum vp_clock_form form;
	uint64_t start;          /* of the recording, ns */
	int64_t realtime_offset; /* CLOCK_REALTIME - CLOCK_MONOTONIC, ns */
};

enum { VP_CLOCK_TEXT_SIZE = 64 };

/* Parses "host", "offset", "time" or "rfc3339"; false for other words. */
bool vp_clock_form_named(const char *name, enum vp_clock_form *ret);
/* Formats `ns` of CLOCK_MONOTONIC into `text` and returns it. */
const char *vp_clock_text(const struct vp_clock_text *clock, uint64_t ns,
			  char text[VP_CLOCK_TEXT_SIZE]);

#endif
