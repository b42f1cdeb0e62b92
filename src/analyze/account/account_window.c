/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account_window.h"

#include <string.h>

#include "base/macros.h"
#include "schema/account_terms.h"

void vp_account_window_deinit(struct vp_account_window *window)
{
	vp_map_deinit(&window->index_of_vcpu);
	vp_vec_deinit(&window->segments);
}

bool vp_account_window_has_events(const struct vp_account_window *window)
{
	return window->cuts && window->cuts->has_events;
}

static void raise_error(uint64_t *most, uint64_t error)
{
	*most = error > *most ? error : *most;
}

/* Maximum error of `part`, if `amount` in `length` ns overlaps the window by `overlap` ns: at least
 * the amount that does not fit into the rest, at most what fits. */
static uint64_t error_of(uint64_t amount, uint64_t part, uint64_t overlap, uint64_t length)
{
	uint64_t rest = length - overlap;
	uint64_t least = amount > rest ? amount - rest : 0;
	uint64_t most = amount < overlap ? amount : overlap;
	uint64_t below = part > least ? part - least : 0, above = most > part ? most - part : 0;

	return below > above ? below : above;
}

/* Interval and vCPU of a record. */
struct cut_record {
	struct vp_account_window *window;
	const struct vp_account_segment *segment;
	uint32_t vm, vcpu;
};

/* Cumulative part of `amount`, of which `at` of `all` is on that side of a border. */
static uint64_t share_of(uint64_t amount, uint64_t at, uint64_t all)
{
	return (uint64_t)((unsigned __int128)amount * at / all);
}

/* Divides in proportion to the events. If events and amount differ, the difference may be anywhere.
 */
static uint64_t divide_by(const struct vp_cut_amount *events, uint64_t amount, uint64_t *error)
{
	uint64_t more = amount > events->all ? amount - events->all : 0;
	uint64_t ret = share_of(amount, events->until, events->all) -
		       share_of(amount, events->before, events->all);

	*error =
	    error_of(amount, ret, events->until - events->before + more, events->all + 2 * more);
	return ret;
}

static const struct vp_cut_amount *events_of(const struct cut_record *record, struct vp_cut_key key)
{
	key.interval = record->segment->end;
	key.vm = record->vm;
	key.vcpu = record->vcpu;
	return record->window->cuts ? vp_account_cuts_find(record->window->cuts, &key) : NULL;
}

