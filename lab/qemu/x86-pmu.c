/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AMD's core performance counters (CPUID 0x80000001 ECX bit 23, families 15h to 19h) for QEMU's TCG
 * under -icount: six counters of 48 bits, MSRs 0xC0010200 to 0xC001020B. The first four are at
 * 0xC0010000 to 0xC0010007, too.
 *
 * Events: 0xC0 retired instructions, exact for each pCPU; 0x76 cycles, the instructions plus a
 * penalty for each translation that the TLB lacked; 0x45 (0x46 before family 17h) and 0x85 these
 * translations, of data and of code; 0xC2 retired branches (jumps, calls and returns within a code
 * segment, loops), 0xC4 those that were taken; 0x29 loads and stores. With a model of the caches
 * (X86_PMU_CACHES, below) 0x40 accesses to the L1 data cache, 0x41, 0x60 and 0x7D its misses, 0x64
 * and 0x7E misses of the L2 cache; they have penalties in cycles, too. 0xF0, which no processor
 * has, counts nested translations that the TLB lacked. Selecting another event is a
 * general-protection fault.
 *
 * The TLB is QEMU's, which has an entry for each 4 KiB also of a huge page: 64 huge pages each of
 * data and of nested translations are remembered here, and cost nothing when they come again.
 *
 * PerfMonV2 (CPUID 0x80000022) where xlevel= of -cpu includes its leaf: one register enables all
 * counters, one tells which have overflowed.
 *
 * No work is done per instruction, but for branches, loads and stores: code that counts these is
 * translated only while a counter needs it, and all code again when that changes. Each counter has
 * its value at the last "fold", and the value that its pmu_source, a number that only grows, had
 * then. A fold precedes each change of what counters filter on, and each read or write of a
 * counter. QEMU's icount is exact at all these moments: such instructions are the last of their
 * translation block, and an exception gives back the part of the block that was not executed.
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
#include "exec/helper-proto.h"
#include "qemu/error-report.h"
#include "qemu/host-utils.h"
#include "qemu/timer.h"
#include "sysemu/cpu-timers.h"

#include "x86-pmu.h"

enum { COUNTERS = 6, LEGACY = 4, PCPUS = 256 };
enum {
	EVENT_CYCLES = 0x76,
	EVENT_INSTRUCTIONS = 0xc0,
	EVENT_DTLB = 0x45,
	EVENT_ITLB = 0x85,
	EVENT_DTLB_OLD = 0x46,
	EVENT_BRANCHES = 0xc2,
	EVENT_BRANCHES_TAKEN = 0xc4,
	EVENT_DISPATCHED = 0x29, /* umask 1: loads, 2: stores */
	EVENT_L1_ACCESSES = 0x40,
	EVENT_L1_MISSES_OLD = 0x41, /* before family 17h */
	EVENT_L1_MISSES = 0x60,
	EVENT_L2_ACCESSES_OLD = 0x7d,
	EVENT_L2_MISSES = 0x64,
	EVENT_L2_MISSES_OLD = 0x7e,
	EVENT_NESTED = 0xf0 /* not AMD's */
};
enum { PENALTY_DATA = 20, PENALTY_CODE = 20, PENALTY_NESTED = 10, NEAR = 4096 };
enum { PENALTY_L1 = 10, PENALTY_L2 = 60, WAYS = 8, LINE_BITS = 6, HUGE_PAGES = 64 };
enum { MSR_GLOBAL_STATUS = 0xc0000300, MSR_GLOBAL_CTL, MSR_GLOBAL_CLEAR, LEAF_V2 = 0x22 };

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

/* Each set has its lines in the order of their last use. A line is its address in QEMU's process.
 */
typedef struct Cache {
	uintptr_t *lines;
	unsigned sets;
} Cache;

typedef struct Pmu {
	Counter counter[COUNTERS];
	int enabled, sampling, sampling_late; /* number of counters */
	uint64_t executed, penalty;
	uint64_t data[3], code[3]; /* translations of 4 KiB, 2 MiB, 1 GiB */
	uint64_t nested;
	struct HugePage {
		uint64_t address, root;
	} huge[2][HUGE_PAGES]; /* of data and of nested translations; the last used first */
	uint64_t branches, taken, loads, stores, l1_misses, l2_misses;
	Cache l1, l2;
	uint64_t global_ctl, global_status; /* of PerfMonV2 */
	uint64_t armed; /* the timer comes at this number of retired instructions, or earlier */
	uint64_t cycles_due; /* the first active counter of cycles overflows at this number */
	bool queued;
	QEMUTimer *timer;
} Pmu;

