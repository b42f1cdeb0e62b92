/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/event_options.h"

#include <ctype.h>
#include <string.h>

#include "cmd/common/verb.h"
#include "store/recording.h"

enum { SECOND_DIGITS = 9 };
#define SECOND 1000000000ULL

/* "12.5", the seconds that the events' lines have; false: it is none. */
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
		    ns > UINT64_MAX / SECOND / 10)
			return false;
		ns = 10 * ns + (uint64_t)(*text - '0');
		digits += digits >= 0;
	}
	if (digits < 0) {
		whole = ns;
		ns = 0;
	}
	for (; digits >= 0 && digits < SECOND_DIGITS; digits++)
		ns *= 10;
	*ret = whole * SECOND + ns;
	return true;
}

static struct vp_error *choose_time(struct vp_event_options *options)
{
	const char *text = options->time;

	options->from = 0;
	options->to = UINT64_MAX;
	if (!text)
		return NULL;
	const char *comma = strchr(text, ','), *end = text + strlen(text);
	if (!comma || (comma != text && !read_time(text, comma, &options->from)) ||
	    (comma + 1 != end && !read_time(comma + 1, end, &options->to)))
		return vp_error_usage("option --time: expected FROM,TO in seconds, such as "
				      "12.5,13 or 12.5,, not '%s'",
				      text);
	return options->from <= options->to
		   ? NULL
		   : vp_error_usage("option --time: FROM is after TO in '%s'", text);
}

static struct vp_error *choose_cpus(struct vp_event_options *options)
{
	if (!options->cpus)
		return NULL;
	VP_AUTO_ERROR struct vp_error *error =
	    vp_pcpus_parse(options->cpus, "option --cpu", &options->pcpus);
	if (error || !options->pcpus.count)
		return vp_error_usage(
		    "option --cpu: expected a list of pCPUs such as 0-3,8, not '%s'",
		    options->cpus);
	return NULL;
}

/* A window that has nothing of the recording is a mistake, and not an empty result. */
static struct vp_error *expect_overlap(const struct vp_event_options *options)
{
	struct vp_recording about;
	VP_AUTO_ERROR struct vp_error *unread = vp_recording_read(options->directory, &about);

	if (unread) /* reported when it is opened */
		return NULL;
	uint64_t start = about.start, end = about.end ? about.end : UINT64_MAX;
	vp_recording_deinit(&about);
	if (options->to >= start && options->from <= end)
		return NULL;
	return vp_error_usage("option --time: '%s' is outside of the recording, which covers "
			      "%.3f,%.3f",
			      options->time, (double)start / SECOND, (double)end / SECOND);
}

struct vp_error *vp_event_options_check(struct vp_event_options *options)
{
	VP_TRY(choose_time(options));
	VP_TRY(choose_cpus(options));
	VP_TRY(vp_verb_recording(&options->operands, options->input, "vperf.data",
				 &options->directory));
	return options->time ? expect_overlap(options) : NULL;
}

void vp_event_options_deinit(struct vp_event_options *options)
{
	vp_vec_deinit(&options->pcpus);
}
