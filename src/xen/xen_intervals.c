/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Intervals of vCPUs from Xen's trace buffers. */
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "bpf/account_abi.h"
#include "collect/programs/hypervisor_intervals.h"
#include "schema/interval.h"
#include "schema/recipe.h"
#include "schema/vm.h"
#include "xen/buffers.h"
#include "xen/domains.h"
#include "xen/library.h"
#include "xen/states.h"
#include "xen/trace.h"
#include "xen/vcpu_intervals.h"
#include "xen/xen_account.h"

#define SECOND 1000000000ULL

struct xen_intervals {
	struct vp_hypervisor_intervals_options options;
	struct vp_xen *xen;
	struct vp_xen_buffers *buffers;
	struct vp_xen_intervals counts;
	uint64_t next_look; /* next check for ended domains */
};

/* Type that is opaque to other files. */
static struct xen_intervals *xen_intervals_of(const struct vp_hypervisor_intervals *intervals)
{
	return (struct xen_intervals *)intervals;
}

static void xen_intervals_free(struct vp_hypervisor_intervals *source)
{
	struct xen_intervals *intervals = xen_intervals_of(source);

	if (intervals->buffers)
		vp_xen_buffers_close(intervals->buffers);
	vp_xen_close(intervals->xen);
	vp_xen_intervals_deinit(&intervals->counts);
	free(intervals);
}

static bool xen_intervals_is_hvm(void *context, uint32_t id)
{
	const struct xen_intervals *intervals = context;
	struct vp_xen_domain domain;

	return vp_xen_domain_next(intervals->xen, id, &domain) && domain.id == id &&
	       domain.flags & VP_XEN_HVM;
}

static void xen_intervals_take_interval(void *context, uint32_t pcpu, char *records, size_t size)
{
	const struct xen_intervals *intervals = context;

	intervals->options.take(intervals->options.context, pcpu, records, size);
}

/* Xen's trace has no hardware counters. */
static struct vp_error *xen_intervals_check(const struct vp_recipe *recipe)
{
	if (recipe->unit == VP_UNIT_EVENT)
		return vp_error_new("intervals of '%s' are not available on Xen: expected 'time' "
				    "or 'exits'",
				    recipe->unit_name);
	vp_vec_each (&recipe->events, event)
		if (event->event.source == VP_FROM_COUNTER)
			return vp_error_new("event '%s' is not available on Xen: vCPUs have no "
					    "hardware counters in its trace",
					    event->name);
	return NULL;
}

static struct vp_error *xen_intervals_open(const struct vp_hypervisor_intervals_options *options,
					   struct vp_hypervisor_intervals **ret)
{
	VP_TRY(xen_intervals_check(options->recipe));
	struct xen_intervals *intervals = vp_alloc(sizeof(*intervals));
	*intervals = (struct xen_intervals){.options = *options,
					    .counts = {.recipe = options->recipe,
						       .paravirtual = options->paravirtual,
						       .is_hvm = xen_intervals_is_hvm,
						       .take = xen_intervals_take_interval,
						       .context = intervals}};
	vp_xen_intervals_init(&intervals->counts, vp_xen_vendor());
	struct vp_error *error = vp_xen_open(&intervals->xen);
	if (!error)
		error = vp_xen_buffers_open(intervals->xen, &intervals->buffers);
	if (error)
		xen_intervals_free((struct vp_hypervisor_intervals *)intervals);
	else
		*ret = (struct vp_hypervisor_intervals *)intervals;
	return error;
}

static struct vp_error *xen_intervals_begin(struct vp_hypervisor_intervals *source, uint64_t now)
{
	struct xen_intervals *intervals = xen_intervals_of(source);

	VP_TRY(vp_xen_buffers_start(
	    intervals->buffers,
	    vp_xen_intervals_mask(intervals->options.recipe, intervals->options.paravirtual)));
	vp_xen_seed_states(intervals->xen, now, &intervals->counts.states);
	vp_xen_check_caps(intervals->xen, &intervals->counts.states);
	vp_xen_intervals_begin(&intervals->counts, now);
	return NULL;
}