static Pmu pmus[PCPUS];
static bool counts_branches, counts_accesses;
static uint64_t guest_page_size;

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

static bool pmu_is_branch_event(uint64_t ctl)
{
	return pmu_event_of(ctl) == EVENT_BRANCHES || pmu_event_of(ctl) == EVENT_BRANCHES_TAKEN;
}

static bool pmu_is_cache_event(uint64_t ctl)
{
	unsigned event = pmu_event_of(ctl);
	return event == EVENT_L1_ACCESSES || event == EVENT_L1_MISSES_OLD ||
	       event == EVENT_L1_MISSES || event == EVENT_L2_ACCESSES_OLD ||
	       event == EVENT_L2_MISSES || event == EVENT_L2_MISSES_OLD;
}

/* When the next one comes is not known beforehand, as it is of instructions and, nearly, cycles. */
static bool pmu_is_late_event(uint64_t ctl)
{
	return pmu_event_of(ctl) != EVENT_INSTRUCTIONS && pmu_event_of(ctl) != EVENT_CYCLES;
}

static bool pmu_supported(const Pmu *pmu, uint64_t ctl)
{
	if (ctl & CTL_OTHER)
		return false;
	switch (pmu_event_of(ctl)) {
	case EVENT_INSTRUCTIONS:
	case EVENT_CYCLES:
	case EVENT_DTLB:
	case EVENT_DTLB_OLD:
	case EVENT_ITLB:
	case EVENT_NESTED:
		return true;
	case EVENT_DISPATCHED:
		return !((ctl >> 8) & 0xfc);
	default:
		return pmu_is_branch_event(ctl) || (pmu->l1.lines && pmu_is_cache_event(ctl));
	}
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
	case EVENT_NESTED:
		return pmu->nested;
	case EVENT_BRANCHES:
		return pmu->branches;
	case EVENT_BRANCHES_TAKEN:
		return pmu->taken;
	case EVENT_DISPATCHED:
		return (umask & 1 ? pmu->loads : 0) + (umask & 2 ? pmu->stores : 0);
	case EVENT_L1_ACCESSES:
		return pmu->loads + pmu->stores;
	case EVENT_L1_MISSES:
	case EVENT_L1_MISSES_OLD:
	case EVENT_L2_ACCESSES_OLD:
		return pmu->l1_misses;
	case EVENT_L2_MISSES:
	case EVENT_L2_MISSES_OLD:
		return pmu->l2_misses;
	}
	return 0;
}

static bool pmu_has_v2(const CPUX86State *env)
{
	return env->cpuid_xlevel >= 0x80000000u + LEAF_V2;
}

