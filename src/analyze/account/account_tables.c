/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/account_tables.h"

#include <string.h>

#include "analyze/account/exit_sums.h"
#include "analyze/common/filter.h"
#include "analyze/common/key_set.h"
#include "base/vec.h"
#include "schema/account_grade.h"
#include "schema/account_terms.h"
#include "schema/exit_reason.h"

static const char *const state_names[VP_STATES] = {
    [VP_STATE_GUEST] = "guest",         [VP_STATE_KERNEL] = "kernel",
    [VP_STATE_POLL] = "poll",           [VP_STATE_VMM] = "vmm",
    [VP_STATE_HALTED] = "halted",       [VP_STATE_WAITING] = "waiting",
    [VP_STATE_WAKING] = "waking",       [VP_STATE_PREEMPTED] = "preempted",
    [VP_STATE_THROTTLED] = "throttled", [VP_STATE_IRQ] = "interrupted"};

const char *vp_state_name(size_t state)
{
	return state_names[state];
}

struct vp_error *vp_account_view_init(struct vp_account_view *view,
				      const struct vp_account *account, const char *vm)
{
	*view = (struct vp_account_view){.account = account, .n_chosen = account->vms->count};
	return vm ? vp_filter_choose_vms(account->vms, vm, &view->chosen) : NULL;
}

void vp_account_view_deinit(struct vp_account_view *view)
{
	free(view->chosen);
	vp_intern_deinit(&view->texts);
}

bool vp_account_view_shows(const struct vp_account_view *view, uint32_t vm, uint32_t vcpu)
{
	bool chosen = !view->chosen || (vm < view->n_chosen && view->chosen[vm]);

	return chosen && (!view->has_vcpu || vcpu == VP_NONE || vcpu == view->vcpu);
}

