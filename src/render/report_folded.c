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

static void put_row(const struct vp_report *report, const struct vp_profile_row *row,
		    struct vp_buffer *out)
{
	const struct vp_profile *profile = &report->profile;
	const char *process = vp_profile_text(profile, row->process);
	const char *function = vp_profile_text(profile, row->function);

	if (row->kind == VP_KIND_VM || row->vm == VP_NONE) {
		vp_buffer_string(out, "host;");
	} else {
		vp_buffer_string(out, "[");
		put_frame(report->vms.at[row->vm].name, out);
		vp_buffer_string(out, "];");
	}
	if (row->kind == VP_KIND_OS || row->kind == VP_KIND_USER || row->kind == VP_NONE) {
		put_frame(process ? process : "[unknown]", out);
		vp_buffer_string(out, ";");
	}
	put_frame(function ? function : "[unknown]", out);
	vp_buffer_string(out, row->kind == VP_KIND_OS ? "_[k]" : "");
	vp_buffer_string(out, " ");
	vp_render_count(row->samples, out);
	vp_buffer_string(out, "\n");
}

void vp_render_report_folded(const struct vp_report *report, struct vp_buffer *out)
{
	vp_vec_each (&report->profile.parts, part) {
		const struct vp_profile_row *row = vp_profile_rows(&report->profile, part);
		for (size_t left = vp_report_rows(report, part); left; left--, row++)
			if (row->samples)
				put_row(report, row, out);
	}
}
