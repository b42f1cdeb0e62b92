/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/time_options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "cmd/common/options.h"
#include "store/recording.h"

enum { SECOND_DIGITS = 9, DAY = 86400 };
#define SECOND 1000000000ULL

/* Parses seconds of the host's clock, such as "12.5"; false: malformed. */
static bool read_time(const char *text, const char *end, uint64_t *ret)
{
	uint64_t ns = 0, whole = 0;
	int digits = -1;

	if (text == end)
		return false;
	for (; text < end; text++) {
		if (*text == '.' && digits < 0) {
			digits = 0;
			whole = ns;
			ns = 0;
			continue;
		}
		if (!isdigit((unsigned char)*text) || digits == SECOND_DIGITS ||
		    ns > (UINT64_MAX / SECOND - 9) / 10)
			return false;
		ns = 10 * ns + (uint64_t)(*text - '0');
		digits += digits >= 0;
	}
	if (!digits)
		return false;
	if (digits < 0) {
		whole = ns;
		ns = 0;
	}
	for (; digits >= 0 && digits < SECOND_DIGITS; digits++)
		ns *= 10;
	*ret = whole * SECOND + ns;
	return true;
}

/* Parses the end of words such as "05.25": the fraction of a second, ns. */
static bool read_fraction(const char *text, uint64_t *ret)
{
	uint64_t ns;

	*ret = 0;
	if (!*text)
		return true;
	VP_AUTO_FREE char *number = vp_format("0%s", text);
	if (*text != '.' || !read_time(number, number + strlen(number), &ns))
		return false;
	*ret = ns;
	return true;
}

/* "HH:MM", "HH:MM:SS" or "HH:MM:SS.25" of that day in the reader's time zone, as CLOCK_REALTIME. */
static bool read_time_of_day(const char *text, struct tm day, uint64_t *ret)
{
	int used = 0;
	uint64_t rest;

	day.tm_sec = 0;
	if (sscanf(text, "%2d:%2d%n:%2d%n", &day.tm_hour, &day.tm_min, &used, &day.tm_sec, &used) <
		2 ||
	    !isdigit((unsigned char)text[0]) || day.tm_hour > 23 || day.tm_min > 59 ||
	    day.tm_sec > 60 || !read_fraction(text + used, &rest))
		return false;
	day.tm_isdst = -1;
	*ret = (uint64_t)mktime(&day) * SECOND + rest;
	return true;
}

/* Parses a time zone such as "Z" or "+01:00" to seconds; false: malformed. */
static bool read_zone(const char *text, int64_t *ret)
{
	int hours, minutes, used = 0;
	char sign;

	*ret = 0;
	if (!strcmp(text, "Z") || !strcmp(text, "z"))
		return true;
	if (sscanf(text, "%c%2d:%2d%n", &sign, &hours, &minutes, &used) != 3 || text[used] ||
	    (sign != '+' && sign != '-'))
		return false;
	*ret = (sign == '-' ? -60 : 60) * (60 * hours + minutes);
	return true;
}

/* Whether it is a day of the calendar: mktime() accepts others, too. */
static bool is_day(const struct tm *date)
{
	struct tm copy = {.tm_year = date->tm_year,
			  .tm_mon = date->tm_mon,
			  .tm_mday = date->tm_mday,
			  .tm_hour = 12};

	timegm(&copy);
	return copy.tm_mon == date->tm_mon && copy.tm_mday == date->tm_mday;
}

