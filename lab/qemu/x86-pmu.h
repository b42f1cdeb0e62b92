/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A performance monitoring unit for QEMU's TCG x86: see x86-pmu.c. */
#ifndef X86_PMU_H
#define X86_PMU_H

struct CPUArchState;
struct CPUState;
struct DeviceState;

/* A pCPU has executed this many more instructions (icount). */
void x86_pmu_executed(int cpu, int64_t instructions);

/* Call before the state that counters filter on changes: CPL or guest mode. */
void x86_pmu_mode(struct CPUArchState *env, uint32_t hflags);

/* Call before a pCPU takes an interrupt: it may have been halted. */
void x86_pmu_wake(struct CPUState *cs);

/* A guest's address was translated: the smaller one of the sizes of its two pages. */
void x86_pmu_guest_page(uint64_t size);

/*
 * A translation was put into QEMU's TLB: access 0 load, 1 store, 2 fetch. `size` is the page's. In
 * a guest, the size of the last x86_pmu_guest_page() counts instead.
 */
void x86_pmu_tlb(struct CPUState *cs, int access, bool nested, uint64_t address, uint64_t size);

/*
 * WRMSR, RDMSR and RDPMC: they read or set EDX:EAX. X86_PMU_OTHER, false: the register is not one
 * of the PMU's, or there is no such counter. X86_PMU_FAULT: the event cannot be counted.
 */
enum x86_pmu_write { X86_PMU_OTHER, X86_PMU_DONE, X86_PMU_FAULT };
enum x86_pmu_write x86_pmu_wrmsr(struct CPUArchState *env);
bool x86_pmu_rdmsr(struct CPUArchState *env);
bool x86_pmu_rdpmc(struct CPUArchState *env);

void x86_pmu_reset(struct CPUState *cs);

/* Whether code that is translated now must call the helpers x86_pmu_branch, x86_pmu_access. */
bool x86_pmu_counts_branches(void);
bool x86_pmu_counts_accesses(void);

/* CPUID leaf 0x80000022: PerfMonV2. */
void x86_pmu_cpuid_v2(uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx);

/* CPUID 0x80000001 ECX, without the counters where they cannot count. */
uint32_t x86_pmu_cpuid(uint32_t ecx);

/* Delivers what the local APIC's LVT entry for counters says (hw/intc/apic.c). */
void x86_pmu_interrupt(struct DeviceState *apic);

#endif
