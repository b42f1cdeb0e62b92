/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/event.h"

#include <linux/perf_event.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "base/nearest.h"

#define CACHE(cache, op, result)                                                                   \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##op << 8 |                          \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)
#define CACHE_PAIR(name, cache, op)                                                                \
	{name "s", PERF_TYPE_HW_CACHE, CACHE(cache, op, ACCESS), ""},                              \
	{                                                                                          \
		name "-misses", PERF_TYPE_HW_CACHE, CACHE(cache, op, MISS), ""                     \
	}

/* perf's own names (perf list). */
static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
	const char *unit;
} counters[] = {
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, ""},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, ""},
    {"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, ""},
    {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, ""},
    {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, ""},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, ""},
    {"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, ""},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, ""},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, ""},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, ""},
    {"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, ""},
    {"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, ""},
    CACHE_PAIR("L1-dcache-load", L1D, READ),
    CACHE_PAIR("L1-dcache-store", L1D, WRITE),
    CACHE_PAIR("L1-icache-load", L1I, READ),
    CACHE_PAIR("LLC-load", LL, READ),
    CACHE_PAIR("LLC-store", LL, WRITE),
    CACHE_PAIR("dTLB-load", DTLB, READ),
    CACHE_PAIR("dTLB-store", DTLB, WRITE),
    CACHE_PAIR("iTLB-load", ITLB, READ),
    CACHE_PAIR("branch-load", BPU, READ),
    CACHE_PAIR("node-load", NODE, READ),
    {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "ns"},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "ns"},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, ""},
    {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, ""},
    {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, ""},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, ""},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, ""},
    {"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS, ""},
    {"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS, ""},
};

/* Counts of the programs: by enum vp_interval_count and enum vp_guest_count. */
static const struct {
	const char *name, *unit, *meaning;
} counts[] =
    {
#define COUNT(id, name, unit, text) [VP_COUNT_##id] = {name, unit, text},
	VP_INTERVAL_COUNTS(COUNT)
#undef COUNT
#define CLASS(id, name, text) [VP_COUNT_BY_CLASS + VP_EXITS_##id] = {"exits:" name, "", text},
	    VP_EXIT_CLASSES(CLASS)
#undef CLASS
#define CLASS(id, name, text)                                                                      \
	[VP_COUNT_TIME_BY_CLASS + VP_EXITS_##                                                      \
	    id] = {"time:exits:" name, "ns", "on a pCPU until the next entry: " text},
		VP_EXIT_CLASSES(CLASS)
#undef CLASS
},
  guest_counts[] = {
#define GUEST(id, name, text) [VP_GUEST_##id] = {name, "", text},
      VP_GUEST_COUNTS(GUEST)
#undef GUEST
};

static bool are_modifiers(struct vp_slice text)
{
	for (size_t i = 0; i < text.size; i++)
		if (!memchr("ukGH", text.bytes[i], 4))
			return false;
	return text.size > 0;
}

/* Modifiers select privilege levels, as in perf; default: all. */
static bool take_modifiers(struct vp_slice text, struct vp_event *event)
{
	bool user = false, kernel = false, guest = false, host = false;

	for (size_t i = 0; i < text.size; i++) {
		user |= text.bytes[i] == 'u';
		kernel |= text.bytes[i] == 'k';
		guest |= text.bytes[i] == 'G';
		host |= text.bytes[i] == 'H';
	}
	event->exclude_user = kernel && !user;
	event->exclude_kernel = user && !kernel;
	event->exclude_guest = host && !guest;
	event->exclude_host = guest && !host;
	return are_modifiers(text);
}

static bool raw_code(struct vp_slice name, uint64_t *config)
{
	if (name.size < 2 || name.bytes[0] != 'r')
		return false;
	struct vp_cursor digits = vp_cursor_of(name.bytes + 1, name.size - 1);
	*config = vp_cursor_hex(&digits);
	return vp_cursor_ok(&digits) && !vp_cursor_left(&digits);
}

static bool event_is_name(struct vp_slice text)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

	for (size_t i = 0; i < text.size; i++)
		if (!memchr(letters, text.bytes[i], sizeof(letters) - 1))
			return false;
	return text.size && text.bytes[0] != '.';
}

/* PMU/TERM,.../ and modifiers. */
static bool of_pmu(struct vp_slice name, struct vp_event *ret)
{
	const char *end = name.bytes + name.size, *first = memchr(name.bytes, '/', name.size);
	const char *terms = first ? first + 1 : end;
	const char *last = memchr(terms, '/', (size_t)(end - terms));

	return last && last > terms &&
	       event_is_name((struct vp_slice){name.bytes, (size_t)(first - name.bytes)}) &&
	       (last + 1 == end ||
		take_modifiers((struct vp_slice){last + 1, (size_t)(end - last - 1)}, ret));
}

