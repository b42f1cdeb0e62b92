/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/stack.h"

#include <string.h>

#include "analyze/common/naming.h"
#include "base/macros.h"
#include "maps/orc.h"
#include "schema/chain_end.h"
#include "schema/records.h"
#include "timeline/chain.h"
#include "timeline/timeline.h"

const char *vp_walk_name(enum vp_walk walk)
{
	static const char *const names[] = {[VP_WALK_GUEST_USER] = "guest user space",
					    [VP_WALK_GUEST_KERNEL] = "guest kernels",
					    [VP_WALK_HOST] = "the host"};

	return names[walk];
}

const char *vp_walk_end_name(enum vp_walk_end end)
{
	static const char *const names[] = {[VP_WALK_WHOLE] = "whole",
					    [VP_WALK_GUESSED] = "whole with guessed callers",
					    [VP_WALK_NO_FRAME] =
						"ended at code without frame pointers",
					    [VP_WALK_TOO_DEEP] = "too deep",
					    [VP_WALK_UNREADABLE] = "unreadable page",
					    [VP_WALK_NO_RULE] = "no unwind table",
					    [VP_WALK_BAD_RULE] = "invalid unwind table",
					    [VP_WALK_CHANGED] = "stack changed before it was read",
					    [VP_WALK_EXITED] = "process had exited",
					    [VP_WALK_NO_STACK] = "stack copy too short",
					    [VP_WALK_NO_REGISTER] = "unknown register",
					    [VP_WALK_NO_POINTER] = "unknown stack pointer",
					    [VP_WALK_NOT_WALKED] = "not unwound"};

	return names[end];
}

void vp_walks_merge(vp_walk_counts counts, const vp_walk_counts from)
{
	for (uint32_t walk = 0; walk < VP_WALKS; walk++)
		for (uint32_t end = 0; end < VP_WALK_ENDS; end++)
			counts[walk][end] += from[walk][end];
}

static void note_walk(struct vp_stacks *stacks, enum vp_walk walk, enum vp_walk_end end)
{
	stacks->walks[walk][end]++;
}

static void push(struct vp_stack *stack, uint32_t frame, struct vp_frame_address address)
{
	if (frame == VP_NONE || stack->count == VP_STACK_FRAMES)
		return;
	stack->addresses[stack->count] = address;
	stack->frames[stack->count++] = frame;
}

/* `tick` with the mode of the other side of the same thread. */
static struct vp_tick with_mode(const struct vp_tick *tick, uint32_t mode)
{
	struct vp_tick other = *tick;

	other.mode = mode;
	return other;
}

/* A frame without code next to another one of the same process. */
static uint32_t marker_frame(struct vp_stacks *stacks, uint32_t next_to, uint32_t kind,
			     const char *text)
{
	const struct vp_frame *frame = &stacks->frames->at.at[next_to];
	struct vp_frame marker = {.part = frame->part,
				  .kind = kind,
				  .function = vp_frames_text(stacks->frames, text),
				  .module = VP_NONE,
				  .process = frame->process,
				  .pid = frame->pid,
				  .vm = frame->vm,
				  .vcpu = frame->vcpu};

	return vp_frames_add(stacks->frames, &marker);
}

/* Frame between a caller that was guessed and the code that it called. */
static void push_guessed(struct vp_stacks *stacks, uint32_t caller, struct vp_stack *stack)
{
	if (caller != VP_NONE)
		push(stack, marker_frame(stacks, caller, VP_KIND_USER, "[guessed]"),
		     (struct vp_frame_address){0});
}

/* Pushes addresses of `tick`'s side, which are innermost first. `calls`: all except the first are
 * return addresses, so the call is before them. `guessed`: some may have VP_CHAIN_GUESSED_IP. */
static void push_frames(struct vp_stacks *stacks, const struct vp_tick *tick, uint32_t part,
			const uint64_t *ips, uint32_t count, bool calls, bool guessed,
			struct vp_stack *stack)
{
	uint32_t context = count ? vp_resolver_context(stacks->resolver, tick, part) : 0;

	for (uint32_t i = count; i-- > 0;) {
		const bool is_guess = guessed && ips[i] & VP_CHAIN_GUESSED_IP;
		const uint64_t ip = is_guess ? ips[i] & ~VP_CHAIN_GUESSED_IP : ips[i];
		struct vp_frame_address address = {.ip = ip};
		uint32_t frame = vp_resolver_frame(stacks->resolver, context, ip - (calls && i),
						   tick->time, &address.start);
		push(stack, frame, address);
		if (is_guess)
			push_guessed(stacks, frame, stack);
	}
}

/*
 * Pushes a walked chain. If its second address is the link register's and in the function that was
 * hit, it is the return address of an earlier call, and left out.
 */
