/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/states.h"

#include <string.h>

#include "base/alloc.h"
#include "schema/account_terms.h"
#include "xen/library.h"

enum { MAX_PCPUS = 4096 };

void vp_xen_states_init(struct vp_xen_states *states, enum vp_vendor vendor, bool with_spans)
{
	*states = (struct vp_xen_states){.vendor = vendor, .with_spans = with_spans};
	states->vcpus = vp_alloc(VP_XEN_SLOTS * sizeof(*states->vcpus));
}

void vp_xen_states_deinit(struct vp_xen_states *states)
{
	for (size_t i = 0; i < VP_XEN_SLOTS; i++) {
		free(states->exits[i]);
		free(states->sites[i]);
	}
	free(states->vcpus);
	vp_map_deinit(&states->slots);
	vp_vec_deinit(&states->free_slots);
	vp_vec_deinit(&states->pcpus);
	vp_map_deinit(&states->thief_numbers);
	vp_vec_deinit(&states->thieves);
	vp_map_deinit(&states->old_numbers);
	vp_vec_deinit(&states->old_sites);
	vp_vec_deinit(&states->spans);
}

static uint64_t states_key_of(uint32_t domain, uint32_t vcpu)
{
	return (uint64_t)domain << 32 | vcpu;
}

/* Allocates a slot for a new vCPU; false: all are in use. */
static bool states_take_slot(struct vp_xen_states *states, uint32_t *ret)
{
	if (states->free_slots.count) {
		*ret = states->free_slots.at[--states->free_slots.count];
		return true;
	}
	*ret = states->n_slots;
	return states->n_slots < VP_XEN_SLOTS && ++states->n_slots;
}

static struct vp_account_vcpu *states_add(struct vp_xen_states *states, uint32_t domain,
					  uint32_t vcpu, uint64_t now, uint32_t *slot)
{
	bool inserted;

	if (!states_take_slot(states, slot)) {
		states->lost.vcpus++;
		return NULL;
	}
	*vp_map_insert(&states->slots, states_key_of(domain, vcpu), *slot, &inserted) = *slot;
	struct vp_account_vcpu *entry = &states->vcpus[*slot];
	*entry = (struct vp_account_vcpu){.begin = now,
					  .since = now,
					  .tid = vp_xen_tid(domain, vcpu),
					  .pid = vp_xen_vm_number(domain),
					  .number = vcpu,
					  .flags = VP_NUMBER_KNOWN,
					  .state = VP_STATE_UNKNOWN,
					  .base = VP_STATE_GUEST,
					  .asleep = VP_STATE_HALTED};
	if (!states->exits[*slot])
		states->exits[*slot] = vp_alloc(VP_EXIT_REASONS * sizeof(**states->exits));
	if (!states->sites[*slot])
		states->sites[*slot] = vp_alloc(VP_EXIT_SITES * sizeof(**states->sites));
	return entry;
}

/* The slot may have been reused. */
static bool has_ended(const struct vp_xen_states *states, uint32_t slot, uint32_t domain,
		      uint32_t vcpu)
{
	return states->vcpus[slot].state == VP_STATE_GONE ||
	       states->vcpus[slot].tid != vp_xen_tid(domain, vcpu);
}

/* Finds or adds the vCPU. Events of an ended vCPU are ignored: Xen 4.20 emits one of a destroyed
 * domain up to a second after removing it from its list. NULL also without a free slot. */
static struct vp_account_vcpu *states_find(struct vp_xen_states *states, uint32_t domain,
					   uint32_t vcpu, uint64_t now, bool offline,
					   uint32_t *slot)
{
	const uint32_t *found = vp_map_find(&states->slots, states_key_of(domain, vcpu));
	const bool ended = found && has_ended(states, *found, domain, vcpu);

	if (ended && offline)
		return NULL;
	if (!found || ended)
		return states_add(states, domain, vcpu, now, slot);
	*slot = *found;
	return &states->vcpus[*slot];
}

