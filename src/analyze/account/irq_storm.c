/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/irq_storm.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/vec.h"
#include "schema/account_terms.h"
#include "schema/exit_reason.h"

/* The kernel's tick has at most 1000 interrupts per second, and drivers limit their devices to some
 * thousands. Fewer interrupts or a shorter time give no reliable rate. */
enum { MIN_PER_S = 20000, MIN_COUNT = 1000, MIN_NS = 10000000 };

/* Time of the vCPU thread on a pCPU. */
static uint64_t on_pcpu(const struct vp_account_times *times)
{
	const uint64_t *states = times->states;

	return states[VP_STATE_GUEST] + states[VP_STATE_KERNEL] + states[VP_STATE_POLL] +
	       states[VP_STATE_VMM] + states[VP_STATE_IRQ];
}

bool vp_irq_storm_find(const struct vp_account *account, const struct vp_account_times *times,
		       struct vp_irq_storm *ret)
{
	const struct vp_account_theft *most = NULL;
	uint64_t ns = on_pcpu(times);

	vp_account_each_of (account, thefts, times->vm, theft)
		if (theft->vcpu == times->vcpu && theft->irq &&
		    (!most || theft->count > most->count))
			most = theft;
	if (!most || ns < MIN_NS || most->count < MIN_COUNT)
		return false;
	*ret = (struct vp_irq_storm){.kind = most->kind,
				     .id = most->id,
				     .per_s = (double)most->count * 1e9 / (double)ns,
				     .percent = 100.0 * (double)most->irq / (double)times->wall};
	if (most->comm[0])
		snprintf(ret->source, sizeof(ret->source), "%s", most->comm);
	else
		snprintf(ret->source, sizeof(ret->source), "irq %u", most->id);
	return ret->per_s >= MIN_PER_S;
}

/* Number of exits of the vCPU, and the most frequent reason. */
static void storm_put_exits(const struct vp_account *account, const struct vp_account_times *times,
			    struct vp_buffer *out)
{
	const struct vp_account_cost *most = NULL;
	char name[VP_EXIT_NAME_SIZE];

	vp_account_each_of (account, costs, times->vm, cost)
		if (cost->vcpu == times->vcpu && (!most || cost->count > most->count))
			most = cost;
	if (most && times->exits)
		vp_buffer_printf(out, "; %.0f exits per second, %.1f%% of them %s",
				 (double)times->exits * 1e9 / (double)times->wall,
				 100.0 * (double)most->count / (double)times->exits,
				 vp_exit_reason_name(most->vendor, most->reason, name));
}

static void storm_put_samples(const struct vp_account_times *times, uint64_t period_ns,
			      struct vp_buffer *out)
{
	double wall = (double)times->wall;

	if (!period_ns)
		return;
	vp_buffer_printf(out,
			 "; samples put %.1f%% of its time in the guest, accounting says %.1f%%: "
			 "sampling is biased during an interrupt storm, use 'vperf account'",
			 100.0 * (double)times->guest_samples * (double)period_ns / wall,
			 100.0 * (double)times->states[VP_STATE_GUEST] / wall);
}

void vp_irq_storm_notes(const struct vp_account *account, uint64_t period_ns,
			vp_sentences *sentences)
{
	struct vp_irq_storm storm;

	vp_vec_each (&account->times, times) {
		struct vp_buffer text = {0};
		if (!times->wall || !vp_irq_storm_find(account, times, &storm))
			continue;
		vp_buffer_printf(&text,
				 "VM '%s': interrupt storm on vCPU %u: %.0f per second (%s) while "
				 "it had a pCPU, %.1f%% of its time",
				 account->vms->at[times->vm].name, times->vcpu, storm.per_s,
				 storm.source, storm.percent);
		storm_put_exits(account, times, &text);
		storm_put_samples(times, period_ns, &text);
		vp_vec_push(sentences, vp_strdup(vp_buffer_text(&text)));
		vp_buffer_deinit(&text);
	}
}
