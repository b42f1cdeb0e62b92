/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account.h"

#include <math.h>
#include <string.h>

#include "analyze/common/window.h"
#include "base/alloc.h"

/* Keys of items of an account; no padding. */
struct time_key {
	uint32_t vm, vcpu;
};
struct cost_key {
	uint32_t vm, vcpu, reason, vendor;
};
struct theft_key {
	uint64_t cgroup;
	uint32_t vm, vcpu, kind, id, owner, flags;
	char comm[VP_COMM_SIZE];
};
struct site_key {
	uint64_t ip, as_root, address;
	uint32_t vm, reason, vendor, known;
	uint32_t detail_kind, detail;
};

/* Tolerance of the sum of states, percent of wall time. */
#define CLOSE_PERCENT 0.1
/* Printed errors are three standard deviations. */
#define SIGMAS 3

void vp_account_init(struct vp_account *account, vp_vms *vms)
{
	*account = (struct vp_account){.vms = vms};
	account->time_keys.key_size = sizeof(struct time_key);
	account->cost_keys.key_size = sizeof(struct cost_key);
	account->theft_keys.key_size = sizeof(struct theft_key);
	account->site_keys.key_size = sizeof(struct site_key);
}

void vp_account_deinit(struct vp_account *account)
{
	vp_key_set_deinit(&account->time_keys);
	vp_key_set_deinit(&account->cost_keys);
	vp_key_set_deinit(&account->theft_keys);
	vp_key_set_deinit(&account->site_keys);
	vp_vec_deinit(&account->times);
	vp_vec_deinit(&account->costs);
	vp_vec_deinit(&account->thefts);
	vp_vec_deinit(&account->sites);
	vp_vec_deinit(&account->of_vms);
	vp_map_deinit(&account->vm_of_id);
	vp_map_deinit(&account->host_ticks);
	vp_account_window_deinit(&account->window);
	vp_overcommit_deinit(&account->overcommit);
}

static void account_add_vm(struct vp_account *account, uint32_t number)
{
	bool inserted;

	vp_map_insert(&account->vm_of_id, vp_vm_id(&account->vms->at[number]), number, &inserted);
}

static uint32_t account_vm_of(struct vp_account *account, uint32_t vm_id)
{
	while (account->of_vms.count < account->vms->count) {
		account_add_vm(account, (uint32_t)account->of_vms.count);
		vp_vec_push(&account->of_vms, (struct vp_account_of_vm){0});
	}
	const uint32_t *known = vp_map_find(&account->vm_of_id, vm_id);
	if (known)
		return *known;
	vp_vec_push(account->vms, ((struct vp_vm){.pid = vm_id & VP_PID_MASK,
						  .nth = vm_id >> VP_PID_BITS,
						  .name = vp_format("pid-%u", vm_id),
						  .uuid = vp_strdup(""),
						  .agent = vp_strdup("")}));
	return account_vm_of(account, vm_id);
}

const struct vp_vm *vp_account_vm(const struct vp_account *account, uint32_t id)
{
	const uint32_t *known = vp_map_find(&account->vm_of_id, id);

	if (known)
		return &account->vms->at[*known];
	return account->of_vms.count < account->vms->count ? vp_vms_find(account->vms, id) : NULL;
}

/* Appends an item to its VM's chain. */
#define CHAIN(account, part, number)                                                               \
	do {                                                                                       \
		struct vp_account_chain *chain = &(account)->of_vms.at[number].part;               \
		uint32_t site = (uint32_t)(account)->part.count;                                   \
		if (chain->first)                                                                  \
			(account)->part.at[chain->last - 1].next = site;                           \
		else                                                                               \
			chain->first = site;                                                       \
		chain->last = site;                                                                \
	} while (0)

static struct vp_account_times *times_of(struct vp_account *account, uint32_t vm_id, uint32_t vcpu)
{
	struct time_key key = {account_vm_of(account, vm_id), vcpu};
	bool inserted;
	uint32_t number = vp_key_set_add(&account->time_keys, &key, &inserted);

	if (inserted) {
		vp_vec_push(&account->times,
			    ((struct vp_account_times){.vm = key.vm, .vcpu = vcpu}));
		CHAIN(account, times, key.vm);
	}
	return &account->times.at[number];
}

static void add_overcommit(void *context, uint32_t theft, uint64_t ns)
{
	struct vp_account *account = context;

	account->thefts.at[theft].overcommitted += ns;
}

