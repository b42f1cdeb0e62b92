/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf stat -e and -I: makes a recipe from options with the syntax of perf stat. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/options.h"
#include "cmd/host/cmd_stat.h"
#include "schema/event.h"
#include "schema/recipe.h"

/* The next name; commas within PMU/…/ and {…} do not separate. Braces are removed. */
static struct vp_slice next_name(const char **text, bool *in_set)
{
	bool within = false;

	*in_set |= **text == '{';
	*text += **text == '{';
	struct vp_slice name = {*text, 0};
	for (; **text && (within || !strchr(",}", **text)); ++*text)
		within ^= **text == '/';
	name.size = (size_t)(*text - name.bytes);
	return name;
}

static struct vp_error *unknown_event(struct vp_slice name)
{
	VP_AUTO_FREE char *sentence = vp_event_unknown(name);

	return vp_error_usage("option --event: %s", sentence);
}

static struct vp_error *take_event_name(struct vp_slice name, const char *events,
					struct vp_buffer *text)
{
	struct vp_event event;

	if (!name.size)
		return vp_error_usage(
		    "option --event: expected events separated by commas, not '%s'", events);
	if (!vp_event_find(name, &event))
		return unknown_event(name);
	vp_buffer_printf(text, " %.*s", (int)name.size, name.bytes);
	return NULL;
}

/* Writes a line per event, or per set: {EVENT,EVENT}. */
static struct vp_error *stat_events_take_events(const char *events, struct vp_buffer *text)
{
	bool in_set = false, was_in_set = false;

	for (const char *next = events;; next++) {
		struct vp_slice name = next_name(&next, &in_set);
		if (!was_in_set)
			vp_buffer_string(text, in_set ? "\nset" : "\ncount");
		VP_TRY(take_event_name(name, events, text));
		if (*next == '}' && in_set) {
			in_set = false;
			next++;
		}
		was_in_set = in_set;
		if (!*next)
			break;
		if (*next != ',')
			return vp_error_usage("option --event: expected ',' before '%s'", next);
	}
	return in_set ? vp_error_usage("option --event: expected '}' at the end of '%s'", events)
		      : NULL;
}

struct vp_error *vp_stat_recipe(const struct vp_stat_options *options, struct vp_recipe *ret)
{
	const char *interval = options->interval;
	struct vp_buffer text = {0};
	struct vp_error *error = NULL;

	uint64_t ns;

	if (interval && strspn(interval, "0.") && !interval[strspn(interval, "0.nums")])
		error = vp_error_usage("option --interval: expected a time above 0 such as 10ms, "
				       "not '%s'",
				       interval);
	else if (interval && !interval[strspn(interval, "0123456789")])
		vp_buffer_printf(&text, "interval time %sms", interval);
	else if (interval && interval[0] >= '0' && interval[0] <= '9' &&
		 vp_option_read_time(interval, &ns))
		vp_buffer_printf(&text, "interval time %" PRIu64 "ns", ns);
	else if (interval && (interval[0] < 'a' || interval[0] > 'z'))
		error = vp_error_usage("option --interval: '%s' is not an interval (examples: 10, "
				       "10ms, 0.5s, 'exits 1000')",
				       interval);
	else if (interval)
		vp_buffer_printf(&text, "interval %s", interval);
	vp_vec_each (&options->events, events)
		if (!error)
			error = stat_events_take_events(*events, &text);
	if (!error)
		error = vp_recipe_parse("the options", text.bytes, text.size, ret);
	vp_buffer_deinit(&text);
	return error;
}
