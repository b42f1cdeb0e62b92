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
	struct vp_export_texts vms, processes, functions, modules;
};

static void put_vm(const char *name, struct vp_buffer *out)
{
	vp_export_put_clean(name, out);
	vp_buffer_string(out, "/");
}

static void put_module(const char *name, struct vp_buffer *out)
{
	vp_buffer_string(out, " (");
	vp_export_put_clean(name, out);
	vp_buffer_string(out, ")");
}

static void begin(struct vp_export *export)
{
	struct script *script = export->state;

	script->vms = (struct vp_export_texts){.text = vp_export_vm, .put = put_vm, .unknown = ""};
	script->processes = (struct vp_export_texts){
	    .text = vp_export_text, .put = vp_export_put_clean, .unknown = "-"};
	script->functions = (struct vp_export_texts){
	    .text = vp_export_text, .put = vp_export_put_clean, .unknown = "[unknown]"};
	script->modules =
	    (struct vp_export_texts){.text = vp_export_text, .put = put_module, .unknown = ""};
}

/* Of a sample's lines, and of each of its frames', all but texts, at most. */
enum { LINES = 256, LINE_OF_FRAME = 2 };

static char *put_when(char *at, uint32_t pcpu, uint64_t time)
{
	at = vp_put_text(at, " [");
	at = pcpu == VP_NONE ? vp_put_text(at, "-") : vp_put_padded(at, pcpu, 3, '0');
	at = vp_put_text(at, "] ");
	at = vp_put_padded(at, time / SECOND, 5, ' ');
	*at++ = '.';
	at = vp_put_padded(at, time % SECOND, 9, '0');
	*at = ':';
	return at + 1;
}

static size_t room_for(struct script *script, const struct vp_export *export,
		       const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	size_t room = LINES + vp_export_texts_room(&script->vms, export, inner->vm) +
		      vp_export_texts_room(&script->processes, export, inner->process);

	for (uint32_t i = 0; i < sample->count; i++) {
		const struct vp_frame *frame = &sample->frames[i];
		room += LINE_OF_FRAME;
		room += vp_export_texts_room(&script->functions, export, frame->function);
		room += vp_export_texts_room(&script->modules, export, frame->module);
	}
	return room;
}

static char *put_frame(char *at, const struct script *script, const struct vp_frame *frame)
{
	*at++ = '\t';
	at = vp_export_texts_put(&script->functions, frame->function, at);
	at = vp_export_texts_put(&script->modules, frame->module, at);
	*at = '\n';
	return at + 1;
}

static void put_sample(struct vp_export *export, const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	const char *kind = vp_kind_name(inner->kind);
	struct script *script = export->state;
	char *at = vp_buffer_room(export->out, room_for(script, export, sample));

	at = vp_export_texts_put(&script->vms, inner->vm, at);
	at = vp_export_texts_put(&script->processes, inner->process, at);
	*at++ = ' ';
	at = inner->pid == VP_NONE ? vp_put_text(at, "-") : vp_put_count(at, inner->pid);
	at = put_when(at, sample->pcpu, sample->time);
	*at++ = ' ';
	at = vp_put_count(at, sample->weight);
	*at++ = ' ';
	at = vp_put_text(at, kind ? kind : "-");
	at = vp_put_text(at, ":\n");
	for (uint32_t i = sample->count; i-- > 0;)
		at = put_frame(at, script, &sample->frames[i]);
	*at++ = '\n';
	vp_buffer_end(export->out, at);
}

static void put_slice(struct vp_export *export, const struct vp_state_slice *slice)
{
	uint64_t ns = slice->end - slice->begin;

	put_vm(vp_export_vm(export, slice->vm), export->out);
	vp_buffer_printf(export->out, "vcpu%u -", slice->vcpu);
	vp_buffer_end(export->out,
		      put_when(vp_buffer_room(export->out, LINES), slice->pcpu, slice->begin));
	vp_buffer_printf(export->out, " +%" PRIu64 ".%09" PRIu64 " %s%s%s\n\n", ns / SECOND,
			 ns % SECOND, slice->state, slice->reason ? " " : "",
			 slice->reason ? slice->reason : "");
}

static void deinit(void *state)
{
	struct script *script = state;

	vp_export_texts_deinit(&script->vms);
	vp_export_texts_deinit(&script->processes);
	vp_export_texts_deinit(&script->functions);
	vp_export_texts_deinit(&script->modules);
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
