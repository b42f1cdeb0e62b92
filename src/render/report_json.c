/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>

#include "analyze/profile/call_tree.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/profile.h"
#include "analyze/profile/resolve.h"
#include "analyze/profile/stack.h"
#include "analyze/profile/totals.h"
#include "analyze/profile/view.h"
#include "analyze/report/report.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/vec.h"
#include "render/render_report.h"
#include "schema/exit_reason.h"
#include "store/recording.h"

static void put_row_number(struct vp_json *json, const char *key, uint32_t number)
{
	if (number == VP_NONE)
		vp_json_null(json, key);
	else
		vp_json_count(json, key, number);
}

static void report_json_put_shares(const struct vp_profile_part *part, struct vp_json *json)
{
	static const uint32_t order[] = {VP_KIND_KERNEL, VP_KIND_USER, VP_KIND_IDLE, VP_KIND_STEAL,
					 VP_KIND_VM};

	vp_json_object(json, "shares");
	/* The key up to 0.2. */
	vp_json_double(json, "os", vp_report_percent(part, part->kinds[VP_KIND_KERNEL]));
	for (size_t i = 0; i < VP_ARRAY_SIZE(order); i++)
		vp_json_double(json, vp_kind_name(order[i]),
			       vp_report_percent(part, part->kinds[order[i]]));
	vp_json_object_end(json);
}

/* Members of the total or of one vCPU, before the rows. */
static void report_json_put_part(const struct vp_report *report, const struct vp_profile_part *part,
				 struct vp_json *json)
{
	vp_json_text(json, "view", vp_view_of(report->profile.view)->name);
	vp_json_text(json, "vm", vp_report_vm(report, part));
	if (part->vcpu == VP_NONE && report->options.has_vcpu)
		vp_json_count(json, "vcpu", report->options.vcpu);
	else
		put_row_number(json, "vcpu", part->vcpu);
	vp_json_count(json, vp_report_weight_key(report), part->samples);
	report_json_put_shares(part, json);
}

/* There are many rows, and most have as many samples as the row above: the text of the percentage
 * is cached. */
struct percent {
	const struct vp_profile_part *whole;
	uint64_t samples;
	char text[32];
};

static const char *report_json_percent_of(struct percent *percent, uint64_t samples)
{
	if (samples != percent->samples || !percent->text[0])
		snprintf(percent->text, sizeof(percent->text), "%.9g",
			 vp_report_percent(percent->whole, samples));
	percent->samples = samples;
	return percent->text;
}

static void report_json_put_exits(const struct vp_profile *profile,
				  const struct vp_profile_row *row, struct vp_json *json)
{
	vp_json_object(json, "exits");
	for (uint32_t i = 0; i < row->reasons; i++) {
		const struct vp_profile_reason *reason =
		    &profile->reasons.at[row->first_reason + i];
		char name[VP_EXIT_NAME_SIZE];
		vp_json_count(json,
			      reason->exit.known ? vp_exit_reason_name(reason->exit.vendor,
								       reason->exit.reason, name)
						 : "unknown",
			      reason->count);
	}
	vp_json_object_end(json);
}

static void report_json_put_row(const struct vp_report *report, const struct vp_profile_row *row,
				struct percent *percent, struct vp_json *json)
{
	const struct vp_profile *profile = &report->profile;

	vp_json_object(json, NULL);
	vp_json_count(json, vp_report_weight_key(report), row->samples);
	vp_json_raw(json, "percent", report_json_percent_of(percent, row->samples));
	if (report->options.chains)
		vp_json_count(json, "total", row->total);
	vp_json_text(json, "function", vp_profile_text(profile, row->function));
	vp_json_text(json, "module", vp_profile_text(profile, row->module));
	vp_json_text(json, "process", vp_profile_text(profile, row->process));
	put_row_number(json, "pid", row->pid);
	vp_json_text(json, "vm", row->vm == VP_NONE ? NULL : report->vms.at[row->vm].name);
	if (profile->columns & VP_COLUMN_VCPU || report->options.per_vcpu)
		put_row_number(json, "vcpu", row->vcpu);
	vp_json_text(json, "kind", vp_kind_name(row->kind));
	if (row->reasons)
		report_json_put_exits(profile, row, json);
	vp_json_object_end(json);
}

/* Percentages of rows are relative to `whole`. */
static void report_json_put_rows(const struct vp_report *report,
				 const struct vp_profile_part *whole,
				 const struct vp_profile_part *parts, size_t n_parts,
				 struct vp_json *json)
{
	struct percent percent = {.whole = whole};

	vp_json_array(json, "rows");
	for (size_t i = 0; i < n_parts; i++) {
		const struct vp_profile_row *row = vp_profile_rows(&report->profile, &parts[i]);
		for (size_t left = vp_report_rows(report, &parts[i]); left; left--, row++)
			report_json_put_row(report, row, &percent, json);
	}
	vp_json_array_end(json);
}

