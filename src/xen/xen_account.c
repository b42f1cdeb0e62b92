/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/xen_account.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/vec.h"
#include "bpf/account_abi.h"
#include "schema/account_terms.h"
#include "schema/vm.h"
#include "xen/buffers.h"
#include "xen/domains.h"
#include "xen/library.h"
#include "xen/states.h"
#include "xen/trace.h"
#include "xen/weights.h"
#include "xen/xen_conditions.h"
#include "xen/xen_events.h"
#include "xen/xen_sampler.h"

#define SECOND 1000000000ULL

struct xen_account {
	struct vp_xen *xen;
	struct vp_xen_buffers *buffers;
	struct vp_xen_states states;
	struct vp_hypervisor_events *events; /* NULL: not requested */
	struct vp_condition_watch *watch;    /* NULL: no triggers */
	struct vp_guest_sampler *sampler;    /* NULL: run times are not needed */
	uint64_t next_context; /* earliest time of the sampler's next context read, ns */
	bool running, paravirtual, reports_exits;
	uint64_t known;     /* time up to which all records have been read */
	uint64_t next_look; /* next check for caps and ended domains, which are not traced */
	uint64_t looked;    /* time of the last domain list */
};

/* Types that are opaque to other files. */
static struct xen_account *xen_account_of(const struct vp_account_source *source)
{
	return (struct xen_account *)source;
}

enum vp_vendor vp_xen_vendor(void)
{
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read("/proc/cpuinfo", 16 << 20, &text);
	enum vp_vendor vendor = error                                           ? VP_VENDOR_UNKNOWN
				: strstr(vp_buffer_text(&text), "AuthenticAMD") ? VP_VENDOR_AMD
				: strstr(vp_buffer_text(&text), "HygonGenuine") ? VP_VENDOR_AMD
				: strstr(vp_buffer_text(&text), "GenuineIntel") ? VP_VENDOR_INTEL
										: VP_VENDOR_UNKNOWN;

	vp_error_free(error);
	vp_buffer_deinit(&text);
	return vendor;
}

static void xen_account_free(struct vp_account_source *source)
{
	struct xen_account *account = xen_account_of(source);

	if (!account)
		return;
	if (account->buffers)
		vp_xen_buffers_close(account->buffers);
	if (account->watch)
		vp_xen_conditions_leave(account->watch);
	vp_xen_close(account->xen);
	vp_xen_states_deinit(&account->states);
	free(account);
}

static struct vp_error *xen_account_open(const vp_vms *vms,
					 const struct vp_account_source_options *options,
					 struct vp_account_source **ret)
{
	struct xen_account *account = vp_alloc(sizeof(*account));

	account->paravirtual = options->paravirtual;
	account->events = options->events;
	if (options->guest_sampler && vp_xen_sampler_wants_account(options->guest_sampler)) {
		account->sampler = options->guest_sampler;
		account->reports_exits = vp_xen_sampler_wants_exits(account->sampler);
	}
	vp_xen_states_init(&account->states, vp_xen_vendor(), options->with_states);
	struct vp_error *error = vp_xen_open(&account->xen);
	if (!error)
		error = vp_xen_buffers_open(account->xen, &account->buffers);
	if (error) {
		xen_account_free((struct vp_account_source *)account);
		return error;
	}
	account->watch = options->watch;
	if (account->watch)
		vp_xen_conditions_join(account->watch);
	*ret = (struct vp_account_source *)account;
	return NULL;
}

/* Present runstate of the vCPU, from Xen instead of the trace. */
static enum vp_xen_runstate query_runstate(const struct vp_xen *xen,
					   const struct vp_xen_domain *domain, uint32_t number,
					   uint32_t *pcpu)
{
	struct vp_xen_vcpu vcpu;

	if (xen->call.vcpu_getinfo(xen->control, domain->id, number, &vcpu) || !vcpu.online)
		return VP_XEN_OFFLINE;
	*pcpu = vcpu.pcpu;
	if (vcpu.running)
		return VP_XEN_RUNNING;
	if (vcpu.blocked)
		return VP_XEN_BLOCKED;
	return domain->flags & (VP_XEN_PAUSED | VP_XEN_SHUTDOWN) ? VP_XEN_OFFLINE : VP_XEN_RUNNABLE;
}

/* Xen answers for the scheduler of the domain only; other schedulers have no cap. */
static bool has_cap(const struct vp_xen *xen, uint32_t domain)
{
	struct vp_xen_credit credit;

	if (!xen->call.sched_credit2_domain_get(xen->control, domain, &credit) ||
	    !xen->call.sched_credit_domain_get(xen->control, domain, &credit))
		return credit.cap;
	return false;
}

