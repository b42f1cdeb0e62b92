/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account_cuts.h"

void vp_account_cuts_init(struct vp_account_cuts *cuts, const struct vp_window *window)
{
	*cuts = (struct vp_account_cuts){.window = *window,
					 .keys = {.key_size = sizeof(struct vp_cut_key)}};
}

void vp_account_cuts_deinit(struct vp_account_cuts *cuts)
{
	vp_key_set_deinit(&cuts->keys);
	vp_vec_deinit(&cuts->amounts);
	vp_map_deinit(&cuts->index_of_vcpu);
	vp_vec_each (&cuts->vcpus, vcpu)
		vp_vec_deinit(&vcpu->at);
	vp_vec_deinit(&cuts->vcpus);
}

static uint64_t account_cuts_vcpu_key(uint32_t vm, uint32_t vcpu)
{
	return (uint64_t)vm << 32 | vcpu;
}

void vp_account_cuts_add_interval(struct vp_account_cuts *cuts, uint32_t vm, uint32_t vcpu,
				  uint64_t begin, uint64_t end)
{
	bool inserted;
	uint32_t index = *vp_map_insert(&cuts->index_of_vcpu, account_cuts_vcpu_key(vm, vcpu),
					(uint32_t)cuts->vcpus.count, &inserted);

	if (inserted)
		vp_vec_push(&cuts->vcpus, (struct vp_cut_intervals){0});
	vp_vec_push(&cuts->vcpus.at[index].at, ((struct vp_cut_interval){begin, end}));
}

const struct vp_cut_interval *vp_account_cuts_interval(const struct vp_account_cuts *cuts,
						       uint32_t vm, uint32_t vcpu, uint64_t time)
{
	const uint32_t *index = vp_map_find(&cuts->index_of_vcpu, account_cuts_vcpu_key(vm, vcpu));
	size_t low = 0, high;

	if (!index)
		return NULL;
	const struct vp_cut_intervals *intervals = &cuts->vcpus.at[*index];
	high = intervals->at.count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (intervals->at.at[middle].end < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low < intervals->at.count ? &intervals->at.at[low] : NULL;
}

bool vp_account_cuts_between(const struct vp_account_cuts *cuts, uint64_t begin, uint64_t end)
{
	const struct vp_window *window = &cuts->window;

	return (begin < window->from && window->from < end) ||
	       (begin < window->to && window->to < end);
}

static struct vp_cut_amount *amount_of(struct vp_account_cuts *cuts, const struct vp_cut_key *key)
{
	bool inserted;
	uint32_t number = vp_key_set_add(&cuts->keys, key, &inserted);

	if (inserted)
		vp_vec_push(&cuts->amounts, (struct vp_cut_amount){0});
	return &cuts->amounts.at[number];
}

/* The part of the time from `begin` to `end` that is before `border`. */
static uint64_t part_before(uint64_t begin, uint64_t end, uint64_t border)
{
	uint64_t least = end < border ? end : border;

	return least > begin ? least - begin : 0;
}

void vp_account_cuts_add(struct vp_account_cuts *cuts, const struct vp_cut_key *key, uint64_t begin,
			 uint64_t end)
{
	struct vp_cut_amount *amount = amount_of(cuts, key);

	cuts->has_events = true;
	amount->before += part_before(begin, end, cuts->window.from);
	amount->until += part_before(begin, end, cuts->window.to);
	amount->all += end > begin ? end - begin : 0;
}

void vp_account_cuts_subtract(struct vp_account_cuts *cuts, const struct vp_cut_key *key,
			      uint64_t begin, uint64_t end)
{
	struct vp_cut_amount *amount = amount_of(cuts, key);

	amount->before -= part_before(begin, end, cuts->window.from);
	amount->until -= part_before(begin, end, cuts->window.to);
	amount->all -= end > begin ? end - begin : 0;
}

void vp_account_cuts_count(struct vp_account_cuts *cuts, const struct vp_cut_key *key,
			   uint64_t time, uint64_t count)
{
	struct vp_cut_amount *amount = amount_of(cuts, key);

	cuts->has_events = true;
	amount->before += time <= cuts->window.from ? count : 0;
	amount->until += time <= cuts->window.to ? count : 0;
	amount->all += count;
}

const struct vp_cut_amount *vp_account_cuts_find(struct vp_account_cuts *cuts,
						 const struct vp_cut_key *key)
{
	const struct vp_cut_amount *amount = amount_of(cuts, key);

	return amount->all ? amount : NULL;
}