static double account_tables_percent_of(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

static int by_vcpu(const void *a, const void *b)
{
	const struct vp_account_times *left = *(void *const *)a, *right = *(void *const *)b;

	if (left->vm != right->vm)
		return left->vm < right->vm ? -1 : 1;
	return (left->vcpu > right->vcpu) - (left->vcpu < right->vcpu);
}

typedef VP_VEC(const struct vp_account_times *) vp_times;

/* The selected vCPUs with accounting, sorted. */
static void shown_times(const struct vp_account_view *view, vp_times *ret)
{
	vp_vec_each (&view->account->times, times)
		if (times->wall && vp_account_view_shows(view, times->vm, times->vcpu))
			vp_vec_push(ret, times);
	if (ret->count)
		qsort(ret->at, ret->count, sizeof(*ret->at), by_vcpu);
}

void vp_account_add_vcpu_columns(struct vp_table *table)
{
	vp_table_column_add(table, "vm", "VM", "", VP_CELL_TEXT);
	vp_table_column_add(table, "vcpu", "vCPU", "", VP_CELL_COUNT);
}

void vp_account_put_vcpu(const struct vp_account_view *view, uint32_t vm, uint32_t vcpu,
			 struct vp_table *table)
{
	vp_table_text(table, vp_account_view_vm(view, vm));
	vp_table_count(table, vcpu);
}

void vp_account_states_table(struct vp_account_view *view, struct vp_table *table)
{
	vp_times shown = {0};

	vp_account_add_vcpu_columns(table);
	vp_table_column_add(table, "state", "State", "", VP_CELL_TEXT);
	vp_table_column_add(table, "ns", "Time", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "percent", "Percent", "%", VP_CELL_PERCENT);
	shown_times(view, &shown);
	vp_vec_each (&shown, times)
		for (size_t state = 0; state < VP_STATES; state++) {
			if (!(*times)->states[state])
				continue;
			vp_account_put_vcpu(view, (*times)->vm, (*times)->vcpu, table);
			vp_table_text(table, state_names[state]);
			vp_table_count(table, (*times)->states[state]);
			vp_table_percent(table, account_tables_percent_of((*times)->states[state],
									  (*times)->wall));
		}
	vp_vec_deinit(&shown);
}

static uint64_t rate(uint64_t count, uint64_t wall)
{
	return wall ? (uint64_t)((double)count * 1e9 / (double)wall + 0.5) : 0;
}

/* User-space part of the guest time: guest time divided in proportion to samples. */
static double user_percent(const struct vp_account_times *times)
{
	return account_tables_percent_of(times->user_samples, times->guest_samples) *
	       account_tables_percent_of(times->states[VP_STATE_GUEST], times->wall) / 100;
}

static bool has_samples(const vp_times *shown)
{
	vp_vec_each (shown, times)
		if ((*times)->guest_samples)
			return true;
	return false;
}

void vp_account_vcpus_table(struct vp_account_view *view, struct vp_table *table)
{
	static const char *const least[] = {
	    "poll_wasted_ns", "polls",      "guest_error", "wakeups_per_s",
	    "guest_kernel",   "guest_user", "wall_ns",     NULL};
	vp_times shown = {0};

	table->least = least;
	shown_times(view, &shown);
	bool sampled = has_samples(&shown);

	vp_account_add_vcpu_columns(table);
	vp_table_column_add(table, "wall_ns", "Time", "ns", VP_CELL_DURATION);
	for (size_t state = 0; state < VP_STATES; state++)
		vp_table_column_add(table, state_names[state], state_names[state], "%",
				    VP_CELL_PERCENT);
	if (sampled) {
		vp_table_column_add(table, "guest_user", "guest user", "%", VP_CELL_PERCENT);
		vp_table_column_add(table, "guest_kernel", "guest kernel", "%", VP_CELL_PERCENT);
	}
	bool estimated = view->account->grade != VP_ACCOUNT_EXACT;
	if (estimated)
		vp_table_column_add(table, "guest_error", "guest ±", "%", VP_CELL_PERCENT);
	vp_table_column_add(table, "exits_per_s", "Exits/s", "1/s", VP_CELL_COUNT);
	vp_table_column_add(table, "wakeups_per_s", "Wakeups/s", "1/s", VP_CELL_COUNT);
	vp_table_column_add(table, "preemptions_per_s", "Preempted/s", "1/s", VP_CELL_COUNT);
	vp_table_column_add(table, "polls", "Polls", "", VP_CELL_COUNT);
	vp_table_column_add(table, "poll_wasted_ns", "Poll wasted", "ns", VP_CELL_DURATION);
	vp_vec_each (&shown, item) {
		const struct vp_account_times *times = *item;
		vp_account_put_vcpu(view, times->vm, times->vcpu, table);
		vp_table_count(table, times->wall);
		for (size_t state = 0; state < VP_STATES; state++)
			vp_table_percent(
			    table, account_tables_percent_of(times->states[state], times->wall));
		if (sampled) {
			double user = user_percent(times);
			vp_table_percent(table, user);
			vp_table_percent(table, account_tables_percent_of(
						    times->states[VP_STATE_GUEST], times->wall) -
						    user);
		}
		if (estimated)
			vp_table_percent(table, 100 * vp_account_guest_error(view->account, times) /
						    (double)times->wall);
		vp_table_count(table, rate(times->exits, times->wall));
		vp_table_count(table, rate(times->wakeups, times->wall));
		vp_table_count(table, rate(times->preemptions, times->wall));
		vp_table_count(table, times->polls);
		vp_table_count(table, times->poll_wasted);
	}
	vp_vec_deinit(&shown);
}

static int by_work(const void *a, const void *b)
{
	struct vp_exit_sums left = {0}, right = {0};

	vp_exit_sums_add_cost(&left, a);
	vp_exit_sums_add_cost(&right, b);
	return vp_exit_sums_order(&left, &right);
}

typedef VP_VEC(struct vp_account_cost) vp_costs;

/* Costs by VM and reason, summed over the selected vCPUs; sorted by work, descending. */
static void shown_costs(const struct vp_account_view *view, vp_costs *ret)
{
	struct key {
		uint32_t vm, reason, vendor;
	};
	struct vp_key_set keys = {.key_size = sizeof(struct key)};

	vp_vec_each (&view->account->costs, cost) {
		const struct key key = {cost->vm, cost->reason, cost->vendor};
		bool inserted;
		if (!vp_account_view_shows(view, cost->vm, cost->vcpu))
			continue;
		uint32_t number = vp_key_set_add(&keys, &key, &inserted);
		if (inserted)
			vp_vec_push(ret, *cost);
		else
			vp_account_cost_add(&ret->at[number], cost);
	}
	vp_key_set_deinit(&keys);
	if (ret->count)
		qsort(ret->at, ret->count, sizeof(*ret->at), by_work);
}

static void exit_columns(const struct vp_account *account, struct vp_table *table)
{
	static const struct {
		const char *key, *header;
	} times[] = {{"work_ns", "Work"},     {"work_mean_ns", "Work/exit"},
		     {"kernel_ns", "Kernel"}, {"poll_ns", "Poll"},
		     {"vmm_ns", "VMM"},       {"asleep_ns", "Asleep"},
		     {"steal_ns", "Steal"},   {"waking_ns", "Waking"},
		     {"total_ns", "Total"},   {"mean_ns", "Mean"},
		     {"p50_ns", "p50"},       {"p99_ns", "p99"},
		     {"max_ns", "Max"},       {"blocked_ns", NULL},
		     {"stolen_ns", NULL}};
	static const char *const least[] = {
	    "work_error_ns", "poll_ns",  "waking_ns", "p50_ns",    "mean_ns",
	    "kernel_ns",     "vmm_ns",   "p99_ns",    "per_s",     "max_ns",
	    "work_mean_ns",  "total_ns", "steal_ns",  "asleep_ns", NULL};

	table->least = least;
	vp_table_column_add(table, "vm", "VM", "", VP_CELL_TEXT);
	vp_table_column_add(table, "reason", "Reason", "", VP_CELL_TEXT);
	vp_table_column_add(table, "count", "Count", "", VP_CELL_COUNT);
	vp_table_column_add(table, "per_s", "Exits/s", "1/s", VP_CELL_COUNT);
	for (size_t i = 0; i < VP_ARRAY_SIZE(times); i++)
		vp_table_column_add(table, times[i].key, times[i].header, "ns", VP_CELL_DURATION);
	if (account->grade == VP_ACCOUNT_SAMPLED)
		vp_table_column_add(table, "work_error_ns", "Work ±", "ns", VP_CELL_DURATION);
}

const char *vp_account_view_reason(struct vp_account_view *view, uint32_t vendor, uint32_t reason)
{
	char name[VP_EXIT_NAME_SIZE];
	uint32_t text = vp_intern_string(&view->texts, vp_exit_reason_name(vendor, reason, name));

	return vp_intern_text(&view->texts, text);
}

void vp_account_exits_table(struct vp_account_view *view, struct vp_table *table)
{
	vp_costs shown = {0};

	exit_columns(view->account, table);
	shown_costs(view, &shown);
	for (size_t i = 0; i < shown.count && (!view->limit || i < view->limit); i++) {
		const struct vp_account_cost *cost = &shown.at[i];
		uint64_t work = vp_account_cost_work(cost), count = cost->count ? cost->count : 1;
		const uint64_t times[] = {work,
					  work / count,
					  cost->kernel,
					  cost->poll,
					  cost->vmm,
					  cost->blocked,
					  cost->stolen + cost->waking,
					  cost->waking,
					  cost->total,
					  cost->total / count,
					  vp_account_quantile(cost, 0.5),
					  vp_account_quantile(cost, 0.99),
					  cost->max,
					  cost->blocked,
					  cost->stolen};
		vp_table_text(table, vp_account_view_vm(view, cost->vm));
		vp_table_text(table, vp_account_view_reason(view, cost->vendor, cost->reason));
		vp_table_count(table, cost->count);
		vp_table_count(table, view->seconds > 0
					  ? (uint64_t)((double)cost->count / view->seconds + 0.5)
					  : 0);
		for (size_t j = 0; j < VP_ARRAY_SIZE(times); j++)
			vp_table_count(table, vp_exit_reason_has_time(cost->reason)
						  ? times[j]
						  : VP_CELL_NO_COUNT);
		if (view->account->grade == VP_ACCOUNT_SAMPLED)
			vp_table_count(table, (uint64_t)vp_account_error(
						  vp_exit_timing_variance(&cost->timing)));
	}
	vp_vec_deinit(&shown);
}
