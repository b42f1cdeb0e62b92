/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recording's host trace as a row of ticks in order of time: each tick of each pCPU, what had the
 * pCPU then, and where the vCPUs were.
 */
#ifndef VP_TIMELINE_TIMELINE_H
#define VP_TIMELINE_TIMELINE_H

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "schema/weighting.h"
#include "store/trace_reader.h"
#include "timeline/chain.h"
#include "timeline/guests.h"
#include "timeline/merge.h"

/* Result of the last lookup of a thread; valid while tid, owner and generation are the same. */
struct vp_occupant {
	uint32_t owner; /* VM number of a vCPU's thread, else pid */
	uint32_t tid, generation;
	uint32_t vm, vcpu;
	uint32_t comm;
};

enum { VP_OCCUPANTS = 256 };

struct vp_pcpu {
	uint64_t last_tick;
	uint64_t events;        /* weight of the next sample; 0: that of the recording */
	bool of_vcpus;          /* no pCPU: the stream has vCPUs' samples by their own CPU time */
	struct vp_chain *chain; /* NULL: no sample of this pCPU has call chains so far */
};

struct vp_timeline {
	struct vp_guests guests;
	struct vp_merge merge;
	struct vp_intern comms; /* names of threads */
	struct vp_map comm_of_tid;
	struct vp_map comm_of_guest_tid;            /* key: VM number << 32 | tid in the guest */
	VP_VEC(struct vp_pcpu) pcpus;               /* by stream */
	struct vp_occupant occupants[VP_OCCUPANTS]; /* by the low bits of tid */

	enum vp_weighting weighting;
	uint64_t tick_weight; /* of a tick of a clock, or a sample that does not give its own */

	/* Ticks filled in for pCPUs that were idle, where the trigger does not tick with time. */
	uint64_t fill_period; /* ns; 0: nothing is filled in */
	uint64_t next_fill;   /* no pCPU's gap is long enough before this time */
	uint64_t fill_start, fill_end;
	uint32_t unseen_pcpus; /* were sampled, but have no stream: idle throughout */
	uint32_t end_at;       /* the pCPU whose end is to be filled next */
	uint32_t fill_at;      /* the pCPU to look at next, while filling up to `now` */
	bool filling;
	const struct vp_merge_head *pending; /* the record that waits until gaps are filled */

	uint32_t renames; /* of threads, here and in guests */
	/* Not kept, since nobody asks for it: where vCPUs are and what they left the guest for;
	 * call chains. */
	bool no_homes, no_chains;

	uint64_t first, last; /* times of the first and the last record */
	uint64_t until;       /* the timeline ends before this time; 0: with the recording */
};

struct vp_tick {
	uint64_t time;
	uint64_t weight; /* in the recording's unit: ticks (as many as were filled in at once), ns
			    or events */
	uint32_t pcpu;   /* index of the stream; VP_NONE: none in particular */
	bool of_vcpu; /* by that vCPU's own CPU time: it has no information on others, and none on
			 pCPUs */
	/* The sample: its pid (or VM number), tid, mode and ip are at the same offset in all three
	 * kinds. NULL: the tick was filled in, the pCPU was idle. */
	const struct vp_host_sample *sample;
	uint32_t mode; /* enum vp_mode; of a guest by its privilege level, if that is known */
	uint32_t vm;   /* whose VMM's process had the pCPU, or VP_NONE */
	uint32_t vcpu; /* whose thread, or VP_NONE */
	const struct vp_chain *chain; /* NULL: none was taken */
	/* The thread's name in `comms`, or VP_NONE; in a guest_sample that names a thread of the
	 * guest, that one's. */
	uint32_t comm;
};

/* `vms` may grow by VMs that only the records know. Everything stays the caller's. For `heads` see
 * vp_merge_init(). */
void vp_timeline_init(struct vp_timeline *timeline, const struct vp_recording *recording,
		      vp_vms *vms, const vp_stream_readers *streams,
		      const struct vp_record_header *const *heads);
void vp_timeline_deinit(struct vp_timeline *timeline);
/* The next tick; false at the end. The state of the vCPUs in `guests` is that at the tick. */
bool vp_timeline_next(struct vp_timeline *timeline, struct vp_tick *tick);

/*
 * The same for whoever takes the records from `merge` or from the streams themselves. Where nothing
 * is to be filled in, and where no chains are kept.
 */

/* The tick of a sample, without its weight; its vCPU is known from now on, and nothing else of it:
 * that is vp_timeline_see()'s. */
void vp_timeline_tick(struct vp_timeline *timeline, uint32_t stream,
		      const struct vp_record_header *record, struct vp_tick *tick);
/* Takes a record that is no sample. */
void vp_timeline_take(struct vp_timeline *timeline, uint32_t stream,
		      const struct vp_record_header *record);
/* The weight of the stream's next sample, whose time that is. */
uint64_t vp_timeline_weight(struct vp_timeline *timeline, uint32_t stream, uint64_t time);
/* Whether the record changes what records of other streams are: a name, a vCPU, its home. */
bool vp_timeline_is_of_all(struct vp_timeline *timeline, uint32_t stream,
			   const struct vp_record_header *record);
/* Counts such changes. */
static inline uint32_t vp_timeline_changes(const struct vp_timeline *timeline)
{
	return timeline->renames + timeline->guests.generation +
	       (timeline->no_homes ? 0 : timeline->guests.moves);
}

/* Sets the name of a thread from now on; of a guest's thread by VM number and tid in the guest. */
void vp_timeline_name(struct vp_timeline *timeline, uint32_t tid, const char comm[16]);
void vp_timeline_name_guest(struct vp_timeline *timeline, uint32_t vm_id, uint32_t guest_tid,
			    const char comm[16]);
/* The name that a sample of that thread of the guest would have as its `comm`. */
uint32_t vp_timeline_guest_comm(const struct vp_timeline *timeline,
				const struct vp_guest_sample *sample);

static inline bool vp_tick_is_guest(const struct vp_tick *tick)
{
	return tick->sample && tick->sample->id == VP_ID_guest_sample;
}

/* Whether the guest's memory told at the sample which of its threads ran. */
static inline bool vp_tick_is_by_memory(const struct vp_tick *tick)
{
	return vp_tick_is_guest(tick) &&
	       ((const struct vp_guest_sample *)(const void *)tick->sample)->flags & VP_BY_MEMORY;
}

/* Whether the pCPU was idle: filled in, or the idle task. */
static inline bool vp_tick_is_idle(const struct vp_tick *tick)
{
	return !tick->sample || (!tick->sample->pid && !vp_tick_is_guest(tick));
}

#endif