static struct vp_xen_pcpu *states_pcpu_of(struct vp_xen_states *states, uint32_t number)
{
	while (states->pcpus.count <= number && number < MAX_PCPUS)
		memset(vp_vec_push_slot(&states->pcpus), 0, sizeof(*states->pcpus.at));
	return number < MAX_PCPUS ? &states->pcpus.at[number] : NULL;
}

static bool states_runs(uint32_t state)
{
	return state == VP_STATE_GUEST || state == VP_STATE_KERNEL;
}

static bool states_waits(uint32_t state)
{
	return state == VP_STATE_PREEMPTED || state == VP_STATE_WAKING;
}

/* Whether the pCPU was idle before the vCPU. */
static bool was_idle(const struct vp_xen_states *states, uint32_t number)
{
	const struct vp_xen_pcpu *pcpu =
	    number < states->pcpus.count ? &states->pcpus.at[number] : NULL;

	return pcpu && pcpu->head && !pcpu->slices[(pcpu->head - 1) % VP_XEN_SLICES].slot;
}

/* Emits `ns` in `state`, before `next`. */
static void emit_span(struct vp_xen_states *states, const struct vp_account_vcpu *vcpu,
		      uint32_t state, uint32_t next, uint64_t ns, uint64_t now)
{
	bool has_reason = vcpu->flags & VP_REASON_KNOWN;
	bool got_pcpu = states_waits(state) && states_runs(next);

	vp_vec_push(&states->spans,
		    ((struct vp_vcpu_span){
			.time = now,
			.id = VP_ID_vcpu_span,
			.flags = (has_reason ? VP_HAS_EXIT_REASON : 0) |
				 (got_pcpu ? VP_STATE_GOT_PCPU : 0) |
				 (got_pcpu && was_idle(states, vcpu->cpu) ? VP_STATE_WAS_IDLE : 0),
			.vm = vcpu->pid,
			.tid = vcpu->tid,
			.vcpu = (uint16_t)vcpu->number,
			.state = (uint8_t)state,
			.vendor = (uint8_t)states->vendor,
			.reason = has_reason ? vcpu->reason : 0,
			.cpu = vcpu->cpu,
			.ns = ns}));
}

/* Charges the present state up to now, at least 0 ns, and changes it. */
static void states_enter(struct vp_xen_states *states, struct vp_account_vcpu *vcpu, uint32_t state,
			 uint64_t now)
{
	uint32_t before = vcpu->state == VP_STATE_UNKNOWN ? vcpu->asleep : vcpu->state;
	uint64_t ns = now > vcpu->since ? now - vcpu->since : 0;

	vcpu->states[before] += ns;
	if (vcpu->flags & VP_EXIT_OPEN && before != VP_STATE_KERNEL) {
		vcpu->parts[before] += ns;
		vcpu->flags |= VP_EXIT_SPLIT;
	}
	if (states->with_spans && ns)
		emit_span(states, vcpu, before, state, ns, now);
	vcpu->since += ns;
	vcpu->state = state;
}

static void states_charge(struct vp_xen_states *states, struct vp_thief_key key, uint64_t ns)
{
	uint64_t number;
	bool inserted;

	memcpy(&number, &key, sizeof(number));
	uint32_t index = *vp_map_insert(&states->thief_numbers, number,
					(uint32_t)states->thieves.count, &inserted);
	if (inserted)
		vp_vec_push(&states->thieves, ((struct vp_xen_thief){.key = key}));
	states->thieves.at[index].cost.ns += ns;
	states->thieves.at[index].cost.count++;
}

/* Charges a wait from `begin` to `end` on this pCPU to the threads that had it, newest slice
 * first. */