/* False: spans are missing, so the sums are used for this vCPU. */
static bool has_all_spans(const struct vp_account_times *times)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < VP_STATES; i++)
		sum += times->spans[i];
	return fabs((double)sum - (double)times->wall) <= CLOSE_PERCENT / 100 * (double)times->wall;
}

void vp_account_settle_window(struct vp_account *account)
{
	bool all = account->by_spans;

	if (vp_window_is_all(&account->window.window))
		return;
	vp_vec_each (&account->times, times) {
		if (!account->by_spans || !has_all_spans(times))
			all &= !times->wall;
		else
			memcpy(times->states, times->spans, sizeof(times->states));
	}
	if (all)
		account->window.state_error = 0;
	vp_vec_each (&account->costs, cost)
		for (uint32_t i = VP_BUCKETS; i-- > 0;)
			if (cost->buckets[i]) {
				uint64_t end =
				    i + 1 < VP_BUCKETS ? vp_bucket_begin(i + 1) : UINT64_MAX;
				cost->max = cost->max < end ? cost->max : end;
				break;
			}
}

void vp_account_settle(struct vp_account *account)
{
	vp_overcommit_close(&account->overcommit, add_overcommit, account);
}

static void take_times(struct vp_account *account, const struct vp_vcpu_account *record)
{
	struct vp_account_times *times = times_of(account, record->vm, record->vcpu);
	const uint64_t states[VP_STATES] = {
	    record->guest,   record->kernel, record->poll,      record->vmm,       record->halted,
	    record->waiting, record->waking, record->preempted, record->throttled, record->irq};

	times->tid = record->tid;
	times->wall += record->end > record->begin ? record->end - record->begin : 0;
	for (size_t i = 0; i < VP_STATES; i++)
		times->states[i] += states[i];
	times->exits += record->exits;
	times->wakeups += record->wakeups;
	times->preemptions += record->preemptions;
	times->polls += record->polls;
	times->poll_wasted += record->poll_wasted;
	if (vp_overcommit_is_next(&account->overcommit, record->time))
		vp_account_settle(account);
	vp_overcommit_take(&account->overcommit, &account->vms->at[times->vm], record);
}

static void take_wakes(struct vp_account *account, const struct vp_wake_bucket *record)
{
	struct vp_account_times *times = times_of(account, record->vm, record->vcpu);

	if (record->bucket >= VP_WAKE_BUCKETS)
		return;
	times->wakes[record->bucket] += record->count;
	times->wake_ns += record->ns;
}

static void take_samples(struct vp_account *account, const struct vp_vm_samples *record)
{
	uint32_t number = account_vm_of(account, record->vm);
	struct vp_account_of_vm *vm = &account->of_vms.at[number];

	account->has_counted_samples = true;
	vm->counted[VP_SAMPLE_GUEST_USER] += record->guest_user;
	vm->counted[VP_SAMPLE_GUEST_KERNEL] += record->guest_kernel;
	vm->counted[VP_SAMPLE_HOST] += record->host;
}

static struct vp_account_cost *account_cost_of(struct vp_account *account, uint32_t vm_id,
					       uint32_t vcpu, uint32_t reason, uint32_t vendor)
{
	struct cost_key key = {account_vm_of(account, vm_id), vcpu, reason, vendor};
	bool inserted;
	uint32_t number = vp_key_set_add(&account->cost_keys, &key, &inserted);

	if (inserted) {
		vp_vec_push(&account->costs,
			    ((struct vp_account_cost){
				.vm = key.vm, .vcpu = vcpu, .reason = reason, .vendor = vendor}));
		CHAIN(account, costs, key.vm);
	}
	return &account->costs.at[number];
}

static void take_cost(struct vp_account *account, const struct vp_exit_account *record)
{
	struct vp_account_cost *cost =
	    account_cost_of(account, record->vm, record->vcpu, record->reason, record->vendor);

	cost->count += record->count;
	cost->total += record->total;
	cost->max = record->max > cost->max ? record->max : cost->max;
	cost->kernel += record->kernel;
	cost->poll += record->poll;
	cost->vmm += record->vmm;
	cost->stolen += record->stolen;
	cost->blocked += record->blocked;
	cost->waking += record->waking;
}

static void take_sampling(struct vp_account *account, const struct vp_exit_sampling *record)
{
	struct vp_account_cost *cost =
	    account_cost_of(account, record->vm, record->vcpu, record->reason, record->vendor);
	const struct vp_exit_timing timing = {record->timed, record->sum, record->squares,
					      record->weights};

	vp_exit_timing_add(&cost->timing, &timing);
}

