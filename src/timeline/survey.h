/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A survey computes the state that records before a time leave for those after it: thread names,
 * each vCPU's last pCPU and exit, the last sample of each pCPU, stacks whose sample follows. It is
 * much cheaper than merging in time order: each stream is read by itself, and nothing is counted.
 */
#ifndef VP_TIMELINE_SURVEY_H
#define VP_TIMELINE_SURVEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "store/trace_reader.h"
#include "timeline/chain.h"

/* Position of a record in the order of all streams: after the records that precede it in its own
 * stream and, at equal times, after those of lower-numbered streams. */
struct vp_survey_moment {
	uint64_t time;
	uint32_t stream;
};

/* The latest VM exit of a thread. */
struct vp_survey_exit {
	struct vp_survey_moment at;
	uint32_t vendor, reason;
	bool known;
};

struct vp_survey_thread {
	uint32_t owner; /* VM number for a vCPU thread, otherwise pid */
	uint32_t tid;
	uint32_t vcpu; /* from its first record with a vCPU */
	bool is_vcpu;  /* it is a vCPU thread */
	bool by_switch;
	struct vp_survey_moment birth, last; /* first record as a vCPU, last record */
	bool blocked;
	struct vp_survey_exit exit;
};

struct vp_survey_name {
	uint64_t key; /* tid; or VM number << 32 | tid in the guest */
	uint64_t time;
	char comm[16];
};

struct vp_survey_pcpu {
	uint64_t last_tick; /* valid if `ticked` */
	bool ticked;
	uint64_t events;        /* as in struct vp_pcpu */
	struct vp_chain *chain; /* or NULL */
};

enum { VP_SURVEY_RECENT = 256 };

/* A recently seen thread. */
struct vp_survey_recent {
	uint32_t owner, tid;
	uint32_t number; /* of the thread */
	bool is_used;
	bool is_born;    /* within its stream: a record with its vCPU was seen */
	bool is_pending; /* in the list of threads to complete */
	struct vp_survey_recent *next;
	/* The last records of the current packet without and with an exit reason; or NULL. */
	const struct vp_vcpu_in *last[2];
};

/* State that the caller needs. Packets that only continue another one are skipped if their state
 * is known from others. */
struct vp_survey_needs {
	bool ticks;   /* each tick: last times, stacks; nothing is skipped */
	bool homes;   /* locations and exits of vCPUs */
	bool weights; /* weights of samples */
};

/* Threads and types of records in a packet (survey_key()) → whether one has an exit reason. */
struct vp_survey_threads {
	struct vp_map reasons;
	VP_VEC(uint64_t) keys;
	bool ticked; /* it has a sample */
};

/* Skipping of packets in a stream. */
struct vp_survey_skip {
	bool is_pending;                /* the packet after the skipped ones is being read … */
	struct vp_survey_threads first; /* … which must have all threads of that before them, … */
	uint64_t position, time;        /* … or they are read after all: from here … */
	uint32_t read_to;               /* … to the packet with this number */
};

struct vp_survey {
	struct vp_survey_needs needs;
	struct vp_survey_skip skip;
	const struct vp_record_header *
	    *heads;           /* by stream: the first record not before `until`; NULL: none */
	uint64_t first, last; /* times of records, or 0 */
	VP_VEC(struct vp_survey_pcpu) pcpus; /* by stream */
	VP_VEC(struct vp_survey_thread) threads;
	VP_VEC(struct vp_survey_name) names, guest_names;
	struct vp_map thread_of_ids, name_of_tid, name_of_guest_tid;
	struct vp_survey_recent recent[VP_SURVEY_RECENT]; /* by the low bits of tid */
	struct vp_survey_recent *pending; /* threads to complete at the end of a packet */
};

/* Reads each stream up to its first record not before `until`, which becomes its head. Checksums
 * are not verified; the reader that counts these records verifies them. Unless ticks are needed,
 * the streams count their heads as records, and none of those before. */
void vp_survey_make(const vp_stream_readers *streams, const struct vp_survey_needs *needs,
		    uint64_t until, struct vp_survey *ret);
void vp_survey_deinit(struct vp_survey *survey);

static inline bool vp_survey_is_before(const struct vp_survey_moment *a,
				       const struct vp_survey_moment *b)
{
	return a->time != b->time ? a->time < b->time : a->stream < b->stream;
}

#endif
