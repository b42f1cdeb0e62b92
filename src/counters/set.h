/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A set of counters, as the files of this folder share it. */
#ifndef VP_COUNTERS_SET_H
#define VP_COUNTERS_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "base/macros.h"
#include "counters/counters_event.h"
#include "vperf/counters.h"

struct perf_event_mmap_page;

/* A group of perf's events: what ways 1 and 2 read. */
struct vp_counters_group {
	unsigned n;
	int fds[VPERF_MAX_EVENTS];                            /* the first is the leader */
	struct perf_event_mmap_page *pages[VPERF_MAX_EVENTS]; /* NULL: not mapped */
	uint64_t signs[VPERF_MAX_EVENTS]; /* vp_counters_page_sign(), once it counts */
};

/* Sets the error, if there is one to set, and returns the status. */
int vp_counters_fail(struct vperf_error *error, int status, const char *format, ...)
    VP_PRINTF(3, 4);

/* Opens the group, not counting; `options` for its signal. */
int vp_counters_group_open(const struct vp_counters_event *events, unsigned n,
			   const struct vperf_options *options, struct vp_counters_group *ret,
			   struct vperf_error *error);
void vp_counters_group_close(struct vp_counters_group *group);
int vp_counters_group_enable(struct vp_counters_group *group, bool enable);
/* By a call, and in user space; the latter falls back to the call if the page cannot be used. */
int vp_counters_group_call(const struct vp_counters_group *group, uint64_t *values);
int vp_counters_group_user(const struct vp_counters_group *group, uint64_t *values);
/* Whether the group is better read in user space, or, if it was asked for, can be; maps its pages.
 * `why` gets the reason in words. */
bool vp_counters_prefer_user(struct vp_counters_group *group, const struct vp_counters_event *first,
			     bool asked, char *why, size_t size);

/* Readings of the clocks at the start and later. */
struct vp_counters_clocks {
	uint64_t wall, on_cpu;
	uint64_t steal; /* of the CPU or CPUs that the thread may run on */
	int cpu;        /* the only one, or -1 */
};

/* A descriptor that vp_counters_clocks_read() reads the time on a CPU from, or -1. */
int vp_counters_clocks_open(void);
/* Nanoseconds stolen from a CPU, or from all (-1), by an open /proc/stat. */
uint64_t vp_counters_steal_of(int fd, int cpu);
void vp_counters_clocks_read(int fd, struct vp_counters_clocks *ret);
/* The times between; but for lent counters, which know better, also what was stolen. */
void vp_counters_clocks_between(int fd, const struct vp_counters_clocks *start,
				struct vperf_times *ret);

struct vp_counters_lent;

/* Counters lent by the host; the last yields the time stolen from the thread so far, ns. */
int vp_counters_lent_open(const struct vp_counters_event *events, unsigned n, bool exact,
			  struct vp_counters_lent **ret, struct vperf_error *error);
void vp_counters_lent_close(struct vp_counters_lent *lent);
/* Less `start`. `exact`: forces an exit, even if the set does not want one at each read. */
int vp_counters_lent_read(struct vp_counters_lent *lent, bool exact, const uint64_t *start,
			  uint64_t *values);
int vp_counters_lent_stolen(struct vp_counters_lent *lent, uint64_t *ret);
/* How often the thread was switched in. */
uint64_t vp_counters_lent_runs(const struct vp_counters_lent *lent);

#endif