static void charge_thieves(struct vp_xen_states *states, struct vp_thief_key key, uint64_t begin,
			   uint64_t end, const struct vp_xen_pcpu *pcpu)
{
	uint64_t oldest = pcpu->head > VP_XEN_SLICES ? pcpu->head - VP_XEN_SLICES + 1 : 0;

	for (uint64_t i = pcpu->head; i-- > oldest && end > begin;) {
		const struct vp_xen_slice *slice = &pcpu->slices[i % VP_XEN_SLICES];
		if (slice->begin >= end)
			continue;
		uint64_t from = slice->begin > begin ? slice->begin : begin;
		key.kind = slice->slot ? VP_BY_VCPU : VP_BY_NOBODY;
		key.id = slice->slot ? slice->slot - 1 : 0;
		states_charge(states, key, end - from);
		end = from;
	}
	key.kind = VP_BY_UNKNOWN;
	key.id = 0;
	if (end > begin)
		states_charge(states, key, end - begin);
}

/* Time up to which the pCPU's owner is known. Every switch is recorded, so the first one to
 * leave had the pCPU from the start. */
static uint64_t known_until(const struct vp_xen_states *states, const struct vp_xen_pcpu *pcpu)
{
	return pcpu->head ? pcpu->slices[(pcpu->head - 1) % VP_XEN_SLICES].end : states->begin;
}

/* The previous owner has lost the pCPU. */
static void leave_pcpu(const struct vp_xen_states *states, struct vp_xen_pcpu *pcpu, uint32_t slot,
		       uint64_t now)
{
	uint64_t since = known_until(states, pcpu);

	pcpu->slices[pcpu->head++ % VP_XEN_SLICES] = (struct vp_xen_slice){since, now, slot};
	pcpu->known = false;
	pcpu->slot = 0;
}

static void states_have_pcpu(const struct vp_xen_states *states, struct vp_xen_pcpu *pcpu,
			     uint32_t slot, uint64_t now)
{
	if (pcpu->known)
		leave_pcpu(states, pcpu, pcpu->slot, now);
	pcpu->known = true;
	pcpu->slot = slot;
}

/* State of a vCPU that does not run. */
static uint32_t states_state_of(const struct vp_xen_states *states, uint32_t slot,
				const struct vp_xen_record *record)
{
	switch (record->after) {
	case VP_XEN_RUNNABLE:
		return record->before == VP_XEN_RUNNING ? VP_STATE_PREEMPTED : VP_STATE_WAKING;
	case VP_XEN_BLOCKED:
		return VP_STATE_HALTED;
	default:
		return states->capped[slot] ? VP_STATE_THROTTLED : VP_STATE_WAITING;
	}
}

/* Adopts the record's state after lost records or an unknown state. */
static void states_adopt(const struct vp_xen_states *states, uint32_t slot,
			 struct vp_account_vcpu *vcpu, const struct vp_xen_record *record)
{
	bool ran = states_runs(vcpu->state), waited = states_waits(vcpu->state);

	if (record->before == VP_XEN_RUNNING && !ran)
		vcpu->state = VP_STATE_GUEST;
	else if (record->before == VP_XEN_RUNNABLE && !waited)
		vcpu->state = VP_STATE_WAKING;
	else if (record->before == VP_XEN_BLOCKED && vcpu->state != VP_STATE_HALTED)
		vcpu->state = VP_STATE_HALTED;
	else if (record->before == VP_XEN_OFFLINE && vcpu->state != VP_STATE_WAITING &&
		 vcpu->state != VP_STATE_THROTTLED)
		vcpu->state = states->capped[slot] ? VP_STATE_THROTTLED : VP_STATE_WAITING;
}

static void states_run(struct vp_xen_states *states, uint32_t slot, struct vp_account_vcpu *vcpu,
		       struct vp_xen_pcpu *pcpu, uint64_t now)
{
	bool waited = states_waits(vcpu->state);
	struct vp_thief_key key = {.vcpu = (uint16_t)slot, .state = (uint8_t)vcpu->state};

