/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/account/exit_sums.h"

#include <math.h>

#include "base/macros.h"
#include "schema/account_grade.h"

void vp_exit_sums_add_cost(struct vp_exit_sums *sums, const struct vp_account_cost *cost)
{
	sums->count += cost->count;
	sums->ns += cost->total;
	sums->idle += cost->blocked;
	sums->stolen += cost->stolen + cost->waking;
	sums->variance += vp_exit_timing_variance(&cost->timing);
}

/* `ns` times the share of `part` in `whole`. */
static uint64_t exit_sums_share_of(uint64_t ns, uint64_t part, uint64_t whole)
{
	return whole ? (uint64_t)((double)ns * ((double)part / (double)whole)) : 0;
}

void vp_exit_sums_add_site(struct vp_exit_sums *sums, const struct vp_account *account,
			   const struct vp_account_exit_site *site)
{
	struct vp_exit_sums all = {0};

	sums->count += site->count;
	sums->ns += site->ns;
	sums->idle += site->idle;
	sums->stolen += site->stolen;
	if (account->sites_have_waits && account->grade != VP_ACCOUNT_SAMPLED)
		return;
	vp_account_each_of (account, costs, site->vm, cost) {
		if (cost->reason == site->reason && cost->vendor == site->vendor)
			vp_exit_sums_add_cost(&all, cost);
	}
	/* Exits of a site are timed with the same probability as all exits for the reason. */
	if (all.count)
		sums->variance += all.variance * (double)site->count / (double)all.count;
	if (account->sites_have_waits)
		return;
	sums->idle += exit_sums_share_of(site->ns, all.idle, all.ns);
	sums->stolen += exit_sums_share_of(site->ns, all.stolen, all.ns);
}

static void subtract(uint64_t *from, uint64_t part)
{
	*from -= part < *from ? part : *from;
}

void vp_exit_sums_subtract(struct vp_exit_sums *sums, const struct vp_exit_sums *part)
{
	subtract(&sums->count, part->count);
	subtract(&sums->ns, part->ns);
	subtract(&sums->idle, part->idle);
	subtract(&sums->stolen, part->stolen);
	sums->variance = fmax(sums->variance - part->variance, 0);
}

static int exit_sums_most_first(uint64_t a, uint64_t b)
{
	return (a < b) - (a > b);
}

int vp_exit_sums_order(const struct vp_exit_sums *a, const struct vp_exit_sums *b)
{
	int order = exit_sums_most_first(vp_exit_sums_work(a), vp_exit_sums_work(b));

	if (!order)
		order = exit_sums_most_first(a->ns, b->ns);
	return order ? order : exit_sums_most_first(a->count, b->count);
}

void vp_exit_sums_columns(const struct vp_account *account, struct vp_table *table)
{
	/* Tables by function and by address have only some of these columns. */
	static const char *const least[] = {"work_error_ns", "mean_ns",  "module",   "pid",
					    "work_mean_ns",  "total_ns", "steal_ns", "asleep_ns",
					    "process",       "what",     "detail",   NULL};

	table->least = least;
	vp_table_column_add(table, "count", "Count", "", VP_CELL_COUNT);
	vp_table_column_add(table, "work_ns", "Work", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "work_mean_ns", "Work/exit", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "asleep_ns", "Asleep", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "steal_ns", "Steal", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "total_ns", "Total", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "mean_ns", "Mean", "ns", VP_CELL_DURATION);
	vp_table_column_add_old(table, "idle_ns", VP_CELL_DURATION);
	if (account->grade == VP_ACCOUNT_SAMPLED)
		vp_table_column_add(table, "work_error_ns", "Work ±", "ns", VP_CELL_DURATION);
}

void vp_exit_sums_put(const struct vp_account *account, const struct vp_exit_sums *sums, bool timed,
		      struct vp_table *table)
{
	uint64_t work = vp_exit_sums_work(sums), count = sums->count ? sums->count : 1;
	const uint64_t times[] = {work,     work / count,     sums->idle, sums->stolen,
				  sums->ns, sums->ns / count, sums->idle};

	vp_table_count(table, sums->count);
	for (size_t i = 0; i < VP_ARRAY_SIZE(times); i++)
		vp_table_count(table, timed ? times[i] : VP_CELL_NO_COUNT);
	if (account->grade == VP_ACCOUNT_SAMPLED)
		vp_table_count(table, timed ? (uint64_t)vp_account_error(sums->variance)
					    : VP_CELL_NO_COUNT);
}
