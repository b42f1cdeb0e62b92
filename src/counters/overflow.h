/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Overflow signals for a counter that can be read but cannot interrupt: a timer of the thread's CPU
 * time, set to the expected time of the next overflow, reads the counter. Its signal is the highest
 * real-time signal that the program does not use.
 */
#ifndef VP_COUNTERS_OVERFLOW_H
#define VP_COUNTERS_OVERFLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "vperf/counters.h"

struct vp_counters_overflow;

/* Operations, called in the thread that is counted, also in signal handlers; one value per
 * event. */
struct vp_counters_overflow_ops {
	/* Exact values of the counters; false: no longer readable. */
	bool (*read)(void *context, uint64_t *values);
	/* Overhead of the handler, to be subtracted. */
	void (*take_off)(void *context, const uint64_t *values);
	/* Called before each signal, unless NULL, with the context that the timer interrupted (a
	 * ucontext_t), or NULL. False: no more signals until counting is resumed. */
	bool (*notify)(void *context, const void *interrupted);
};

/* Sets up `n` events of the calling thread to send it the signal every `period` of one of them, as
 * in the options. They must be readable, and not started. */
int vp_counters_overflow_open(const struct vp_counters_overflow_ops *ops, void *context, unsigned n,
			      const struct vperf_options *options,
			      struct vp_counters_overflow **ret, struct vperf_error *error);
/* NULL is allowed. */
void vp_counters_overflow_close(struct vp_counters_overflow *overflow);
/* `shown`: the counter's present value, from which periods start. */
int vp_counters_overflow_start(struct vp_counters_overflow *overflow, uint64_t shown);
/* Sends signals that are due. */
void vp_counters_overflow_stop(struct vp_counters_overflow *overflow, uint64_t shown);
/* Resumes counting, and the interrupted period. */
int vp_counters_overflow_resume(struct vp_counters_overflow *overflow, uint64_t shown);
/* The value of si_fd of signals; can be changed. */
int vp_counters_overflow_fd(const struct vp_counters_overflow *overflow);
void vp_counters_overflow_set_fd(struct vp_counters_overflow *overflow, int fd);

#endif
