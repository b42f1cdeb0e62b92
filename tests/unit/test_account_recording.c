/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account of a recording on disk: what is checked of it and noted about it. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "analyze/account/account_recording.h"
#include "base/alloc.h"
#include "make_recording.h"
#include "schema/records.h"

#define NAME "test_account_recording.rec"

static const struct vp_stream_id account_stream = {VP_STREAM_ACCOUNT, VP_NO_PCPU};

static void put(struct made *made, struct vp_stream_id stream, uint32_t id, uint64_t time,
		void *record)
{
	struct vp_record_header *header = record;

	header->id = (uint16_t)id;
	header->time = MADE_START + time;
	vp_trace_append(made->writer, stream, record);
}

#define PUT(made, name, at, ...)                                                                   \
	put(made, account_stream, VP_ID_##name, at, &(struct vp_##name){__VA_ARGS__})

/* A second of vm1's vCPU 1: 600 ms in the guest, 100 ms of interrupts, 300 ms halted. */
static void put_second(struct made *made)
{
	PUT(made, vcpu_account, 1000000000, .vm = 2000, .vcpu = 1, .tid = 2002, .begin = MADE_START,
	    .end = MADE_START + 1000000000, .guest = 600000000, .irq = 100000000,
	    .halted = 300000000, .exits = 5);
	PUT(made, exit_account, 1000000000, .vm = 2000, .vcpu = 1, .vendor = VP_VENDOR_AMD,
	    .reason = MADE_HLT, .count = 5, .total = 300000000, .blocked = 300000000);
}

static void put_tick(struct made *made, uint32_t pcpu, uint64_t tick, uint32_t id, uint16_t flags)
{
	union vp_any_record record = {.header = {.id = (uint16_t)id}};

	if (id == VP_ID_guest_sample)
		record.guest_sample =
		    (struct vp_guest_sample){.flags = flags, .vm = 2000, .tid = 2002, .vcpu = 1};
	else if (id == VP_ID_vcpu_sample)
		record.vcpu_sample =
		    (struct vp_vcpu_sample){.flags = flags, .vm = 2000, .tid = 2002, .vcpu = 1};
	else if (id == VP_ID_host_sample)
		record.host_sample = (struct vp_host_sample){.flags = flags};
	else
		record.vcpu_out =
		    (struct vp_vcpu_out){.flags = flags, .vm = 2000, .tid = 2002, .vcpu = 1};
	made->pcpus = 2;
	put(made, vp_stream_of_pcpu(pcpu), id, tick * MADE_PERIOD, &record);
}

/* 600 ticks of the guest on pCPU 0, 400 of its thread and 1000 of nobody on pCPU 1: all of a second
 * of two pCPUs, but for `missing` of them. */
static void put_ticks(struct made *made, uint64_t missing)
{
	for (uint64_t tick = 0; tick < 1000; tick++) {
		bool in_guest = tick % 10 < 6;
		put_tick(made, 0, tick, in_guest ? VP_ID_guest_sample : VP_ID_vcpu_sample, 0);
		if (tick >= missing)
			put_tick(made, 1, tick, VP_ID_host_sample, 0);
	}
}

static void begin(struct made *made)
{
	made_begin(made, NAME, 2);
	free(made->about.instruments);
	made->about.instruments = vp_strdup("profile account");
}

static void end(struct made *made, uint64_t at)
{
	vp_trace_flush(made->writer, account_stream, made->lost);
	made_end(made, at);
}

static size_t notes_like(const vp_sentences *notes, const char *part)
{
	size_t count = 0;

	vp_vec_each (notes, note)
		count += strstr(*note, part) != NULL;
	return count;
}

/* Bounds of the samples' deviation, in points: chance, and the ticks that are no good. */
static double error_with(double missing)
{
	return 100 * (3 * sqrt(0.6 * 0.4 / 1000) + 3.0 / 1000 + missing);
}

static void test_account(void **state)
{
	struct vp_account_recording rec;
	struct made made;

	begin(&made);
	put_ticks(&made, 0);
	put_second(&made);
	end(&made, 1000);
	expect_no_error(vp_account_recording_open(NAME, NULL, &rec));
	assert_string_equal(rec.path, NAME);
	assert_string_equal(rec.recording.hostname, "made");
	assert_float_equal(rec.duration, 1, 1e-12);
	assert_int_equal(rec.account.overcommit.pcpus, 2);
	assert_int_equal(rec.account.times.count, 1);
	assert_int_equal(rec.account.times.at[0].vm, 1);
	assert_int_equal(rec.account.times.at[0].vcpu, 1);
	assert_int_equal(rec.account.times.at[0].guest_samples, 600);
	assert_int_equal(rec.account.costs.count, 1);
	assert_true(rec.checks.sampled && rec.checks.samples_agree && rec.checks.closes);
	assert_true(rec.checks.exits_agree && rec.checks.parts_sum && rec.checks.all_counted);
	assert_int_equal(rec.checks.exits, 5);
	assert_float_equal(rec.checks.worst_sample, 0, 1e-9);
	assert_float_equal(rec.checks.sample_error, error_with(0), 1e-9);
	assert_int_equal(rec.losses.records[VP_STREAM_PCPU], 2000);
	assert_int_equal(rec.losses.records[VP_STREAM_ACCOUNT], 2);
	assert_int_equal(rec.losses.period_ns, MADE_PERIOD);
	assert_int_equal(rec.notes.count, 0);
	assert_int_equal(rec.storms.count, 0);
	assert_int_equal(rec.cgroups.count, 0);
	vp_account_recording_close(&rec);
}

/* Ticks that came late or never make the bound wider, those of all kinds. */
static void test_ticks(void **state)
{
	static const uint32_t late[] = {VP_ID_host_sample, VP_ID_vcpu_sample, VP_ID_guest_sample};
	struct vp_account_recording rec;
	struct made made;

	begin(&made);
	put_ticks(&made, 100);
	put_second(&made);
	end(&made, 1000);
	expect_no_error(vp_account_recording_open(NAME, NULL, &rec));
	assert_float_equal(rec.checks.sample_error, error_with(0.05), 1e-9);
	vp_account_recording_close(&rec);
	/* 40 ticks of a kind are late: they are there, but sure are only 1900 of 2000. */
	for (size_t kind = 0; kind < VP_ARRAY_SIZE(late); kind++) {
		begin(&made);
		put_ticks(&made, 60);
		for (uint64_t tick = 0; tick < 40; tick++)
			put_tick(&made, 1, 1000, late[kind], VP_LATE);
		put_second(&made);
		end(&made, 1000);
		expect_no_error(vp_account_recording_open(NAME, NULL, &rec));
		assert_float_equal(rec.checks.sample_error, error_with(60.0 / 2000), 1e-9);
		vp_account_recording_close(&rec);
	}
	/* Other flags are no lateness, other records no ticks. */
	begin(&made);
	put_ticks(&made, 40);
	for (uint64_t tick = 0; tick < 20; tick++) {
		put_tick(&made, 1, 1000, VP_ID_host_sample, (uint16_t)~VP_LATE);
		put_tick(&made, 1, 1000, VP_ID_vcpu_out, 0);
	}
	put_second(&made);
	end(&made, 1000);
	expect_no_error(vp_account_recording_open(NAME, NULL, &rec));
	assert_float_equal(rec.checks.sample_error, error_with(20.0 / 2000), 1e-9);
	vp_account_recording_close(&rec);
	/* More than were due: nothing is missing. */
	begin(&made);
	put_ticks(&made, 0);
	put_second(&made);
	end(&made, 990);
	expect_no_error(vp_account_recording_open(NAME, NULL, &rec));
	assert_float_equal(rec.checks.sample_error, error_with(0), 1e-9);
	assert_float_equal(rec.duration, 0.99, 1e-12);
	vp_account_recording_close(&rec);
}

/* Samples by another clock, of an interrupted recording, or none: nothing to compare with. */
static void test_not_comparable(void **state)
{
	struct vp_account_recording rec;
	struct made made;

	for (int kind = 0; kind < 3; kind++) {
		begin(&made);
		if (kind != 2)
			put_ticks(&made, 0);
		put_second(&made);
		made.about.by_time = kind != 0;
		end(&made, kind == 1 ? 0 : 1000);
		expect_no_error(vp_account_recording_open(NAME, NULL, &rec));
		assert_false(rec.checks.sampled);
		assert_true(rec.checks.closes);
		assert_int_equal(rec.checks.exits, 5);
		assert_float_equal(rec.duration, 1, 1e-12);
		assert_int_equal(notes_like(&rec.notes, "interrupted"), kind == 1);
		vp_account_recording_close(&rec);
	}
}

/* What the tables had no room for, each with its number. */
static void test_losses(void **state)
{
	struct vp_account_recording rec;
	struct made made;

	begin(&made);
	put_second(&made);
	PUT(&made, account_loss, 1000000001, .vcpus = 3, .thieves = 44, .sites = 555);
	made.lost = 7;
	end(&made, 1000);
	expect_no_error(vp_account_recording_open(NAME, NULL, &rec));
	assert_int_equal(notes_like(&rec.notes, "3 vCPU events were not accounted for"), 1);
	assert_int_equal(notes_like(&rec.notes, "44 waits have thieves"), 1);
	assert_int_equal(
	    notes_like(&rec.notes, "555 exits are missing in 'vperf exits --by function'"), 1);
	assert_int_equal(notes_like(&rec.notes, "7 records were lost while recording"), 1);
	assert_int_equal(rec.notes.count, 4);
	assert_int_equal(rec.losses.lost[VP_STREAM_ACCOUNT], 7);
	assert_int_equal(rec.losses.lost[VP_STREAM_PCPU], 0);
	assert_int_equal(rec.checks.lost_events, 3);
	assert_false(rec.checks.all_counted);
	vp_account_recording_close(&rec);
	/* One kind at a time. */
	for (int kind = 0; kind < 3; kind++) {
		begin(&made);
		put_second(&made);
		PUT(&made, account_loss, 1000000001, .vcpus = kind == 0, .thieves = kind == 1,
		    .sites = kind == 2);
		end(&made, 1000);
		expect_no_error(vp_account_recording_open(NAME, NULL, &rec));
		assert_int_equal(rec.notes.count, 1);
		assert_int_equal(notes_like(&rec.notes, "1 vCPU events were not accounted"),
				 kind == 0);
		assert_int_equal(notes_like(&rec.notes, "1 waits have thieves"), kind == 1);
		assert_int_equal(notes_like(&rec.notes, "1 exits are missing"), kind == 2);
		vp_account_recording_close(&rec);
	}
}

/* Names of thieves and of their groups may be anything. */
static void test_names(void **state)
{
	static const char cgroups[] = "7 /a\033b\n9 /plain\n";
	struct vp_account_recording rec;
	struct made made;

	begin(&made);
	put_second(&made);
	PUT(&made, thief, 1000000001, .vm = 2000, .vcpu = 1, .state = VP_STATE_PREEMPTED,
	    .kind = VP_BY_TASK, .number = 5, .thief_pid = 5, .cgroup = 7, .ns = 10, .count = 1,
	    .comm = "x\033y");
	PUT(&made, thief, 1000000001, .vm = 2000, .vcpu = 1, .state = VP_STATE_PREEMPTED,
	    .kind = VP_BY_TASK, .number = 6, .thief_pid = 6, .cgroup = 9, .ns = 20, .count = 1,
	    .comm = "sixteen letters!");
	/* A VM that the list has not. */
	PUT(&made, vcpu_account, 1000000001, .vm = 3000, .tid = 3001, .begin = MADE_START,
	    .end = MADE_START + 10, .guest = 10);
	end(&made, 1000);
	temporary_file(NAME "/cgroups", cgroups, sizeof(cgroups) - 1);
	expect_no_error(vp_account_recording_open(NAME, NULL, &rec));
	assert_int_equal(rec.account.thefts.count, 2);
	assert_string_equal(rec.account.thefts.at[0].comm, "x?y");
	assert_int_equal(rec.account.thefts.at[0].preempted, 10);
	assert_string_equal(rec.account.thefts.at[1].comm, "sixteen letters!");
	assert_int_equal(rec.cgroups.count, 2);
	assert_string_equal(vp_cgroups_path(&rec.cgroups, 7), "/a?b");
	assert_string_equal(vp_cgroups_path(&rec.cgroups, 9), "/plain");
	assert_int_equal(rec.vms.count, 3);
	assert_string_equal(rec.vms.at[2].name, "pid-3000");
	assert_int_equal(rec.account.times.at[1].vm, 2);
	vp_account_recording_close(&rec);
	temporary_file(NAME "/cgroups", "nonsense\n", 9);
	expect_error(vp_account_recording_open(NAME, NULL, &rec), "expected ID PATH");
	unlink(NAME "/cgroups");
}

/* Without a vCPU's time there is no account, for a reason that the recording knows. */
static void test_no_account(void **state)
{
	struct vp_account_recording rec;
	struct made made;

	for (int kind = 0; kind < 3; kind++) {
		begin(&made);
		put_ticks(&made, 0);
		if (kind == 0) {
			free(made.about.instruments);
			made.about.instruments = vp_strdup("profile");
		}
		if (kind == 1)
			made.about.imported = vp_strdup("perf");
		/* A vCPU without any time is not one. */
		PUT(&made, vcpu_account, 5, .vm = 1000, .tid = 1001, .begin = 5, .end = 5,
		    .exits = 3);
		end(&made, 1000);
		expect_error(vp_account_recording_open(NAME, NULL, &rec),
			     kind == 0 ? "the recording '" NAME "' has no vCPU accounting: it was "
					 "recorded with --no-account"
			     : kind == 1 ? "the recording '" NAME
					   "' has no vCPU accounting: it was "
					   "imported"
					 : "the recording '" NAME "' has no vCPU accounting: no VM "
					   "ran");
	}
	expect_error(vp_account_recording_open("nowhere", NULL, &rec),
		     "there is no recording 'nowhere'");
	begin(&made);
	put_second(&made);
	end(&made, 1000);
	assert_int_equal(system("rm -r " NAME "/host"), 0);
	expect_error(vp_account_recording_open(NAME, NULL, &rec),
		     "cannot open trace directory '" NAME "/host'");
}

static void put_storm(struct made *made, uint64_t count)
{
	PUT(made, thief, 1000000001, .vm = 2000, .vcpu = 1, .state = VP_STATE_IRQ,
	    .kind = VP_BY_VECTOR, .number = 236, .ns = 100000000, .count = count,
	    .comm = "local_timer");
}

static void expect_storms(size_t count, bool with_samples)
{
	vp_sentences sentences = {0};

	/* Behind what is there already. */
	vp_vec_push(&sentences, vp_strdup("first"));
	vp_account_recording_note_storms(NAME, &sentences);
	assert_int_equal(sentences.count, 1 + count);
	assert_string_equal(sentences.at[0], "first");
	if (count) {
		assert_non_null(
		    strstr(sentences.at[1],
			   "VM 'vm1': interrupt storm on vCPU 1: 30000 per second (local_timer)"));
		assert_int_equal(strstr(sentences.at[1], "samples put 60.0%") != NULL,
				 with_samples);
	}
	vp_vec_each (&sentences, sentence)
		free(*sentence);
	vp_vec_deinit(&sentences);
}

/* A vCPU had a pCPU for 700 ms: 21,000 interrupts are 30,000 a second. */
static void test_storms(void **state)
{
	struct vp_account_recording rec;
	struct made made;

	begin(&made);
	put_ticks(&made, 0);
	put_second(&made);
	put_storm(&made, 21000);
	end(&made, 1000);
	expect_no_error(vp_account_recording_open(NAME, NULL, &rec));
	assert_int_equal(rec.storms.count, 1);
	assert_int_equal(rec.notes.count, 1);
	assert_string_equal(rec.storms.at[0], rec.notes.at[0]);
	assert_true(rec.storms.at[0] != rec.notes.at[0]);
	vp_account_recording_close(&rec);
	expect_storms(1, true);
	/* Samples by another clock cannot be compared. */
	begin(&made);
	put_ticks(&made, 0);
	put_second(&made);
	put_storm(&made, 21000);
	made.about.by_time = false;
	end(&made, 1000);
	expect_storms(1, false);
	/* There is a storm, but the rest cannot be read. */
	temporary_file(NAME "/cgroups", "nonsense\n", 9);
	vp_sentences sentences = {0};
	vp_account_recording_note_storms(NAME, &sentences);
	assert_int_equal(sentences.count, 1);
	assert_int_equal(notes_like(&sentences, "interrupt storms are not reported: '"), 1);
	assert_int_equal(notes_like(&sentences, "expected ID PATH"), 1);
	free(sentences.at[0]);
	vp_vec_deinit(&sentences);
	/* Fewer are no storm; without an account, or a recording, there is nothing to tell. */
	begin(&made);
	put_second(&made);
	put_storm(&made, 13000);
	end(&made, 1000);
	expect_storms(0, false);
	/* Then the rest is not even read. */
	temporary_file(NAME "/cgroups", "nonsense\n", 9);
	expect_storms(0, false);
	begin(&made);
	put_storm(&made, 21000);
	end(&made, 1000);
	expect_storms(0, false);
	assert_int_equal(system("rm -r " NAME), 0);
	expect_storms(0, false);
}

/* From the disk: a window's duration, samples, errors and note; a window without time of a vCPU. */
static void test_window(void **state)
{
	const struct vp_window half = {MADE_START, MADE_START + 500000000}, all = {0, UINT64_MAX},
			       none = {MADE_START, MADE_START};
	struct vp_account_recording rec;
	struct made made;

	begin(&made);
	put_ticks(&made, 0);
	put_second(&made);
	end(&made, 1000);
	expect_no_error(vp_account_recording_open(NAME, &half, &rec));
	/* The accounting has one step, of a second: the window is widened to it. */
	assert_float_equal(rec.duration, 1, 1e-12);
	assert_true(rec.exact);
	assert_int_equal(rec.account.times.at[0].wall, 1000000000);
	assert_int_equal(rec.account.times.at[0].states[VP_STATE_GUEST], 600000000);
	assert_int_equal(rec.account.window.state_error, 0);
	assert_int_equal(notes_like(&rec.notes, "widened to whole steps"), 1);
	assert_int_equal(rec.account.times.at[0].guest_samples, 600);
	vp_account_recording_close(&rec);

	expect_no_error(vp_account_recording_open(NAME, &all, &rec));
	assert_true(rec.exact);
	assert_float_equal(rec.duration, 1, 1e-12);
	assert_int_equal(rec.account.times.at[0].guest_samples, 600);
	assert_int_equal(notes_like(&rec.notes, "off by at most"), 0);
	vp_account_recording_close(&rec);
	expect_error(vp_account_recording_open(NAME, &none, &rec),
		     "no time of a vCPU in that window");
}

static void expect_open_window(struct vp_window window, double duration, size_t widened)
{
	struct vp_account_recording rec;

	expect_no_error(vp_account_recording_open(NAME, &window, &rec));
	assert_int_equal(notes_like(&rec.notes, "widened to whole steps"), widened);
	assert_float_equal(rec.duration, duration, 1e-12);
	assert_true(rec.exact);
	vp_account_recording_close(&rec);
}

/* An interrupted recording ends with its last step: an open end is not widened. */
static void test_open_windows(void **state)
{
	struct made made;

	begin(&made);
	put_second(&made);
	end(&made, 0);
	expect_open_window((struct vp_window){MADE_START, UINT64_MAX}, 1, 0);
	expect_open_window((struct vp_window){0, MADE_START + 1000000000}, 1, 0);
	expect_open_window((struct vp_window){MADE_START + 1, UINT64_MAX}, 1, 1);
	expect_open_window((struct vp_window){0, MADE_START + 999999999}, 1, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_account),        cmocka_unit_test(test_window),
	    cmocka_unit_test(test_open_windows),   cmocka_unit_test(test_ticks),
	    cmocka_unit_test(test_not_comparable), cmocka_unit_test(test_losses),
	    cmocka_unit_test(test_names),          cmocka_unit_test(test_no_account),
	    cmocka_unit_test(test_storms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
