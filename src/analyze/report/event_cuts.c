/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/event_cuts.h"

#include <string.h>

#include "analyze/trace/trace_feed.h"
#include "analyze/trace/tracks.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/account_terms.h"
#include "schema/records.h"
#include "schema/trace_records.h"
#include "store/packet.h"
#include "store/trace_reader.h"

/* Interrupts nest: a softirq, a hard interrupt, and more where the kernel allows them. */
enum { EVENTS_AT_ONCE = 1 << 16, NESTED = 8, PCPUS_MAX = 1 << 16 };

/* Parts of an exit, in the order of VP_CUT_REASON_HOST …. */
enum { PART_HOST, PART_STOLEN, PART_WAKING, PART_ASLEEP, PARTS };

struct cut_turn {
	struct vp_cut_key thief;
	uint64_t begin, end;
};

struct cut_range {
	uint64_t begin, end;
};

struct cut_vcpu {
	uint32_t vm, number;
	VP_VEC(struct cut_turn) wait;  /* thieves of the present wait */
	VP_VEC(struct cut_range) irqs; /* in a slice that has not ended */
	uint64_t thieves_interval;     /* end of the last interval whose thieves are cut */
	bool exit_open;                /* it has left the guest, with this exit: */
	uint32_t reason, vendor;
	uint64_t parts[PARTS]; /* since the last entry, ns */
};

struct cut_interrupt {
	uint32_t kind, number; /* as in struct vp_thief */
};

struct cut_pcpu {
	struct cut_interrupt open[NESTED];
	unsigned depth;
	uint64_t since; /* when the innermost one started, or was resumed */
};

struct cutter {
	struct vp_account_cuts *cuts;
	VP_VEC(struct cut_vcpu) vcpus;
	VP_VEC(struct cut_pcpu) pcpus;
	struct vp_map vcpu_of_key, vcpu_of_tid; /* index in `vcpus` */
	bool by_states;                         /* vCPUs are seen by their states */
};

static uint32_t cutter_index_of(struct cutter *cutter, uint32_t vm, uint32_t number)
{
	bool inserted;
	uint32_t index = *vp_map_insert(&cutter->vcpu_of_key, (uint64_t)vm << 32 | number,
					(uint32_t)cutter->vcpus.count, &inserted);

	if (inserted)
		vp_vec_push(&cutter->vcpus, ((struct cut_vcpu){.vm = vm, .number = number}));
	return index;
}

/* The thread is that vCPU's from now on. */
static struct cut_vcpu *cutter_vcpu(struct cutter *cutter, uint32_t vm, uint32_t number,
				    uint32_t tid)
{
	uint32_t index = cutter_index_of(cutter, vm, number);
	bool inserted;

	*vp_map_insert(&cutter->vcpu_of_tid, tid, index, &inserted) = index;
	return &cutter->vcpus.at[index];
}

static struct cut_vcpu *cutter_vcpu_of_tid(const struct cutter *cutter, uint32_t tid)
{
	const uint32_t *index = tid ? vp_map_find(&cutter->vcpu_of_tid, tid) : NULL;

	return index ? &cutter->vcpus.at[*index] : NULL;
}

static struct vp_cut_key cutter_key(const struct cut_vcpu *vcpu, enum vp_cut cut)
{
	return (struct vp_cut_key){.vm = vcpu->vm, .vcpu = vcpu->number, .cut = cut};
}

/* The interval of the vCPU with that time, if a border cuts it. */
static const struct vp_cut_interval *cutter_interval(const struct cutter *cutter,
						     const struct cut_vcpu *vcpu, uint64_t time)
{
	const struct vp_cut_interval *interval =
	    vp_account_cuts_interval(cutter->cuts, vcpu->vm, vcpu->number, time);

	return interval && vp_account_cuts_between(cutter->cuts, interval->begin, interval->end)
		   ? interval
		   : NULL;
}

