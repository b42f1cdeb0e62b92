/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Overflow signals of a counter that can be read and cannot interrupt: a timer of the thread's own
 * time on its CPU, set to when the next overflow is due at the pace so far, looks at the counter.
 * The timer's signal is the highest real-time one that the program has no use for.
 */
#ifndef VP_COUNTERS_OVERFLOW_H
#define VP_COUNTERS_OVERFLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "vperf/counters.h"

struct vp_counters_overflow;

/* In the thread whose counters they are, also in a handler of signals; as many values as there are
 * events. */
struct vp_counters_overflow_ops {
	/* Exact values of the counters; false: they can no longer be read. */
	bool (*read)(void *context, uint64_t *values);
	/* The handler's own part of the counts, to be subtracted. */
	void (*take_off)(void *context, const uint64_t *values);
	/* Before each signal, if not NULL: what the timer interrupted (a ucontext_t), or NULL if it
	 * did not. False: the signal is the last one until counting is resumed. */
	bool (*notify)(void *context, const void *interrupted);
};

/* Sets up `n` events of the calling thread to send it the signal each `period` of one, as in the
 * options. They must be readable, and not started. */
int vp_counters_overflow_open(const struct vp_counters_overflow_ops *ops, void *context, unsigned n,
			      const struct vperf_options *options,
			      struct vp_counters_overflow **ret, struct vperf_error *error);
/* NULL is allowed. */
void vp_counters_overflow_close(struct vp_counters_overflow *overflow);
/* `shown` is what the counter shows: periods begin there. */
int vp_counters_overflow_start(struct vp_counters_overflow *overflow, uint64_t shown);
/* Sends the signals that are due. */
void vp_counters_overflow_stop(struct vp_counters_overflow *overflow, uint64_t shown);
/* Counting goes on; the period goes on where it was stopped. */
int vp_counters_overflow_resume(struct vp_counters_overflow *overflow, uint64_t shown);
/* The value of a signal's si_fd; it can be changed. */
int vp_counters_overflow_fd(const struct vp_counters_overflow *overflow);
void vp_counters_overflow_set_fd(struct vp_counters_overflow *overflow, int fd);

#endif
