/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whose a sample of a guest is: by page-table root, by the guest's memory, by the page at an
 * interrupt; in each of two guests by its own symbol map, and over time, as roots are used again.
 */
#include "unit.h"

#include "made_report.h"

#define NAME "test_processes.rec"
#define AT(tick) (MADE_START + (tick)*MADE_PERIOD)

static struct vp_report report;
static struct made made;

static void put(uint64_t tick, uint32_t id, void *record)
{
	struct vp_record_header *header = record;

	header->id = (uint16_t)id;
	header->time = AT(tick);
	vp_trace_append(made.writer, vp_stream_of_pcpu(0), record);
	made.pcpus = 1;
}

/* vCPU 1 of the VM (0 or 1). */
static void at_root(uint64_t tick, unsigned vm, uint32_t mode, uint64_t root, uint64_t ip)
{
	struct vp_guest_sample sample = {.vm = 1000 * (vm + 1),
					 .tid = 1000 * (vm + 1) + 2,
					 .vcpu = 1,
					 .mode = (uint8_t)mode,
					 .ip = ip,
					 .as_root = root,
					 .flags = VP_HAS_AS_ROOT};

	put(tick, VP_ID_guest_sample, &sample);
}

static void by_memory(uint64_t tick, unsigned vm, uint32_t mode, uint64_t root, uint32_t pid,
		      uint64_t ip)
{
	struct vp_guest_sample sample = {.vm = 1000 * (vm + 1),
					 .tid = 1000 * (vm + 1) + 2,
					 .vcpu = 1,
					 .mode = (uint8_t)mode,
					 .ip = ip,
					 .as_root = root,
					 .guest_pid = pid,
					 .guest_tid = pid,
					 .flags = VP_BY_MEMORY | (root ? VP_HAS_AS_ROOT : 0)};

	put(tick, VP_ID_guest_sample, &sample);
}

static void at_interrupt(uint64_t tick, unsigned vm, uint32_t mode, uint64_t root, uint64_t ip)
{
	struct vp_guest_sample sample = {.vm = 1000 * (vm + 1),
					 .tid = 1000 * (vm + 1) + 2,
					 .vcpu = 1,
					 .mode = (uint8_t)mode,
					 .ip = ip,
					 .as_root = root,
					 .flags = VP_AT_INTERRUPT | (root ? VP_HAS_AS_ROOT : 0)};

	put(tick, VP_ID_guest_sample, &sample);
}

static void name_guest(uint64_t tick, unsigned vm, uint32_t tid, const char *comm)
{
	struct vp_guest_task task = {.vm = 1000 * (vm + 1), .guest_pid = tid, .guest_tid = tid};

	memcpy(task.comm, comm, strlen(comm));
	put(tick, VP_ID_guest_task, &task);
}

/*
 * vm0: root 5000 is old's (71) for the first ten ticks, then new's (72); vm1 has other processes
 * with the same roots and numbers.
 */
static void begin(void)
{
	made_begin(&made, NAME, 2);
}

static void end(struct vp_profile_options options)
{
	VP_AUTO_FREE char *first =
	    vp_format("vperf-maps 1\nmachine guest -\nsource memory\n"
		      "k ffffffff81000000 1000 T first_kernel\n"
		      "a 0 71 5000 0 %llu old\na 1 72 5000 %llu 0 new\na 2 73 7000 0 0 third\n"
		      "m 0 400000 401000 0 0 - /bin/old\nm 1 400000 401000 0 0 - /bin/new\n"
		      "m 2 600000 601000 0 0 - /bin/third\nm 2 401000 402000 0 0 - /bin/third\n"
		      "m 2 800000 802000 0 0 - //anon\nm 2 810000 812000 8000 0 - /memfd:jit\n"
		      "i - /bin/old\ns 0 100 old_code\ns 100 100 old_more\n"
		      "s 300 10 old_last\n"
		      "i - /bin/new\ns 0 100 new_code\n"
		      "i - /bin/third\ns 0 100 third_code\nend 21\n",
		      (unsigned long long)AT(10), (unsigned long long)AT(10));
	static const char second[] = "vperf-maps 1\nmachine guest -\nsource memory\n"
				     "k ffffffff81000000 1000 T second_kernel\n"
				     "a 0 71 5000 0 0 other\n"
				     "m 0 400000 401000 0 0 - /bin/other\n"
				     "i - /bin/other\ns 0 100 other_code\nend 8\n";

	made_end(&made, 30);
	temporary_file(NAME "/guest-vm0.maps", first, strlen(first));
	temporary_file(NAME "/guest-vm1.maps", second, sizeof(second) - 1);
	options.per_process = true;
	report = made_report(NAME, &options);
}

