/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/diagnose.h"

#include <stdio.h>
#include <string.h>

#include "schema/exit_reason.h"

/* From this share of a VM's time on its vCPUs count as preempted. */
static const double preempted_share = 0.02;

struct loss {
	uint64_t ns, count, most;
	char who[160];
};

static void see(struct loss *loss, uint64_t ns, uint64_t count, const char *who)
{
	loss->ns += ns;
	loss->count += count;
	if (ns <= loss->most)
		return;
	loss->most = ns;
	snprintf(loss->who, sizeof(loss->who), "%s", who ? who : "");
}

/* Whether one of the words in `list` is `word`, or with `within` is in it. */
static bool has_word(const char *list, const char *word, bool within)
{
	char part[64];

	while (*list) {
		size_t size = strcspn(list, " ");
		snprintf(part, sizeof(part), "%.*s", (int)size, list);
		if (within ? strstr(word, part) != NULL : !strcmp(word, part))
			return true;
		list += size + (list[size] != 0);
	}
	return false;
}

static bool works_for(const char *comm, uint32_t pid)
{
	unsigned served;

	return (sscanf(comm, "vhost-%u", &served) == 1 ||
		sscanf(comm, "kvm-pit/%u", &served) == 1) &&
	       served == pid;
}

static unsigned class_of(const struct vp_account *account, const struct vp_account_theft *theft)
{
	uint32_t own = vp_vm_id(&account->vms->at[theft->vm]),
		 pid = account->vms->at[theft->vm].pid;

	switch (theft->kind) {
	case VP_BY_VCPU:
		return theft->owner == own ? VP_THIEF_SAME_VM : VP_THIEF_OTHER_VM;
	case VP_BY_TASK:
		if (theft->owner == own || works_for(theft->comm, pid))
			return VP_THIEF_VMM;
		return strcmp(theft->comm, "vperf") ? VP_THIEF_TASK : VP_THIEF_TOOL;
	case VP_BY_DEVICE:
	case VP_BY_SOFTIRQ:
		return VP_THIEF_DEVICE;
	case VP_BY_VECTOR:
		return VP_THIEF_VECTOR;
	default:
		return 0;
	}
}

static void measure_thieves(const struct vp_account_view *view, const struct vp_rule *rule,
			    uint32_t vm, struct loss *loss)
{
	char who[128];

	vp_vec_each (&view->account->thefts, theft) {
		if (theft->vm != vm || !vp_account_view_shows(view, vm, theft->vcpu) ||
		    !(class_of(view->account, theft) & rule->thieves))
			continue;
		const struct vp_vm *of = vp_vms_find(view->account->vms, theft->owner);
		if (theft->kind == VP_BY_VCPU)
			snprintf(who, sizeof(who), "vCPU %u of VM %s", theft->id,
				 of ? of->name : "?");
		else
			snprintf(who, sizeof(who), "%s/%u", theft->comm[0] ? theft->comm : "?",
				 theft->id);
		see(loss, theft->preempted + theft->waking + theft->irq, theft->count, who);
	}
}

static void measure_waking(const struct vp_account_view *view, uint32_t vm, struct loss *loss)
{
	vp_vec_each (&view->account->thefts, theft)
		if (theft->vm == vm && theft->kind == VP_BY_NOBODY &&
		    vp_account_view_shows(view, vm, theft->vcpu))
			see(loss, theft->waking, theft->count, NULL);
}

static void measure_times(const struct vp_account_view *view, const struct vp_rule *rule,
			  uint32_t vm, struct loss *loss)
{
	char who[32];

	vp_vec_each (&view->account->times, times) {
		bool quota = rule->loss == VP_LOSS_THROTTLED;
		if (times->vm != vm || !vp_account_view_shows(view, vm, times->vcpu))
			continue;
		snprintf(who, sizeof(who), "vCPU %u", times->vcpu);
		see(loss, quota ? times->states[VP_STATE_THROTTLED] : times->poll_wasted,
		    quota ? 0 : times->polls, who);
	}
}

/* Whether the rule is about exits of that function: those of rules that name it are theirs. */
static bool is_of_rule(const struct vp_rule *rule, const char *reason, const char *function)
{
	size_t count;
	const struct vp_rule *others = vp_rules(&count);

	if (rule->functions)
		return function && has_word(rule->functions, function, true);
	for (size_t i = 0; function && i < count; i++)
		if (others[i].functions && has_word(others[i].reasons, reason, false) &&
		    has_word(others[i].functions, function, true))
			return false;
	return true;
}

/* Of the exits of a reason in a VM: how many are in functions of the rule; and the function of most
 * of them. */
