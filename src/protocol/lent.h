/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Host-provided ("lent") counters: structures shared by the host, the agent in a guest and the
 * library. While a vCPU is in guest mode, the host counts events for it, and publishes the counts
 * at each VM entry in a cell of guest memory. At each context switch of the guest, the agent's BPF
 * program charges them to the client thread. A thread T that runs on vCPU v has the counts
 *
 *     T.base + cell[v].counts
 *
 * and one that does not run has T.base. While T runs, T.base is its previous counts minus the
 * cell's counts at the start of the run. See docs/method-counters.md.
 */
#ifndef VP_PROTOCOL_LENT_H
#define VP_PROTOCOL_LENT_H

/* Socket of the agent for its clients, open to all users. */
#define VP_LENT_SOCKET "/run/vperf-lent.sock"

enum {
	VP_LENT_VERSION = 4,
	VP_LENT_EVENTS = 8,
	VP_LENT_NAME_SIZE = 48,
	VP_LENT_THREADS = 1024, /* threads with counters at the same time */
	/* Flag of a request: also count children that the thread creates from then on,
	 * separately. */
	VP_LENT_INHERIT = 1,
};

/* The cell of a vCPU. Its size is a multiple of a cache line; the host writes the part after the
 * marker. One extra cell, which belongs to no CPU, never has a marker. */
struct vp_lent_cell {
	/* Written by the guest. The host writes only while the marker is valid, and destroys it
	 * when it can no longer count. */
	unsigned long long marker;
	unsigned long long sequence; /* number of publications, from 1 */
	unsigned long long stolen;   /* steal in ns */
	unsigned long long unused;
	unsigned long long counts[VP_LENT_EVENTS];
	unsigned long long spare[4];
};

enum vp_lent_thread_state { VP_LENT_NEW, VP_LENT_OUT, VP_LENT_RUNNING };

/* The entry of a client thread. The agent's BPF program writes it while the thread does not run;
 * other threads may read it meanwhile: the sequence is odd during a change. */
struct vp_lent_thread {
	unsigned long long sequence; /* incremented at each switch */
	/* `cpu`: number of its cell. A thread with a gap in its counts has the extra cell, so that
	 * one check of the marker detects all failures. */
	unsigned int state, cpu;
	unsigned long long stale; /* forced publications that did not arrive */
	unsigned long long stolen_base;
	unsigned long long base[VP_LENT_EVENTS];
	/* Number of exec calls, counts at the first one, and number of created threads and
	 * processes, in total and until that exec. */
	unsigned int executed, n_children;
	unsigned long long at_exec[VP_LENT_EVENTS];
	unsigned int children_at_exec;
	/* Its descendants, since a client requested them: the number of live ones, their counts
	 * without their current runs, and missed runs. `born` distinguishes these from children of
	 * an earlier thread in the same entry. */
	unsigned int inherits, live, born;
	unsigned long long children[VP_LENT_EVENTS];
	unsigned long long missed;
};

/* One per CPU, after the threads: the current run of a child on that CPU. Its counts are
 * cell[cpu].counts minus their value at the start of the run. */
struct vp_lent_run {
	unsigned long long
	    sequence; /* incremented at start and end of a run; odd during a change */
	unsigned int runs, index, born, unused;
	unsigned long long start[VP_LENT_EVENTS];
	unsigned long long spare[21];
};

_Static_assert(sizeof(struct vp_lent_cell) == 128, "no cell lies in two pages");
_Static_assert(sizeof(struct vp_lent_thread) == 256, "a whole number of cache lines");
_Static_assert(sizeof(struct vp_lent_run) == sizeof(struct vp_lent_thread),
	       "both are in one array");
_Static_assert(__builtin_offsetof(struct vp_lent_cell, counts) ==
		   __builtin_offsetof(struct vp_lent_thread, base),
	       "an event has one place, in bytes, in both");

/*
 * A client's request: for the client's own thread, or one that it may trace; and the reply. With
 * status 0, the reply carries three descriptors: the cells, the threads, and a socket on which each
 * packet forces a VM exit of the vCPU.
 */
struct vp_lent_request {
	unsigned int version, tid, flags;
};

struct vp_lent_reply {
	unsigned int version;
	int status; /* errno */
	unsigned int thread, cells, events;
	unsigned int unused;
	unsigned long long marker;
	char names[VP_LENT_EVENTS][VP_LENT_NAME_SIZE];
	char text[160]; /* reason of a failure */
};

enum { VP_LENT_FD_CELLS, VP_LENT_FD_THREADS, VP_LENT_FD_FORCE, VP_LENT_FDS };

#endif
