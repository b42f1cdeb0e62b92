/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libvperf: counts hardware and kernel events per thread, on bare metal and in guests. See
 * vperf_counters(3).
 *
 * A set of events belongs to the thread that opened it, and only that thread may use it. No
 * function prints, exits, or keeps state outside of the set. Functions return VPERF_OK or one
 * of the negative codes of enum vperf_status.
 */
#ifndef VPERF_COUNTERS_H
#define VPERF_COUNTERS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vperf_status {
	VPERF_OK = 0,
	VPERF_E_ARGUMENT = -1,   /* an invalid argument, or a call in the wrong state */
	VPERF_E_EVENT = -2,      /* unknown event name */
	VPERF_E_TOO_MANY = -3,   /* more events than counters */
	VPERF_E_RIGHTS = -4,     /* no permission to count that */
	VPERF_E_NO_COUNTER = -5, /* the event is not supported here */
	VPERF_E_NOT_LENT = -6,   /* no host provides counters to this guest, or not that one */
	VPERF_E_VERSION = -7,    /* the agent in this guest has an incompatible version */
	VPERF_E_LOST = -8,       /* counting has ended: counter, host or agent are gone */
	VPERF_E_THREAD = -9,     /* the set belongs to another thread */
	VPERF_E_SYSTEM = -10,    /* out of memory or descriptors, or a system call failed */
};

/* Access methods. */
enum vperf_way {
	VPERF_WAY_ANY = 0,  /* chosen by the library */
	VPERF_WAY_USER = 1, /* in user space, through perf's page */
	VPERF_WAY_CALL = 2, /* by read(2) on the group */
	VPERF_WAY_LENT = 3, /* counted by the host: 'vperf lend' */
};

enum { VPERF_MAX_EVENTS = 8 };
#define VPERF_MOST_EVENTS VPERF_MAX_EVENTS /* its name in 0.2 */

/* Flags of struct vperf_options. */
enum {
	/* For host-provided counters: each read forces a VM exit, so that it is exact. */
	VPERF_EXACT = 1,
};

/* If zeroed except `size`: the library chooses, no signals. */
struct vperf_options {
	uint32_t size; /* size of this struct */
	uint32_t way;  /* enum vperf_way */
	uint32_t flags;
	/* If `signal` is not 0: it is sent to the thread at each `period` of event number `event`;
	 * if the thread is not running then, when it runs next. */
	int32_t signal;
	uint32_t event;
	uint32_t unused;
	uint64_t period;
};

/* A status code with an explanation. */
struct vperf_error {
	int32_t status;
	char text[252];
};

/* Times since the start, ns. */
struct vperf_times {
	uint32_t size;  /* size of this struct; set it before the call */
	uint32_t known; /* bits of VPERF_KNOWN_... */
	uint64_t wall;
	uint64_t on_cpu; /* CPU time as accounted by the guest kernel, including steal */
	/* Steal time included in on_cpu: lower and upper bound. */
	uint64_t stolen_least, stolen_most;
};

enum { VPERF_KNOWN_ON_CPU = 1, VPERF_KNOWN_STOLEN = 2 };
/* Their names in 0.2. */
#define VPERF_KNOWS_ON_CPU VPERF_KNOWN_ON_CPU
#define VPERF_KNOWS_STOLEN VPERF_KNOWN_STOLEN

struct vperf_counters;

#define VPERF_PUBLIC __attribute__((visibility("default")))

/* Opens `n` events, up to VPERF_MAX_EVENTS, for the calling thread; they are read in that order
 * and do not count yet. Names are perf's ("instructions", "page-faults", with :u or :k for user
 * space or the kernel only), PAPI's presets ("PAPI_TOT_INS") or rHEX. `options` and `error` may be
 * NULL. */
VPERF_PUBLIC int vperf_counters_open(const char *const *events, unsigned n,
				     const struct vperf_options *options,
				     struct vperf_counters **ret, struct vperf_error *error);
/* Closes the set; NULL is allowed. */
VPERF_PUBLIC void vperf_counters_close(struct vperf_counters *counters);

