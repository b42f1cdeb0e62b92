/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "selftest/facts.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"

static const char *facts_text_of(struct json_object *object, const char *key)
{
	struct json_object *member;

	return json_object_object_get_ex(object, key, &member) ? json_object_get_string(member)
							       : NULL;
}

static double facts_number_of(struct json_object *object, const char *key)
{
	struct json_object *member;

	return json_object_object_get_ex(object, key, &member) ? json_object_get_double(member) : 0;
}

static bool is(struct json_object *object, const char *key, const char *value)
{
	const char *text = facts_text_of(object, key);

	return text && !strcmp(text, value);
}

/* Element `number` of the array in member `key`; with NULL, of the object itself. */
static struct json_object *element(struct json_object *object, const char *key, size_t number)
{
	struct json_object *array = object;

	if (key && !json_object_object_get_ex(object, key, &array))
		return NULL;
	return json_object_is_type(array, json_type_array) &&
		       number < json_object_array_length(array)
		   ? json_object_array_get_idx(array, number)
		   : NULL;
}

#define each_element(object, key, row)                                                             \
	for (struct json_object *row = element(object, key, 0), *row##_more = row; row##_more;     \
	     row##_more = NULL)                                                                    \
		for (size_t row##_number = 0; (row = element(object, key, row##_number)) != NULL;  \
		     row##_number++)

void vp_facts_take_check(struct vp_selftest_facts *facts, struct json_object *check)
{
	const struct {
		const char *name;
		char **missing;
	} features[] = {{"sampling programs", &facts->no_samples},
			{"accounting programs", &facts->no_account},
			{"guest RIP", &facts->no_rips},
			{"hardware counter", &facts->no_counter}};

	each_element(check, "features", probe) for (size_t i = 0; i < VP_ARRAY_SIZE(features); i++)
	{
		if (!is(probe, "name", features[i].name) || !is(probe, "found", "false"))
			continue;
		const char *detail = facts_text_of(probe, "detail");
		free(*features[i].missing);
		*features[i].missing = vp_strdup(detail ? detail : "not found");
	}
}

void vp_facts_take_info(struct vp_selftest_recording *recording, struct json_object *info)
{
	const char *trigger = facts_text_of(info, "trigger");

	free(recording->trigger);
	recording->trigger = vp_strdup(trigger ? trigger : "none");
	recording->period_ns = facts_number_of(info, "period_ns");
	recording->by_time = is(info, "unit", "ns");
	recording->lost = facts_number_of(info, "lost") + facts_number_of(info, "account_lost");
}

void vp_facts_take_report(struct vp_selftest_recording *recording, const char *vm,
			  struct json_object *report)
{
	recording->late = facts_number_of(report, "late_ticks");
	recording->ticks = facts_number_of(report, "ticks");
}

void vp_facts_take_sample(struct vp_selftest_recording *recording, const char *vm,
			  struct json_object *sample)
{
	struct json_object *frames, *frame;

	if (!is(sample, "type", "sample") || !is(sample, "vm", vm) ||
	    !json_object_object_get_ex(sample, "frames", &frames) ||
	    !json_object_is_type(frames, json_type_array))
		return;
	size_t count = json_object_array_length(frames);
	double ns =
	    facts_number_of(sample, "weight") * (recording->by_time ? 1 : recording->period_ns);
	frame = count ? json_object_array_get_idx(frames, count - 1) : NULL;
	const char *function = frame ? facts_text_of(frame, "function") : NULL;
	if (!function)
		function = "";
	bool hot = !strcmp(function, VP_GUEST_HOT), cold = !strcmp(function, VP_GUEST_COLD);
	recording->samples++;
	recording->sampled_ns += ns;
	recording->named_ns += strncmp(function, "selftest_", 9) ? 0 : ns;
	recording->hot_ns += hot ? ns : 0;
	recording->cold_ns += cold ? ns : 0;
	if (!hot && !cold)
		return;
	uint64_t time = 0;
	struct json_object *member;
	if (json_object_object_get_ex(sample, "time_ns", &member))
		time = json_object_get_uint64(member);
	if (!recording->first || time < recording->first)
		recording->first = time;
	if (time > recording->last)
		recording->last = time;
}

void vp_facts_take_account(struct vp_selftest_recording *recording, const char *vm,
			   struct json_object *account)
{
	const struct {
		const char *name;
		double *ns;
	} states[] = {
	    {"guest", &recording->guest},         {"kernel", &recording->kernel},
	    {"poll", &recording->poll},           {"vmm", &recording->vmm},
	    {"halted", &recording->halted},       {"waiting", &recording->waiting},
	    {"waking", &recording->waking},       {"preempted", &recording->preempted},
	    {"throttled", &recording->throttled}, {"interrupted", &recording->interrupted}};

	each_element(account, "states", row)
	{
		if (!is(row, "vm", vm))
			continue;
		recording->states += facts_number_of(row, "ns");
		for (size_t i = 0; i < VP_ARRAY_SIZE(states); i++)
			if (is(row, "state", states[i].name))
				*states[i].ns += facts_number_of(row, "ns");
	}
	each_element(account, "vcpus", row) if (is(row, "vm", vm)) recording->wall +=
	    facts_number_of(row, "wall_ns");
}

static bool is_reason(const struct vp_guest_exit_kind *kind, const char *reason)
{
	for (size_t i = 0; reason && i < VP_ARRAY_SIZE(kind->reasons) && kind->reasons[i]; i++)
		if (!strcmp(kind->reasons[i], reason))
			return true;
	return false;
}

/* The guest function of a row, which has only its address: the guest has no symbols there. */
static const char *function_of(struct json_object *row)
{
	const char *text = facts_text_of(row, "function");

	if (!text || strncmp(text, "0x", 2))
		return text;
	return vp_guest_function(strtoull(text, NULL, 16));
}

void vp_facts_take_exits(struct vp_selftest_recording *recording, const char *vm,
			 struct json_object *exits)
{
	each_element(exits, "exits", row)
	{
		double count = facts_number_of(row, "count");
		if (!is(row, "vm", vm))
			continue;
		recording->exits += count;
		for (int i = 0; i < VP_GUEST_EXITS; i++) {
			const struct vp_guest_exit_kind *kind =
			    vp_guest_exit_kind((enum vp_guest_exit)i);
			if (!kind->check || !is_reason(kind, facts_text_of(row, "reason")))
				continue;
			recording->by_reason[i] += count;
			const char *function = function_of(row);
			if (function && !strcmp(function, kind->function))
				recording->by_function[i] += count;
		}
	}
}

void vp_facts_take_steal(struct vp_selftest_recording *recording, const char *vm, const char *thief,
			 struct json_object *steal)
{
	each_element(steal, "thieves", row) if (is(row, "vm", vm) && is(row, "thief", thief))
	    recording->stolen_by_thief += facts_number_of(row, "ns");
}

bool vp_facts_records_nothing(const struct vp_selftest_facts *facts)
{
	return facts->no_samples && facts->no_account;
}

void vp_facts_deinit(struct vp_selftest_facts *facts)
{
	free(facts->no_samples);
	free(facts->no_account);
	free(facts->no_rips);
	free(facts->no_counter);
	free(facts->quiet_recording.trigger);
	free(facts->shared_recording.trigger);
}
