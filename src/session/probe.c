/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "collect/programs/exit_event.h"
#include "collect/programs/trigger.h"
#include "host/host.h"
#include "host/host_rules.h"
#include "host/kernel_btf.h"
#include "host/vm_scan.h"
#include "schema/records.h"
#include "schema/vm.h"

static bool probe_root(char *detail, size_t size)
{
	return vp_probe_report(geteuid() == 0, detail, size, geteuid() ? "not root" : "root");
}

/* Whether a file exists and is accessible; otherwise sets the reason. */
static bool probe_access(const char *path, int mode, char *detail, size_t size)
{
	bool found = !access(path, mode);

	if (found)
		return vp_probe_report(true, detail, size, path);
	snprintf(detail, size, "%s: %s", path, strerror(errno));
	return false;
}

static bool probe_btf(char *detail, size_t size)
{
	return probe_access(VP_HOST_BTF, R_OK, detail, size);
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

	return vp_probe_report(vendor != VP_VENDOR_UNKNOWN, detail, size, names[vendor]);
}

static bool probe_kvm_btf(char *detail, size_t size)
{
	bool found = vp_kernel_btf_has_member(NULL, "kvm", "kvm_vcpu", NULL);

	return vp_probe_report(found, detail, size,
			       found ? "struct kvm_vcpu is in BTF"
				     : "struct kvm_vcpu is not in BTF");
}

static bool probe_rip(char *detail, size_t size)
{
	switch (vp_host_vendor()) {
	case VP_VENDOR_INTEL: {
		struct vp_exit_event *event = vp_exit_event_open();
		bool found = event != NULL;
		vp_exit_event_close(event);
		return vp_probe_report(
		    found, detail, size,
		    found ? "read by KVM for kvm:kvm_exit"
			  : "only the CPU can read it, and this kernel has no event kvm:kvm_exit");
	}
	case VP_VENDOR_AMD:
		return vp_probe_report(true, detail, size, "read from the VMCB");
	case VP_VENDOR_ARM:
		return vp_probe_report(true, detail, size,
				       "read from KVM's memory, of VM exits from kvm:kvm_exit");
	default:
		return vp_probe_report(false, detail, size, "no KVM");
	}
}

static bool probe_cr3(char *detail, size_t size)
{
	if (vp_host_vendor() == VP_VENDOR_INTEL || vp_host_vendor() == VP_VENDOR_ARM)
		return vp_probe_report(
		    vp_kernel_btf_has_member(NULL, "kvm", "kvm_vcpu", NULL), detail, size,
		    "from the current task in guest memory: only the CPU can read CR3 itself");
	if (vp_host_vendor() == VP_VENDOR_UNKNOWN)
		return vp_probe_report(false, detail, size, "no KVM");
	if (vp_kernel_btf_has_member(NULL, "kvm_amd", "vcpu_svm", NULL))
		return vp_probe_report(true, detail, size, "CR3 is read from the VMCB");
	bool found = vp_kernel_btf_has_member(NULL, "kvm", "kvm_vcpu", NULL);
	return vp_probe_report(found, detail, size,
			       found ? "CR3 is read from the VMCB, located through struct kvm_vcpu"
				     : "neither struct vcpu_svm nor struct kvm_vcpu is in BTF");
}

static bool probe_lockdown(char *detail, size_t size)
{
	const char *mode = vp_host_lockdown("/sys");

	if (!mode)
		return vp_probe_report(true, detail, size, "not locked down");
	return vp_probe_report(
	    false, detail, size,
	    strcmp(mode, "integrity")
		? "locked down (confidentiality): BPF programs cannot read kernel memory"
		: "locked down (integrity): BPF programs cannot write to user memory");
}

static bool probe_hardware(char *detail, size_t size)
{
	if (vp_host_has_mediated_pmu("/sys"))
		return vp_probe_report(false, detail, size,
				       "KVM passes the PMU to guests (enable_mediated_pmu): no VM "
				       "could start while a counter is sampled");
	bool found = vp_trigger_has_hardware();

	return vp_probe_report(found, detail, size,
			       found ? "cycles" : "no hardware counter for sampling");
}

