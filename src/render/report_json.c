/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <json-c/json.h>
#include <string.h>

#include "render/report.h"
#include "timeline/exit_reason.h"

static const char *const view_names[] = {
    [VP_VIEW_HOST] = "host", [VP_VIEW_GUEST] = "guest", [VP_VIEW_UNIFIED] = "unified"};

static void add(struct json_object *object, const char *key, struct json_object *value)
{
	json_object_object_add(object, key, value);
}

static struct json_object *text_or_null(const char *text)
{
	return text ? json_object_new_string(text) : NULL;
}

static struct json_object *number_or_null(uint32_t number)
{
	return number == VP_NONE ? NULL : json_object_new_int64(number);
}

static struct json_object *reasons_json(const struct vp_profile *profile,
					const struct vp_profile_row *row)
{
	struct json_object *object = json_object_new_object();

	for (uint32_t i = 0; i < row->reasons; i++) {
		const struct vp_profile_reason *reason =
		    &profile->reasons.at[row->first_reason + i];
		char name[VP_EXIT_NAME_SIZE] = "unknown";
		if (reason->exit.known)
			vp_exit_reason_name(reason->exit.vendor, reason->exit.reason, name);
		add(object, name, json_object_new_uint64(reason->count));
	}
	return object;
}

static struct json_object *row_json(const struct vp_report *report,
				    const struct vp_profile_part *part,
				    const struct vp_profile_row *row)
{
	const struct vp_profile *profile = &report->profile;
	struct json_object *object = json_object_new_object();

	add(object, "samples", json_object_new_uint64(row->samples));
	add(object, "percent", json_object_new_double(vp_report_percent(part, row->samples)));
	add(object, "function", text_or_null(vp_profile_text(profile, row->function)));
	add(object, "module", text_or_null(vp_profile_text(profile, row->module)));
	add(object, "process", text_or_null(vp_profile_text(profile, row->process)));
	add(object, "pid", number_or_null(row->pid));
	add(object, "vm", text_or_null(row->vm == VP_NONE ? NULL : report->vms.at[row->vm].name));
	if (profile->columns & VP_COLUMN_VCPU || report->options.per_vcpu)
		add(object, "vcpu", number_or_null(row->vcpu));
	add(object, "kind", text_or_null(vp_kind_name(row->kind)));
	if (row->reasons)
		add(object, "exits", reasons_json(profile, row));
	return object;
}

static struct json_object *shares_json(const struct vp_profile_part *part)
{
	static const uint32_t order[] = {VP_KIND_OS, VP_KIND_USER, VP_KIND_IDLE, VP_KIND_STEAL,
					 VP_KIND_VM};
	struct json_object *object = json_object_new_object();

	for (size_t i = 0; i < VP_ARRAY_SIZE(order); i++)
		add(object, vp_kind_name(order[i]),
		    json_object_new_double(vp_report_percent(part, part->kinds[order[i]])));
	return object;
}

/* What is said of the whole and of each vCPU; the rows are added by the caller. */
static void add_part(struct json_object *object, const struct vp_report *report,
		     const struct vp_profile_part *part)
{
	add(object, "view", json_object_new_string(view_names[report->profile.view]));
	add(object, "vm", text_or_null(vp_report_vm(report, part)));
	add(object, "vcpu",
	    part->vcpu == VP_NONE && report->options.has_vcpu
		? json_object_new_uint64(report->options.vcpu)
		: number_or_null(part->vcpu));
	add(object, "samples", json_object_new_uint64(part->samples));
	add(object, "shares", shares_json(part));
}

/* Appends the part's rows; `whole` is what they are percents of. */
static void add_rows(struct json_object *rows, const struct vp_report *report,
		     const struct vp_profile_part *whole, const struct vp_profile_part *part)
{
	const struct vp_profile_row *row = vp_profile_rows(&report->profile, part);

	for (size_t left = vp_report_rows(report, part); left; left--, row++)
		json_object_array_add(rows, row_json(report, whole, row));
}

static struct json_object *vcpus_json(const struct vp_report *report)
{
	struct json_object *vcpus = json_object_new_array();

	vp_vec_each (&report->profile.parts, part) {
		struct json_object *vcpu = json_object_new_object();
		struct json_object *rows = json_object_new_array();
		add_part(vcpu, report, part);
		add_rows(rows, report, part, part);
		add(vcpu, "rows", rows);
		json_object_array_add(vcpus, vcpu);
	}
	return vcpus;
}

static struct json_object *routes_json(const struct vp_profile *profile)
{
	struct json_object *object = json_object_new_object();

	for (uint32_t route = 0; route < VP_ROUTES; route++)
		if (profile->routes[route])
			add(object, vp_route_name(route),
			    json_object_new_uint64(profile->routes[route]));
	return object;
}

static struct json_object *notes_json(const struct vp_report *report)
{
	struct json_object *notes = json_object_new_array();

	vp_vec_each (&report->notes, note)
		json_object_array_add(notes, json_object_new_string(*note));
	return notes;
}

/* All parts as one: the whole of a report that is split by vCPU. */
static struct vp_profile_part sum_of_parts(const struct vp_profile *profile)
{
	struct vp_profile_part sum = profile->parts.at[0];

	sum.vcpu = VP_NONE;
	for (size_t i = 1; i < profile->parts.count; i++) {
		sum.samples += profile->parts.at[i].samples;
		for (size_t kind = 0; kind < VP_KINDS; kind++)
			sum.kinds[kind] += profile->parts.at[i].kinds[kind];
	}
	return sum;
}

void vp_render_report_json(const struct vp_report *report, struct vp_buffer *out)
{
	const struct vp_profile *profile = &report->profile;
	bool split = profile->parts.at[0].vcpu != VP_NONE;
	struct vp_profile_part whole = split ? sum_of_parts(profile) : profile->parts.at[0];
	struct json_object *object = json_object_new_object();
	struct json_object *rows = json_object_new_array();

	add_part(object, report, &whole);
	vp_vec_each (&profile->parts, part)
		add_rows(rows, report, &whole, part);
	add(object, "rows", rows);
	if (split)
		add(object, "vcpus", vcpus_json(report));
	add(object, "lost", json_object_new_uint64(report->lost));
	add(object, "duration_s", json_object_new_double(report->duration));
	add(object, "period_ns", json_object_new_uint64(report->recording.period_ns));
	add(object, "interrupted", json_object_new_boolean(!report->recording.end));
	add(object, "unattributed", json_object_new_uint64(profile->unattributed));
	add(object, "routes", routes_json(profile));
	add(object, "notes", notes_json(report));
	vp_buffer_string(out,
			 json_object_to_json_string_ext(
			     object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	vp_buffer_string(out, "\n");
	json_object_put(object);
}
