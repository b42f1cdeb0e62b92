/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/diagnose.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/account/account.h"
#include "analyze/account/account_seconds.h"
#include "analyze/account/irq_storm.h"
#include "analyze/account/overcommit.h"
#include "analyze/common/table.h"
#include "analyze/common/window.h"
#include "analyze/model/tlb_cost.h"
#include "analyze/report/diagnose_commands.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/text.h"
#include "schema/account_terms.h"
#include "schema/exit_reason.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "stats/mean.h"
#include "store/cgroups.h"
#include "store/packet.h"

/* From this share of preempted time on, a VM's vCPUs count as preempted. */
static const double preempted_share = 0.02;

/* An interrupt storm on a vCPU. */
struct storm {
	uint32_t vm, vcpu, kind, id;
};

/* Input of findings, in addition to the account. */
struct evidence {
	const struct vp_account_view *view;  /* of the whole recording, or of a second of it */
	const struct vp_account_view *whole; /* of the whole recording */
	const struct vp_table *exit_sites;
	/* Per VM, by name: its rows in `exit_sites`, as a chain of row + 1. */
	struct vp_intern names;
	VP_VEC(uint32_t) first, next;
	VP_VEC(struct storm) storms; /* of the current VM */
};

struct loss {
	uint64_t ns, count;
	struct vp_intern names;  /* of thieves, or of vCPUs with the loss */
	VP_VEC(uint64_t) shares; /* ns per name */
};

static void diagnose_see(struct loss *loss, uint64_t ns, uint64_t count, const char *who)
{
	loss->ns += ns;
	loss->count += count;
	if (!who)
		return;
	uint32_t name = vp_intern_string(&loss->names, who);
	if (name == loss->shares.count)
		vp_vec_push(&loss->shares, 0);
	loss->shares.at[name] += ns;
}

static void diagnose_forget(struct loss *loss)
{
	vp_intern_deinit(&loss->names);
	vp_vec_deinit(&loss->shares);
}

/* The top cause, and its time; NULL: unknown. */
static const char *most_of(const struct loss *loss, uint64_t *ns)
{
	const char *who = NULL;

	*ns = 0;
	for (uint32_t i = 0; i < loss->shares.count; i++) {
		if (loss->shares.at[i] <= *ns)
			continue;
		*ns = loss->shares.at[i];
		who = vp_intern_text(&loss->names, i);
	}
	return who;
}

/* Whether `word` is one of the words in `list`, or with `within` contains one of them. */
static bool diagnose_has_word(const char *list, char between, const char *word, bool within)
{
	const char separators[] = {between, 0};
	char part[64];

	while (*list) {
		size_t size = strcspn(list, separators);
		snprintf(part, sizeof(part), "%.*s", (int)size, list);
		if (within ? strstr(word, part) != NULL : !strcmp(word, part))
			return true;
		list += size + (list[size] != 0);
	}
	return false;
}

static bool has_reason(const struct vp_rule *rule, const char *reason)
{
	return diagnose_has_word(rule->reasons, ' ', reason, false);
}

/* Whether a kernel thread does deferred work of interrupts. */
static bool is_for_interrupts(const struct vp_account_theft *theft)
{
	return theft->flags & 1 &&
	       (!strncmp(theft->comm, "ksoftirqd/", 10) || !strncmp(theft->comm, "irq/", 4));
}

static bool works_for(const char *comm, uint32_t pid)
{
	unsigned served;

	return (sscanf(comm, "vhost-%u", &served) == 1 ||
		sscanf(comm, "kvm-pit/%u", &served) == 1) &&
	       served == pid;
}

static bool is_of_storm(const struct evidence *evidence, const struct vp_account_theft *theft)
{
	vp_vec_each (&evidence->storms, storm)
		if (storm->vm == theft->vm && storm->vcpu == theft->vcpu &&
		    storm->kind == theft->kind && storm->id == theft->id)
			return true;
	return false;
}

