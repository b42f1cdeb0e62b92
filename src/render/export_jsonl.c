/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A JSON object per line: the recording, then each sample and slice, then the notes. */
#include "base/json.h"
#include "render/export.h"
#include "render/export_text.h"
#include "render/lanes.h"

struct jsonl {
	struct vp_export_texts vms, texts; /* as JSON values */
};

static void put_quoted(const char *text, struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_text(&json, NULL, text);
}

static void put_known_number(struct vp_json *json, const char *key, uint32_t number)
{
	if (number == VP_NONE)
		vp_json_null(json, key);
	else
		vp_json_count(json, key, number);
}

static struct vp_json begin_line(const struct vp_export *export, const char *type)
{
	struct vp_json json = vp_json_to(export->out);

	vp_json_object(&json, NULL);
	vp_json_text(&json, "type", type);
	return json;
}

static void end_line(struct vp_json *json)
{
	vp_json_object_end(json);
	vp_buffer_string(json->out, "\n");
}

static void put_begin(struct vp_export *export)
{
	const struct vp_recording *recording = &export->report->recording;
	struct vp_json json = begin_line(export, "recording");
	struct jsonl *jsonl = export->state;

	vp_json_text(&json, "path", export->report->path);
	vp_json_text(&json, "hostname", recording->hostname);
	vp_json_text(&json, "kernel", recording->kernel);
	vp_json_count(&json, "pcpus", recording->pcpus);
	vp_json_text(&json, "trigger", recording->trigger);
	vp_json_count(&json, "period_ns", recording->period_ns);
	end_line(&json);
	jsonl->vms =
	    (struct vp_export_texts){.text = vp_export_vm, .put = put_quoted, .unknown = "null"};
	jsonl->texts =
	    (struct vp_export_texts){.text = vp_export_text, .put = put_quoted, .unknown = "null"};
}

static void put_member(const char *key, uint32_t number, struct vp_buffer *out)
{
	vp_buffer_string(out, key);
	if (number == VP_NONE)
		vp_buffer_string(out, "null");
	else
		vp_buffer_count(out, number);
}

static void put_frame(const struct vp_export *export, const struct vp_frame *frame)
{
	struct jsonl *jsonl = export->state;
	struct vp_buffer *out = export->out;
	const char *kind = vp_kind_name(frame->kind);

	vp_buffer_string(out, "{\"function\": ");
	vp_export_texts_put(&jsonl->texts, export, frame->function, out);
	vp_buffer_string(out, ", \"module\": ");
	vp_export_texts_put(&jsonl->texts, export, frame->module, out);
	vp_buffer_string(out, kind ? ", \"kind\": \"" : ", \"kind\": null}");
	if (!kind)
		return;
	vp_buffer_string(out, kind);
	vp_buffer_string(out, "\"}");
}

/* The process is that of what was hit; frames are from the outermost on. There are millions of
 * these lines: they are put together from what is JSON already. */
static void put_sample(struct vp_export *export, const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	struct jsonl *jsonl = export->state;
	struct vp_buffer *out = export->out;

	vp_buffer_string(out, "{\"type\": \"sample\", \"time_ns\": ");
	vp_buffer_count(out, sample->time);
	vp_buffer_string(out, ", \"weight\": ");
	vp_buffer_count(out, sample->weight);
	put_member(", \"pcpu\": ", sample->pcpu, out);
	vp_buffer_string(out, ", \"vm\": ");
	vp_export_texts_put(&jsonl->vms, export, inner->vm, out);
	put_member(", \"vcpu\": ", inner->vcpu, out);
	vp_buffer_string(out, ", \"process\": ");
	vp_export_texts_put(&jsonl->texts, export, inner->process, out);
	put_member(", \"pid\": ", inner->pid, out);
	vp_buffer_string(out, ", \"host_pid\": ");
	vp_buffer_count(out, sample->pid);
	vp_buffer_string(out, ", \"host_tid\": ");
	vp_buffer_count(out, sample->tid);
	for (uint32_t i = 0; i < sample->count; i++) {
		vp_buffer_string(out, i ? ", " : ", \"frames\": [");
		put_frame(export, &sample->frames[i]);
	}
	vp_buffer_string(out, "]}\n");
}

static void put_slice(struct vp_export *export, const struct vp_state_slice *slice)
{
	struct vp_json json = begin_line(export, "slice");

	vp_json_count(&json, "begin_ns", slice->begin);
	vp_json_count(&json, "end_ns", slice->end);
	vp_json_text(&json, "vm", vp_export_vm(export, slice->vm));
	vp_json_count(&json, "vcpu", slice->vcpu);
	put_known_number(&json, "pcpu", slice->pcpu);
	vp_json_text(&json, "state", slice->state);
	vp_json_text(&json, "reason", slice->reason);
	end_line(&json);
}

static void put_period(struct vp_export *export, const struct vp_period *period)
{
	const struct vp_lanes_layout layout = {.lanes = export->lanes};

	vp_lanes_format_named("jsonl")->period(period, &layout, export->out);
}

static void put_end(struct vp_export *export)
{
	struct vp_json json = begin_line(export, "end");

	vp_json_count(&json, "lost", export->report->lost);
	vp_json_array(&json, "notes");
	vp_vec_each (&export->report->notes, note)
		vp_json_text(&json, NULL, *note);
	vp_json_array_end(&json);
	end_line(&json);
}

static void deinit(void *state)
{
	struct jsonl *jsonl = state;

	vp_export_texts_deinit(&jsonl->vms);
	vp_export_texts_deinit(&jsonl->texts);
}

const struct vp_exporter *vp_exporter_jsonl(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct jsonl),
						    .begin = put_begin,
						    .sample = put_sample,
						    .slice = put_slice,
						    .period = put_period,
						    .end = put_end,
						    .deinit = deinit};

	return &exporter;
}
