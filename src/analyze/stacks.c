/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a sample's call chains to its stack, outermost first: a path in the tree of stacks, whose
 * places are rows of the profile. A vCPU's stack begins in the guest; where the host is at work for
 * it, the host's frames follow the guest's.
 */
#include "analyze/profile_private.h"

#include <string.h>

enum { STACK_MAX = 4 * VP_CHAIN_FRAMES + VP_UNWIND_FRAMES };

struct stack {
	uint32_t rows[STACK_MAX];
	uint32_t count;
};

struct node_key {
	uint32_t parent, row;
};

static void note_walk(struct vp_builder *builder, enum vp_walk walk, enum vp_walk_end end)
{
	builder->profile->walks[walk][end]++;
}

static void push(struct stack *stack, uint32_t row)
{
	if (row != VP_NONE && stack->count < STACK_MAX)
		stack->rows[stack->count++] = row;
}

/* What `tick` would be if it had hit another side of the same thread. */
static struct vp_tick with_mode(const struct vp_tick *tick, uint32_t mode)
{
	struct vp_tick other = *tick;

	other.mode = mode;
	return other;
}

/* Pushes addresses of `tick`'s side, which come innermost first. `calls`: all but the first are
 * return addresses, whose calls are before them. */
static void push_frames(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part,
			const uint64_t *ips, uint32_t count, bool calls, struct stack *stack)
{
	uint32_t context = count ? vp_builder_context(builder, tick, part) : 0;

	for (uint32_t i = count; i-- > 0;)
		push(stack, vp_builder_row_at(builder, context, ips[i] - (calls && i), tick->time));
}

static enum vp_walk_end end_of_walk(const struct vp_chain_walk *walk)
{
	static const uint8_t ends[] = {[VP_CHAIN_WHOLE] = VP_WALK_WHOLE,
				       [VP_CHAIN_TOO_DEEP] = VP_WALK_TOO_DEEP,
				       [VP_CHAIN_UNREADABLE] = VP_WALK_UNREADABLE,
				       [VP_CHAIN_NO_FRAME] = VP_WALK_NO_FRAME};

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

static void push_guest_user(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part,
			    struct stack *stack)
{
	const struct vp_chain_walk *walk = &tick->chain->guest_user;
	struct vp_tick user = with_mode(tick, VP_MODE_GUEST_USER);

	note_walk(builder, VP_WALK_GUEST_USER, end_of_walk(walk));
	push_frames(builder, &user, part, walk->ips, walk->count, true, stack);
}

/*
 * The guest kernel's frames, and before them those of the user space that it was entered from: what
 * lies at the top of the task's stack is believed only if the kernel's own chain leads to it.
 */
static void push_guest_kernel(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part,
			      struct stack *stack)
{
	const struct vp_chain *chain = tick->chain;
	const struct vp_orc *tables = &vp_builder_machine(builder, tick->vm)->unwind;
	const struct vp_unwind_registers from = {chain->regs.ip, chain->regs.sp, chain->regs.bp};
	struct vp_unwind *unwind = &builder->stacks.unwind;

	if (!(chain->regs.flags & VP_HAS_STACK) || !tables->entries.count) {
		note_walk(builder, VP_WALK_GUEST_KERNEL, VP_WALK_NOT_WALKED);
		push_frames(builder, tick, part, &from.ip, 1, false, stack);
		return;
	}
	vp_unwind_kernel(tables, &from, chain->stack, chain->n_stack, unwind);
	note_walk(builder, VP_WALK_GUEST_KERNEL, end_of_unwind(unwind->end));
	if (unwind->end == VP_UNWIND_USER && chain->guest_user.count &&
	    unwind->user_ip == chain->guest_user.ips[0])
		push_guest_user(builder, tick, part, stack);
	else if (unwind->end == VP_UNWIND_USER)
		note_walk(builder, VP_WALK_GUEST_USER, VP_WALK_NOT_WALKED);
	push_frames(builder, tick, part, unwind->at, unwind->count, false, stack);
}

static void push_guest(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part,
		       struct stack *stack)
{
	if (tick->mode == VP_MODE_GUEST_KERNEL)
		push_guest_kernel(builder, tick, part, stack);
	else
		push_guest_user(builder, tick, part, stack);
}

/* Stands between the frames of a guest and those of the host that works for it. */
static uint32_t boundary_row(struct vp_builder *builder, uint32_t below)
{
	const struct vp_profile_row *row = &builder->profile->rows.at[below];
	struct vp_row_key key = {.part = row->part,
				 .kind = VP_KIND_VM,
				 .function = vp_builder_text(builder, "[hypervisor]"),
				 .module = VP_NONE,
				 .process = row->process,
				 .pid = row->pid,
				 .vm = row->vm,
				 .vcpu = row->vcpu};

	return vp_builder_row(builder, &key);
}

/* The guest's frames of a vCPU that the host is at work for. */
static void push_guest_of_vcpu(struct vp_builder *builder, const struct vp_tick *tick,
			       uint32_t part, struct stack *stack)
{
	const struct vp_guest_regs *regs = &tick->chain->regs;
	struct vp_guest_sample sample = {.time = tick->time,
					 .id = VP_ID_guest_sample,
					 .flags = regs->flags,
					 .pid = regs->pid,
					 .tid = regs->tid,
					 .mode = regs->mode,
					 .ip = regs->ip,
					 .as_root = regs->as_root,
					 .guest_pid = regs->guest_pid,
					 .guest_tid = regs->guest_tid};
	struct vp_tick guest = *tick;

	guest.sample = (const void *)&sample;
	guest.mode = regs->mode;
	guest.comm = vp_timeline_guest_comm(builder->timeline, &sample);
	push_guest(builder, &guest, part, stack);
	if (stack->count)
		push(stack, boundary_row(builder, stack->rows[stack->count - 1]));
}

static void push_host(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part,
		      bool with_user, struct stack *stack)
{
	const struct vp_chain *chain = tick->chain;
	struct vp_tick user = with_mode(tick, VP_MODE_USER),
		       kernel = with_mode(tick, VP_MODE_KERNEL);
	const struct vp_chain_walk *inner =
	    tick->mode == VP_MODE_KERNEL ? &chain->host_kernel : &chain->host_user;

	note_walk(builder, VP_WALK_HOST, end_of_walk(inner));
	if (with_user)
		push_frames(builder, &user, part, chain->host_user.ips, chain->host_user.count,
			    true, stack);
	push_frames(builder, &kernel, part, chain->host_kernel.ips, chain->host_kernel.count, true,
		    stack);
}

static void make_stack(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part,
		       struct stack *stack)
{
	const struct vp_chain *chain = tick->chain;
	bool for_guest = tick->sample->id == VP_ID_vcpu_sample && chain->has_regs &&
			 chain->regs.flags & VP_HAS_AS_ROOT && tick->vm != VP_NONE &&
			 builder->options->view != VP_VIEW_HOST;

