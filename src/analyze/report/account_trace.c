/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/account_trace.h"

#include <inttypes.h>
#include <stdio.h>

#include "analyze/account/account.h"
#include "analyze/common/health.h"
#include "analyze/common/recording_parts.h"
#include "analyze/common/window.h"
#include "analyze/report/event_cuts.h"
#include "analyze/trace/trace_feed.h"
#include "analyze/trace/tracks.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/account_terms.h"
#include "schema/records.h"
#include "schema/trace_records.h"
#include "schema/vm.h"
#include "store/recording.h"

enum { EVENTS_AT_ONCE = 1 << 16 };

struct traced {
	struct vp_account_recording *rec;
	VP_VEC(struct vp_vcpu_account) vcpus; /* sums so far */
	struct vp_map vcpu_of_key;            /* index by VM and vCPU */
	struct vp_map vcpu_of_tid;      /* vCPU threads in the list of VMs; value: index in … */
	VP_VEC(struct vp_thief) owners; /* … these thieves */
};

/* Notes the vCPU threads: as thieves they are named by vCPU and VM. */
static void account_trace_read_vcpus(struct traced *traced)
{
	bool inserted;

	vp_vec_each (&traced->rec->vms, vm)
		vp_vec_each (&vm->vcpus, vcpu) {
			vp_map_insert(&traced->vcpu_of_tid, vcpu->tid,
				      (uint32_t)traced->owners.count, &inserted);
			if (inserted)
				vp_vec_push(&traced->owners,
					    ((struct vp_thief){.kind = VP_BY_VCPU,
							       .number = vcpu->number,
							       .thief_pid = vp_vm_id(vm)}));
		}
}

static struct vp_vcpu_account *account_trace_vcpu(struct traced *traced,
						  const struct vp_track_slice *slice)
{
	bool inserted;
	uint32_t index =
	    *vp_map_insert(&traced->vcpu_of_key, (uint64_t)slice->vm << 32 | slice->vcpu,
			   (uint32_t)traced->vcpus.count, &inserted);

	if (inserted)
		vp_vec_push(&traced->vcpus, ((struct vp_vcpu_account){.id = VP_ID_vcpu_account,
								      .vm = slice->vm,
								      .tid = slice->tid,
								      .vcpu = slice->vcpu,
								      .begin = slice->begin,
								      .end = slice->begin}));
	return &traced->vcpus.at[index];
}

/* The thief is the thread that had the pCPU for which the vCPU waited. */
static void account_trace_take_thief(struct traced *traced, const struct vp_track_slice *slice)
{
	const uint32_t *owner =
	    slice->has_thief ? vp_map_find(&traced->vcpu_of_tid, slice->thief_tid) : NULL;
	struct vp_thief thief = {.kind = VP_BY_UNKNOWN};

	if (owner)
		thief = traced->owners.at[*owner];
	else if (slice->has_thief && slice->thief_tid)
		thief = (struct vp_thief){.kind = VP_BY_TASK, .number = slice->thief_tid};
	else if (slice->has_thief || slice->state == VP_TRACK_WAKING)
		thief.kind = VP_BY_NOBODY;
	if (thief.kind == VP_BY_TASK && slice->thief_comm)
		snprintf(thief.comm, sizeof(thief.comm), "%s", slice->thief_comm);
	thief.time = slice->end;
	thief.id = VP_ID_thief;
	thief.vm = slice->vm;
	thief.vcpu = slice->vcpu;
	thief.state = slice->state == VP_TRACK_WAKING ? VP_STATE_WAKING : VP_STATE_PREEMPTED;
	thief.ns = slice->end - slice->begin;
	thief.count = 1;
	vp_account_take(&traced->rec->account, (const struct vp_record_header *)&thief);
}

static void account_trace_take(void *context, const struct vp_track_slice *slice)
{
	struct traced *traced = context;
	uint64_t ns = slice->end - slice->begin;

	if (slice->track != VP_TRACK_VCPU || !ns)
		return;
	if (slice->end > traced->rec->last)
		traced->rec->last = slice->end;
	struct vp_vcpu_account *sums = account_trace_vcpu(traced, slice);
	sums->end += ns;
	switch (slice->state) {
	case VP_TRACK_GUEST:
		sums->guest += ns;
		return;
	case VP_TRACK_WORK:
		sums->kernel += ns;
		return;
	case VP_TRACK_HALTED:
		sums->halted += ns;
		return;
	case VP_TRACK_WAITING:
		sums->waiting += ns;
		return;
	case VP_TRACK_WAKING:
		sums->waking += ns;
		sums->wakeups += slice->wait_ends;
		break;
	case VP_TRACK_PREEMPTED:
		sums->preempted += ns;
		sums->preemptions += slice->wait_begin == slice->begin;
		break;
	default:
		return;
	}
	account_trace_take_thief(traced, slice);
}