typedef void cutter_change(struct vp_account_cuts *cuts, const struct vp_cut_key *key,
			   uint64_t begin, uint64_t end);

/* The time is divided among the intervals in which it is. */
static void cutter_add_time(struct cutter *cutter, const struct cut_vcpu *vcpu, enum vp_cut cut,
			    uint64_t begin, uint64_t end, cutter_change *change)
{
	struct vp_cut_key key = cutter_key(vcpu, cut);

	while (begin < end) {
		const struct vp_cut_interval *interval =
		    vp_account_cuts_interval(cutter->cuts, vcpu->vm, vcpu->number, begin + 1);
		if (!interval)
			return;
		uint64_t upper = end < interval->end ? end : interval->end;
		begin = begin > interval->begin ? begin : interval->begin;
		key.interval = interval->end;
		if (begin < upper &&
		    vp_account_cuts_between(cutter->cuts, interval->begin, interval->end))
			change(cutter->cuts, &key, begin, upper);
		begin = upper > begin ? upper : end;
	}
}

static void cutter_count(struct cutter *cutter, const struct cut_vcpu *vcpu, enum vp_cut cut,
			 uint64_t time)
{
	const struct vp_cut_interval *interval = cutter_interval(cutter, vcpu, time);
	struct vp_cut_key key = cutter_key(vcpu, cut);

	if (!interval)
		return;
	key.interval = interval->end;
	vp_account_cuts_count(cutter->cuts, &key, time, 1);
}

/* An interrupt ends guest time, even if KVM reports the exit only after it (AMD). */
static uint64_t cutter_end_of_guest(const struct cut_vcpu *vcpu, const struct vp_track_slice *slice)
{
	uint64_t end = slice->end;

	vp_vec_each (&vcpu->irqs, irq)
		if (irq->begin >= slice->begin && irq->begin < end)
			end = irq->begin;
	return end;
}

/* Interrupts are neither guest nor host time. */
static void cutter_take_running(struct cutter *cutter, struct cut_vcpu *vcpu,
				const struct vp_track_slice *slice)
{
	bool guest = slice->state == VP_TRACK_GUEST;
	uint64_t exit = guest ? cutter_end_of_guest(vcpu, slice) : slice->begin;
	size_t kept = 0;

	cutter_add_time(cutter, vcpu, VP_CUT_GUEST, slice->begin, exit, vp_account_cuts_add);
	cutter_add_time(cutter, vcpu, VP_CUT_HOST, exit, slice->end, vp_account_cuts_add);
	cutter_add_time(cutter, vcpu, VP_CUT_RUNNING, slice->begin, slice->end,
			vp_account_cuts_add);
	vcpu->parts[PART_HOST] += slice->end - exit;
	vp_vec_each (&vcpu->irqs, irq) {
		if (irq->begin >= slice->end)
			vcpu->irqs.at[kept++] = *irq;
		else if (irq->begin >= slice->begin && irq->end <= slice->end)
			cutter_add_time(cutter, vcpu, VP_CUT_HOST, irq->begin, irq->end,
					vp_account_cuts_subtract);
	}
	vcpu->irqs.count = kept;
}

static struct vp_cut_key cutter_thief_of(struct cutter *cutter, const struct cut_vcpu *vcpu,
					 const struct vp_track_slice *slice)
{
	struct vp_cut_key key = cutter_key(vcpu, VP_CUT_THIEF);
	const struct cut_vcpu *thief =
	    slice->has_thief ? cutter_vcpu_of_tid(cutter, slice->thief_tid) : NULL;

	key.state = slice->state == VP_TRACK_WAKING ? VP_STATE_WAKING : VP_STATE_PREEMPTED;
	if (thief) {
		key.type = VP_BY_VCPU;
		key.number = thief->number;
		key.owner = thief->vm;
	} else if (slice->has_thief && slice->thief_tid) {
		key.type = VP_BY_TASK;
		key.number = slice->thief_tid;
	} else {
		bool idle =
		    slice->has_thief || (slice->state == VP_TRACK_WAKING && !cutter->by_states);
		key.type = idle ? VP_BY_NOBODY : VP_BY_UNKNOWN;
	}
	return key;
}