static unsigned diagnose_class_of(const struct evidence *evidence,
				  const struct vp_account_theft *theft)
{
	const struct vp_account *account = evidence->view->account;
	uint32_t own = vp_vm_id(&account->vms->at[theft->vm]),
		 pid = account->vms->at[theft->vm].pid;

	switch (theft->kind) {
	case VP_BY_VCPU:
		return theft->owner == own ? VP_THIEF_SAME_VM : VP_THIEF_OTHER_VM;
	case VP_BY_TASK:
		if (theft->owner == own || works_for(theft->comm, pid))
			return VP_THIEF_VMM;
		if (is_for_interrupts(theft))
			return VP_THIEF_DEVICE;
		return strcmp(theft->comm, "vperf") ? VP_THIEF_TASK : VP_THIEF_TOOL;
	case VP_BY_DEVICE:
	case VP_BY_SOFTIRQ:
		return is_of_storm(evidence, theft) ? VP_THIEF_STORM : VP_THIEF_DEVICE;
	case VP_BY_VECTOR:
		return is_of_storm(evidence, theft) ? VP_THIEF_STORM : VP_THIEF_VECTOR;
	default:
		return 0;
	}
}

/* The part of a theft that belongs to the rule, in ns and in number: theft by vCPUs of other VMs is
 * divided between two rules. */
static uint64_t part_of(const struct vp_rule *rule, unsigned class,
			const struct vp_account_theft *theft, uint64_t *count)
{
	uint64_t all = theft->preempted + theft->waking + theft->irq;
	uint64_t overcommitted = class == VP_THIEF_OTHER_VM && theft->overcommitted < all
				     ? theft->overcommitted
				 : class == VP_THIEF_OTHER_VM ? all
							      : 0;
	uint64_t ns = rule->loss == VP_LOSS_OVERCOMMIT ? overcommitted : all - overcommitted;

	*count = all ? (uint64_t)((double)theft->count * ((double)ns / (double)all) + 0.5)
		     : theft->count;
	return ns;
}

static void measure_thieves(const struct evidence *evidence, const struct vp_rule *rule,
			    uint32_t vm, struct loss *loss)
{
	const struct vp_account_view *view = evidence->view;
	char who[128];

	vp_account_each_of (view->account, thefts, vm, theft) {
		unsigned class;
		uint64_t count;
		if (!vp_account_view_shows(view, vm, theft->vcpu) ||
		    !((class = diagnose_class_of(evidence, theft)) & rule->thieves))
			continue;
		const struct vp_vm *of = vp_account_vm(view->account, theft->owner);
		if (theft->kind == VP_BY_VCPU)
			snprintf(who, sizeof(who), "vCPU %u of VM %s", theft->id,
				 of ? of->name : "?");
		else
			snprintf(who, sizeof(who), "%s/%u", theft->comm[0] ? theft->comm : "?",
				 theft->id);
		uint64_t ns = part_of(rule, class, theft, &count);
		diagnose_see(loss, ns, count, who);
	}
}

static void measure_waking(const struct vp_account_view *view, uint32_t vm, struct loss *loss)
{
	vp_account_each_of (view->account, thefts, vm, theft)
		if (theft->kind == VP_BY_NOBODY && vp_account_view_shows(view, vm, theft->vcpu))
			diagnose_see(loss, theft->waking, theft->count, NULL);
}

static void measure_times(const struct vp_account_view *view, const struct vp_rule *rule,
			  uint32_t vm, struct loss *loss)
{
	char who[32];

	vp_account_each_of (view->account, times, vm, times) {
		bool quota = rule->loss == VP_LOSS_THROTTLED;
		if (!vp_account_view_shows(view, vm, times->vcpu))
			continue;
		snprintf(who, sizeof(who), "vCPU %u", times->vcpu);
		diagnose_see(loss, quota ? times->states[VP_STATE_THROTTLED] : times->poll_wasted,
			     quota ? 0 : times->polls, who);
	}
}

/* Exits for a reason at a function of the VM's guest. */
struct site {
	const char *reason, *function, *detail; /* function, detail: NULL: unknown */
	double ns, count;
};

/* Whether the rule names these exits, by detail or by function. */
static bool names(const struct vp_rule *rule, const struct site *site)
{
	if (rule->details &&
	    (diagnose_has_word(rule->details, ',', site->reason, false) ||
	     (site->detail && diagnose_has_word(rule->details, ',', site->detail, false))))
		return true;
	return rule->functions && site->function && !site->detail &&
	       diagnose_has_word(rule->functions, ' ', site->function, true);
}

