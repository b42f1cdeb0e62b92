/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of events in a perf.data, and build-ids of files by their paths. */
#include "unit.h"

#include <linux/perf_event.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "import/perf/perfdata.h"

enum { HAS_SIZE = 1 << 15 };

static struct vp_buffer bytes;

/* As perf has it: `size` of the id if that is told, names end with at least one zero. */
static void put(uint16_t misc, uint8_t size, char first, const char *path)
{
	char id[24] = {first, 2, 3};
	size_t name = (strlen(path) + 8) / 8 * 8;
	const uint32_t type = 0x43, process = 0xffffffff;
	const uint16_t whole = (uint16_t)(8 + 4 + sizeof(id) + name);

	id[20] = (char)size;
	vp_buffer_append(&bytes, &type, sizeof(type));
	vp_buffer_append(&bytes, &misc, sizeof(misc));
	vp_buffer_append(&bytes, &whole, sizeof(whole));
	vp_buffer_append(&bytes, &process, sizeof(process));
	vp_buffer_append(&bytes, id, sizeof(id));
	size_t before = bytes.size;
	memset(vp_buffer_extend(&bytes, name), 0, name);
	memcpy(bytes.bytes + before, path, strlen(path));
}

static struct vp_build_id id_of(const char *path, size_t cut)
{
	const struct vp_perfdata file = {.build_ids = {bytes.bytes, bytes.size - cut}};

	return vp_perfdata_build_id(&file, path);
}

static void test_build_ids(void **state)
{
	put(0, 9, 'a', "/usr/bin/a");
	put(HAS_SIZE, 16, 'b', "/usr/bin/b");
	put(HAS_SIZE, 21, 'c', "/usr/bin/c");
	put(0, 0, 'd', "/usr/bin/a.so");
	assert_int_equal(id_of("/usr/bin/a", 0).size, 20);
	assert_int_equal(id_of("/usr/bin/a", 0).bytes[0], 'a');
	assert_int_equal(id_of("/usr/bin/b", 0).size, 16);
	assert_int_equal(id_of("/usr/bin/b", 0).bytes[0], 'b');
	/* More than an id has is none. */
	assert_int_equal(id_of("/usr/bin/c", 0).size, 0);
	assert_int_equal(id_of("/usr/bin/a.so", 0).bytes[0], 'd');
	/* One that is not there has none. */
	assert_int_equal(id_of("/usr/bin", 0).size, 0);
	assert_int_equal(id_of("/usr/bin/d", 0).size, 0);
	assert_int_equal(id_of("", 0).size, 0);
	/* The last one is cut. */
	assert_int_equal(id_of("/usr/bin/a.so", 1).size, 0);
	assert_int_equal(id_of("/usr/bin/b", 1).size, 16);
	vp_buffer_deinit(&bytes);
	bytes = (struct vp_buffer){0};
	assert_int_equal(id_of("/usr/bin/a", 0).size, 0);
}

static void test_names(void **state)
{
	static const struct {
		uint32_t type;
		uint64_t config;
		const char *name, *expected, *hybrid;
	} cases[] = {
	    {PERF_TYPE_HARDWARE, 0, NULL, "cycles", NULL},
	    {PERF_TYPE_HARDWARE, 9, NULL, "ref-cycles", NULL},
	    {PERF_TYPE_HARDWARE, 10, NULL, "PMU 0, event 0xa", NULL},
	    {PERF_TYPE_HARDWARE, 1 | 4ULL << 32, NULL, "instructions", "instructions"},
	    {PERF_TYPE_SOFTWARE, 2, NULL, "page-faults", NULL},
	    {PERF_TYPE_SOFTWARE, 11, NULL, "cgroup-switches", NULL},
	    {PERF_TYPE_SOFTWARE, 12, NULL, "PMU 1, event 0xc", NULL},
	    {PERF_TYPE_HW_CACHE, 0x10000, NULL, "L1-dcache-load-misses", NULL},
	    {PERF_TYPE_HW_CACHE, 0x103, NULL, "dTLB-stores", NULL},
	    {PERF_TYPE_HW_CACHE, 0x202, NULL, "LLC-prefetches", NULL},
	    {PERF_TYPE_HW_CACHE, 0x10206, NULL, "node-prefetch-misses", NULL},
	    {PERF_TYPE_HW_CACHE, 7, NULL, "cache event 0x7", NULL},
	    {PERF_TYPE_HW_CACHE, 0x300, NULL, "cache event 0x300", NULL},
	    {PERF_TYPE_HW_CACHE, 0x20000, NULL, "cache event 0x20000", NULL},
	    {PERF_TYPE_TRACEPOINT, 77, NULL, "tracepoint 77", NULL},
	    {PERF_TYPE_RAW, 0x1c0, NULL, "raw 0x1c0", NULL},
	    {PERF_TYPE_BREAKPOINT, 0, NULL, "breakpoint", NULL},
	    {9, 0x11, NULL, "msr/config=0x11/", NULL},
	    {10, 0x12, NULL, "PMU 10, event 0x12", NULL},
	    {PERF_TYPE_RAW, 1, "cpu_core/cycles/u", "cpu_core/cycles/u", "cycles:u"},
	    {PERF_TYPE_RAW, 1, "cpu_atom/cycles/", "cpu_atom/cycles/", "cycles"},
	    {PERF_TYPE_RAW, 1, "cpu/cycles/", "cpu/cycles/", NULL},
	    {PERF_TYPE_RAW, 1, "cpu_core/cycles", "cpu_core/cycles", NULL},
	};
	struct vp_perfdata_pmu pmus[] = {{8, {"power", 5}}, {9, {"msrx", 3}}};
	const struct vp_perfdata file = {.pmus = {.at = pmus, .count = 2}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(cases); i++) {
		struct vp_perfdata_attr attr = {.type = cases[i].type, .config = cases[i].config};
		if (cases[i].name)
			attr.name = (struct vp_slice){cases[i].name, strlen(cases[i].name)};
		VP_AUTO_FREE char *name = vp_perfdata_event_name(&file, &attr);
		VP_AUTO_FREE char *hybrid = vp_perfdata_hybrid_name(&file, &attr);
		assert_string_equal(name, cases[i].expected);
		if (cases[i].hybrid)
			assert_string_equal(hybrid, cases[i].hybrid);
		else
			assert_null(hybrid);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_build_ids),
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