static void take_bucket(struct vp_account *account, const struct vp_exit_bucket *record)
{
	struct vp_account_cost *cost =
	    account_cost_of(account, record->vm, record->vcpu, record->reason, record->vendor);

	if (record->bucket < VP_BUCKETS)
		cost->buckets[record->bucket] += record->count;
}

/* The theft with that key, added if new; *ret: its number, unless NULL. */
static struct vp_account_theft *theft_of(struct vp_account *account, const struct theft_key *key,
					 uint32_t *ret)
{
	bool inserted;
	uint32_t number = vp_key_set_add(&account->theft_keys, key, &inserted);

	if (inserted) {
		struct vp_account_theft *theft = vp_vec_push_slot(&account->thefts);
		*theft = (struct vp_account_theft){.vm = key->vm,
						   .vcpu = key->vcpu,
						   .kind = key->kind,
						   .id = key->id,
						   .owner = key->owner,
						   .flags = key->flags,
						   .cgroup = key->cgroup};
		memcpy(theft->comm, key->comm, sizeof(key->comm));
		CHAIN(account, thefts, key->vm);
	}
	if (ret)
		*ret = number;
	return &account->thefts.at[number];
}

static void take_thief(struct vp_account *account, const struct vp_thief *record)
{
	struct theft_key key = {.cgroup = record->cgroup,
				.vm = account_vm_of(account, record->vm),
				.vcpu = record->vcpu,
				.kind = record->kind,
				.id = record->number,
				.owner = record->thief_pid,
				.flags = record->flags};
	uint32_t number;

	memcpy(key.comm, record->comm, sizeof(key.comm));
	struct vp_account_theft *theft = theft_of(account, &key, &number);
	theft->count += record->count;
	if (record->kind == VP_BY_VCPU)
		vp_overcommit_take_theft(&account->overcommit, &account->vms->at[key.vm], record,
					 number);
	if (record->state == VP_STATE_WAKING)
		theft->waking += record->ns;
	else if (record->state == VP_STATE_IRQ)
		theft->irq += record->ns;
	else
		theft->preempted += record->ns;
}

static struct vp_account_exit_site *take_site(struct vp_account *account,
					      const struct vp_exit_site *record,
					      uint32_t detail_kind, uint32_t detail,
					      uint64_t address)
{
	struct site_key key = {.ip = record->ip,
			       .as_root = record->as_root,
			       .address = address,
			       .vm = account_vm_of(account, record->vm),
			       .reason = record->reason,
			       .vendor = record->vendor,
			       .known = record->flags & VP_SITE_KNOWN,
			       .detail_kind = detail_kind,
			       .detail = detail};
	bool inserted;
	uint32_t number = vp_key_set_add(&account->site_keys, &key, &inserted);

	if (inserted)
		vp_vec_push(&account->sites,
			    ((struct vp_account_exit_site){.vm = key.vm,
							   .reason = key.reason,
							   .vendor = key.vendor,
							   .detail_kind = detail_kind,
							   .detail = detail,
							   .address = address,
							   .known = key.known,
							   .ip = key.ip,
							   .as_root = key.as_root}));
	struct vp_account_exit_site *site = &account->sites.at[number];
	site->count += record->count;
	site->ns += record->ns;
	site->last = record->last > site->last ? record->last : site->last;
	return site;
}

/* The fields of exit_site come first. */
static void take_site_detail(struct vp_account *account, const struct vp_exit_site_detail *record)
{
	take_site(account, (const void *)record, record->detail_kind, record->detail,
		  VP_NO_ADDRESS);
}

static void take_site_address(struct vp_account *account, const struct vp_exit_site_address *record)
{
	take_site(account, (const void *)record, record->detail_kind, record->detail,
		  record->address);
}

static void take_site_waits(struct vp_account *account, const struct vp_exit_site_waits *record)
{
	struct vp_account_exit_site *site = take_site(
	    account, (const void *)record, record->detail_kind, record->detail, record->address);

	site->idle += record->idle;
	site->stolen += record->stolen;
	account->sites_have_waits = true;
}

static void account_take_sample(struct vp_account *account, const struct vp_guest_sample *record)
{
	struct vp_account_times *times = times_of(account, record->vm, record->vcpu);

	times->guest_samples++;
	times->user_samples += record->mode == VP_MODE_GUEST_USER;
}

