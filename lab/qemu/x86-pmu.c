/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AMD's core performance counters (CPUID 0x80000001 ECX bit 23, families 15h to 19h) for QEMU's TCG
 * under -icount: six counters of 48 bits, MSRs 0xC0010200 to 0xC001020B. The first four are at
 * 0xC0010000 to 0xC0010007, too.
 *
 * Events: 0xC0 retired instructions, exact for each pCPU; 0x76 cycles, the instructions plus a
 * penalty for each translation that QEMU's TLB lacked; 0x45 (0x46 before family 17h) and 0x85 these
 * translations, of data and of code. Selecting another event is a general-protection fault.
 *
 * No work is done per instruction. Each counter has its value at the last "fold", and the value
 * that its pmu_source, a number that only grows, had then. A fold precedes each change of what
 * counters filter on, and each read or write of a counter. QEMU's icount is exact at all these
 * moments: such instructions are the last of their translation block, and an exception gives back
 * the part of the block that was not executed.
 *
 * Overflow: a timer in virtual time, at the earliest instruction at which an active counter can
 * overflow. It is set outside of translated code only ("service"). Code that finds the timer too
 * late requests a service at the end of the block. Cycles grow faster than instructions, so for
 * them the timer comes at three quarters of the way until that is short; then each penalty sets it
 * anew.
 */

#include "qemu/osdep.h"

#include "cpu.h"
#include "exec/exec-all.h"
#include "qemu/timer.h"
#include "sysemu/cpu-timers.h"

#include "x86-pmu.h"

enum { COUNTERS = 6, LEGACY = 4, PCPUS = 256 };
enum {
	EVENT_CYCLES = 0x76,
	EVENT_INSTRUCTIONS = 0xc0,
	EVENT_DTLB = 0x45,
	EVENT_ITLB = 0x85,
	EVENT_DTLB_OLD = 0x46
};
enum { PENALTY_DATA = 20, PENALTY_CODE = 20, PENALTY_NESTED = 10, NEAR = 4096 };

#define CTL_USER (1ull << 16)
#define CTL_OS (1ull << 17)
#define CTL_INT (1ull << 20)
#define CTL_ENABLE (1ull << 22)
#define CTL_OTHER (0xffull << 24 | 1ull << 23 | 1ull << 18) /* count mask, invert, edge */
#define CTL_GUEST (1ull << 40)
#define CTL_HOST (1ull << 41)
#define VALUE ((1ull << 48) - 1)
#define NEVER UINT64_MAX

typedef struct Counter {
	uint64_t ctl, value, base;
	bool overflowed; /* not yet delivered */
} Counter;

typedef struct Pmu {
	Counter counter[COUNTERS];
	int enabled, sampling, sampling_tlb; /* number of counters */
	uint64_t executed, penalty;
	uint64_t data[3], code[3]; /* translations of 4 KiB, 2 MiB, 1 GiB */
	uint64_t armed; /* the timer comes at this number of retired instructions, or earlier */
	uint64_t cycles_due; /* the first active counter of cycles overflows at this number */
	bool queued;
	QEMUTimer *timer;
} Pmu;

static Pmu pmus[PCPUS];

static void pmu_service(CPUState *cs);

void x86_pmu_executed(int cpu, int64_t instructions)
{
	pmus[cpu].executed += instructions;
}

static uint64_t pmu_retired(CPUState *cs, Pmu *pmu)
{
	return pmu->executed + cs->icount_budget -
	       (cpu_neg(cs)->icount_decr.u16.low + cs->icount_extra);
}

static unsigned pmu_event_of(uint64_t ctl)
{
	return (ctl & 0xff) | ((ctl >> 24) & 0xf00);
}

static bool pmu_is_tlb_event(uint64_t ctl)
{
	return pmu_event_of(ctl) == EVENT_DTLB || pmu_event_of(ctl) == EVENT_ITLB ||
	       pmu_event_of(ctl) == EVENT_DTLB_OLD;
}

