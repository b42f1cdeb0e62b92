/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "render/report.h"
#include "render/table.h"
#include "timeline/exit_reason.h"

static const char *const view_names[] = {
    [VP_VIEW_HOST] = "host", [VP_VIEW_GUEST] = "guest", [VP_VIEW_UNIFIED] = "unified"};

enum { PERCENT_SIZE = 32 };

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

/* The rows of parts, as an array that writes itself: there may be a hundred thousand, and json-c
 * would need a dozen objects for each. */
struct rows {
	const struct vp_report *report;
	struct vp_profile_part whole; /* what they are percents of */
	const struct vp_profile_part *parts;
	size_t n_parts;
	struct vp_buffer out;
	int level;                  /* of indentation */
	uint64_t samples;           /* of the row before: most often the next has as many, … */
	char percent[PERCENT_SIZE]; /* … so the text is the same */
};

static void put_quoted(const char *text, struct vp_buffer *out)
{
	vp_buffer_string(out, "\"");
	while (*text) {
		size_t plain = 0;
		while ((unsigned char)text[plain] >= ' ' && text[plain] != '"' &&
		       text[plain] != '\\')
			plain++;
		vp_buffer_append(out, text, plain);
		text += plain;
		if (*text == '"' || *text == '\\')
			vp_buffer_printf(out, "\\%c", *text++);
		else if (*text)
			vp_buffer_printf(out, "\\u%04x", (unsigned char)*text++);
	}
	vp_buffer_string(out, "\"");
}

static void put_line(struct rows *rows, int level, const char *before)
{
	vp_buffer_string(&rows->out, before);
	memset(vp_buffer_extend(&rows->out, 2 * (size_t)level), ' ', 2 * (size_t)level);
}

/* Begins a member of a row, after the one before. */
static void put_key(struct rows *rows, const char *key)
{
	put_line(rows, rows->level + 2, ",\n");
	put_quoted(key, &rows->out);
	vp_buffer_string(&rows->out, ":");
}

static void put_text(struct rows *rows, const char *key, const char *text)
{
	put_key(rows, key);
	if (text)
		put_quoted(text, &rows->out);
	else
		vp_buffer_string(&rows->out, "null");
}

static void put_number(struct rows *rows, const char *key, uint32_t number)
{
	put_key(rows, key);
	if (number == VP_NONE)
		vp_buffer_string(&rows->out, "null");
	else
		vp_render_count(number, &rows->out);
}

static void put_exits(struct rows *rows, const struct vp_profile_row *row)
{
	put_key(rows, "exits");
	for (uint32_t i = 0; i < row->reasons; i++) {
		const struct vp_profile_reason *reason =
		    &rows->report->profile.reasons.at[row->first_reason + i];
		char name[VP_EXIT_NAME_SIZE];
		put_line(rows, rows->level + 3, i ? ",\n" : "{\n");
		put_quoted(reason->exit.known
			       ? vp_exit_reason_name(reason->exit.vendor, reason->exit.reason, name)
			       : "unknown",
			   &rows->out);
		vp_buffer_string(&rows->out, ":");
		vp_render_count(reason->count, &rows->out);
	}
	put_line(rows, rows->level + 2, "\n");
	vp_buffer_string(&rows->out, "}");
}

static void put_row(struct rows *rows, const struct vp_profile_row *row)
{
	const struct vp_report *report = rows->report;
	const struct vp_profile *profile = &report->profile;

	put_line(rows, rows->level + 1, "");
	put_line(rows, rows->level + 2, "{\n");
	vp_buffer_string(&rows->out, "\"samples\":");
	vp_render_count(row->samples, &rows->out);
	if (row->samples != rows->samples)
		snprintf(rows->percent, sizeof(rows->percent), "%.9g",
			 vp_report_percent(&rows->whole, row->samples));
	rows->samples = row->samples;
	put_key(rows, "percent");
	vp_buffer_string(&rows->out, rows->percent);
	if (report->options.chains) {
		put_key(rows, "total");
		vp_render_count(row->total, &rows->out);
	}
	put_text(rows, "function", vp_profile_text(profile, row->function));
	put_text(rows, "module", vp_profile_text(profile, row->module));
	put_text(rows, "process", vp_profile_text(profile, row->process));
	put_number(rows, "pid", row->pid);
	put_text(rows, "vm", row->vm == VP_NONE ? NULL : report->vms.at[row->vm].name);
	if (profile->columns & VP_COLUMN_VCPU || report->options.per_vcpu)
		put_number(rows, "vcpu", row->vcpu);
	put_text(rows, "kind", vp_kind_name(row->kind));
	if (row->reasons)
		put_exits(rows, row);
	put_line(rows, rows->level + 1, "\n");
	vp_buffer_string(&rows->out, "}");
}