/* Starts counting, from 0. */
VPERF_PUBLIC int vperf_counters_start(struct vperf_counters *counters);
/* Reads the counts since the start, one value per event. */
VPERF_PUBLIC int vperf_counters_read(struct vperf_counters *counters, uint64_t *values);
/* Adds the counts since the start or the last such call to `values`. */
VPERF_PUBLIC int vperf_counters_accumulate(struct vperf_counters *counters, uint64_t *values);
/* Stops counting; `values`: as for vperf_counters_read(); may be NULL. */
VPERF_PUBLIC int vperf_counters_stop(struct vperf_counters *counters, uint64_t *values);
/* Reads the times since the start. */
VPERF_PUBLIC int vperf_counters_times(struct vperf_counters *counters, struct vperf_times *ret);

/* The chosen access method, and the reason as text, valid as long as the set. */
VPERF_PUBLIC enum vperf_way vperf_counters_way(const struct vperf_counters *counters);
VPERF_PUBLIC const char *vperf_counters_why(const struct vperf_counters *counters);
/* The descriptor in si_fd of signals, or -1. */
VPERF_PUBLIC int vperf_counters_descriptor(const struct vperf_counters *counters);
/* The meaning of a status code; never NULL. */
VPERF_PUBLIC const char *vperf_status_text(int status);

/* Measures the overhead of a read and of a context switch and subtracts it from later reads. The
 * set must be stopped. Accuracy: vperf_counters(3). `error` may be NULL. */
VPERF_PUBLIC int vperf_counters_calibrate(struct vperf_counters *counters,
					  struct vperf_error *error);

/* Reads event number `event` of the set, with the value that vperf_counters_read() would return. */
VPERF_PUBLIC int vperf_counters_read_one(struct vperf_counters *counters, unsigned event,
					 uint64_t *value);

/* Data of vperf_view_read() for host-provided counters. The layout is fixed as long as the library
 * supports VPERF_VIEW_1. */
enum { VPERF_VIEW_1 = 1 };

/* The thread, and the CPU on which it runs: written only while the thread does not run. The offset
 * of an event's count after these structs, in bytes, is the same in both. */
struct vperf_view_thread {
	uint64_t sequence;
	uint32_t state, cpu;
};

struct vperf_view_cell {
	uint64_t marker; /* 0: the thread's counts are lost */
	uint64_t others[15];
};

struct vperf_view {
	/* The thread, if it can read without a call; otherwise NULL. */
	const void *reader;
	const struct vperf_view_thread *thread;
	const struct vperf_view_cell *cells;
	struct vperf_counters *counters;
	struct {
		uint64_t offset, start; /* bytes; value at the start */
	} events[VPERF_MAX_EVENTS];
};

/* The view of a set, valid while it is open; NULL: this library does not support that layout. */
VPERF_PUBLIC const struct vperf_view *vperf_counters_view(struct vperf_counters *counters,
							  unsigned layout);

#define VPERF_BARRIER() __asm__ volatile("" ::: "memory")

/*
 * Like vperf_counters_read_one(), with the set's view. For a set of host-provided counters of the
 * calling thread without VPERF_EXACT there is no function call; on 64-bit Arm it takes 20
 * instructions. The value is consistent if the thread was not switched out meanwhile, because a
 * switch changes its sequence.
 */
static inline int vperf_view_read(const struct vperf_view *view, unsigned event, uint64_t *value)
{
	const void *reader = view->reader;
	const struct vperf_view_thread *thread = view->thread;

	if (__builtin_expect(reader == __builtin_thread_pointer(), 1)) {
		uint64_t offset = view->events[event].offset, start = view->events[event].start;
		uint64_t sequence = thread->sequence;
		VPERF_BARRIER();
		const struct vperf_view_cell *cell = view->cells + thread->cpu;
		uint64_t count = *(const uint64_t *)((const char *)cell + offset) +
				 *(const uint64_t *)((const char *)thread + offset) - start;
		VPERF_BARRIER();
		if (__builtin_expect((thread->sequence == sequence) & (cell->marker != 0), 1)) {
			*value = count;
			return VPERF_OK;
		}
	}
	uint64_t read;
	int status = vperf_counters_read_one(view->counters, event, &read);
	if (!status)
		*value = read;
	return status;
}

#ifdef __cplusplus
}
#endif

#endif