/* Whether these exits to memory belong to the rule. */
static bool is_of_memory(const struct vp_rule *rule, const struct site *site)
{
	bool device = site->detail ? !strncmp(site->detail, "MMIO ", 5)
				   : !strcmp(site->reason, "EPT_MISCONFIG");

	return device == (rule->memory == VP_RULE_OF_DEVICES);
}

/* Whether these exits belong to the rule. A rule that names them has precedence over one that names
 * only the reason. */
static bool is_of_rule(const struct vp_rule *rule, const struct site *site)
{
	size_t count;
	const struct vp_rule *others = vp_rules(&count);

	if (rule->memory)
		return is_of_memory(rule, site);
	if (rule->functions)
		return names(rule, site);
	for (size_t i = 0; i < count; i++)
		if (others[i].functions && has_reason(&others[i], site->reason) &&
		    names(&others[i], site))
			return false;
	return true;
}

static bool is_preempted(const struct vp_account_view *view, uint32_t vm)
{
	uint64_t lost = 0, wall = 0;
	uint32_t vcpus = 0;

	vp_account_each_of (view->account, times, vm, times) {
		vcpus += times->wall != 0;
		lost += times->states[VP_STATE_PREEMPTED];
		wall += times->wall;
	}
	return vcpus > 1 && (double)lost > preempted_share * (double)wall;
}

/* Cost of exits of a reason, without steal. */
struct reason_cost {
	uint64_t kernel, vmm, count;
};

static struct reason_cost diagnose_cost_of(const struct vp_account_view *view, uint32_t vm,
					   const char *reason)
{
	struct reason_cost ret = {0};
	char name[VP_EXIT_NAME_SIZE];

	vp_account_each_of (view->account, costs, vm, cost) {
		if (!vp_account_view_shows(view, vm, cost->vcpu) ||
		    strcmp(vp_exit_reason_name(cost->vendor, cost->reason, name), reason))
			continue;
		ret.kernel += cost->kernel;
		ret.vmm += cost->vmm;
		ret.count += cost->count;
	}
	return ret;
}

static void group_sites(struct evidence *evidence, const struct vp_table *exit_sites)
{
	size_t of_vm = vp_table_column_of(exit_sites, "vm");

	for (size_t row = vp_table_rows(exit_sites); row-- > 0;) {
		const char *vm = exit_sites->cells.at[row * exit_sites->columns.count + of_vm].text;
		uint32_t name = vp_intern_string(&evidence->names, vm);
		if (name == evidence->first.count)
			vp_vec_push(&evidence->first, 0);
		vp_vec_push(&evidence->next, evidence->first.at[name]);
		evidence->first.at[name] = (uint32_t)row + 1;
	}
}

/* The first row of the VM, + 1; 0: the VM has no rows. */
static uint32_t first_site(const struct evidence *evidence, const char *vm)
{
	struct vp_intern *names = (struct vp_intern *)&evidence->names;

	return vp_intern_has(names, vm) ? evidence->first.at[vp_intern_string(names, vm)] : 0;
}

static uint32_t site_after(const struct evidence *evidence, uint32_t row)
{
	return evidence->next.at[evidence->next.count - row];
}

/* The next row for the reason, starting at row *row - 1; advances *row. */
static bool next_site(const struct evidence *evidence, const char *reason, uint32_t *row,
		      struct site *ret)
{
	const struct vp_table *exit_sites = evidence->exit_sites;
	size_t of_reason = vp_table_column_of(exit_sites, "reason");

	while (*row) {
		const union vp_cell *cells =
		    &exit_sites->cells.at[(*row - 1) * exit_sites->columns.count];
		*row = site_after(evidence, *row);
		if (strcmp(cells[of_reason].text, reason) != 0)
			continue;
		*ret = (struct site){
		    .reason = reason,
		    .detail = cells[vp_table_column_of(exit_sites, "detail")].text,
		    .function = cells[vp_table_column_of(exit_sites, "function")].text,
		    .ns = (double)cells[vp_table_column_of(exit_sites, "work_ns")].count,
		    .count = (double)cells[vp_table_column_of(exit_sites, "count")].count};
		return true;
	}
	return false;
}

