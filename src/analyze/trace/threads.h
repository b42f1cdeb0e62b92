/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * History of each thread of host and guests, from a recording's events: running, runnable or
 * asleep, with its waker. Unlike vCPU slices (tracks.h), it is searched in any order, and therefore
 * kept in memory for the requested time.
 */
#ifndef VP_ANALYZE_TRACE_THREADS_H
#define VP_ANALYZE_TRACE_THREADS_H

#include "analyze/common/guest_trace.h"
#include "analyze/common/health.h"
#include "analyze/trace/tracks.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"

/* In the first two states a thread is on a CPU or in its run queue. */
enum vp_thread_state { VP_THREAD_RUNNING, VP_THREAD_RUNNABLE, VP_THREAD_ASLEEP };

enum vp_waker_kind {
	VP_WAKER_UNKNOWN,
	VP_WAKER_THREAD,
	VP_WAKER_TIMER,  /* a timer interrupt, or a softirq of timers */
	VP_WAKER_DEVICE, /* interrupt number `id`, or a softirq of block or network devices */
	VP_WAKER_SOFTIRQ /* another softirq, number `id` */
};

struct vp_waker {
	enum vp_waker_kind kind;
	uint32_t id; /* tid, or number of the interrupt */
	uint32_t cpu;
};

struct vp_thread_segment {
	uint64_t begin, end;
	enum vp_thread_state state;
	bool woken;            /* RUNNABLE: after sleep; false: after preemption */
	bool ended;            /* by an event; false: by the end of the data */
	uint32_t cpu;          /* RUNNING, RUNNABLE: pCPU, or number of the vCPU */
	struct vp_waker waker; /* ASLEEP: the waker that ended it; RUNNABLE and woken: the same */
};

struct vp_thread {
	uint32_t vm; /* 0: of the host, if that is no VM */
	uint32_t tid;
	const char *comm; /* NULL: unknown */
	VP_VEC(struct vp_thread_segment)
	segments; /* without gaps; those that overlap the time, uncut */
	/* The present, unfinished segment. */
	bool known;
	struct vp_thread_segment now;
	struct vp_waker waker; /* a wakeup by it is in progress */
};

/* State of a vCPU, or thread of a pCPU. */
struct vp_cpu_segment {
	uint64_t begin, end;
	enum vp_track_state state;
	bool has_tid;
	uint32_t tid; /* of the pCPU; for a vCPU: the thief */
	const char *comm;
};

/* Time from which a guest thread had the vCPU, from guest events. */
struct vp_cpu_slice {
	uint64_t begin;
	uint32_t tid;
};

struct vp_cpu {
	uint32_t vm, number;                    /* 0: of the host */
	uint32_t tid;                           /* of a vCPU thread */
	VP_VEC(struct vp_cpu_segment) segments; /* cut to the time */
	VP_VEC(struct vp_cpu_slice) slices;     /* of a vCPU, up to the end of the time */
};

struct vp_threads {
	uint64_t from, to;
	uint32_t host;            /* the VM of the host itself, Xen's dom0; or 0 */
	struct vp_tracks *tracks; /* owns names; read to the end */
	vp_guest_traces guests;
	struct vp_map thread_of, cpu_of, vcpu_of_tid;
	VP_VEC(struct vp_thread) threads;
	VP_VEC(struct vp_cpu) cpus;
	struct vp_intern texts;
	vp_sentences notes;
	size_t kept; /* number of segments and slices */
};

struct vp_threads_options {
	uint64_t from, to; /* CLOCK_MONOTONIC, ns */
	const char *vm;    /* guest whose events are required; NULL: any */
	bool others;       /* also read events of other guests */
};

/* Errors: not a recording, no host events, no guest events. */
struct vp_error *vp_threads_open(const char *directory, const struct vp_threads_options *options,
				 struct vp_threads *ret) VP_MUST_CHECK;
void vp_threads_deinit(struct vp_threads *threads);
/* NULL: unknown thread. */
const struct vp_thread *vp_threads_find(const struct vp_threads *threads, uint32_t vm,
					uint32_t tid);
const struct vp_cpu *vp_threads_cpu(const struct vp_threads *threads, uint32_t vm, uint32_t number);
/* The guest thread that was running on the vCPU whose host thread is `thread`; NULL: not a vCPU
 * thread, or the guest thread is unknown. */
const struct vp_thread *vp_threads_inside(const struct vp_threads *threads,
					  const struct vp_thread *thread, uint64_t time);
/* Index of the last segment that starts before `time`, + 1; 0: none. */
size_t vp_thread_segment_before(const struct vp_thread *thread, uint64_t time);
size_t vp_cpu_segment_before(const struct vp_cpu *cpu, uint64_t time);
/* "name/TID"; owned by `threads`. */
const char *vp_threads_name(struct vp_threads *threads, const char *comm, uint32_t tid);

#endif