/* Number of listed vCPUs without any slice. */
static size_t account_trace_count_silent(const struct traced *traced)
{
	size_t silent = 0;

	vp_vec_each (&traced->owners, owner)
		silent += !vp_map_find(&traced->vcpu_of_key,
				       (uint64_t)owner->thief_pid << 32 | owner->number);
	return silent;
}

static void account_trace_note(struct traced *traced, const struct vp_feed *feed)
{
	vp_sentences *notes = &traced->rec->notes;
	size_t silent = account_trace_count_silent(traced);

	vp_vec_push(
	    notes,
	    vp_strdup(
		"no vCPU accounting: states come from the events of --trace. kernel includes VMM "
		"time, preempted includes throttled, and interrupts count as the interrupted "
		"state; record without --no-account to separate these, and for 'vperf exits'"));
	if (silent)
		vp_vec_push(notes, vp_format("%zu vCPU%s without events: state unknown", silent,
					     silent == 1 ? "" : "s"));
	vp_vec_each (&feed->notes, note)
		vp_vec_push(notes, vp_strdup(*note));
}

static struct vp_error *expect_events(const struct vp_account_recording *rec,
				      const struct vp_feed *feed)
{
	bool scheduler = feed->counts[VP_TRACE_KIND_sched_switch];
	bool kvm = feed->counts[VP_TRACE_KIND_kvm_entry] && feed->counts[VP_TRACE_KIND_kvm_exit];

	if (scheduler && kvm)
		return NULL;
	return vp_error_new("the recording '%s' has neither vCPU accounting nor the events of %s "
			    "that could replace it%s",
			    rec->path,
			    scheduler ? "KVM"
			    : kvm     ? "the scheduler"
				      : "either kind",
			    rec->recording.imported
				? ""
				: ": record without --no-account, or with --trace=sched,kvm");
}

static struct vp_error *account_trace_read(struct traced *traced)
{
	struct vp_account_recording *rec = traced->rec;
	bool all = vp_window_is_all(&rec->window);
	const struct vp_tracks_options options = {.from = all ? 0 : rec->window.from,
						  .to = all ? UINT64_MAX : rec->window.to,
						  .take = account_trace_take,
						  .context = traced};
	struct vp_tracks *tracks;

	VP_TRY(vp_tracks_open(rec->path, &options, &tracks));
	while (vp_tracks_read(tracks, EVENTS_AT_ONCE))
		;
	const struct vp_feed *feed = vp_tracks_feed(tracks);
	struct vp_error *error = expect_events(rec, feed);
	vp_vec_each (&traced->vcpus, sums) {
		sums->time = sums->end;
		if (!error)
			vp_account_take(&rec->account, (const struct vp_record_header *)sums);
	}
	if (!error)
		account_trace_note(traced, feed);
	vp_tracks_close(tracks);
	return error;
}

/* For a recording without accounting. Errors: it has no suitable events either. */
static struct vp_error *account_trace_fill(struct vp_account_recording *rec)
{
	struct traced traced = {.rec = rec};

	if (!vp_feed_is_recorded(rec->path, &rec->recording, &rec->vms) ||
	    vp_recording_has_instrument(&rec->recording, "account"))
		return NULL;
	/* Overcommit needs records in groups of a second, which events do not have. */
	rec->account.overcommit.pcpus = 0;
	account_trace_read_vcpus(&traced);
	struct vp_error *error = account_trace_read(&traced);
	vp_vec_deinit(&traced.vcpus);
	vp_vec_deinit(&traced.owners);
	vp_map_deinit(&traced.vcpu_of_key);
	vp_map_deinit(&traced.vcpu_of_tid);
	return error;
}

/* Without events, the window is widened to steps of the accounting. */
static struct vp_error *account_trace_cut(struct vp_account_recording *rec)
{
	if (!vp_feed_is_recorded(rec->path, &rec->recording, &rec->vms) ||
	    !vp_recording_has_instrument(&rec->recording, "account"))
		return NULL;
	return vp_event_cuts_read(rec->path, &rec->vms, &rec->cuts);
}

static const struct vp_account_events cuts_only = {NULL, account_trace_cut};

struct vp_error *vp_account_trace_open_recorded(const char *path, const struct vp_window *window,
						struct vp_account_recording *ret)
{
	return vp_account_recording_open_with(path, window, &cuts_only, ret);
}

struct vp_error *vp_account_trace_open_joined(const char *name, const vp_recording_parts *parts,
					      struct vp_account_recording *ret)
{
	return vp_account_joined_open(name, parts, &cuts_only, ret);
}

struct vp_error *vp_account_trace_open(const char *path, const struct vp_window *window,
				       struct vp_account_recording *ret)
{
	static const struct vp_account_events events = {account_trace_fill, account_trace_cut};

	return vp_account_recording_open_with(path, window, &events, ret);
}
