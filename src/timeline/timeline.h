/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording's host trace as a sequence of ticks in time order: each tick of each pCPU, with its
 * occupant and the location of the vCPUs. */
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

/* Cached lookup of a thread; valid while tid, owner and generation are unchanged. */
struct vp_occupant {
	uint32_t owner; /* VM number for a vCPU thread, otherwise pid */
	uint32_t tid, generation;
	uint32_t vm, vcpu;
	uint32_t comm;
};

enum { VP_OCCUPANTS = 256 };

struct vp_pcpu {
	uint64_t last_tick;
	uint64_t events;  /* weight of the next sample; 0: that of the recording */
	uint64_t records; /* number of records that vp_batches_taken() reported */
	bool of_vcpus;    /* not a pCPU: the stream has samples of vCPUs by their own CPU time */
	struct vp_chain *chain; /* NULL: no sample of this pCPU had a stack so far */
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
	uint64_t tick_weight; /* weight of a clock tick, or of a sample without its own */

	/* Ticks filled in for idle pCPUs, if the sampling event does not tick with wall time. */
	uint64_t fill_period; /* ns; 0: nothing is filled in */
	uint64_t next_fill;   /* before this time, no pCPU has a gap to fill */
	uint64_t fill_start, fill_end;
	uint32_t unseen_pcpus; /* sampled pCPUs without a stream: always idle */
	uint32_t end_at;       /* the pCPU whose end is filled in next */
	uint32_t fill_at;      /* the pCPU to check next, while filling up to `now` */
	bool filling;
	const struct vp_merge_head
	    *pending; /* the record that is processed after gaps are filled */

	uint32_t renames; /* number of renamed threads, here and in guests */
	/* Data that the caller does not need: locations and exits of vCPUs; stacks. */
	bool no_homes, no_chains;

	uint64_t first, last; /* times of the first and the last record */
	uint64_t until;       /* end of the timeline, exclusive; 0: end of the recording */
};

struct vp_tick {
	uint64_t time;
	uint64_t
	    weight; /* unit of the recording: ticks (several if filled in at once), ns or events */
	uint32_t pcpu; /* index of the stream; VP_NONE: no particular one */
	bool of_vcpu; /* sample by a vCPU's own CPU time: no information on pCPUs and other vCPUs */
	/* The sample; pid (or VM number), tid, mode and ip have the same offset in all three types.
	 * NULL: filled in, the pCPU was idle. */
	const struct vp_host_sample *sample;
	uint32_t mode; /* enum vp_mode; for a guest from its privilege level, if known */
	uint32_t vm;   /* index of the VM whose VMM process was running, or VP_NONE */
	uint32_t vcpu; /* index of the vCPU whose thread was running, or VP_NONE */
	const struct vp_chain *chain; /* stack; NULL: none */
	/* The thread's name in `comms`, or VP_NONE; for a guest_sample with a guest thread, that
	 * thread's. */
	uint32_t comm;
};

/* VMs that only the records know are added to `vms`. The caller keeps ownership of everything.
 * `heads`: see vp_merge_init(). */
void vp_timeline_init(struct vp_timeline *timeline, const struct vp_recording *recording,
		      vp_vms *vms, const vp_stream_readers *streams,
		      const struct vp_record_header *const *heads);
void vp_timeline_deinit(struct vp_timeline *timeline);
/* The next tick; false at the end. `guests` has the state of the vCPUs at the tick. */
bool vp_timeline_next(struct vp_timeline *timeline, struct vp_tick *tick);

/* The same for callers that read records from `merge` or from the streams: only if nothing is
 * filled in and no stacks are kept. */

/* Makes the tick of a sample, without its weight. Notes the sample's vCPU only; the rest is done by
 * vp_timeline_see(). */
void vp_timeline_tick(struct vp_timeline *timeline, uint32_t stream,
		      const struct vp_record_header *record, struct vp_tick *tick);
/* Processes a record that is not a sample. */
void vp_timeline_take(struct vp_timeline *timeline, uint32_t stream,
		      const struct vp_record_header *record);
/* The weight of the stream's next sample, at that time. */
uint64_t vp_timeline_weight(struct vp_timeline *timeline, uint32_t stream, uint64_t time);
/* Whether the record affects records of other streams: a name, a vCPU, its home. */
bool vp_timeline_is_of_all(struct vp_timeline *timeline, uint32_t stream,
			   const struct vp_record_header *record);
/* Number of such changes so far. */
static inline uint32_t vp_timeline_changes(const struct vp_timeline *timeline)
{
	return timeline->renames + timeline->guests.generation +
	       (timeline->no_homes ? 0 : timeline->guests.moves);
}

/* Sets the name of a thread from now on; for a guest thread by VM number and tid in the guest. */
void vp_timeline_name(struct vp_timeline *timeline, uint32_t tid, const char comm[16]);
void vp_timeline_name_guest(struct vp_timeline *timeline, uint32_t vm_id, uint32_t guest_tid,
			    const char comm[16]);
/* The name in `comms` for samples of that guest thread. */
uint32_t vp_timeline_guest_comm(const struct vp_timeline *timeline,
				const struct vp_guest_sample *sample);

static inline bool vp_tick_is_guest(const struct vp_tick *tick)
{
	return tick->sample && tick->sample->id == VP_ID_guest_sample;
}

/* Whether the guest's current thread was read from its memory at the sample. */
static inline bool vp_tick_is_by_memory(const struct vp_tick *tick)
{
	return vp_tick_is_guest(tick) &&
	       ((const struct vp_guest_sample *)(const void *)tick->sample)->flags & VP_BY_MEMORY;
}

/* Whether the pCPU was idle: a filled-in tick, or the idle task. */
static inline bool vp_tick_is_idle(const struct vp_tick *tick)
{
	return !tick->sample || (!tick->sample->pid && !vp_tick_is_guest(tick));
}

#endif