/* All exits for a reason, by exit site. */
struct sites_of_reason {
	double ns, count;
	bool reported; /* exit details are known */
};

static struct sites_of_reason diagnose_sum_sites(const struct evidence *evidence, uint32_t row,
						 const char *reason)
{
	struct sites_of_reason ret = {0};
	struct site site;

	while (next_site(evidence, reason, &row, &site)) {
		ret.ns += site.ns;
		ret.count += site.count;
		ret.reported |= site.detail != NULL;
	}
	return ret;
}

/* The cost of a reason, divided among functions in proportion to their times. */
static void measure_reason(const struct evidence *evidence, const struct vp_rule *rule, uint32_t vm,
			   const char *reason, struct loss *loss)
{
	const struct vp_account_view *view = evidence->view;
	uint32_t first = first_site(evidence, vp_account_view_vm(view, vm));
	struct reason_cost cost = diagnose_cost_of(view, vm, reason);
	struct sites_of_reason all = diagnose_sum_sites(evidence, first, reason);
	bool by_server = rule->memory && !all.reported;
	double ns = (double)(!by_server                          ? cost.kernel + cost.vmm
			     : rule->memory == VP_RULE_OF_MEMORY ? cost.kernel
								 : cost.vmm);
	struct site site;

	while (all.ns > 0 && next_site(evidence, reason, &first, &site))
		if (by_server || is_of_rule(rule, &site))
			diagnose_see(loss, (uint64_t)(site.ns / all.ns * ns),
				     (uint64_t)(site.count / all.count * (double)cost.count + 0.5),
				     site.function);
}

static void measure_exits(const struct evidence *evidence, const struct vp_rule *rule, uint32_t vm,
			  struct loss *loss)
{
	bool preempted = is_preempted(evidence->whole, vm);
	char reason[VP_EXIT_NAME_SIZE];

	if ((rule->preempted == VP_RULE_IF_PREEMPTED && !preempted) ||
	    (rule->preempted == VP_RULE_UNLESS_PREEMPTED && preempted))
		return;
	for (const char *at = rule->reasons; *at; at += strspn(at, " ")) {
		size_t size = strcspn(at, " ");
		snprintf(reason, sizeof(reason), "%.*s", (int)size, at);
		measure_reason(evidence, rule, vm, reason, loss);
		at += size;
	}
}

static void diagnose_measure(const struct evidence *evidence, const struct vp_rule *rule,
			     uint32_t vm, struct loss *loss)
{
	const struct vp_account_view *view = evidence->view;

	switch (rule->loss) {
	case VP_LOSS_THIEVES:
	case VP_LOSS_OVERCOMMIT:
		measure_thieves(evidence, rule, vm, loss);
		break;
	case VP_LOSS_WAKING:
		measure_waking(view, vm, loss);
		break;
	case VP_LOSS_THROTTLED:
	case VP_LOSS_POLL_WASTED:
		measure_times(view, rule, vm, loss);
		break;
	case VP_LOSS_EXITS:
		measure_exits(evidence, rule, vm, loss);
		break;
	case VP_LOSS_TLB:
	case VP_LOSS_RECORDS:
	case VP_LOSS_GUEST_EVENTS:
		break;
	}
}

static uint64_t wall_of(const struct vp_account_view *view, uint32_t vm)
{
	uint64_t wall = 0;

	vp_account_each_of (view->account, times, vm, times)
		if (vp_account_view_shows(view, vm, times->vcpu))
			wall += times->wall;
	return wall;
}

static int diagnose_by_time(const void *a, const void *b)
{
	const struct vp_finding *left = a, *right = b;

	return (left->ns < right->ns) - (left->ns > right->ns);
}

static const char *diagnose_keep(struct vp_diagnosis *diagnosis, const char *text)
{
	return vp_intern_text(&diagnosis->texts, vp_intern_string(&diagnosis->texts, text));
}

