/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export/export_metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/account/account_tables.h"
#include "analyze/report/diagnose_commands.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "schema/account_terms.h"

struct exposition {
	const struct vp_account_counters *counters;
	const vp_vms *vms;
	const struct vp_metrics_self *self;
	enum vp_metrics_format format;
	struct vp_buffer *out;
	VP_VEC(char *) labels; /* per VM of the counters: vm="…"; NULL: the VM has no name */
};

/* A metric family. */
struct family {
	const char *name; /* without the suffix of a counter or an info metric */
	enum family_type { COUNTER, GAUGE, INFO, HISTOGRAM } type;
	const char *unit, *help;
	void (*put)(struct exposition *to, const struct family *family);
	uint64_t (*of_vcpu)(const struct vp_counted_vcpu *vcpu); /* for put_vcpus() */
};

const char *vp_metrics_type(enum vp_metrics_format format)
{
	return format == VP_METRICS_OPENMETRICS
		   ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		   : "text/plain; version=0.0.4; charset=utf-8";
}

/* OpenMetrics names a family without the suffix of its series. */
static void put_head(struct exposition *to, const struct family *family)
{
	static const char *const types[][VP_METRICS_FORMATS] = {{"counter", "counter"},
								{"gauge", "gauge"},
								{"gauge", "info"},
								{"histogram", "histogram"}};
	static const char *const endings[] = {"_total", "", "_info", ""};
	bool open = to->format == VP_METRICS_OPENMETRICS;
	const char *ending = open ? "" : endings[family->type];

	vp_buffer_printf(to->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", family->name, ending,
			 family->help, family->name, ending, types[family->type][to->format]);
	if (open && family->unit)
		vp_buffer_printf(to->out, "# UNIT %s %s\n", family->name, family->unit);
}

/* The name of a series, before its first label. A histogram has several: see put_wakes(). */
static void put_name(struct exposition *to, const struct family *family)
{
	vp_buffer_string(to->out, family->name);
	if (family->type == COUNTER || family->type == INFO)
		vp_buffer_string(to->out, family->type == COUNTER ? "_total" : "_info");
}

/* Names come from tenants: they are escaped, so that they cannot end the label. */
static void append_label(struct vp_buffer *out, const char *name, const char *value)
{
	VP_AUTO_FREE char *clean = vp_text_cleaned(value);

	vp_buffer_printf(out, "%s=\"", name);
	for (const char *at = clean; *at; at++) {
		if (*at == '\\' || *at == '"')
			vp_buffer_string(out, "\\");
		vp_buffer_append(out, at, 1);
	}
	vp_buffer_string(out, "\"");
}

static void put_label(struct exposition *to, char before, const char *name, const char *value)
{
	vp_buffer_append(to->out, &before, 1);
	append_label(to->out, name, value);
}

static void put_number(struct exposition *to, char before, const char *name, uint32_t value)
{
	vp_buffer_printf(to->out, "%c%s=\"%" PRIu32 "\"", before, name, value);
}

