/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A view: what a tick counts as, and which columns its rows have. Each is a file that fills one
 * table of operations; view.c lists them.
 */
#ifndef VP_ANALYZE_PROFILE_VIEW_H
#define VP_ANALYZE_PROFILE_VIEW_H

#include "analyze/profile/flow.h"

enum vp_view { VP_VIEW_HOST, VP_VIEW_GUEST, VP_VIEW_UNIFIED, VP_VIEWS };

struct vp_view_ops {
	const char *name;
	unsigned columns;  /* its usual ones, enum vp_frame_column */
	bool of_one_vm;    /* and it needs to know which */
	bool hosts_only;   /* guests' frames are not shown */
	size_t state_size; /* of what the view keeps from tick to tick, zeroed */
	void (*tick)(void *state, struct vp_flow *flow, const struct vp_tick *tick);
	/* The same in two parts, for whoever counts many ticks at once: what it is to the thread
	 * that it hit; and to another vCPU at home on the pCPU (NULL: nothing). */
	void (*own)(void *state, struct vp_flow *flow, const struct vp_tick *tick);
	void (*other)(void *state, struct vp_flow *flow, uint32_t vcpu, const struct vp_tick *tick);
	void (*deinit)(void *state); /* or NULL */
};

const struct vp_view_ops *vp_view_host(void);
const struct vp_view_ops *vp_view_guest(void);
const struct vp_view_ops *vp_view_unified(void);

/* The operations of that view. */
const struct vp_view_ops *vp_view_of(enum vp_view view);
/* The view of that name; VP_VIEWS if the name is unknown. */
enum vp_view vp_view_named(const char *name);

#endif
