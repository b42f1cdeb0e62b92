/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline/chain.h"

#include <string.h>

static void chain_begin(struct vp_chain *chain, uint32_t tid)
{
	chain->tid = tid;
	chain->used = chain->has_regs = false;
	chain->guest_user.count = chain->host_kernel.count = chain->host_user.count = 0;
	chain->guest_kernel.count = 0;
	chain->n_stack = 0;
}

/* A part of the stack that was read while the program ran on may have no return address where the
 * unwind table expects one. */
static uint32_t end_of(const struct vp_chain_frames *record)
{
	return record->end == VP_CHAIN_BAD_TABLE && record->flags & VP_CHAIN_READ_LATER
		   ? VP_CHAIN_CHANGED
		   : record->end;
}

static void take_frames(struct vp_chain *chain, const struct vp_chain_frames *record)
{
	struct vp_chain_walk *walk = record->mode == VP_MODE_KERNEL         ? &chain->host_kernel
				     : record->mode == VP_MODE_USER         ? &chain->host_user
				     : record->mode == VP_MODE_GUEST_USER   ? &chain->guest_user
				     : record->mode == VP_MODE_GUEST_KERNEL ? &chain->guest_kernel
									    : NULL;

	if (!walk)
		return;
	if (!walk->count) {
		walk->link = record->count > 1 && record->flags & VP_CHAIN_LINK;
		walk->guessed = false;
	}
	const bool guessed = record->mode == VP_MODE_GUEST_USER && record->flags & VP_CHAIN_GUESSED;
	for (uint32_t i = 0; i < record->count && i < VP_CHAIN_FRAMES_PER_RECORD; i++) {
		if (walk->count == VP_CHAIN_LONGEST)
			break;
		walk->guessed |= guessed && record->ips[i] & VP_CHAIN_GUESSED_IP;
		walk->ips[walk->count++] = record->ips[i];
	}
	walk->end = end_of(record);
}

void vp_chain_take(struct vp_chain *chain, const struct vp_record_header *header)
{
	union {
		const struct vp_record_header *header;
		const struct vp_guest_regs *regs;
		const struct vp_chain_frames *frames;
		const struct vp_chain_stack *stack;
	} record = {header};
	uint32_t tid = header->id == VP_ID_guest_regs     ? record.regs->tid
		       : header->id == VP_ID_chain_frames ? record.frames->tid
							  : record.stack->tid;

	if (chain->used || chain->tid != tid || header->id == VP_ID_guest_regs)
		chain_begin(chain, tid);
	if (header->id == VP_ID_guest_regs) {
		chain->regs = *record.regs;
		chain->has_regs = true;
	} else if (header->id == VP_ID_chain_frames) {
		take_frames(chain, record.frames);
	} else if (chain->n_stack < VP_CHAIN_STACKS) {
		chain->stack[chain->n_stack++] = *record.stack;
	}
}

bool vp_chain_use(struct vp_chain *chain, uint32_t tid, bool more)
{
	bool usable = !chain->used && chain->tid == tid;

	chain->used |= !more;
	return usable;
}
