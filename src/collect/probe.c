/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "collect/account.h"
#include "collect/clock.h"
#include "collect/host.h"
#include "collect/intervals.h"
#include "collect/pcpus.h"
#include "collect/sampler.h"
#include "collect/trigger.h"
#include "collect/vm_scan.h"

static bool say(bool found, char *detail, size_t size, const char *text)
{
	snprintf(detail, size, "%s", text);
	return found;
}

static bool probe_root(char *detail, size_t size)
{
	return say(geteuid() == 0, detail, size, geteuid() ? "not root" : "root");
}

static bool probe_btf(char *detail, size_t size)
{
	bool found = !access(VP_HOST_BTF, R_OK);

	return say(found, detail, size, found ? VP_HOST_BTF : strerror(errno));
}

static bool probe_kvm(char *detail, size_t size)
{
	enum vp_vendor vendor = vp_host_vendor();

	static const char *const names[] = {
	    [VP_VENDOR_UNKNOWN] = "no KVM: neither kvm_amd nor kvm_intel is loaded",
	    [VP_VENDOR_INTEL] = "kvm_intel (VMX)",
	    [VP_VENDOR_AMD] = "kvm_amd (SVM)",
	    [VP_VENDOR_ARM] = "in the kernel (Arm)",
	};

	return say(vendor != VP_VENDOR_UNKNOWN, detail, size, names[vendor]);
}

static bool probe_kvm_btf(char *detail, size_t size)
{
	bool found = vp_host_has_struct("kvm", "kvm_vcpu");

	return say(found, detail, size,
		   found ? "struct kvm_vcpu is described" : "struct kvm_vcpu is not described");
}

static bool probe_as_root(char *detail, size_t size)
{
	if (vp_host_vendor() == VP_VENDOR_INTEL)
		return say(false, detail, size, "VMX keeps CR3 where only the CPU reads it");
	if (vp_host_vendor() == VP_VENDOR_ARM)
		return say(false, detail, size, "not read from Arm's vCPUs");
	if (vp_host_vendor() == VP_VENDOR_UNKNOWN)
		return say(false, detail, size, "no KVM");
	if (vp_host_has_struct("kvm_amd", "vcpu_svm"))
		return say(true, detail, size, "CR3 is read from the VMCB");
	bool found = vp_host_has_struct("kvm", "kvm_vcpu");
	return say(found, detail, size,
		   found ? "CR3 is read from the VMCB, found behind struct kvm_vcpu"
			 : "neither struct vcpu_svm nor kvm_vcpu is described");
}

static bool probe_hardware(char *detail, size_t size)
{
	bool found = vp_trigger_has_hardware();

	return say(found, detail, size, found ? "cycles" : "no hardware counter to sample on");
}

static bool probe_sampler(bool with_chains, char *detail, size_t size)
{
	struct vp_trigger_options options = {.event = "cpu-clock", .frequency = 1000};
	struct vp_trigger trigger = {0};
	struct vp_sampler_options sampling = {
	    .trigger = &trigger, .buffer_pages = 8, .with_chains = with_chains};
	struct vp_sampler *sampler = NULL;
	struct vp_error *error = vp_trigger_open(&options, &trigger);

	if (!error)
		error = vp_sampler_start(&sampling, &sampler);
	bool found = !error;
	say(found, detail, size, found ? "loaded and attached" : vp_error_message(error));
	vp_error_free(error);
	vp_sampler_free(sampler);
	vp_trigger_close(&trigger);
	return found;
}

static bool probe_programs(char *detail, size_t size)
{
	return probe_sampler(false, detail, size);
}

static bool probe_chains(char *detail, size_t size)
{
	return probe_sampler(true, detail, size);
}

static bool probe_account(char *detail, size_t size)
{
	struct vp_account_source *source = NULL;
	vp_vms none = {0};
	struct vp_error *error = vp_account_source_open(&none, false, &source);
	bool found = !error;
	const char *missing = found ? vp_account_source_missing(source) : NULL;

	say(found, detail, size,
	    error     ? vp_error_message(error)
	    : missing ? missing
		      : "loaded and attached");
	vp_error_free(error);
	vp_account_source_free(source);
	return found;
}

static void take_nothing(void *context, uint32_t pcpu, char *records, size_t size)
{
}

