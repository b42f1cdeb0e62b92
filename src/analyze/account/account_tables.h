/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of vCPU accounting. Texts in cells belong to the view, the account or the VMs. */
#ifndef VP_ANALYZE_ACCOUNT_ACCOUNT_TABLES_H
#define VP_ANALYZE_ACCOUNT_ACCOUNT_TABLES_H

#include "analyze/account/account.h"
#include "analyze/common/health.h"
#include "analyze/common/naming.h"
#include "analyze/common/table.h"
#include "analyze/common/window.h"
#include "base/intern.h"
#include "base/macros.h"
#include "store/cgroups.h"

struct vp_account_view {
	const struct vp_account *account;
	const vp_cgroups *cgroups; /* or NULL */
	double seconds;            /* duration for rates */
	bool *chosen;              /* by number of the VM; NULL: all */
	size_t n_chosen;
	bool has_vcpu;
	uint64_t vcpu;
	uint64_t limit;          /* maximum number of rows; 0: all */
	struct vp_window window; /* for vp_account_events_table() */
	struct vp_intern texts;
};

enum vp_exits_by {
	VP_EXITS_BY_REASON,
	VP_EXITS_BY_FUNCTION,
	VP_EXITS_BY_PROCESS,
	VP_EXITS_BY_ADDRESS
};

/* Selects the VM named `vm` (or with that pid); NULL: all. Errors: not found. */
struct vp_error *vp_account_view_init(struct vp_account_view *view,
				      const struct vp_account *account,
				      const char *vm) VP_MUST_CHECK;
void vp_account_view_deinit(struct vp_account_view *view);

/* "guest", "kernel", …; `state`: enum vp_state, below VP_STATES. */
const char *vp_state_name(size_t state);
/* Columns vm, vcpu, state, ns, percent: one row per state that occurred. */
void vp_account_states_table(struct vp_account_view *view, struct vp_table *table);
/* One row per vCPU: percent of each state, rates of events. */
void vp_account_vcpus_table(struct vp_account_view *view, struct vp_table *table);
/* Every span of the vCPUs' time, in order of its end; start in ns since `start`. Errors: the
 * recording in `directory` has no spans. */
struct vp_error *vp_account_events_table(struct vp_account_view *view, const char *directory,
					 uint64_t start, struct vp_table *table) VP_MUST_CHECK;
/* Table of thieves per vCPU. */
void vp_account_steal_table(struct vp_account_view *view, struct vp_table *table);
/* A sentence per VM with its total steal, largest first; at most the first eight VMs. */
void vp_account_steal_totals(const struct vp_account_view *view, vp_sentences *sentences);
/* Exits and their cost, by reason. */
void vp_account_exits_table(struct vp_account_view *view, struct vp_table *table);
/* … by guest function or process, and reason. */
void vp_account_sites_table(struct vp_account_view *view, const struct vp_naming *naming,
			    enum vp_exits_by by, struct vp_table *table);
/* … exits to memory, by guest physical address. */
void vp_account_addresses_table(struct vp_account_view *view, struct vp_table *table);

/* For the tables: whether the vCPU is selected; `vcpu` may be VP_NONE. */
bool vp_account_view_shows(const struct vp_account_view *view, uint32_t vm, uint32_t vcpu);
/* Name of an exit reason, owned by the view. */
const char *vp_account_view_reason(struct vp_account_view *view, uint32_t vendor, uint32_t reason);
/* Name of the VM with index `vm`, owned by the account. */
static inline const char *vp_account_view_vm(const struct vp_account_view *view, uint32_t vm)
{
	return view->account->vms->at[vm].name;
}
/* Adds the columns that identify a vCPU, and the cells of a row. */
void vp_account_add_vcpu_columns(struct vp_table *table);
void vp_account_put_vcpu(const struct vp_account_view *view, uint32_t vm, uint32_t vcpu,
			 struct vp_table *table);

#endif
