/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account_window.h"

#include <string.h>

#include "base/macros.h"

void vp_account_window_deinit(struct vp_account_window *window)
{
	vp_map_deinit(&window->places);
	vp_vec_deinit(&window->stretches);
}

static void raise_error(uint64_t *most, uint64_t error)
{
	*most = error > *most ? error : *most;
}

/* How far `part` may be from the truth, if `amount` of `length` ns fell into `overlap` ns of them:
 * at least what does not fit into the rest, at most what fits. */
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

static struct vp_account_stretch *stretch_of(struct vp_account_window *window, uint32_t vm,
					     uint32_t vcpu)
{
	bool inserted;
	uint32_t place = *vp_map_insert(&window->places, vcpu_key(vm, vcpu),
					(uint32_t)window->stretches.count, &inserted);

	if (inserted)
		vp_vec_push(&window->stretches, (struct vp_account_stretch){0});
	return &window->stretches.at[place];
}

/* A record without a vCPU's of the same time is of the time since the write before. */
static struct vp_account_stretch stretch_at(struct vp_account_window *window, uint32_t vm,
					    uint32_t vcpu, uint64_t time)
{
	const struct vp_account_stretch *stretch = stretch_of(window, vm, vcpu);

	if (stretch->time == time)
		return *stretch;
	return (struct vp_account_stretch){time, window->before ? window->before : time, time};
}

static bool window_has_all(const struct vp_window *window, const struct vp_account_stretch *stretch)
{
	return stretch->begin >= window->from && stretch->end <= window->to &&
	       stretch->end > window->from;
}

static bool window_has_none(const struct vp_window *window,
			    const struct vp_account_stretch *stretch)
{
	return stretch->end <= window->from || stretch->begin >= window->to;
}

static uint64_t part_of_stretch(const struct vp_account_window *window,
				const struct vp_account_stretch *stretch, uint64_t amount)
{
	return vp_window_part(&window->window, stretch->begin, stretch->end, amount);
}

/* States' parts sum to that of all of them: the largest state takes what rounding leaves. In less
 * than 100 ns that may be less than nothing, and others round down. */
static void cut_states(struct vp_account_window *window, const struct vp_account_stretch *stretch,
		       struct vp_vcpu_account *ret)
{
	uint64_t states[] = {ret->guest,   ret->kernel, ret->poll,      ret->vmm,       ret->halted,
			     ret->waiting, ret->waking, ret->preempted, ret->throttled, ret->irq};
	uint64_t length = stretch->end - stretch->begin, all = 0;
	uint64_t overlap = vp_window_overlap(&window->window, stretch->begin, stretch->end);
	size_t largest = 0;