static void measure_address(const struct vp_table *addresses, size_t row,
			    const struct vp_rule *rule, const char *vm, struct loss *time,
			    struct loss *count)
{
	const union vp_cell *cells = &addresses->cells.at[row * addresses->columns.count];
	const char *address = cells[vp_table_column_of(addresses, "address")].text,
		   *what = rule->memory == VP_RULE_OF_DEVICES ? "device" : "memory";

	if (!address || strcmp(cells[vp_table_column_of(addresses, "vm")].text, vm) != 0 ||
	    strcmp(cells[vp_table_column_of(addresses, "what")].text, what) != 0)
		return;
	diagnose_see(time, cells[vp_table_column_of(addresses, "work_ns")].count, 0, address);
	diagnose_see(count, cells[vp_table_column_of(addresses, "count")].count, 0, address);
}

/* Finds the address with the most time for reads and writes together, and its count. */
static void find_address(const struct vp_account_view *view, const struct vp_table *addresses,
			 struct vp_finding *finding, struct vp_diagnosis *ret)
{
	const char *vm = vp_account_view_vm(view, finding->vm), *most;
	struct loss time = {0}, count = {0};
	uint64_t ns;

	/* Times by address exist only for the whole recording. */
	if (!finding->rule->memory || !vp_window_is_all(&view->account->window.window))
		return;
	for (size_t row = 0; row < vp_table_rows(addresses); row++)
		measure_address(addresses, row, finding->rule, vm, &time, &count);
	most = most_of(&time, &ns);
	if (most) {
		finding->address = diagnose_keep(ret, most);
		finding->address_count = count.shares.at[vp_intern_string(&count.names, most)];
	}
	diagnose_forget(&time);
	diagnose_forget(&count);
}

/* A sentence on how many vCPUs were runnable. */
static const char *set_text(const struct vp_account_view *view, uint32_t vm,
			    struct vp_diagnosis *ret)
{
	const struct vp_account *account = view->account;
	struct vp_overcommit_of_vm set;
	char text[160], time[VP_DURATION_SIZE];

	if (!vp_overcommit_of_vm(&account->overcommit, &account->vms->at[vm], &set))
		return NULL;
	snprintf(
	    text, sizeof(text),
	    "for %s in total, %.1f vCPUs were runnable on average where they may use %u pCPU%s",
	    vp_text_duration((uint64_t)set.ns, time), set.wanted, set.pcpus,
	    set.pcpus == 1 ? "" : "s");
	return diagnose_keep(ret, text);
}

static void add_finding(const struct vp_account_view *view, const struct vp_rule *rule, uint32_t vm,
			const struct loss *loss, double percent, struct vp_diagnosis *ret)
{
	struct vp_finding finding = {
	    .rule = rule, .vm = vm, .ns = loss->ns, .percent = percent, .count = loss->count};
	const char *who = most_of(loss, &finding.most);

	if (who)
		finding.who = diagnose_keep(ret, who);
	if (rule->loss == VP_LOSS_OVERCOMMIT)
		finding.detail = set_text(view, vm, ret);
	vp_vec_push(&ret->findings, finding);
}

/* Finds storms on the VM's vCPUs. */
static void find_storms(struct evidence *evidence, uint32_t vm)
{
	const struct vp_account *account = evidence->whole->account;
	struct vp_irq_storm storm;

	evidence->storms.count = 0;
	vp_account_each_of (account, times, vm, times)
		if (times->wall && vp_irq_storm_find(account, times, &storm))
			vp_vec_push(&evidence->storms,
				    ((struct storm){times->vm, times->vcpu, storm.kind, storm.id}));
}

static void diagnose_vm(struct evidence *evidence, uint32_t vm, struct vp_diagnosis *ret)
{
	uint64_t wall = wall_of(evidence->view, vm);
	size_t count;
	const struct vp_rule *rules = vp_rules(&count);

	if (wall)
		find_storms(evidence, vm);
	for (size_t i = 0; wall && i < count; i++) {
		struct loss loss = {0};
		diagnose_measure(evidence, &rules[i], vm, &loss);
		double percent = 100 * (double)loss.ns / (double)wall;
		if (rules[i].loss < VP_LOSS_RECORDS && percent >= rules[i].least)
			add_finding(evidence->view, &rules[i], vm, &loss, percent, ret);
		diagnose_forget(&loss);
	}
}

