/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "counters/counters_event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

struct entry {
	const char *name, *papi; /* papi: NULL if PAPI has no name for it */
	uint32_t type;
	uint64_t config;
};

#define HARDWARE(name, papi, id)                                                                   \
	{                                                                                          \
		name, papi, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id                                 \
	}
#define SOFTWARE(name, id)                                                                         \
	{                                                                                          \
		name, NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id                                 \
	}
#define CACHE(name, papi, id, operation, result)                                                   \
	{                                                                                          \
		name, papi, PERF_TYPE_HW_CACHE,                                                    \
		    PERF_COUNT_HW_CACHE_##id | PERF_COUNT_HW_CACHE_OP_##operation << 8 |           \
			PERF_COUNT_HW_CACHE_RESULT_##result << 16                                  \
	}

/* PAPI presets that have the same definition as a kernel event. */
static const struct entry entries[] = {
    HARDWARE("cycles", "PAPI_TOT_CYC", CPU_CYCLES),
    HARDWARE("cpu-cycles", NULL, CPU_CYCLES),
    HARDWARE("instructions", "PAPI_TOT_INS", INSTRUCTIONS),
    HARDWARE("cache-references", NULL, CACHE_REFERENCES),
    HARDWARE("cache-misses", NULL, CACHE_MISSES),
    HARDWARE("branches", "PAPI_BR_INS", BRANCH_INSTRUCTIONS),
    HARDWARE("branch-instructions", NULL, BRANCH_INSTRUCTIONS),
    HARDWARE("branch-misses", "PAPI_BR_MSP", BRANCH_MISSES),
    HARDWARE("bus-cycles", NULL, BUS_CYCLES),
    HARDWARE("ref-cycles", "PAPI_REF_CYC", REF_CPU_CYCLES),
    HARDWARE("stalled-cycles-frontend", NULL, STALLED_CYCLES_FRONTEND),
    HARDWARE("stalled-cycles-backend", "PAPI_RES_STL", STALLED_CYCLES_BACKEND),
    CACHE("L1-dcache-loads", NULL, L1D, READ, ACCESS),
    CACHE("L1-dcache-load-misses", "PAPI_L1_LDM", L1D, READ, MISS),
    CACHE("L1-icache-load-misses", "PAPI_L1_ICM", L1I, READ, MISS),
    CACHE("LLC-loads", NULL, LL, READ, ACCESS),
    CACHE("LLC-load-misses", NULL, LL, READ, MISS),
    CACHE("dTLB-load-misses", NULL, DTLB, READ, MISS),
    CACHE("iTLB-load-misses", "PAPI_TLB_IM", ITLB, READ, MISS),
    SOFTWARE("task-clock", TASK_CLOCK),
    SOFTWARE("cpu-clock", CPU_CLOCK),
    SOFTWARE("page-faults", PAGE_FAULTS),
    SOFTWARE("faults", PAGE_FAULTS),
    SOFTWARE("minor-faults", PAGE_FAULTS_MIN),
    SOFTWARE("major-faults", PAGE_FAULTS_MAJ),
    SOFTWARE("context-switches", CONTEXT_SWITCHES),
    SOFTWARE("cs", CONTEXT_SWITCHES),
    SOFTWARE("cpu-migrations", CPU_MIGRATIONS),
    SOFTWARE("migrations", CPU_MIGRATIONS),
    SOFTWARE("alignment-faults", ALIGNMENT_FAULTS),
    SOFTWARE("emulation-faults", EMULATION_FAULTS),
};

const char *vp_counters_event_name(unsigned i)
{
	return i < sizeof(entries) / sizeof(*entries) ? entries[i].name : NULL;
}

/* rHEX: a raw event code of the processor. */
static bool parse_raw(const char *name, size_t size, uint64_t *ret)
{
	char *end;

	if (size < 2 || size > 17 || name[0] != 'r' ||
	    strspn(name + 1, "0123456789abcdefABCDEF") < size - 1)
		return false;
	*ret = strtoull(name + 1, &end, 16);
	return end == name + size;
}

