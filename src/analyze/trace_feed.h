/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events of a recording's trace as the structs of schema/trace_records.h, in order of time, and
 * the names of threads as of then. Only events that are as this program would record them.
 */
#ifndef VP_ANALYZE_TRACE_FEED_H
#define VP_ANALYZE_TRACE_FEED_H

#include "analyze/health.h"
#include "base/intern.h"
#include "base/map.h"
#include "schema/trace_event.h"
#include "timeline/merge.h"

struct vp_feed {
	struct vp_recording recording;
	vp_vms vms;
	vp_sentences notes;
	vp_stream_readers streams;
	struct vp_merge merge;
	bool merging, ended;
	uint8_t place_of_id[64]; /* from VP_ID_DEFINED on: enum vp_trace_place + 1, or 0 */
	struct vp_map comm_of_tid, comm_of_guest_tid;
	struct vp_intern comms;
	uint64_t seen[VP_TRACE_EVENTS_COUNT]; /* events so far */
	uint64_t first, last;                 /* times of events so far; 0: none */
	uint64_t unreadable;
};

struct vp_feed_event {
	uint64_t time;
	uint32_t pcpu;
	enum vp_trace_place place;
	union {
		const struct vp_record_header *header;
		const struct vp_trace_sched_switch *sched_switch;
		const struct vp_trace_sched_wakeup *sched_wakeup; /* and _new */
		const struct vp_trace_kvm_entry *kvm_entry;
		const struct vp_trace_kvm_exit *kvm_exit;
		const struct vp_trace_guest_switch *guest_switch;
	};
};

/* Errors: no recording, or it has no such events. */
struct vp_error *vp_feed_open(const char *directory, struct vp_feed *ret) VP_MUST_CHECK;
void vp_feed_close(struct vp_feed *feed);
/* False at the end; then the notes are complete. The record is valid until the next call. */
bool vp_feed_next(struct vp_feed *feed, struct vp_feed_event *ret);

/* Names of a host's thread, of a VM's; NULL: not known. They stay until the feed is closed. */
const char *vp_feed_comm(const struct vp_feed *feed, uint32_t tid);
const char *vp_feed_guest_comm(const struct vp_feed *feed, uint32_t vm, uint32_t tid);

#endif
