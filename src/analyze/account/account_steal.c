/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table of steal: the thieves, the quota, and unattributed time. */
#include "analyze/account/account.h"
#include "analyze/account/account_tables.h"
#include "analyze/common/health.h"
#include "analyze/common/table.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "schema/account_terms.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "store/cgroups.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Number of VMs whose totals are printed. */
enum { MAX_TOTALS = 8 };

struct row {
	uint32_t vm, vcpu;
	const char *kind, *thief, *cgroup;
	uint64_t taken, waking, count;
	uint64_t wall;
};

typedef VP_VEC(struct row) thief_rows;

static const char *account_steal_keep(struct vp_account_view *view, char *text)
{
	uint32_t number = vp_intern_string(&view->texts, text);

	free(text);
	return vp_intern_text(&view->texts, number);
}

static const char *account_steal_kind_of(const struct vp_account_theft *theft)
{
	static const char *const names[] = {
	    [VP_BY_VCPU] = "vcpu",  [VP_BY_TASK] = "task",       [VP_BY_NOBODY] = "idle",
	    [VP_BY_DEVICE] = "irq", [VP_BY_SOFTIRQ] = "softirq", [VP_BY_UNKNOWN] = "unknown",
	    [VP_BY_VECTOR] = "irq", [VP_BY_MANY] = "others"};

	if (theft->kind == VP_BY_TASK && theft->flags & 1)
		return strncmp(theft->comm, "kworker/", 8) ? "kthread" : "kworker";
	return theft->kind < VP_ARRAY_SIZE(names) && names[theft->kind] ? names[theft->kind]
									: "unknown";
}

/* The VM that a kernel thread works for, from its name: vhost-PID, kvm-pit/PID. */
static const struct vp_vm *served_vm(const struct vp_account_view *view, const char *comm)
{
	unsigned pid;

	if (sscanf(comm, "vhost-%u", &pid) == 1 || sscanf(comm, "kvm-pit/%u", &pid) == 1)
		return vp_account_vm(view->account, pid);
	return NULL;
}

static const char *task_text(struct vp_account_view *view, const struct vp_account_theft *theft)
{
	const struct vp_vm *own = theft->owner ? vp_account_vm(view->account, theft->owner) : NULL;
	const struct vp_vm *served = served_vm(view, theft->comm);
	const char *comm = theft->comm[0] ? theft->comm : "?";

	if (own)
		return account_steal_keep(view,
					  vp_format("%s/%u of VM %s", comm, theft->id, own->name));
	if (served)
		return account_steal_keep(
		    view, vp_format("%s/%u for VM %s", comm, theft->id, served->name));
	return account_steal_keep(view, vp_format("%s/%u", comm, theft->id));
}

static const char *thief_text(struct vp_account_view *view, const struct vp_account_theft *theft)
{
	const struct vp_vm *vm = vp_account_vm(view->account, theft->owner);

	switch (theft->kind) {
	case VP_BY_VCPU:
		return account_steal_keep(
		    view, vp_format("vCPU %u of VM %s", theft->id, vm ? vm->name : "?"));
	case VP_BY_TASK:
		return task_text(view, theft);
	case VP_BY_NOBODY:
		return "none: the pCPU was idle";
	case VP_BY_DEVICE:
	case VP_BY_SOFTIRQ:
	case VP_BY_VECTOR:
		return account_steal_keep(view, theft->comm[0]
						    ? vp_format("%s/%u", theft->comm, theft->id)
						    : vp_format("%u", theft->id));
	case VP_BY_MANY:
		return "thieves beyond the table";
	default:
		return "unknown: more threads ran than are tracked";
	}
}

static void add_thieves(struct vp_account_view *view, const struct vp_account_times *times,
			thief_rows *rows)
{
	uint64_t named = 0;
	const uint64_t *states = times->states;

	vp_account_each_of (view->account, thefts, times->vm, theft) {
		if (theft->vcpu != times->vcpu)
			continue;
		const char *path =
		    view->cgroups ? vp_cgroups_path(view->cgroups, theft->cgroup) : NULL;
		vp_vec_push(rows, ((struct row){.vm = theft->vm,
						.vcpu = theft->vcpu,
						.kind = account_steal_kind_of(theft),
						.thief = thief_text(view, theft),
						.cgroup = path,
						.taken = theft->preempted + theft->irq,
						.waking = theft->waking,
						.count = theft->count,
						.wall = times->wall}));
		named += theft->preempted + theft->irq + theft->waking;
	}
	if (states[VP_STATE_THROTTLED])
		vp_vec_push(rows, ((struct row){.vm = times->vm,
						.vcpu = times->vcpu,
						.kind = "throttled",
						.thief = "cgroup CPU quota",
						.taken = states[VP_STATE_THROTTLED],
						.count = VP_CELL_NO_COUNT,
						.wall = times->wall}));
	uint64_t all = states[VP_STATE_PREEMPTED] + states[VP_STATE_WAKING] + states[VP_STATE_IRQ];
	if (all > named)
		vp_vec_push(rows, ((struct row){.vm = times->vm,
						.vcpu = times->vcpu,
						.kind = "unfinished",
						.thief = "unfinished or unknown",
						.taken = all - named,
						.count = VP_CELL_NO_COUNT,
						.wall = times->wall}));
}