static bool pmu_active(CPUX86State *env, const Pmu *pmu, int i, uint32_t hflags)
{
	uint64_t ctl = pmu->counter[i].ctl, side = ctl & (CTL_GUEST | CTL_HOST);
	if (pmu_has_v2(env) && !(pmu->global_ctl >> i & 1))
		return false;
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
		if (delta == 0 || !pmu_active(env, pmu, i, env->hflags))
			continue;
		if (c->value + delta > VALUE) {
			pmu->global_status |= 1ull << i;
			c->overflowed |= (c->ctl & CTL_INT) != 0;
		}
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
		if (!(c->ctl & CTL_INT) || !pmu_active(env, pmu, i, hflags))
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

/* An event came that may make a counter overflow. */
static void pmu_after_event(CPUState *cs, Pmu *pmu)
{
	if (pmu->sampling && pmu->cycles_due != NEVER &&
	    (pmu->armed == NEVER || pmu->cycles_due < pmu->armed + pmu->penalty))
		pmu_request_service(cs, pmu);
	for (int i = 0; pmu->sampling_late && i < COUNTERS; i++) {
		const Counter *c = &pmu->counter[i];
		if ((c->ctl & CTL_ENABLE) && (c->ctl & CTL_INT) && pmu_is_late_event(c->ctl) &&
		    c->value + pmu_source(pmu, c->ctl, 0) - c->base > VALUE)
			pmu_request_service(cs, pmu);
	}
}

/* Whether the huge page was used lately. It is the last used one afterwards. */
static bool pmu_knows_huge(struct HugePage *pages, uint64_t address, uint64_t root)
{
	int i = 0;
	bool found;
	while (i < HUGE_PAGES - 1 && (pages[i].address != address || pages[i].root != root))
		i++;
	found = pages[i].address == address && pages[i].root == root;
	memmove(&pages[1], &pages[0], i * sizeof(pages[0]));
	pages[0] = (struct HugePage){address, root};
	return found;
}

void x86_pmu_guest_page(uint64_t size)
{
	guest_page_size = size;
}

void x86_pmu_tlb(CPUState *cs, int access, bool nested, uint64_t address, uint64_t size)
{
	Pmu *pmu = &pmus[cs->cpu_index];
	const CPUX86State *env = cs->env_ptr;
	bool code = !nested && access == MMU_INST_FETCH;
	int class;
	if (!nested && (env->hflags & HF_GUEST_MASK))
		size = guest_page_size;
	class = size >= 1ull << 30 ? 2 : size >= 1ull << 21 ? 1 : 0;
	/* The lowest bit keeps address 0 apart from no page. */
	if (class && !code &&
	    pmu_knows_huge(pmu->huge[nested], (address & -size) | 1,
			   nested ? env->nested_cr3 : env->cr[3]))
		return;
	if (nested) {
		pmu->penalty += PENALTY_NESTED;
		pmu->nested++;
	} else if (code) {
		pmu->penalty += PENALTY_CODE;
		pmu->code[class]++;
	} else {
		pmu->penalty += PENALTY_DATA;
		pmu->data[class]++;
	}
	pmu_after_event(cs, pmu);
}

void helper_x86_pmu_branch(CPUX86State *env, uint32_t taken)
{
	CPUState *cs = env_cpu(env);
	Pmu *pmu = &pmus[cs->cpu_index];
	pmu->branches++;
	pmu->taken += taken;
	if (pmu->sampling_late)
		pmu_after_event(cs, pmu);
}

/* Whether the line was there. It is the last used one of its set afterwards. */
static bool pmu_touch(Cache *cache, uintptr_t line)
{
	uintptr_t *set = &cache->lines[(line & (cache->sets - 1)) * WAYS];
	int way = 0;
	bool found;
	while (way < WAYS - 1 && set[way] != line)
		way++;
	found = set[way] == line;
	memmove(&set[1], &set[0], way * sizeof(set[0]));
	set[0] = line;
	return found;
}

/* An access of two lines counts as one of the first. Devices are not cached. */
void helper_x86_pmu_access(CPUX86State *env, target_ulong address, uint32_t what)
{
	CPUState *cs = env_cpu(env);
	Pmu *pmu = &pmus[cs->cpu_index];
	bool store = what & 1;
	void *host;
	if (store)
		pmu->stores++;
	else
		pmu->loads++;
	if (pmu->l1.lines &&
	    (host = tlb_vaddr_to_host(env, address, store ? MMU_DATA_STORE : MMU_DATA_LOAD,
				      what >> 1)) &&
	    !pmu_touch(&pmu->l1, (uintptr_t)host >> LINE_BITS)) {
		pmu->l1_misses++;
		pmu->penalty += PENALTY_L1;
		if (!pmu_touch(&pmu->l2, (uintptr_t)host >> LINE_BITS)) {
			pmu->l2_misses++;
			pmu->penalty += PENALTY_L2;
		}
	}
	if (pmu->sampling)
		pmu_after_event(cs, pmu);
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

bool x86_pmu_counts_branches(void)
{
	return counts_branches;
}

bool x86_pmu_counts_accesses(void)
{
	return counts_accesses;
}

/* Code is translated again, with the calls of the helpers above or without. */
static void pmu_update_translation(CPUState *cs)
{
	bool branches = false, accesses = false;
	for (int cpu = 0; cpu < PCPUS; cpu++) {
		accesses |= pmus[cpu].l1.lines != NULL;
		for (int i = 0; pmus[cpu].enabled && i < COUNTERS; i++) {
			uint64_t ctl = pmus[cpu].counter[i].ctl;
			branches |= (ctl & CTL_ENABLE) && pmu_is_branch_event(ctl);
			accesses |= (ctl & CTL_ENABLE) && pmu_event_of(ctl) == EVENT_DISPATCHED;
		}
	}
	if (branches != counts_branches || accesses != counts_accesses) {
		counts_branches = branches;
		counts_accesses = accesses;
		tb_flush(cs);
	}
}

static void pmu_update_totals(Pmu *pmu)
{
	pmu->enabled = pmu->sampling = pmu->sampling_late = 0;
	for (int i = 0; i < COUNTERS; i++) {
		uint64_t ctl = pmu->counter[i].ctl;
		bool sampling = (ctl & CTL_ENABLE) && (ctl & CTL_INT);
		pmu->enabled += (ctl & CTL_ENABLE) != 0;
		pmu->sampling += sampling;
		pmu->sampling_late += sampling && pmu_is_late_event(ctl);
	}
}

/* Writes a register of PerfMonV2; false: the number in ECX is another register's. */
static bool pmu_write_global(CPUX86State *env, Pmu *pmu, uint64_t value)
{
	uint32_t msr = env->regs[R_ECX];
	if (!pmu_has_v2(env) || (msr != MSR_GLOBAL_CTL && msr != MSR_GLOBAL_CLEAR))
		return false;
	pmu_fold(env, pmu);
	if (msr == MSR_GLOBAL_CLEAR)
		pmu->global_status &= ~value;
	else
		pmu->global_ctl = value;
	if (pmu->sampling)
		pmu_check(env, pmu, env->hflags);
	return true;
}

enum x86_pmu_write x86_pmu_wrmsr(CPUX86State *env)
{
	CPUState *cs = env_cpu(env);
	Pmu *pmu = &pmus[cs->cpu_index];
	uint64_t value = (uint32_t)env->regs[R_EAX] | (uint64_t)(uint32_t)env->regs[R_EDX] << 32;
	bool ctl, sampled;
	int i = pmu_counter_of(env->regs[R_ECX], &ctl);
	Counter *c;
	if (!icount_enabled())
		return X86_PMU_OTHER;
	if (i < 0)
		return pmu_write_global(env, pmu, value) ? X86_PMU_DONE : X86_PMU_OTHER;
	if (ctl && (value & CTL_ENABLE) && !pmu_supported(pmu, value))
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
		pmu_update_translation(cs);
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
	uint32_t msr = env->regs[R_ECX];
	bool ctl, global = pmu_has_v2(env) && (msr == MSR_GLOBAL_CTL || msr == MSR_GLOBAL_STATUS);
	int i = pmu_counter_of(msr, &ctl);
	if ((i < 0 && !global) || !icount_enabled())
		return false;
	pmu_fold(env, pmu);
	if (pmu->sampling)
		pmu_check(env, pmu, env->hflags);
	if (global)
		pmu_return(env, msr == MSR_GLOBAL_CTL ? pmu->global_ctl : pmu->global_status);
	else
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

static void pmu_make_cache(Cache *cache, unsigned kib)
{
	cache->sets = (kib << 10 >> LINE_BITS) / WAYS;
	cache->lines = g_new0(uintptr_t, cache->sets * WAYS);
}

/* X86_PMU_CACHES=L1,L2: sizes in KiB, powers of two, of caches of 8 ways with lines of 64 bytes. */
static void pmu_make_caches(Pmu *pmu)
{
	const char *sizes = getenv("X86_PMU_CACHES");
	unsigned l1, l2;
	if (!sizes || pmu->l1.lines)
		return;
	if (sscanf(sizes, "%u,%u", &l1, &l2) != 2 || !is_power_of_2(l1) || !is_power_of_2(l2)) {
		error_report("X86_PMU_CACHES=%s: two sizes in KiB, powers of two, are expected",
			     sizes);
		exit(1);
	}
	pmu_make_cache(&pmu->l1, l1);
	pmu_make_cache(&pmu->l2, l2);
}

void x86_pmu_reset(CPUState *cs)
{
	Pmu *pmu = &pmus[cs->cpu_index];
	memset(pmu->counter, 0, sizeof(pmu->counter));
	pmu->global_ctl = (1u << COUNTERS) - 1;
	pmu->global_status = 0;
	pmu_make_caches(pmu);
	pmu_update_totals(pmu);
	pmu_update_translation(cs);
	pmu->armed = pmu->cycles_due = NEVER;
	if (pmu->timer)
		timer_del(pmu->timer);
}

uint32_t x86_pmu_cpuid(uint32_t ecx)
{
	return icount_enabled() ? ecx : ecx & ~CPUID_EXT3_PERFCORE;
}

void x86_pmu_cpuid_v2(uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
	*eax = icount_enabled() != 0;
	*ebx = icount_enabled() ? COUNTERS : 0;
	*ecx = *edx = 0;
}
