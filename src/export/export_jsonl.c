/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One JSON object per line: the recording, then each sample and slice, then the notes. */
#include "analyze/profile/frame.h"
#include "analyze/report/export.h"
#include "analyze/report/export_queue.h"
#include "analyze/trace/tracks.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/vec.h"
#include "export/export_text.h"
#include "export/exporters.h"
#include "render/render_tracks.h"
#include "store/recording.h"

struct jsonl {
	struct vp_export_texts vms, kinds, texts; /* as JSON values */
};

static void export_jsonl_put_quoted(const char *text, struct vp_buffer *out)
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

static struct vp_json export_jsonl_begin_line(const struct vp_export *export, const char *type)
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
	struct vp_json json = vp_json_to(export->out);
	struct jsonl *jsonl = export->state;

	vp_json_answer(&json);
	vp_json_text(&json, "type", "recording");
	vp_json_text(&json, "path", export->report->path);
	vp_json_text(&json, "hostname", recording->hostname);
	vp_json_text(&json, "kernel", recording->kernel);
	vp_json_count(&json, "pcpus", recording->pcpus);
	vp_json_text(&json, "sampling_event", recording->trigger);
	vp_json_text(&json, "trigger", recording->trigger);
	vp_json_count(&json, "period_ns", recording->period_ns);
	vp_json_text(&json, "unit", vp_recording_unit(recording));
	end_line(&json);
	jsonl->vms = (struct vp_export_texts){
	    .text = vp_export_vm, .put = export_jsonl_put_quoted, .unknown = "null"};
	jsonl->kinds = (struct vp_export_texts){
	    .text = vp_export_kind, .put = export_jsonl_put_quoted, .unknown = "null"};
	jsonl->texts = (struct vp_export_texts){
	    .text = vp_export_text, .put = export_jsonl_put_quoted, .unknown = "null"};
}

/* Maximum length of a sample's line, and of each of its frames, without texts. */
enum { LINE = 384, LINE_OF_FRAME = 64 };

static size_t export_jsonl_room_for(struct jsonl *jsonl, const struct vp_export *export,
				    const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	size_t room = LINE + vp_export_texts_room(&jsonl->vms, export, inner->vm) +
		      vp_export_texts_room(&jsonl->texts, export, inner->process);

	for (uint32_t i = 0; i < sample->count; i++) {
		const struct vp_frame *frame = &sample->frames[i];
		room += LINE_OF_FRAME;
		room += vp_export_texts_room(&jsonl->texts, export, frame->function);
		room += vp_export_texts_room(&jsonl->texts, export, frame->module);
		room += vp_export_texts_room(&jsonl->kinds, export, frame->kind);
	}
	return room;
}

static char *export_jsonl_put_number(char *at, const char *key, uint32_t number)
{
	at = vp_put_text(at, key);
	return number == VP_NONE ? vp_put_text(at, "null") : vp_put_count(at, number);
}

static char *export_jsonl_put_frame(char *at, const struct jsonl *jsonl,
				    const struct vp_frame *frame)
{
	at = vp_put_text(at, "{\"function\": ");
	at = vp_export_texts_put(&jsonl->texts, frame->function, at);
	at = vp_put_text(at, ", \"module\": ");
	at = vp_export_texts_put(&jsonl->texts, frame->module, at);
	at = vp_put_text(at, ", \"kind\": ");
	at = vp_export_texts_put(&jsonl->kinds, frame->kind, at);
	*at = '}';
	return at + 1;
}

/* The process is the innermost frame's; frames are outermost first. There may be millions of lines,
 * so they are assembled from texts that are already JSON. */
static void export_jsonl_put_sample(struct vp_export *export, const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	struct jsonl *jsonl = export->state;
	char *at = vp_buffer_room(export->out, export_jsonl_room_for(jsonl, export, sample));

	at = vp_put_text(at, "{\"type\": \"sample\", \"time_ns\": ");
	at = vp_put_count(at, sample->time);
	at = vp_put_text(at, ", \"weight\": ");
	at = vp_put_count(at, sample->weight);
	at = export_jsonl_put_number(at, ", \"pcpu\": ", sample->pcpu);
	at = vp_put_text(at, ", \"vm\": ");
	at = vp_export_texts_put(&jsonl->vms, inner->vm, at);
	at = export_jsonl_put_number(at, ", \"vcpu\": ", inner->vcpu);
	at = vp_put_text(at, ", \"process\": ");
	at = vp_export_texts_put(&jsonl->texts, inner->process, at);
	at = export_jsonl_put_number(at, ", \"pid\": ", inner->pid);
	at = vp_put_text(at, ", \"host_pid\": ");
	at = vp_put_count(at, sample->pid);
	at = vp_put_text(at, ", \"host_tid\": ");
	at = vp_put_count(at, sample->tid);
	at = vp_put_text(at, ", \"frames\": [");
	for (uint32_t i = 0; i < sample->count; i++) {
		at = i ? vp_put_text(at, ", ") : at;
		at = export_jsonl_put_frame(at, jsonl, &sample->frames[i]);
	}
	vp_buffer_end(export->out, vp_put_text(at, "]}\n"));
}

static void export_jsonl_put_slice(struct vp_export *export, const struct vp_state_slice *slice)
{
	struct vp_json json = export_jsonl_begin_line(export, "slice");

	vp_json_count(&json, "begin_ns", slice->begin);
	vp_json_count(&json, "end_ns", slice->end);
	vp_json_text(&json, "vm", vp_export_vm(export, slice->vm));
	vp_json_count(&json, "vcpu", slice->vcpu);
	put_known_number(&json, "pcpu", slice->pcpu);
	vp_json_text(&json, "state", slice->state);
	vp_json_text(&json, "reason", slice->reason);
	end_line(&json);
}

static void export_jsonl_put_track_slice(struct vp_export *export,
					 const struct vp_track_slice *track_slice)
{
	const struct vp_tracks_layout layout = {.tracks = export->tracks, .in_export = true};

	vp_tracks_format_named("jsonl")->slice(track_slice, &layout, export->out);
}

static void put_end(struct vp_export *export)
{
	struct vp_json json = export_jsonl_begin_line(export, "end");

	vp_json_count(&json, "lost", export->report->lost);
	vp_json_array(&json, "notes");
	vp_vec_each (&export->report->notes, note)
		vp_json_text(&json, NULL, *note);
	vp_json_array_end(&json);
	end_line(&json);
}

static void export_jsonl_deinit(void *state)
{
	struct jsonl *jsonl = state;

	vp_export_texts_deinit(&jsonl->vms);
	vp_export_texts_deinit(&jsonl->kinds);
	vp_export_texts_deinit(&jsonl->texts);
}

const struct vp_exporter *vp_exporter_jsonl(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct jsonl),
						    .begin = put_begin,
						    .sample = export_jsonl_put_sample,
						    .slice = export_jsonl_put_slice,
						    .track_slice = export_jsonl_put_track_slice,
						    .end = put_end,
						    .deinit = export_jsonl_deinit};

	return &exporter;
}
