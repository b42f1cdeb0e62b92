/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account_window.h"

#include <string.h>

#include "base/macros.h"

void vp_account_window_deinit(struct vp_account_window *window)
{
	vp_map_deinit(&window->index_of_vcpu);
	vp_vec_deinit(&window->segments);
}

static void raise_error(uint64_t *most, uint64_t error)
{
	*most = error > *most ? error : *most;
}

/* Maximum error of `part`, if `amount` ns in `length` ns overlaps the window by `overlap` ns. */
static uint64_t error_of(uint64_t amount, uint64_t part, uint64_t overlap, uint64_t length)
{
	uint64_t rest = length - overlap;
	uint64_t least = amount > rest ? amount - rest : 0;
	uint64_t most = amount < overlap ? amount : overlap;
	uint64_t below = part > least ? part - least : 0, above = most > part ? most - part : 0;

	return below > above ? below : above;
}

static uint64_t vcpu_key(uint32_t vm, uint32_t vcpu)
{
	return (uint64_t)vm << 32 | vcpu;
}

static struct vp_account_segment *segment_of(struct vp_account_window *window, uint32_t vm,
					     uint32_t vcpu)
{
	bool inserted;
	uint32_t index = *vp_map_insert(&window->index_of_vcpu, vcpu_key(vm, vcpu),
					(uint32_t)window->segments.count, &inserted);

	if (inserted)
		vp_vec_push(&window->segments, (struct vp_account_segment){0});
	return &window->segments.at[index];
}

/* A record without a vCPU record of the same time covers the time since the previous write. */
static struct vp_account_segment segment_at(struct vp_account_window *window, uint32_t vm,
					    uint32_t vcpu, uint64_t time)
{
	const struct vp_account_segment *segment = segment_of(window, vm, vcpu);

	if (segment->time == time)
		return *segment;
	return (struct vp_account_segment){time, window->before ? window->before : time, time};
}

static bool window_has_all(const struct vp_window *window, const struct vp_account_segment *segment)
{
	return segment->begin >= window->from && segment->end <= window->to &&
	       segment->end > window->from;
}

static bool window_has_none(const struct vp_window *window,
			    const struct vp_account_segment *segment)
{
	return segment->end <= window->from || segment->begin >= window->to;
}

static uint64_t part_of_segment(const struct vp_account_window *window,
				const struct vp_account_segment *segment, uint64_t amount)
{
	return vp_window_part(&window->window, segment->begin, segment->end, amount);
}

/* Parts of all states must sum to the part of the total: the largest state absorbs the rounding.
 * Within less than 100 ns it may become negative; then other states are rounded down. */
static void cut_states(struct vp_account_window *window, const struct vp_account_segment *segment,
		       struct vp_vcpu_account *ret)
{
	uint64_t states[] = {ret->guest,   ret->kernel, ret->poll,      ret->vmm,       ret->halted,
			     ret->waiting, ret->waking, ret->preempted, ret->throttled, ret->irq};
	uint64_t length = segment->end - segment->begin, all = 0;
	uint64_t overlap = vp_window_overlap(&window->window, segment->begin, segment->end);
	size_t largest = 0;

	for (size_t i = 0; i < VP_ARRAY_SIZE(states); i++) {
		all += states[i];
		largest = states[i] > states[largest] ? i : largest;
	}
	uint64_t rest = part_of_segment(window, segment, all), most = states[largest];
	for (size_t i = 0; i < VP_ARRAY_SIZE(states); i++) {
		if (i == largest)
			continue;
		uint64_t part = part_of_segment(window, segment, states[i]);
		raise_error(&window->state_error, error_of(states[i], part, overlap, length));
		states[i] = part < rest ? part : rest;
		rest -= states[i];
	}
	states[largest] = rest;
	raise_error(&window->state_error, error_of(most, rest, overlap, length));
	ret->guest = states[0];
	ret->kernel = states[1];
	ret->poll = states[2];
	ret->vmm = states[3];
	ret->halted = states[4];
	ret->waiting = states[5];
	ret->waking = states[6];
	ret->preempted = states[7];
	ret->throttled = states[8];
	ret->irq = states[9];
}

static void cut_times(struct vp_account_window *window, const struct vp_account_segment *segment,
		      struct vp_vcpu_account *ret)
{
	cut_states(window, segment, ret);
	ret->exits = part_of_segment(window, segment, ret->exits);
	ret->wakeups = part_of_segment(window, segment, ret->wakeups);
	ret->preemptions = part_of_segment(window, segment, ret->preemptions);
	ret->polls = part_of_segment(window, segment, ret->polls);
	ret->poll_wasted = part_of_segment(window, segment, ret->poll_wasted);
	if (ret->begin < window->window.from)
		ret->begin = window->window.from;
	if (ret->end > window->window.to)
		ret->end = window->window.to;
}

/* The time of an exit is recorded when it ends, so its part in the window is unknown. */
static uint64_t cut_exit_part(struct vp_account_window *window,
			      const struct vp_account_segment *segment, uint64_t amount)
{
	uint64_t part = part_of_segment(window, segment, amount);

	raise_error(&window->exit_error, part > amount - part ? part : amount - part);
	return part;
}

