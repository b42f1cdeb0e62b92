/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Event names as perf report prints them. */
#include "base/alloc.h"
#include "base/cursor.h"
#include "base/macros.h"
#include "base/vec.h"
#include "import/perf/perfdata.h"
#include "import/perf/perfdata_record.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

enum { LONGEST_NAME = 200, PMU_SHIFT = 32 };

static const char *const hardware[] = {"cycles",
				       "instructions",
				       "cache-references",
				       "cache-misses",
				       "branches",
				       "branch-misses",
				       "bus-cycles",
				       "stalled-cycles-frontend",
				       "stalled-cycles-backend",
				       "ref-cycles"};
static const char *const software[] = {
    "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
    "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
    "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};

static const char *pmu_of(const struct vp_perfdata *file, uint32_t type, int *size)
{
	vp_vec_each (&file->pmus, pmu)
		if (pmu->type == type) {
			*size =
			    (int)(pmu->name.size < LONGEST_NAME ? pmu->name.size : LONGEST_NAME);
			return pmu->name.bytes;
		}
	return NULL;
}

static char *cache_name(uint64_t config)
{
	static const char *const caches[] = {"L1-dcache", "L1-icache", "LLC", "dTLB",
					     "iTLB",      "branch",    "node"};
	static const char *const operations[] = {"load", "store", "prefetch"};
	uint64_t cache = config & 0xff, operation = config >> 8 & 0xff,
		 result = config >> 16 & 0xff;

	if (cache >= VP_ARRAY_SIZE(caches) || operation >= VP_ARRAY_SIZE(operations) || result > 1)
		return vp_format("cache event %#" PRIx64, config);
	return vp_format("%s-%s%s", caches[cache], operations[operation],
			 result                                       ? "-misses"
			 : !strcmp(operations[operation], "prefetch") ? "es"
								      : "s");
}

/* Without a PMU, whose type is in the upper half of `config`. */
static char *plain_name(const struct vp_perfdata *file, const struct vp_perfdata_attr *attr)
{
	uint64_t low = attr->config & UINT32_MAX;
	int size = 0;

	if (attr->type == PERF_TYPE_HARDWARE && low < VP_ARRAY_SIZE(hardware))
		return vp_strdup(hardware[low]);
	if (attr->type == PERF_TYPE_SOFTWARE && attr->config < VP_ARRAY_SIZE(software))
		return vp_strdup(software[attr->config]);
	if (attr->type == PERF_TYPE_HW_CACHE)
		return cache_name(low);
	if (attr->type == PERF_TYPE_TRACEPOINT)
		return vp_format("tracepoint %" PRIu64, attr->config);
	if (attr->type == PERF_TYPE_RAW)
		return vp_format("raw %#" PRIx64, attr->config);
	if (attr->type == PERF_TYPE_BREAKPOINT)
		return vp_strdup("breakpoint");
	const char *pmu = pmu_of(file, attr->type, &size);
	return pmu ? vp_format("%.*s/config=%#" PRIx64 "/", size, pmu, attr->config)
		   : vp_format("PMU %" PRIu32 ", event %#" PRIx64, attr->type, attr->config);
}

char *vp_perfdata_event_name(const struct vp_perfdata *file, const struct vp_perfdata_attr *attr)
{
	struct vp_slice name = attr->name;

	return name.size
		   ? vp_format("%.*s", (int)(name.size < LONGEST_NAME ? name.size : LONGEST_NAME),
			       name.bytes)
		   : plain_name(file, attr);
}

/* "cpu_core/cycles/u" becomes "cycles:u". */
static char *inside_pmu(const char *name)
{
	static const char *const cores[] = {"cpu_core/", "cpu_atom/", "cpu_lowpower/", "armv8_",
					    "armv9_"};
	bool is_core = false;

	for (size_t i = 0; i < VP_ARRAY_SIZE(cores); i++)
		is_core |= !strncmp(name, cores[i], strlen(cores[i]));
	const char *from = is_core ? strchr(name, '/') : NULL;
	const char *to = from ? strchr(from + 1, '/') : NULL;
	if (!to)
		return NULL;
	return vp_format("%.*s%s%s", (int)(to - from - 1), from + 1, to[1] ? ":" : "", to + 1);
}

char *vp_perfdata_hybrid_name(const struct vp_perfdata *file, const struct vp_perfdata_attr *attr)
{
	VP_AUTO_FREE char *name = vp_perfdata_event_name(file, attr);
	bool of_pmu = (attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE) &&
		      attr->config >> PMU_SHIFT;
	char *inside = inside_pmu(name);

	return inside ? inside : of_pmu ? VP_TAKE(name) : NULL;
}
