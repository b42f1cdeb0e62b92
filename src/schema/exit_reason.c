/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/exit_reason.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/macros.h"
#include "schema/records.h"

static const char *const amd_names[] = {
    [0x60] = "INTR",
    [0x61] = "NMI",
    [0x62] = "SMI",
    [0x63] = "INIT",
    [0x64] = "VINTR",
    [0x65] = "CR0_SEL_WRITE",
    [0x66] = "IDTR_READ",
    [0x67] = "GDTR_READ",
    [0x68] = "LDTR_READ",
    [0x69] = "TR_READ",
    [0x6a] = "IDTR_WRITE",
    [0x6b] = "GDTR_WRITE",
    [0x6c] = "LDTR_WRITE",
    [0x6d] = "TR_WRITE",
    [0x6e] = "RDTSC",
    [0x6f] = "RDPMC",
    [0x70] = "PUSHF",
    [0x71] = "POPF",
    [0x72] = "CPUID",
    [0x73] = "RSM",
    [0x74] = "IRET",
    [0x75] = "SWINT",
    [0x76] = "INVD",
    [0x77] = "PAUSE",
    [0x78] = "HLT",
    [0x79] = "INVLPG",
    [0x7a] = "INVLPGA",
    [0x7b] = "IOIO",
    [0x7c] = "MSR",
    [0x7d] = "TASK_SWITCH",
    [0x7e] = "FERR_FREEZE",
    [0x7f] = "SHUTDOWN",
    [0x80] = "VMRUN",
    [0x81] = "VMMCALL",
    [0x82] = "VMLOAD",
    [0x83] = "VMSAVE",
    [0x84] = "STGI",
    [0x85] = "CLGI",
    [0x86] = "SKINIT",
    [0x87] = "RDTSCP",
    [0x88] = "ICEBP",
    [0x89] = "WBINVD",
    [0x8a] = "MONITOR",
    [0x8b] = "MWAIT",
    [0x8c] = "MWAIT_CONDITIONAL",
    [0x8d] = "XSETBV",
    [0x8e] = "RDPRU",
    [0x8f] = "EFER_WRITE_TRAP",
    [0xa0] = "INVLPGB",
    [0xa1] = "INVLPGB_ILLEGAL",
    [0xa2] = "INVPCID",
    [0xa3] = "MCOMMIT",
    [0xa4] = "TLBSYNC",
    [0xa5] = "BUSLOCK",
    [0xa6] = "IDLE_HLT",
};

/* Ranges of codes, one per register or vector, and codes outside the main range. */
static const struct {
	uint32_t first, last;
	const char *format;
} amd_ranges[] = {
    {0x00, 0x0f, "CR%u_READ"},
    {0x10, 0x1f, "CR%u_WRITE"},
    {0x20, 0x2f, "DR%u_READ"},
    {0x30, 0x3f, "DR%u_WRITE"},
    {0x40, 0x5f, "EXCP%u"},
    {0x90, 0x9f, "CR%u_WRITE_TRAP"},
    {0x400, 0x400, "NPF"},
    {0x401, 0x401, "AVIC_INCOMPLETE_IPI"},
    {0x402, 0x402, "AVIC_NOACCEL"},
    {0x403, 0x403, "VMGEXIT"},
    {0xfffffffe, 0xfffffffe, "BUSY"},
    {0xffffffff, 0xffffffff, "INVALID"},
};