/* RFC 3339, "2026-11-25T16:49:05.25Z"; without a zone in the reader's. Result: CLOCK_REALTIME. */
bool vp_time_date_parse(const char *text, uint64_t *ret)
{
	struct tm date = {0};
	int used = 0;
	int64_t zone;
	uint64_t rest;

	if (sscanf(text, "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%2d%n", &date.tm_year, &date.tm_mon,
		   &date.tm_mday, &date.tm_hour, &date.tm_min, &date.tm_sec, &used) != 6 ||
	    !used)
		return false;
	date.tm_year -= 1900;
	date.tm_mon--;
	date.tm_isdst = -1;
	if (!is_day(&date) || date.tm_hour > 23 || date.tm_min > 59 || date.tm_sec > 60)
		return false;
	size_t fraction = text[used] == '.' ? 1 + strspn(text + used + 1, "0123456789") : 0;
	VP_AUTO_FREE char *digits = vp_strndup(text + used, fraction);
	const char *behind = text + used + fraction;
	if (!read_fraction(digits, &rest))
		return false;
	if (!*behind) {
		*ret = (uint64_t)mktime(&date) * SECOND + rest;
		return true;
	}
	if (!read_zone(behind, &zone))
		return false;
	*ret = (uint64_t)(timegm(&date) - zone) * SECOND + rest;
	return true;
}

/* Converts CLOCK_REALTIME to the recording's clock. A time of day belongs to the nearest day; of
 * two, the later one, because a recording has nothing before its start. */
static bool to_monotonic(const struct vp_recording *about, uint64_t realtime, bool of_day,
			 uint64_t *ret)
{
	uint64_t start = about->start + (uint64_t)about->realtime_offset;

	if (of_day && realtime + DAY / 2 * SECOND <= start)
		realtime += DAY * SECOND;
	*ret = realtime > (uint64_t)about->realtime_offset
		   ? realtime - (uint64_t)about->realtime_offset
		   : 0;
	return about->realtime_offset != 0;
}

/* "+0.5" or "+500ms". */
static bool read_offset(const char *text, uint64_t *ret)
{
	return text[0] == '+' && (read_time(text + 1, text + strlen(text), ret) ||
				  vp_option_read_time(text + 1, ret));
}

static bool read_bound(const struct vp_recording *about, const char *text, uint64_t *ret)
{
	time_t start = (time_t)((about->start + (uint64_t)about->realtime_offset) / SECOND);
	uint64_t time;
	struct tm day;

	if (read_offset(text, &time)) {
		*ret = about->start + time;
		return true;
	}
	if (read_time(text, text + strlen(text), ret))
		return true;
	if (vp_time_date_parse(text, &time))
		return to_monotonic(about, time, false, ret);
	localtime_r(&start, &day);
	return read_time_of_day(text, day, &time) && to_monotonic(about, time, true, ret);
}

/* The recording's bounds, in the form of `text`. */
static struct vp_error *outside(const struct vp_recording *about, const char *text)
{
	struct vp_clock_text clock = {.start = about->start,
				      .realtime_offset = about->realtime_offset};
	char begin[VP_CLOCK_TEXT_SIZE], end[VP_CLOCK_TEXT_SIZE];

	if (about->realtime_offset && strchr(text, '-'))
		clock.form = VP_CLOCK_FORM_RFC3339;
	else if (about->realtime_offset && strchr(text, ':'))
		clock.form = VP_CLOCK_FORM_TIME;
	else if (strchr(text, '+'))
		clock.form = VP_CLOCK_FORM_OFFSET;
	return vp_error_usage("option --time: '%s' is outside of the recording, which covers %s,%s",
			      text, vp_clock_text(&clock, about->start, begin),
			      about->end ? vp_clock_text(&clock, about->end, end) : "");
}

static struct vp_error *time_options_parse(const struct vp_recording *about, const char *text,
					   uint64_t *from, uint64_t *to)
{
	const char *comma = strchr(text, ',');
	VP_AUTO_FREE char *first = vp_strndup(text, comma ? (size_t)(comma - text) : 0);
	uint64_t end = about->end ? about->end : UINT64_MAX;

	if (!comma || (*first && !read_bound(about, first, from)) ||
	    (comma[1] && !read_bound(about, comma + 1, to)))
		return vp_error_usage(
		    "option --time: expected FROM,TO such as 12.5,13 (seconds as printed), "
		    "+0.5,+800ms (since the start), 16:49:05,16:50 or RFC 3339 times, not "
		    "'%s'",
		    text);
	if (*from > *to)
		return vp_error_usage("option --time: FROM is after TO in '%s'", text);
	if (*to >= about->start && *from <= end)
		return NULL;
	return outside(about, text);
}