	if (vp_tick_is_guest(tick)) {
		if (chain->has_regs)
			push_guest(builder, tick, part, stack);
		return;
	}
	if (for_guest)
		push_guest_of_vcpu(builder, tick, part, stack);
	push_host(builder, tick, part, !for_guest, stack);
}

static uint32_t node_of(struct vp_stacks *stacks, uint32_t parent, uint32_t row)
{
	struct node_key key = {parent, row};
	bool inserted;
	uint32_t node = vp_key_set_add(&stacks->node_keys, &key, &inserted);

	if (inserted)
		vp_vec_push(&stacks->samples, 0);
	return node;
}

/* Counts the stack once for each row in it, however often it is there. */
static void count_total(struct vp_stacks *stacks, uint32_t row, uint64_t weight)
{
	while (stacks->totals.count <= row) {
		vp_vec_push(&stacks->totals, 0);
		vp_vec_push(&stacks->seen_in, 0);
	}
	if (stacks->seen_in.at[row] != stacks->number)
		stacks->totals.at[row] += weight;
	stacks->seen_in.at[row] = stacks->number;
}

static void count_path(struct vp_stacks *stacks, const uint32_t *rows, uint32_t count,
		       uint64_t weight)
{
	uint32_t node = VP_NONE;

	stacks->number++;
	for (uint32_t i = 0; i < count; i++) {
		node = node_of(stacks, node, rows[i]);
		count_total(stacks, rows[i], weight);
	}
	if (count)
		stacks->samples.at[node] += weight;
}

void vp_stacks_count(struct vp_builder *builder, const struct vp_tick *tick, uint32_t part)
{
	uint32_t leaf = vp_builder_row_at(builder, vp_builder_context(builder, tick, part),
					  tick->sample->ip, tick->time);
	struct stack stack;

	if (leaf == VP_NONE)
		return;
	stack.count = 0;
	if (tick->chain)
		make_stack(builder, tick, part, &stack);
	/* What was hit is what is counted, whatever the walks were of. */
	if (!stack.count || stack.rows[stack.count - 1] != leaf)
		push(&stack, leaf);
	count_path(&builder->stacks, stack.rows, stack.count, tick->weight);
}

/* Rows that stand for more than code have no stacks: guests as a whole, idleness, steal. */
static void add_rows_without_stack(struct vp_builder *builder)
{
	struct vp_stacks *stacks = &builder->stacks;
	size_t rows = builder->profile->rows.count, nodes = stacks->samples.count;
	uint64_t *ended = vp_realloc_array(NULL, rows + 1, sizeof(*ended));

	memset(ended, 0, (rows + 1) * sizeof(*ended));
	for (uint32_t i = 0; i < nodes; i++) {
		const struct node_key *key = vp_key_set_key(&stacks->node_keys, i);
		ended[key->row] += stacks->samples.at[i];
	}
	for (uint32_t row = 0; row < rows; row++) {
		uint64_t counted = builder->counts.at[row];
		if (counted > ended[row])
			count_path(stacks, &row, 1, counted - ended[row]);
	}
	free(ended);
}

void vp_stacks_finish(struct vp_builder *builder)
{
	struct vp_stacks *stacks = &builder->stacks;
	struct vp_profile *profile = builder->profile;

	add_rows_without_stack(builder);
	for (uint32_t i = 0; i < stacks->samples.count; i++) {
		const struct node_key *key = vp_key_set_key(&stacks->node_keys, i);
		vp_vec_push(&profile->nodes, ((struct vp_profile_node){key->parent, key->row,
								       stacks->samples.at[i]}));
	}
	for (uint32_t row = 0; row < profile->rows.count && row < stacks->totals.count; row++)
		profile->rows.at[row].total = stacks->totals.at[row];
}

void vp_stacks_deinit(struct vp_stacks *stacks)
{
	vp_key_set_deinit(&stacks->node_keys);
	vp_vec_deinit(&stacks->samples);
	vp_vec_deinit(&stacks->totals);
	vp_vec_deinit(&stacks->seen_in);
}