static const char *const intel_names[] = {
    [0] = "EXCEPTION_NMI",
    [1] = "EXTERNAL_INTERRUPT",
    [2] = "TRIPLE_FAULT",
    [3] = "INIT_SIGNAL",
    [4] = "SIPI_SIGNAL",
    [5] = "IO_SMI",
    [6] = "OTHER_SMI",
    [7] = "INTERRUPT_WINDOW",
    [8] = "NMI_WINDOW",
    [9] = "TASK_SWITCH",
    [10] = "CPUID",
    [11] = "GETSEC",
    [12] = "HLT",
    [13] = "INVD",
    [14] = "INVLPG",
    [15] = "RDPMC",
    [16] = "RDTSC",
    [17] = "RSM",
    [18] = "VMCALL",
    [19] = "VMCLEAR",
    [20] = "VMLAUNCH",
    [21] = "VMPTRLD",
    [22] = "VMPTRST",
    [23] = "VMREAD",
    [24] = "VMRESUME",
    [25] = "VMWRITE",
    [26] = "VMOFF",
    [27] = "VMON",
    [28] = "CR_ACCESS",
    [29] = "DR_ACCESS",
    [30] = "IO_INSTRUCTION",
    [31] = "MSR_READ",
    [32] = "MSR_WRITE",
    [33] = "INVALID_STATE",
    [34] = "MSR_LOAD_FAIL",
    [36] = "MWAIT_INSTRUCTION",
    [37] = "MONITOR_TRAP_FLAG",
    [39] = "MONITOR_INSTRUCTION",
    [40] = "PAUSE_INSTRUCTION",
    [41] = "MCE_DURING_VMENTRY",
    [43] = "TPR_BELOW_THRESHOLD",
    [44] = "APIC_ACCESS",
    [45] = "EOI_INDUCED",
    [46] = "GDTR_IDTR",
    [47] = "LDTR_TR",
    [48] = "EPT_VIOLATION",
    [49] = "EPT_MISCONFIG",
    [50] = "INVEPT",
    [51] = "RDTSCP",
    [52] = "PREEMPTION_TIMER",
    [53] = "INVVPID",
    [54] = "WBINVD",
    [55] = "XSETBV",
    [56] = "APIC_WRITE",
    [57] = "RDRAND",
    [58] = "INVPCID",
    [59] = "VMFUNC",
    [60] = "ENCLS",
    [61] = "RDSEED",
    [62] = "PML_FULL",
    [63] = "XSAVES",
    [64] = "XRSTORS",
    [66] = "SPP",
    [67] = "UMWAIT",
    [68] = "TPAUSE",
    [69] = "LOADIWKEY",
    [74] = "BUS_LOCK",
    [75] = "NOTIFY",
    [76] = "SEAMCALL",
    [77] = "TDCALL",
    [84] = "MSR_READ_IMM",
    [85] = "MSR_WRITE_IMM",
};

static const char *const arm_names[] = {
    [0x00] = "UNKNOWN",
    [0x01] = "WFX",
    [0x03] = "CP15_32",
    [0x04] = "CP15_64",
    [0x05] = "CP14_MR",
    [0x06] = "CP14_LS",
    [0x07] = "FP_ASIMD",
    [0x08] = "CP10_ID",
    [0x09] = "PAC",
    [0x0c] = "CP14_64",
    [0x0e] = "ILLEGAL_STATE",
    [0x11] = "SVC32",
    [0x12] = "HVC32",
    [0x13] = "SMC32",
    [0x15] = "SVC64",
    [0x16] = "HVC64",
    [0x17] = "SMC64",
    [0x18] = "SYS64",
    [0x19] = "SVE",
    [0x1a] = "ERET",
    [0x20] = "IABT_LOW",
    [0x24] = "DABT_LOW",
    [0x2f] = "SERROR_TRAP",
    [0x30] = "BREAKPOINT_LOW",
    [0x32] = "SOFTSTEP_LOW",
    [0x34] = "WATCHPOINT_LOW",
    [0x38] = "BKPT32",
    [0x3c] = "BRK64",
    [VP_ARM_NO_TRAP] = "IRQ",
    [VP_ARM_NO_TRAP + 1] = "SERROR",
    [VP_ARM_NO_TRAP + 3] = "ILLEGAL",
};

static const char *const hypercall_names[] = {
    "set_trap_table",
    "mmu_update",
    "set_gdt",
    "stack_switch",
    "set_callbacks",
    "fpu_taskswitch",
    "sched_op_compat",
    "platform_op",
    "set_debugreg",
    "get_debugreg",
    "update_descriptor",
    [12] = "memory_op",
    "multicall",
    "update_va_mapping",
    "set_timer_op",
    "event_channel_op_compat",
    "xen_version",
    "console_io",
    "physdev_op_compat",
    "grant_table_op",
    "vm_assist",
    "update_va_mapping_otherdomain",
    "iret",
    "vcpu_op",
    "set_segment_base",
    "mmuext_op",
    "xsm_op",
    "nmi_op",
    "sched_op",
    "callback_op",
    "xenoprof_op",
    "event_channel_op",
    "physdev_op",
    "hvm_op",
    "sysctl",
    "domctl",
    "kexec_op",
    "tmem_op",
    "argo_op",
    "xenpmu_op",
    "dm_op",
    "hypfs_op",
    [48] = "mca",
};