static uint64_t guest_time_of(const struct vp_account_view *view, uint32_t vm)
{
	uint64_t guest = 0;

	vp_account_each_of (view->account, times, vm, times)
		if (vp_account_view_shows(view, vm, times->vcpu))
			guest += times->states[VP_STATE_GUEST];
	return guest;
}

/* The confidence interval of the share is ±1.96 standard errors. If it contains 0, there is no
 * finding. */
static void find_tlb(const struct vp_account_view *view, const struct vp_rule *rule,
		     const struct vp_interval_recording *intervals, uint32_t vm,
		     struct vp_diagnosis *ret)
{
	double wall = (double)wall_of(view, vm);
	struct vp_tlb_cost cost;
	char text[256];

	if (!intervals || wall <= 0 ||
	    !vp_tlb_cost_of_vm(intervals, &view->account->vms->at[vm], &cost))
		return;
	double margin = 1.96 * cost.error, guest = (double)guest_time_of(view, vm);
	double percent = fmin(cost.percent, 100) * guest / wall;
	if (percent < rule->least || cost.percent <= margin)
		return;
	snprintf(
	    text, sizeof(text),
	    "%.1f to %.1f%% of its cycles (95%% confidence); %.0f cycles for each of %.1f misses "
	    "in 1000 instructions, by regression over %zu intervals",
	    cost.percent - margin, cost.percent + margin, cost.each, cost.misses, cost.intervals);
	vp_vec_push(&ret->findings, ((struct vp_finding){.rule = rule,
							 .vm = vm,
							 .ns = (uint64_t)(percent / 100 * wall),
							 .percent = percent,
							 .detail = diagnose_keep(ret, text)}));
}

/* Losses in the accounting's tables, which no stream counts. */
static uint64_t lost_beside(const struct vp_account *account, const struct vp_rule *rule)
{
	return rule->streams & VP_STREAMS(VP_STREAM_ACCOUNT)
		   ? account->lost.vcpus + account->lost.thieves + account->lost.sites
		   : 0;
}

static void find_losses(const struct vp_account *account, const struct vp_losses *losses,
			const struct vp_rule *rule, struct vp_diagnosis *ret)
{
	uint64_t lost = lost_beside(account, rule), all = 0;
	bool samples = rule->streams & VP_STREAMS_SAMPLES;

	for (int i = 0; i < VP_STREAM_CLASSES; i++)
		if (rule->streams & VP_STREAMS(i)) {
			lost += losses->lost[i];
			all += losses->records[i];
		}
	double percent = rule->least > 0 && lost ? 100 * (double)lost / (double)(lost + all) : 0;
	if (!lost || percent < rule->least)
		return;
	vp_vec_push(&ret->findings,
		    ((struct vp_finding){.rule = rule,
					 .vm = VP_FINDING_OF_NO_VM,
					 .ns = samples ? lost * losses->period_ns : 0,
					 .percent = percent,
					 .count = lost}));
}

static void find_guest_losses(const struct vp_account *account, const struct vp_rule *rule,
			      struct vp_diagnosis *ret)
{
	for (uint32_t i = 0; i < account->vms->count; i++) {
		const struct vp_vm *vm = &account->vms->at[i];
		double lost = (double)vm->guest_events_lost, all = lost + (double)vm->guest_events;
		double percent = lost > 0 ? 100 * lost / all : 0;
		if (lost > 0 && percent >= rule->least)
			vp_vec_push(&ret->findings,
				    ((struct vp_finding){.rule = rule,
							 .vm = i,
							 .percent = percent,
							 .count = vm->guest_events_lost}));
	}
}

/* Whether both findings have the same cause, seen from two VMs. */
static bool has_same_cause(const struct vp_finding *a, const struct vp_finding *b)
{
	if (a->rule != b->rule || a->vm == VP_FINDING_OF_NO_VM || strcmp(a->pcpus, b->pcpus) != 0)
		return false;
	if (a->rule->loss == VP_LOSS_OVERCOMMIT)
		return true;
	bool by_one = a->rule->loss == VP_LOSS_THIEVES &&
		      a->rule->thieves & (VP_THIEF_TASK | VP_THIEF_TOOL | VP_THIEF_DEVICE |
					  VP_THIEF_STORM | VP_THIEF_VECTOR | VP_THIEF_OTHER_VM);
	return by_one && a->who && b->who && !strcmp(a->who, b->who);
}