static void push_walk(struct vp_stacks *stacks, const struct vp_tick *tick, uint32_t part,
		      const struct vp_chain_walk *walk, struct vp_stack *stack)
{
	struct vp_chain_walk without;

	if (walk->count > 1 && walk->link) {
		uint32_t context = vp_resolver_context(stacks->resolver, tick, part);
		uint64_t hit, link;
		vp_resolver_frame(stacks->resolver, context, walk->ips[0], tick->time, &hit);
		vp_resolver_frame(stacks->resolver, context, walk->ips[1] - 1, tick->time, &link);
		if (hit == link) {
			without = *walk;
			memmove(&without.ips[1], &without.ips[2],
				(--without.count - 1) * sizeof(*without.ips));
			walk = &without;
		}
	}
	push_frames(stacks, tick, part, walk->ips, walk->count, true, walk->guessed, stack);
}

static enum vp_walk_end end_of_walk(const struct vp_chain_walk *walk)
{
	static const uint8_t ends[] = {[VP_CHAIN_WHOLE] = VP_WALK_WHOLE,
				       [VP_CHAIN_TOO_DEEP] = VP_WALK_TOO_DEEP,
				       [VP_CHAIN_UNREADABLE] = VP_WALK_UNREADABLE,
				       [VP_CHAIN_NO_FRAME] = VP_WALK_NO_FRAME,
				       [VP_CHAIN_FAILED] = VP_WALK_NOT_WALKED,
				       [VP_CHAIN_NO_TABLE] = VP_WALK_NO_RULE,
				       [VP_CHAIN_BAD_TABLE] = VP_WALK_BAD_RULE,
				       [VP_CHAIN_NO_REGISTER] = VP_WALK_NO_REGISTER,
				       [VP_CHAIN_CHANGED] = VP_WALK_CHANGED,
				       [VP_CHAIN_EXITED] = VP_WALK_EXITED};

	if (walk->guessed && walk->end == VP_CHAIN_WHOLE)
		return VP_WALK_GUESSED;
	return walk->count && walk->end < VP_ARRAY_SIZE(ends) ? ends[walk->end]
							      : VP_WALK_NOT_WALKED;
}

static enum vp_walk_end end_of_unwind(enum vp_unwind_end end)
{
	static const uint8_t ends[] = {[VP_UNWIND_USER] = VP_WALK_WHOLE,
				       [VP_UNWIND_OUTERMOST] = VP_WALK_WHOLE,
				       [VP_UNWIND_NO_RULE] = VP_WALK_NO_RULE,
				       [VP_UNWIND_NO_STACK] = VP_WALK_NO_STACK,
				       [VP_UNWIND_NO_REGISTER] = VP_WALK_NO_REGISTER,
				       [VP_UNWIND_TOO_DEEP] = VP_WALK_TOO_DEEP};

	return ends[end];
}

static void push_guest_user(struct vp_stacks *stacks, const struct vp_tick *tick, uint32_t part,
			    struct vp_stack *stack)
{
	const struct vp_chain_walk *walk = &tick->chain->guest_user;
	struct vp_tick user = with_mode(tick, VP_MODE_GUEST_USER);

	note_walk(stacks, VP_WALK_GUEST_USER, end_of_walk(walk));
	push_walk(stacks, &user, part, walk, stack);
}

/* A guest's kernel whose chain was walked as it was sampled (64-bit Arm). */
static void push_walked_kernel(struct vp_stacks *stacks, const struct vp_tick *tick, uint32_t part,
			       struct vp_stack *stack)
{
	const struct vp_chain *chain = tick->chain;

	note_walk(stacks, VP_WALK_GUEST_KERNEL, end_of_walk(&chain->guest_kernel));
	if (chain->guest_user.count)
		push_guest_user(stacks, tick, part, stack);
	push_walk(stacks, tick, part, &chain->guest_kernel, stack);
}

/* For the guest kernel: the sampled function, preceded by the user space from which the kernel was
 * entered, without frames in between. */
static void push_behind_kernel(struct vp_stacks *stacks, const struct vp_tick *tick, uint32_t part,
			       struct vp_stack *stack)
{
	const struct vp_chain *chain = tick->chain;
	bool with_user = chain->guest_user.count > 0;
	uint64_t ip = chain->regs.ip;

	note_walk(stacks, VP_WALK_GUEST_KERNEL,
		  with_user ? VP_WALK_NO_POINTER : VP_WALK_NOT_WALKED);
	if (with_user)
		push_guest_user(stacks, tick, part, stack);
	push_frames(stacks, tick, part, &ip, 1, false, false, stack);
}

/* Whether the sample's user space is that from which the kernel was entered: the kernel's stack
 * leads to it, or the first or last instructions of a system call were hit, which have none. */
static bool is_entered_from(const struct vp_chain *chain, const struct vp_unwind *unwind)
{
	if (!chain->guest_user.count)
		return false;
	if (unwind->end == VP_UNWIND_OUTERMOST)
		return unwind->count == 1 && chain->regs.flags & VP_KNOWS_ENTRY;
	return unwind->end == VP_UNWIND_USER && unwind->user_ip == chain->guest_user.ips[0];
}

/* The guest kernel's frames, preceded by those of the user space from which it was entered. */
static void push_guest_kernel(struct vp_stacks *stacks, const struct vp_tick *tick, uint32_t part,
			      struct vp_stack *stack)
{
	const struct vp_chain *chain = tick->chain;
	const struct vp_orc *tables = &vp_naming_machine(stacks->naming, tick->vm)->unwind;
	const struct vp_unwind_registers from = {chain->regs.ip, chain->regs.sp, chain->regs.bp};
	struct vp_unwind *unwind = &stacks->unwind;

