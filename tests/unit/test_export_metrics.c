/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text formats of Prometheus: names, labels, values, and what tenants' names cannot do. */
#include "unit.h"

#include <string.h>

#include "export/export_metrics.h"

static const struct vp_metrics_self self = {.cpu_ns = 1500000000,
					    .memory = 4096,
					    .realtime_ns = 1700000000123456789,
					    .accounted_ns = 1699999999500000000};

/* Two VMs of two vCPUs. */
static struct vp_account_counters make_counters(vp_vms *vms, const char *first, const char *second)
{
	struct vp_account_counters counters = {.intervals = 1, .has_samples = true, .lost = 3};

	for (uint32_t i = 0; i < 2; i++) {
		struct vp_counted_vm vm = {.id = 1000 + i, .n_reasons = 1, .n_thieves = 1};
		vp_vec_push(vms, ((struct vp_vm){.pid = 1000 + i,
						 .name = strdup(i ? second : first),
						 .uuid = strdup(i ? "" : "6c3fd489"),
						 .cgroup = strdup("/qemu.slice/100.scope")}));
		for (uint32_t vcpu = 0; vcpu < 2; vcpu++) {
			struct vp_counted_vcpu one = {.number = vcpu, .wakeups = 10 * i + vcpu};
			one.ns[VP_STATE_GUEST] = (1 + i) * 1000000000 + vcpu;
			one.ns[VP_STATE_PREEMPTED] = 7 + i;
			vp_vec_push(&vm.vcpus, one);
		}
		vm.wakes[0] = 3;
		vm.wakes[3] = 4 + i;
		vm.wakes[9] = 1;
		vm.wake_ns = 2000000000 + i;
		vm.samples[VP_SAMPLE_GUEST_USER] = 20 + i;
		vm.samples[VP_SAMPLE_GUEST_KERNEL] = 30 + i;
		vm.samples[VP_SAMPLE_HOST] = 40 + i;
		vm.reasons[0] = (struct vp_counted_reason){"CPUID", 5 + i, 2000};
		vm.reasons[VP_COUNTED_REASONS] = (struct vp_counted_reason){"other", 1, 1};
		vm.thieves[0] = (struct vp_counted_thief){"task", "bad\"\n\\task", 9};
		vm.thieves[VP_COUNTED_THIEVES] = (struct vp_counted_thief){"", "other", 0};
		vp_vec_push(&counters.vms, vm);
	}
	return counters;
}

static char *export(const char *first, const char *second, enum vp_metrics_format format)
{
	vp_vms vms = {0};
	struct vp_buffer out = {0};
	struct vp_account_counters counters = make_counters(&vms, first, second);

	vp_export_metrics(&counters, &vms, &self, format, &out);
	char *text = strdup(vp_buffer_text(&out));
	vp_buffer_deinit(&out);
	vp_account_counters_deinit(&counters);
	vp_vms_deinit(&vms);
	return text;
}

static void expect_line(const char *text, const char *line)
{
	const char *found = strstr(text, line);
	size_t size = strlen(line);

	while (found && (found != text && found[-1] != '\n'))
		found = strstr(found + 1, line);
	if (!found || found[size] != '\n')
		fail_msg("no line '%s' in:\n%s", line, text);
}

