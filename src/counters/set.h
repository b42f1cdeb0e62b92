/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A set of counters: definitions shared by the files of this folder. */
#ifndef VP_COUNTERS_SET_H
#define VP_COUNTERS_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "base/macros.h"
#include "counters/counters_event.h"
#include "vperf/counters.h"

struct perf_event_mmap_page;

/* A perf event group, for access methods 1 and 2. */
struct vp_counters_group {
	unsigned n;
	int fds[VPERF_MAX_EVENTS];                            /* the first is the leader */
	struct perf_event_mmap_page *pages[VPERF_MAX_EVENTS]; /* NULL: not mapped */
	uint64_t signs[VPERF_MAX_EVENTS]; /* vp_counters_page_sign(), once counting */
	uint64_t period;                  /* of signal_event; 0: no signals */
	unsigned signal_event;
};

/* Sets the error, unless `error` is NULL, and returns the status. */
int vp_counters_fail(struct vperf_error *error, int status, const char *format, ...)
    VP_PRINTF(3, 4);

/* Opens the group, disabled; `options`: its signal. */
int vp_counters_group_open(const struct vp_counters_event *events, unsigned n,
			   const struct vperf_options *options, struct vp_counters_group *ret,
			   struct vperf_error *error);
void vp_counters_group_close(struct vp_counters_group *group);
int vp_counters_group_enable(struct vp_counters_group *group, bool enable);
/* Enables the group and its signals. The first signal comes after a whole period. */
int vp_counters_group_start(struct vp_counters_group *group);
/* Reads with a system call, and in user space; the latter falls back to the system call if the page
 * cannot be used. */
int vp_counters_group_call(const struct vp_counters_group *group, uint64_t *values);
int vp_counters_group_user(const struct vp_counters_group *group, uint64_t *values);
/* Whether the group should be read in user space (or can be, if requested); maps its pages. `why`:
 * the reason as text. */
bool vp_counters_prefer_user(struct vp_counters_group *group, const struct vp_counters_event *first,
			     bool asked, char *why, size_t size);

/* Clock readings at the start and later. */
struct vp_counters_clocks {
	uint64_t wall, on_cpu;
	uint64_t steal; /* of the CPU or CPUs that the thread may run on */
	int cpu;        /* the only CPU of the thread's affinity, or -1 */
};

/* A descriptor from which vp_counters_clocks_read() reads the time on a CPU, or -1. */
int vp_counters_clocks_open(void);
/* Steal of a CPU, or of all (-1), in ns, from an open /proc/stat. */
uint64_t vp_counters_steal_of(int fd, int cpu);
void vp_counters_clocks_read(int fd, struct vp_counters_clocks *ret);

/* Whether there is a hypervisor, and whether it reports steal. */
enum vp_counters_hypervisor { VP_BARE_METAL, VP_SHOWS_STEAL, VP_MAY_SHOW_STEAL };
/* Adds bounds of the steal between two readings to `ret`, which has the times; `cpus`: number of
 * CPUs whose steal they have. */
void vp_counters_bound_stolen(enum vp_counters_hypervisor hypervisor, unsigned cpus,
			      const struct vp_counters_clocks *start,
			      const struct vp_counters_clocks *now, struct vperf_times *ret);
/* Differences of clock readings; also the steal, except for lent counters, which have a better
 * value. */
void vp_counters_clocks_between(int fd, const struct vp_counters_clocks *start,
				struct vperf_times *ret);

struct vp_counters_lent;

/* Host-provided counters; the last value is the thread's steal so far, ns. */
int vp_counters_lent_open(const struct vp_counters_event *events, unsigned n, bool exact,
			  struct vp_counters_lent **ret, struct vperf_error *error);
void vp_counters_lent_close(struct vp_counters_lent *lent);
/* Minus `start`. `exact`: forces a VM exit, even if the set does not want one at each read. */
int vp_counters_lent_read(struct vp_counters_lent *lent, bool exact, const uint64_t *start,
			  uint64_t *values);
int vp_counters_lent_stolen(struct vp_counters_lent *lent, uint64_t *ret);
/* Number of times that the thread was switched in. */
uint64_t vp_counters_lent_runs(const struct vp_counters_lent *lent);

#endif