/* Indexed by Xen's event number. */
static const char *const work_names[] = {
    [4] = "page fault",        [5] = "forced invalid opcode", [6] = "privileged instruction",
    [7] = "4 GB segment",      [8] = "FPU's state",           [9] = "paging fixup",
    [10] = "GDT or LDT fault", [11] = "page-table write",     [12] = "page-table write",
};

enum {
	ARM_WFX = 0x01,
	ARM_INSTRUCTION_ABORT = 0x20, /* below EL2 */
	ARM_DATA_ABORT = 0x24,
	AMD_INTR = 0x60,
	AMD_INIT = 0x63,
	AMD_HLT = 0x78,
	AMD_MWAIT = 0x8b,
	AMD_MWAIT_CONDITIONAL = 0x8c,
	AMD_IDLE_HLT = 0xa6,
	AMD_NPF = 0x400,
	INTEL_EXTERNAL_INTERRUPT = 1,
	INTEL_INIT = 3,
	INTEL_OTHER_SMI = 6,
	INTEL_HLT = 12,
	INTEL_MWAIT = 36,
	INTEL_EPT_VIOLATION = 48,
	INTEL_EPT_MISCONFIG = 49,
	INTEL_BASIC = 0xffff, /* bits above are flags, such as a failed entry */
};

static bool amd_range_name(uint32_t reason, char *name)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(amd_ranges); i++)
		if (reason >= amd_ranges[i].first && reason <= amd_ranges[i].last) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
			snprintf(name, VP_EXIT_NAME_SIZE, amd_ranges[i].format,
				 reason - amd_ranges[i].first);
#pragma GCC diagnostic pop
			return true;
		}
	return false;
}

static bool is_paravirtual(uint32_t reason)
{
	return (reason & VP_PARAVIRTUAL_BITS) == VP_PARAVIRTUAL;
}

static void paravirtual_name(uint32_t number, char *name)
{
	uint32_t work = number - VP_PARAVIRTUAL_WORK;

	if (number >= VP_PARAVIRTUAL_WORK && work < VP_ARRAY_SIZE(work_names) && work_names[work])
		snprintf(name, VP_EXIT_NAME_SIZE, "%s", work_names[work]);
	else if (number >= VP_PARAVIRTUAL_WORK)
		snprintf(name, VP_EXIT_NAME_SIZE, "work %u", work);
	else if (number >= VP_PARAVIRTUAL_TRAP)
		snprintf(name, VP_EXIT_NAME_SIZE, "trap %u", number - VP_PARAVIRTUAL_TRAP);
	else if (number < VP_ARRAY_SIZE(hypercall_names) && hypercall_names[number])
		snprintf(name, VP_EXIT_NAME_SIZE, "%s", hypercall_names[number]);
	else
		snprintf(name, VP_EXIT_NAME_SIZE, "hypercall %u", number);
}

const char *vp_exit_reason_name(uint32_t vendor, uint32_t reason, char name[VP_EXIT_NAME_SIZE])
{
	uint32_t basic = vendor == VP_VENDOR_INTEL ? reason & INTEL_BASIC : reason;
	const char *found = NULL;

	if (is_paravirtual(reason)) {
		paravirtual_name(reason & ~VP_PARAVIRTUAL_BITS, name);
		return name;
	}
	if (vendor == VP_VENDOR_AMD && basic < VP_ARRAY_SIZE(amd_names))
		found = amd_names[basic];
	if (vendor == VP_VENDOR_INTEL && basic < VP_ARRAY_SIZE(intel_names))
		found = intel_names[basic];
	if (vendor == VP_VENDOR_ARM && basic < VP_ARRAY_SIZE(arm_names))
		found = arm_names[basic];
	if (found)
		snprintf(name, VP_EXIT_NAME_SIZE, "%s", found);
	else if (vendor != VP_VENDOR_AMD || !amd_range_name(reason, name))
		snprintf(name, VP_EXIT_NAME_SIZE, "0x%x", reason);
	return name;
}

