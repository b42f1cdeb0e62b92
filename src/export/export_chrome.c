/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trace events (JSON) for chrome://tracing and Perfetto. There is one process for the host's pCPUs,
 * one per VM for its vCPUs (the process number is the VM's) and one per VM for its threads. Slices
 * are complete events, samples instant events, wakeups flows.
 */
#include <inttypes.h>

#include "analyze/profile/frame.h"
#include "analyze/report/export.h"
#include "analyze/report/export_queue.h"
#include "analyze/report/report.h"
#include "analyze/trace/tracks.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "export/export_text.h"
#include "export/exporters.h"
#include "render/render_tracks.h"
#include "schema/records.h"

/* Process numbers: HOST has the pCPUs; a VM's number + THREADS has the VM's threads. */
enum { HOST = 0, THREADS = 1 << 30, MICROSECOND = 1000 };

struct chrome {
	struct vp_export_texts texts; /* as JSON strings, without quotes */
	struct vp_map named;          /* processes and threads that have a name in the output */
	bool more;
	uint64_t flows;
};

static void export_chrome_begin_event(struct vp_export *export, const char *phase, uint32_t process,
				      uint32_t thread)
{
	struct chrome *chrome = export->state;
	struct vp_buffer *out = export->out;

	vp_buffer_string(out, chrome->more ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
	chrome->more = true;
	vp_buffer_string(out, phase);
	vp_buffer_string(out, "\",\"pid\":");
	vp_buffer_count(out, process);
	vp_buffer_string(out, ",\"tid\":");
	vp_buffer_count(out, thread);
}

static void export_chrome_put_time(const char *key, uint64_t ns, struct vp_buffer *out)
{
	vp_buffer_string(out, key);
	vp_buffer_count(out, ns / MICROSECOND);
	vp_buffer_string(out, ".");
	vp_buffer_padded(out, ns % MICROSECOND, 3, '0');
}

static void name_once(struct vp_export *export, const char *what, uint32_t process, uint32_t thread,
		      bool is_process, const char *name)
{
	struct chrome *chrome = export->state;
	uint64_t key = (uint64_t)process << 32 | (is_process ? UINT32_MAX : thread);
	bool inserted;

	vp_map_insert(&chrome->named, key, 0, &inserted);
	if (!inserted)
		return;
	export_chrome_begin_event(export, "M", process, thread);
	vp_buffer_string(export->out, is_process
					  ? ",\"name\":\"process_name\",\"args\":{\"name\":\""
					  : ",\"name\":\"thread_name\",\"args\":{\"name\":\"");
	vp_export_put_json(name, export->out);
	vp_buffer_string(export->out, what);
	vp_buffer_string(export->out, "\"}}");
}

static void name_pcpu(struct vp_export *export, uint32_t pcpu)
{
	VP_AUTO_FREE char *name = vp_format("pCPU %" PRIu32, pcpu);

	name_once(export, "", HOST, 0, true, "host");
	name_once(export, "", HOST, pcpu, false, name);
}

static void name_vcpu(struct vp_export *export, uint32_t vm, uint32_t vcpu, const char *vm_name)
{
	VP_AUTO_FREE char *name = vp_format("vCPU %" PRIu32, vcpu);

	name_once(export, "", vm, 0, true, vm_name);
	name_once(export, "", vm, vcpu, false, name);
}

static void export_chrome_begin(struct vp_export *export)
{
	struct chrome *chrome = export->state;

	chrome->texts = (struct vp_export_texts){
	    .text = vp_export_text, .put = vp_export_put_json, .unknown = "[unknown]"};
	vp_buffer_string(export->out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

static void export_chrome_put_name(struct vp_export *export, uint32_t text)
{
	struct chrome *chrome = export->state;

	vp_export_texts_append(&chrome->texts, export, text, export->out);
}

static void export_chrome_put_sample(struct vp_export *export, const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	bool in_vm = inner->vm != VP_NONE && inner->vcpu != VP_NONE;
	uint32_t thread = in_vm ? inner->vcpu : sample->pcpu == VP_NONE ? 0 : sample->pcpu;
	uint32_t process = in_vm ? vp_export_vm_id(export, inner->vm) : HOST;
	const char *kind = vp_kind_name(inner->kind);
	struct vp_buffer *out = export->out;

	if (in_vm)
		name_vcpu(export, process, thread, vp_export_vm(export, inner->vm));
	else
		name_pcpu(export, thread);
	export_chrome_begin_event(export, "i", process, thread);
	export_chrome_put_time(",\"s\":\"t\",\"cat\":\"sample\",\"ts\":", sample->time, out);
	vp_buffer_string(out, ",\"name\":\"");
	export_chrome_put_name(export, inner->function);
	vp_buffer_string(out, "\",\"args\":{\"");
	vp_buffer_string(out, vp_report_weight_key(export->report));
	vp_buffer_string(out, "\":");
	vp_buffer_count(out, sample->weight);
	vp_buffer_string(out, ",\"kind\":\"");
	vp_buffer_string(out, kind ? kind : "-");
	vp_buffer_string(out, "\",\"process\":\"");
	export_chrome_put_name(export, inner->process);
	vp_buffer_string(out, "\",\"module\":\"");
	export_chrome_put_name(export, inner->module);
	for (uint32_t i = 0; i < sample->count; i++) {
		vp_buffer_string(out, i ? "\",\"" : "\",\"stack\":[\"");
		export_chrome_put_name(export, sample->frames[i].function);
	}
	vp_buffer_string(out, "\"]}}");
}

static void begin_complete(struct vp_export *export, uint32_t process, uint32_t thread,
			   uint64_t from, uint64_t to)
{
	export_chrome_begin_event(export, "X", process, thread);
	export_chrome_put_time(",\"ts\":", from, export->out);
	export_chrome_put_time(",\"dur\":", to - from, export->out);
}

static void export_chrome_put_slice(struct vp_export *export, const struct vp_state_slice *slice)
{
	uint32_t vm = vp_export_vm_id(export, slice->vm);
	struct vp_buffer *out = export->out;

	if (export->has_track_slices)
		return;
	name_vcpu(export, vm, slice->vcpu, vp_export_vm(export, slice->vm));
	begin_complete(export, vm, slice->vcpu, slice->begin, slice->end);
	vp_buffer_string(out, ",\"cat\":\"vcpu\",\"name\":\"");
	vp_export_put_json(slice->state, out);
	if (slice->reason) {
		vp_buffer_string(out, "\",\"args\":{\"reason\":\"");
		vp_export_put_json(slice->reason, out);
		vp_buffer_string(out, "\"}}");
	} else {
		vp_buffer_string(out, "\"}");
	}
}

static void export_chrome_put_pcpu_track_slice(struct vp_export *export,
					       const struct vp_track_slice *track_slice)
{
	struct vp_buffer name = {0};

	name_pcpu(export, track_slice->pcpu);
	begin_complete(export, HOST, track_slice->pcpu, track_slice->begin, track_slice->end);
	vp_buffer_string(export->out, ",\"cat\":\"pcpu\",\"name\":\"");
	if (track_slice->state == VP_TRACK_IDLE)
		vp_buffer_string(&name, "idle");
	else
		vp_export_put_thread(export, track_slice, &name);
	vp_export_put_json(vp_buffer_text(&name), export->out);
	vp_buffer_string(export->out, "\"}");
	vp_buffer_deinit(&name);
}

static void put_flow(struct vp_export *export, const struct vp_track_slice *track_slice,
		     uint32_t thread)
{
	struct chrome *chrome = export->state;
	struct vp_buffer *out = export->out;
	uint64_t flow = ++chrome->flows;

	if (!track_slice->has_waker)
		return;
	name_pcpu(export, track_slice->waker_pcpu);
	export_chrome_begin_event(export, "s", HOST, track_slice->waker_pcpu);
	export_chrome_put_time(
	    ",\"cat\":\"wakeup\",\"name\":\"wakeup\",\"ts\":", track_slice->wait_begin, out);
	vp_buffer_string(out, ",\"id\":");
	vp_buffer_count(out, flow);
	vp_buffer_string(out, "}");
	export_chrome_begin_event(export, "f", track_slice->vm, thread);
	export_chrome_put_time(",\"bp\":\"e\",\"cat\":\"wakeup\",\"name\":\"wakeup\",\"ts\":",
			       track_slice->begin, out);
	vp_buffer_string(out, ",\"id\":");
	vp_buffer_count(out, flow);
	vp_buffer_string(out, "}");
}

static void export_chrome_put_guest_thread(struct vp_export *export,
					   const struct vp_track_slice *track_slice)
{
	const char *vm = vp_tracks_vm(export->tracks, track_slice->vm);
	const char *comm = track_slice->guest_comm ? track_slice->guest_comm : "-";
	uint32_t process = track_slice->vm | THREADS;

	name_once(export, ": threads", process, 0, true, vm);
	name_once(export, "", process, track_slice->guest_tid, false, comm);
	begin_complete(export, process, track_slice->guest_tid, track_slice->begin,
		       track_slice->end);
	vp_buffer_string(export->out, ",\"cat\":\"thread\",\"name\":\"");
	vp_export_put_json(vp_track_state_name(track_slice->state), export->out);
	vp_buffer_string(export->out, "\"}");
}

static void export_chrome_put_vcpu_track_slice(struct vp_export *export,
					       const struct vp_track_slice *track_slice)
{
	uint32_t thread =
	    track_slice->vcpu == VP_VCPU_UNKNOWN ? track_slice->tid : track_slice->vcpu;
	struct vp_buffer *out = export->out;

	name_vcpu(export, track_slice->vm, thread, vp_tracks_vm(export->tracks, track_slice->vm));
	begin_complete(export, track_slice->vm, thread, track_slice->begin, track_slice->end);
	vp_buffer_string(out, ",\"cat\":\"vcpu\",\"name\":\"");
	vp_export_put_json(vp_track_state_name(track_slice->state), out);
	vp_buffer_string(out, "\"");
	if (track_slice->has_thief) {
		vp_buffer_string(out, ",\"args\":{\"thief\":\"");
		vp_export_put_json(track_slice->thief_comm ? track_slice->thief_comm : "-", out);
		vp_buffer_printf(out, "\",\"thief_tid\":%" PRIu32 "}", track_slice->thief_tid);
	}
	vp_buffer_string(out, "}");
	if (track_slice->state == VP_TRACK_WAKING && track_slice->begin == track_slice->wait_begin)
		put_flow(export, track_slice, thread);
	if (track_slice->has_guest)
		export_chrome_put_guest_thread(export, track_slice);
}

static void export_chrome_put_track_slice(struct vp_export *export,
					  const struct vp_track_slice *track_slice)
{
	if (track_slice->track == VP_TRACK_PCPU)
		export_chrome_put_pcpu_track_slice(export, track_slice);
	else
		export_chrome_put_vcpu_track_slice(export, track_slice);
}

static void export_chrome_end(struct vp_export *export)
{
	struct vp_json json = vp_json_to(export->out);

	vp_buffer_string(export->out, "\n],\"otherData\":");
	vp_json_object(&json, NULL);
	vp_json_text(&json, "tool", "vperf " VPERF_VERSION);
	vp_json_text(&json, "hostname", export->report->recording.hostname);
	vp_json_count(&json, "lost", export->report->lost);
	vp_json_array(&json, "notes");
	vp_vec_each (&export->report->notes, note)
		vp_json_text(&json, NULL, *note);
	vp_json_array_end(&json);
	vp_json_object_end(&json);
	vp_buffer_string(export->out, "}\n");
}

static void export_chrome_deinit(void *state)
{
	struct chrome *chrome = state;

	vp_export_texts_deinit(&chrome->texts);
	vp_map_deinit(&chrome->named);
}

const struct vp_exporter *vp_exporter_chrome(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct chrome),
						    .begin = export_chrome_begin,
						    .sample = export_chrome_put_sample,
						    .slice = export_chrome_put_slice,
						    .track_slice = export_chrome_put_track_slice,
						    .end = export_chrome_end,
						    .deinit = export_chrome_deinit};

	return &exporter;
}