void vp_xen_check_caps(const struct vp_xen *xen, struct vp_xen_states *states)
{
	struct vp_xen_domain domain;

	for (uint32_t next = 0; vp_xen_domain_next(xen, next, &domain); next = domain.id + 1u)
		vp_xen_states_cap(states, domain.id,
				  !(domain.flags & VP_XEN_PAUSED) && has_cap(xen, domain.id));
}

static void xen_account_seed(const struct vp_xen *xen, const struct vp_xen_domain *domain,
			     uint64_t now, struct vp_xen_states *states)
{
	for (uint32_t i = 0; i <= domain->last_vcpu && domain->last_vcpu != UINT32_MAX; i++) {
		uint32_t pcpu = UINT32_MAX;
		enum vp_xen_runstate runstate = query_runstate(xen, domain, i, &pcpu);
		vp_xen_states_seed(states, domain->id, i, runstate, pcpu, now);
	}
}

void vp_xen_seed_states(const struct vp_xen *xen, uint64_t now, struct vp_xen_states *states)
{
	struct vp_xen_domain domain;

	for (uint32_t next = 0; vp_xen_domain_next(xen, next, &domain); next = domain.id + 1u)
		xen_account_seed(xen, &domain, now, states);
}

static struct vp_error *xen_account_prepare(struct vp_account_source *source)
{
	const struct xen_account *account = xen_account_of(source);
	uint32_t mask = VP_XEN_TRACE_SCHED | VP_XEN_TRACE_EXITS;

	if (account->paravirtual)
		mask |= VP_XEN_TRACE_PV;
	if (account->events)
		mask |= vp_xen_events_mask(account->events);
	return vp_xen_buffers_start(account->buffers, mask);
}

static bool ran(void *context, uint32_t domain, uint32_t vcpu, uint64_t time,
		struct vp_xen_ran *ret)
{
	const struct xen_account *account = context;
	const uint64_t until = time < UINT64_MAX ? time : account->known;

	return vp_xen_states_ran(&account->states, domain, vcpu, until, ret);
}

static void weigh_contexts(struct xen_account *account, uint64_t time)
{
	account->next_context =
	    vp_xen_sampler_weigh(account->sampler, time, (struct vp_xen_runner){ran, account});
}

static void account_begin(struct vp_account_source *source, const vp_vms *vms, uint64_t now)
{
	struct xen_account *account = xen_account_of(source);

	account->states.begin = account->known = account->looked = now;
	account->running = true;
	vp_xen_seed_states(account->xen, now, &account->states);
	vp_xen_check_caps(account->xen, &account->states);
	if (account->sampler)
		weigh_contexts(account, 0);
}

/* Reported before it is added to the states. */
static void report_exit(struct xen_account *account, const struct vp_xen_traced *traced)
{
	const struct vp_account_vcpu *vcpu = vp_xen_states_running(&account->states, traced->pcpu);
	struct vp_xen_ran had;

	if (!vcpu || traced->time < account->states.begin)
		return;
	uint32_t domain = vcpu->pid - 1;
	if (!domain) /* domains that sample themselves are excluded */
		return;
	if (ran(account, domain, vcpu->number, traced->time, &had) && !had.open_exit)
		vp_xen_sampler_exit(account->sampler,
				    &(struct vp_xen_exit){.domain = domain,
							  .vcpu = vcpu->number,
							  .pcpu = traced->pcpu,
							  .time = traced->time,
							  .ran = had.ns,
							  .ip = traced->record.ip});
}

/* Events belong to the vCPU that had the pCPU before. */
static void xen_account_take(void *context, const struct vp_xen_traced *traced)
{
	struct xen_account *account = context;

	if (account->sampler && traced->time >= account->next_context)
		weigh_contexts(account, traced->time);
	if (account->reports_exits && vp_xen_states_is_interrupt(&account->states, &traced->record))
		report_exit(account, traced);
	const struct vp_account_vcpu *vcpu =
	    account->events ? vp_xen_states_running(&account->states, traced->pcpu) : NULL;

	if (account->events && traced->time >= account->states.begin)
		vp_xen_events_add(account->events, traced, vcpu ? vcpu->pid : UINT32_MAX,
				  vcpu ? vcpu->number : UINT32_MAX);
	if (account->watch)
		vp_xen_conditions_take(account->watch, &account->states, traced);
	if (traced->record.event != VP_XEN_WORK || account->paravirtual)
		vp_xen_states_take(&account->states, traced);
}

/* Finds domains that have ended. */
static void xen_account_find_ended(struct xen_account *account, uint64_t now)
{
	struct vp_xen_states *states = &account->states;

	for (uint32_t slot = 0; slot < states->n_slots; slot++) {
		const struct vp_account_vcpu *vcpu = &states->vcpus[slot];
		const struct vp_vm vm = {.has_domain = true, .domain = vcpu->pid - 1};
		struct vp_xen_domain domain;
		if (vcpu->begin && vcpu->state != VP_STATE_GONE &&
		    !vp_xen_domain_of(account->xen, &vm, &domain))
			vp_xen_states_emit_gone(states, slot, account->looked);
	}
	account->looked = now;
}

