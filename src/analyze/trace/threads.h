/* SPDX-License-Identifier: GPL-2.0-or-later */
/* History of each thread of the host and of the guests, from a recording's events: running,
 * runnable or asleep, with its waker. Unlike vCPU slices (tracks.h) these are looked up in any
 * order, so they are kept in memory, for the requested time. */
#ifndef VP_ANALYZE_TRACE_THREADS_H
#define VP_ANALYZE_TRACE_THREADS_H

#include "analyze/common/guest_trace.h"
#include "analyze/common/health.h"
#include "analyze/trace/tracks.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"

/* The first two of enum vp_thread_state are on a CPU or in its run queue. */
enum vp_thread_state { VP_THREAD_RUNNING, VP_THREAD_RUNNABLE, VP_THREAD_ASLEEP };

enum vp_waker_kind {
	VP_WAKER_UNKNOWN,
	VP_WAKER_THREAD,
	VP_WAKER_TIMER,  /* a timer's interrupt, or a soft interrupt of timers */
	VP_WAKER_DEVICE, /* an interrupt of number `id`, or a soft interrupt of disks or nets */
	VP_WAKER_SOFTIRQ /* another one, of number `id` */
};

struct vp_waker {
	enum vp_waker_kind kind;
	uint32_t id; /* the thread, or the interrupt */
	uint32_t cpu;
};

struct vp_thread_segment {
	uint64_t begin, end;
	enum vp_thread_state state;
	bool woken;            /* RUNNABLE: after sleep, else it was preempted */
	bool ended;            /* by an event; otherwise by the end of what is known */
	uint32_t cpu;          /* RUNNING, RUNNABLE: pCPU, or number of the vCPU */
	struct vp_waker waker; /* ASLEEP: who ended it; RUNNABLE and woken: the same */
};

struct vp_thread {
	uint32_t vm; /* 0: of the host */
	uint32_t tid;
	const char *comm; /* NULL: not known */
	VP_VEC(struct vp_thread_segment)
	segments; /* without gaps; whole, if some of it is in the time */
	/* The part that goes on. */
	bool known;
	struct vp_thread_segment now;
	struct vp_waker waker; /* it is about to be woken by */
};

/* A vCPU's state, or a pCPU's thread. */
struct vp_cpu_segment {
	uint64_t begin, end;
	enum vp_track_state state;
	bool has_tid;
	uint32_t tid; /* of the pCPU; who had it instead of the vCPU */
	const char *comm;
};

/* From when on a guest's thread had the vCPU, by the guest's events. */
struct vp_cpu_slice {
	uint64_t begin;
	uint32_t tid;
};

struct vp_cpu {
	uint32_t vm, number;                    /* 0: the host's */
	uint32_t tid;                           /* of a vCPU */
	VP_VEC(struct vp_cpu_segment) segments; /* cut to the time */
	VP_VEC(struct vp_cpu_slice) slices;     /* of a vCPU, up to the time's end */
};

struct vp_threads {
	uint64_t from, to;
	struct vp_tracks *tracks; /* names are theirs, read to the end */
	vp_guest_traces guests;
	struct vp_map thread_of, cpu_of, vcpu_of_tid;
	VP_VEC(struct vp_thread) threads;
	VP_VEC(struct vp_cpu) cpus;
	struct vp_intern texts;
	vp_sentences notes;
	size_t kept; /* parts and turns */
};

struct vp_threads_options {
	uint64_t from, to; /* CLOCK_MONOTONIC, ns */
	const char *vm;    /* which guest's events there have to be; NULL: any */
	bool others;       /* those of other guests are read, too */
};

/* Errors: no recording, no host's events, no guest's. */
struct vp_error *vp_threads_open(const char *directory, const struct vp_threads_options *options,
				 struct vp_threads *ret) VP_MUST_CHECK;
void vp_threads_deinit(struct vp_threads *threads);
/* NULL: nothing is known of it. */
const struct vp_thread *vp_threads_find(const struct vp_threads *threads, uint32_t vm,
					uint32_t tid);
const struct vp_cpu *vp_threads_cpu(const struct vp_threads *threads, uint32_t vm, uint32_t number);
/* The guest's thread that had the vCPU whose thread on the host `thread` is; NULL: not a vCPU
 * thread, or the thread is not in the guest's events. */
const struct vp_thread *vp_threads_inside(const struct vp_threads *threads,
					  const struct vp_thread *thread, uint64_t time);
/* Place of the last part that begins before `time`, plus 1; 0 if all begin later. */
size_t vp_thread_segment_before(const struct vp_thread *thread, uint64_t time);
size_t vp_cpu_segment_before(const struct vp_cpu *cpu, uint64_t time);
/* "name/TID"; of `threads`. */
const char *vp_threads_name(struct vp_threads *threads, const char *comm, uint32_t tid);

#endif
