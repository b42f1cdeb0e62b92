/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/diagnose_rules.h"

#include <string.h>

#include "base/macros.h"
#include "schema/vm.h"
#include "store/packet.h"

#define KERNEL_DOCUMENTATION "Linux: Documentation/"
#define RHEL_OVERCOMMIT                                                                            \
	"RHEL 7: Virtualization Deployment and Administration Guide, 7.3 (Overcommitting "         \
	"Virtualized CPUs)"

/* Advice for Xen domains that depends on the scheduler: `weight` and `source` name its command. */
#define STEAL_VM(weight, command)                                                                  \
	{                                                                                          \
		.advice = "pin the domains' vCPUs to different pCPUs (xl vcpu-pin), move one "     \
			  "to another host" weight "; for dom0: dom0_max_vcpus=, dom0_vcpus_pin",  \
		.source = "Xen: man xl (vcpu-pin" command "), docs/misc/xen-command-line "         \
			  "(dom0_max_vcpus, dom0_vcpus_pin)"                                       \
	}
#define OVERCOMMIT(weight, command)                                                                \
	{                                                                                          \
		.advice = "run fewer domains or vCPUs here, or let them use more pCPUs (xl "       \
			  "vcpu-pin, xl cpupool-cpu-add)" weight,                                  \
		.source = "Xen: man xl (vcpu-pin, cpupool-cpu-add" command ")"                     \
	}
#define QUOTA(command)                                                                             \
	{                                                                                          \
		.what = "the cap of its domain",                                                   \
		.advice = "raise the cap (xl " command " -d NAME -c PERCENT; 0: none)",            \
		.source = "Xen: man xl.cfg (cap), xl help " command                                \
	}
#define SHIFTS " only shift the loss to another domain"
#define BUDGETS "xl sched-rtds -d NAME -v VCPU -p PERIOD -b BUDGET"

static const struct vp_rule_words steal_vm_of[VP_SCHEDULERS] = {
    [VP_SCHEDULER_CREDIT2] =
	STEAL_VM(", or give this one a larger weight (xl sched-credit2 -d NAME -w WEIGHT)",
		 ", sched-credit2"),
    [VP_SCHEDULER_CREDIT] = STEAL_VM(
	", or give this one a larger weight (xl sched-credit -d NAME -w WEIGHT)", ", sched-credit"),
    [VP_SCHEDULER_RTDS] =
	STEAL_VM(", or give this one a larger budget (" BUDGETS ")", ", sched-rtds"),
    [VP_SCHEDULER_OTHER] = STEAL_VM("", "")};

static const struct vp_rule_words overcommit_of[VP_SCHEDULERS] = {
    [VP_SCHEDULER_CREDIT2] =
	OVERCOMMIT("; weights (xl sched-credit2 -w)" SHIFTS, ", sched-credit2"),
    [VP_SCHEDULER_CREDIT] = OVERCOMMIT("; weights (xl sched-credit -w)" SHIFTS, ", sched-credit"),
    [VP_SCHEDULER_RTDS] = OVERCOMMIT("; budgets (xl sched-rtds -b)" SHIFTS, ", sched-rtds"),
    [VP_SCHEDULER_OTHER] = OVERCOMMIT("", "")};

static const struct vp_rule_words quota_of[VP_SCHEDULERS] = {
    [VP_SCHEDULER_CREDIT2] = QUOTA("sched-credit2"),
    [VP_SCHEDULER_CREDIT] = QUOTA("sched-credit"),
    [VP_SCHEDULER_RTDS] = {.what = "the budget of its vCPUs",
			   .advice = "raise the budget (" BUDGETS ")",
			   .source = "Xen: man xl (sched-rtds)"},
    [VP_SCHEDULER_OTHER] = {.what = "the limit of its scheduler",
			    .advice = "move the domain to a cpupool with another scheduler (xl "
				      "cpupool-migrate)",
			    .source = "Xen: man xl (cpupool-migrate)"}};

