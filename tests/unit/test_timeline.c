/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exit names, the merge of streams, and the guest's clock on the host's. */
#include "unit.h"

#include <stdio.h>
#if defined(__x86_64__)
#include <asm/vmx.h>
#endif

#include "make_recording.h"
#include "schema/exit_reason.h"
#include "timeline/clock_map.h"
#include "timeline/guests.h"
#include "timeline/merge.h"
#include "timeline/survey.h"

#define NAME "test_timeline.rec"
#define SECOND 1000000000ULL

static void test_exit_names(void **state)
{
	static const struct {
		uint32_t vendor, reason;
		const char *name;
		bool halt;
	} exits[] = {
	    {VP_VENDOR_AMD, 0x78, "HLT", true},
	    {VP_VENDOR_AMD, 0x8b, "MWAIT", true},
	    {VP_VENDOR_AMD, 0x60, "INTR", false},
	    {VP_VENDOR_AMD, 0x400, "NPF", false},
	    {VP_VENDOR_AMD, 0x4e, "EXCP14", false},
	    {VP_VENDOR_AMD, 0x13, "CR3_WRITE", false},
	    {VP_VENDOR_AMD, 0x402, "AVIC_NOACCEL", false},
	    {VP_VENDOR_AMD, 0xffffffff, "INVALID", false},
	    {VP_VENDOR_AMD, 12, "CR12_READ", false},
	    {VP_VENDOR_AMD, 0x12345, "0x12345", false},
	    {VP_VENDOR_INTEL, 12, "HLT", true},
	    {VP_VENDOR_INTEL, 36, "MWAIT_INSTRUCTION", true},
	    {VP_VENDOR_INTEL, 40, "PAUSE_INSTRUCTION", false},
	    {VP_VENDOR_INTEL, 85, "MSR_WRITE_IMM", false},
	    {VP_VENDOR_INTEL, 48, "EPT_VIOLATION", false},
	    {VP_VENDOR_INTEL, 0x80000021, "INVALID_STATE", false},
	    {VP_VENDOR_INTEL, 35, "0x23", false},
	    {VP_VENDOR_INTEL, 0x78, "0x78", false},
	    {VP_VENDOR_ARM, 1, "WFX", true},
	    {VP_VENDOR_ARM, 0x24, "DABT_LOW", false},
	    {VP_VENDOR_ARM, VP_ARM_NO_TRAP, "IRQ", false},
	    {VP_VENDOR_ARM, 0x3f, "0x3f", false},
	    {VP_VENDOR_UNKNOWN, 12, "0xc", false},
	};

	for (size_t i = 0; i < VP_ARRAY_SIZE(exits); i++) {
		char name[VP_EXIT_NAME_SIZE];
		vp_exit_reason_name(exits[i].vendor, exits[i].reason, name);
		assert_string_equal(name, exits[i].name);
		assert_int_equal(vp_exit_reason_is_halt(exits[i].vendor, exits[i].reason),
				 exits[i].halt);
	}
}

static void test_interrupts(void **state)
{
	static const struct {
		uint32_t vendor, reason;
		bool interrupt;
	} exits[] = {
	    {VP_VENDOR_AMD, 0x60, true},   {VP_VENDOR_AMD, 0x61, true},
	    {VP_VENDOR_AMD, 0x64, false},  {VP_VENDOR_AMD, 0x72, false},
	    {VP_VENDOR_AMD, 0x5f, false},  {VP_VENDOR_INTEL, 0, true},
	    {VP_VENDOR_INTEL, 1, true},    {VP_VENDOR_INTEL, 0x80000021, false},
	    {VP_VENDOR_INTEL, 2, false},   {VP_VENDOR_INTEL, 6, true},
	    {VP_VENDOR_INTEL, 7, false},   {VP_VENDOR_INTEL, 52, false},
	    {VP_VENDOR_ARM, 1, false},     {VP_VENDOR_ARM, VP_ARM_NO_TRAP, true},
	    {VP_VENDOR_UNKNOWN, 12, true},
	};

	for (size_t i = 0; i < VP_ARRAY_SIZE(exits); i++)
		assert_int_equal(vp_exit_reason_is_interrupt(exits[i].vendor, exits[i].reason),
				 exits[i].interrupt);
}

