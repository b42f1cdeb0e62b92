/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "render/report.h"
#include "render/table.h"

/* A frame may not hold what separates frames, nor end a line. */
static void put_frame(const char *text, struct vp_buffer *out)
{
	for (;;) {
		size_t plain = strcspn(text, ";\n");
		vp_buffer_append(out, text, plain);
		if (!text[plain])
			return;
		vp_buffer_string(out, ":");
		text += plain + 1;
	}
}

static bool is_code(const struct vp_profile_row *row)
{
	return row->kind == VP_KIND_OS || row->kind == VP_KIND_USER || row->kind == VP_NONE;
}

/* The machine and the process, which are those of the outermost frame. */
static void put_start(const struct vp_report *report, const struct vp_profile_row *row,
		      struct vp_buffer *out)
{
	const char *process = vp_profile_text(&report->profile, row->process);

	if (row->kind == VP_KIND_VM || row->vm == VP_NONE) {
		vp_buffer_string(out, "host");
	} else {
		vp_buffer_string(out, "[");
		put_frame(report->vms.at[row->vm].name, out);
		vp_buffer_string(out, "]");
	}
	if (is_code(row)) {
		vp_buffer_string(out, ";");
		put_frame(process ? process : "[unknown]", out);
	}
}

static void put_function(const struct vp_profile *profile, const struct vp_profile_row *row,
			 struct vp_buffer *out)
{
	const char *function = vp_profile_text(profile, row->function);

	vp_buffer_string(out, ";");
	put_frame(function ? function : "[unknown]", out);
	vp_buffer_string(out, row->kind == VP_KIND_OS ? "_[k]" : "");
}

static void put_stack(const struct vp_report *report, const uint32_t *rows, uint32_t count,
		      uint64_t samples, struct vp_buffer *out)
{
	const struct vp_profile *profile = &report->profile;

	put_start(report, &profile->rows.at[rows[0]], out);
	for (uint32_t i = 0; i < count; i++)
		put_function(profile, &profile->rows.at[rows[i]], out);
	vp_buffer_string(out, " ");
	vp_buffer_count(out, samples);
	vp_buffer_string(out, "\n");
}

static void put_stacks(const struct vp_report *report, struct vp_buffer *out)
{
	const struct vp_profile *profile = &report->profile;
	uint32_t rows[VP_CALL_PATH_MAX];

	for (uint32_t node = 0; node < profile->nodes.count; node++) {
		uint64_t samples = profile->nodes.at[node].samples;
		uint32_t count = samples ? vp_call_path(profile, node, rows, VP_CALL_PATH_MAX) : 0;
		if (count)
			put_stack(report, rows, count, samples, out);
	}
}

void vp_render_report_folded(const struct vp_report *report, struct vp_buffer *out)
{
	if (report->options.chains) {
		put_stacks(report, out);
		return;
	}
	vp_vec_each (&report->profile.parts, part) {
		uint32_t row = (uint32_t)part->first_row;
		for (size_t left = vp_report_rows(report, part); left; left--, row++)
			if (report->profile.rows.at[row].samples)
				put_stack(report, &row, 1, report->profile.rows.at[row].samples,
					  out);
	}
}