static void cutter_add_turn(struct cutter *cutter, const struct cut_turn *turn, uint64_t interval)
{
	struct vp_cut_key key = turn->thief;

	key.interval = interval;
	vp_account_cuts_add(cutter->cuts, &key, turn->begin, turn->end);
	key.cut = VP_CUT_TURNS;
	vp_account_cuts_count(cutter->cuts, &key, turn->end, 1);
}

/* Thieves are recorded at the end of a wait, which may have started before the interval. */
static void cutter_end_wait(struct cutter *cutter, struct cut_vcpu *vcpu, uint64_t begin,
			    uint64_t end)
{
	const struct vp_cut_interval *interval =
	    vp_account_cuts_interval(cutter->cuts, vcpu->vm, vcpu->number, end);

	if (interval && (vp_account_cuts_between(cutter->cuts, begin, end) ||
			 vp_account_cuts_between(cutter->cuts, interval->begin, interval->end) ||
			 vcpu->thieves_interval == interval->end)) {
		vcpu->thieves_interval = interval->end;
		vp_vec_each (&vcpu->wait, turn)
			cutter_add_turn(cutter, turn, interval->end);
	}
	vcpu->wait.count = 0;
}

static void cutter_take_wait(struct cutter *cutter, struct cut_vcpu *vcpu, enum vp_cut cut,
			     const struct vp_track_slice *slice)
{
	const struct cut_turn turn = {cutter_thief_of(cutter, vcpu, slice), slice->begin,
				      slice->end};

	if (slice->begin == slice->wait_begin)
		cutter_count(cutter, vcpu,
			     cut == VP_CUT_WAKING ? VP_CUT_WAKEUPS : VP_CUT_PREEMPTIONS,
			     slice->begin);
	if (!cutter->by_states)
		cutter_add_time(cutter, vcpu, cut, slice->begin, slice->end, vp_account_cuts_add);
	if (slice->end > slice->begin)
		vp_vec_push(&vcpu->wait, turn);
	if (slice->wait_ends)
		cutter_end_wait(cutter, vcpu, slice->wait_begin, slice->end);
}

static void cutter_take_slice(void *context, const struct vp_track_slice *slice)
{
	static const struct {
		enum vp_cut cut;
		unsigned part;
	} kinds[VP_TRACK_STATES] = {
	    [VP_TRACK_GUEST] = {VP_CUT_GUEST, PARTS},
	    [VP_TRACK_WORK] = {VP_CUT_HOST, PARTS},
	    [VP_TRACK_PREEMPTED] = {VP_CUT_STOLEN, PART_STOLEN},
	    [VP_TRACK_WAKING] = {VP_CUT_WAKING, PART_WAKING},
	    [VP_TRACK_HALTED] = {VP_CUT_HALTED, PART_ASLEEP},
	    [VP_TRACK_WAITING] = {VP_CUT_BLOCKED, PART_ASLEEP},
	};
	struct cutter *cutter = context;

	if (slice->track != VP_TRACK_VCPU)
		return;
	struct cut_vcpu *vcpu = &cutter->vcpus.at[cutter_index_of(cutter, slice->vm, slice->vcpu)];
	enum vp_cut cut = kinds[slice->state].cut;
	unsigned part = kinds[slice->state].part;
	if (part < PARTS && !cutter->by_states)
		vcpu->parts[part] += slice->end - slice->begin;
	if (slice->state == VP_TRACK_PREEMPTED || slice->state == VP_TRACK_WAKING) {
		cutter_take_wait(cutter, vcpu, cut, slice);
		return;
	}
	vcpu->wait.count = 0;
	if (cutter->by_states)
		return;
	if (slice->state == VP_TRACK_GUEST || slice->state == VP_TRACK_WORK)
		cutter_take_running(cutter, vcpu, slice);
	else
		cutter_add_time(cutter, vcpu, cut, slice->begin, slice->end, vp_account_cuts_add);
}