static bool counters_event_find_entry(const char *name, size_t size, struct entry *ret)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		const struct entry *entry = &entries[i];
		if ((strlen(entry->name) == size && !memcmp(entry->name, name, size)) ||
		    (entry->papi && strlen(entry->papi) == size &&
		     !memcmp(entry->papi, name, size))) {
			*ret = *entry;
			/* Each event has one canonical name: a host-provided event is looked up
			 * by it. */
			for (size_t j = 0; j < i; j++)
				if (entries[j].type == entry->type &&
				    entries[j].config == entry->config)
					ret->name = entries[j].name;
			return true;
		}
	}
	*ret = (struct entry){.type = PERF_TYPE_RAW};
	return parse_raw(name, size, &ret->config);
}

/* Modifiers after the colon: u, k, or both, which is the default. */
static bool parse_modifiers(const char *text, struct vp_counters_event *ret)
{
	bool user = false, kernel = false;

	for (; *text; text++) {
		user |= *text == 'u';
		kernel |= *text == 'k';
		if (*text != 'u' && *text != 'k')
			return false;
	}
	ret->exclude_user = kernel && !user;
	ret->exclude_kernel = user && !kernel;
	return user || kernel;
}

bool vp_counters_event_find(const char *name, struct vp_counters_event *ret)
{
	size_t size = strcspn(name, ":");
	char raw[20];
	struct entry entry;

	*ret = (struct vp_counters_event){0};
	if (!counters_event_find_entry(name, size, &entry) ||
	    (name[size] && !parse_modifiers(name + size + 1, ret)))
		return false;
	ret->type = entry.type;
	ret->config = entry.config;
	snprintf(raw, sizeof(raw), "r%llx", (unsigned long long)entry.config);
	snprintf(ret->name, sizeof(ret->name), "%s%s", entry.name ? entry.name : raw,
		 ret->exclude_kernel ? ":u"
		 : ret->exclude_user ? ":k"
				     : "");
	return true;
}

struct code {
	uint64_t raw, hardware;
};

#ifdef __x86_64__
/* arch/x86/events/amd/core.c and intel/core.c. */
static uint64_t code_of_cycles(void)
{
	enum { INTEL_CYCLES = 0x3c, AMD_CYCLES = 0x76 };
	uint32_t a, vendor = 0, c, d;

	__get_cpuid(0, &a, &vendor, &c, &d);
	return vendor == signature_INTEL_ebx ? INTEL_CYCLES : AMD_CYCLES;
}
#endif

/* The perf event with this raw code on this processor. */
static struct vp_counters_event canonical(const struct vp_counters_event *event)
{
#ifdef __x86_64__
	const struct code codes[] = {{code_of_cycles(), PERF_COUNT_HW_CPU_CYCLES},
				     {0xc0, PERF_COUNT_HW_INSTRUCTIONS}};
#else
	/* arch/arm64/kernel/perf_event.c, armv8_pmuv3_perf_map: the architecture's events. */
	const struct code codes[] = {{0x11, PERF_COUNT_HW_CPU_CYCLES},
				     {0x08, PERF_COUNT_HW_INSTRUCTIONS},
				     {0x04, PERF_COUNT_HW_CACHE_REFERENCES},
				     {0x03, PERF_COUNT_HW_CACHE_MISSES},
				     {0x10, PERF_COUNT_HW_BRANCH_MISSES}};
#endif
	struct vp_counters_event ret = *event;

	for (size_t i = 0; event->type == PERF_TYPE_RAW && i < sizeof(codes) / sizeof(*codes); i++)
		if (event->config == codes[i].raw) {
			ret.type = PERF_TYPE_HARDWARE;
			ret.config = codes[i].hardware;
		}
	return ret;
}

bool vp_counters_event_same(const struct vp_counters_event *one,
			    const struct vp_counters_event *other)
{
	struct vp_counters_event a = canonical(one), b = canonical(other);

	return a.type == b.type && a.config == b.config && a.exclude_user == b.exclude_user &&
	       a.exclude_kernel == b.exclude_kernel;
}
