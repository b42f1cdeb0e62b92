/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The path of a tick: a view decides what the tick counts as, the resolver names it, totals count
 * it, and a sink, if there is one, gets it by itself.
 */
#ifndef VP_ANALYZE_PROFILE_FLOW_H
#define VP_ANALYZE_PROFILE_FLOW_H

#include "analyze/common/filter.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/stack.h"
#include "analyze/profile/tally.h"
#include "analyze/profile/totals.h"
#include "base/map.h"
#include "schema/vm.h"

struct vp_flow;

/* The members of a sample that are not in its stack. */
struct vp_sink_tick {
	uint64_t time, weight;
	uint32_t pcpu;     /* index of the stream, or VP_NONE */
	uint32_t vcpu;     /* number of the vCPU whose thread it is, or VP_NONE */
	uint32_t pid, tid; /* of the host's thread; 0: none */
};

/* Receives each sample, in the order of their times. */
struct vp_sample_sink {
	void *context;
	/* `stack`: numbers in flow->frames, outermost first, and their addresses; valid during the
	 * call. */
	void (*sample)(void *context, const struct vp_flow *flow, const struct vp_sink_tick *tick,
		       const uint32_t *stack, const struct vp_frame_address *addresses,
		       uint32_t count);
};

/* A tick that the sink gets when the resolver has named those before it. */
struct vp_waiting_tick {
	struct vp_sink_tick tick;
	uint32_t frame; /* VP_NONE: the resolver's next */
	struct vp_frame_address address;
	bool given; /* the sink has it already */
};
enum { VP_FLOW_WAITING = 64 };

struct vp_flow {
	const vp_vms *vms;
	struct vp_timeline *timeline;
	struct vp_filter filter;
	struct vp_frames frames;
	struct vp_resolver *resolver;
	struct vp_stacks stacks;
	struct vp_totals totals;
	const struct vp_sample_sink *sink; /* or NULL */
	bool per_vcpu;                     /* each vCPU is a part */
	bool chains;                       /* count stacks */
	struct vp_map part_of_vcpu;
	uint32_t unsplit_part; /* of all that no vCPU has a part for; VP_NONE: none yet */
	uint32_t idle_frame;   /* VP_NONE: none yet */
	struct vp_tally tally; /* of code, unless there is a sink */
	bool apart;         /* code is counted apart: only `code_part` identifies its owner … */
	uint32_t code_part; /* … of the last tick; VP_NONE: it was no code */
	/* In the order of their times: each that has no frame is one that the resolver has. */
	struct vp_waiting_tick waiting[VP_FLOW_WAITING];
	uint32_t n_waiting;
};

/* For a resolver: counts what it has named, and gives it to the sink; `flow` is a vp_flow. */
void vp_flow_take(void *flow, const struct vp_resolved *samples, uint32_t count);

/* The only part of a view that is not of one VM. */
enum { VP_FLOW_WHOLE = 0 };
/* The part of a vCPU, or the only one. */
uint32_t vp_flow_part(struct vp_flow *flow, uint32_t vm, uint32_t vcpu);
/* Counts a tick of code that belongs to that part. */
void vp_flow_code(struct vp_flow *flow, const struct vp_tick *tick, uint32_t part);
/* The same, of the host. */
void vp_flow_host(struct vp_flow *flow, const struct vp_tick *tick, uint32_t part);
/* Counts a tick as a frame that is not code: a guest as a whole, stolen time. */
void vp_flow_frame(struct vp_flow *flow, const struct vp_tick *tick, uint32_t frame);
/* Counts an idle tick of a pCPU. */
void vp_flow_idle(struct vp_flow *flow, const struct vp_tick *tick, uint32_t part);
/* The frame of idleness or stolen time, or of a guest as a whole: a label instead of a function. */
uint32_t vp_flow_label(struct vp_flow *flow, const char *label, struct vp_frame frame);

#endif