/* The cgroup of the finding's top cause. */
static const char *cgroup_of(const struct vp_account_view *view, const struct vp_finding *finding)
{
	char who[128];

	if (!finding->who || !view->cgroups || finding->rule->loss != VP_LOSS_THIEVES)
		return NULL;
	vp_account_each_of (view->account, thefts, finding->vm, theft) {
		snprintf(who, sizeof(who), "%s/%u", theft->comm, theft->id);
		if (theft->kind == VP_BY_TASK && !strcmp(who, finding->who))
			return vp_cgroups_path(view->cgroups, theft->cgroup);
	}
	return NULL;
}

/* Sets where the VM is running, and what can be done about the finding. */
static void complete(const struct vp_account_view *view, struct vp_finding *finding,
		     struct vp_diagnosis *ret)
{
	struct vp_buffer pcpus = {0}, commands = {0};

	if (finding->vm != VP_FINDING_OF_NO_VM) {
		const struct vp_vm *vm = &view->account->vms->at[finding->vm];
		uint32_t count = view->account->overcommit.pcpus;
		vp_diagnose_pcpus(vm, count, &pcpus);
		vp_diagnose_commands(finding->rule, vm, count, &commands);
		finding->cgroup = cgroup_of(view, finding);
	}
	finding->pcpus = diagnose_keep(ret, vp_buffer_text(&pcpus));
	finding->commands = diagnose_keep(ret, vp_buffer_text(&commands));
	vp_buffer_deinit(&pcpus);
	vp_buffer_deinit(&commands);
}

static void find_causes(struct vp_diagnosis *diagnosis)
{
	for (size_t i = 0; i < diagnosis->findings.count; i++) {
		struct vp_finding *finding = &diagnosis->findings.at[i];
		for (size_t j = 0; j < i && !finding->cause; j++)
			if (has_same_cause(&diagnosis->findings.at[j], finding))
				finding->cause = j + 1;
	}
}

static void evidence_deinit(struct evidence *evidence)
{
	vp_vec_deinit(&evidence->storms);
	vp_vec_deinit(&evidence->first);
	vp_vec_deinit(&evidence->next);
	vp_intern_deinit(&evidence->names);
}

void vp_diagnose(const struct vp_account_view *view, const struct vp_table *exit_sites,
		 const struct vp_table *addresses, const struct vp_losses *losses,
		 const struct vp_interval_recording *intervals, struct vp_diagnosis *ret)
{
	struct evidence evidence = {.view = view, .whole = view, .exit_sites = exit_sites};
	size_t count;
	const struct vp_rule *rules = vp_rules(&count);

	*ret = (struct vp_diagnosis){0};
	group_sites(&evidence, exit_sites);
	for (uint32_t vm = 0; vm < view->account->vms->count; vm++)
		diagnose_vm(&evidence, vm, ret);
	vp_vec_each (&ret->findings, finding)
		find_address(view, addresses, finding, ret);
	for (size_t i = 0; i < count; i++)
		if (rules[i].loss == VP_LOSS_RECORDS)
			find_losses(view->account, losses, &rules[i], ret);
		else if (rules[i].loss == VP_LOSS_GUEST_EVENTS)
			find_guest_losses(view->account, &rules[i], ret);
		else if (rules[i].loss == VP_LOSS_TLB)
			for (uint32_t vm = 0; vm < view->account->vms->count; vm++)
				find_tlb(view, &rules[i], intervals, vm, ret);
	vp_vec_each (&ret->findings, finding)
		finding->words =
		    vp_rule_words(finding->rule, finding->vm == VP_FINDING_OF_NO_VM
						     ? NULL
						     : &view->account->vms->at[finding->vm]);
	if (ret->findings.count)
		qsort(ret->findings.at, ret->findings.count, sizeof(*ret->findings.at),
		      diagnose_by_time);
	vp_vec_each (&ret->findings, finding)
		complete(view, finding, ret);
	find_causes(ret);
	evidence_deinit(&evidence);
}