static void account_take_vcpu_sample(struct vp_account *account,
				     const struct vp_vcpu_sample *record)
{
	if (account->grade == VP_ACCOUNT_STATES)
		times_of(account, record->vm, record->vcpu)->kernel_samples++;
}

/* Counted by tid, because the thread may turn out to be a vCPU thread later. */
static void account_take_host_sample(struct vp_account *account,
				     const struct vp_host_sample *record)
{
	bool inserted;

	if (account->grade == VP_ACCOUNT_STATES && record->tid)
		++*vp_map_insert(&account->host_ticks, record->tid, 0, &inserted);
}

/* Spans are cut at the borders of a window. */
static void take_span(struct vp_account *account, const struct vp_vcpu_span *record)
{
	uint64_t begin = record->time > record->ns ? record->time - record->ns : 0;
	uint64_t ns = vp_window_overlap(&account->window.window, begin, record->time);

	if (!account->by_spans || record->state >= VP_STATES || !ns)
		return;
	struct vp_account_times *times = times_of(account, record->vm, record->vcpu);
	if (record->flags & VP_STATE_MOVED) {
		uint64_t kernel = times->spans[VP_STATE_KERNEL];
		ns = ns < kernel ? ns : kernel;
		times->spans[VP_STATE_KERNEL] -= ns;
	}
	times->spans[record->state] += ns;
}

void vp_account_take(struct vp_account *account, const struct vp_record_header *record)
{
	union vp_account_record part;

	record = vp_account_window_cut(&account->window, record, &part);
	if (!record)
		return;
	switch (record->id) {
	case VP_ID_vcpu_span:
		take_span(account, (const void *)record);
		break;
	case VP_ID_vcpu_account:
		take_times(account, (const void *)record);
		break;
	case VP_ID_wake_bucket:
		take_wakes(account, (const void *)record);
		break;
	case VP_ID_vm_samples:
		take_samples(account, (const void *)record);
		break;
	case VP_ID_exit_account:
		take_cost(account, (const void *)record);
		break;
	case VP_ID_exit_bucket:
		take_bucket(account, (const void *)record);
		break;
	case VP_ID_exit_sampling:
		take_sampling(account, (const void *)record);
		break;
	case VP_ID_thief:
		take_thief(account, (const void *)record);
		break;
	case VP_ID_exit_site:
		take_site(account, (const void *)record, VP_DETAIL_NONE, 0, VP_NO_ADDRESS);
		break;
	case VP_ID_exit_site_detail:
		take_site_detail(account, (const void *)record);
		break;
	case VP_ID_exit_site_address:
		take_site_address(account, (const void *)record);
		break;
	case VP_ID_exit_site_waits:
		take_site_waits(account, (const void *)record);
		break;
	case VP_ID_account_loss:
		memcpy(&account->lost, record, sizeof(account->lost));
		break;
	case VP_ID_guest_sample:
		account_take_sample(account, (const void *)record);
		break;
	case VP_ID_vcpu_sample:
		account_take_vcpu_sample(account, (const void *)record);
		break;
	case VP_ID_host_sample:
		account_take_host_sample(account, (const void *)record);
		break;
	default:
		break;
	}
}

/* Number of samples of the vCPU thread, in any mode. */
static uint64_t running_samples(const struct vp_account_times *times)
{
	return times->guest_samples + times->kernel_samples + times->vmm_samples;
}

void vp_account_divide_running(struct vp_account *account)
{
	if (account->grade != VP_ACCOUNT_STATES)
		return;
	vp_vec_each (&account->times, times) {
		const uint32_t *ticks = vp_map_find(&account->host_ticks, times->tid);
		double running = (double)times->states[VP_STATE_GUEST];
		times->vmm_samples = ticks ? *ticks : 0;
		uint64_t all = running_samples(times);
		if (!all)
			continue;
		uint64_t kernel = (uint64_t)(running * (double)times->kernel_samples / (double)all);
		uint64_t vmm = (uint64_t)(running * (double)times->vmm_samples / (double)all);
		times->states[VP_STATE_GUEST] -= kernel + vmm;
		times->states[VP_STATE_KERNEL] += kernel;
		times->states[VP_STATE_VMM] += vmm;
	}
}

double vp_account_error(double variance)
{
	return SIGMAS * sqrt(variance);
}

/* Error of a binomial distribution; for shares near 0 or 1, that of three samples more or less;
 * without samples, everything. */