#if defined(__x86_64__)
/* As this machine's kernel headers have them. */
static void test_kvm_names(void **state)
{
	static const struct {
		uint32_t reason;
		const char *name;
	} names[] = {VMX_EXIT_REASONS};

	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++) {
		char name[VP_EXIT_NAME_SIZE];
		vp_exit_reason_name(VP_VENDOR_INTEL, names[i].reason, name);
		assert_string_equal(name, names[i].name);
	}
}
#endif

static void test_exit_details(void **state)
{
	static const struct {
		uint32_t kind;
		uint64_t number;
		const char *text;
	} details[] = {{VP_DETAIL_PORT_IN, 0x3f8, "port 0x3f8 in"},
		       {VP_DETAIL_MSR_WRITE, 0x6e0, "MSR 0x6e0 write"},
		       {VP_DETAIL_CR_WRITE, 4, "CR4 write"},
		       {VP_DETAIL_MEMORY_FETCH, 0, "memory fetch"},
		       {VP_DETAIL_MEMORY_READ, 1, "memory read 0x0"},
		       {VP_DETAIL_MEMORY_WRITE, 0xfed41, "memory write 0xfed40000"},
		       {VP_DETAIL_MMIO_READ, 0, "MMIO read"},
		       {VP_DETAIL_MMIO_WRITE, 0x38000001004, "MMIO write 0x38000001004"},
		       {VP_DETAIL_EXCEPTION, 14, "exception 14"},
		       {VP_DETAIL_APIC_READ, 0x390, "APIC 0x390 read"},
		       {VP_DETAIL_EOI, 236, "EOI 236"}};
	char text[VP_EXIT_NAME_SIZE];

	for (size_t i = 0; i < VP_ARRAY_SIZE(details); i++)
		assert_string_equal(vp_exit_detail_text(details[i].kind, details[i].number, text),
				    details[i].text);
	assert_null(vp_exit_detail_text(VP_DETAIL_NONE, 7, text));
	assert_null(vp_exit_detail_text(VP_DETAIL_MMIO_WRITE + 1, 7, text));
	assert_null(vp_exit_detail_text(UINT32_MAX, 7, text));
}

static void test_exits_to_memory(void **state)
{
	static const struct {
		uint32_t vendor, reason;
		bool memory;
	} reasons[] = {{VP_VENDOR_AMD, 0x400, true},
		       {VP_VENDOR_AMD, 0x7b, false},
		       {VP_VENDOR_AMD, 48, false},
		       {VP_VENDOR_INTEL, 48, true},
		       {VP_VENDOR_INTEL, 49, true},
		       {VP_VENDOR_INTEL, 0x80000031, true},
		       {VP_VENDOR_INTEL, 30, false},
		       {VP_VENDOR_ARM, 0x24, true},
		       {VP_VENDOR_ARM, 0x01, false},
		       {VP_VENDOR_UNKNOWN, 48, false},
		       {VP_VENDOR_AMD, VP_PARAVIRTUAL, false}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(reasons); i++)
		assert_int_equal(vp_exit_reason_is_memory(reasons[i].vendor, reasons[i].reason),
				 reasons[i].memory);
}

static void test_merge_is_in_order(void **state)
{
	vp_stream_readers streams = {0};
	struct vp_merge merge;
	const struct vp_merge_head *head;
	struct made made;
	uint64_t last = 0, count = 0, seed = 1;

	made_begin(&made, NAME, 0);
	for (uint32_t pcpu = 0; pcpu < 7; pcpu++)
		for (uint64_t tick = 0, i = 0; i < 100 * pcpu; i++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			tick += seed >> 60;
			made_idle(&made, pcpu, tick);
		}
	made_end(&made, 1);
	expect_no_error(vp_trace_open(NAME "/host", VP_STREAMS(VP_STREAM_PCPU), &streams));
	vp_merge_init(&merge, &streams, NULL);
	while ((head = vp_merge_next(&merge))) {
		assert_true(head->time >= last);
		assert_int_equal(head->time, head->record->time);
		last = head->time;
		count++;
	}
	assert_null(vp_merge_next(&merge));
	assert_int_equal(count, 2100);
	vp_merge_deinit(&merge);
	vp_trace_close(&streams);
}