/* A row of that function of that process; `pid` 0: none. */
static void expect_row(uint32_t vm, const char *function, const char *process, uint32_t pid,
		       uint64_t samples)
{
	vp_vec_each (&report.profile.rows, row) {
		const char *comm = vp_profile_text(&report.profile, row->process);
		if (row->vm == vm &&
		    !strcmp(vp_profile_text(&report.profile, row->function), function) &&
		    !strcmp(comm ? comm : "-", process) && row->pid == (pid ? pid : VP_NONE)) {
			assert_int_equal(row->samples, samples);
			return;
		}
	}
	fail_msg("there is no row of %s in %s/%u of VM %u", function, process, pid, vm);
}

static void expect_routes(uint64_t none, uint64_t cr3, uint64_t kernel, uint64_t memory,
			  uint64_t address)
{
	const uint64_t expected[VP_ROUTES] = {[VP_ROUTE_NONE] = none,
					      [VP_ROUTE_CR3] = cr3,
					      [VP_ROUTE_KERNEL] = kernel,
					      [VP_ROUTE_MEMORY] = memory,
					      [VP_ROUTE_ADDRESS] = address};

	for (size_t route = 0; route < VP_ROUTES; route++)
		assert_int_equal(report.profile.routes[route], expected[route]);
}

enum { USER = VP_MODE_GUEST_USER, KERNEL = VP_MODE_GUEST_KERNEL };
static const struct vp_profile_options unified = {.view = VP_VIEW_UNIFIED};

/* One after another with the same root and address: each has the process of its time. */
static void test_roots_used_again(void **state)
{
	begin();
	for (uint64_t tick = 1; tick < 9; tick++)
		at_root(tick, 0, USER, 0x5000, 0x400010);
	for (uint64_t tick = 11; tick < 14; tick++)
		at_root(tick, 0, USER, 0x5000, 0x400010);
	at_root(14, 1, USER, 0x5000, 0x400010);
	at_root(15, 0, KERNEL, 0x5000, 0xffffffff81000010);
	at_root(16, 1, KERNEL, 0x5000, 0xffffffff81000010);
	at_root(17, 0, USER, 0x8000000000007fff, 0x600010);
	end(unified);
	assert_int_equal(report.profile.rows.count, 6);
	expect_row(0, "old_code", "old", 71, 8);
	expect_row(0, "new_code", "new", 72, 3);
	expect_row(1, "other_code", "other", 71, 1);
	expect_row(0, "first_kernel", "new", 72, 1);
	expect_row(1, "second_kernel", "other", 71, 1);
	expect_row(0, "third_code", "third", 73, 1);
	expect_routes(0, 15, 0, 0, 0);
	assert_int_equal(report.profile.unattributed, 0);
	vp_report_deinit(&report);
}

/* A root that nobody has: the kernel's own, or a process that was not read. */
static void test_unknown_roots(void **state)
{
	begin();
	at_root(1, 0, USER, 0x8000000000009fff, 0x400010);
	at_root(2, 0, KERNEL, 0x9000, 0xffffffff81000010);
	at_root(3, 0, KERNEL, 0x9000, 0xffffffff91000010); /* without a name */
	at_root(4, 0, USER, 0, 0x400010);
	at_root(5, 0, USER, 0, 0); /* blanked out */
	end(unified);
	expect_row(0, "0x400010", "cr3:0x9000", 0, 1);
	expect_row(0, "first_kernel", "[kernel]", 0, 1);
	expect_row(0, "[kernel]+0xffffffff91000010", "[kernel]", 0, 1);
	expect_row(0, "0x400010", "-", 0, 1);
	expect_row(0, "[not recorded]", "-", 0, 1);
	expect_routes(4, 0, 1, 0, 0);
	assert_int_equal(report.profile.unattributed, 4);
	vp_report_deinit(&report);
}

