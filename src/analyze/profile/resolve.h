/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a tick's sample to its named frame. Three caches stand before the names: the context of a
 * sample, the address space of a (machine, root), and the frame of a (context, address).
 */
#ifndef VP_ANALYZE_PROFILE_RESOLVE_H
#define VP_ANALYZE_PROFILE_RESOLVE_H

#include "analyze/common/filter.h"
#include "analyze/common/naming.h"
#include "analyze/profile/frame.h"
#include "base/macros.h"
#include "timeline/timeline.h"

/* How a guest sample got its process or, failing that, its name. */
enum vp_route {
	VP_ROUTE_NONE,
	VP_ROUTE_CR3,     /* process by CR3 */
	VP_ROUTE_KERNEL,  /* no process, but a name from the guest kernel's symbols */
	VP_ROUTE_MEMORY,  /* process by the guest's current task, read from its memory */
	VP_ROUTE_ADDRESS, /* the one process whose code is at that address */
	VP_ROUTES
};

/* "memory", "cr3", …: as in JSON. */
const char *vp_route_name(enum vp_route route);

struct vp_resolved {
	uint64_t weight;
	uint64_t start; /* where its function begins */
	uint32_t frame; /* VP_NONE: filtered out */
	uint32_t route; /* enum vp_route */
	bool named;     /* its function is known */
	bool guest;
};

/* Addresses that have the name of one that was looked up. The low bits of `code` are the frame, all
 * ones if it is filtered out; above it are the route, and whether there is no name. */
struct vp_named_range {
	uint64_t start;
	uint64_t size; /* 0: the name is that sample's only */
	uint32_t code;
};

#define VP_CODE_FRAME_BITS 28
#define VP_CODE_FRAME ((1u << VP_CODE_FRAME_BITS) - 1)
#define VP_CODE_UNNAMED (1u << 31)

static inline uint32_t vp_code_frame(uint32_t code)
{
	return (code & VP_CODE_FRAME) == VP_CODE_FRAME ? VP_NONE : code & VP_CODE_FRAME;
}

static inline uint32_t vp_code_route(uint32_t code)
{
	return code >> VP_CODE_FRAME_BITS & 7;
}

static inline bool vp_code_is_named(uint32_t code)
{
	return !(code & VP_CODE_UNNAMED);
}

/* Takes samples in the order in which they were handed over. */
typedef void (*vp_resolved_fn)(void *context, const struct vp_resolved *samples, uint32_t count);

/* Addresses without a name are frames of their own up to here, then one frame. */
enum { VP_RESOLVER_UNNAMED = 50000 };

struct vp_resolver_setup {
	const struct vp_naming *naming;
	struct vp_timeline *timeline;
	const struct vp_filter *filter;
	struct vp_frames *frames; /* where the frames go */
	vp_resolved_fn take;
	void *context; /* of `take` */
};

struct vp_resolver;

/* The objects in `setup` must outlive the resolver. */
struct vp_resolver *vp_resolver_new(const struct vp_resolver_setup *setup);
void vp_resolver_free(struct vp_resolver *resolver);

/* The context of a tick's sample, which belongs to that part of the view. */
uint32_t vp_resolver_context(struct vp_resolver *resolver, const struct vp_tick *tick,
			     uint32_t part);
/* The same, and how long it is that of ticks that differ in nothing but time and address; *from >
 * *to: of this one only. At an interrupt (VP_AT_INTERRUPT) of a guest's user space the page
 * matters, too. */
uint32_t vp_resolver_context_for(struct vp_resolver *resolver, const struct vp_tick *tick,
				 uint32_t part, uint64_t *from, uint64_t *to);
/* Whether samples of that context are a guest's. */
bool vp_resolver_is_guest(const struct vp_resolver *resolver, uint32_t context);
/* Looks an address up in a context. */
struct vp_named_range vp_resolver_range(struct vp_resolver *resolver, uint32_t context, uint64_t ip,
					uint64_t time);
/* Names an address in a context. Returns the frame; VP_NONE: filtered out. *start: where its
 * function begins. */
uint32_t vp_resolver_frame(struct vp_resolver *resolver, uint32_t context, uint64_t ip,
			   uint64_t time, uint64_t *start);
/* Names the tick's sample and hands it to `take`: many at once, so that their places in the cache
 * come from memory together. */
void vp_resolver_submit(struct vp_resolver *resolver, const struct vp_tick *tick, uint32_t part);
/* Texts of addresses without a name, by number, of which there are `*count`; full: there were more
 * than VP_RESOLVER_UNNAMED, and the rest share one frame. */
const uint32_t *vp_resolver_unnamed(const struct vp_resolver *resolver, size_t *count);
bool vp_resolver_is_full(const struct vp_resolver *resolver);
/* Hands on what vp_resolver_submit() still keeps; to be called at the end. */
void vp_resolver_flush(struct vp_resolver *resolver);

#endif