/* Records of the same time come in the order of their streams, whatever their number is. */
static void test_merge_of_equal_times(void **state)
{
	for (uint32_t n = 1; n < 9; n++) {
		vp_stream_readers streams = {0};
		const struct vp_merge_head *head;
		struct vp_merge merge;
		struct made made;
		made_begin(&made, NAME, 0);
		for (uint32_t pcpu = 0; pcpu < n; pcpu++)
			for (uint64_t tick = 0; tick < 3 + pcpu; tick++)
				made_idle(&made, pcpu, tick);
		made_end(&made, 1);
		expect_no_error(vp_trace_open(NAME "/host", VP_STREAMS(VP_STREAM_PCPU), &streams));
		vp_merge_init(&merge, &streams, NULL);
		for (uint64_t tick = 0; tick < 3 + n - 1; tick++)
			for (uint32_t pcpu = tick < 3 ? 0 : (uint32_t)tick - 2; pcpu < n; pcpu++) {
				head = vp_merge_next(&merge);
				assert_non_null(head);
				assert_int_equal(head->time, MADE_START + tick * MADE_PERIOD);
				assert_int_equal(head->stream, pcpu);
			}
		assert_null(vp_merge_next(&merge));
		vp_merge_deinit(&merge);
		vp_trace_close(&streams);
	}
	struct vp_merge nothing;
	const vp_stream_readers none = {0};
	vp_merge_init(&nothing, &none, NULL);
	assert_null(vp_merge_next(&nothing));
	vp_merge_deinit(&nothing);
}

/* Each vCPU is at home on one pCPU; the others of that stay. */
static void test_homes(void **state)
{
	struct vp_guests guests;
	vp_vms vms = {0};

	for (uint32_t i = 0; i < 2; i++) {
		struct vp_vm vm = {.pid = 5 + i, .name = vp_strdup("x")};
		for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
			vp_vm_vcpu(&vm, vcpu)->tid = 10 * (i + 1) + vcpu;
		vp_vec_push(&vms, vm);
	}
	vp_guests_init(&guests, &vms, 3);
	assert_int_equal(guests.vcpus.count, 4);
	for (uint32_t vcpu = 0; vcpu < 4; vcpu++) {
		assert_int_equal(guests.vcpus.at[vcpu].vm, vcpu / 2);
		assert_int_equal(guests.vcpus.at[vcpu].number, vcpu % 2);
		assert_int_equal(guests.vcpus.at[vcpu].home, VP_NONE);
		assert_int_equal(
		    vp_guests_vcpu(&guests, 5 + vcpu / 2, 10 * (vcpu / 2 + 1) + vcpu % 2), vcpu);
		vp_guests_move(&guests, vcpu, 1);
	}
	/* Another process's thread of that number is no vCPU. */
	assert_int_equal(vp_guests_vcpu(&guests, 6, 10), VP_NONE);
	assert_int_equal(vp_guests_vcpu(&guests, 5, 99), VP_NONE);
	assert_int_equal(vp_guests_vm(&guests, 7), VP_NONE);
	assert_int_equal(guests.home_vcpus.at[1].vcpus.count, 4);
	vp_guests_move(&guests, 1, 2);
	assert_int_equal(guests.home_vcpus.at[1].vcpus.count, 3);
	assert_int_equal(guests.home_vcpus.at[1].vcpus.at[0], 0);
	assert_int_equal(guests.home_vcpus.at[1].vcpus.at[1], 3);
	assert_int_equal(guests.home_vcpus.at[1].vcpus.at[2], 2);
	assert_int_equal(guests.home_vcpus.at[2].vcpus.at[0], 1);
	assert_int_equal(guests.vcpus.at[1].home, 2);
	vp_guests_move(&guests, 1, VP_NONE);
	assert_int_equal(guests.home_vcpus.at[2].vcpus.count, 0);
	assert_int_equal(guests.vcpus.at[1].home, VP_NONE);
	/* A new thread of a vCPU, and a vCPU and a VM that only records know. */
	uint32_t generation = guests.generation;
	assert_int_equal(vp_guests_vcpu_add(&guests, 6, 77, 1), 3);
	assert_int_equal(guests.vcpus.at[3].tid, 77);
	assert_true(guests.generation > generation);
	assert_int_equal(vp_guests_vcpu_add(&guests, 6, 78, 5), 4);
	assert_int_equal(guests.vcpus.at[4].number, 5);
	assert_int_equal(vp_guests_vcpu_add(&guests, 8, 79, 1), 5);
	assert_int_equal(guests.vcpus.at[5].vm, 2);
	assert_string_equal(vms.at[2].name, "pid-8");
	assert_int_equal(vp_guests_vcpu_add(&guests, 8, 79, 1), 5);
	vp_guests_deinit(&guests);
	vp_vms_deinit(&vms);
}