static int by_stolen_time(const void *a, const void *b)
{
	const struct row *left = a, *right = b;
	uint64_t mine = left->taken + left->waking, other = right->taken + right->waking;

	if (left->vm != right->vm)
		return left->vm < right->vm ? -1 : 1;
	if (left->vcpu != right->vcpu)
		return left->vcpu < right->vcpu ? -1 : 1;
	return (mine < other) - (mine > other);
}

static void add_thief_row(const struct vp_account_view *view, const struct row *row,
			  struct vp_table *table)
{
	uint64_t all = row->taken + row->waking;

	vp_account_put_vcpu(view, row->vm, row->vcpu, table);
	vp_table_text(table, row->kind);
	vp_table_text(table, row->thief);
	vp_table_text(table, row->cgroup);
	vp_table_count(table, row->taken);
	vp_table_count(table, row->waking);
	vp_table_count(table, all);
	vp_table_percent(table, row->wall ? 100.0 * (double)all / (double)row->wall : 0);
	vp_table_count(table, row->count);
	vp_table_count(table, row->taken);
}

void vp_account_steal_table(struct vp_account_view *view, struct vp_table *table)
{
	static const char *const least[] = {"waking_ns", "preempted_ns", "cgroup",
					    "count",     "kind",         NULL};
	thief_rows rows = {0};

	table->least = least;
	vp_account_add_vcpu_columns(table);
	vp_table_column_add(table, "kind", "Kind", "", VP_CELL_TEXT);
	vp_table_column_add(table, "thief", "Thief", "", VP_CELL_TEXT);
	vp_table_column_add(table, "cgroup", "Cgroup", "", VP_CELL_TEXT);
	vp_table_column_add(table, "preempted_ns", "Preempted", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "waking_ns", "Waking", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "ns", "Total", "ns", VP_CELL_DURATION);
	vp_table_column_add(table, "percent", "Percent", "%", VP_CELL_PERCENT);
	vp_table_column_add(table, "count", "Count", "", VP_CELL_COUNT);
	vp_table_column_add_old(table, "taken_ns", VP_CELL_DURATION);
	vp_vec_each (&view->account->times, times)
		if (times->wall && vp_account_view_shows(view, times->vm, times->vcpu))
			add_thieves(view, times, &rows);
	if (rows.count)
		qsort(rows.at, rows.count, sizeof(*rows.at), by_stolen_time);
	for (size_t i = 0; i < rows.count && (!view->limit || i < view->limit); i++)
		add_thief_row(view, &rows.at[i], table);
	vp_vec_deinit(&rows);
}

struct vm_steal {
	uint32_t vm;
	uint64_t ns, wall;
};

static int account_steal_by_time(const void *a, const void *b)
{
	const struct vm_steal *left = a, *right = b;

	return (left->ns < right->ns) - (left->ns > right->ns);
}

void vp_account_steal_totals(const struct vp_account_view *view, vp_sentences *sentences)
{
	const struct vp_account *account = view->account;
	VP_VEC(struct vm_steal) vms = {0};
	char time[VP_DURATION_SIZE];

	for (uint32_t vm = 0; vm < account->vms->count; vm++) {
		struct vm_steal steal = {.vm = vm};
		vp_account_each_of (account, times, vm, times)
			if (vp_account_view_shows(view, vm, times->vcpu)) {
				steal.wall += times->wall;
				steal.ns += times->states[VP_STATE_WAKING] +
					    times->states[VP_STATE_PREEMPTED] +
					    times->states[VP_STATE_THROTTLED] +
					    times->states[VP_STATE_IRQ];
			}
		if (steal.ns)
			vp_vec_push(&vms, steal);
	}
	if (vms.count)
		qsort(vms.at, vms.count, sizeof(*vms.at), account_steal_by_time);
	for (size_t i = 0; i < vms.count && i < MAX_TOTALS; i++)
		vp_vec_push(sentences,
			    vp_format("VM %s: %s of steal, %.2f%% of its vCPUs' time",
				      vp_account_view_vm(view, vms.at[i].vm),
				      vp_text_duration(vms.at[i].ns, time),
				      100 * (double)vms.at[i].ns / (double)vms.at[i].wall));
	if (vms.count > MAX_TOTALS)
		vp_vec_push(sentences,
			    vp_format("%zu more VMs have steal", vms.count - MAX_TOTALS));
	vp_vec_deinit(&vms);
}