static void test_text(void **state)
{
	char *text = export("db", "web", VP_METRICS_TEXT);

	expect_line(text, "# TYPE vperf_vcpu_state_seconds_total counter");
	expect_line(text, "vperf_vcpu_state_seconds_total{vm=\"db\",vcpu=\"0\",state=\"guest\"} "
			  "1.000000000");
	expect_line(text, "vperf_vcpu_state_seconds_total{vm=\"web\",vcpu=\"1\",state=\"guest\"} "
			  "2.000000001");
	expect_line(text, "vperf_vcpu_stolen_seconds_total{vm=\"web\",vcpu=\"0\"} 0.000000008");
	expect_line(text, "vperf_vcpu_wakeups_total{vm=\"web\",vcpu=\"1\"} 11");
	expect_line(text, "# TYPE vperf_vm_wakeup_latency_seconds histogram");
	expect_line(text, "vperf_vm_wakeup_latency_seconds_bucket{vm=\"web\",le=\"1e-05\"} 3");
	expect_line(text, "vperf_vm_wakeup_latency_seconds_bucket{vm=\"web\",le=\"0.0001\"} 3");
	expect_line(text, "vperf_vm_wakeup_latency_seconds_bucket{vm=\"web\",le=\"0.0005\"} 8");
	expect_line(text, "vperf_vm_wakeup_latency_seconds_bucket{vm=\"web\",le=\"0.1\"} 8");
	expect_line(text, "vperf_vm_wakeup_latency_seconds_bucket{vm=\"web\",le=\"+Inf\"} 9");
	expect_line(text, "vperf_vm_wakeup_latency_seconds_sum{vm=\"web\"} 2.000000001");
	expect_line(text, "vperf_vm_wakeup_latency_seconds_count{vm=\"db\"} 8");
	expect_line(text, "vperf_vm_samples_total{vm=\"db\",mode=\"guest_user\"} 20");
	expect_line(text, "vperf_vm_samples_total{vm=\"web\",mode=\"guest_user\"} 21");
	expect_line(text, "vperf_vm_samples_total{vm=\"web\",mode=\"guest_kernel\"} 31");
	expect_line(text, "vperf_vm_samples_total{vm=\"web\",mode=\"host\"} 41");
	expect_line(text, "vperf_vm_exits_total{vm=\"web\",reason=\"CPUID\"} 6");
	expect_line(text, "vperf_vm_exits_total{vm=\"db\",reason=\"other\"} 1");
	expect_line(text, "vperf_vm_exit_seconds_total{vm=\"db\",reason=\"CPUID\"} 0.000002000");
	expect_line(text, "vperf_vm_stolen_by_seconds_total{vm=\"db\",kind=\"task\","
			  "thief=\"bad\\\"?\\\\task\"} 0.000000009");
	expect_line(text, "# TYPE vperf_vm_info gauge");
	expect_line(text, "vperf_vm_info{vm=\"db\",name=\"db\",uuid=\"6c3fd489\",pid=\"1000\","
			  "manager=\"proxmox\",cgroup=\"/qemu.slice/"
			  "100.scope\",namespace=\"\",tenant=\"\",title=\"\"} 1");
	expect_line(text, "vperf_account_lost_total 3");
	expect_line(text, "vperf_cpu_seconds_total 1.500000000");
	expect_line(text, "vperf_memory_bytes 4096");
	expect_line(text, "vperf_update_time_seconds 1700000000.123456789");
	expect_line(text, "vperf_account_time_seconds 1699999999.500000000");
	assert_null(strstr(text, "# EOF"));
	assert_null(strstr(text, "# UNIT"));
	/* For tests/metrics/run, which has Prometheus check it. */
	temporary_file("test_export_metrics.prom", text, strlen(text));
	free(text);
}

static void test_openmetrics(void **state)
{
	char *text = export("db", "web", VP_METRICS_OPENMETRICS);

	expect_line(text, "# TYPE vperf_vcpu_state_seconds counter");
	expect_line(text, "# UNIT vperf_vcpu_state_seconds seconds");
	expect_line(text, "vperf_vcpu_wakeups_total{vm=\"db\",vcpu=\"1\"} 1");
	expect_line(text, "# TYPE vperf_vm info");
	expect_line(text, "# TYPE vperf_vm_wakeup_latency_seconds histogram");
	expect_line(text, "# UNIT vperf_vm_wakeup_latency_seconds seconds");
	expect_line(text, "vperf_vm_wakeup_latency_seconds_bucket{vm=\"db\",le=\"+Inf\"} 8");
	assert_string_equal(text + strlen(text) - strlen("\n# EOF\n"), "\n# EOF\n");
	free(text);
}

/* Series are never the same twice, and a name does not end its label. */
static void test_names(void **state)
{
	char *text = export("same", "same", VP_METRICS_TEXT);

	expect_line(text, "vperf_vcpu_wakeups_total{vm=\"same\",vcpu=\"1\"} 1");
	expect_line(text, "vperf_vcpu_wakeups_total{vm=\"same/1001\",vcpu=\"1\"} 11");
	expect_line(text, "vperf_vm_info{vm=\"same/1001\",name=\"same\",uuid=\"\",pid=\"1001\","
			  "manager=\"proxmox\",cgroup=\"/qemu.slice/"
			  "100.scope\",namespace=\"\",tenant=\"\",title=\"\"} 1");
	free(text);
	text = export("a\",x=\"1\n# EOF\n", "\xff\xe2\x80\xae", VP_METRICS_TEXT);
	expect_line(text, "vperf_vcpu_wakeups_total{vm=\"a\\\",x=\\\"1?# EOF?\",vcpu=\"1\"} 1");
	expect_line(text, "vperf_vcpu_wakeups_total{vm=\"??\",vcpu=\"0\"} 10");
	free(text);
}

/* What only vperfd has. */
static void test_store(void **state)
{
	static const struct vp_metrics_finding findings[] = {
	    {1001, "overcommit", 0.375}, {1000, "steal-task", 0.25}, {4711, "quota", 0.5}};
	const struct vp_metrics_store store = {.recording = "20261126T055305Z",
					       .bytes = 12345,
					       .recordings = 7,
					       .fired = 2,
					       .findings = findings,
					       .n_findings = 3};
	struct vp_metrics_self with_store = self;
	vp_vms vms = {0};
	struct vp_buffer out = {0};
	struct vp_account_counters counters = make_counters(&vms, "db", "web");

	with_store.store = &store;
	vp_export_metrics(&counters, &vms, &with_store, VP_METRICS_TEXT, &out);
	const char *text = vp_buffer_text(&out);
	expect_line(text, "vperf_vm_finding_ratio{vm=\"web\",rule=\"overcommit\"} 0.375000");
	expect_line(text, "vperf_vm_finding_ratio{vm=\"db\",rule=\"steal-task\"} 0.250000");
	assert_null(strstr(text, "quota"));
	expect_line(text, "vperf_recording_info{recording=\"20261126T055305Z\"} 1");
	expect_line(text, "vperf_findings_kept_total 2");
	expect_line(text, "vperf_store_bytes 12345");
	expect_line(text, "vperf_store_recordings 7");
	temporary_file("test_export_metrics.store.prom", text, strlen(text));
	vp_buffer_deinit(&out);
	vp_account_counters_deinit(&counters);
	vp_vms_deinit(&vms);
	char *without = export("db", "web", VP_METRICS_TEXT);
	assert_null(strstr(without, "vperf_store_bytes"));
	free(without);
}

