/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events of a recording's trace as structs of schema/trace_records.h, in order of time, with
 * thread names of that time. Only events with the layout of this program. Where VMs are not
 * processes, and scheduler events do not show them, it also returns the states of vCPUs, each at
 * its end.
 */
#ifndef VP_ANALYZE_TRACE_TRACE_FEED_H
#define VP_ANALYZE_TRACE_TRACE_FEED_H

#include "analyze/common/health.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/map.h"
#include "schema/trace_event.h"
#include "schema/vm.h"
#include "store/recording.h"
#include "store/trace_reader.h"
#include "timeline/merge.h"

struct vp_feed {
	char *directory;
	struct vp_recording recording;
	vp_vms vms;
	vp_sentences notes;
	vp_stream_readers streams;
	struct vp_merge merge;
	bool merging, ended;
	bool by_states;         /* vCPU slices come from state records */
	uint8_t kind_of_id[64]; /* from VP_ID_DEFINED on: enum vp_trace_kind + 1, or 0 */
	struct vp_map comm_of_tid, comm_of_guest_tid, pid_of_tid;
	struct vp_intern comms;
	uint64_t counts[VP_TRACE_EVENTS_COUNT]; /* number of events so far */
	uint64_t first, last;                   /* times of events so far; 0: none */
	uint64_t unreadable;
};

/* In place of a vp_trace_kind: a state of a vCPU. */
enum { VP_FEED_SPAN = VP_TRACE_EVENTS_COUNT };

struct vp_feed_event {
	uint64_t time;
	uint32_t pcpu;
	uint32_t kind; /* enum vp_trace_kind, or VP_FEED_SPAN */
	union {
		const struct vp_record_header *header;
		const struct vp_trace_sched_switch *sched_switch;
		const struct vp_trace_sched_wakeup *sched_wakeup; /* also for sched_wakeup_new */
		const struct vp_trace_kvm_entry *kvm_entry;
		const struct vp_trace_kvm_exit *kvm_exit;
		const struct vp_trace_guest_switch *guest_switch;
		const struct vp_vcpu_span *span;
	};
};

/* Whether such events were recorded. */
bool vp_feed_is_recorded(const char *directory, const struct vp_recording *recording,
			 const vp_vms *vms);
/* Errors: not a recording, or without such events. */
struct vp_error *vp_feed_open(const char *directory, struct vp_feed *ret) VP_MUST_CHECK;
void vp_feed_close(struct vp_feed *feed);
/* False at the end; then the notes are complete. The record is valid until the next call. */
bool vp_feed_next(struct vp_feed *feed, struct vp_feed_event *ret);

/* Process of a host thread; 0: unknown. */
uint32_t vp_feed_pid(const struct vp_feed *feed, uint32_t tid);
/* Names of a host thread, and of a VM; NULL: unknown. Valid until the feed is closed. */
const char *vp_feed_comm(const struct vp_feed *feed, uint32_t tid);
const char *vp_feed_guest_comm(const struct vp_feed *feed, uint32_t vm, uint32_t tid);

#endif