static uint64_t account_gather(struct vp_account_source *source, uint64_t now)
{
	struct xen_account *account = xen_account_of(source);

	if (!account->buffers)
		return now;
	account->next_context = 0; /* vCPUs may be new */
	uint64_t known = vp_xen_buffers_drain(account->buffers, xen_account_take, account);
	if (account->events)
		vp_xen_events_note_lost(account->events, vp_xen_buffers_lost(account->buffers));
	if (!account->running)
		known = now;
	account->known = known > account->known ? known : account->known;
	if (account->sampler) {
		weigh_contexts(account, account->known);
		vp_xen_sampler_known(account->sampler,
				     account->running ? account->known : UINT64_MAX,
				     (struct vp_xen_runner){ran, account});
	}
	/* All their records from before the list have been read, and there are no later ones. */
	if (account->known >= account->looked)
		vp_xen_states_end_gone(&account->states);
	if (account->running && now >= account->next_look) {
		account->next_look = now + SECOND;
		vp_xen_check_caps(account->xen, &account->states);
		xen_account_find_ended(account, now);
	}
	return account->known;
}

static void account_end(struct vp_account_source *source)
{
	struct xen_account *account = xen_account_of(source);

	vp_xen_buffers_stop(account->buffers);
	account->running = false;
	xen_account_find_ended(account, vp_clock_monotonic());
}

static const char *account_missing(const struct vp_account_source *source)
{
	return NULL;
}

static size_t account_slots(const struct vp_account_source *source)
{
	return VP_XEN_SLOTS;
}

static bool account_vcpu(const struct vp_account_source *source, size_t slot,
			 struct vp_account_vcpu *ret)
{
	const struct vp_xen_states *states = &xen_account_of(source)->states;

	if (slot >= states->n_slots || !states->vcpus[slot].begin)
		return false;
	*ret = states->vcpus[slot];
	return true;
}

static void account_release(struct vp_account_source *source, const uint32_t *slots, size_t count)
{
	for (size_t i = 0; i < count; i++)
		vp_xen_states_release(&xen_account_of(source)->states, slots[i]);
}

static const struct vp_account_exit *account_exits(const struct vp_account_source *source,
						   size_t slot)
{
	return xen_account_of(source)->states.exits[slot];
}

static const struct vp_account_site *account_sites(const struct vp_account_source *source,
						   size_t slot)
{
	return xen_account_of(source)->states.sites[slot];
}

static void account_thieves(const struct vp_account_source *source,
			    void (*take_thief)(void *context, const void *key, const void *cost),
			    void *context)
{
	vp_vec_each (&xen_account_of(source)->states.thieves, thief)
		take_thief(context, &thief->key, &thief->cost);
}

static void account_old_sites(const struct vp_account_source *source,
			      void (*take_site)(void *context, const void *key, const void *cost),
			      void *context)
{
	vp_vec_each (&xen_account_of(source)->states.old_sites, site)
		take_site(context, &site->key, &site->cost);
}

static bool account_task(const struct vp_account_source *source, uint32_t tid,
			 struct vp_account_task *ret)
{
	return false; /* no threads besides vCPUs */
}

static void xen_account_drain(struct vp_account_source *source,
			      void (*take_span)(void *context, struct vp_vcpu_span *record),
			      void *context)
{
	struct vp_xen_states *states = &xen_account_of(source)->states;

	vp_vec_each (&states->spans, span)
		take_span(context, span);
	states->spans.count = 0;
}

static uint64_t account_lost_states(const struct vp_account_source *source)
{
	return 0;
}

static struct vp_account_lost xen_account_lost(const struct vp_account_source *source)
{
	return xen_account_of(source)->states.lost;
}

static uint64_t account_lost_events(const struct vp_account_source *source)
{
	return vp_xen_buffers_lost(xen_account_of(source)->buffers);
}

const struct vp_account_ops *vp_xen_account_ops(void)
{
	static const struct vp_account_ops ops = {
	    .often = true,
	    .has_paravirtual = true,
	    .open = xen_account_open,
	    .prepare = xen_account_prepare,
	    .begin = account_begin,
	    .gather = account_gather,
	    .end = account_end,
	    .free = xen_account_free,
	    .missing = account_missing,
	    .slots = account_slots,
	    .vcpu = account_vcpu,
	    .release = account_release,
	    .exits = account_exits,
	    .sites = account_sites,
	    .thieves = account_thieves,
	    .old_sites = account_old_sites,
	    .task = account_task,
	    .drain = xen_account_drain,
	    .lost_states = account_lost_states,
	    .lost = xen_account_lost,
	    .lost_events = account_lost_events,
	};

	return &ops;
}
