/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/sched.h"

#include <string.h>

#include "schema/records.h"

/* A guest may have as many threads as it wants; their numbers have 22 bits (PID_MAX_LIMIT). */
enum { MAX_THREADS = 1 << 18, MAX_THEFTS = 1 << 19, TID_BITS = 22 };

void vp_sched_deinit(struct vp_sched *sched)
{
	vp_vec_deinit(&sched->vcpus);
	vp_vec_deinit(&sched->threads);
	vp_vec_deinit(&sched->thefts);
	vp_vec_deinit(&sched->waits);
	vp_map_deinit(&sched->vcpu_of);
	vp_map_deinit(&sched->thread_of);
	vp_map_deinit(&sched->theft_of);
	vp_intern_deinit(&sched->texts);
}

static uint32_t sched_vcpu_of(struct vp_sched *sched, const struct vp_period *period)
{
	uint32_t number = period->vcpu == VP_VCPU_UNKNOWN ? period->tid | 1U << 31 : period->vcpu;
	bool inserted;
	uint32_t index = *vp_map_insert(&sched->vcpu_of, (uint64_t)period->vm << 32 | number,
					(uint32_t)sched->vcpus.count, &inserted);

	if (inserted)
		vp_vec_push(&sched->vcpus,
			    ((struct vp_sched_vcpu){.vm = period->vm, .vcpu = period->vcpu}));
	sched->vcpus.at[index].tid = period->tid;
	return index;
}

/* NULL: there is no room for another one. */
static struct vp_sched_thread *sched_thread_of(struct vp_sched *sched, uint32_t vcpu,
					       const struct vp_period *period, uint32_t *index)
{
	uint64_t key = (uint64_t)vcpu << TID_BITS | period->guest_tid;
	const uint32_t *known = vp_map_find(&sched->thread_of, key);
	bool inserted;

	if (!known && (sched->threads.count == MAX_THREADS || period->guest_tid >> TID_BITS))
		return NULL;
	if (!known) {
		known = vp_map_insert(&sched->thread_of, key, (uint32_t)sched->threads.count,
				      &inserted);
		vp_vec_push(&sched->threads,
			    ((struct vp_sched_thread){.vcpu = vcpu, .tid = period->guest_tid}));
	}
	*index = *known;
	sched->threads.at[*index].pid = period->guest_pid;
	sched->threads.at[*index].comm = period->guest_comm;
	return &sched->threads.at[*index];
}

static void add_theft(struct vp_sched *sched, uint32_t thread, const struct vp_period *period)
{
	uint64_t key = (uint64_t)thread << 32 | period->thief_tid;
	const uint32_t *known = vp_map_find(&sched->theft_of, key);
	bool inserted;

	if (!known && sched->thefts.count == MAX_THEFTS) {
		sched->left_out++;
		return;
	}
	if (!known) {
		known =
		    vp_map_insert(&sched->theft_of, key, (uint32_t)sched->thefts.count, &inserted);
		vp_vec_push(&sched->thefts,
			    ((struct vp_sched_theft){.thread = thread, .tid = period->thief_tid}));
	}
	sched->thefts.at[*known].comm = period->thief_comm;
	sched->thefts.at[*known].ns += period->end - period->begin;
}

static void add_to_thread(struct vp_sched *sched, uint32_t vcpu, const struct vp_period *period)
{
	uint64_t ns = period->end - period->begin;
	uint32_t index;

	if (!period->has_guest)
		return;
	struct vp_sched_thread *thread = sched_thread_of(sched, vcpu, period, &index);
	if (!thread) {
		sched->left_out++;
		return;
	}
	if (period->certainty == VP_LANE_EXACT)
		thread->exact += ns;
	else if (period->state == VP_LANE_GUEST)
		thread->uncertain += ns;
	else if (period->state == VP_LANE_HOST)
		thread->host += ns;
	else if (period->state == VP_LANE_STOLEN || period->state == VP_LANE_WAKING)
		thread->stolen += ns;
	if (period->has_thief)
		add_theft(sched, index, period);
}

static void add_to_vcpu(struct vp_sched_vcpu *vcpu, const struct vp_period *period)
{
	uint64_t ns = period->end - period->begin;

	vcpu->ns[period->state] += ns;
	if (period->state != VP_LANE_GUEST)
		return;
	if (period->certainty == VP_LANE_EXACT)
		vcpu->exact += ns;
	else if (period->certainty == VP_LANE_UNCERTAIN)
		vcpu->uncertain += ns;
	else
		vcpu->unknown += ns;
}

static uint32_t sched_bucket_of(uint64_t ns)
{
	uint32_t bucket = 0;

	while (ns > 1 && bucket < VP_SCHED_BUCKETS - 1) {
		ns >>= 1;
		bucket++;
	}
	return bucket;
}

static void keep_wait(struct vp_sched *sched, const struct vp_sched_wait *wait)
{
	size_t at = sched->waits.count;

	if (at == sched->max_waits && (!at || sched->waits.at[at - 1].ns >= wait->ns))
		return;
	if (at == sched->max_waits)
		at--;
	else
		vp_vec_push(&sched->waits, *wait);
	for (; at && sched->waits.at[at - 1].ns < wait->ns; at--)
		sched->waits.at[at] = sched->waits.at[at - 1];
	sched->waits.at[at] = *wait;
}

static void sched_take_wait(struct vp_sched *sched, uint32_t index, const struct vp_period *period)
{
	struct vp_sched_vcpu *vcpu = &sched->vcpus.at[index];
	uint64_t ns = period->end - period->begin;

	if (vcpu->wait_begin != period->wait_begin) {
		vcpu->wait_begin = period->wait_begin;
		vcpu->thief_ns = 0;
	}
	if (period->has_thief && ns > vcpu->thief_ns) {
		vcpu->thief_ns = ns;
		vcpu->thief_tid = period->thief_tid;
		vcpu->thief_comm = period->thief_comm;
	}
	if (!period->wait_ends)
		return;
	const struct vp_sched_wait wait = {.vcpu = index,
					   .woken = period->state == VP_LANE_WAKING,
					   .begin = period->wait_begin,
					   .ns = period->end - period->wait_begin,
					   .has_guest = period->has_guest,
					   .guest_tid = period->guest_tid,
					   .guest_comm = period->guest_comm,
					   .has_thief = vcpu->thief_ns != 0,
					   .thief_tid = vcpu->thief_tid,
					   .thief_comm = vcpu->thief_comm};
	(wait.woken ? sched->woken : sched->preempted)[sched_bucket_of(wait.ns)]++;
	keep_wait(sched, &wait);
}

void vp_sched_take(struct vp_sched *sched, const struct vp_period *period)
{
	if (period->lane != VP_LANE_VCPU)
		return;
	uint32_t vcpu = sched_vcpu_of(sched, period);
	add_to_vcpu(&sched->vcpus.at[vcpu], period);
	add_to_thread(sched, vcpu, period);
	if (period->state == VP_LANE_STOLEN || period->state == VP_LANE_WAKING)
		sched_take_wait(sched, vcpu, period);
}
