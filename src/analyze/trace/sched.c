/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/sched.h"

#include <string.h>

#include "schema/records.h"

/* Tables are limited because a guest may have any number of threads; tids have 22 bits
 * (PID_MAX_LIMIT). */
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

static uint32_t sched_vcpu_of(struct vp_sched *sched, const struct vp_track_slice *slice)
{
	uint32_t number = slice->vcpu == VP_VCPU_UNKNOWN ? slice->tid | 1U << 31 : slice->vcpu;
	bool inserted;
	uint32_t index = *vp_map_insert(&sched->vcpu_of, (uint64_t)slice->vm << 32 | number,
					(uint32_t)sched->vcpus.count, &inserted);

	if (inserted)
		vp_vec_push(&sched->vcpus,
			    ((struct vp_sched_vcpu){.vm = slice->vm, .vcpu = slice->vcpu}));
	sched->vcpus.at[index].tid = slice->tid;
	return index;
}

/* NULL: the table is full. */
static struct vp_sched_thread *sched_thread_of(struct vp_sched *sched, uint32_t vcpu,
					       const struct vp_track_slice *slice, uint32_t *index)
{
	uint64_t key = (uint64_t)vcpu << TID_BITS | slice->guest_tid;
	const uint32_t *known = vp_map_find(&sched->thread_of, key);
	bool inserted;

	if (!known && (sched->threads.count == MAX_THREADS || slice->guest_tid >> TID_BITS))
		return NULL;
	if (!known) {
		known = vp_map_insert(&sched->thread_of, key, (uint32_t)sched->threads.count,
				      &inserted);
		vp_vec_push(&sched->threads,
			    ((struct vp_sched_thread){.vcpu = vcpu, .tid = slice->guest_tid}));
	}
	*index = *known;
	sched->threads.at[*index].pid = slice->guest_pid;
	sched->threads.at[*index].comm = slice->guest_comm;
	return &sched->threads.at[*index];
}

static void add_theft(struct vp_sched *sched, uint32_t thread, const struct vp_track_slice *slice)
{
	uint64_t key = (uint64_t)thread << 32 | slice->thief_tid;
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
			    ((struct vp_sched_theft){.thread = thread, .tid = slice->thief_tid}));
	}
	sched->thefts.at[*known].comm = slice->thief_comm;
	sched->thefts.at[*known].ns += slice->end - slice->begin;
}

static void add_to_thread(struct vp_sched *sched, uint32_t vcpu, const struct vp_track_slice *slice)
{
	uint64_t ns = slice->end - slice->begin;
	uint32_t index;

	if (!slice->has_guest)
		return;
	struct vp_sched_thread *thread = sched_thread_of(sched, vcpu, slice, &index);
	if (!thread) {
		sched->left_out++;
		return;
	}
	if (slice->certainty == VP_TRACK_EXACT)
		thread->exact += ns;
	else if (slice->state == VP_TRACK_GUEST)
		thread->uncertain += ns;
	else if (slice->state == VP_TRACK_WORK)
		thread->host += ns;
	else if (slice->state == VP_TRACK_PREEMPTED || slice->state == VP_TRACK_WAKING)
		thread->stolen += ns;
	if (slice->has_thief)
		add_theft(sched, index, slice);
}

static void add_to_vcpu(struct vp_sched_vcpu *vcpu, const struct vp_track_slice *slice)
{
	uint64_t ns = slice->end - slice->begin;

	vcpu->ns[slice->state] += ns;
	if (slice->state != VP_TRACK_GUEST)
		return;
	if (slice->certainty == VP_TRACK_EXACT)
		vcpu->exact += ns;
	else if (slice->certainty == VP_TRACK_UNCERTAIN)
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

static void sched_take_wait(struct vp_sched *sched, uint32_t index,
			    const struct vp_track_slice *slice)
{
	struct vp_sched_vcpu *vcpu = &sched->vcpus.at[index];
	uint64_t ns = slice->end - slice->begin;

	if (vcpu->wait_begin != slice->wait_begin) {
		vcpu->wait_begin = slice->wait_begin;
		vcpu->thief_ns = 0;
	}
	if (slice->has_thief && ns > vcpu->thief_ns) {
		vcpu->thief_ns = ns;
		vcpu->thief_tid = slice->thief_tid;
		vcpu->thief_comm = slice->thief_comm;
	}
	if (!slice->wait_ends)
		return;
	const struct vp_sched_wait wait = {.vcpu = index,
					   .woken = slice->state == VP_TRACK_WAKING,
					   .begin = slice->wait_begin,
					   .ns = slice->end - slice->wait_begin,
					   .has_guest = slice->has_guest,
					   .guest_tid = slice->guest_tid,
					   .guest_comm = slice->guest_comm,
					   .has_thief = vcpu->thief_ns != 0,
					   .thief_tid = vcpu->thief_tid,
					   .thief_comm = vcpu->thief_comm};
	(wait.woken ? sched->woken : sched->preempted)[sched_bucket_of(wait.ns)]++;
	keep_wait(sched, &wait);
}

void vp_sched_take(struct vp_sched *sched, const struct vp_track_slice *slice)
{
	if (slice->track != VP_TRACK_VCPU)
		return;
	uint32_t vcpu = sched_vcpu_of(sched, slice);
	add_to_vcpu(&sched->vcpus.at[vcpu], slice);
	add_to_thread(sched, vcpu, slice);
	if (slice->state == VP_TRACK_PREEMPTED || slice->state == VP_TRACK_WAKING)
		sched_take_wait(sched, vcpu, slice);
}
