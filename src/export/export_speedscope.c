/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile for speedscope (https://www.speedscope.app/file-format-schema.json): each distinct
 * stack once, below its machine and process.
 */
#include "analyze/common/key_set.h"
#include "analyze/profile/frame.h"
#include "analyze/report/export.h"
#include "analyze/report/export_queue.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/macros.h"
#include "export/export_text.h"
#include "export/exporters.h"
#include "store/recording.h"

enum what { FUNCTION, MACHINE, PROCESS };

struct key {
	uint32_t what; /* enum what */
	uint32_t text, other;
};

struct speedscope {
	struct vp_key_set frames;
	struct vp_buffer weights;
	uint64_t unit; /* ns per sample, or 1 */
	uint64_t total;
	bool more;
};

static void export_speedscope_begin(struct vp_export *export)
{
	struct speedscope *speedscope = export->state;
	const struct vp_recording *recording = &export->report->recording;

	speedscope->frames.key_size = sizeof(struct key);
	uint64_t unit = vp_recording_unit_ns(recording);
	speedscope->unit = unit ? unit : 1;
	vp_buffer_string(export->out,
			 "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
			 "\"exporter\":\"vperf " VPERF_VERSION "\",\"activeProfileIndex\":0,"
			 "\"profiles\":[{\"type\":\"sampled\",\"name\":\"vperf\",\"samples\":[");
}

static void export_speedscope_put_frame(struct vp_export *export, const struct key *key)
{
	struct speedscope *speedscope = export->state;
	bool inserted;

	vp_buffer_count(export->out, vp_key_set_add(&speedscope->frames, key, &inserted));
}

static void export_speedscope_put_stack(struct vp_export *export, const struct vp_sample *sample)
{
	struct speedscope *speedscope = export->state;
	const struct vp_frame *outer = &sample->frames[0];
	uint64_t weight = sample->weight * speedscope->unit;

	vp_buffer_string(export->out, speedscope->more ? ",\n[" : "\n[");
	export_speedscope_put_frame(
	    export, &(struct key){MACHINE, outer->kind == VP_KIND_VM ? VP_NONE : outer->vm, 0});
	if (vp_export_is_code(outer)) {
		vp_buffer_string(export->out, ",");
		export_speedscope_put_frame(export, &(struct key){PROCESS, outer->process, 0});
	}
	for (uint32_t i = 0; i < sample->count; i++) {
		const struct vp_frame *frame = &sample->frames[i];
		vp_buffer_string(export->out, ",");
		export_speedscope_put_frame(
		    export, &(struct key){FUNCTION, frame->function, frame->module});
	}
	vp_buffer_string(export->out, "]");
	vp_buffer_string(&speedscope->weights, speedscope->more ? "," : "");
	vp_buffer_count(&speedscope->weights, weight);
	speedscope->total += weight;
	speedscope->more = true;
}

static void export_speedscope_put_name(const struct vp_export *export, const struct key *key,
				       struct vp_json *json)
{
	const char *name = key->what == MACHINE ? vp_export_vm(export, key->text)
						: vp_export_text(export, key->text);
	const char *file = key->what == FUNCTION ? vp_export_text(export, key->other) : NULL;

	vp_json_object(json, NULL);
	vp_json_text(json, "name", name ? name : key->what == MACHINE ? "host" : "[unknown]");
	if (file)
		vp_json_text(json, "file", file);
	vp_json_object_end(json);
	vp_buffer_string(json->out, "\n");
}

static void export_speedscope_end(struct vp_export *export)
{
	struct speedscope *speedscope = export->state;
	struct vp_buffer *out = export->out;

	vp_buffer_string(out, "],\n\"weights\":[");
	vp_buffer_append(out, speedscope->weights.bytes, speedscope->weights.size);
	vp_buffer_string(out, "],\"unit\":");
	vp_buffer_string(out, vp_recording_unit_ns(&export->report->recording) ? "\"nanoseconds\""
									       : "\"none\"");
	vp_buffer_string(out, ",\"startValue\":0,\"endValue\":");
	vp_buffer_count(out, speedscope->total);
	vp_buffer_string(out, "}],\n\"shared\":{\"frames\":");
	struct vp_json json = vp_json_to(out);
	vp_json_array(&json, NULL);
	for (uint32_t i = 0; i < speedscope->frames.count; i++)
		export_speedscope_put_name(export, vp_key_set_key(&speedscope->frames, i), &json);
	vp_json_array_end(&json);
	vp_buffer_string(out, "}}\n");
}

static void export_speedscope_deinit(void *state)
{
	struct speedscope *speedscope = state;

	vp_key_set_deinit(&speedscope->frames);
	vp_buffer_deinit(&speedscope->weights);
}

const struct vp_exporter *vp_exporter_speedscope(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct speedscope),
						    .totals = true,
						    .begin = export_speedscope_begin,
						    .sample = export_speedscope_put_stack,
						    .end = export_speedscope_end,
						    .deinit = export_speedscope_deinit};

	return &exporter;
}
