/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A JSON object per line: the recording, then each sample and slice, then the notes. */
#include "base/json.h"
#include "render/export.h"
#include "render/lanes.h"

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

	vp_json_text(&json, "path", export->report->path);
	vp_json_text(&json, "hostname", recording->hostname);
	vp_json_text(&json, "kernel", recording->kernel);
	vp_json_count(&json, "pcpus", recording->pcpus);
	vp_json_text(&json, "trigger", recording->trigger);
	vp_json_count(&json, "period_ns", recording->period_ns);
	end_line(&json);
}

static void put_frame(const struct vp_export *export, const struct vp_frame *frame,
		      struct vp_json *json)
{
	vp_json_object(json, NULL);
	vp_json_text(json, "function", vp_export_text(export, frame->function));
	vp_json_text(json, "module", vp_export_text(export, frame->module));
	vp_json_text(json, "kind", vp_kind_name(frame->kind));
	vp_json_object_end(json);
}

/* The process is that of what was hit; frames are from the outermost on. */
static void put_sample(struct vp_export *export, const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	struct vp_json json = begin_line(export, "sample");

	vp_json_count(&json, "time_ns", sample->time);
	vp_json_count(&json, "weight", sample->weight);
	put_known_number(&json, "pcpu", sample->pcpu);
	vp_json_text(&json, "vm", vp_export_vm(export, inner->vm));
	put_known_number(&json, "vcpu", inner->vcpu);
	vp_json_text(&json, "process", vp_export_text(export, inner->process));
	put_known_number(&json, "pid", inner->pid);
	vp_json_count(&json, "host_pid", sample->pid);
	vp_json_count(&json, "host_tid", sample->tid);
	vp_json_array(&json, "frames");
	for (uint32_t i = 0; i < sample->count; i++)
		put_frame(export, &sample->frames[i], &json);
	vp_json_array_end(&json);
	end_line(&json);
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

const struct vp_exporter *vp_exporter_jsonl(void)
{
	static const struct vp_exporter exporter = {.begin = put_begin,
						    .sample = put_sample,
						    .slice = put_slice,
						    .period = put_period,
						    .end = put_end};

	return &exporter;
}
