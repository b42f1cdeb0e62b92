/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/clock_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"

#define SECOND 1000000000ULL

static const char *const names[VP_CLOCK_FORMS] = {[VP_CLOCK_FORM_HOST] = "host",
						  [VP_CLOCK_FORM_OFFSET] = "offset",
						  [VP_CLOCK_FORM_TIME] = "time",
						  [VP_CLOCK_FORM_RFC3339] = "rfc3339"};

bool vp_clock_form_named(const char *name, enum vp_clock_form *ret)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name)) {
			*ret = (enum vp_clock_form)i;
			return true;
		}
	return false;
}

static void put_realtime(bool with_date, uint64_t realtime, char text[VP_CLOCK_TEXT_SIZE])
{
	time_t seconds = (time_t)(realtime / SECOND);
	struct tm parts = {0};
	char date[VP_CLOCK_TEXT_SIZE / 2] = "?", zone[VP_CLOCK_TEXT_SIZE / 4] = "";

	if (localtime_r(&seconds, &parts))
		strftime(date, sizeof(date), with_date ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &parts);
	long minutes = labs(parts.tm_gmtoff) / 60;
	if (with_date)
		snprintf(zone, sizeof(zone), "%c%02ld:%02ld", parts.tm_gmtoff < 0 ? '-' : '+',
			 minutes / 60 % 100, minutes % 60);
	snprintf(text, VP_CLOCK_TEXT_SIZE, "%s.%09" PRIu64 "%s", date,
		 (uint64_t)(realtime % SECOND), zone);
}

const char *vp_clock_text(const struct vp_clock_text *clock, uint64_t ns,
			  char text[VP_CLOCK_TEXT_SIZE])
{
	/* A start may be before the clock's own: that of an earlier boot. */
	bool is_before = (int64_t)(ns - clock->start) < 0;
	uint64_t since = is_before ? clock->start - ns : ns - clock->start;

	if (clock->form == VP_CLOCK_FORM_OFFSET)
		snprintf(text, VP_CLOCK_TEXT_SIZE, "%c%" PRIu64 ".%09" PRIu64,
			 is_before ? '-' : '+', (uint64_t)(since / SECOND),
			 (uint64_t)(since % SECOND));
	else if (clock->form == VP_CLOCK_FORM_HOST)
		snprintf(text, VP_CLOCK_TEXT_SIZE, "%" PRIu64 ".%09" PRIu64,
			 (uint64_t)(ns / SECOND), (uint64_t)(ns % SECOND));
	else
		put_realtime(clock->form == VP_CLOCK_FORM_RFC3339,
			     ns + (uint64_t)clock->realtime_offset, text);
	return text;
}