	if (chain->guest_kernel.count) {
		push_walked_kernel(stacks, tick, part, stack);
		return;
	}
	if (!(chain->regs.flags & VP_HAS_STACK)) {
		push_behind_kernel(stacks, tick, part, stack);
		return;
	}
	if (!tables->entries.count) {
		note_walk(stacks, VP_WALK_GUEST_KERNEL, VP_WALK_NOT_WALKED);
		push_frames(stacks, tick, part, &from.ip, 1, false, false, stack);
		return;
	}
	vp_unwind_kernel(tables, &from, chain->stack, chain->n_stack, unwind);
	note_walk(stacks, VP_WALK_GUEST_KERNEL, end_of_unwind(unwind->end));
	if (is_entered_from(chain, unwind))
		push_guest_user(stacks, tick, part, stack);
	else if (unwind->end == VP_UNWIND_USER)
		note_walk(stacks, VP_WALK_GUEST_USER, VP_WALK_NOT_WALKED);
	push_frames(stacks, tick, part, unwind->at, unwind->count, false, false, stack);
}

static void push_guest(struct vp_stacks *stacks, const struct vp_tick *tick, uint32_t part,
		       struct vp_stack *stack)
{
	if (tick->mode == VP_MODE_GUEST_KERNEL)
		push_guest_kernel(stacks, tick, part, stack);
	else
		push_guest_user(stacks, tick, part, stack);
}

/* The guest frames of a vCPU for which the host is working. */
static void push_guest_of_vcpu(struct vp_stacks *stacks, const struct vp_tick *tick, uint32_t part,
			       struct vp_stack *stack)
{
	const struct vp_guest_regs *regs = &tick->chain->regs;
	struct vp_guest_sample sample = {.time = tick->time,
					 .id = VP_ID_guest_sample,
					 .flags = regs->flags,
					 .vm = regs->vm,
					 .tid = regs->tid,
					 .mode = regs->mode,
					 .ip = regs->ip,
					 .as_root = regs->as_root,
					 .guest_pid = regs->guest_pid,
					 .guest_tid = regs->guest_tid};
	struct vp_tick guest = *tick;

	guest.sample = (const void *)&sample;
	guest.mode = regs->mode;
	guest.comm = vp_timeline_guest_comm(stacks->timeline, &sample);
	push_guest(stacks, &guest, part, stack);
	if (stack->count)
		push(stack,
		     marker_frame(stacks, stack->frames[stack->count - 1], VP_KIND_VM,
				  "[hypervisor]"),
		     (struct vp_frame_address){0});
}

static void push_host(struct vp_stacks *stacks, const struct vp_tick *tick, uint32_t part,
		      bool with_user, struct vp_stack *stack)
{
	const struct vp_chain *chain = tick->chain;
	struct vp_tick user = with_mode(tick, VP_MODE_USER),
		       kernel = with_mode(tick, VP_MODE_KERNEL);
	const struct vp_chain_walk *inner =
	    tick->mode == VP_MODE_KERNEL ? &chain->host_kernel : &chain->host_user;

	note_walk(stacks, VP_WALK_HOST, end_of_walk(inner));
	if (with_user)
		push_frames(stacks, &user, part, chain->host_user.ips, chain->host_user.count, true,
			    false, stack);
	push_frames(stacks, &kernel, part, chain->host_kernel.ips, chain->host_kernel.count, true,
		    false, stack);
}

static void push_all(struct vp_stacks *stacks, const struct vp_tick *tick, uint32_t part,
		     struct vp_stack *stack)
{
	const struct vp_chain *chain = tick->chain;
	bool for_guest = tick->sample->id == VP_ID_vcpu_sample && chain->has_regs &&
			 chain->regs.flags & VP_HAS_AS_ROOT && tick->vm != VP_NONE &&
			 !stacks->hosts_only;

	if (vp_tick_is_guest(tick)) {
		if (chain->has_regs)
			push_guest(stacks, tick, part, stack);
		return;
	}
	if (for_guest)
		push_guest_of_vcpu(stacks, tick, part, stack);
	push_host(stacks, tick, part, !for_guest, stack);
}

bool vp_stacks_make(struct vp_stacks *stacks, const struct vp_tick *tick, uint32_t part,
		    struct vp_stack *stack)
{
	struct vp_frame_address address = {.ip = tick->sample->ip};
	uint32_t hit =
	    vp_resolver_frame(stacks->resolver, vp_resolver_context(stacks->resolver, tick, part),
			      tick->sample->ip, tick->time, &address.start);

	stack->count = 0;
	if (hit == VP_NONE)
		return false;
	if (tick->chain)
		push_all(stacks, tick, part, stack);
	/* The sampled frame is always counted. */
	if (!stack->count || stack->frames[stack->count - 1] != hit)
		push(stack, hit, address);
	return true;
}