	vp_account_count_wake(vcpu, now);
	if (waited && now > vcpu->since)
		charge_thieves(states, key, vcpu->since, now, pcpu);
	vcpu->cpu = (uint32_t)(pcpu - states->pcpus.at);
	states_enter(states, vcpu, vcpu->flags & VP_EXIT_OPEN ? VP_STATE_KERNEL : VP_STATE_GUEST,
		     now);
	states_have_pcpu(states, pcpu, slot + 1, now);
}

static void states_take_runstate(struct vp_xen_states *states, const struct vp_xen_traced *traced)
{
	const struct vp_xen_record *record = &traced->record;
	struct vp_xen_pcpu *pcpu = states_pcpu_of(states, traced->pcpu);
	uint32_t slot;

	if (!pcpu)
		return;
	if (record->domain == VP_XEN_DOMID_IDLE) {
		if (record->before == VP_XEN_RUNNING)
			leave_pcpu(states, pcpu, 0, traced->time);
		else if (record->after == VP_XEN_RUNNING)
			states_have_pcpu(states, pcpu, 0, traced->time);
		return;
	}
	struct vp_account_vcpu *vcpu =
	    states_find(states, record->domain, record->vcpu, traced->time,
			record->after == VP_XEN_OFFLINE, &slot);
	if (!vcpu)
		return;
	if (record->before == VP_XEN_RUNNING)
		leave_pcpu(states, pcpu, slot + 1, traced->time);
	states_adopt(states, slot, vcpu, record);
	if (record->after != VP_XEN_RUNNING) /* paused while it waits: another wakeup follows */
		vp_account_count_wake(vcpu, traced->time);
	vcpu->wakeups += record->before != VP_XEN_RUNNING && record->after == VP_XEN_RUNNABLE;
	vcpu->preemptions += record->before == VP_XEN_RUNNING && record->after == VP_XEN_RUNNABLE;
	if (record->before != VP_XEN_RUNNING && record->after == VP_XEN_RUNNABLE)
		vcpu->woken_at = traced->time;
	if (record->after == VP_XEN_RUNNING)
		states_run(states, slot, vcpu, pcpu, traced->time);
	else
		states_enter(states, vcpu, states_state_of(states, slot, record), traced->time);
}

/* Row of the exit's reason; the last row counts all further reasons. */
static struct vp_account_exit *states_row_of(struct vp_account_exit *rows,
					     struct vp_account_vcpu *vcpu, uint32_t reason)
{
	for (uint32_t i = 0; i < vcpu->reasons; i++)
		if (rows[i].reason == reason)
			return &rows[i];
	if (vcpu->reasons == VP_EXIT_REASONS)
		return &rows[VP_EXIT_REASONS - 1];
	rows[vcpu->reasons].reason = reason;
	return &rows[vcpu->reasons++];
}

/* Moves the site to the table of evicted sites: another one needs its counter. */
static void states_evict(struct vp_xen_states *states, const struct vp_account_site *site,
			 uint32_t vm)
{
	struct vp_site_key key = {
	    .ip = site->ip, .address = VP_NO_ADDRESS, .pid = vm, .reason = site->reason};
	uint64_t hash = site->ip ^ (uint64_t)vm << 48 ^ (uint64_t)site->reason << 24;
	bool inserted = false;
	uint32_t index;

	for (;; hash = vp_hash64(hash)) {
		index = *vp_map_insert(&states->old_numbers, hash,
				       (uint32_t)states->old_sites.count, &inserted);
		if (inserted || !memcmp(&states->old_sites.at[index].key, &key, sizeof(key)))
			break;
	}
	if (inserted)
		vp_vec_push(&states->old_sites, ((struct vp_xen_old_site){.key = key}));
	states->old_sites.at[index].cost.count += site->count;
	states->old_sites.at[index].cost.ns += site->ns;
	states->old_sites.at[index].cost.last = site->last;
	states->old_sites.at[index].cost.idle += site->idle;
	states->old_sites.at[index].cost.stolen += site->stolen;
}