/* Ends the intervals of destroyed domains; their last ones are up to a second too long. */
static void xen_intervals_find_ended(struct xen_intervals *intervals, uint64_t known)
{
	struct vp_xen_states *states = &intervals->counts.states;

	for (uint32_t slot = 0; slot < states->n_slots; slot++) {
		const struct vp_account_vcpu *vcpu = &states->vcpus[slot];
		const struct vp_vm vm = {.has_domain = true, .domain = vcpu->pid - 1};
		struct vp_xen_domain domain;
		if (!vcpu->begin || vp_xen_domain_of(intervals->xen, &vm, &domain))
			continue;
		vp_xen_intervals_leave(&intervals->counts, slot, known);
		vp_xen_states_release(states, slot);
	}
}

static void xen_intervals_take(void *context, const struct vp_xen_traced *traced)
{
	struct xen_intervals *intervals = context;

	vp_xen_intervals_lose(&intervals->counts, vp_xen_buffers_is_losing(intervals->buffers));
	vp_xen_intervals_take(&intervals->counts, traced);
}

static void xen_intervals_drain(struct vp_hypervisor_intervals *source)
{
	struct xen_intervals *intervals = xen_intervals_of(source);
	const uint64_t now = vp_clock_monotonic();
	uint64_t known = vp_xen_buffers_drain(intervals->buffers, xen_intervals_take, intervals);

	vp_xen_intervals_lose(&intervals->counts, vp_xen_buffers_is_losing(intervals->buffers));
	vp_xen_intervals_pass(&intervals->counts, known);
	if (now < intervals->next_look)
		return;
	intervals->next_look = now + SECOND;
	vp_xen_check_caps(intervals->xen, &intervals->counts.states);
	xen_intervals_find_ended(intervals, known);
}

static void xen_intervals_end(struct vp_hypervisor_intervals *source)
{
	struct xen_intervals *intervals = xen_intervals_of(source);

	vp_xen_buffers_stop(intervals->buffers);
	vp_xen_intervals_end(
	    &intervals->counts,
	    vp_xen_buffers_drain(intervals->buffers, xen_intervals_take, intervals));
}

static uint64_t xen_intervals_lost(const struct vp_hypervisor_intervals *source)
{
	return xen_intervals_of(source)->counts.lost;
}

/* Appends the name of an event. */
static void xen_intervals_add_name(struct vp_buffer *names, const char *name)
{
	vp_buffer_printf(names, "%s%s", names->size ? " " : "", name);
}

static char *xen_intervals_missing(const struct vp_recipe *recipe, bool paravirtual)
{
	struct vp_buffer guest = {0}, of_pv = {0}, text = {0};

	vp_vec_each (&recipe->events, event) {
		if (event->event.source == VP_FROM_GUEST)
			xen_intervals_add_name(&guest, event->name);
		else if (!vp_xen_intervals_has(event->event.index, false, paravirtual))
			xen_intervals_add_name(&of_pv, event->name);
	}
	if (guest.size)
		vp_buffer_printf(&text, "on Xen these events have no values: %s",
				 vp_buffer_text(&guest));
	if (of_pv.size)
		vp_buffer_printf(&text, "%sPV domains have no values of: %s%s",
				 text.size ? "; " : "", vp_buffer_text(&of_pv),
				 paravirtual ? "" : " (see --paravirtual)");
	vp_buffer_deinit(&guest);
	vp_buffer_deinit(&of_pv);
	char *sentence = text.size ? vp_strdup(vp_buffer_text(&text)) : NULL;
	vp_buffer_deinit(&text);
	return sentence;
}

const struct vp_hypervisor_intervals_ops *vp_xen_intervals_ops(void)
{
	static const struct vp_hypervisor_intervals_ops ops = {.open = xen_intervals_open,
							       .begin = xen_intervals_begin,
							       .drain = xen_intervals_drain,
							       .end = xen_intervals_end,
							       .lost = xen_intervals_lost,
							       .missing = xen_intervals_missing,
							       .free = xen_intervals_free};

	return &ops;
}