static void report_json_put_vcpus(const struct vp_report *report, struct vp_json *json)
{
	vp_json_array(json, "vcpus");
	vp_vec_each (&report->profile.parts, part) {
		vp_json_object(json, NULL);
		report_json_put_part(report, part, json);
		report_json_put_rows(report, part, part, 1, json);
		vp_json_object_end(json);
	}
	vp_json_array_end(json);
}

static void report_json_put_routes(const struct vp_profile *profile, const char *key,
				   struct vp_json *json)
{
	vp_json_object(json, key);
	for (uint32_t route = 0; route < VP_ROUTES; route++)
		if (profile->routes[route])
			vp_json_count(json, vp_route_name(route), profile->routes[route]);
	vp_json_object_end(json);
}

static void report_json_put_stack(const struct vp_report *report, uint32_t node,
				  struct vp_json *json)
{
	const struct vp_profile *profile = &report->profile;
	uint32_t rows[VP_CALL_PATH_MAX];
	uint32_t count = vp_call_path(profile, node, rows, VP_CALL_PATH_MAX);
	const struct vp_profile_row *outermost = &profile->rows.at[rows[0]];

	vp_json_object(json, NULL);
	vp_json_count(json, vp_report_weight_key(report), profile->nodes.at[node].samples);
	vp_json_text(json, "vm",
		     outermost->vm == VP_NONE ? NULL : report->vms.at[outermost->vm].name);
	vp_json_text(json, "process", vp_profile_text(profile, outermost->process));
	put_row_number(json, "pid", outermost->pid);
	vp_json_array(json, "frames");
	for (uint32_t i = 0; i < count; i++)
		vp_json_text(json, NULL,
			     vp_profile_text(profile, profile->rows.at[rows[i]].function));
	vp_json_array_end(json);
	vp_json_object_end(json);
}

/* Each distinct stack, frames outermost first. */
static void put_stacks(const struct vp_report *report, struct vp_json *json)
{
	const struct vp_profile *profile = &report->profile;

	vp_json_array(json, "stacks");
	for (uint32_t node = 0; node < profile->nodes.count; node++)
		if (profile->nodes.at[node].samples)
			report_json_put_stack(report, node, json);
	vp_json_array_end(json);
}

static void put_walks(const struct vp_profile *profile, const char *key, struct vp_json *json)
{
	static const char *const keys[] = {[VP_WALK_GUEST_USER] = "guest_user",
					   [VP_WALK_GUEST_KERNEL] = "guest_kernel",
					   [VP_WALK_HOST] = "host"};

	vp_json_object(json, key);
	for (uint32_t walk = 0; walk < VP_WALKS; walk++) {
		vp_json_object(json, keys[walk]);
		for (uint32_t end = 0; end < VP_WALK_ENDS; end++)
			if (profile->walks[walk][end])
				vp_json_count(json, vp_walk_end_name(end),
					      profile->walks[walk][end]);
		vp_json_object_end(json);
	}
	vp_json_object_end(json);
}

/* The sum of all vCPUs, for a report that is split by vCPU. */
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

static void put_notes(const struct vp_report *report, struct vp_json *json)
{
	vp_json_array(json, "notes");
	vp_vec_each (&report->notes, note)
		vp_json_text(json, NULL, *note);
	vp_json_array_end(json);
}

void vp_render_report_json(const struct vp_report *report, bool colour, struct vp_buffer *out)
{
	const struct vp_profile *profile = &report->profile;
	bool split = profile->parts.at[0].vcpu != VP_NONE;
	struct vp_profile_part whole = split ? sum_of_parts(profile) : profile->parts.at[0];
	struct vp_json json = vp_json_to(out);

	vp_json_pretty(&json, true);
	vp_json_answer(&json);
	report_json_put_part(report, &whole, &json);
	report_json_put_rows(report, &whole, profile->parts.at, profile->parts.count, &json);
	if (split)
		report_json_put_vcpus(report, &json);
	vp_json_count(&json, "lost", report->lost);
	vp_json_double(&json, "duration_s", report->duration);
	vp_json_count(&json, "period_ns", report->recording.period_ns);
	vp_json_bool(&json, "interrupted", !report->recording.end);
	vp_json_text(&json, "unit", vp_recording_unit(&report->recording));
	vp_json_count(&json, "samples_taken", profile->counts.samples);
	vp_json_count(&json, "ticks", profile->counts.ticks);
	vp_json_count(&json, "late_ticks", profile->counts.late);
	/* Old keys, for one more release. */
	vp_json_count(&json, "unresolved", profile->unattributed);
	vp_json_count(&json, "unattributed", profile->unattributed);
	report_json_put_routes(profile, "attribution", &json);
	report_json_put_routes(profile, "routes", &json);
	if (report->options.chains) {
		put_walks(profile, "stack_ends", &json);
		put_walks(profile, "walks", &json);
		put_stacks(report, &json);
	}
	put_notes(report, &json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}