/* Counts an exit at the site, with its duration. */
static struct vp_account_site *states_count_site(struct vp_xen_states *states, uint32_t slot,
						 uint64_t ip, uint32_t reason, uint64_t total,
						 uint64_t now)
{
	uint64_t mixed = (ip ^ (uint64_t)reason << 40) * 0x9e3779b97f4a7c15ULL;
	struct vp_account_site *site = &states->sites[slot][mixed >> 55];

	_Static_assert(VP_EXIT_SITES == 512, "the nine bits above");
	if (site->count && (site->ip != ip || site->reason != reason)) {
		states_evict(states, site, states->vcpus[slot].pid);
		*site = (struct vp_account_site){0};
	}
	site->ip = ip;
	site->address = VP_NO_ADDRESS;
	site->reason = reason;
	site->count++;
	site->ns += total;
	site->last = now;
	return site;
}

static void states_count_exit(struct vp_xen_states *states, uint32_t slot,
			      struct vp_account_vcpu *vcpu, uint64_t total)
{
	struct vp_account_exit *exit = states_row_of(states->exits[slot], vcpu, vcpu->reason);

	exit->count++;
	exit->total += total;
	exit->max = total > exit->max ? total : exit->max;
	exit->buckets[vp_bucket_of(total)]++;
	vcpu->exits++;
	struct vp_account_site *site =
	    states_count_site(states, slot, vcpu->ip, vcpu->reason, total, vcpu->since);
	if (!(vcpu->flags & VP_EXIT_SPLIT)) /* all of it is KERNEL */
		return;
	site->idle += vcpu->parts[VP_STATE_HALTED] + vcpu->parts[VP_STATE_WAITING];
	site->stolen += vcpu->parts[VP_STATE_PREEMPTED] + vcpu->parts[VP_STATE_THROTTLED] +
			vcpu->parts[VP_STATE_WAKING];
	exit->stolen += vcpu->parts[VP_STATE_PREEMPTED] + vcpu->parts[VP_STATE_THROTTLED];
	exit->blocked += vcpu->parts[VP_STATE_HALTED] + vcpu->parts[VP_STATE_WAITING];
	exit->waking += vcpu->parts[VP_STATE_WAKING];
	memset(vcpu->parts, 0, sizeof(vcpu->parts));
}

static void states_take_exit(struct vp_xen_states *states, uint32_t slot,
			     struct vp_account_vcpu *vcpu, const struct vp_xen_traced *traced)
{
	states_enter(states, vcpu, VP_STATE_KERNEL, traced->time);
	vcpu->exit_at = vcpu->since;
	vcpu->reason = traced->record.reason;
	vcpu->ip = traced->record.ip;
	vcpu->flags |= VP_EXIT_OPEN | VP_REASON_KNOWN | VP_RIP_KNOWN;
}

static void states_take_entry(struct vp_xen_states *states, uint32_t slot,
			      struct vp_account_vcpu *vcpu, const struct vp_xen_traced *traced)
{
	bool open = vcpu->flags & VP_EXIT_OPEN;

	states_enter(states, vcpu, VP_STATE_GUEST, traced->time);
	if (open)
		states_count_exit(states, slot, vcpu, vcpu->since - vcpu->exit_at);
	vcpu->flags &= ~(uint32_t)(VP_EXIT_OPEN | VP_REASON_KNOWN | VP_RIP_KNOWN | VP_EXIT_SPLIT);
}

/* Xen does not trace the end: the work is counted, but not timed. */
static void states_take_work(struct vp_xen_states *states, uint32_t slot,
			     struct vp_account_vcpu *vcpu, const struct vp_xen_traced *traced)
{
	states_row_of(states->exits[slot], vcpu, traced->record.reason)->count++;
	vcpu->exits++;
	if (traced->record.has_ip)
		states_count_site(states, slot, traced->record.ip, traced->record.reason, 0,
				  traced->time);
}

