/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two sources of tracker events. Both fill kernel buffers while the agent sleeps, and wake it
 * only when one is half full. */
#ifndef VP_GUEST_WATCH_H
#define VP_GUEST_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "guest/tracker.h"

/* Starts, execs, exits and page-table roots, from BPF programs. */
struct vp_task_watch;

/* Loads and attaches the programs. Errors: no BTF, no permission. */
struct vp_error *vp_task_watch_open(struct vp_task_watch **watch) VP_MUST_CHECK;
void vp_task_watch_close(struct vp_task_watch *watch);
/* Adds all existing processes. */
struct vp_error *vp_task_watch_scan(struct vp_task_watch *watch,
				    struct vp_tracker *tracker) VP_MUST_CHECK;
/* Adds the events since the last call. */
void vp_task_watch_drain(struct vp_task_watch *watch, struct vp_tracker *tracker);
/* Becomes readable when buffers should be drained. */
int vp_task_watch_fd(const struct vp_task_watch *watch);
/* Number of events lost in full buffers. */
uint64_t vp_task_watch_lost(const struct vp_task_watch *watch);
/* False: the direct map was not found, so roots are 0. */
bool vp_task_watch_has_roots(const struct vp_task_watch *watch);

/* Mappings and names of processes, by perf events. */
struct vp_perf_watch;

/* With `lives`, also forks, execs and exits, without roots. Errors: no permission. */
struct vp_error *vp_perf_open(bool lives, struct vp_perf_watch **watch) VP_MUST_CHECK;
void vp_perf_close(struct vp_perf_watch *watch);
/* Adds the events since the last call. */
void vp_perf_drain(struct vp_perf_watch *watch, struct vp_tracker *tracker);
/* Sets *fds to descriptors that become readable when buffers should be drained; returns their
 * number. */
unsigned vp_perf_fds(const struct vp_perf_watch *watch, const int **fds);
/* Number of records lost in full buffers. */
uint64_t vp_perf_lost(const struct vp_perf_watch *watch);

#endif