/* An exit counts, with all of its time, where it ends. */
static void cutter_end_exit(struct cutter *cutter, struct cut_vcpu *vcpu, uint64_t now)
{
	const struct vp_cut_interval *interval = cutter_interval(cutter, vcpu, now);
	struct vp_cut_key key = cutter_key(vcpu, VP_CUT_EXITS);
	uint64_t total = 0;

	if (!interval)
		return;
	key.interval = interval->end;
	vp_account_cuts_count(cutter->cuts, &key, now, 1);
	key.cut = VP_CUT_REASON;
	key.number = vcpu->reason;
	key.type = vcpu->vendor;
	vp_account_cuts_count(cutter->cuts, &key, now, 1);
	for (unsigned i = 0; i < PARTS; i++) {
		uint64_t part = (int64_t)vcpu->parts[i] > 0 ? vcpu->parts[i] : 0;
		key.cut = VP_CUT_REASON_HOST + i;
		vp_account_cuts_count(cutter->cuts, &key, now, part);
		total += part;
	}
	key.cut = VP_CUT_REASON_BUCKET;
	key.state = vp_bucket_of(total);
	vp_account_cuts_count(cutter->cuts, &key, now, 1);
}

static void cutter_take_entry(struct cutter *cutter, const struct vp_trace_kvm_entry *entry)
{
	struct cut_vcpu *vcpu = cutter_vcpu(cutter, entry->vm, entry->vcpu, entry->tid);

	if (vcpu->exit_open)
		cutter_end_exit(cutter, vcpu, entry->time);
	vcpu->exit_open = false;
	memset(vcpu->parts, 0, sizeof(vcpu->parts));
}

static void cutter_take_exit(struct cutter *cutter, const struct vp_trace_kvm_exit *exit)
{
	struct cut_vcpu *vcpu = cutter_vcpu(cutter, exit->vm, exit->vcpu, exit->tid);

	vcpu->exit_open = true;
	vcpu->reason = exit->reason;
	vcpu->vendor = exit->vendor;
}

/* A state of a vCPU of Xen has the exit during which it was; the first one without ends the exit.
 */
static void cutter_take_exit_of_state(struct cutter *cutter, struct cut_vcpu *vcpu,
				      const struct vp_vcpu_span *span, unsigned part)
{
	bool in_exit = span->flags & VP_HAS_EXIT_REASON;

	if (vcpu->exit_open && !in_exit)
		cutter_end_exit(cutter, vcpu, span->time - span->ns);
	if (in_exit && !vcpu->exit_open)
		memset(vcpu->parts, 0, sizeof(vcpu->parts));
	vcpu->exit_open = in_exit;
	vcpu->reason = span->reason;
	vcpu->vendor = span->vendor;
	vcpu->parts[part] += span->ns;
}