/* An event of the running vCPU. */
static void take_of_running(struct vp_xen_states *states, const struct vp_xen_traced *traced)
{
	const struct vp_xen_pcpu *pcpu = states_pcpu_of(states, traced->pcpu);

	if (!pcpu || !pcpu->known || !pcpu->slot)
		return;
	uint32_t slot = pcpu->slot - 1;
	struct vp_account_vcpu *vcpu = &states->vcpus[slot];
	if (traced->record.event == VP_XEN_EXIT)
		states_take_exit(states, slot, vcpu, traced);
	else if (traced->record.event == VP_XEN_WORK)
		states_take_work(states, slot, vcpu, traced);
	else
		states_take_entry(states, slot, vcpu, traced);
}

void vp_xen_states_take(struct vp_xen_states *states, const struct vp_xen_traced *traced)
{
	if (traced->time < states->begin)
		return;
	switch (traced->record.event) {
	case VP_XEN_RUNSTATE:
		states_take_runstate(states, traced);
		break;
	case VP_XEN_EXIT:
	case VP_XEN_ENTRY:
	case VP_XEN_WORK:
		take_of_running(states, traced);
		break;
	default:
		break;
	}
}

const struct vp_account_vcpu *vp_xen_states_running(const struct vp_xen_states *states,
						    uint32_t pcpu)
{
	uint32_t slot = pcpu < states->pcpus.count ? states->pcpus.at[pcpu].slot : 0;

	return slot ? &states->vcpus[slot - 1] : NULL;
}

uint32_t vp_xen_states_slot(const struct vp_xen_states *states, uint32_t domain, uint32_t number)
{
	const uint32_t *slot = vp_map_find(&states->slots, states_key_of(domain, number));

	return slot && states->vcpus[*slot].tid == vp_xen_tid(domain, number) ? *slot
									      : VP_XEN_SLOTS;
}

uint32_t vp_xen_states_running_slot(const struct vp_xen_states *states, uint32_t pcpu)
{
	const struct vp_xen_pcpu *found =
	    pcpu < states->pcpus.count ? &states->pcpus.at[pcpu] : NULL;

	return found && found->known && found->slot ? found->slot - 1 : VP_XEN_SLOTS;
}

const struct vp_account_vcpu *vp_xen_states_vcpu(const struct vp_xen_states *states,
						 uint32_t domain, uint32_t number)
{
	uint32_t slot = vp_xen_states_slot(states, domain, number);

	return slot < VP_XEN_SLOTS ? &states->vcpus[slot] : NULL;
}

void vp_xen_states_slices(const struct vp_xen_states *states, uint32_t number,
			  struct vp_condition_cpu *ret)
{
	const struct vp_xen_pcpu *pcpu =
	    number < states->pcpus.count ? &states->pcpus.at[number] : NULL;

	*ret = (struct vp_condition_cpu){0};
	for (uint64_t i = pcpu ? pcpu->head : 0; i-- > 0 && ret->head < VP_CONDITION_SLICES;) {
		const struct vp_xen_slice *slice = &pcpu->slices[i % VP_XEN_SLICES];
		const struct vp_account_vcpu *vcpu =
		    slice->slot ? &states->vcpus[slice->slot - 1] : NULL;
		ret->slices[ret->head++] = (struct vp_condition_slice){.begin = slice->begin,
								       .end = slice->end,
								       .pid = vcpu ? vcpu->pid : 0,
								       .tid = vcpu ? vcpu->tid : 0};
	}
}

