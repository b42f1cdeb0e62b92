/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples in the layout of perf script: a line that says who and when, then the frames, innermost
 * first. A guest's process has its VM before it: VM/PROCESS.
 */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "render/export.h"

#define SECOND 1000000000

static void put_clean(const char *text, struct vp_buffer *out)
{
	vp_text_clean(text, strlen(text), out);
}

static void put_when(uint32_t pcpu, uint64_t time, struct vp_buffer *out)
{
	if (pcpu == VP_NONE)
		vp_buffer_string(out, " [-]");
	else
		vp_buffer_printf(out, " [%03u]", pcpu);
	vp_buffer_printf(out, " %5" PRIu64 ".%09" PRIu64 ":", time / SECOND, time % SECOND);
}

static void put_who(const struct vp_export *export, const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	const char *process = vp_export_text(export, inner->process);
	const char *vm = vp_export_vm(export, inner->vm);

	if (vm) {
		put_clean(vm, export->out);
		vp_buffer_string(export->out, "/");
	}
	put_clean(process ? process : "-", export->out);
	if (inner->pid == VP_NONE)
		vp_buffer_string(export->out, " -");
	else
		vp_buffer_printf(export->out, " %u", inner->pid);
}

static void put_sample(struct vp_export *export, const struct vp_sample *sample)
{
	const char *kind = vp_kind_name(sample->frames[sample->count - 1].kind);

	put_who(export, sample);
	put_when(sample->pcpu, sample->time, export->out);
	vp_buffer_printf(export->out, " %" PRIu64 " %s:\n", sample->weight, kind ? kind : "-");
	for (uint32_t i = sample->count; i-- > 0;) {
		const char *function = vp_export_text(export, sample->frames[i].function);
		const char *module = vp_export_text(export, sample->frames[i].module);
		vp_buffer_string(export->out, "\t");
		put_clean(function ? function : "[unknown]", export->out);
		if (module) {
			vp_buffer_string(export->out, " (");
			put_clean(module, export->out);
			vp_buffer_string(export->out, ")");
		}
		vp_buffer_string(export->out, "\n");
	}
	vp_buffer_string(export->out, "\n");
}

static void put_slice(struct vp_export *export, const struct vp_state_slice *slice)
{
	uint64_t ns = slice->end - slice->begin;

	put_clean(vp_export_vm(export, slice->vm), export->out);
	vp_buffer_printf(export->out, "/vcpu%u -", slice->vcpu);
	put_when(slice->pcpu, slice->begin, export->out);
	vp_buffer_printf(export->out, " +%" PRIu64 ".%09" PRIu64 " %s%s%s\n\n", ns / SECOND,
			 ns % SECOND, slice->state, slice->reason ? " " : "",
			 slice->reason ? slice->reason : "");
}

const struct vp_exporter *vp_exporter_script(void)
{
	static const struct vp_exporter exporter = {.sample = put_sample, .slice = put_slice};

	return &exporter;
}