/* The guest's memory tells the process; its root which of its programs, if it is that process's. */
static void test_by_memory(void **state)
{
	begin();
	name_guest(1, 0, 72, "renamed");
	name_guest(1, 1, 72, "elsewhere");
	by_memory(2, 0, USER, 0x5000, 72, 0x400010); /* 5000 is still old's */
	by_memory(12, 0, USER, 0x5000, 72, 0x400010);
	by_memory(13, 0, USER, 0x7000, 72, 0x400010); /* borrowed: third's */
	by_memory(14, 0, KERNEL, 0x5000, 72, 0xffffffff81000010);
	by_memory(15, 0, USER, 0, 73, 0x600010);
	by_memory(16, 0, USER, 0x5000, 99, 0x400010); /* not read */
	by_memory(17, 1, USER, 0x5000, 71, 0x400010);
	end(unified);
	expect_row(0, "new_code", "renamed", 72, 3);
	expect_row(0, "first_kernel", "renamed", 72, 1);
	expect_row(0, "third_code", "third", 73, 1);
	expect_row(0, "0x400010", "-", 99, 1);
	expect_row(1, "other_code", "other", 71, 1);
	expect_routes(0, 0, 0, 7, 0);
	vp_report_deinit(&report);
}

/* An agent knows a process of vfork(2) by its parent's page tables only. */
static void test_vfork(void **state)
{
	static const char agent[] = "vperf-maps 1\nmachine guest -\n"
				    "a 0 80 a000 0 0 parent\nm 0 500000 501000 0 0 - /bin/parent\n"
				    "i - /bin/parent\ns 0 100 parent_code\nend 6\n";
	struct vp_profile_options options = unified;

	begin();
	name_guest(1, 0, 81, "child");
	by_memory(2, 0, USER, 0xa000, 81, 0x500010);
	by_memory(3, 1, USER, 0xa000, 81, 0x500010); /* its guest has no agent */
	by_memory(4, 0, USER, 0xa000, 80, 0x500010);
	end(unified);
	vp_report_deinit(&report);
	temporary_file(NAME "/agent-vm0.maps", agent, sizeof(agent) - 1);
	options.per_process = true;
	report = made_report(NAME, &options);
	expect_row(0, "parent_code", "child", 81, 1);
	expect_row(1, "0x500010", "-", 81, 1);
	expect_row(0, "parent_code", "parent", 80, 1);
	vp_report_deinit(&report);
}

/* At an interrupt only the place is sure: the process that the samples around it had, if its code
 * is there; else the only one that has code there. */
static void test_at_interrupts(void **state)
{
	begin();
	at_interrupt(1, 0, USER, 0x5000, 0x400010);
	at_interrupt(2, 0, USER, 0x5000, 0x600010); /* third's turn */
	at_interrupt(2, 0, USER, 0x5000, 0x400010);
	at_interrupt(2, 0, USER, 0x5000, 0x401010); /* the page behind it is third's */
	at_interrupt(3, 0, USER, 0, 0x600020);
	at_interrupt(4, 0, USER, 0x5000, 0x700010); /* nobody's */
	at_interrupt(5, 0, KERNEL, 0x5000, 0xffffffff81000010);
	at_interrupt(6, 0, USER, 0x9000, 0x400010);  /* a root that nobody has is believed */
	at_interrupt(12, 0, USER, 0x7000, 0x400010); /* new's */
	end(unified);
	expect_row(0, "old_code", "old", 71, 2);
	expect_row(0, "third_code", "third", 73, 3);
	expect_row(0, "0x700010", "-", 0, 1);
	expect_row(0, "first_kernel", "old", 71, 1);
	expect_row(0, "0x400010", "cr3:0x9000", 0, 1);
	expect_row(0, "new_code", "new", 72, 1);
	expect_routes(2, 3, 0, 0, 4);
	vp_report_deinit(&report);
}

/* Names of the host's threads are of the time; a guest's come from its memory only. */
static void test_host_threads(void **state)
{
	begin();
	made_task(&made, 0, 1, 77, 77, "before");
	made_host(&made, 0, 2, 77, VP_MODE_USER);
	made_task(&made, 0, 3, 77, 77, "after");
	made_host(&made, 0, 4, 77, VP_MODE_USER);
	made_host(&made, 0, 5, 77, VP_MODE_KERNEL);
	made_host(&made, 0, 6, 78, VP_MODE_USER);
	end(unified);
	expect_row(VP_NONE, "0xffffffff82000000", "before", 77, 1);
	uint64_t after = 0, nameless = 0;
	vp_vec_each (&report.profile.rows, row) {
		const char *comm = vp_profile_text(&report.profile, row->process);
		after += comm && !strcmp(comm, "after") && row->pid == 77 ? row->samples : 0;
		nameless += !comm && row->pid == 78 ? row->samples : 0;
	}
	assert_int_equal(after, 2);
	assert_int_equal(nameless, 1);
	vp_report_deinit(&report);
}