/* The seconds in which a finding applied. */
struct history {
	vp_observations shares;
	double held, wall;  /* ns of the VM's vCPUs: in seconds with the finding; in total */
	struct evidence of; /* includes the storms of its VM */
};

struct histories {
	struct vp_diagnosis *diagnosis;
	struct vp_account_view view; /* of the current second */
	VP_VEC(struct history) all;  /* by index of the finding */
};

static void diagnose_take_second(void *context, const struct vp_account *second, uint64_t begin,
				 uint64_t end)
{
	struct histories *histories = context;

	(void)end;
	histories->view.account = second;
	for (size_t i = 0; i < histories->all.count; i++) {
		struct vp_finding *finding = &histories->diagnosis->findings.at[i];
		struct history *history = &histories->all.at[i];
		struct loss loss = {0};
		bool by_time = !finding->rule->records && finding->rule->loss != VP_LOSS_TLB;
		uint64_t wall = !by_time ? 0 : wall_of(&histories->view, finding->vm);
		if (!wall)
			continue;
		diagnose_measure(&history->of, finding->rule, finding->vm, &loss);
		double percent = 100 * (double)loss.ns / (double)wall;
		vp_vec_push(&history->shares,
			    ((struct vp_observation){(double)loss.ns, (double)wall}));
		history->wall += (double)wall;
		if (loss.ns && percent >= finding->rule->least) {
			finding->since = history->held > 0 ? finding->since : begin;
			history->held += (double)wall;
		}
		diagnose_forget(&loss);
	}
}

static void finish_history(const struct history *history, struct vp_finding *finding)
{
	struct vp_mean mean = vp_mean_of(&history->shares, 100);

	finding->seconds = (uint32_t)mean.count;
	if (history->wall > 0)
		finding->held_percent = 100 * history->held / history->wall;
	if (mean.count < VP_MEAN_MIN)
		return;
	double margin = vp_mean_margin(&mean);
	finding->has_interval = true;
	finding->low = fmax(mean.value - margin, 0);
	finding->high = fmin(mean.value + margin, 100);
}

struct vp_error *vp_diagnose_seconds(const char *directory, const struct vp_account_view *view,
				     const struct vp_table *exit_sites,
				     struct vp_diagnosis *diagnosis)
{
	struct histories histories = {.diagnosis = diagnosis, .view = *view};
	struct evidence evidence = {
	    .view = &histories.view, .whole = view, .exit_sites = exit_sites};

	group_sites(&evidence, exit_sites);
	vp_vec_each (&diagnosis->findings, finding) {
		struct history history = {.of = evidence};
		history.of.storms.at = NULL;
		history.of.storms.count = history.of.storms.room = 0;
		if (finding->vm != VP_FINDING_OF_NO_VM)
			find_storms(&history.of, finding->vm);
		vp_vec_push(&histories.all, history);
	}
	struct vp_error *error =
	    vp_account_seconds_read(directory, view->account, diagnose_take_second, &histories);
	for (size_t i = 0; i < histories.all.count; i++) {
		if (!error)
			finish_history(&histories.all.at[i], &diagnosis->findings.at[i]);
		vp_vec_deinit(&histories.all.at[i].shares);
		vp_vec_deinit(&histories.all.at[i].of.storms);
	}
	vp_vec_deinit(&histories.all);
	evidence_deinit(&evidence);
	return error;
}

void vp_diagnosis_deinit(struct vp_diagnosis *diagnosis)
{
	vp_vec_deinit(&diagnosis->findings);
	vp_intern_deinit(&diagnosis->texts);
}

void vp_diagnose_joined(const struct vp_account_view *view, const struct vp_losses *losses,
			vp_sentences *notes, struct vp_diagnosis *ret)
{
	const struct vp_table none = {0};

	vp_vec_push(notes,
		    vp_strdup("several recordings are joined: exits are not divided by guest "
			      "function, and findings have no times; 'vperf diagnose' of one "
			      "recording has both"));
	vp_diagnose(view, &none, &none, losses, NULL, ret);
}