	for (size_t i = 0; i < VP_ARRAY_SIZE(states); i++) {
		all += states[i];
		largest = states[i] > states[largest] ? i : largest;
	}
	uint64_t rest = part_of_stretch(window, stretch, all), most = states[largest];
	for (size_t i = 0; i < VP_ARRAY_SIZE(states); i++) {
		if (i == largest)
			continue;
		uint64_t part = part_of_stretch(window, stretch, states[i]);
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

static void cut_times(struct vp_account_window *window, const struct vp_account_stretch *stretch,
		      struct vp_vcpu_account *ret)
{
	cut_states(window, stretch, ret);
	ret->exits = part_of_stretch(window, stretch, ret->exits);
	ret->wakeups = part_of_stretch(window, stretch, ret->wakeups);
	ret->preemptions = part_of_stretch(window, stretch, ret->preemptions);
	ret->polls = part_of_stretch(window, stretch, ret->polls);
	ret->poll_wasted = part_of_stretch(window, stretch, ret->poll_wasted);
	if (ret->begin < window->window.from)
		ret->begin = window->window.from;
	if (ret->end > window->window.to)
		ret->end = window->window.to;
}

/* All of an exit's time is where it ended: it can be anywhere. */
static uint64_t cut_exit_part(struct vp_account_window *window,
			      const struct vp_account_stretch *stretch, uint64_t amount)
{
	uint64_t part = part_of_stretch(window, stretch, amount);

	raise_error(&window->exit_error, part > amount - part ? part : amount - part);
	return part;
}

static void cut_exits(struct vp_account_window *window, const struct vp_account_stretch *stretch,
		      struct vp_exit_account *ret)
{
	ret->count = part_of_stretch(window, stretch, ret->count);
	ret->kernel = cut_exit_part(window, stretch, ret->kernel);
	ret->poll = cut_exit_part(window, stretch, ret->poll);
	ret->vmm = cut_exit_part(window, stretch, ret->vmm);
	ret->stolen = cut_exit_part(window, stretch, ret->stolen);
	ret->blocked = cut_exit_part(window, stretch, ret->blocked);
	ret->waking = cut_exit_part(window, stretch, ret->waking);
	ret->total = ret->kernel + ret->poll + ret->vmm + ret->stolen + ret->blocked + ret->waking;
}

static void cut_thief(struct vp_account_window *window, const struct vp_account_stretch *stretch,
		      struct vp_thief *ret)
{
	uint64_t amount = ret->ns, length = stretch->end - stretch->begin;
	uint64_t overlap = vp_window_overlap(&window->window, stretch->begin, stretch->end);

	ret->ns = part_of_stretch(window, stretch, amount);
	ret->count = part_of_stretch(window, stretch, ret->count);
	raise_error(&window->theft_error, error_of(amount, ret->ns, overlap, length));
}

/* Copies the record and divides it. */
static const struct vp_record_header *divide(struct vp_account_window *window,
					     const struct vp_account_stretch *stretch,
					     const struct vp_record_header *record, size_t size,
					     union vp_account_record *ret)
{
	if (window_has_none(&window->window, stretch))
		return NULL;
	if (window_has_all(&window->window, stretch))
		return record;
	memcpy(ret, record, size);
	if (record->id == VP_ID_vcpu_account)
		cut_times(window, stretch, &ret->times);
	else if (record->id == VP_ID_exit_account)
		cut_exits(window, stretch, &ret->exits);
	else if (record->id == VP_ID_exit_bucket)
		ret->bucket.count = (uint32_t)part_of_stretch(window, stretch, ret->bucket.count);
	else
		cut_thief(window, stretch, &ret->thief);
	return &ret->header;
}

static const struct vp_record_header *take_stretch(struct vp_account_window *window,
						   const struct vp_vcpu_account *record,
						   union vp_account_record *ret)
{
	struct vp_account_stretch *stretch = stretch_of(window, record->vm, record->vcpu);

	*stretch = (struct vp_account_stretch){record->time, record->begin, record->end};
	if (record->end <= record->begin)
		return NULL;
	return divide(window, stretch, (const void *)record, sizeof(*record), ret);
}

const struct vp_record_header *vp_account_window_cut(struct vp_account_window *window,
						     const struct vp_record_header *record,
						     union vp_account_record *ret)
{
	const struct vp_exit_account *exits = (const void *)record;
	const struct vp_exit_bucket *bucket = (const void *)record;
	const struct vp_thief *thief = (const void *)record;
	struct vp_account_stretch stretch;

	if (vp_window_is_all(&window->window))
		return record;
	switch (record->id) {
	case VP_ID_vcpu_account:
	case VP_ID_exit_account:
	case VP_ID_exit_bucket:
	case VP_ID_thief:
		break;
	case VP_ID_guest_sample:
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
		return take_stretch(window, (const void *)record, ret);
	case VP_ID_exit_account:
		stretch = stretch_at(window, exits->vm, exits->vcpu, exits->time);
		return divide(window, &stretch, record, sizeof(*exits), ret);
	case VP_ID_exit_bucket:
		stretch = stretch_at(window, bucket->vm, bucket->vcpu, bucket->time);
		return divide(window, &stretch, record, sizeof(*bucket), ret);
	default:
		stretch = stretch_at(window, thief->vm, thief->vcpu, thief->time);
		return divide(window, &stretch, record, sizeof(*thief), ret);
	}
}