/* After its slices, which have the thieves. */
static void cutter_take_state(struct cutter *cutter, const struct vp_vcpu_span *span)
{
	static const struct {
		enum vp_cut cut;
		unsigned part;
	} kinds[VP_STATES] = {
	    [VP_STATE_GUEST] = {VP_CUT_GUEST, PART_HOST},
	    [VP_STATE_KERNEL] = {VP_CUT_HOST, PART_HOST},
	    [VP_STATE_POLL] = {VP_CUT_HOST, PART_HOST},
	    [VP_STATE_VMM] = {VP_CUT_HOST, PART_HOST},
	    [VP_STATE_HALTED] = {VP_CUT_HALTED, PART_ASLEEP},
	    [VP_STATE_WAITING] = {VP_CUT_BLOCKED, PART_ASLEEP},
	    [VP_STATE_WAKING] = {VP_CUT_WAKING, PART_WAKING},
	    [VP_STATE_PREEMPTED] = {VP_CUT_STOLEN, PART_STOLEN},
	    [VP_STATE_THROTTLED] = {VP_CUT_THROTTLED, PART_STOLEN},
	    [VP_STATE_IRQ] = {VP_CUT_IRQ, PART_STOLEN},
	};
	struct cut_vcpu *vcpu = cutter_vcpu(cutter, span->vm, span->vcpu, span->tid);

	if (span->state >= VP_STATES || span->ns > span->time)
		return;
	uint64_t begin = span->time - span->ns;
	enum vp_cut cut = kinds[span->state].cut;
	cutter_add_time(cutter, vcpu, cut, begin, span->time, vp_account_cuts_add);
	if (cut == VP_CUT_GUEST || cut == VP_CUT_HOST || cut == VP_CUT_IRQ)
		cutter_add_time(cutter, vcpu, VP_CUT_RUNNING, begin, span->time,
				vp_account_cuts_add);
	cutter_take_exit_of_state(cutter, vcpu, span, kinds[span->state].part);
}

/* The innermost interrupt had the pCPU until now. */
static void cutter_charge_interrupt(struct cutter *cutter, struct cut_pcpu *pcpu, uint32_t tid,
				    uint64_t now, bool ends)
{
	struct cut_vcpu *vcpu = cutter_vcpu_of_tid(cutter, tid);
	uint64_t begin = pcpu->since;

	pcpu->since = now;
	if (!pcpu->depth || !vcpu || now < begin)
		return;
	const struct cut_interrupt *interrupt = &pcpu->open[pcpu->depth - 1];
	const struct vp_cut_interval *interval = cutter_interval(cutter, vcpu, now);
	vp_vec_push(&vcpu->irqs, ((struct cut_range){begin, now}));
	cutter_add_time(cutter, vcpu, VP_CUT_IRQ, begin, now, vp_account_cuts_add);
	vcpu->parts[PART_STOLEN] += now - begin;
	vcpu->parts[PART_HOST] -= now - begin;
	if (!interval)
		return;
	struct vp_cut_key key = cutter_key(vcpu, VP_CUT_THIEF);
	key.interval = interval->end;
	key.state = VP_STATE_IRQ;
	key.type = interrupt->kind;
	key.number = interrupt->number;
	vp_account_cuts_add(cutter->cuts, &key, begin > interval->begin ? begin : interval->begin,
			    now);
	key.cut = VP_CUT_TURNS;
	if (ends)
		vp_account_cuts_count(cutter->cuts, &key, now, 1);
}

static struct cut_pcpu *cutter_pcpu(struct cutter *cutter, uint32_t number)
{
	if (number >= PCPUS_MAX)
		return NULL;
	while (cutter->pcpus.count <= number)
		vp_vec_push(&cutter->pcpus, (struct cut_pcpu){0});
	return &cutter->pcpus.at[number];
}

static void cutter_begin_interrupt(struct cutter *cutter, const struct vp_feed_event *event,
				   uint32_t tid, uint32_t kind, uint32_t number)
{
	struct cut_pcpu *pcpu = cutter_pcpu(cutter, event->pcpu);

	if (!pcpu)
		return;
	cutter_charge_interrupt(cutter, pcpu, tid, event->time, false);
	if (pcpu->depth < NESTED)
		pcpu->open[pcpu->depth++] = (struct cut_interrupt){kind, number};
}

static void cutter_end_interrupt(struct cutter *cutter, const struct vp_feed_event *event,
				 uint32_t tid)
{
	struct cut_pcpu *pcpu = cutter_pcpu(cutter, event->pcpu);

	if (!pcpu || !pcpu->depth)
		return;
	cutter_charge_interrupt(cutter, pcpu, tid, event->time, true);
	pcpu->depth--;
}

