/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slices of a recording: converts events to states of pCPUs (running thread) and of vCPUs (guest,
 * work, waiting for a pCPU, asleep; and guest thread). A slice is emitted at its end; memory grows
 * only with the number of pCPUs, vCPUs and names.
 */
#ifndef VP_ANALYZE_TRACE_TRACKS_H
#define VP_ANALYZE_TRACE_TRACKS_H

#include "analyze/trace/trace_feed.h"
#include "base/macros.h"

enum vp_track { VP_TRACK_PCPU, VP_TRACK_VCPU };

enum vp_track_state {
	VP_TRACK_RUNNING,   /* pCPU: a thread is running … */
	VP_TRACK_IDLE,      /* … or none */
	VP_TRACK_GUEST,     /* vCPU, from here on: in guest mode */
	VP_TRACK_WORK,      /* on a pCPU, in KVM or in the VMM */
	VP_TRACK_PREEMPTED, /* runnable, while another thread has the pCPU */
	VP_TRACK_WAKING,    /* woken, not yet running */
	VP_TRACK_HALTED,    /* asleep after a halt */
	VP_TRACK_WAITING,   /* asleep for another reason */
	VP_TRACK_STATES
};

/* Whether the guest thread had the vCPU during the whole slice in guest mode. */
enum vp_track_certainty { VP_TRACK_UNKNOWN, VP_TRACK_EXACT, VP_TRACK_UNCERTAIN };

struct vp_track_slice {
	enum vp_track track;
	enum vp_track_state state;
	uint64_t begin, end;
	uint32_t pcpu; /* pCPU on which it runs or waits; VP_NO_PCPU: none */
	uint32_t tid;  /* of the pCPU's thread, or of the vCPU thread */
	const char *comm;
	bool has_vcpu; /* for a pCPU: its thread is a vCPU thread */
	uint32_t vm, vcpu;
	/* For a vCPU: the guest's current thread at the start. */
	bool has_guest;
	uint32_t guest_tid, guest_pid;
	const char *guest_comm;
	enum vp_track_certainty certainty;
	uint32_t switches; /* number of guest switches in it, as far as known */
	/* STOLEN and WAKING: the thief. */
	bool has_thief;
	uint32_t thief_tid;
	const char *thief_comm;
	/* WAKING, if known: the waker, and its pCPU. */
	bool has_waker;
	uint32_t waker_tid, waker_pcpu;
	const char *waker_comm;
	/* STOLEN and WAKING: a wait consists of several slices if the thief changes; start of the
	 * wait, and whether it ended with this slice, by getting a pCPU. */
	uint64_t wait_begin;
	bool wait_ends;
};

/* Guest switches of a vCPU between `from` and `to`. */
struct vp_track_switches {
	uint64_t total;       /* by the guest kernel's counter */
	uint64_t observed;    /* those that were the last one before an exit */
	uint64_t implausible; /* implausible values of the counter, which were ignored */
	uint64_t restarts;    /* number of times that the counter became known */
};

struct vp_tracks_options {
	uint64_t from, to; /* CLOCK_MONOTONIC, ns: slices are cut to this time */
	const char *vm;    /* name, or pid of its VMM; NULL: all */
	const int *pcpus;  /* only slices on these pCPUs */
	size_t n_pcpus;    /* 0: all pCPUs */
	void (*take)(void *context, const struct vp_track_slice *slice);
	/* NULL, or receives each event after the slices that it ends, whatever is selected. */
	void (*event)(void *context, const struct vp_feed_event *event);
	void *context;
};

struct vp_tracks;

struct vp_error *vp_tracks_open(const char *directory, const struct vp_tracks_options *options,
				struct vp_tracks **ret) VP_MUST_CHECK;
void vp_tracks_close(struct vp_tracks *tracks);
/* Processes up to `events` further events; false at the end of the recording, when all slices were
 * emitted. */
bool vp_tracks_read(struct vp_tracks *tracks, uint64_t events);
const struct vp_feed *vp_tracks_feed(const struct vp_tracks *tracks);
/* Name of a VM, or its number as text; owned by `tracks`. */
const char *vp_tracks_vm(struct vp_tracks *tracks, uint32_t vm);
/* Name of a host thread, as 'vperf steal' prints it: "vCPU 0 of VM g2" or "backup/161". */
const char *vp_tracks_host_thread(struct vp_tracks *tracks, uint32_t tid, const char *comm);
/* The guest switches of a vCPU; one with an unknown number is identified by its thread. */
struct vp_track_switches vp_tracks_switches(const struct vp_tracks *tracks, uint32_t vm,
					    uint32_t vcpu, uint32_t tid);

#endif