struct vp_error *vp_time_option_parse(const char *text, const char *directory, uint64_t *from,
				      uint64_t *to)
{
	struct vp_recording about;

	*from = 0;
	*to = UINT64_MAX;
	if (!text)
		return NULL;
	VP_TRY(vp_recording_read(directory, &about));
	struct vp_error *error = time_options_parse(&about, text, from, to);
	vp_recording_deinit(&about);
	return error;
}

static bool read_bound_of_store(const char *text, uint64_t first, uint64_t last, uint64_t *ret)
{
	time_t end = (time_t)(last / SECOND);
	struct tm day;
	uint64_t time;

	if (read_offset(text, &time)) {
		*ret = first + time;
		return true;
	}
	if (vp_time_date_parse(text, ret))
		return true;
	localtime_r(&end, &day);
	if (!read_time_of_day(text, day, ret))
		return false;
	if (*ret > last)
		*ret -= DAY * SECOND;
	return true;
}

static bool is_time_of_day(const char *text)
{
	const struct tm day = {.tm_mday = 1};
	uint64_t time;

	return read_time_of_day(text, day, &time);
}

struct vp_error *vp_time_option_of_store(const char *text, uint64_t first, uint64_t last,
					 uint64_t *from, uint64_t *to)
{
	const char *comma = text ? strchr(text, ',') : NULL;
	VP_AUTO_FREE char *begin = comma ? vp_strndup(text, (size_t)(comma - text)) : NULL;

	*from = first;
	*to = last;
	if (!text)
		return NULL;
	if (!comma || (*begin && !read_bound_of_store(begin, first, last, from)) ||
	    (comma[1] && !read_bound_of_store(comma + 1, first, last, to)))
		return vp_error_usage("option --time: with --store, expected FROM,TO as times of "
				      "day, such as 16:49:05,16:50, or RFC 3339 times, such as "
				      "2026-11-26T16:49:05Z,2026-11-27T00:00:00Z, not '%s'",
				      text);
	/* TO is the first such time of day after FROM, which may be on the next day. */
	if (*to < *from && is_time_of_day(comma + 1))
		*to += DAY * SECOND;
	if (*from > *to)
		return vp_error_usage("option --time: FROM is after TO in '%s'", text);
	if (*to >= first && *from <= last)
		return NULL;
	const struct vp_clock_text clock = {.form = VP_CLOCK_FORM_RFC3339};
	char begun[VP_CLOCK_TEXT_SIZE], ended[VP_CLOCK_TEXT_SIZE];
	return vp_error_usage("option --time: '%s' is outside of the store, which covers %s,%s",
			      text, vp_clock_text(&clock, first, begun),
			      vp_clock_text(&clock, last, ended));
}

struct vp_error *vp_time_option_window(const char *text, const char *directory,
				       struct vp_window *ret)
{
	*ret = (struct vp_window){0};
	return text ? vp_time_option_parse(text, directory, &ret->from, &ret->to) : NULL;
}

struct vp_error *vp_clock_option_parse(const char *text, const char *directory,
				       struct vp_clock_text *ret)
{
	struct vp_recording about;

	*ret = (struct vp_clock_text){0};
	if (!text)
		return NULL;
	if (!vp_clock_form_named(text, &ret->form))
		return vp_error_usage("option --clock: expected host, offset, time or rfc3339, "
				      "not '%s'",
				      text);
	VP_TRY(vp_recording_read(directory, &about));
	ret->start = about.start;
	ret->realtime_offset = about.realtime_offset;
	vp_recording_deinit(&about);
	if (ret->form >= VP_CLOCK_FORM_TIME && !ret->realtime_offset)
		return vp_error_usage("option --clock: the recording '%s' has no date: expected "
				      "host or offset",
				      directory);
	return NULL;
}