static int put_rows(struct json_object *array, struct printbuf *text, int level, int flags)
{
	struct rows *rows = json_object_get_userdata(array);
	const char *before = "[\n";

	rows->out.size = 0;
	rows->samples = UINT64_MAX;
	rows->level = level;
	for (size_t i = 0; i < rows->n_parts; i++) {
		const struct vp_profile_part *part = &rows->parts[i];
		const struct vp_profile_row *row = vp_profile_rows(&rows->report->profile, part);
		for (size_t left = vp_report_rows(rows->report, part); left; left--, row++) {
			vp_buffer_string(&rows->out, before);
			put_row(rows, row);
			before = ",\n";
		}
	}
	put_line(rows, level, before[0] == '[' ? before : "\n");
	vp_buffer_string(&rows->out, "]");
	return printbuf_memappend(text, rows->out.bytes, (int)rows->out.size);
}

static void rows_free(struct json_object *array, void *userdata)
{
	struct rows *rows = userdata;

	vp_buffer_deinit(&rows->out);
	free(rows);
}

/* `whole` is what the rows of `parts` are percents of. */
static struct json_object *rows_json(const struct vp_report *report,
				     const struct vp_profile_part *whole,
				     const struct vp_profile_part *parts, size_t n_parts)
{
	struct json_object *array = json_object_new_array();
	struct rows *rows = vp_alloc(sizeof(*rows));

	*rows =
	    (struct rows){.report = report, .whole = *whole, .parts = parts, .n_parts = n_parts};
	json_object_set_serializer(array, put_rows, rows, rows_free);
	return array;
}

static struct json_object *vcpus_json(const struct vp_report *report)
{
	struct json_object *vcpus = json_object_new_array();

	vp_vec_each (&report->profile.parts, part) {
		struct json_object *vcpu = json_object_new_object();
		add_part(vcpu, report, part);
		add(vcpu, "rows", rows_json(report, part, part, 1));
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

/* Every stack, its frames from the outermost on. */
static struct json_object *stacks_json(const struct vp_report *report)
{
	const struct vp_profile *profile = &report->profile;
	struct json_object *stacks = json_object_new_array();
	uint32_t rows[VP_CALL_PATH_MAX];

	for (uint32_t node = 0; node < profile->nodes.count; node++) {
		if (!profile->nodes.at[node].samples)
			continue;
		struct json_object *stack = json_object_new_object();
		struct json_object *frames = json_object_new_array();
		uint32_t count = vp_call_path(profile, node, rows, VP_CALL_PATH_MAX);
		for (uint32_t i = 0; i < count; i++) {
			const char *name =
			    vp_profile_text(profile, profile->rows.at[rows[i]].function);
			json_object_array_add(frames, text_or_null(name));
		}
		const struct vp_profile_row *outermost = &profile->rows.at[rows[0]];
		add(stack, "samples", json_object_new_uint64(profile->nodes.at[node].samples));
		add(stack, "vm",
		    text_or_null(outermost->vm == VP_NONE ? NULL
							  : report->vms.at[outermost->vm].name));
		add(stack, "process", text_or_null(vp_profile_text(profile, outermost->process)));
		add(stack, "pid", number_or_null(outermost->pid));
		add(stack, "frames", frames);
		json_object_array_add(stacks, stack);
	}
	return stacks;
}

static struct json_object *walks_json(const struct vp_profile *profile)
{
	static const char *const keys[] = {[VP_WALK_GUEST_USER] = "guest_user",
					   [VP_WALK_GUEST_KERNEL] = "guest_kernel",
					   [VP_WALK_HOST] = "host"};
	struct json_object *object = json_object_new_object();

	for (uint32_t walk = 0; walk < VP_WALKS; walk++) {
		struct json_object *ends = json_object_new_object();
		for (uint32_t end = 0; end < VP_WALK_ENDS; end++)
			if (profile->walks[walk][end])
				add(ends, vp_walk_end_name(end),
				    json_object_new_uint64(profile->walks[walk][end]));
		add(object, keys[walk], ends);
	}
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

	add_part(object, report, &whole);
	add(object, "rows", rows_json(report, &whole, profile->parts.at, profile->parts.count));
	if (split)
		add(object, "vcpus", vcpus_json(report));
	add(object, "lost", json_object_new_uint64(report->lost));
	add(object, "duration_s", json_object_new_double(report->duration));
	add(object, "period_ns", json_object_new_uint64(report->recording.period_ns));
	add(object, "interrupted", json_object_new_boolean(!report->recording.end));
	add(object, "ticks", json_object_new_uint64(profile->ticks));
	add(object, "late_ticks", json_object_new_uint64(profile->late));
	add(object, "unattributed", json_object_new_uint64(profile->unattributed));
	add(object, "routes", routes_json(profile));
	if (report->options.chains) {
		add(object, "walks", walks_json(profile));
		add(object, "stacks", stacks_json(report));
	}
	add(object, "notes", notes_json(report));
	vp_buffer_string(out,
			 json_object_to_json_string_ext(
			     object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	vp_buffer_string(out, "\n");
	json_object_put(object);
}
