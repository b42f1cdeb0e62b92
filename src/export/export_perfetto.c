/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A trace for Perfetto (perfetto.protos.Trace): tracks of pCPUs, vCPUs and guest threads with their
 * states as slices, wakeups as flows, samples with their stacks. All times are on the host's clock,
 * the default clock of the trace.
 */
#include "analyze/report/export.h"
#include "analyze/report/export_queue.h"
#include "analyze/trace/tracks.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/text.h"
#include "export/export_text.h"
#include "export/exporters.h"
#include "export/perfetto.h"
#include "export/protobuf.h"
#include "render/render_tracks.h"
#include "schema/records.h"

/* Kind of a track: the upper bits of its uuid. */
enum track { HOST = 1, PCPU, VM, VCPU, THREADS, THREAD };

struct perfetto {
	struct vp_perfetto_packets packets;
	struct vp_perfetto_samples samples;
	struct vp_map described;
	struct vp_buffer event, note, name;
	uint64_t flows;
};

static uint64_t uuid_of(enum track track, uint32_t vm, uint32_t number)
{
	return (uint64_t)track << 60 | (uint64_t)vm << 28 | (number & 0xfffffff);
}

/* Generic tracks: process and thread tracks would not stay nested below others. */
static void export_perfetto_describe(struct vp_export *export, uint64_t uuid, uint64_t parent,
				     const char *name, uint64_t rank)
{
	struct perfetto *perfetto = export->state;
	bool inserted;

	vp_map_insert(&perfetto->described, uuid, 0, &inserted);
	if (!inserted)
		return;
	perfetto->event.size = 0;
	vp_pb_count(&perfetto->event, TRACK_UUID, uuid);
	vp_pb_text(&perfetto->event, TRACK_NAME, name);
	if (parent)
		vp_pb_count(&perfetto->event, TRACK_PARENT, parent);
	vp_pb_count(&perfetto->event, TRACK_CHILD_ORDERING, TRACK_EXPLICIT);
	vp_pb_count(&perfetto->event, TRACK_RANK, rank);
	vp_perfetto_put(&perfetto->packets, PACKET_TRACK_DESCRIPTOR, NULL, &perfetto->event,
			export->out);
}

static uint64_t pcpu_track(struct vp_export *export, uint32_t pcpu)
{
	uint64_t uuid = uuid_of(PCPU, 0, pcpu), host = uuid_of(HOST, 0, 0);
	VP_AUTO_FREE char *name = vp_format("pCPU %u", pcpu);

	export_perfetto_describe(export, host, 0, "Host", 0);
	export_perfetto_describe(export, uuid, host, name, pcpu);
	return uuid;
}

static uint64_t vcpu_track(struct vp_export *export, uint32_t vm, uint32_t vcpu, const char *name)
{
	uint64_t uuid = uuid_of(VCPU, vm, vcpu), parent = uuid_of(VM, vm, 0);
	VP_AUTO_FREE char *vcpu_name = vp_format("vCPU %u", vcpu);

	export_perfetto_describe(export, parent, 0, name, 1);
	export_perfetto_describe(export, uuid, parent, vcpu_name, vcpu);
	return uuid;
}

static uint64_t thread_track(struct vp_export *export, const struct vp_track_slice *track_slice)
{
	uint64_t vm = uuid_of(VM, track_slice->vm, 0),
		 uuid = uuid_of(THREAD, track_slice->vm, track_slice->guest_tid);
	uint64_t threads = uuid_of(THREADS, track_slice->vm, 0);
	VP_AUTO_FREE char *name =
	    vp_format("%s/%u", track_slice->guest_comm ? track_slice->guest_comm : "-",
		      track_slice->guest_tid);

	export_perfetto_describe(export, vm, 0, vp_tracks_vm(export->tracks, track_slice->vm), 1);
	export_perfetto_describe(export, threads, vm, "Threads", UINT32_MAX);
	export_perfetto_describe(export, uuid, threads, name, track_slice->guest_tid);
	return uuid;
}

static void export_perfetto_begin(struct vp_export *export)
{
	struct perfetto *perfetto = export->state;

	vp_perfetto_samples_init(&perfetto->samples, &perfetto->packets);
}

static void annotate(struct perfetto *perfetto, const char *name, const char *text)
{
	if (!text)
		return;
	perfetto->note.size = 0;
	vp_pb_text(&perfetto->note, NOTE_NAME, name);
	vp_pb_text(&perfetto->note, NOTE_STRING, text);
	vp_pb_message(&perfetto->event, EVENT_NOTE, &perfetto->note);
}

/* Starts an event in `perfetto->event`. */
static void export_perfetto_begin_event(struct perfetto *perfetto, uint32_t type, uint64_t track)
{
	perfetto->event.size = 0;
	vp_pb_count(&perfetto->event, EVENT_TYPE, type);
	vp_pb_count(&perfetto->event, EVENT_TRACK, track);
}

static void end_event(struct vp_export *export, uint64_t time)
{
	struct perfetto *perfetto = export->state;

	vp_perfetto_put(&perfetto->packets, PACKET_TRACK_EVENT, &time, &perfetto->event,
			export->out);
}