/* By name or number of the process: of host and guests. */
static void test_filters(void **state)
{
	struct vp_profile_options options = unified;

	for (int round = 0; round < 2; round++) {
		begin();
		for (uint64_t tick = 1; tick < 5; tick++)
			at_root(tick, 0, USER, 0x5000, 0x400010);
		at_root(5, 1, USER, 0x5000, 0x400010);
		at_root(6, 0, USER, 0x7000, 0x600010);
		at_root(7, 0, USER, 0x9000, 0x600010);
		made_host(&made, 0, 8, 71, VP_MODE_USER);
		options.comm = round ? "old" : NULL;
		options.pid = round ? 0 : 71;
		end(options);
		assert_int_equal(report.profile.rows.count, round ? 1 : 3);
		expect_row(0, "old_code", "old", 71, 4);
		if (!round)
			expect_row(1, "other_code", "other", 71, 1);
		assert_int_equal(report.profile.parts.at[0].samples, 8);
		vp_report_deinit(&report);
	}
}

/* More addresses without a name than are told apart share one frame, and those before stay. */
static void test_many_addresses(void **state)
{
	enum { MORE = 10, LAST = VP_RESOLVER_UNNAMED + MORE };
	uint64_t rest = 0, kept = 0;

	begin();
	for (uint64_t i = 0; i < LAST; i++)
		at_root(1, 0, USER, 0x9000, 0x400000 + 64 * i);
	at_root(2, 0, USER, 0x9000, 0x400000);
	end(unified);
	vp_vec_each (&report.profile.rows, row) {
		bool is_rest =
		    !strcmp(vp_profile_text(&report.profile, row->function), "[unknown]");
		rest += is_rest ? row->samples : 0;
		kept += !is_rest;
	}
	assert_int_equal(kept, VP_RESOLVER_UNNAMED);
	assert_in_range(rest, MORE, MORE + 1); /* the first one's place in the cache may be lost */
	assert_int_equal(report.profile.unattributed, LAST + 1);
	vp_report_deinit(&report);
}

/* JIT code without names is one function, not one for each address. */
static void test_generated_code(void **state)
{
	begin();
	at_root(1, 0, USER, 0x7000, 0x800010);
	at_root(2, 0, USER, 0x7000, 0x801020);
	at_root(3, 0, USER, 0x7000, 0x800010);
	end(unified);
	expect_row(0, "[JIT code]", "third", 73, 3);
	vp_report_deinit(&report);
	begin();
	at_root(1, 0, USER, 0x7000, 0x810010);
	at_root(2, 0, USER, 0x7000, 0x811000);
	end(unified);
	expect_row(0, "[JIT code]", "third", 73, 2);
	assert_int_equal(report.profile.unattributed, 2); /* a name is still missing */
	vp_report_deinit(&report);
}

/* Functions side by side, and two that begin in one line of the cache. */
static void test_functions(void **state)
{
	begin();
	at_root(1, 0, USER, 0x5000, 0x400000);
	at_root(2, 0, USER, 0x5000, 0x4000ff);
	at_root(3, 0, USER, 0x5000, 0x400100);
	at_root(4, 0, USER, 0x5000, 0x4000ff);
	at_root(5, 0, USER, 0x5000, 0x4001ff);
	at_root(6, 0, USER, 0x5000, 0x400200);
	at_root(7, 0, USER, 0x5000, 0x400201);
	at_root(8, 0, USER, 0x5000, 0x400200);
	end(unified);
	expect_row(0, "old_code", "old", 71, 3);
	expect_row(0, "old_more", "old", 71, 2);
	expect_row(0, "old+0x200-0x300", "old", 71, 3); /* between two functions */
	assert_int_equal(report.profile.unattributed, 3);
	vp_report_deinit(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_roots_used_again),
	    cmocka_unit_test(test_unknown_roots),
	    cmocka_unit_test(test_by_memory),
	    cmocka_unit_test(test_at_interrupts),
	    cmocka_unit_test(test_vfork),
	    cmocka_unit_test(test_host_threads),
	    cmocka_unit_test(test_filters),
	    cmocka_unit_test(test_many_addresses),
	    cmocka_unit_test(test_generated_code),
	    cmocka_unit_test(test_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
