/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Resolves a tick's sample to a named frame. Three caches avoid most lookups: the context of a
 * sample, the address space of (machine, CR3), and the frame of (context, address). */
#ifndef VP_ANALYZE_PROFILE_RESOLVE_H
#define VP_ANALYZE_PROFILE_RESOLVE_H

#include "analyze/common/filter.h"
#include "analyze/common/naming.h"
#include "analyze/profile/frame.h"
#include "base/macros.h"
#include "timeline/timeline.h"

/* How the process of a guest sample was found or, without a process, its name. */
enum vp_route {
	VP_ROUTE_NONE,
	VP_ROUTE_CR3,     /* by CR3 */
	VP_ROUTE_KERNEL,  /* no process, but a symbol of the guest kernel */
	VP_ROUTE_MEMORY,  /* by the guest's current task, read from its memory */
	VP_ROUTE_ADDRESS, /* the only process with code at that address */
	VP_ROUTES
};

/* "memory", "cr3", …: as in JSON. */
const char *vp_route_name(enum vp_route route);

struct vp_resolved {
	uint64_t weight;
	uint64_t start; /* start of the function */
	uint32_t frame; /* VP_NONE: filtered out */
	uint32_t route; /* enum vp_route */
	bool named;     /* its function is known */
	bool guest;
};

/* Range of addresses with the name of a looked-up one. `code`: the low bits are the frame (all
 * ones: filtered out); above are the route (VP_CODE_OF_HOST: not a guest), and whether the name is
 * missing. */
struct vp_named_range {
	uint64_t start;
	uint64_t size; /* 0: the name is for that sample only */
	uint32_t code;
};

#define VP_CODE_FRAME_BITS 28
#define VP_CODE_FRAME ((1u << VP_CODE_FRAME_BITS) - 1)
#define VP_CODE_UNNAMED (1u << 31)
enum { VP_CODE_OF_HOST = 7 };

static inline uint32_t vp_code_frame(uint32_t code)
{
	return (code & VP_CODE_FRAME) == VP_CODE_FRAME ? VP_NONE : code & VP_CODE_FRAME;
}

static inline uint32_t vp_code_route(uint32_t code)
{
	return code >> VP_CODE_FRAME_BITS & 7;
}

static inline bool vp_code_is_guest(uint32_t code)
{
	return vp_code_route(code) != VP_CODE_OF_HOST;
}

static inline bool vp_code_is_named(uint32_t code)
{
	return !(code & VP_CODE_UNNAMED);
}

/* Receives samples in the order in which they were submitted. */
typedef void (*vp_resolved_fn)(void *context, const struct vp_resolved *samples, uint32_t count);

/* Number of unnamed addresses with frames of their own; further ones share a frame. */
enum { VP_RESOLVER_UNNAMED = 50000 };

struct vp_resolver_setup {
	const struct vp_naming *naming;
	struct vp_timeline *timeline;
	const struct vp_filter *filter;
	struct vp_frames *frames; /* receives the frames */
	vp_resolved_fn take;
	void *context; /* for `take` */
	/* Another resolver, of another thread, with which this one shares frames (`frames` must be
	 * the same), contexts and names: only vp_resolver_context*(), _range(), _label(),
	 * _unnamed() and _is_full() may be called then, of both. NULL: none. */
	struct vp_resolver *shares;
};

struct vp_resolver;

/* Objects in `setup` must outlive the resolver; `shares` need not. */
struct vp_resolver *vp_resolver_new(const struct vp_resolver_setup *setup);
void vp_resolver_free(struct vp_resolver *resolver);

/* The context of a tick's sample, in that part of the view. */
uint32_t vp_resolver_context(struct vp_resolver *resolver, const struct vp_tick *tick,
			     uint32_t part);
/*
 * The same, with the times for which it is valid for ticks that differ only in time and address;
 * *from > *to: only for this one. At an interrupt (VP_AT_INTERRUPT) in guest user space the page
 * matters, too.
 */
uint32_t vp_resolver_context_for(struct vp_resolver *resolver, const struct vp_tick *tick,
				 uint32_t part, uint64_t *from, uint64_t *to);
/* Looks up an address in a context. */
struct vp_named_range vp_resolver_range(struct vp_resolver *resolver, uint32_t context, uint64_t ip,
					uint64_t time);
/* The frame with that label instead of a function, without module and process. */
uint32_t vp_resolver_label(struct vp_resolver *resolver, const char *label, struct vp_frame frame);
/* Names an address in a context. Returns the frame; VP_NONE: filtered out. *start: start of its
 * function. */
uint32_t vp_resolver_frame(struct vp_resolver *resolver, uint32_t context, uint64_t ip,
			   uint64_t time, uint64_t *start);
/* Names the tick's sample and passes it to `take`: in batches, so that cache misses overlap. */
void vp_resolver_submit(struct vp_resolver *resolver, const struct vp_tick *tick, uint32_t part);
/* Texts of unnamed addresses by number; *count: how many. full: there were more than
 * VP_RESOLVER_UNNAMED, and the rest share a frame. Resolvers that share return the same ones; the
 * texts are valid after the last look-up. */
const uint32_t *vp_resolver_unnamed(const struct vp_resolver *resolver, size_t *count);
bool vp_resolver_is_full(const struct vp_resolver *resolver);
/* Passes on samples that vp_resolver_submit() has kept; call it at the end. */
void vp_resolver_flush(struct vp_resolver *resolver);

#endif