static bool pmu_supported(uint64_t ctl)
{
	return (pmu_event_of(ctl) == EVENT_INSTRUCTIONS || pmu_event_of(ctl) == EVENT_CYCLES ||
		pmu_is_tlb_event(ctl)) &&
	       !(ctl & CTL_OTHER);
}

static uint64_t pmu_sum_sizes(const uint64_t *sizes, unsigned small, unsigned big, unsigned huge)
{
	return (small ? sizes[0] : 0) + (big ? sizes[1] : 0) + (huge ? sizes[2] : 0);
}

static uint64_t pmu_source(const Pmu *pmu, uint64_t ctl, uint64_t instructions)
{
	unsigned umask = (ctl >> 8) & 0xff;
	switch (pmu_event_of(ctl)) {
	case EVENT_INSTRUCTIONS:
		return instructions;
	case EVENT_CYCLES:
		return instructions + pmu->penalty;
	case EVENT_DTLB:
		return pmu_sum_sizes(pmu->data, umask & 0x10, umask & 0x40, umask & 0x80);
	case EVENT_DTLB_OLD: /* before family 17h */
		return pmu_sum_sizes(pmu->data, umask & 0x01, umask & 0x02, umask & 0x04);
	case EVENT_ITLB:
		return pmu_sum_sizes(pmu->code, umask & 0x01, umask & 0x02, umask & 0x04);
	}
	return 0;
}

static bool pmu_active(CPUX86State *env, uint64_t ctl, uint32_t hflags)
{
	uint64_t side = ctl & (CTL_GUEST | CTL_HOST);
	if (!(ctl & CTL_ENABLE) || !(ctl & (hflags & HF_CPL_MASK ? CTL_USER : CTL_OS)))
		return false;
	if (side == 0 || side == (CTL_GUEST | CTL_HOST))
		return true;
	return (env->efer & MSR_EFER_SVME) &&
	       side == (hflags & HF_GUEST_MASK ? CTL_GUEST : CTL_HOST);
}

static void pmu_fold(CPUX86State *env, Pmu *pmu)
{
	uint64_t instructions = pmu_retired(env_cpu(env), pmu);
	for (int i = 0; pmu->enabled && i < COUNTERS; i++) {
		Counter *c = &pmu->counter[i];
		uint64_t now, delta;
		if (!(c->ctl & CTL_ENABLE))
			continue;
		now = pmu_source(pmu, c->ctl, instructions);
		delta = now - c->base;
		c->base = now;
		if (delta == 0 || !pmu_active(env, c->ctl, env->hflags))
			continue;
		if (c->value + delta > VALUE && (c->ctl & CTL_INT))
			c->overflowed = true;
		c->value = (c->value + delta) & VALUE;
	}
}

/*
 * After a fold: the number of instructions until the first overflow in this mode if no penalty
 * comes. With "early", a part of it. 0: a counter has overflowed already.
 */
static uint64_t pmu_distance(CPUX86State *env, Pmu *pmu, uint32_t hflags, bool early)
{
	uint64_t instructions = pmu_retired(env_cpu(env), pmu), nearest = NEVER;
	pmu->cycles_due = NEVER;
	for (int i = 0; pmu->sampling && i < COUNTERS; i++) {
		const Counter *c = &pmu->counter[i];
		unsigned event = pmu_event_of(c->ctl);
		uint64_t rest = VALUE + 1 - c->value;
		if (c->overflowed)
			return 0;
		if (!(c->ctl & CTL_INT) || !pmu_active(env, c->ctl, hflags))
			continue;
		if (event == EVENT_CYCLES) {
			pmu->cycles_due = MIN(pmu->cycles_due, instructions + pmu->penalty + rest);
			rest = early && rest > NEAR ? rest / 4 * 3 : rest;
		} else if (event != EVENT_INSTRUCTIONS)
			continue;
		nearest = MIN(nearest, rest);
	}
	return nearest;
}

