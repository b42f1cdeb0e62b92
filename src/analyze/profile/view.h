/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Views: what a tick counts as, and the columns of rows. Each view is a file with a table of
 * operations; view.c lists them. */
#ifndef VP_ANALYZE_PROFILE_VIEW_H
#define VP_ANALYZE_PROFILE_VIEW_H

#include "analyze/profile/flow.h"

enum vp_view { VP_VIEW_HOST, VP_VIEW_GUEST, VP_VIEW_UNIFIED, VP_VIEWS };

/* Ticks of a pCPU that hit the same thread. */
struct vp_occupied {
	uint64_t time;     /* of one of them */
	uint64_t weight;   /* of all */
	uint32_t vm, vcpu; /* as in struct vp_tick */
};

struct vp_view_ops {
	const char *name;
	unsigned columns;  /* default columns, enum vp_frame_column */
	bool of_one_vm;    /* requires the choice of a VM */
	bool hosts_only;   /* guest frames are not shown */
	size_t state_size; /* size of the view's state, zero-initialized */
	void (*tick)(void *state, struct vp_flow *flow, const struct vp_tick *tick);
	/* The same in two parts, for counting many ticks at once: for the interrupted thread; and
	 * for another vCPU at home on the pCPU (NULL: nothing). */
	void (*own)(void *state, struct vp_flow *flow, const struct vp_tick *tick);
	void (*other)(void *state, struct vp_flow *flow, uint32_t vcpu,
		      const struct vp_occupied *by);
	void (*deinit)(void *state); /* or NULL */
};

const struct vp_view_ops *vp_view_host(void);
const struct vp_view_ops *vp_view_guest(void);
const struct vp_view_ops *vp_view_unified(void);

/* The operations of the view. */
const struct vp_view_ops *vp_view_of(enum vp_view view);
/* The view with that name; VP_VIEWS: unknown. */
enum vp_view vp_view_named(const char *name);

#endif
