/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The two sources of a tracker's events. Both fill kernel buffers while the agent
 * sleeps, and wake it only when one is half full.
 */
#ifndef VP_GUEST_WATCH_H
#define VP_GUEST_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "guest/tracker.h"

/* Births, execs, exits and page table roots, by BPF programs. */
struct vp_task_watch;

/* Loads and attaches the programs. Errors: no BTF, no permission. */
struct vp_error *vp_task_watch_open(struct vp_task_watch **watch) VP_MUST_CHECK;
void vp_task_watch_close(struct vp_task_watch *watch);
/* Adds every process that exists now. */
struct vp_error *vp_task_watch_scan(struct vp_task_watch *watch,
				    struct vp_tracker *tracker) VP_MUST_CHECK;
/* Adds what happened since the last time. */
void vp_task_watch_drain(struct vp_task_watch *watch, struct vp_tracker *tracker);
/* Readable when it is time to drain. */
int vp_task_watch_fd(const struct vp_task_watch *watch);
/* Events that found the buffer full. */
uint64_t vp_task_watch_lost(const struct vp_task_watch *watch);
/* False if the direct map was not found, so that roots are 0. */
bool vp_task_watch_has_roots(const struct vp_task_watch *watch);

/* Mappings and names of processes, by perf events. */
struct vp_perf_watch;

/* With `lives`, forks, execs and exits are taken from here, too, without roots. Errors: no
 * permission. */
struct vp_error *vp_perf_open(bool lives, struct vp_perf_watch **watch) VP_MUST_CHECK;
void vp_perf_close(struct vp_perf_watch *watch);
/* Adds what happened since the last time. */
void vp_perf_drain(struct vp_perf_watch *watch, struct vp_tracker *tracker);
/* Sets *fds to descriptors that are readable when it is time to drain; returns how many there are.
 */
unsigned vp_perf_fds(const struct vp_perf_watch *watch, const int **fds);
/* Records that found a buffer full. */
uint64_t vp_perf_lost(const struct vp_perf_watch *watch);

#endif
