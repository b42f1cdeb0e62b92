/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Time of VM exits: work of the hypervisor and the VMM, separate from idle and stolen time. */
#ifndef VP_ANALYZE_ACCOUNT_EXIT_SUMS_H
#define VP_ANALYZE_ACCOUNT_EXIT_SUMS_H

#include "analyze/account/account.h"
#include "analyze/common/table.h"

/* Exits of a row, and their time; work is the time without the two waits. */
struct vp_exit_sums {
	uint64_t count, ns, idle, stolen;
	double variance; /* of ns, due to sampled timing (schema/account_grade.h) */
};

static inline uint64_t vp_exit_sums_work(const struct vp_exit_sums *sums)
{
	uint64_t waits = sums->idle + sums->stolen;

	return sums->ns > waits ? sums->ns - waits : 0;
}

/* Adds the exits for a reason. */
void vp_exit_sums_add_cost(struct vp_exit_sums *sums, const struct vp_account_cost *cost);
/* Adds the exits of a site. Recordings before 0.3 lack its waits: they are assigned in proportion
 * to all of the VM's exits for that reason. */
void vp_exit_sums_add_site(struct vp_exit_sums *sums, const struct vp_account *account,
			   const struct vp_account_exit_site *site);
/* Subtracts `part`; results are at least 0. */
void vp_exit_sums_subtract(struct vp_exit_sums *sums, const struct vp_exit_sums *part);
/* Sort order: most work, then most time; 0: compare the rows' keys. */
int vp_exit_sums_order(const struct vp_exit_sums *a, const struct vp_exit_sums *b);
/* Columns "count" to "mean_ns", and the cells of a row; without `timed` only the count. With
 * VP_ACCOUNT_SAMPLED there is a column of errors. */
void vp_exit_sums_columns(const struct vp_account *account, struct vp_table *table);
void vp_exit_sums_put(const struct vp_account *account, const struct vp_exit_sums *sums, bool timed,
		      struct vp_table *table);

#endif
