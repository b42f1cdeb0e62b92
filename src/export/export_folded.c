/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One line per stack, in the format of flame graph tools. */
#include <string.h>

#include "analyze/profile/frame.h"
#include "analyze/report/export.h"
#include "analyze/report/export_queue.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "base/text.h"
#include "export/exporters.h"

/* Replaces separators of frames, and control characters that a terminal would interpret. */
static void export_folded_put_frame(const char *name, struct vp_buffer *out)
{
	VP_AUTO_FREE char *clean = vp_text_cleaned(name);
	const char *text = clean;

	for (;;) {
		size_t plain = strcspn(text, ";");
		vp_buffer_append(out, text, plain);
		if (!text[plain])
			return;
		vp_buffer_string(out, ":");
		text += plain + 1;
	}
}

static bool is_code(const struct vp_frame *frame)
{
	return frame->kind == VP_KIND_KERNEL || frame->kind == VP_KIND_USER ||
	       frame->kind == VP_NONE;
}

/* The machine and process of the outermost frame. */
static void export_folded_put_start(const struct vp_export *export, const struct vp_frame *frame)
{
	const char *process = vp_export_text(export, frame->process);

	if (frame->kind == VP_KIND_VM || frame->vm == VP_NONE) {
		vp_buffer_string(export->out, "host");
	} else {
		vp_buffer_string(export->out, "[");
		export_folded_put_frame(vp_export_vm(export, frame->vm), export->out);
		vp_buffer_string(export->out, "]");
	}
	if (is_code(frame)) {
		vp_buffer_string(export->out, ";");
		export_folded_put_frame(process ? process : "[unknown]", export->out);
	}
}

static void export_folded_put_function(const struct vp_export *export, const struct vp_frame *frame)
{
	const char *function = vp_export_text(export, frame->function);

	vp_buffer_string(export->out, ";");
	export_folded_put_frame(function ? function : "[unknown]", export->out);
	vp_buffer_string(export->out, frame->kind == VP_KIND_KERNEL ? "_[k]" : "");
}

static void export_folded_put_stack(struct vp_export *export, const struct vp_sample *sample)
{
	export_folded_put_start(export, &sample->frames[0]);
	for (uint32_t i = 0; i < sample->count; i++)
		export_folded_put_function(export, &sample->frames[i]);
	vp_buffer_string(export->out, " ");
	vp_buffer_count(export->out, sample->weight);
	vp_buffer_string(export->out, "\n");
}

const struct vp_exporter *vp_exporter_folded(void)
{
	static const struct vp_exporter exporter = {
	    .totals = true,
	    .columns = VP_COLUMN_FUNCTION | VP_COLUMN_MODULE | VP_COLUMN_PROCESS | VP_COLUMN_VM,
	    .sample = export_folded_put_stack};

	return &exporter;
}
