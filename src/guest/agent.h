/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State and output of vperf-agent. */
#ifndef VP_GUEST_AGENT_H
#define VP_GUEST_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/vec.h"
#include "guest/tracker.h"
#include "guest/watch.h"
#include "protocol/counts_protocol.h"
#include "protocol/lend_protocol.h"

enum { VP_AGENT_CLOCK_TRIES = 100 };

struct vp_agent_clock {
	uint64_t mono_ns, tsc, error_ns;
};

struct vp_agent {
	struct vp_tracker tracker;
	struct vp_task_watch *task_events; /* NULL: no permission */
	struct vp_perf_watch *perf;        /* NULL: no permission */
	VP_VEC(struct vp_agent_clock)
	clocks;               /* clock readings, at the start and later; the oldest first */
	VP_VEC(char *) notes; /* notes about missing data */
};

/* Starts tracking, and reads the present state. Missing permissions become notes. */
void vp_agent_start(struct vp_agent *agent);
/* Closes the watches and frees everything. */
void vp_agent_stop(struct vp_agent *agent);
/* Reads the clocks, unless the last reading is recent: a pair costs some microseconds. */
void vp_agent_note_clock(struct vp_agent *agent);
/* Reads the kernel's buffers. */
void vp_agent_drain(struct vp_agent *agent);
/* Processes all events up to now, before a dump. */
void vp_agent_catch_up(struct vp_agent *agent);
/* Adds a note to the symbol map, formatted as by printf(). */
void vp_agent_note(struct vp_agent *agent, const char *format, ...) VP_PRINTF(2, 3);

/* Writes the symbol map to `fd`; 0 or -errno. */
int vp_agent_dump(struct vp_agent *agent, int fd, bool symbols) VP_MUST_CHECK;

/* Counts for the host at the other end of `fd` until it disconnects; 0 or -errno. Call it in a
 * process of its own, which must exit afterwards: that ends the counting. */
int vp_counts_serve(int fd, const struct vp_counts_request *request) VP_MUST_CHECK;

/* Makes host-provided counters available to threads of this guest, until the host at the other end
 * of `fd` disconnects; 0 or -errno. Call it in a process of its own, which must exit afterwards. */
int vp_lend_serve(int fd, const struct vp_lend_request *request) VP_MUST_CHECK;

/*
 * Sends the events of these sets (bits of enum vp_events_set) to the host at the other end of `fd`
 * until it shuts down its direction; 0 or -errno. Call it in a process of its own. `ring_kib`: size
 * of each CPU's ring buffer.
 */
int vp_events_serve(int fd, unsigned sets, unsigned ring_kib) VP_MUST_CHECK;

struct vp_agent_serve_options {
	unsigned port;     /* vsock port */
	unsigned ring_kib; /* size of each CPU's ring buffer, for events */
	bool symbols;
};

/* Serves requests until SIGTERM or SIGINT. */
struct vp_error *vp_agent_serve(const struct vp_agent_serve_options *options) VP_MUST_CHECK;
/* Requests the symbol map from the agent on this machine, and copies the reply to `fd`. *served:
 * false if no agent is running. */
struct vp_error *vp_agent_fetch_running(int fd, bool symbols, bool *served) VP_MUST_CHECK;

#endif