static void cut_exits(struct vp_account_window *window, const struct vp_account_segment *segment,
		      struct vp_exit_account *ret)
{
	ret->count = part_of_segment(window, segment, ret->count);
	ret->kernel = cut_exit_part(window, segment, ret->kernel);
	ret->poll = cut_exit_part(window, segment, ret->poll);
	ret->vmm = cut_exit_part(window, segment, ret->vmm);
	ret->stolen = cut_exit_part(window, segment, ret->stolen);
	ret->blocked = cut_exit_part(window, segment, ret->blocked);
	ret->waking = cut_exit_part(window, segment, ret->waking);
	ret->total = ret->kernel + ret->poll + ret->vmm + ret->stolen + ret->blocked + ret->waking;
}

static void cut_sampling(struct vp_account_window *window, const struct vp_account_segment *segment,
			 struct vp_exit_sampling *ret)
{
	ret->timed = part_of_segment(window, segment, ret->timed);
	ret->sum = part_of_segment(window, segment, ret->sum);
	ret->squares = part_of_segment(window, segment, ret->squares);
	ret->weights = part_of_segment(window, segment, ret->weights);
}

static void cut_thief(struct vp_account_window *window, const struct vp_account_segment *segment,
		      struct vp_thief *ret)
{
	uint64_t amount = ret->ns, length = segment->end - segment->begin;
	uint64_t overlap = vp_window_overlap(&window->window, segment->begin, segment->end);

	ret->ns = part_of_segment(window, segment, amount);
	ret->count = part_of_segment(window, segment, ret->count);
	raise_error(&window->theft_error, error_of(amount, ret->ns, overlap, length));
}

/* Copies the record and divides it. */
static const struct vp_record_header *divide(struct vp_account_window *window,
					     const struct vp_account_segment *segment,
					     const struct vp_record_header *record, size_t size,
					     union vp_account_record *ret)
{
	if (window_has_none(&window->window, segment))
		return NULL;
	if (window_has_all(&window->window, segment))
		return record;
	memcpy(ret, record, size);
	if (record->id == VP_ID_vcpu_account)
		cut_times(window, segment, &ret->times);
	else if (record->id == VP_ID_exit_account)
		cut_exits(window, segment, &ret->exits);
	else if (record->id == VP_ID_exit_bucket)
		ret->bucket.count = (uint32_t)part_of_segment(window, segment, ret->bucket.count);
	else if (record->id == VP_ID_exit_sampling)
		cut_sampling(window, segment, &ret->sampling);
	else
		cut_thief(window, segment, &ret->thief);
	return &ret->header;
}

static const struct vp_record_header *take_segment(struct vp_account_window *window,
						   const struct vp_vcpu_account *record,
						   union vp_account_record *ret)
{
	struct vp_account_segment *segment = segment_of(window, record->vm, record->vcpu);

	*segment = (struct vp_account_segment){record->time, record->begin, record->end};
	if (record->end <= record->begin)
		return NULL;
	return divide(window, segment, (const void *)record, sizeof(*record), ret);
}

const struct vp_record_header *vp_account_window_cut(struct vp_account_window *window,
						     const struct vp_record_header *record,
						     union vp_account_record *ret)
{
	const struct vp_exit_account *exits = (const void *)record;
	const struct vp_exit_bucket *bucket = (const void *)record;
	const struct vp_exit_sampling *sampling = (const void *)record;
	const struct vp_thief *thief = (const void *)record;
	struct vp_account_segment segment;

	if (vp_window_is_all(&window->window))
		return record;
	switch (record->id) {
	case VP_ID_vcpu_account:
	case VP_ID_exit_account:
	case VP_ID_exit_bucket:
	case VP_ID_exit_sampling:
	case VP_ID_thief:
		break;
	case VP_ID_guest_sample:
	case VP_ID_vcpu_sample:
	case VP_ID_host_sample:
		return record->time > window->window.from && record->time <= window->window.to
			   ? record
			   : NULL;
	default:
		return record;
	}
	if (record->time != window->now) {
		window->before = window->now;
		window->now = record->time;
	}
	switch (record->id) {
	case VP_ID_vcpu_account:
		return take_segment(window, (const void *)record, ret);
	case VP_ID_exit_account:
		segment = segment_at(window, exits->vm, exits->vcpu, exits->time);
		return divide(window, &segment, record, sizeof(*exits), ret);
	case VP_ID_exit_bucket:
		segment = segment_at(window, bucket->vm, bucket->vcpu, bucket->time);
		return divide(window, &segment, record, sizeof(*bucket), ret);
	case VP_ID_exit_sampling:
		segment = segment_at(window, sampling->vm, sampling->vcpu, sampling->time);
		return divide(window, &segment, record, sizeof(*sampling), ret);
	default:
		segment = segment_at(window, thief->vm, thief->vcpu, thief->time);
		return divide(window, &segment, record, sizeof(*thief), ret);
	}
}
