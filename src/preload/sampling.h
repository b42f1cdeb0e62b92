/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events that take samples: each period a signal, and before it a record in the mapped buffer with
 * where the thread was. Only what needs no more than that is answered (PAPI's overflow and
 * profiles): an event of the calling thread, with the instruction pointer at most in its samples.
 */
#ifndef VP_PRELOAD_SAMPLING_H
#define VP_PRELOAD_SAMPLING_H

#include <stdbool.h>
#include <sys/types.h>

#include <linux/perf_event.h>

#include "counters/counters_lent.h"
#include "counters/overflow.h"

struct vp_shim_sampling {
	uint64_t period; /* 0: it takes none */
	bool has_ip, is_async;
	int signal;                            /* 0: not set yet */
	struct vp_counters_overflow *overflow; /* NULL: there is no signal yet, it only counts */
	bool runs, was_on;
	uint64_t limit;                    /* overflows until it is disabled; 0: none */
	uint64_t shown[VPERF_MAX_EVENTS];  /* of all that is lent, at the last look */
	uint64_t ip;                       /* where the thread was then */
	struct perf_event_mmap_page *ring; /* this side's view of it; NULL: not mapped */
	size_t ring_size;
	uint64_t head; /* bytes that were put into it */
};

/* A thread whose lent counters some events read. */
struct vp_shim_source {
	struct vp_shim_source *next;
	struct vp_counters_lent *lent;
	pid_t tid;
	bool inherits; /* what the thread makes is counted, too */
	unsigned users;
	struct vp_shim_event *events; /* that read them */
};

struct vp_shim_event {
	int fd, companion;
	pid_t tid;
	struct vp_shim_source *source; /* NULL: it is an event of the kernel's own */
	unsigned index;
	struct vp_shim_event *leader, *next; /* itself, if it leads; the next of its group */
	struct vp_shim_event *next_of_source;
	uint64_t read_format, id;
	bool is_on, is_lost, inherits, waits_for_exec;
	_Atomic bool is_answered; /* its group has lent ones */
	uint32_t n_children;      /* threads and processes, when it was opened */
	uint64_t children;        /* what such had had then */
	uint64_t count;
	uint64_t since; /* what the source showed when `count` was brought up to date */
	struct vp_shim_sampling sampling;
};

/* Whether samples of that kind can be taken. */
bool vp_shim_can_sample(const struct perf_event_attr *attr, pid_t pid);
/* After whatever may have switched it on or off; 0, or -errno. */
int vp_shim_sampling_follow(struct vp_shim_event *event);
void vp_shim_sampling_close(struct vp_shim_sampling *sampling);
/* The result of fcntl(2); -ENOSYS: pass it to the kernel. */
int vp_shim_sampling_fcntl(struct vp_shim_event *event, int command, unsigned long argument);
/* A buffer of that size, for the program and for this side; MAP_FAILED. */
void *vp_shim_sampling_map(struct vp_shim_sampling *sampling, void *address, size_t size,
			   int flags);

#endif
