/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lent counters: what the host, the agent in a guest and the library share. The host counts for
 * each vCPU what happens while it is in the guest, and publishes that at each VM entry in a cell of
 * guest memory; the agent's program keeps, at the guest's context switches, what of it was each
 * client thread's. A thread T that runs on vCPU v has had
 *
 *   T.base + cell[v].counts
 *
 * and one that does not run T.base, where base is what it had before, while it runs less what the
 * cell showed when it began to.
 * See docs/method-counters.md.
 */
#ifndef VP_PROTOCOL_LENT_H
#define VP_PROTOCOL_LENT_H

/* Where the agent has its clients ask. Anybody may. */
#define VP_LENT_SOCKET "/run/vperf-lent.sock"

enum {
	VP_LENT_VERSION = 4,
	VP_LENT_EVENTS = 8,
	VP_LENT_NAME_SIZE = 48,
	VP_LENT_THREADS = 1024, /* with counters at the same time */
	/* Flag of a request: children that the thread creates from then on are counted, too,
	 * separately. */
	VP_LENT_INHERIT = 1,
};

/* The cell of a vCPU. Its size is a multiple of a cache line; the host writes the part after the
 * marker. There is one cell more than CPUs, without a marker: nobody's. */
struct vp_lent_cell {
	/* The guest's: the host writes only while it is here, and breaks it when it cannot count.
	 */
	unsigned long long marker;
	unsigned long long sequence; /* of publications, from 1 */
	unsigned long long stolen;   /* ns that the vCPU waited for a pCPU */
	unsigned long long unused;
	unsigned long long counts[VP_LENT_EVENTS];
	unsigned long long spare[4];
};

enum vp_lent_thread_state { VP_LENT_NEW, VP_LENT_OUT, VP_LENT_RUNNING };

/* The entry of a client's thread. The agent's program writes it while the thread does not run.
 * Other threads may read it meanwhile: the sequence is odd then. */
struct vp_lent_thread {
	unsigned long long sequence; /* changes with each switch */
	/* `cpu` is the number of its cell. A thread that has missed something has nobody's cell, so
	 * that one check of the marker detects all failures. */
	unsigned int state, cpu;
	unsigned long long stale; /* publications that did not come though they were forced */
	unsigned long long stolen_base;
	unsigned long long base[VP_LENT_EVENTS];
	/* How often it has executed a program, what it had had when it first did, and how many
	 * threads and processes it has made, in all and until then. */
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

/* One for each CPU, after the threads: the current run of a child there. Its counts are
 * cell[cpu].counts minus their value at the start of the run. */
struct vp_lent_run {
	unsigned long long sequence; /* changes at its beginning and end; odd while it is changed */
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

/* A client's packet: its own thread, or one that it may trace; and the answer to it, with three
 * descriptors if the status is 0: the cells, the threads, and a socket, each packet to which forces
 * the vCPU out of the guest. */
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
	char text[160]; /* why not */
};

enum { VP_LENT_FD_CELLS, VP_LENT_FD_THREADS, VP_LENT_FD_FORCE, VP_LENT_FDS };

#endif
