/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sampling with host-provided counters: at each period a record with the thread's location in the
 * mapped buffer, then a signal. Only the subset that PAPI's overflow and profiling need is
 * supported: an event of the calling thread, samples with at most the instruction pointer.
 */
#ifndef VP_PRELOAD_SAMPLING_H
#define VP_PRELOAD_SAMPLING_H

#include <stdbool.h>
#include <sys/types.h>

#include <linux/perf_event.h>

#include "counters/counters_lent.h"
#include "counters/overflow.h"

struct vp_shim_sampling {
	uint64_t period; /* 0: not a sampling event */
	bool has_ip, is_async;
	int signal;                            /* 0: not set yet */
	struct vp_counters_overflow *overflow; /* NULL: no signal yet, the event only counts */
	bool runs, was_on;
	uint64_t limit;                   /* overflows until the event is disabled; 0: no limit */
	uint64_t shown[VPERF_MAX_EVENTS]; /* values of all provided counters at the last overflow */
	uint64_t ip;                      /* instruction pointer at that time */
	struct perf_event_mmap_page *ring; /* our mapping of the buffer; NULL: not mapped */
	size_t ring_size;
	uint64_t head; /* number of bytes written */
};

/* A thread whose host-provided counters are read by some events. */
struct vp_shim_source {
	struct vp_shim_source *next;
	struct vp_counters_lent *lent;
	pid_t tid;
	bool inherits; /* counts the thread's children, too */
	unsigned users;
	struct vp_shim_event *events; /* events that read them */
};

struct vp_shim_event {
	int fd, companion;
	pid_t tid;
	struct vp_shim_source *source; /* NULL: an event of the kernel itself */
	unsigned index;
	struct vp_shim_event *leader,
	    *next; /* the leader, possibly itself; the next event of its group */
	struct vp_shim_event *next_of_source;
	uint64_t read_format, id;
	bool is_on, is_lost, inherits, waits_for_exec;
	_Atomic bool is_answered; /* its group has host-provided events */
	uint32_t n_children;      /* number of threads and processes when it was opened */
	uint64_t children;        /* their counts at that time */
	uint64_t count;
	uint64_t since; /* the source's value at the last update of `count` */
	struct vp_shim_sampling sampling;
};

/* Whether this kind of sampling is supported. */
bool vp_shim_can_sample(const struct perf_event_attr *attr, pid_t pid);
/* Call after changes of the event's state; 0 or -errno. */
int vp_shim_sampling_follow(struct vp_shim_event *event);
void vp_shim_sampling_close(struct vp_shim_sampling *sampling);
/* The result of fcntl(2); -ENOSYS: pass the call to the kernel. */
int vp_shim_sampling_fcntl(struct vp_shim_event *event, int command, unsigned long argument);
/* A buffer of that size for the program, and its mapping here; or MAP_FAILED. */
void *vp_shim_sampling_map(struct vp_shim_sampling *sampling, void *address, size_t size,
			   int flags);

#endif