static bool probe_kallsyms(char *detail, size_t size)
{
	unsigned long address = 0;
	FILE *file = fopen("/proc/kallsyms", "re");

	/* The first symbols may be per-CPU ones, at 0 even if addresses are not hidden. */
	while (file && !address && fscanf(file, "%lx%*[^\n]", &address) == 1)
		continue;
	if (file)
		fclose(file);
	return vp_probe_report(address != 0, detail, size,
			       address ? "/proc/kallsyms shows addresses"
				       : "/proc/kallsyms hides addresses");
}

static bool probe_debugfs(char *detail, size_t size)
{
	return probe_access("/sys/kernel/debug/kvm", R_OK | X_OK, detail, size);
}

static bool probe_vsock(char *detail, size_t size)
{
	if (!access("/dev/vhost-vsock", F_OK))
		return vp_probe_report(true, detail, size, "/dev/vhost-vsock");
	return probe_access("/dev/vsock", R_OK, detail, size);
}

static bool probe_tsc(char *detail, size_t size)
{
	struct vp_clock_reading clock = vp_clock_read();

	snprintf(detail, size,
		 clock.tsc ? "read together with CLOCK_MONOTONIC within %u ns" : "none",
		 clock.error_ns);
	return clock.tsc != 0;
}

static bool probe_synchronised_tsc(char *detail, size_t size)
{
	VP_AUTO_FREE char *other = vp_host_other_clock("/sys");

	if (!other)
		return vp_probe_report(true, detail, size, "the kernel's clock source is the TSC");
	snprintf(detail, size,
		 "the kernel's clock source is %s, not the TSC: the TSCs of two pCPUs may differ",
		 other);
	return false;
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
		vp_probe_report(false, detail, size, "no VM is running");
	vp_vms_deinit(&vms);
	return found;
}

const struct vp_source *vp_source_host(void)
{
	static const struct vp_probe probes[] = {
	    {"privilege", "nothing can be recorded", true, probe_root},
	    {"kernel BTF", "the sampling programs cannot be relocated for this kernel (CO-RE)",
	     true, probe_btf},
	};
	static const struct vp_source source = {probes, VP_ARRAY_SIZE(probes)};

	return &source;
}

static const struct vp_source *source_guests(void)
{
	static const struct vp_probe probes[] = {
	    {"KVM", "only the host can be recorded", false, probe_kvm},
	    {"KVM's BTF",
	     "no exit reasons: idle and steal are distinguished by the scheduler only; guest "
	     "samples have no process",
	     false, probe_kvm_btf},
	    {"guest RIP", "VM exits have no guest RIP; samples cost more (perf's buffers)", false,
	     probe_rip},
	    {"guest CR3", "guest user samples have a VM but no process", false, probe_cr3},
	    {"KVM debugfs", "guest time stamps cannot be converted to host time", false,
	     probe_debugfs},
	    {"vsock", "guest agents cannot be reached over vsock ('vperf-agent dump FILE' works)",
	     false, probe_vsock},
	    {"running VMs", "only the host can be recorded", false, probe_vms},
	};
	static const struct vp_source source = {probes, VP_ARRAY_SIZE(probes)};

	return &source;
}

const struct vp_source *vp_source_machine(void)
{
	static const struct vp_probe probes[] = {
	    {"lockdown",
	     "integrity: no vperf lend; confidentiality: no BPF programs, so nothing is recorded",
	     false, probe_lockdown},
	    {"hardware counter", "samples are taken by cpu-clock instead of cycles", false,
	     probe_hardware},
	    {"kernel symbols", "host kernel functions have no names", false, probe_kallsyms},
	    {"TSC", "guest time stamps cannot be converted to host time", false, probe_tsc},
	    {"synchronised TSCs",
	     "times of guest events and of Xen's trace are off by the difference of the TSCs",
	     false, probe_synchronised_tsc},
	};
	static const struct vp_source source = {probes, VP_ARRAY_SIZE(probes)};

	return &source;
}

const struct vp_source *vp_source(size_t number)
{
	const struct vp_source *(*const all[])(void) = {
	    vp_source_host,      source_guests,    vp_source_sampler,     vp_source_account,
	    vp_source_intervals, vp_source_trace,  vp_source_tracepoints, vp_source_conditions,
	    vp_source_lend,      vp_source_machine};

	return number < VP_ARRAY_SIZE(all) ? all[number]() : NULL;
}