static void put_time_value(struct exposition *to, uint64_t ns)
{
	vp_buffer_printf(to->out, " %" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

static void put_seconds(struct exposition *to, const char *labels_end, uint64_t ns)
{
	vp_buffer_string(to->out, labels_end);
	put_time_value(to, ns);
	vp_buffer_string(to->out, "\n");
}

/* With an exemplar: the recording that has the latest increase, the increase, and its time. Text
 * format 0.0.4 has no exemplars. */
static void put_steal(struct exposition *to, uint64_t ns, const struct vp_counted_moment *moment)
{
	vp_buffer_string(to->out, "}");
	put_time_value(to, ns);
	if (to->format == VP_METRICS_OPENMETRICS && moment->recording[0]) {
		vp_buffer_string(to->out, " # ");
		put_label(to, '{', "recording", moment->recording);
		vp_buffer_string(to->out, "}");
		put_time_value(to, moment->ns);
		put_time_value(to, moment->realtime);
	}
	vp_buffer_string(to->out, "\n");
}

static void put_count(struct exposition *to, const char *labels_end, uint64_t count)
{
	vp_buffer_printf(to->out, "%s %" PRIu64 "\n", labels_end, count);
}

/* VMs of the same name would share one series: the second one has its number appended. */
static void name_vms(struct exposition *to)
{
	struct vp_intern names = {0};

	vp_vec_each (&to->counters->vms, counted) {
		const struct vp_vm *vm = vp_vms_find(to->vms, counted->id);
		struct vp_buffer label = {0};
		if (vm && vm->name) {
			bool again = vp_intern_has(&names, vm->name);
			VP_AUTO_FREE char *name =
			    again ? vp_format("%s/%u", vm->name, counted->id) : vp_strdup(vm->name);
			vp_intern_string(&names, vm->name);
			append_label(&label, "vm", name);
			vp_vec_push(&to->labels, vp_strdup(vp_buffer_text(&label)));
		} else {
			vp_vec_push(&to->labels, NULL);
		}
		vp_buffer_deinit(&label);
	}
	vp_intern_deinit(&names);
}

/* The start of a VM's series; false: the VM is skipped. */
static bool put_vm(struct exposition *to, const struct family *family,
		   const struct vp_counted_vm *vm)
{
	const char *label = to->labels.at[vm - to->counters->vms.at];

	if (!label)
		return false;
	put_name(to, family);
	vp_buffer_string(to->out, "{");
	vp_buffer_string(to->out, label);
	return true;
}

/* A family with one series per vCPU. */
static void put_vcpus(struct exposition *to, const struct family *family)
{
	vp_vec_each (&to->counters->vms, vm)
		vp_vec_each (&vm->vcpus, vcpu) {
			if (!put_vm(to, family, vm))
				continue;
			put_number(to, ',', "vcpu", vcpu->number);
			if (family->unit)
				put_seconds(to, "}", family->of_vcpu(vcpu));
			else
				put_count(to, "}", family->of_vcpu(vcpu));
		}
}

static void put_stolen(struct exposition *to, const struct family *family)
{
	vp_vec_each (&to->counters->vms, vm)
		vp_vec_each (&vm->vcpus, vcpu) {
			if (!put_vm(to, family, vm))
				continue;
			put_number(to, ',', "vcpu", vcpu->number);
			put_steal(to, vp_counted_vcpu_stolen(vcpu), &vcpu->stolen);
		}
}

static uint64_t wakeups_of(const struct vp_counted_vcpu *vcpu)
{
	return vcpu->wakeups;
}

static uint64_t preemptions_of(const struct vp_counted_vcpu *vcpu)
{
	return vcpu->preemptions;
}

static uint64_t poll_wasted_of(const struct vp_counted_vcpu *vcpu)
{
	return vcpu->poll_wasted_ns;
}

static void put_states(struct exposition *to, const struct family *family)
{
	vp_vec_each (&to->counters->vms, vm)
		vp_vec_each (&vm->vcpus, vcpu)
			for (size_t state = 0; state < VP_STATES && put_vm(to, family, vm);
			     state++) {
				put_number(to, ',', "vcpu", vcpu->number);
				put_label(to, ',', "state", vp_state_name(state));
				put_seconds(to, "}", vcpu->ns[state]);
			}
}

/* A series of a VM's histogram. */
static bool put_vm_series(struct exposition *to, const struct family *family, const char *ending,
			  const struct vp_counted_vm *vm)
{
	const char *label = to->labels.at[vm - to->counters->vms.at];

	if (label)
		vp_buffer_printf(to->out, "%s%s{%s", family->name, ending, label);
	return label;
}

/* Buckets have all shorter latencies, too. */
static void put_wakes(struct exposition *to, const struct family *family)
{
	char bound[VP_DURATION_SIZE];

	vp_vec_each (&to->counters->vms, vm) {
		uint64_t count = 0;
		for (uint32_t i = 0; i < VP_WAKE_BUCKETS; i++) {
			count += vm->wakes[i];
			if (!put_vm_series(to, family, "_bucket", vm))
				break;
			snprintf(bound, sizeof(bound), "%g",
				 i + 1 < VP_WAKE_BUCKETS ? (double)vp_wake_bound(i) / 1e9 : 0);
			put_label(to, ',', "le", i + 1 < VP_WAKE_BUCKETS ? bound : "+Inf");
			put_count(to, "}", count);
		}
		if (put_vm_series(to, family, "_sum", vm))
			put_seconds(to, "}", vm->wake_ns);
		if (put_vm_series(to, family, "_count", vm))
			put_count(to, "}", count);
	}
}

/* Accounting without samples has no such series. */
static void put_samples(struct exposition *to, const struct family *family)
{
	static const char *const modes[VP_SAMPLE_MODES] = {[VP_SAMPLE_GUEST_USER] = "guest_user",
							   [VP_SAMPLE_GUEST_KERNEL] =
							       "guest_kernel",
							   [VP_SAMPLE_HOST] = "host"};

	vp_vec_each (&to->counters->vms, vm)
		for (size_t i = 0; i < VP_SAMPLE_MODES && to->counters->has_samples; i++) {
			if (!put_vm(to, family, vm))
				break;
			put_label(to, ',', "mode", modes[i]);
			put_count(to, "}", vm->samples[i]);
		}
}

/* Exits by reason: counts, or time if `unit` is set. Reasons without a slot are "other". */
static void put_reasons(struct exposition *to, const struct family *family)
{
	vp_vec_each (&to->counters->vms, vm)
		for (size_t i = 0; i <= VP_COUNTED_REASONS; i++) {
			const struct vp_counted_reason *reason = &vm->reasons[i];
			if ((i >= vm->n_reasons && i != VP_COUNTED_REASONS) ||
			    !put_vm(to, family, vm))
				continue;
			put_label(to, ',', "reason", reason->name);
			if (family->unit)
				put_seconds(to, "}", reason->ns);
			else
				put_count(to, "}", reason->count);
		}
}

static void put_thieves(struct exposition *to, const struct family *family)
{
	vp_vec_each (&to->counters->vms, vm)
		for (size_t i = 0; i <= VP_COUNTED_THIEVES; i++) {
			const struct vp_counted_thief *thief = &vm->thieves[i];
			if ((i >= vm->n_thieves && i != VP_COUNTED_THIEVES) ||
			    !put_vm(to, family, vm))
				continue;
			put_label(to, ',', "kind", thief->kind);
			put_label(to, ',', "thief", thief->name);
			put_steal(to, thief->ns, &thief->stolen);
		}
}

static void put_vm_info(struct exposition *to, const struct family *family)
{
	vp_vec_each (&to->counters->vms, counted) {
		const struct vp_vm *vm = vp_vms_find(to->vms, counted->id);
		if (!put_vm(to, family, counted))
			continue;
		put_label(to, ',', "name", vm->name);
		put_label(to, ',', "uuid", vm->uuid ? vm->uuid : "");
		put_number(to, ',', "pid", vm->has_domain ? 0 : vm->pid);
		put_label(to, ',', "manager", vp_manager_name(vp_manager_of(vm)));
		put_label(to, ',', "cgroup", vm->cgroup ? vm->cgroup : "");
		VP_AUTO_FREE char *namespace = vp_vm_namespace(vm);
		put_label(to, ',', "namespace", namespace);
		put_label(to, ',', "tenant", vm->tenant ? vm->tenant : "");
		put_label(to, ',', "title", vm->title ? vm->title : "");
		vp_buffer_string(to->out, "} 1\n");
	}
}

static void put_build(struct exposition *to, const struct family *family)
{
	put_name(to, family);
	put_label(to, '{', "version", VPERF_VERSION);
	vp_buffer_string(to->out, "} 1\n");
}

static void put_lost(struct exposition *to, const struct family *family)
{
	put_name(to, family);
	put_count(to, "", to->counters->lost);
}

static void put_cpu(struct exposition *to, const struct family *family)
{
	put_name(to, family);
	put_seconds(to, "", to->self->cpu_ns);
}

static void put_memory(struct exposition *to, const struct family *family)
{
	put_name(to, family);
	put_count(to, "", to->self->memory);
}

static void put_accounted(struct exposition *to, const struct family *family)
{
	if (!to->self->accounted_ns)
		return;
	put_name(to, family);
	put_seconds(to, "", to->self->accounted_ns);
}

static void put_time(struct exposition *to, const struct family *family)
{
	put_name(to, family);
	put_seconds(to, "", to->self->realtime_ns);
}

/* Whether the VM has fewer than VP_METRICS_FINDINGS findings with a larger share. */
static bool is_among_worst(const struct vp_metrics_store *store, size_t number)
{
	const struct vp_metrics_finding *finding = &store->findings[number];
	size_t worse = 0;

	for (size_t i = 0; i < store->n_findings; i++)
		if (store->findings[i].vm == finding->vm)
			worse += store->findings[i].ratio > finding->ratio ||
				 (store->findings[i].ratio == finding->ratio && i < number);
	return worse < VP_METRICS_FINDINGS;
}

static void put_findings(struct exposition *to, const struct family *family)
{
	const struct vp_metrics_store *store = to->self->store;

	vp_vec_each (&to->counters->vms, counted)
		for (size_t i = 0; i < store->n_findings; i++) {
			const struct vp_metrics_finding *finding = &store->findings[i];
			if (finding->vm != counted->id || !is_among_worst(store, i) ||
			    !put_vm(to, family, counted))
				continue;
			put_label(to, ',', "rule", finding->rule);
			vp_buffer_printf(to->out, "} %.6f\n", finding->ratio);
		}
}

static void put_recording(struct exposition *to, const struct family *family)
{
	if (!to->self->store->recording[0])
		return;
	put_name(to, family);
	put_label(to, '{', "recording", to->self->store->recording);
	vp_buffer_string(to->out, "} 1\n");
}

static void put_fired(struct exposition *to, const struct family *family)
{
	put_name(to, family);
	put_count(to, "", to->self->store->fired);
}

static void put_store_bytes(struct exposition *to, const struct family *family)
{
	put_name(to, family);
	put_count(to, "", to->self->store->bytes);
}

static void put_recordings(struct exposition *to, const struct family *family)
{
	put_name(to, family);
	put_count(to, "", to->self->store->recordings);
}

static void put_waiting(struct exposition *to, const struct family *family)
{
	put_name(to, family);
	put_count(to, "", to->self->store->waiting);
}

static void put_by_outcome(struct exposition *to, const struct family *family, const char *label,
			   const char *outcome, uint64_t count)
{
	put_name(to, family);
	put_label(to, '{', label, outcome);
	put_count(to, "}", count);
}

static void put_profiles(struct exposition *to, const struct family *family)
{
	const struct vp_metrics_store *store = to->self->store;

	put_by_outcome(to, family, "outcome", "sent", store->sent);
	put_by_outcome(to, family, "outcome", "dropped", store->overflowed);
	put_by_outcome(to, family, "outcome", "refused", store->refused);
}

static void put_spooled(struct exposition *to, const struct family *family)
{
	const struct vp_metrics_store *store = to->self->store;

	put_by_outcome(to, family, "outcome", "added", store->spooled);
	put_by_outcome(to, family, "outcome", "dropped", store->spool_dropped);
}

/* Families of vperfd. */
static const struct family store_families[] = {
    {"vperf_vm_finding_ratio", GAUGE, "ratio",
     "Share of a VM's vCPU time that is lost, by rule of vperf diagnose.", put_findings, NULL},
    {"vperf_recording", INFO, NULL, "The recording in progress in the store.", put_recording, NULL},
    {"vperf_findings_kept", COUNTER, NULL, "Findings for which a snapshot or samples were kept.",
     put_fired, NULL},
    {"vperf_store_bytes", GAUGE, "bytes", "Size of the store on disk.", put_store_bytes, NULL},
    {"vperf_store_recordings", GAUGE, NULL, "Recordings, snapshots and samples in the store.",
     put_recordings, NULL},
    {"vperf_profiles", COUNTER, NULL,
     "Profiles for a server, by outcome: sent, dropped (queue full) or refused.", put_profiles,
     NULL},
    {"vperf_profiles_waiting", GAUGE, NULL, "Profiles in the queue.", put_waiting, NULL},
    {"vperf_spool_recordings", COUNTER, NULL,
     "Recordings for the spool, by outcome: added, or dropped because it was full.", put_spooled,
     NULL},
};

/* Names are stable: dashboards and alerting rules depend on them. */
static const struct family families[] = {
    {"vperf_vcpu_state_seconds", COUNTER, "seconds",
     "Time of a vCPU in each state; the states sum to elapsed time.", put_states, NULL},
    {"vperf_vcpu_stolen_seconds", COUNTER, "seconds",
     "Steal: time in which a vCPU was runnable but not running (CPU ready, run_delay).", put_stolen,
     NULL},
    {"vperf_vcpu_wakeups", COUNTER, NULL, "Wakeups of a vCPU.", put_vcpus, wakeups_of},
    {"vperf_vcpu_preemptions", COUNTER, NULL, "Involuntary switches away from a runnable vCPU.",
     put_vcpus, preemptions_of},
    {"vperf_vcpu_poll_wasted_seconds", COUNTER, "seconds",
     "Halt polling after which the vCPU slept anyway.", put_vcpus, poll_wasted_of},
    {"vperf_vm_wakeup_latency_seconds", HISTOGRAM, "seconds",
     "Time from a wakeup of a VM's vCPU until it runs.", put_wakes, NULL},
    {"vperf_vm_samples", COUNTER, NULL,
     "Samples of a VM in user space and kernel of the guest, and in the host for its vCPUs.",
     put_samples, NULL},
    {"vperf_vm_exits", COUNTER, NULL, "VM exits by reason.", put_reasons, NULL},
    {"vperf_vm_exit_seconds", COUNTER, "seconds",
     "Time in the hypervisor and the VMM for VM exits, by reason.", put_reasons, NULL},
    {"vperf_vm_stolen_by_seconds", COUNTER, "seconds", "Steal of a VM's vCPUs, by thief.",
     put_thieves, NULL},
    {"vperf_vm", INFO, NULL, "Running VMs, with name and manager.", put_vm_info, NULL},
    {"vperf_build", INFO, NULL, "Version of vperf.", put_build, NULL},
    {"vperf_account_lost", COUNTER, NULL,
     "vCPUs, thieves and exit sites that did not fit into the accounting tables.", put_lost, NULL},
    {"vperf_cpu_seconds", COUNTER, "seconds", "CPU time of vperf itself.", put_cpu, NULL},
    {"vperf_memory_bytes", GAUGE, "bytes", "Memory of vperf itself, shared pages counted once.",
     put_memory, NULL},
    {"vperf_account_time_seconds", GAUGE, "seconds",
     "End of the time that the vCPU counters cover, in seconds since 1970.", put_accounted, NULL},
    {"vperf_update_time_seconds", GAUGE, "seconds",
     "When the metrics were last updated, in seconds since 1970.", put_time, NULL},
};

void vp_export_metrics(const struct vp_account_counters *counters, const vp_vms *vms,
		       const struct vp_metrics_self *self, enum vp_metrics_format format,
		       struct vp_buffer *out)
{
	struct exposition to = {
	    .counters = counters, .vms = vms, .self = self, .format = format, .out = out};

	name_vms(&to);
	for (size_t i = 0; i < VP_ARRAY_SIZE(families); i++) {
		put_head(&to, &families[i]);
		families[i].put(&to, &families[i]);
	}
	for (size_t i = 0; self->store && i < VP_ARRAY_SIZE(store_families); i++) {
		put_head(&to, &store_families[i]);
		store_families[i].put(&to, &store_families[i]);
	}
	if (format == VP_METRICS_OPENMETRICS)
		vp_buffer_string(out, "# EOF\n");
	vp_vec_each (&to.labels, label)
		free(*label);
	vp_vec_deinit(&to.labels);
}