/* "memory read 0x7000"; without the address if it is unknown. */
static const char *memory_text(uint32_t kind, uint64_t number, char text[VP_EXIT_NAME_SIZE])
{
	static const char *const texts[] = {[VP_DETAIL_MEMORY_READ] = "memory read",
					    [VP_DETAIL_MEMORY_WRITE] = "memory write",
					    [VP_DETAIL_MEMORY_FETCH] = "memory fetch",
					    [VP_DETAIL_MMIO_READ] = "MMIO read",
					    [VP_DETAIL_MMIO_WRITE] = "MMIO write"};
	bool device = kind == VP_DETAIL_MMIO_READ || kind == VP_DETAIL_MMIO_WRITE;

	if (kind >= VP_ARRAY_SIZE(texts) || !texts[kind])
		return NULL;
	if (number)
		snprintf(text, VP_EXIT_NAME_SIZE, "%s 0x%" PRIx64, texts[kind],
			 device ? number : (number - 1) << 12);
	else
		snprintf(text, VP_EXIT_NAME_SIZE, "%s", texts[kind]);
	return text;
}

const char *vp_exit_detail_text(uint32_t kind, uint64_t number, char text[VP_EXIT_NAME_SIZE])
{
	static const struct {
		const char *before, *behind;
		bool decimal;
	} texts[] = {
	    [VP_DETAIL_PORT_IN] = {"port ", " in"},
	    [VP_DETAIL_PORT_OUT] = {"port ", " out"},
	    [VP_DETAIL_MSR_READ] = {"MSR ", " read"},
	    [VP_DETAIL_MSR_WRITE] = {"MSR ", " write"},
	    [VP_DETAIL_CR_READ] = {"CR", " read", .decimal = true},
	    [VP_DETAIL_CR_WRITE] = {"CR", " write", .decimal = true},
	    [VP_DETAIL_DR_READ] = {"DR", " read", .decimal = true},
	    [VP_DETAIL_DR_WRITE] = {"DR", " write", .decimal = true},
	    [VP_DETAIL_EXCEPTION] = {"exception ", "", .decimal = true},
	    [VP_DETAIL_APIC_READ] = {"APIC ", " read"},
	    [VP_DETAIL_APIC_WRITE] = {"APIC ", " write"},
	    [VP_DETAIL_EOI] = {"EOI ", "", .decimal = true},
	};

	if (kind >= VP_ARRAY_SIZE(texts) || !texts[kind].before)
		return memory_text(kind, number, text);
	if (texts[kind].decimal)
		snprintf(text, VP_EXIT_NAME_SIZE, "%s%" PRIu64 "%s", texts[kind].before, number,
			 texts[kind].behind);
	else
		snprintf(text, VP_EXIT_NAME_SIZE, "%s0x%" PRIx64 "%s", texts[kind].before, number,
			 texts[kind].behind);
	return text;
}

bool vp_exit_reason_is_memory(uint32_t vendor, uint32_t reason)
{
	if (is_paravirtual(reason))
		return false;
	if (vendor == VP_VENDOR_AMD)
		return reason == AMD_NPF;
	if (vendor == VP_VENDOR_ARM)
		return reason == ARM_INSTRUCTION_ABORT || reason == ARM_DATA_ABORT;
	reason &= INTEL_BASIC;
	return vendor == VP_VENDOR_INTEL &&
	       (reason == INTEL_EPT_VIOLATION || reason == INTEL_EPT_MISCONFIG);
}

bool vp_exit_reason_has_time(uint32_t reason)
{
	return !is_paravirtual(reason);
}

bool vp_exit_reason_is_halt(uint32_t vendor, uint32_t reason)
{
	if (is_paravirtual(reason)) /* a PV guest halts by a hypercall with arguments */
		return false;
	if (vendor == VP_VENDOR_AMD)
		return reason == AMD_HLT || reason == AMD_MWAIT ||
		       reason == AMD_MWAIT_CONDITIONAL || reason == AMD_IDLE_HLT;
	if (vendor == VP_VENDOR_ARM)
		return reason == ARM_WFX;
	reason &= INTEL_BASIC;
	return vendor == VP_VENDOR_INTEL && (reason == INTEL_HLT || reason == INTEL_MWAIT);
}

bool vp_exit_reason_is_interrupt(uint32_t vendor, uint32_t reason)
{
	if (vendor == VP_VENDOR_AMD)
		return reason >= AMD_INTR && reason <= AMD_INIT;
	if (vendor == VP_VENDOR_ARM)
		return reason & VP_ARM_NO_TRAP;
	reason &= INTEL_BASIC;
	return vendor != VP_VENDOR_INTEL || reason <= INTEL_EXTERNAL_INTERRUPT ||
	       (reason >= INTEL_INIT && reason <= INTEL_OTHER_SMI);
}
