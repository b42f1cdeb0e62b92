/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A trace for Perfetto (perfetto.protos.Trace): tracks of pCPUs, of vCPUs and of guests' threads
 * with their states as slices, wake-ups as flows, samples with their call stacks. All times are the
 * host's, in the trace's usual clock.
 */
#include "analyze/report/export.h"
#include "analyze/report/export_queue.h"
#include "analyze/trace/lanes.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/text.h"
#include "export/export_text.h"
#include "export/exporters.h"
#include "export/perfetto.h"
#include "export/protobuf.h"
#include "render/render_lanes.h"
#include "schema/records.h"

/* Kind of a track: the upper bits of its number. */
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

/* Plain tracks: those of processes and threads would not stay below others. */
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

static uint64_t thread_track(struct vp_export *export, const struct vp_period *period)
{
	uint64_t vm = uuid_of(VM, period->vm, 0),
		 uuid = uuid_of(THREAD, period->vm, period->guest_tid);
	uint64_t threads = uuid_of(THREADS, period->vm, 0);
	VP_AUTO_FREE char *name =
	    vp_format("%s/%u", period->guest_comm ? period->guest_comm : "-", period->guest_tid);

	export_perfetto_describe(export, vm, 0, vp_lanes_vm(export->lanes, period->vm), 1);
	export_perfetto_describe(export, threads, vm, "Threads", UINT32_MAX);
	export_perfetto_describe(export, uuid, threads, name, period->guest_tid);
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

/* Begins an event in `perfetto->event`. */
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

/* A finished slice, from one time to the other. */
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

	if (export->has_periods)
		return;
	uint64_t track = vcpu_track(export, vp_export_vm_id(export, slice->vm), slice->vcpu,
				    vp_export_vm(export, slice->vm));
	begin_slice(perfetto, track, slice->state);
	annotate(perfetto, "reason", slice->reason);
	export_perfetto_end_slice(export, track, slice->begin, slice->end);
}

static void export_perfetto_put_pcpu_period(struct vp_export *export,
					    const struct vp_period *period)
{
	struct perfetto *perfetto = export->state;
	uint64_t track = pcpu_track(export, period->pcpu);

	perfetto->name.size = 0;
	if (period->state == VP_LANE_IDLE)
		vp_buffer_string(&perfetto->name, "idle");
	else
		vp_export_put_thread(export, period, &perfetto->name);
	begin_slice(perfetto, track, vp_buffer_text(&perfetto->name));
	export_perfetto_end_slice(export, track, period->begin, period->end);
}

/* From an instant on the waker's pCPU to the slice in which the vCPU waits. */
static uint64_t put_waker(struct vp_export *export, const struct vp_period *period)
{
	struct perfetto *perfetto = export->state;
	uint64_t flow = ++perfetto->flows;

	export_perfetto_begin_event(perfetto, EVENT_INSTANT,
				    pcpu_track(export, period->waker_pcpu));
	vp_pb_text(&perfetto->event, EVENT_NAME, "wakeup");
	vp_pb_fixed64(&perfetto->event, EVENT_FLOW, flow);
	annotate(perfetto, "waker", period->waker_comm);
	end_event(export, period->begin);
	return flow;
}

static void export_perfetto_put_guest_thread(struct vp_export *export,
					     const struct vp_period *period)
{
	struct perfetto *perfetto = export->state;
	uint64_t track = thread_track(export, period);

	begin_slice(perfetto, track, vp_lane_state_name(period->state));
	annotate(perfetto, "certainty", vp_lane_certainty_name(period->certainty));
	export_perfetto_end_slice(export, track, period->begin, period->end);
}

static void export_perfetto_put_vcpu_period(struct vp_export *export,
					    const struct vp_period *period)
{
	struct perfetto *perfetto = export->state;
	uint32_t number = period->vcpu == VP_VCPU_UNKNOWN ? period->tid : period->vcpu;
	uint64_t track =
	    vcpu_track(export, period->vm, number, vp_lanes_vm(export->lanes, period->vm));
	bool woken = period->state == VP_LANE_WAKING && period->has_waker &&
		     period->begin == period->wait_begin;
	uint64_t flow = woken ? put_waker(export, period) : 0;

	begin_slice(perfetto, track, vp_lane_state_name(period->state));
	if (flow)
		vp_pb_fixed64(&perfetto->event, EVENT_FLOW, flow);
	annotate(perfetto, "thief", period->has_thief ? period->thief_comm : NULL);
	export_perfetto_end_slice(export, track, period->begin, period->end);
	if (period->has_guest)
		export_perfetto_put_guest_thread(export, period);
}

static void export_perfetto_put_period(struct vp_export *export, const struct vp_period *period)
{
	if (period->lane == VP_LANE_PCPU)
		export_perfetto_put_pcpu_period(export, period);
	else
		export_perfetto_put_vcpu_period(export, period);
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
						    .period = export_perfetto_put_period,
						    .deinit = export_perfetto_deinit};

	return &exporter;
}
