/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples in the layout of perf script: a line that says who and when, then the frames, innermost
 * first. A guest's process has its VM before it: VM/PROCESS.
 */
#include <inttypes.h>

#include "render/export.h"
#include "render/export_text.h"

#define SECOND 1000000000

struct script {
	struct vp_export_texts vms, texts;
};

static void begin(struct vp_export *export)
{
	struct script *script = export->state;

	script->vms = (struct vp_export_texts){.text = vp_export_vm, .put = vp_export_put_clean};
	script->texts =
	    (struct vp_export_texts){.text = vp_export_text, .put = vp_export_put_clean};
}

static void put_when(uint32_t pcpu, uint64_t time, struct vp_buffer *out)
{
	if (pcpu == VP_NONE) {
		vp_buffer_string(out, " [-] ");
	} else {
		vp_buffer_string(out, " [");
		vp_buffer_padded(out, pcpu, 3, '0');
		vp_buffer_string(out, "] ");
	}
	vp_buffer_padded(out, time / SECOND, 5, ' ');
	vp_buffer_string(out, ".");
	vp_buffer_padded(out, time % SECOND, 9, '0');
	vp_buffer_string(out, ":");
}

static void put_text(const struct vp_export *export, uint32_t text, const char *unknown)
{
	struct script *script = export->state;

	if (text == VP_NONE)
		vp_buffer_string(export->out, unknown);
	else
		vp_export_texts_append(&script->texts, export, text, export->out);
}

static void put_vm(const struct vp_export *export, uint32_t vm)
{
	struct script *script = export->state;

	vp_export_texts_append(&script->vms, export, vm, export->out);
	vp_buffer_string(export->out, "/");
}

static void put_who(const struct vp_export *export, const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];

	if (inner->vm != VP_NONE)
		put_vm(export, inner->vm);
	put_text(export, inner->process, "-");
	vp_buffer_string(export->out, " ");
	if (inner->pid == VP_NONE)
		vp_buffer_string(export->out, "-");
	else
		vp_buffer_count(export->out, inner->pid);
}

static void put_frame(const struct vp_export *export, const struct vp_frame *frame)
{
	vp_buffer_string(export->out, "\t");
	put_text(export, frame->function, "[unknown]");
	if (frame->module != VP_NONE) {
		vp_buffer_string(export->out, " (");
		put_text(export, frame->module, "");
		vp_buffer_string(export->out, ")");
	}
	vp_buffer_string(export->out, "\n");
}

static void put_sample(struct vp_export *export, const struct vp_sample *sample)
{
	const char *kind = vp_kind_name(sample->frames[sample->count - 1].kind);
	struct vp_buffer *out = export->out;

	put_who(export, sample);
	put_when(sample->pcpu, sample->time, out);
	vp_buffer_string(out, " ");
	vp_buffer_count(out, sample->weight);
	vp_buffer_string(out, " ");
	vp_buffer_string(out, kind ? kind : "-");
	vp_buffer_string(out, ":\n");
	for (uint32_t i = sample->count; i-- > 0;)
		put_frame(export, &sample->frames[i]);
	vp_buffer_string(out, "\n");
}

static void put_slice(struct vp_export *export, const struct vp_state_slice *slice)
{
	uint64_t ns = slice->end - slice->begin;

	put_vm(export, slice->vm);
	vp_buffer_printf(export->out, "vcpu%u -", slice->vcpu);
	put_when(slice->pcpu, slice->begin, export->out);
	vp_buffer_printf(export->out, " +%" PRIu64 ".%09" PRIu64 " %s%s%s\n\n", ns / SECOND,
			 ns % SECOND, slice->state, slice->reason ? " " : "",
			 slice->reason ? slice->reason : "");
}

static void deinit(void *state)
{
	struct script *script = state;

	vp_export_texts_deinit(&script->vms);
	vp_export_texts_deinit(&script->texts);
}

const struct vp_exporter *vp_exporter_script(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct script),
						    .begin = begin,
						    .sample = put_sample,
						    .slice = put_slice,
						    .deinit = deinit};

	return &exporter;
}
