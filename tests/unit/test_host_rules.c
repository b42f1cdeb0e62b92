/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hosts that are locked down, and hosts whose PMU is their guests'. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "collect/programs/trigger.h"
#include "host/host.h"
#include "host/host_rules.h"
#include "host/perf_event.h"

#define SYS "test_host_rules.sys"

bool __wrap_vp_host_event_blocks_vms(const char *sysfs, const struct perf_event_attr *attr);
bool __real_vp_host_event_blocks_vms(const char *sysfs, const struct perf_event_attr *attr);
bool __wrap_vp_host_has_mediated_pmu(const char *sysfs);
bool __real_vp_host_has_mediated_pmu(const char *sysfs);

/* The machine that the trigger sees is that of the test's folder. */
static bool pretends;

bool __wrap_vp_host_event_blocks_vms(const char *sysfs, const struct perf_event_attr *attr)
{
	return __real_vp_host_event_blocks_vms(pretends ? SYS : sysfs, attr);
}

bool __wrap_vp_host_has_mediated_pmu(const char *sysfs)
{
	return __real_vp_host_has_mediated_pmu(pretends ? SYS : sysfs);
}

static void put(const char *folder, const char *file, const char *text)
{
	VP_AUTO_FREE char *make = vp_format("mkdir -p " SYS "/%s", folder);
	VP_AUTO_FREE char *path = vp_format(SYS "/%s/%s", folder, file);

	assert_int_equal(system(make), 0);
	temporary_file(path, text, strlen(text));
}

static void test_lockdown(void **state)
{
	assert_int_equal(system("rm -rf " SYS), 0);
	assert_null(vp_host_lockdown(SYS));
	put("kernel/security", "lockdown", "[none] integrity confidentiality\n");
	assert_null(vp_host_lockdown(SYS));
	put("kernel/security", "lockdown", "none [integrity] confidentiality\n");
	assert_string_equal(vp_host_lockdown(SYS), "integrity");
	put("kernel/security", "lockdown", "none integrity [confidentiality]\n");
	assert_string_equal(vp_host_lockdown(SYS), "confidentiality");
}

static bool blocks(uint32_t type, bool exclude_guest)
{
	const struct perf_event_attr attr = {.type = type, .exclude_guest = exclude_guest};

	return __real_vp_host_event_blocks_vms(SYS, &attr);
}

static void make_mediated(const char *module, const char *value)
{
	VP_AUTO_FREE char *folder = vp_format("module/%s/parameters", module);

	assert_int_equal(system("rm -rf " SYS), 0);
	put(folder, "enable_mediated_pmu", value);
	put("bus/event_source/devices/cpu_atom", "type", "10\n");
	put("bus/event_source/devices/uncore_imc", "type", "12\n");
}

/* Only events of the cores' PMU that count guests, too, are in VMs' way. */
static void test_mediated_pmu(void **state)
{
	make_mediated("kvm_intel", "N\n");
	assert_false(__real_vp_host_has_mediated_pmu(SYS));
	assert_false(blocks(PERF_TYPE_HARDWARE, false));
	make_mediated("kvm_amd", "Y\n");
	assert_true(__real_vp_host_has_mediated_pmu(SYS));
	assert_true(blocks(PERF_TYPE_HARDWARE, false));
	assert_true(blocks(PERF_TYPE_HW_CACHE, false));
	assert_true(blocks(PERF_TYPE_RAW, false));
	assert_true(blocks(10, false));
	assert_false(blocks(12, false));
	assert_false(blocks(PERF_TYPE_SOFTWARE, false));
	assert_false(blocks(PERF_TYPE_TRACEPOINT, false));
	assert_false(blocks(PERF_TYPE_HARDWARE, true));
}

static void expect_clock(const char *text, const char *other)
{
	put("devices/system/clocksource/clocksource0", "current_clocksource", text);
	VP_AUTO_FREE char *found = vp_host_other_clock(SYS);
	assert_string_equal(found ? found : "none", other);
}

/* The counter of each pCPU is the kernel's clock only if the kernel found them synchronised. */
static void test_clock(void **state)
{
	assert_int_equal(system("rm -rf " SYS), 0);
	assert_null(vp_host_other_clock(SYS));
	expect_clock("tsc\n", "none");
	expect_clock("tsc-early\n", "none");
	expect_clock("arch_sys_counter\n", "none");
	expect_clock("xen\n", "none");
	expect_clock("\n", "none");
	expect_clock("hpet\n", "hpet");
	expect_clock("kvm-clock\n", "kvm-clock");
	expect_clock("acpi_pm", "acpi_pm");
	expect_clock("ts\n", "ts");
}

/* No such event is opened, not even to see whether that is possible; the default is the clock. */
static void test_trigger_gives_way(void **state)
{
	struct perf_event_attr cycles = {.type = PERF_TYPE_HARDWARE, .size = sizeof(cycles)};
	struct vp_trigger trigger;

	make_mediated("kvm_intel", "Y\n");
	pretends = true;
	assert_int_equal(vp_perf_event_open(&cycles, 0, -1, -1), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_false(vp_trigger_has_hardware());
	expect_error(vp_trigger_open(&(struct vp_trigger_options){.event = "cycles"}, &trigger),
		     "enable_mediated_pmu");
	struct vp_error *error = vp_trigger_open(&(struct vp_trigger_options){0}, &trigger);
	if (!error) { /* else this user may not sample at all */
		assert_string_equal(trigger.name, "cpu-clock");
		assert_true(trigger.gives_way_to_vms);
		vp_trigger_close(&trigger);
	}
	vp_error_free(error);
	pretends = false;
}

/* Root has every privilege: the verifier's EACCES is a defect then, not a missing right. */
static void test_load_error(void **state)
{
	uid_t user = geteuid();

	expect_error(vp_host_load_error(-EPERM, "sampling"), "root (or CAP_BPF");
	expect_error(vp_host_load_error(-ENOENT, "sampling"),
		     "the sampling programs on this kernel");
	expect_error(vp_host_load_error(-EACCES, "sampling"),
		     user ? "root (or CAP_BPF" : "verifier of this kernel rejects the sampling");
	if (user)
		return;
	assert_int_equal(seteuid(65534), 0);
	struct vp_error *error = vp_host_load_error(-EACCES, "sampling");
	assert_int_equal(seteuid(user), 0);
	expect_error(error, "root (or CAP_BPF");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lockdown),   cmocka_unit_test(test_mediated_pmu),
	    cmocka_unit_test(test_clock),      cmocka_unit_test(test_trigger_gives_way),
	    cmocka_unit_test(test_load_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