/* After its slices. */
static void cutter_take_event(void *context, const struct vp_feed_event *event)
{
	const struct vp_trace_irq_handler_entry *irq = (const void *)event->header;
	const struct vp_trace_softirq_entry *soft = (const void *)event->header;
	const struct vp_trace_local_timer_entry *timer = (const void *)event->header;
	struct cutter *cutter = context;

	if (cutter->by_states) {
		if (event->kind == VP_FEED_SPAN)
			cutter_take_state(cutter, event->span);
		return;
	}
	switch (event->kind) {
	case VP_TRACE_KIND_kvm_entry:
		cutter_take_entry(cutter, event->kvm_entry);
		break;
	case VP_TRACE_KIND_kvm_exit:
		cutter_take_exit(cutter, event->kvm_exit);
		break;
	case VP_TRACE_KIND_irq_handler_entry:
		cutter_begin_interrupt(cutter, event, irq->tid, VP_BY_DEVICE, irq->irq);
		break;
	case VP_TRACE_KIND_softirq_entry:
		cutter_begin_interrupt(cutter, event, soft->tid, VP_BY_SOFTIRQ, soft->vec);
		break;
	case VP_TRACE_KIND_local_timer_entry:
		cutter_begin_interrupt(cutter, event, timer->tid, VP_BY_VECTOR, VP_IRQ_LOCAL_TIMER);
		break;
	case VP_TRACE_KIND_irq_handler_exit:
	case VP_TRACE_KIND_softirq_exit:
	case VP_TRACE_KIND_local_timer_exit:
		cutter_end_interrupt(cutter, event, irq->tid);
		break;
	default:
		break;
	}
}

static struct vp_error *read_intervals(const char *directory, struct vp_account_cuts *cuts)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", directory);
	const struct vp_record_header *record;
	vp_stream_readers streams = {0};

	VP_TRY(vp_trace_open(host, VP_STREAMS(VP_STREAM_ACCOUNT), &streams));
	vp_vec_each (&streams, stream)
		while ((record = vp_stream_next(*stream))) {
			const struct vp_vcpu_account *times = (const void *)record;
			if (record->id == VP_ID_vcpu_account && times->end > times->begin)
				vp_account_cuts_add_interval(cuts, times->vm, times->vcpu,
							     times->begin, times->end);
		}
	vp_trace_close(&streams);
	return NULL;
}

static void cutter_add_vcpus(struct cutter *cutter, const vp_vms *vms)
{
	vp_vec_each (vms, vm)
		vp_vec_each (&vm->vcpus, vcpu)
			if (vcpu->tid)
				cutter_vcpu(cutter, vp_vm_id(vm), vcpu->number, vcpu->tid);
}

static void cutter_free(struct cutter *cutter)
{
	vp_vec_each (&cutter->vcpus, vcpu) {
		vp_vec_deinit(&vcpu->wait);
		vp_vec_deinit(&vcpu->irqs);
	}
	vp_vec_deinit(&cutter->vcpus);
	vp_vec_deinit(&cutter->pcpus);
	vp_map_deinit(&cutter->vcpu_of_key);
	vp_map_deinit(&cutter->vcpu_of_tid);
}

struct vp_error *vp_event_cuts_read(const char *directory, const vp_vms *vms,
				    struct vp_account_cuts *ret)
{
	struct cutter cutter = {.cuts = ret};
	const struct vp_tracks_options options = {.to = UINT64_MAX,
						  .take = cutter_take_slice,
						  .event = cutter_take_event,
						  .context = &cutter};
	struct vp_tracks *tracks;

	VP_TRY(read_intervals(directory, ret));
	VP_TRY(vp_tracks_open(directory, &options, &tracks));
	cutter_add_vcpus(&cutter, vms);
	cutter.by_states = vp_tracks_feed(tracks)->by_states;
	while (vp_tracks_read(tracks, EVENTS_AT_ONCE))
		;
	vp_tracks_close(tracks);
	cutter_free(&cutter);
	return NULL;
}