static bool find_bare(struct vp_slice name, struct vp_event *ret)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(counters); i++)
		if (vp_slice_is(name, counters[i].name)) {
			ret->type = counters[i].type;
			ret->config = counters[i].config;
			ret->unit = counters[i].unit;
			return true;
		}
	ret->type = PERF_TYPE_RAW;
	return raw_code(name, &ret->config);
}

static bool find_counter(struct vp_slice name, struct vp_event *ret)
{
	const char *colon = memchr(name.bytes, ':', name.size);
	size_t size = colon ? (size_t)(colon - name.bytes) : name.size;
	struct vp_slice bare = {name.bytes, size};

	*ret = (struct vp_event){.source = VP_FROM_COUNTER, .unit = ""};
	struct vp_slice behind = {name.bytes + size + 1, colon ? name.size - size - 1 : 0};
	if (find_bare(bare, ret))
		return !colon || take_modifiers(behind, ret);
	ret->of_machine = of_pmu(name, ret) ||
			  (event_is_name(bare) && event_is_name(behind) && !are_modifiers(behind));
	return ret->of_machine;
}

bool vp_event_find(struct vp_slice name, struct vp_event *ret)
{
	for (uint32_t i = 0; i < VP_COUNTS; i++)
		if (vp_slice_is(name, counts[i].name)) {
			*ret = (struct vp_event){
			    .source = VP_FROM_COUNT, .index = i, .unit = counts[i].unit};
			return true;
		}
	for (uint32_t i = 0; i < VP_GUEST_COUNT; i++)
		if (vp_slice_is(name, guest_counts[i].name)) {
			*ret = (struct vp_event){.source = VP_FROM_GUEST, .index = i, .unit = ""};
			return true;
		}
	return find_counter(name, ret);
}

static void each_of(uint32_t source, uint32_t n,
		    void (*each)(void *context, const char *name, const struct vp_event *event,
				 const char *meaning),
		    void *context)
{
	for (uint32_t i = 0; i < n; i++) {
		const char *name = source == VP_FROM_COUNTER ? counters[i].name
				   : source == VP_FROM_COUNT ? counts[i].name
							     : guest_counts[i].name;
		const char *meaning = source == VP_FROM_COUNTER ? "perf's"
				      : source == VP_FROM_COUNT ? counts[i].meaning
								: guest_counts[i].meaning;
		struct vp_event event;
		if (vp_event_find((struct vp_slice){name, strlen(name)}, &event))
			each(context, name, &event, meaning);
	}
}

void vp_event_each(void (*each)(void *context, const char *name, const struct vp_event *event,
				const char *meaning),
		   void *context)
{
	each_of(VP_FROM_COUNTER, VP_ARRAY_SIZE(counters), each, context);
	each_of(VP_FROM_COUNT, VP_COUNTS, each, context);
	each_of(VP_FROM_GUEST, VP_GUEST_COUNT, each, context);
}

static void compare_event_name(void *nearest, const char *name, const struct vp_event *event,
			       const char *meaning)
{
	(void)event, (void)meaning;
	vp_nearest_add(nearest, name);
}

void vp_event_look_near(struct vp_nearest *nearest)
{
	vp_event_each(compare_event_name, nearest);
}

char *vp_event_unknown(struct vp_slice name)
{
	struct vp_nearest nearest;
	struct vp_slice bare = name;
	const char *colon = memchr(name.bytes, ':', name.size);

	if (colon && are_modifiers((struct vp_slice){colon + 1,
						     name.size - 1 - (size_t)(colon - name.bytes)}))
		bare.size = (size_t)(colon - name.bytes);
	vp_nearest_init(&nearest, bare);
	vp_event_look_near(&nearest);
	VP_AUTO_FREE char *near = vp_nearest_text(&nearest);
	return vp_format("unknown event '%.*s'%s: 'vperf stat --list' prints the names",
			 (int)name.size, name.bytes, near);
}

bool vp_event_native(enum vp_guest_count count, struct vp_event *ret)
{
	static const char *const names[VP_GUEST_COUNT] = {
	    [VP_GUEST_switches] = "context-switches",
	    [VP_GUEST_faults] = "page-faults",
	    [VP_GUEST_major_faults] = "major-faults",
	    [VP_GUEST_interrupts] = "irq:irq_handler_entry",
	    [VP_GUEST_timer] = "irq_vectors:local_timer_entry",
	    [VP_GUEST_forks] = "sched:sched_process_fork",
	    [VP_GUEST_system_calls] = "raw_syscalls:sys_enter",
	};
	const char *name = names[count];

	if (!name || !vp_event_find((struct vp_slice){name, strlen(name)}, ret))
		return false;
	ret->machine_name = name;
	return true;
}