static double share_of_functions(const struct vp_table *places, const char *vm, const char *reason,
				 const struct vp_rule *rule, const char **who)
{
	size_t of_vm = vp_table_column_of(places, "vm"),
	       of_count = vp_table_column_of(places, "count");
	size_t of_function = vp_table_column_of(places, "function");
	size_t of_reason = vp_table_column_of(places, "reason");
	uint64_t all = 0, here = 0, most = 0;

	for (size_t row = 0; row < vp_table_rows(places); row++) {
		const union vp_cell *cells = &places->cells.at[row * places->columns.count];
		const char *function = cells[of_function].text;
		uint64_t count = cells[of_count].count;
		if (strcmp(cells[of_vm].text, vm) || strcmp(cells[of_reason].text, reason))
			continue;
		all += count;
		if (!is_of_rule(rule, reason, function))
			continue;
		here += count;
		if (count > most && function) {
			most = count;
			*who = function;
		}
	}
	return all ? (double)here / (double)all : !rule->functions;
}

static bool is_preempted(const struct vp_account_view *view, uint32_t vm)
{
	uint64_t lost = 0, wall = 0;
	uint32_t vcpus = 0;

	vp_vec_each (&view->account->times, times) {
		if (times->vm != vm)
			continue;
		vcpus += times->wall != 0;
		lost += times->states[VP_STATE_PREEMPTED];
		wall += times->wall;
	}
	return vcpus > 1 && (double)lost > preempted_share * (double)wall;
}

static void measure_exits(const struct vp_account_view *view, const struct vp_table *places,
			  const struct vp_rule *rule, uint32_t vm, struct loss *loss)
{
	bool preempted = is_preempted(view, vm);
	char name[VP_EXIT_NAME_SIZE];

	if ((rule->preempted == VP_RULE_IF_PREEMPTED && !preempted) ||
	    (rule->preempted == VP_RULE_UNLESS_PREEMPTED && preempted))
		return;
	vp_vec_each (&view->account->costs, cost) {
		const char *who = NULL;
		if (cost->vm != vm || !vp_account_view_shows(view, vm, cost->vcpu))
			continue;
		vp_exit_reason_name(cost->vendor, cost->reason, name);
		if (!has_word(rule->reasons, name, false))
			continue;
		double share =
		    share_of_functions(places, vp_account_view_vm(view, vm), name, rule, &who);
		uint64_t ns =
		    rule->loss == VP_LOSS_EXITS_VMM ? cost->vmm : cost->kernel + cost->vmm;
		if (rule->loss == VP_LOSS_EXITS &&
		    has_word("NPF EPT_VIOLATION EPT_MISCONFIG", name, false))
			ns = cost->kernel;
		see(loss, (uint64_t)(share * (double)ns), (uint64_t)(share * (double)cost->count),
		    who);
	}
}

static void measure(const struct vp_account_view *view, const struct vp_table *places,
		    const struct vp_rule *rule, uint32_t vm, struct loss *loss)
{
	switch (rule->loss) {
	case VP_LOSS_THIEVES:
		measure_thieves(view, rule, vm, loss);
		break;
	case VP_LOSS_WAKING:
		measure_waking(view, vm, loss);
		break;
	case VP_LOSS_THROTTLED:
	case VP_LOSS_POLL_WASTED:
		measure_times(view, rule, vm, loss);
		break;
	case VP_LOSS_EXITS:
	case VP_LOSS_EXITS_VMM:
		measure_exits(view, places, rule, vm, loss);
		break;
	}
}

static uint64_t wall_of(const struct vp_account_view *view, uint32_t vm)
{
	uint64_t wall = 0;

	vp_vec_each (&view->account->times, times)
		if (times->vm == vm && vp_account_view_shows(view, vm, times->vcpu))
			wall += times->wall;
	return wall;
}

static int by_time(const void *a, const void *b)
{
	const struct vp_finding *left = a, *right = b;

	return (left->ns < right->ns) - (left->ns > right->ns);
}

static void diagnose_vm(const struct vp_account_view *view, const struct vp_table *places,
			uint32_t vm, struct vp_diagnosis *ret)
{
	uint64_t wall = wall_of(view, vm);
	size_t count;
	const struct vp_rule *rules = vp_rules(&count);

	for (size_t i = 0; wall && i < count; i++) {
		struct loss loss = {0};
		measure(view, places, &rules[i], vm, &loss);
		double percent = 100 * (double)loss.ns / (double)wall;
		if (percent < rules[i].least)
			continue;
		uint32_t who = vp_intern_string(&ret->texts, loss.who);
		vp_vec_push(&ret->findings,
			    ((struct vp_finding){
				.rule = &rules[i],
				.vm = vm,
				.ns = loss.ns,
				.percent = percent,
				.count = loss.count,
				.most = loss.most,
				.who = loss.who[0] ? vp_intern_text(&ret->texts, who) : NULL}));
	}
}

void vp_diagnose(const struct vp_account_view *view, const struct vp_table *places,
		 struct vp_diagnosis *ret)
{
	*ret = (struct vp_diagnosis){0};
	for (uint32_t vm = 0; vm < view->account->vms->count; vm++)
		diagnose_vm(view, places, vm, ret);
	if (ret->findings.count)
		qsort(ret->findings.at, ret->findings.count, sizeof(*ret->findings.at), by_time);
}

void vp_diagnosis_deinit(struct vp_diagnosis *diagnosis)
{
	vp_vec_deinit(&diagnosis->findings);
	vp_intern_deinit(&diagnosis->texts);
}