/* Which VMs there are, by each kind of record of a vCPU. */
static void test_discover(void **state)
{
	struct made made;
	vp_vms vms = {0};

	made_begin(&made, NAME, 0);
	made_guest(&made, 0, 1, 4, 0, VP_MODE_GUEST_USER, MADE_INTR);
	made_in_kvm(&made, 0, 2, 1, 0, MADE_INTR);
	made_host(&made, 0, 3, 9000, VP_MODE_USER);
	made_in(&made, 1, 1, 2, 0, MADE_INTR);
	made_out(&made, 1, 2, 3, 0, MADE_INTR, false);
	made_guest(&made, 1, 3, 4, 1, VP_MODE_GUEST_USER, MADE_INTR);
	made_end(&made, 5);
	expect_no_error(vp_guests_discover(NAME "/host", &vms));
	static const uint32_t pids[] = {5000, 2000, 3000, 4000};
	assert_int_equal(vms.count, VP_ARRAY_SIZE(pids));
	for (size_t i = 0; i < VP_ARRAY_SIZE(pids); i++)
		assert_int_equal(vms.at[i].pid, pids[i]);
	vp_vms_deinit(&vms);
}

/* The first clock_sync and the last one; a counter that does not run forward gives no speed. */
static void test_host_clock(void **state)
{
	for (int round = 0; round < 3; round++) {
		vp_stream_readers streams = {0};
		struct vp_host_clock clock;
		struct made made;
		made_begin(&made, NAME, 0);
		for (uint64_t i = 0; i < 4; i++) {
			struct vp_clock_sync record = {.time = MADE_START + i * MADE_PERIOD,
						       .id = VP_ID_clock_sync,
						       .error_ns = (uint32_t)(10 + i),
						       .tsc = round == 2   ? 0
							      : round && i ? 5
									   : 1000 + 500 * i,
						       .realtime = MADE_START + 77};
			vp_trace_append(made.writer, vp_stream_of_pcpu(0), &record);
		}
		made_idle(&made, 0, 9);
		made_end(&made, 10);
		expect_no_error(vp_trace_open(NAME "/host", VP_STREAMS(VP_STREAM_PCPU), &streams));
		vp_host_clock_read(&streams, &clock);
		assert_int_equal(clock.count, 2 - round);
		assert_int_equal(clock.realtime_offset_ns, 77);
		if (round < 2) {
			assert_int_equal(clock.pair[0].ns, MADE_START);
			assert_int_equal(clock.pair[0].tsc, 1000);
			assert_int_equal(clock.pair[0].error_ns, 10);
		}
		if (!round) {
			assert_int_equal(clock.pair[1].ns, MADE_START + 3 * MADE_PERIOD);
			assert_int_equal(clock.pair[1].tsc, 2500);
			assert_int_equal(clock.pair[1].error_ns, 13);
			assert_int_equal(vp_host_clock_at(&clock, 1500), MADE_START + MADE_PERIOD);
			assert_int_equal(vp_host_clock_at(&clock, 500), MADE_START - MADE_PERIOD);
		}
		vp_trace_close(&streams);
	}
}

/* A host whose counter runs at 2.5 GHz: 0 at 100 s. */
static const struct vp_host_clock host = {
    2, {{100 * SECOND, 0, 100}, {200 * SECOND, 250 * SECOND, 100}}};

/* A process number that was used again, and its threads' numbers too: records tell the VMs apart.
 */
static void test_vms_of_one_number(void **state)
{
	const uint32_t first = 5, second = 5 | 1 << VP_PID_BITS;
	struct vp_guests guests;
	vp_vms vms = {0};

	for (uint32_t nth = 0; nth < 2; nth++) {
		struct vp_vm vm = {.pid = 5, .nth = nth, .name = vp_strdup("x")};
		vp_vm_vcpu(&vm, 0)->tid = 6;
		vp_vec_push(&vms, vm);
	}
	vp_guests_init(&guests, &vms, 0);
	assert_int_equal(vp_guests_vm(&guests, first), 0);
	assert_int_equal(vp_guests_vm(&guests, second), 1);
	uint32_t old = vp_guests_vcpu_add(&guests, first, 6, 0);
	assert_int_equal(guests.vcpus.at[old].vm, 0);
	assert_int_equal(vp_guests_vcpu(&guests, 5, 6), old); /* what the host says of it then */
	uint32_t new = vp_guests_vcpu_add(&guests, second, 6, 0);
	assert_int_equal(guests.vcpus.at[new].vm, 1);
	assert_int_equal(vp_guests_vcpu(&guests, 5, 6), new);
	assert_int_equal(vp_guests_vcpu_add(&guests, first, 6, 0), old);
	assert_int_equal(vms.count, 2);
	vp_guests_deinit(&guests);
	vp_vms_deinit(&vms);
}