/* All that a VM of four vCPUs and a host can have: every state, reason, thief and rule. */
static void test_series_limits(void **state)
{
	struct vp_metrics_finding findings[40];
	const struct vp_metrics_store store = {.recording = "20261126T055305Z",
					       .findings = findings,
					       .n_findings = VP_ARRAY_SIZE(findings)};
	struct vp_metrics_self with_store = self;
	struct vp_account_counters counters = {.intervals = 1};
	struct vp_counted_vm vm = {
	    .id = 1000, .n_reasons = VP_COUNTED_REASONS, .n_thieves = VP_COUNTED_THIEVES};
	struct vp_buffer out = {0};
	vp_vms vms = {0};
	size_t of_vm = 0, of_host = 0, of_findings = 0;

	vp_vec_push(&vms, ((struct vp_vm){.pid = 1000, .name = strdup("db")}));
	for (uint32_t vcpu = 0; vcpu < 4; vcpu++)
		vp_vec_push(&vm.vcpus, ((struct vp_counted_vcpu){.number = vcpu}));
	for (size_t i = 0; i <= VP_COUNTED_THIEVES; i++)
		vm.thieves[i].kind = "task";
	vp_vec_push(&counters.vms, vm);
	for (size_t i = 0; i < VP_ARRAY_SIZE(findings); i++)
		findings[i] = (struct vp_metrics_finding){1000, i % 2 ? "odd" : "even", 1.0 / 64};
	findings[39] = (struct vp_metrics_finding){1000, "worst", 0.5};
	with_store.store = &store;
	vp_export_metrics(&counters, &vms, &with_store, VP_METRICS_TEXT, &out);
	for (const char *line = vp_buffer_text(&out); *line; line = strchr(line, '\n') + 1) {
		const char *end = strchr(line, '\n'), *label = strstr(line, "{vm=\"db\"");
		if (*line == '#')
			continue;
		of_vm += label && label < end;
		of_host += !(label && label < end);
		of_findings += !strncmp(line, "vperf_vm_finding_ratio{", 23);
	}
	expect_line(vp_buffer_text(&out),
		    "vperf_vm_finding_ratio{vm=\"db\",rule=\"worst\"} 0.500000");
	assert_int_equal(of_findings, VP_METRICS_FINDINGS);
	assert_in_range(of_vm, 90, 100);
	assert_in_range(of_host, 10, 300);
	vp_buffer_deinit(&out);
	vp_account_counters_deinit(&counters);
	vp_vms_deinit(&vms);
}

/* The recording of the latest steal is an exemplar, of OpenMetrics only. */
static void test_exemplars(void **state)
{
	vp_vms vms = {0};
	struct vp_account_counters counters = make_counters(&vms, "db", "web");
	static const struct vp_counted_moment moment = {1500000000, 1700000000123456789,
							"20261126T055305Z"};

	counters.vms.at[0].vcpus.at[1].stolen = moment;
	counters.vms.at[1].thieves[0].stolen = moment;
	for (int format = 0; format < VP_METRICS_FORMATS; format++) {
		struct vp_buffer out = {0};
		vp_export_metrics(&counters, &vms, &self, format, &out);
		const char *text = vp_buffer_text(&out);
		if (format == VP_METRICS_TEXT) {
			assert_null(strstr(text, "20261126T055305Z"));
		} else {
			expect_line(text, "vperf_vcpu_stolen_seconds_total{vm=\"db\",vcpu=\"1\"} "
					  "0.000000007 # {recording=\"20261126T055305Z\"} "
					  "1.500000000 1700000000.123456789");
			expect_line(text, "vperf_vcpu_stolen_seconds_total{vm=\"db\",vcpu=\"0\"} "
					  "0.000000007");
			expect_line(text, "vperf_vm_stolen_by_seconds_total{vm=\"web\","
					  "kind=\"task\",thief=\"bad\\\"?\\\\task\"} "
					  "0.000000009 # {recording=\"20261126T055305Z\"} "
					  "1.500000000 1700000000.123456789");
			/* For tests/metrics/run: Prometheus scrapes it. */
			temporary_file("test_export_metrics.openmetrics", text, strlen(text));
		}
		vp_buffer_deinit(&out);
	}
	vp_account_counters_deinit(&counters);
	vp_vms_deinit(&vms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_text),          cmocka_unit_test(test_openmetrics),
	    cmocka_unit_test(test_names),         cmocka_unit_test(test_store),
	    cmocka_unit_test(test_series_limits), cmocka_unit_test(test_exemplars)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