static void pmu_work(CPUState *cs, run_on_cpu_data data)
{
	pmus[cs->cpu_index].queued = false;
	pmu_service(cs);
}

static void pmu_request_service(CPUState *cs, Pmu *pmu)
{
	if (!pmu->queued) {
		pmu->queued = true;
		async_run_on_cpu(cs, pmu_work, RUN_ON_CPU_NULL);
	}
}

/* Whether the timer would be too late in this mode. */
static void pmu_check(CPUX86State *env, Pmu *pmu, uint32_t hflags)
{
	uint64_t rest = pmu_distance(env, pmu, hflags, false);
	if (rest == 0 || (rest != NEVER && pmu_retired(env_cpu(env), pmu) + rest < pmu->armed))
		pmu_request_service(env_cpu(env), pmu);
}

void x86_pmu_mode(CPUX86State *env, uint32_t hflags)
{
	Pmu *pmu = &pmus[env_cpu(env)->cpu_index];
	if (pmu->enabled) {
		pmu_fold(env, pmu);
		if (pmu->sampling)
			pmu_check(env, pmu, hflags);
	}
}

void x86_pmu_wake(CPUState *cs)
{
	Pmu *pmu = &pmus[cs->cpu_index];
	if (pmu->sampling && pmu->armed == NEVER) {
		pmu_fold(cs->env_ptr, pmu);
		pmu_check(cs->env_ptr, pmu, ((CPUX86State *)cs->env_ptr)->hflags);
	}
}

void x86_pmu_tlb(CPUState *cs, int access, bool nested, uint64_t size)
{
	Pmu *pmu = &pmus[cs->cpu_index];
	int class = size >= 1ull << 30 ? 2 : size >= 1ull << 21 ? 1 : 0;
	if (nested) {
		pmu->penalty += PENALTY_NESTED;
	} else if (access == MMU_INST_FETCH) {
		pmu->penalty += PENALTY_CODE;
		pmu->code[class]++;
	} else {
		pmu->penalty += PENALTY_DATA;
		pmu->data[class]++;
	}
	if (pmu->sampling && pmu->cycles_due != NEVER &&
	    (pmu->armed == NEVER || pmu->cycles_due < pmu->armed + pmu->penalty))
		pmu_request_service(cs, pmu);
	for (int i = 0; pmu->sampling_tlb && i < COUNTERS; i++) {
		const Counter *c = &pmu->counter[i];
		if ((c->ctl & CTL_ENABLE) && pmu_is_tlb_event(c->ctl) &&
		    c->value + pmu_source(pmu, c->ctl, 0) - c->base > VALUE)
			pmu_request_service(cs, pmu);
	}
}

/* Outside of translated code, with the lock that interrupts need. */
static void pmu_service(CPUState *cs)
{
	Pmu *pmu = &pmus[cs->cpu_index];
	CPUX86State *env = cs->env_ptr;
	uint64_t rest;
	pmu_fold(env, pmu);
	for (int i = 0; i < COUNTERS; i++) {
		if (pmu->counter[i].overflowed) {
			pmu->counter[i].overflowed = false;
			x86_pmu_interrupt(X86_CPU(cs)->apic_state);
		}
	}
	rest = cs->halted ? NEVER : pmu_distance(env, pmu, env->hflags, true);
	if (rest == NEVER) {
		pmu->armed = NEVER;
		timer_del(pmu->timer);
	} else {
		pmu->armed = pmu_retired(cs, pmu) + rest;
		timer_mod(pmu->timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
					  icount_to_ns(MIN(rest, INT32_MAX)));
	}
}

static void pmu_due(void *opaque)
{
	pmu_service(opaque);
}