static double error_of_samples(const struct vp_account_times *times)
{
	double running = (double)(times->states[VP_STATE_GUEST] + times->states[VP_STATE_KERNEL] +
				  times->states[VP_STATE_VMM]);
	double n = (double)running_samples(times);

	if (n <= 0)
		return running;
	double share = (double)times->guest_samples / n;
	double error = SIGMAS * sqrt(share * (1 - share) / n) + 3 / n;
	return running * fmin(error, 1);
}

double vp_account_guest_error(const struct vp_account *account,
			      const struct vp_account_times *times)
{
	double variance = 0;

	if (account->grade == VP_ACCOUNT_STATES)
		return error_of_samples(times);
	if (account->grade == VP_ACCOUNT_SAMPLED)
		vp_account_each_of (account, costs, times->vm, cost)
			if (cost->vcpu == times->vcpu)
				variance += vp_exit_timing_variance(&cost->timing);
	return vp_account_error(variance);
}

uint64_t vp_account_quantile(const struct vp_account_cost *cost, double share)
{
	uint64_t all = 0, below = 0;

	for (size_t i = 0; i < VP_BUCKETS; i++)
		all += cost->buckets[i];
	double wanted = share * (double)all;
	for (uint32_t i = 0; i < VP_BUCKETS; i++) {
		uint64_t here = cost->buckets[i];
		if (here && (double)(below + here) >= wanted) {
			double begin = (double)vp_bucket_begin(i);
			double end =
			    i + 1 < VP_BUCKETS ? (double)vp_bucket_begin(i + 1) : (double)cost->max;
			end = end > (double)cost->max ? (double)cost->max : end;
			double at = begin + (end - begin) * (wanted - (double)below) / (double)here;
			return at > 0 ? (uint64_t)at : 0;
		}
		below += here;
	}
	return 0;
}

void vp_account_cost_add(struct vp_account_cost *to, const struct vp_account_cost *from)
{
	to->count += from->count;
	to->total += from->total;
	to->max = from->max > to->max ? from->max : to->max;
	to->kernel += from->kernel;
	to->poll += from->poll;
	to->vmm += from->vmm;
	to->stolen += from->stolen;
	to->blocked += from->blocked;
	to->waking += from->waking;
	vp_exit_timing_add(&to->timing, &from->timing);
	for (size_t i = 0; i < VP_BUCKETS; i++)
		to->buckets[i] += from->buckets[i];
}

/* The number in the other account, from `ids`; unchanged if it is not a VM's. */
static uint32_t account_mapped(const struct vp_map *ids, uint32_t id)
{
	const uint32_t *mapped = vp_map_find(ids, id);

	return mapped ? *mapped : id;
}

static void add_times(struct vp_account_times *to, const struct vp_account_times *from)
{
	to->tid = from->tid;
	to->wall += from->wall;
	for (size_t i = 0; i < VP_STATES; i++) {
		to->states[i] += from->states[i];
		to->spans[i] += from->spans[i];
	}
	to->exits += from->exits;
	to->wakeups += from->wakeups;
	to->preemptions += from->preemptions;
	to->polls += from->polls;
	to->poll_wasted += from->poll_wasted;
	for (size_t i = 0; i < VP_WAKE_BUCKETS; i++)
		to->wakes[i] += from->wakes[i];
	to->wake_ns += from->wake_ns;
	to->guest_samples += from->guest_samples;
	to->user_samples += from->user_samples;
	to->kernel_samples += from->kernel_samples;
	to->vmm_samples += from->vmm_samples;
}

static void add_theft(struct vp_account *to, const struct vp_account_theft *from, uint32_t vm_id,
		      uint32_t owner)
{
	struct theft_key key = {.cgroup = from->cgroup,
				.vm = account_vm_of(to, vm_id),
				.vcpu = from->vcpu,
				.kind = from->kind,
				.id = from->id,
				.owner = owner,
				.flags = from->flags};

	memcpy(key.comm, from->comm, sizeof(key.comm));
	struct vp_account_theft *theft = theft_of(to, &key, NULL);
	theft->preempted += from->preempted;
	theft->waking += from->waking;
	theft->irq += from->irq;
	theft->overcommitted += from->overcommitted;
	theft->count += from->count;
}