/* False: there are no events of that key. */
static bool part_by_events(const struct cut_record *record, struct vp_cut_key key, uint64_t amount,
			   uint64_t *ret, uint64_t *error)
{
	const struct vp_cut_amount *events = events_of(record, key);

	if (!events)
		return false;
	*ret = divide_by(events, amount, error);
	return true;
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

static bool window_has_time(const struct vp_window *window, uint64_t time)
{
	return time > window->from && time <= window->to;
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

/* Fields of the record, in the order of enum vp_state. */
static void states_of(const struct vp_vcpu_account *record, uint64_t ret[VP_STATES])
{
	const uint64_t states[VP_STATES] = {
	    record->guest,   record->kernel, record->poll,      record->vmm,       record->halted,
	    record->waiting, record->waking, record->preempted, record->throttled, record->irq};

	memcpy(ret, states, sizeof(states));
}

static void set_states(struct vp_vcpu_account *record, const uint64_t states[VP_STATES])
{
	record->guest = states[VP_STATE_GUEST];
	record->kernel = states[VP_STATE_KERNEL];
	record->poll = states[VP_STATE_POLL];
	record->vmm = states[VP_STATE_VMM];
	record->halted = states[VP_STATE_HALTED];
	record->waiting = states[VP_STATE_WAITING];
	record->waking = states[VP_STATE_WAKING];
	record->preempted = states[VP_STATE_PREEMPTED];
	record->throttled = states[VP_STATE_THROTTLED];
	record->irq = states[VP_STATE_IRQ];
}

/* Parts of all states must sum to the part of the total: the largest state absorbs the rounding.
 * Within less than 100 ns it may become negative; then other states are rounded down. */
static void cut_states_by_time(struct vp_account_window *window,
			       const struct vp_account_segment *segment,
			       struct vp_vcpu_account *ret)
{
	uint64_t length = segment->end - segment->begin, all = 0, states[VP_STATES];
	uint64_t overlap = vp_window_overlap(&window->window, segment->begin, segment->end);
	size_t largest = 0;

	states_of(ret, states);
	for (size_t i = 0; i < VP_STATES; i++) {
		all += states[i];
		largest = states[i] > states[largest] ? i : largest;
	}
	uint64_t rest = part_of_segment(window, segment, all), most = states[largest];
	for (size_t i = 0; i < VP_STATES; i++) {
		if (i == largest)
			continue;
		uint64_t part = part_of_segment(window, segment, states[i]);
		raise_error(&window->state_error, error_of(states[i], part, overlap, length));
		states[i] = part < rest ? part : rest;
		rest -= states[i];
	}
	states[largest] = rest;
	raise_error(&window->state_error, error_of(most, rest, overlap, length));
	set_states(ret, states);
}

/* Events that show where a state's time is: of one kind, or less precise. */
static const enum vp_cut cuts_of_state[VP_STATES][2] = {
    [VP_STATE_GUEST] = {VP_CUT_GUEST, VP_CUT_RUNNING},
    [VP_STATE_KERNEL] = {VP_CUT_HOST, VP_CUT_RUNNING},
    [VP_STATE_POLL] = {VP_CUT_HOST, VP_CUT_RUNNING},
    [VP_STATE_VMM] = {VP_CUT_HOST, VP_CUT_RUNNING},
    [VP_STATE_HALTED] = {VP_CUT_HALTED, VP_CUT_BLOCKED},
    [VP_STATE_WAITING] = {VP_CUT_BLOCKED, VP_CUT_HALTED},
    [VP_STATE_WAKING] = {VP_CUT_WAKING, VP_CUT_WAKING},
    [VP_STATE_PREEMPTED] = {VP_CUT_STOLEN, VP_CUT_STOLEN},
    [VP_STATE_THROTTLED] = {VP_CUT_THROTTLED, VP_CUT_STOLEN},
    [VP_STATE_IRQ] = {VP_CUT_IRQ, VP_CUT_RUNNING},
};

/* The vCPU's time in the interval whose state no event shows: before its first one, for example. */
static struct vp_cut_amount gap_of(const struct cut_record *record)
{
	const enum vp_cut shown[] = {VP_CUT_RUNNING, VP_CUT_STOLEN, VP_CUT_THROTTLED,
				     VP_CUT_WAKING,  VP_CUT_HALTED, VP_CUT_BLOCKED};
	const struct vp_account_segment *segment = record->segment;
	const struct vp_window *window = &record->window->window;
	uint64_t length = segment->end - segment->begin;
	uint64_t before = window->from > segment->begin ? window->from - segment->begin : 0;
	uint64_t until = window->to > segment->begin ? window->to - segment->begin : 0;
	struct vp_cut_amount ret = {before < length ? before : length,
				    until < length ? until : length, length};

	for (size_t i = 0; i < VP_ARRAY_SIZE(shown); i++) {
		const struct vp_cut_amount *events =
		    events_of(record, (struct vp_cut_key){.cut = shown[i]});
		if (!events)
			continue;
		ret.before -= events->before;
		ret.until -= events->until;
		ret.all -= events->all;
	}
	return ret;
}

static bool vcpu_has_events(const struct cut_record *record)
{
	return gap_of(record).all < record->segment->end - record->segment->begin;
}

/* Time that the events do not show is in their gap. */
static uint64_t part_of_time(const struct cut_record *record, const struct vp_cut_amount *events,
			     uint64_t amount, uint64_t *error)
{
	const struct vp_cut_amount none = {0}, shown = events ? *events : none;
	const struct vp_cut_amount gap = gap_of(record);

	if (amount <= shown.all || !gap.all)
		return divide_by(&shown, amount, error);
	return shown.until - shown.before + divide_by(&gap, amount - shown.all, error);
}

static uint64_t part_of_state(const struct cut_record *record, enum vp_state state, uint64_t amount,
			      uint64_t *error)
{
	const struct vp_account_segment *segment = record->segment;
	const enum vp_cut *cuts = cuts_of_state[state];
	uint64_t part;

	*error = 0;
	if (!amount)
		return 0;
	for (size_t i = 0; i < 2; i++) {
		const struct vp_cut_amount *events =
		    events_of(record, (struct vp_cut_key){.cut = cuts[i]});
		if (events)
			return part_of_time(record, events, amount, error);
	}
	if (vcpu_has_events(record) && gap_of(record).all)
		return part_of_time(record, NULL, amount, error);
	part = part_of_segment(record->window, segment, amount);
	*error = error_of(amount, part,
			  vp_window_overlap(&record->window->window, segment->begin, segment->end),
			  segment->end - segment->begin);
	return part;
}

/* Wall time is that of the states, so that adjacent windows sum to the whole. */
static void cut_states_by_events(const struct cut_record *record, struct vp_vcpu_account *ret)
{
	uint64_t states[VP_STATES], error, sum = 0;

	states_of(ret, states);
	for (size_t i = 0; i < VP_STATES; i++) {
		states[i] = part_of_state(record, (enum vp_state)i, states[i], &error);
		raise_error(&record->window->state_error, error);
		sum += states[i];
	}
	set_states(ret, states);
	if (ret->begin < record->window->window.from)
		ret->begin = record->window->window.from;
	ret->end = ret->begin + sum;
}

/* *estimated: there are no events of that key. */
static uint64_t part_of_amount(const struct cut_record *record, const struct vp_cut_key *key,
			       uint64_t amount, bool *estimated)
{
	uint64_t part, error;

	*estimated = !part_by_events(record, *key, amount, &part, &error);
	return *estimated ? part_of_segment(record->window, record->segment, amount) : part;
}

/* For sums of something else than a number of events. */
static uint64_t part_of_sum(const struct cut_record *record, const struct vp_cut_key *key,
			    uint64_t sum)
{
	bool estimated;

	return part_of_amount(record, key, sum, &estimated);
}

static uint64_t part_of_count(const struct cut_record *record, const struct vp_cut_key *key,
			      uint64_t count)
{
	bool estimated;
	uint64_t part = part_of_amount(record, key, count, &estimated);

	if (estimated)
		raise_error(&record->window->count_error,
			    part > count - part ? part : count - part);
	return part;
}

static void cut_times(const struct cut_record *record, struct vp_vcpu_account *ret)
{
	const struct vp_cut_key exits = {.cut = VP_CUT_EXITS}, wakeups = {.cut = VP_CUT_WAKEUPS},
				preemptions = {.cut = VP_CUT_PREEMPTIONS};
	const struct vp_window *window = &record->window->window;

	ret->exits = part_of_count(record, &exits, ret->exits);
	ret->wakeups = part_of_count(record, &wakeups, ret->wakeups);
	ret->preemptions = part_of_count(record, &preemptions, ret->preemptions);
	ret->polls = part_of_count(record, &exits, ret->polls);
	ret->poll_wasted = part_of_sum(record, &exits, ret->poll_wasted);
	if (vcpu_has_events(record)) {
		cut_states_by_events(record, ret);
		return;
	}
	cut_states_by_time(record->window, record->segment, ret);
	if (ret->begin < window->from)
		ret->begin = window->from;
	if (ret->end > window->to)
		ret->end = window->to;
}

/* An exit's time is recorded at its end. Without events, its location is unknown. */
static uint64_t cut_exit_part(const struct cut_record *record, struct vp_cut_key key,
			      enum vp_cut cut, uint64_t amount)
{
	uint64_t part, error;

	key.cut = cut;
	if (!part_by_events(record, key, amount, &part, &error)) {
		key.cut = VP_CUT_REASON;
		part = part_of_sum(record, &key, amount);
		error = part > amount - part ? part : amount - part;
	}
	raise_error(&record->window->exit_error, error);
	return part;
}

static void cut_exits(const struct cut_record *record, struct vp_exit_account *ret)
{
	const struct vp_cut_key key = {
	    .cut = VP_CUT_REASON, .number = ret->reason, .type = ret->vendor};

	ret->count = part_of_count(record, &key, ret->count);
	ret->kernel = cut_exit_part(record, key, VP_CUT_REASON_HOST, ret->kernel);
	ret->poll = cut_exit_part(record, key, VP_CUT_REASON_HOST, ret->poll);
	ret->vmm = cut_exit_part(record, key, VP_CUT_REASON_HOST, ret->vmm);
	ret->stolen = cut_exit_part(record, key, VP_CUT_REASON_STOLEN, ret->stolen);
	ret->blocked = cut_exit_part(record, key, VP_CUT_REASON_ASLEEP, ret->blocked);
	ret->waking = cut_exit_part(record, key, VP_CUT_REASON_WAKING, ret->waking);
	ret->total = ret->kernel + ret->poll + ret->vmm + ret->stolen + ret->blocked + ret->waking;
}

static void cut_bucket(const struct cut_record *record, struct vp_exit_bucket *ret)
{
	struct vp_cut_key key = {.cut = VP_CUT_REASON_BUCKET,
				 .number = ret->reason,
				 .type = ret->vendor,
				 .state = ret->bucket};
	uint64_t part, error;

	if (!part_by_events(record, key, ret->count, &part, &error)) {
		key.cut = VP_CUT_REASON;
		key.state = 0;
		part = part_of_count(record, &key, ret->count);
	}
	ret->count = (uint32_t)part;
}

static void cut_sampling(const struct cut_record *record, struct vp_exit_sampling *ret)
{
	const struct vp_cut_key key = {
	    .cut = VP_CUT_REASON, .number = ret->reason, .type = ret->vendor};

	ret->timed = part_of_count(record, &key, ret->timed);
	ret->sum = part_of_sum(record, &key, ret->sum);
	ret->squares = part_of_sum(record, &key, ret->squares);
	ret->weights = part_of_sum(record, &key, ret->weights);
}

/* Key of a thief's events. */
static struct vp_cut_key cut_key_of_thief(const struct vp_thief *thief)
{
	return (struct vp_cut_key){.cut = VP_CUT_THIEF,
				   .state = thief->state,
				   .type = thief->kind,
				   .number = thief->number,
				   .owner = thief->kind == VP_BY_VCPU ? thief->thief_pid : 0};
}

static void cut_thief(const struct cut_record *record, struct vp_thief *ret)
{
	struct vp_cut_key key = cut_key_of_thief(ret);
	uint64_t part, error;

	if (!part_by_events(record, key, ret->ns, &part, &error))
		part = part_of_state(record, ret->state, ret->ns, &error);
	ret->ns = part;
	raise_error(&record->window->theft_error, error);
	key.cut = VP_CUT_TURNS;
	ret->count = part_of_count(record, &key, ret->count);
}

/* A thief of a wait that ends in the record's interval, and began before it: events show which part
 * is in the window. */
static bool thief_has_events(const struct cut_record *record, const struct vp_record_header *header)
{
	const struct vp_cut_key key = cut_key_of_thief((const struct vp_thief *)header);
	uint64_t part, error;

	return header->id == VP_ID_thief && part_by_events(record, key, 0, &part, &error);
}

/* Copies the record and divides it. */
static const struct vp_record_header *divide(const struct cut_record *cut,
					     const struct vp_record_header *record, size_t size,
					     union vp_account_record *ret)
{
	const struct vp_window *window = &cut->window->window;

	if (!thief_has_events(cut, record)) {
		if (window_has_none(window, cut->segment))
			return NULL;
		if (window_has_all(window, cut->segment))
			return record;
	}
	memcpy(ret, record, size);
	if (record->id == VP_ID_vcpu_account)
		cut_times(cut, &ret->times);
	else if (record->id == VP_ID_exit_account)
		cut_exits(cut, &ret->exits);
	else if (record->id == VP_ID_exit_bucket)
		cut_bucket(cut, &ret->bucket);
	else if (record->id == VP_ID_exit_sampling)
		cut_sampling(cut, &ret->sampling);
	else
		cut_thief(cut, &ret->thief);
	if (record->id == VP_ID_thief && !ret->thief.ns && !ret->thief.count)
		return NULL;
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
	const struct cut_record cut = {window, segment, record->vm, record->vcpu};
	return divide(&cut, (const void *)record, sizeof(*record), ret);
}

/* With the interval of the vCPU's record of the same time. */
static const struct vp_record_header *divide_at(struct vp_account_window *window, uint32_t vm,
						uint32_t vcpu,
						const struct vp_record_header *record, size_t size,
						union vp_account_record *ret)
{
	const struct vp_account_segment segment = segment_at(window, vm, vcpu, record->time);
	const struct cut_record cut = {window, &segment, vm, vcpu};

	return divide(&cut, record, size, ret);
}

const struct vp_record_header *vp_account_window_cut(struct vp_account_window *window,
						     const struct vp_record_header *record,
						     union vp_account_record *ret)
{
	const struct vp_exit_account *exits = (const void *)record;
	const struct vp_exit_bucket *bucket = (const void *)record;
	const struct vp_exit_sampling *sampling = (const void *)record;
	const struct vp_thief *thief = (const void *)record;

	if (vp_window_is_all(&window->window))
		return record;
	switch (record->id) {
	case VP_ID_vcpu_account:
	case VP_ID_exit_account:
	case VP_ID_exit_bucket:
	case VP_ID_exit_sampling:
	case VP_ID_thief:
		break;
	case VP_ID_wake_bucket:
	case VP_ID_vm_samples:
	case VP_ID_guest_sample:
	case VP_ID_vcpu_sample:
	case VP_ID_host_sample:
		return window_has_time(&window->window, record->time) ? record : NULL;
	default:
		return record;
	}
	if (record->time != window->now) {
		window->before = window->now;
		window->now = record->time;
	}
	if (window->by_steps)
		return window_has_time(&window->window, record->time) ? record : NULL;
	switch (record->id) {
	case VP_ID_vcpu_account:
		return take_segment(window, (const void *)record, ret);
	case VP_ID_exit_account:
		return divide_at(window, exits->vm, exits->vcpu, record, sizeof(*exits), ret);
	case VP_ID_exit_bucket:
		return divide_at(window, bucket->vm, bucket->vcpu, record, sizeof(*bucket), ret);
	case VP_ID_exit_sampling:
		return divide_at(window, sampling->vm, sampling->vcpu, record, sizeof(*sampling),
				 ret);
	default:
		return divide_at(window, thief->vm, thief->vcpu, record, sizeof(*thief), ret);
	}
}
