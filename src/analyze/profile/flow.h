/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Path of a tick: the view decides what it counts as, the resolver names it, totals count it, and
 * the sink, if any, receives it individually. */
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

/* Members of a sample besides its stack. */
struct vp_sink_tick {
	uint64_t time, weight;
	uint32_t pcpu;     /* index of the stream, or VP_NONE */
	uint32_t vcpu;     /* number of the vCPU whose thread was running, or VP_NONE */
	uint32_t pid, tid; /* of the host thread; 0: none */
};

/* Receives each sample, in order of time. */
struct vp_sample_sink {
	void *context;
	/* `stack`: numbers in flow->frames, outermost first, with their addresses; valid during the
	 * call. */
	void (*sample)(void *context, const struct vp_flow *flow, const struct vp_sink_tick *tick,
		       const uint32_t *stack, const struct vp_frame_address *addresses,
		       uint32_t count);
};

/* A tick for the sink, waiting until the resolver has named earlier ones. */
struct vp_waiting_tick {
	struct vp_sink_tick tick;
	uint32_t frame; /* VP_NONE: will be the resolver's next result */
	struct vp_frame_address address;
	bool emitted; /* already passed to the sink */
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
	uint32_t unsplit_part; /* for ticks of no vCPU; VP_NONE: none yet */
	uint32_t idle_frame;   /* VP_NONE: none yet */
	struct vp_tally tally; /* code, unless there is a sink */
	bool apart;         /* code is counted separately: its owner is only in `code_part` … */
	uint32_t code_part; /* … for the last tick; VP_NONE: not code */
	/* In order of time; those without a frame are in the resolver. */
	struct vp_waiting_tick waiting[VP_FLOW_WAITING];
	uint32_t n_waiting;
};

/* For a resolver: counts named samples and passes them to the sink; `flow` is a vp_flow. */
void vp_flow_take(void *flow, const struct vp_resolved *samples, uint32_t count);

/* The part of a view that is not about one VM. */
enum { VP_FLOW_WHOLE = 0 };
/* The part of a vCPU, or the only one. */
uint32_t vp_flow_part(struct vp_flow *flow, uint32_t vm, uint32_t vcpu);
/* Counts a tick of code for that part. */
void vp_flow_code(struct vp_flow *flow, const struct vp_tick *tick, uint32_t part);
/* The same, of the host. */
void vp_flow_host(struct vp_flow *flow, const struct vp_tick *tick, uint32_t part);
/* Counts a tick as a frame that is not code: a guest as a whole, steal. */
void vp_flow_frame(struct vp_flow *flow, const struct vp_tick *tick, uint32_t frame);
/* Counts an idle tick of a pCPU. */
void vp_flow_idle(struct vp_flow *flow, const struct vp_tick *tick, uint32_t part);
/* The frame for idle, steal or a guest as a whole: a label instead of a function. */
uint32_t vp_flow_label(struct vp_flow *flow, const char *label, struct vp_frame frame);

#endif