static int pmu_counter_of(uint32_t msr, bool *ctl)
{
	if (msr >= 0xc0010200 && msr < 0xc0010200 + 2 * COUNTERS) {
		*ctl = !(msr & 1);
		return (msr - 0xc0010200) / 2;
	}
	if (msr >= 0xc0010000 && msr < 0xc0010000 + 2 * LEGACY) {
		*ctl = msr < 0xc0010000 + LEGACY;
		return (msr - 0xc0010000) % LEGACY;
	}
	return -1;
}

static void pmu_update_totals(Pmu *pmu)
{
	pmu->enabled = pmu->sampling = pmu->sampling_tlb = 0;
	for (int i = 0; i < COUNTERS; i++) {
		uint64_t ctl = pmu->counter[i].ctl;
		bool sampling = (ctl & CTL_ENABLE) && (ctl & CTL_INT);
		pmu->enabled += (ctl & CTL_ENABLE) != 0;
		pmu->sampling += sampling;
		pmu->sampling_tlb += sampling && pmu_is_tlb_event(ctl);
	}
}

enum x86_pmu_write x86_pmu_wrmsr(CPUX86State *env)
{
	CPUState *cs = env_cpu(env);
	Pmu *pmu = &pmus[cs->cpu_index];
	uint64_t value = (uint32_t)env->regs[R_EAX] | (uint64_t)(uint32_t)env->regs[R_EDX] << 32;
	bool ctl, sampled;
	int i = pmu_counter_of(env->regs[R_ECX], &ctl);
	Counter *c;
	if (i < 0 || !icount_enabled())
		return X86_PMU_OTHER;
	if (ctl && (value & CTL_ENABLE) && !pmu_supported(value))
		return X86_PMU_FAULT;
	if (!pmu->timer) {
		pmu->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, pmu_due, cs);
		pmu->armed = NEVER;
	}
	pmu_fold(env, pmu);
	c = &pmu->counter[i];
	sampled = (c->ctl & CTL_ENABLE) && (c->ctl & CTL_INT);
	if (ctl) {
		c->ctl = value;
		pmu_update_totals(pmu);
	} else
		c->value = value & VALUE;
	c->base = pmu_source(pmu, c->ctl, pmu_retired(cs, pmu));
	if (sampled || pmu->sampling)
		pmu_check(env, pmu, env->hflags);
	return X86_PMU_DONE;
}

static void pmu_return(CPUX86State *env, uint64_t value)
{
	env->regs[R_EAX] = (uint32_t)value;
	env->regs[R_EDX] = (uint32_t)(value >> 32);
}

bool x86_pmu_rdmsr(CPUX86State *env)
{
	Pmu *pmu = &pmus[env_cpu(env)->cpu_index];
	bool ctl;
	int i = pmu_counter_of(env->regs[R_ECX], &ctl);
	if (i < 0 || !icount_enabled())
		return false;
	pmu_fold(env, pmu);
	if (pmu->sampling)
		pmu_check(env, pmu, env->hflags);
	pmu_return(env, ctl ? pmu->counter[i].ctl : pmu->counter[i].value);
	return true;
}

bool x86_pmu_rdpmc(CPUX86State *env)
{
	Pmu *pmu = &pmus[env_cpu(env)->cpu_index];
	uint32_t i = env->regs[R_ECX];
	if (i >= COUNTERS || !icount_enabled())
		return false;
	pmu_fold(env, pmu);
	if (pmu->sampling)
		pmu_check(env, pmu, env->hflags);
	pmu_return(env, pmu->counter[i].value);
	return true;
}

void x86_pmu_reset(CPUState *cs)
{
	Pmu *pmu = &pmus[cs->cpu_index];
	memset(pmu->counter, 0, sizeof(pmu->counter));
	pmu_update_totals(pmu);
	pmu->armed = pmu->cycles_due = NEVER;
	if (pmu->timer)
		timer_del(pmu->timer);
}

uint32_t x86_pmu_cpuid(uint32_t ecx)
{
	return icount_enabled() ? ecx : ecx & ~CPUID_EXT3_PERFCORE;
}