void vp_account_add(struct vp_account *to, const struct vp_account *from, const struct vp_map *ids)
{
	const vp_vms *vms = from->vms;

	vp_vec_each (&from->times, times)
		add_times(
		    times_of(to, account_mapped(ids, vp_vm_id(&vms->at[times->vm])), times->vcpu),
		    times);
	vp_vec_each (&from->costs, cost)
		vp_account_cost_add(
		    account_cost_of(to, account_mapped(ids, vp_vm_id(&vms->at[cost->vm])),
				    cost->vcpu, cost->reason, cost->vendor),
		    cost);
	vp_vec_each (&from->thefts, theft)
		add_theft(to, theft, account_mapped(ids, vp_vm_id(&vms->at[theft->vm])),
			  account_mapped(ids, theft->owner));
	for (uint32_t i = 0; i < from->of_vms.count; i++) {
		uint32_t vm = account_vm_of(to, account_mapped(ids, vp_vm_id(&vms->at[i])));
		for (size_t mode = 0; mode < VP_SAMPLE_MODES; mode++)
			to->of_vms.at[vm].counted[mode] += from->of_vms.at[i].counted[mode];
	}
	to->has_counted_samples |= from->has_counted_samples;
	to->lost.vcpus += from->lost.vcpus;
	to->lost.thieves += from->lost.thieves;
	to->lost.sites += from->lost.sites;
}

/*
 * Compares one vCPU's samples with its accounting. A sample that becomes due while the host has
 * interrupts off, in a handler or around an entry, is delayed; KVM receives it right after the next
 * exit, where it counts as the guest's. So samples may attribute time of interrupts and of the
 * kernel to the guest.
 */
static void check_samples(const struct vp_account *account, const struct vp_account_times *times,
			  uint64_t period_ns, double missing, struct vp_account_checks *checks)
{
	double wall = (double)times->wall, ticks = wall / (double)period_ns;
	double least = (double)times->states[VP_STATE_GUEST] / wall;
	double most =
	    least + (double)(times->states[VP_STATE_IRQ] + times->states[VP_STATE_KERNEL]) / wall;
	double sampled = (double)times->guest_samples / ticks, estimated = 0;

	if (account->grade == VP_ACCOUNT_STATES) {
		/* The guest's share is itself derived from samples: only the total can be
		 * compared. */
		least +=
		    (double)(times->states[VP_STATE_KERNEL] + times->states[VP_STATE_VMM]) / wall;
		most = least;
		sampled = (double)running_samples(times) / ticks;
	} else {
		estimated = vp_account_guest_error(account, times) / wall;
	}
	/* With very few expected samples, one more or less is insignificant. */
	double error =
	    SIGMAS * sqrt(fmax(least * (1 - least), 0) / ticks) + 3 / ticks + missing + estimated;
	double off = fmax(fmax(least - sampled, sampled - most), 0);

	checks->sampled = true;
	checks->samples_agree &= off <= error;
	if (100 * off >= checks->worst_sample) {
		checks->worst_sample = 100 * off;
		checks->sample_error = 100 * error;
	}
}

static bool near(uint64_t a, uint64_t b, double percent)
{
	return fabs((double)a - (double)b) <= percent / 100 * fmax((double)a, (double)b) + 2;
}

void vp_account_check(const struct vp_account *account, uint64_t period_ns, double missing,
		      struct vp_account_checks *ret)
{
	*ret = (struct vp_account_checks){.samples_agree = true};
	vp_vec_each (&account->times, times) {
		double sum = 0;
		if (!times->wall)
			continue;
		for (size_t i = 0; i < VP_STATES; i++)
			sum += (double)times->states[i];
		double gap = 100 * fabs(sum - (double)times->wall) / (double)times->wall;
		ret->worst_gap = fmax(ret->worst_gap, gap);
		ret->exits += times->exits;
		/* Samples in the host are not guest samples. */
		if (period_ns && times->wall > period_ns &&
		    !vp_vm_is_host(&account->vms->at[times->vm]))
			check_samples(account, times, period_ns, missing, ret);
	}
	vp_vec_each (&account->costs, cost) {
		ret->exits_by_reason += cost->count;
		ret->exit_ns += cost->total;
		ret->part_ns += cost->kernel + cost->poll + cost->vmm + cost->stolen +
				cost->blocked + cost->waking;
	}
	ret->closes = ret->worst_gap <= CLOSE_PERCENT;
	ret->exits_agree = near(ret->exits, ret->exits_by_reason, CLOSE_PERCENT);
	ret->parts_sum = ret->exit_ns == ret->part_ns;
	ret->lost_events = account->lost.vcpus;
	ret->all_counted = !ret->lost_events;
}