bool vp_xen_states_ran(const struct vp_xen_states *states, uint32_t domain, uint32_t number,
		       uint64_t time, struct vp_xen_ran *ret)
{
	const struct vp_account_vcpu *vcpu = vp_xen_states_vcpu(states, domain, number);

	if (!vcpu)
		return false;
	uint32_t state = vcpu->state == VP_STATE_UNKNOWN ? vcpu->asleep : vcpu->state;
	ret->ns = vcpu->states[VP_STATE_GUEST] + vcpu->states[VP_STATE_KERNEL] +
		  (states_runs(state) && time > vcpu->since ? time - vcpu->since : 0);
	ret->open_exit = vcpu->flags & VP_EXIT_OPEN ? vcpu->exit_at : 0;
	return true;
}

bool vp_xen_states_is_interrupt(const struct vp_xen_states *states,
				const struct vp_xen_record *record)
{
	const uint32_t intel = 1, amd = 0x60; /* external interrupt; INTR */

	return record->event == VP_XEN_EXIT &&
	       record->reason == (states->vendor == VP_VENDOR_INTEL ? intel : amd);
}

void vp_xen_states_seed(struct vp_xen_states *states, uint32_t domain, uint32_t number,
			enum vp_xen_runstate runstate, uint32_t pcpu_number, uint64_t now)
{
	static const uint32_t meanings[] = {[VP_XEN_RUNNING] = VP_STATE_GUEST,
					    [VP_XEN_RUNNABLE] = VP_STATE_WAKING,
					    [VP_XEN_BLOCKED] = VP_STATE_HALTED,
					    [VP_XEN_OFFLINE] = VP_STATE_WAITING};
	uint32_t slot;
	struct vp_account_vcpu *vcpu = states_find(states, domain, number, now, false, &slot);

	if (vcpu && vcpu->state == VP_STATE_UNKNOWN)
		vcpu->asleep = meanings[runstate];
	struct vp_xen_pcpu *pcpu =
	    runstate == VP_XEN_RUNNING ? states_pcpu_of(states, pcpu_number) : NULL;
	if (vcpu && runstate == VP_XEN_RUNNING)
		vcpu->cpu = pcpu_number;
	if (vcpu && pcpu && !pcpu->head) {
		pcpu->known = true;
		pcpu->slot = slot + 1;
	}
}

void vp_xen_states_emit_gone(struct vp_xen_states *states, uint32_t slot, uint64_t there)
{
	if (!states->was_there[slot])
		states->was_there[slot] = there;
}

void vp_xen_states_end_gone(struct vp_xen_states *states)
{
	for (uint32_t slot = 0; slot < states->n_slots; slot++) {
		struct vp_account_vcpu *vcpu = &states->vcpus[slot];
		if (!states->was_there[slot])
			continue;
		states_enter(states, vcpu, VP_STATE_GONE, states->was_there[slot]);
		states->was_there[slot] = 0;
		vcpu->end = vcpu->since;
	}
}

void vp_xen_states_cap(struct vp_xen_states *states, uint32_t domain, bool capped)
{
	for (uint32_t slot = 0; slot < states->n_slots; slot++)
		if (states->vcpus[slot].pid == vp_xen_vm_number(domain))
			states->capped[slot] = capped;
}

void vp_xen_states_charge(struct vp_xen_states *states, uint32_t slot, uint64_t now)
{
	states_enter(states, &states->vcpus[slot], states->vcpus[slot].state, now);
}

void vp_xen_states_release(struct vp_xen_states *states, uint32_t slot)
{
	memset(&states->vcpus[slot], 0, sizeof(*states->vcpus));
	memset(states->exits[slot], 0, VP_EXIT_REASONS * sizeof(**states->exits));
	memset(states->sites[slot], 0, VP_EXIT_SITES * sizeof(**states->sites));
	states->capped[slot] = false;
	states->was_there[slot] = 0;
	for (size_t i = 0; i < states->thieves.count; i++)
		if (states->thieves.at[i].key.vcpu == slot)
			states->thieves.at[i].cost = (struct vp_thief_cost){0};
	vp_vec_push(&states->free_slots, slot);
}