static void begin_slice(struct perfetto *perfetto, uint64_t track, const char *name)
{
	export_perfetto_begin_event(perfetto, EVENT_BEGIN, track);
	vp_pb_text(&perfetto->event, EVENT_NAME, name);
}

/* Writes a slice from one time to the other. */
static void export_perfetto_end_slice(struct vp_export *export, uint64_t track, uint64_t from,
				      uint64_t to)
{
	end_event(export, from);
	export_perfetto_begin_event(export->state, EVENT_END, track);
	end_event(export, to);
}

static void export_perfetto_put_sample(struct vp_export *export, const struct vp_sample *sample)
{
	struct perfetto *perfetto = export->state;

	vp_perfetto_sample(&perfetto->samples, export, sample);
}

static void export_perfetto_put_slice(struct vp_export *export, const struct vp_state_slice *slice)
{
	struct perfetto *perfetto = export->state;

	if (export->has_track_slices)
		return;
	uint64_t track = vcpu_track(export, vp_export_vm_id(export, slice->vm), slice->vcpu,
				    vp_export_vm(export, slice->vm));
	begin_slice(perfetto, track, slice->state);
	annotate(perfetto, "reason", slice->reason);
	export_perfetto_end_slice(export, track, slice->begin, slice->end);
}

static void export_perfetto_put_pcpu_track_slice(struct vp_export *export,
						 const struct vp_track_slice *track_slice)
{
	struct perfetto *perfetto = export->state;
	uint64_t track = pcpu_track(export, track_slice->pcpu);

	perfetto->name.size = 0;
	if (track_slice->state == VP_TRACK_IDLE)
		vp_buffer_string(&perfetto->name, "idle");
	else
		vp_export_put_thread(export, track_slice, &perfetto->name);
	begin_slice(perfetto, track, vp_buffer_text(&perfetto->name));
	export_perfetto_end_slice(export, track, track_slice->begin, track_slice->end);
}

/* A flow from an instant on the waker's pCPU to the slice in which the vCPU waits. */
static uint64_t put_waker(struct vp_export *export, const struct vp_track_slice *track_slice)
{
	struct perfetto *perfetto = export->state;
	uint64_t flow = ++perfetto->flows;

	export_perfetto_begin_event(perfetto, EVENT_INSTANT,
				    pcpu_track(export, track_slice->waker_pcpu));
	vp_pb_text(&perfetto->event, EVENT_NAME, "wakeup");
	vp_pb_fixed64(&perfetto->event, EVENT_FLOW, flow);
	annotate(perfetto, "waker", track_slice->waker_comm);
	end_event(export, track_slice->begin);
	return flow;
}

static void export_perfetto_put_guest_thread(struct vp_export *export,
					     const struct vp_track_slice *track_slice)
{
	struct perfetto *perfetto = export->state;
	uint64_t track = thread_track(export, track_slice);

	begin_slice(perfetto, track, vp_track_state_name(track_slice->state));
	annotate(perfetto, "certainty", vp_track_certainty_name(track_slice->certainty));
	export_perfetto_end_slice(export, track, track_slice->begin, track_slice->end);
}

static void export_perfetto_put_vcpu_track_slice(struct vp_export *export,
						 const struct vp_track_slice *track_slice)
{
	struct perfetto *perfetto = export->state;
	uint32_t number =
	    track_slice->vcpu == VP_VCPU_UNKNOWN ? track_slice->tid : track_slice->vcpu;
	uint64_t track = vcpu_track(export, track_slice->vm, number,
				    vp_tracks_vm(export->tracks, track_slice->vm));
	bool woken = track_slice->state == VP_TRACK_WAKING && track_slice->has_waker &&
		     track_slice->begin == track_slice->wait_begin;
	uint64_t flow = woken ? put_waker(export, track_slice) : 0;

	begin_slice(perfetto, track, vp_track_state_name(track_slice->state));
	if (flow)
		vp_pb_fixed64(&perfetto->event, EVENT_FLOW, flow);
	annotate(perfetto, "thief", track_slice->has_thief ? track_slice->thief_comm : NULL);
	export_perfetto_end_slice(export, track, track_slice->begin, track_slice->end);
	if (track_slice->has_guest)
		export_perfetto_put_guest_thread(export, track_slice);
}

static void export_perfetto_put_track_slice(struct vp_export *export,
					    const struct vp_track_slice *track_slice)
{
	if (track_slice->track == VP_TRACK_PCPU)
		export_perfetto_put_pcpu_track_slice(export, track_slice);
	else
		export_perfetto_put_vcpu_track_slice(export, track_slice);
}

static void export_perfetto_deinit(void *state)
{
	struct perfetto *perfetto = state;

	vp_perfetto_samples_deinit(&perfetto->samples);
	vp_perfetto_packets_deinit(&perfetto->packets);
	vp_map_deinit(&perfetto->described);
	vp_buffer_deinit(&perfetto->event);
	vp_buffer_deinit(&perfetto->note);
	vp_buffer_deinit(&perfetto->name);
}

const struct vp_exporter *vp_exporter_perfetto(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct perfetto),
						    .begin = export_perfetto_begin,
						    .sample = export_perfetto_put_sample,
						    .slice = export_perfetto_put_slice,
						    .track_slice = export_perfetto_put_track_slice,
						    .deinit = export_perfetto_deinit};

	return &exporter;
}