static bool probe_intervals(char *detail, size_t size)
{
	static const char text[] = "interval time 1s\ncount time exits";
	struct vp_intervals *intervals = NULL;
	struct vp_recipe recipe = {0};
	struct vp_error *error = vp_recipe_parse("", text, sizeof(text) - 1, &recipe);
	struct vp_intervals_options options = {
	    .recipe = &recipe, .ring_bytes = (size_t)getpagesize(), .take = take_nothing};

	if (!error)
		error = vp_intervals_open(&options, &intervals);
	bool found = !error;
	VP_AUTO_FREE char *missing = found ? vp_intervals_missing(intervals) : NULL;
	say(found, detail, size,
	    error     ? vp_error_message(error)
	    : missing ? missing
		      : "loaded and attached");
	vp_error_free(error);
	vp_intervals_free(intervals);
	vp_recipe_deinit(&recipe);
	return found;
}

static bool probe_kallsyms(char *detail, size_t size)
{
	unsigned long address = 0;
	FILE *file = fopen("/proc/kallsyms", "re");

	/* The first symbols may be per-CPU ones, at 0 even where nothing is hidden. */
	while (file && !address && fscanf(file, "%lx%*[^\n]", &address) == 1)
		continue;
	if (file)
		fclose(file);
	return say(address != 0, detail, size,
		   address ? "/proc/kallsyms shows addresses" : "/proc/kallsyms hides addresses");
}

static bool probe_debugfs(char *detail, size_t size)
{
	bool found = !access("/sys/kernel/debug/kvm", R_OK | X_OK);

	return say(found, detail, size, found ? "/sys/kernel/debug/kvm" : strerror(errno));
}

static bool probe_vsock(char *detail, size_t size)
{
	bool found = !access("/dev/vsock", R_OK) || !access("/dev/vhost-vsock", F_OK);

	return say(found, detail, size, found ? "/dev/vsock" : "no vsock on this host");
}

static bool probe_tsc(char *detail, size_t size)
{
	struct vp_clock_reading clock = vp_clock_read();

	snprintf(detail, size, clock.tsc ? "read with CLOCK_MONOTONIC within %u ns" : "none",
		 clock.error_ns);
	return clock.tsc != 0;
}

static bool probe_vms(char *detail, size_t size)
{
	vp_vms vms = {0};
	struct vp_error *error = vp_vm_scan(&vms, true);
	size_t at = 0;

	vp_error_free(error);
	detail[0] = 0;
	vp_vec_each (&vms, vm)
		if (at < size)
			at += (size_t)snprintf(detail + at, size - at, "%s%s", at ? ", " : "",
					       vm->name);
	bool found = vms.count > 0;
	if (!found)
		say(false, detail, size, "no VM is running");
	vp_vms_deinit(&vms);
	return found;
}

static const struct vp_probe probes[] = {
    {"privilege", "nothing can be recorded", true, probe_root},
    {"kernel BTF", "the sampling programs cannot be fitted to this kernel", true, probe_btf},
    {"sampling programs", "nothing can be recorded", true, probe_programs},
    {"call chains", "'record -g' does not work", false, probe_chains},
    {"accounting programs", "no exact account of the vCPUs' time (account, steal, exits, top)",
     false, probe_account},
    {"interval programs", "'vperf stat' does not work", false, probe_intervals},
    {"KVM", "only the host itself is recorded", false, probe_kvm},
    {"KVM's BTF",
     "no exit reasons: blank time is told apart by the scheduler alone; guest "
     "processes are not told apart",
     false, probe_kvm_btf},
    {"guest address-space root", "guest user time is named by VM, not by process", false,
     probe_as_root},
    {"hardware counter", "samples are taken by clock (cpu-clock), not by cycles", false,
     probe_hardware},
    {"kernel symbols", "host kernel functions have no names", false, probe_kallsyms},
    {"KVM debugfs", "guest time stamps cannot be converted to host time", false, probe_debugfs},
    {"vsock", "agents in guests cannot be asked over vsock (a file works)", false, probe_vsock},
    {"TSC", "guest time stamps cannot be converted to host time", false, probe_tsc},
    {"running VMs", "there is nothing to see but the host", false, probe_vms},
};

const struct vp_probe *vp_probes(size_t *count)
{
	*count = VP_ARRAY_SIZE(probes);
	return probes;
}