static void test_guest_clock_by_counter(void **state)
{
	/* The guest's counter is the host's minus 25 GHz*s: its clock began 10 s after 100 s. */
	struct vp_vcpu vcpu = {.has_tsc = true, .tsc_offset = -(int64_t)(25 * SECOND)};
	struct vp_vm vm = {.vcpus = {&vcpu, 1, 1}};
	struct vp_clock_pair pairs[] = {{10 * SECOND, 25 * SECOND, 50},
					{60 * SECOND, 150 * SECOND, 50}};
	struct vp_clock_map map;

	vp_clock_map_by_tsc(&host, &vm, pairs, 2, 120 * SECOND, 170 * SECOND, &map);
	assert_int_equal(map.basis, VP_CLOCK_BY_TSC);
	assert_int_equal(map.instants, 2);
	assert_int_equal(map.host_ns[0], 120 * SECOND);
	assert_int_equal(map.host_ns[1], 170 * SECOND);
	/* The reads, and what a steady clock may stray from the line in its middle. */
	assert_int_equal(map.error_ns, 300 + 25 * SECOND / 1000000);

	vp_clock_map_by_tsc(&host, &vm, pairs + 1, 1, 169 * SECOND, 170 * SECOND, &map);
	assert_int_equal(map.instants, 1);
	assert_int_equal(map.host_ns[0], 170 * SECOND);
	assert_int_equal(map.error_ns, 250 + SECOND * 500 / 1000000);
}

/* The bound knows how well the pairs agree, and what lies outside of them. */
static void test_error_of_guest_clock(void **state)
{
	struct vp_vcpu vcpu = {.has_tsc = true};
	struct vp_vm vm = {.vcpus = {&vcpu, 1, 1}};
	/* At 100 s, 120 s and 140 s of the host; the guest's clock is 10 us fast in the middle. */
	struct vp_clock_pair pairs[] = {{1 * SECOND, 0, 50},
					{21 * SECOND + 10000, 50 * SECOND, 50},
					{41 * SECOND, 100 * SECOND, 50}};
	struct vp_clock_map map;

	vp_clock_map_by_tsc(&host, &vm, pairs, 3, 110 * SECOND, 130 * SECOND, &map);
	assert_int_equal(map.guest_ns[0], 1 * SECOND);
	assert_int_equal(map.error_ns, 300 + 10000 + 20 * SECOND / 1000000);
	/* The line is drawn from the last pair before the recording. */
	vp_clock_map_by_tsc(&host, &vm, pairs, 3, 125 * SECOND, 130 * SECOND, &map);
	assert_int_equal(map.guest_ns[0], 21 * SECOND + 10000);
	assert_in_range(map.error_ns, 300 + 10 * SECOND / 1000000, 300 + 10 * SECOND / 500000);
	/* A second after the last pair. */
	vp_clock_map_by_tsc(&host, &vm, pairs, 3, 110 * SECOND, 141 * SECOND, &map);
	assert_int_equal(map.error_ns,
			 300 + 10000 + 20 * SECOND / 1000000 + SECOND * 500 / 1000000);
	/* Pairs that no clock can have: the counter was set in between. */
	pairs[1].tsc = pairs[0].tsc = 90 * SECOND;
	vp_clock_map_by_tsc(&host, &vm, pairs, 3, 110 * SECOND, 140 * SECOND, &map);
	assert_int_equal(map.instants, 1);
	assert_int_equal(map.error_ns, 250 + 30 * SECOND * 500 / 1000000);
}

static void test_scaled_counter(void **state)
{
	/* The guest's counter runs at half the host's speed. */
	struct vp_vcpu vcpu = {.has_tsc = true, .tsc_ratio = 1ULL << 31, .tsc_frac_bits = 32};
	struct vp_vm vm = {.vcpus = {&vcpu, 1, 1}};
	struct vp_clock_pair pair = {5 * SECOND, 125 * SECOND, 0};
	struct vp_clock_map map;

	vp_clock_map_by_tsc(&host, &vm, &pair, 1, 100 * SECOND, 200 * SECOND, &map);
	assert_int_equal(map.host_ns[0], 200 * SECOND);
}

