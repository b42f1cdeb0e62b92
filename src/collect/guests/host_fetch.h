/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Downloads from debuginfod servers, for guests whose files the host lacks: only if the user has
 * configured servers, one after the other, in a process of their own. */
#ifndef VP_COLLECT_GUESTS_HOST_FETCH_H
#define VP_COLLECT_GUESTS_HOST_FETCH_H

#include "base/macros.h"
#include "maps/format.h"

struct vp_host_fetch;

struct vp_host_fetch *vp_host_fetch_new(void);
void vp_host_fetch_free(struct vp_host_fetch *fetch);

/* Adds a download for a VM. Those beyond the limits are ignored: guests choose build-ids. */
void vp_host_fetch_request(struct vp_host_fetch *fetch, uint32_t vm,
			   const struct vp_build_id *build_id);
/*
 * Starts the next download, and calls take() for one that has ended, with its descriptor. False:
 * it cannot be taken now, and is offered again in the next step.
 */
typedef bool (*vp_host_fetch_take)(void *context, uint32_t vm, const struct vp_build_id *build_id,
				   int fd);
void vp_host_fetch_step(struct vp_host_fetch *fetch, vp_host_fetch_take take, void *context);

#endif
