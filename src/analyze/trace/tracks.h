/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slices of a recording: its events as states of its pCPUs (the thread) and of its vCPUs (in the
 * guest, in KVM, waiting for a pCPU, asleep; and the guest thread). A slice is passed on at its
 * end; memory grows with pCPUs, vCPUs and names only. */
#ifndef VP_ANALYZE_TRACE_TRACKS_H
#define VP_ANALYZE_TRACE_TRACKS_H

#include "analyze/trace/trace_feed.h"
#include "base/macros.h"

enum vp_track { VP_TRACK_PCPU, VP_TRACK_VCPU };

enum vp_track_state {
	VP_TRACK_RUNNING, /* of a pCPU: a thread has it … */
	VP_TRACK_IDLE,    /* … or none */
	VP_TRACK_GUEST,   /* of a vCPU, from here on: in guest mode */
	VP_TRACK_HOST,    /* on a pCPU, in KVM or in the VMM */
	VP_TRACK_STOLEN,  /* runnable, but another thread had the pCPU */
	VP_TRACK_WAKING,  /* woken, and has no pCPU yet */
	VP_TRACK_HALTED,  /* asleep after a halt */
	VP_TRACK_BLOCKED, /* asleep for another reason */
	VP_TRACK_STATES
};

/* Whether the guest's thread had the vCPU during all of a slice in guest mode. */
enum vp_track_certainty { VP_TRACK_UNKNOWN, VP_TRACK_EXACT, VP_TRACK_UNCERTAIN };

struct vp_track_slice {
	enum vp_track track;
	enum vp_track_state state;
	uint64_t begin, end;
	uint32_t pcpu; /* where it is or waits; VP_NO_PCPU: nowhere */
	uint32_t tid;  /* of the pCPU's thread, of the vCPU's */
	const char *comm;
	bool has_vcpu; /* of a pCPU: its thread is a vCPU's */
	uint32_t vm, vcpu;
	/* For a vCPU: the guest thread that was current at the start. */
	bool has_guest;
	uint32_t guest_tid, guest_pid;
	const char *guest_comm;
	enum vp_track_certainty certainty;
	uint32_t switches; /* that the guest made in it, as far as is known */
	/* STOLEN and WAKING: who had that pCPU. */
	bool has_thief;
	uint32_t thief_tid;
	const char *thief_comm;
	/* WAKING, if it is known: who woke it, and where that ran. */
	bool has_waker;
	uint32_t waker_tid, waker_pcpu;
	const char *waker_comm;
	/* STOLEN and WAKING: the wait is in several slices if the thief changes; since when it
	 * lasts, and whether it ended with this one, by getting a pCPU. */
	uint64_t wait_begin;
	bool wait_ends;
};

/* The switches of a vCPU's guest between `from` and `to`. */
struct vp_track_switches {
	uint64_t made, seen; /* counted by its kernel; of these, that were the last of an exit's */
	uint64_t jumps;      /* its count was not believed */
	uint64_t begins;     /* times from which on it was known */
};

struct vp_tracks_options {
	uint64_t from, to; /* CLOCK_MONOTONIC, ns: slices are cut to this time */
	const char *vm;    /* name, or pid of its VMM; NULL: all */
	const int *pcpus;  /* only slices on these */
	size_t n_pcpus;    /* 0: all */
	void (*take)(void *context, const struct vp_track_slice *slice);
	void *context;
};

struct vp_tracks;

struct vp_error *vp_tracks_open(const char *directory, const struct vp_tracks_options *options,
				struct vp_tracks **ret) VP_MUST_CHECK;
void vp_tracks_close(struct vp_tracks *tracks);
/* Reads up to `events` more of them; false at the recording's end, when all slices were passed
 * on. */
bool vp_tracks_read(struct vp_tracks *tracks, uint64_t events);
const struct vp_feed *vp_tracks_feed(const struct vp_tracks *tracks);
/* Name of a VM, or its number as text; the tracks'. */
const char *vp_tracks_vm(struct vp_tracks *tracks, uint32_t vm);
/* The switches of a vCPU; one whose number is not known is known by its thread. */
struct vp_track_switches vp_tracks_switches(const struct vp_tracks *tracks, uint32_t vm,
					    uint32_t vcpu, uint32_t tid);

#endif