static void test_clock_without_facts(void **state)
{
	struct vp_vcpu vcpu = {0};
	struct vp_vm vm = {.vcpus = {&vcpu, 1, 1}};
	struct vp_clock_pair pair = {5 * SECOND, 125 * SECOND, 0};
	struct vp_host_clock once = {.count = 1};
	struct vp_clock_map map;

	vp_clock_map_by_tsc(&host, &vm, &pair, 1, 0, 1, &map);
	assert_int_equal(map.basis, VP_CLOCK_UNKNOWN);
	vcpu.has_tsc = true;
	vp_clock_map_by_tsc(&host, &vm, &pair, 0, 0, 1, &map);
	assert_int_equal(map.basis, VP_CLOCK_UNKNOWN);
	vp_clock_map_by_tsc(&once, &vm, &pair, 1, 0, 1, &map);
	assert_int_equal(map.basis, VP_CLOCK_UNKNOWN);
	vp_clock_map_by_dump(7 * SECOND, 100 * SECOND, &map);
	assert_int_equal(map.basis, VP_CLOCK_BY_DUMP);
	assert_int_equal(map.instants, 1);
	assert_int_equal(map.guest_ns[0], 7 * SECOND);
	/* Within two seconds after the end: the middle, and half of them. */
	assert_int_equal(map.host_ns[0], 101 * SECOND);
	assert_int_equal(map.error_ns, SECOND);
}

/* Numbers from a hostile file end somewhere, without overflow. */
static void test_absurd_numbers(void **state)
{
	struct vp_vcpu vcpus[] = {
	    {.has_tsc = true, .tsc_offset = INT64_MIN, .tsc_ratio = 1, .tsc_frac_bits = 63},
	    {.has_tsc = true,
	     .tsc_offset = INT64_MAX,
	     .tsc_ratio = UINT64_MAX,
	     .tsc_frac_bits = 1}};
	struct vp_vm vm = {.vcpus = {vcpus, 2, 2}};
	struct vp_host_clock odd = {2, {{0, 0, 1}, {UINT64_MAX, 1, 1}}};
	struct vp_clock_pair pairs[] = {{0, UINT64_MAX, UINT64_MAX}, {UINT64_MAX, 0, 1}};
	struct vp_clock_map map;

	vp_clock_map_by_tsc(&odd, &vm, pairs, 2, 0, UINT64_MAX, &map);
	vp_clock_map_by_tsc(&odd, &vm, pairs, 2, UINT64_MAX, 0, &map);
}

/* Threads have numbers of up to 22 bits: each has its place among the recent ones. */
static void test_survey_of_large_numbers(void **state)
{
	static const unsigned vms[] = {0, 3, 255, 4193};
	vp_stream_readers streams = {0};
	struct vp_survey survey;
	struct made made;

	made_begin(&made, "test_timeline.survey", 1);
	for (uint64_t i = 0; i < 16; i++) {
		made_in(&made, 0, 2 * i, vms[i % 4], 0, MADE_HLT);
		made_out(&made, 0, 2 * i + 1, vms[i % 4], 0, MADE_HLT, true);
	}
	made_end(&made, 40);
	expect_no_error(vp_trace_open("test_timeline.survey/host", VP_STREAMS_ALL, &streams));
	vp_survey_make(&streams, &(struct vp_survey_needs){.ticks = true}, UINT64_MAX, &survey);
	assert_int_equal(survey.threads.count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(survey.threads.at[i].tid, 1000 * (vms[i] + 1) + 1);
		assert_true(survey.threads.at[i].is_vcpu);
	}
	vp_survey_deinit(&survey);
	vp_trace_close(&streams);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_survey_of_large_numbers),
		cmocka_unit_test(test_exit_names),
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_exit_details),
		cmocka_unit_test(test_exits_to_memory),
#if defined(__x86_64__)
		cmocka_unit_test(test_kvm_names),
#endif
		cmocka_unit_test(test_vms_of_one_number),
		cmocka_unit_test(test_merge_of_equal_times),
		cmocka_unit_test(test_homes),
		cmocka_unit_test(test_discover),
		cmocka_unit_test(test_host_clock),
		cmocka_unit_test(test_merge_is_in_order),
		cmocka_unit_test(test_guest_clock_by_counter),
		cmocka_unit_test(test_error_of_guest_clock),
		cmocka_unit_test(test_scaled_counter),
		cmocka_unit_test(test_clock_without_facts),
		cmocka_unit_test(test_absurd_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