static const struct vp_rule rules[] = {
    {.id = "steal-vm",
     .loss = VP_LOSS_THIEVES,
     .thieves = VP_THIEF_OTHER_VM,
     .least = 2,
     .what = "vCPUs of other VMs on the same pCPU",
     .evidence = "steal",
     .advice =
	 "pin the VMs' vCPUs to different pCPUs, move a VM to another host, or give this VM a "
	 "larger cpu.weight",
     .source = KERNEL_DOCUMENTATION "admin-guide/cgroup-v2.rst (cpu.weight, cpuset.cpus)",
     .advises_weight = true,
     .by_scheduler = steal_vm_of},
    {.id = "overcommit",
     .loss = VP_LOSS_OVERCOMMIT,
     .thieves = VP_THIEF_OTHER_VM,
     .least = 2,
     .what = "overcommit: more runnable vCPUs than the pCPUs that they may use",
     .evidence = "steal",
     .advice = "run fewer VMs or vCPUs here, or let them use more pCPUs; cpu.weight only shifts "
	       "the loss to another VM",
     .source = RHEL_OVERCOMMIT "; Linux: Documentation/admin-guide/cgroup-v2.rst (Weights)",
     .by_scheduler = overcommit_of},
    {.id = "steal-self",
     .loss = VP_LOSS_THIEVES,
     .thieves = VP_THIEF_SAME_VM,
     .least = 2,
     .what = "its own other vCPUs: more busy vCPUs than pCPUs that they may use",
     .evidence = "steal",
     .advice = "give the VM fewer vCPUs, or more pCPUs",
     .source = RHEL_OVERCOMMIT,
     .of_domains = {.advice = "give the domain fewer vCPUs (xl vcpu-set), or more pCPUs (xl "
			      "vcpu-pin, xl cpupool-cpu-add)",
		    .source = "Xen: man xl (vcpu-set, vcpu-pin, cpupool-cpu-add)"}},
    {.id = "steal-task",
     .loss = VP_LOSS_THIEVES,
     .thieves = VP_THIEF_TASK,
     .least = 4,
     .what = "tasks of the host",
     .evidence = "steal",
     .advice = "keep host tasks off these pCPUs (cpuset.cpus, isolcpus), or give them less weight",
     .source = KERNEL_DOCUMENTATION "admin-guide/cgroup-v2.rst, kernel-parameters.txt (isolcpus)",
     .advises_weight = true},
    {.id = "steal-vmm",
     .loss = VP_LOSS_THIEVES,
     .thieves = VP_THIEF_VMM,
     .least = 4,
     .what = "threads that emulate its own devices",
     .evidence = "steal",
     .advice = "pin the VMM's I/O and vhost threads to other pCPUs (iothreads, emulatorpin)",
     .source = "libvirt: formatdomain, CPU tuning (emulatorpin, iothreadpin)"},
    {.id = "steal-irq",
     .loss = VP_LOSS_THIEVES,
     .thieves = VP_THIEF_DEVICE,
     .least = 3,
     .what = "device interrupts on its pCPUs",
     .evidence = "steal",
     .advice = "bind these interrupts to other pCPUs (/proc/irq/N/smp_affinity, irqbalance)",
     .source = KERNEL_DOCUMENTATION "core-api/irq/irq-affinity.rst"},
    {.id = "irq-storm",
     .loss = VP_LOSS_THIEVES,
     .thieves = VP_THIEF_STORM,
     .least = 3,
     .what = "an interrupt storm",
     .evidence = "steal",
     .advice = "find the source: for local_timer, a program arming timers (vperf record "
	       "--trace=timer); for a device, its interrupt moderation (ethtool -C); for function "
	       "calls, the pCPUs that send them; or keep it off these pCPUs",
     .source = KERNEL_DOCUMENTATION "admin-guide/kernel-per-CPU-kthreads.rst (TIMER_SOFTIRQ, "
				    "HRTIMER_SOFTIRQ), core-api/irq/irq-affinity.rst; "
				    "man ethtool (-C)"},
    {.id = "steal-tick",
     .loss = VP_LOSS_THIEVES,
     .thieves = VP_THIEF_VECTOR,
     .least = 3,
     .what = "the pCPU's own interrupts: timer ticks and function-call IPIs",
     .evidence = "steal",
     .advice = "boot the host with nohz_full for pCPUs that run one vCPU each, and keep programs "
	       "with timers off them",
     .source = KERNEL_DOCUMENTATION "timers/no_hz.rst"},
    {.id = "quota",
     .loss = VP_LOSS_THROTTLED,
     .least = 2,
     .what = "the CPU quota of its cgroup",
     .evidence = "steal",
     .advice = "raise cpu.max of the VM's cgroup, or allow bursts (cpu.max.burst)",
     .source = KERNEL_DOCUMENTATION "admin-guide/cgroup-v2.rst (cpu.max, cpu.max.burst)",
     .by_scheduler = quota_of},
    {.id = "wakeup",
     .loss = VP_LOSS_WAKING,
     .least = 3,
     .what = "wakeup latency: an idle pCPU was slow to run it",
     .evidence = "account",
     .advice = "more halt polling (kvm.halt_poll_ns, haltpoll in the guest), or shallower idle "
	       "states (PM QoS, idle=)",
     .source = KERNEL_DOCUMENTATION "virt/kvm/halt-polling.rst, virt/guest-halt-polling.rst, "
				    "admin-guide/pm/cpuidle.rst (PM QoS, idle=)",
     .of_domains = {.advice = "shallower idle states (xenpm set-max-cstate, max_cstate=), or "
			      "dedicated pCPUs (xl vcpu-pin)",
		    .source = "Xen: xenpm help (set-max-cstate), docs/misc/xen-command-line "
			      "(max_cstate), man xl (vcpu-pin)"}},
    {.id = "halt-polling",
     .loss = VP_LOSS_POLL_WASTED,
     .least = 5,
     .what = "halt polling that ended without a wakeup: host CPU time, not the guest's",
     .evidence = "account",
     .advice =
	 "lower kvm.halt_poll_ns, or its growth (halt_poll_ns_grow), if the pCPU has other work",
     .source = KERNEL_DOCUMENTATION "virt/kvm/halt-polling.rst"},
    {.id = "exits-lock",
     .loss = VP_LOSS_EXITS,
     .reasons = "PAUSE PAUSE_INSTRUCTION",
     .preempted = VP_RULE_IF_PREEMPTED,
     .least = 2,
     .what = "spinning for locks while sibling vCPUs wait for a pCPU (lock-holder preemption)",
     .evidence = "exits --by function",
     .advice =
	 "paravirtual spinlocks in the guest (kvm-pv-unhalt), fewer vCPUs, or vCPUs that are not "
	 "preempted",
     .source = KERNEL_DOCUMENTATION "virt/kvm/x86/cpuid.rst (KVM_FEATURE_PV_UNHALT)",
     .of_domains = {.advice = "paravirtual spinlocks in the guest (not nopvspin), fewer vCPUs, "
			      "or vCPUs that are not preempted",
		    .source = KERNEL_DOCUMENTATION "admin-guide/kernel-parameters.txt (nopvspin)"}},
    {.id = "exits-pause",
     .loss = VP_LOSS_EXITS,
     .reasons = "PAUSE PAUSE_INSTRUCTION",
     .preempted = VP_RULE_UNLESS_PREEMPTED,
     .least = 5,
     .what = "PAUSE exits of spinning code",
     .evidence = "exits --by function",
     .advice = "look for a contended lock in that function; kvm's ple_gap and pause_filter_count "
	       "set how long code may spin before an exit",
     .source = "Intel SDM 3C (PAUSE-loop exiting); AMD APM 2, 15.14.4 (pause filter)",
     .of_domains = {.advice =
			"look for a contended lock in that function; on Intel, Xen's ple_gap and "
			"ple_window set how long code may spin before an exit",
		    .source = "Xen: docs/misc/xen-command-line (ple_gap, ple_window); Intel SDM 3C "
			      "(PAUSE-loop exiting)"}},
    {.id = "exits-timer",
     .loss = VP_LOSS_EXITS,
     .reasons = "MSR MSR_WRITE PREEMPTION_TIMER APIC_WRITE APIC_ACCESS AVIC_NOACCEL",
     /* IA32_TSC_DEADLINE, the initial count of x2APIC and of xAPIC */
     .details = "MSR 0x6e0 write,MSR 0x838 write,APIC 0x380 write,PREEMPTION_TIMER",
     .functions = "lapic_next lapic_timer apic_timer clockevents_program apic_write_tscdeadline",
     .least = 5,
     .what = "exits that program the guest's timer",
     .evidence = "exits --by function",
     .advice =
	 "fewer timers in the guest: a lower CONFIG_HZ, nohz_full, longer polling intervals in "
	 "that program",
     .source = KERNEL_DOCUMENTATION "timers/no_hz.rst"},
    {.id = "exits-ipi",
     .loss = VP_LOSS_EXITS,
     .reasons =
	 "MSR MSR_WRITE APIC_WRITE APIC_ACCESS AVIC_INCOMPLETE_IPI AVIC_NOACCEL VMMCALL VMCALL",
     /* the interrupt command of x2APIC and of xAPIC */
     .details = "MSR 0x830 write,APIC 0x300 write,AVIC_INCOMPLETE_IPI",
     .functions = "send_IPI send_ipi smp_call native_apic_icr x2apic_icr",
     .least = 5,
     .what = "exits that send interrupts between vCPUs (IPI)",
     .evidence = "exits --by function",
     .advice =
	 "APICv, AVIC or IPI virtualization on the host; paravirtual IPIs and TLB flushes in the "
	 "guest; fewer wakeups across vCPUs",
     .source = KERNEL_DOCUMENTATION
     "virt/kvm/x86/cpuid.rst (KVM_FEATURE_PV_SEND_IPI, KVM_FEATURE_PV_TLB_FLUSH); Intel SDM 3C "
     "(APIC virtualization, IPI virtualization); AMD APM 2, 15.29 (AVIC)",
     .of_domains = {.advice = "APICv on Intel hosts (Xen's apicv=, on by default); fewer wakeups "
			      "across vCPUs in the guest",
		    .source = "Xen: docs/misc/xen-command-line (apicv)"}},
    {.id = "exits-msr",
     .loss = VP_LOSS_EXITS,
     .reasons = "MSR MSR_READ MSR_WRITE",
     .least = 5,
     .what = "exits that read or write model-specific registers",
     .evidence = "exits --by function",
     .advice = "see which register that function uses; x2APIC with APICv or AVIC, and paravirtual "
	       "EOI, avoid most of them",
     .source = KERNEL_DOCUMENTATION "virt/kvm/x86/msr.rst (MSR_KVM_EOI_EN); Intel SDM 3C "
				    "(virtualizing MSR-based APIC accesses); AMD APM 2, 15.29",
     .of_domains = {.advice = "see which register that function uses; on Intel, x2APIC with APICv "
			      "avoids most of them",
		    .source = "Xen: docs/misc/xen-command-line (apicv); Intel SDM 3C (virtualizing "
			      "MSR-based APIC accesses)"}},
    {.id = "exits-port",
     .loss = VP_LOSS_EXITS,
     .reasons = "IOIO IO_INSTRUCTION",
     .least = 3,
     .what = "exits for I/O ports",
     .evidence = "exits --by function",
     .advice =
	 "replace the emulated device (serial console, IDE, VGA, ACPI PM timer as clock) by a "
	 "virtio one, or silence its driver",
     .source = "QEMU: system/devices/virtio; Linux: Documentation/admin-guide/"
	       "kernel-parameters.txt (clocksource)",
     .of_domains = {.advice = "replace the emulated device (serial console, IDE, VGA, ACPI PM "
			      "timer as clock) by a paravirtual one, or silence its driver",
		    .source = "Xen: man xl.cfg (xen_platform_pci)"}},
    {.id = "exits-mmio",
     .loss = VP_LOSS_EXITS,
     .reasons = "NPF EPT_VIOLATION EPT_MISCONFIG",
     .memory = VP_RULE_OF_DEVICES,
     .least = 3,
     .what = "exits for device memory (MMIO), emulated by the VMM or KVM",
     .evidence = "exits --by function",
     .advice = "a virtio device with ioeventfd or vhost instead of an emulated one",
     .source = KERNEL_DOCUMENTATION "virt/kvm/api.rst (KVM_IOEVENTFD)",
     .of_domains =
	 {.advice =
	      "paravirtual drivers (xen-netfront, xen-blkfront) instead of an emulated device",
	  .source = "Xen: man xl.cfg (xen_platform_pci)"}},
    {.id = "faults",
     .loss = VP_LOSS_EXITS,
     .reasons = "NPF EPT_VIOLATION EPT_MISCONFIG",
     .memory = VP_RULE_OF_MEMORY,
     .least = 3,
     .what = "faults of guest memory that the host has to back",
     .evidence = "exits --by function",
     .advice =
	 "back the guest with huge pages, allocate its memory at its start (prealloc), and keep "
	 "balloon, swap and KSM from breaking it up",
     .source = KERNEL_DOCUMENTATION "admin-guide/mm/transhuge.rst, hugetlbpage.rst, ksm.rst; QEMU: "
				    "man qemu (memory-backend-ram, prealloc)",
     .of_domains =
	 {.advice = "give the domain all of its memory at its start (memory = maxmem), and keep "
		    "ballooning and paging from breaking up its superpages",
	  .source =
	      "Xen: man xl.cfg (memory, maxmem), docs/misc/xen-command-line (hap_1gb, hap_2mb)"}},
    {.id = "exits-cpuid",
     .loss = VP_LOSS_EXITS,
     .reasons = "CPUID",
     .least = 3,
     .what = "exits for CPUID",
     .evidence = "exits --by function",
     .advice = "keep CPUID out of that function's loop: it always exits; as a barrier use LFENCE",
     .source = "Intel SDM 3C (instructions that cause VM exits unconditionally), 2A (LFENCE)"},
    {.id = "tlb-misses",
     .loss = VP_LOSS_TLB,
     .least = 5,
     .what = "TLB misses in the guest",
     .evidence = "model linear",
     .advice = "huge pages: in the guest for its program (transparent_hugepage, hugetlbfs), and on "
	       "the host for the guest's memory (hugepages of the VM, transparent_hugepage)",
     .source = KERNEL_DOCUMENTATION "admin-guide/mm/transhuge.rst, admin-guide/mm/hugetlbpage.rst"},
    {.id = "tool-cost",
     .loss = VP_LOSS_THIEVES,
     .thieves = VP_THIEF_TOOL,
     .least = 3,
     .what = "vperf itself",
     .evidence = "steal",
     .advice = "record less: no --trace, no -g, a lower rate (-F), --no-guest-memory",
     .source = "vperf: bench/README.md"},
    {.id = "lost-samples",
     .loss = VP_LOSS_RECORDS,
     .streams = VP_STREAMS_SAMPLES,
     .records = "samples",
     .least = 0.1,
     .what = "the profile is missing that much CPU time, mostly from the busiest moments",
     .evidence = "info",
     .advice = "larger buffers (-m 16M), a lower rate (-F), no call chains (-g)",
     .source = "vperf: man vperf-record (-m), bench/README.md"},
    {.id = "lost-account",
     .loss = VP_LOSS_RECORDS,
     .streams = VP_STREAMS(VP_STREAM_ACCOUNT) | VP_STREAMS(VP_STREAM_STATES),
     .records = "vCPU accounting events",
     .what = "the list of states has gaps, or sums are missing what did not fit into the tables",
     .evidence = "info",
     .advice = "record without --account-events, or leave vperf some CPU time",
     .source = "vperf: docs/method-accounting.md"},
    {.id = "lost-events",
     .loss = VP_LOSS_RECORDS,
     .streams = VP_STREAMS(VP_STREAM_TRACE) | VP_STREAMS(VP_STREAM_TRACEPOINTS) |
		VP_STREAMS(VP_STREAM_HYPERVISOR),
     .records = "trace events",
     .least = 0.1,
     .what = "timeline, sched and critical have gaps there",
     .evidence = "info",
     .advice = "larger buffers (-m 64M), fewer events (--trace=sched, a --filter), or a flight "
	       "recorder (--flight)",
     .source = "vperf: man vperf-record (-m, --filter, --flight), docs/method-trace.md"},
    {.id = "lost-guest-events",
     .loss = VP_LOSS_GUEST_EVENTS,
     .records = "of its guest's events",
     .least = 0.1,
     .what = "sched and critical have gaps in that guest",
     .evidence = "info",
     .advice =
	 "fewer events (--trace-guests=sched), more memory for them in the guest (vperf-agent "
	 "serve --ring 32768), a higher --agent-limit",
     .source =
	 "vperf: man vperf-agent (--ring), vperf-record (--agent-limit), docs/method-trace.md"},
    {.id = "lost-intervals",
     .loss = VP_LOSS_RECORDS,
     .streams = VP_STREAMS(VP_STREAM_INTERVALS),
     .records = "intervals",
     .least = 0.1,
     .what = "the sums of vperf stat are missing these intervals",
     .evidence = "info",
     .advice = "larger buffers (-m 16M), longer intervals",
     .source = "vperf: man vperf-stat (-m)"},
};

enum vp_scheduler vp_scheduler_of(const struct vp_vm *vm)
{
	static const char *const names[] = {[VP_SCHEDULER_CREDIT2] = "credit2",
					    [VP_SCHEDULER_CREDIT] = "credit",
					    [VP_SCHEDULER_RTDS] = "rtds"};

	if (!vm->scheduler)
		return VP_SCHEDULER_CREDIT2;
	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++)
		if (!strcmp(vm->scheduler, names[i]))
			return (enum vp_scheduler)i;
	return VP_SCHEDULER_OTHER;
}

struct vp_rule_words vp_rule_words(const struct vp_rule *rule, const struct vp_vm *vm)
{
	const struct vp_rule_words *other =
	    rule->by_scheduler && vm ? &rule->by_scheduler[vp_scheduler_of(vm)] : &rule->of_domains;
	struct vp_rule_words words = {rule->what, rule->advice, rule->source};

	if (!vm || !vm->has_domain)
		return words;
	if (other->what)
		words.what = other->what;
	if (other->advice) {
		words.advice = other->advice;
		words.source = other->source;
	}
	return words;
}

const struct vp_rule *vp_rules(size_t *count)
{
	*count = VP_ARRAY_SIZE(rules);
	return rules;
}
