/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several recordings as one account: sums, VMs that are the same, gaps, what does not fit together;
 * and how --store chooses them. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "analyze/account/account_joined.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/macros.h"
#include "cmd/common/store_options.h"
#include "cmd/common/verb.h"
#include "make_recording.h"
#include "schema/records.h"

#define STORE "test_account_joined.store"
#define SECOND 1000000000ULL

/* In place of that of the program. */
struct vp_error *vp_verb_recording(const struct vp_texts *operands, const char *input,
				   const char *otherwise, const char **ret)
{
	*ret = otherwise;
	return NULL;
}

static void put(struct made *made, uint32_t id, uint64_t time, void *record)
{
	struct vp_record_header *header = record;

	header->id = (uint16_t)id;
	header->time = time;
	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_ACCOUNT, VP_NO_PCPU}, record);
}

/* A recording of the seconds `begin` to `end`, each `phase` ns after a whole one. VM 1000 is a
 * quarter of each in the guest, half preempted by VM 2000, and else halted; of each second it has
 * eight exits. */
static void make_at(const char *name, uint64_t begin, uint64_t end, uint64_t phase,
		    enum vp_account_grade grade)
{
	VP_AUTO_FREE char *path = vp_format(STORE "/%s", name);
	struct made made;

	made_begin(&made, path, 2);
	free(made.about.instruments);
	made.about.instruments = vp_strdup("account");
	made.about.account_grade = grade;
	made.about.start = begin * SECOND + phase;
	for (uint64_t second = begin; second < end; second++) {
		uint64_t from = second * SECOND + phase, to = from + SECOND;
		put(&made, VP_ID_vcpu_account, to,
		    &(struct vp_vcpu_account){.vm = 1000,
					      .tid = 1001,
					      .begin = from,
					      .end = to,
					      .guest = SECOND / 4,
					      .preempted = SECOND / 2,
					      .halted = SECOND / 4,
					      .exits = 8});
		put(&made, VP_ID_exit_account, to,
		    &(struct vp_exit_account){.vm = 1000,
					      .vendor = VP_VENDOR_AMD,
					      .reason = MADE_HLT,
					      .count = 8,
					      .total = SECOND / 4,
					      .blocked = SECOND / 4});
		put(&made, VP_ID_thief, to,
		    &(struct vp_thief){.vm = 1000,
				       .state = VP_STATE_PREEMPTED,
				       .kind = VP_BY_VCPU,
				       .thief_pid = 2000,
				       .ns = SECOND / 2,
				       .count = 3});
	}
	vp_trace_flush(made.writer, (struct vp_stream_id){VP_STREAM_ACCOUNT, VP_NO_PCPU}, 0);
	made_end(&made, 0);
	/* made_end() counts in ticks. */
	VP_AUTO_FREE char *file = vp_format("%s/recording", path);
	struct vp_buffer text = {0};
	expect_no_error(vp_file_read(file, 1 << 20, &text));
	vp_buffer_printf(&text, "end %llu\n", (unsigned long long)(end * SECOND + phase));
	expect_no_error(vp_file_publish(file, text.bytes, text.size));
	vp_buffer_deinit(&text);
}

static void make(const char *name, uint64_t begin, uint64_t end, enum vp_account_grade grade)
{
	make_at(name, begin, end, 0, grade);
}

static void make_store(void)
{
	vp_file_remove_all(STORE);
	assert_int_equal(mkdir(STORE, 0700), 0);
	make("20261126T000100Z", 60, 70, VP_ACCOUNT_EXACT);
	make("20261126T000108Z", 68, 80, VP_ACCOUNT_EXACT); /* has 2 s of the first, too */
	make("20261126T000125Z", 85, 90, VP_ACCOUNT_EXACT); /* after a gap of 5 s */
}

static void open_joined(const char *time, struct vp_account_recording *rec,
			vp_recording_parts *parts)
{
	expect_no_error(vp_store_options_parts(STORE, VP_STORE_RECORDINGS, time, parts));
	expect_no_error(vp_account_joined_open(STORE, parts, NULL, rec));
}

static bool has_note(const struct vp_account_recording *rec, const char *part)
{
	vp_vec_each (&rec->notes, note)
		if (strstr(*note, part))
			return true;
	return false;
}

static void test_all(void **state)
{
	struct vp_account_recording rec;
	vp_recording_parts parts;

	make_store();
	open_joined(",", &rec, &parts);
	assert_int_equal(parts.count, 3);
	assert_int_equal(rec.vms.count, 2);
	assert_int_equal(rec.account.times.count, 1);
	const struct vp_account_times *times = &rec.account.times.at[0];
	assert_int_equal(times->wall, 25 * SECOND);
	assert_int_equal(times->states[VP_STATE_GUEST], 25 * SECOND / 4);
	assert_int_equal(times->states[VP_STATE_PREEMPTED], 25 * SECOND / 2);
	assert_int_equal(times->exits, 25 * 8);
	assert_int_equal(rec.account.thefts.count, 1);
	assert_int_equal(rec.account.thefts.at[0].preempted, 25 * SECOND / 2);
	assert_int_equal(rec.account.costs.count, 1);
	assert_int_equal(rec.account.costs.at[0].count, 25 * 8);
	assert_true(fabs(rec.duration - 25) < 1e-6);
	assert_true(rec.checks.closes && rec.exact);
	assert_true(has_note(&rec, "3 recordings; nothing was recorded in 5.00 s between them"));
	vp_account_recording_close(&rec);
	vp_recording_parts_deinit(&parts);
}

/* Of a window, the parts that it has; of recordings that both have a time, one counts. */
static void test_window(void **state)
{
	struct vp_account_recording rec;
	vp_recording_parts parts;

	make_store();
	open_joined("+6,+12", &rec, &parts);
	assert_int_equal(parts.count, 2);
	assert_int_equal(rec.account.times.at[0].wall, 6 * SECOND);
	assert_true(has_note(&rec, "2 recordings, without a gap"));
	vp_account_recording_close(&rec);
	vp_recording_parts_deinit(&parts);
	expect_error(vp_store_options_parts(STORE, VP_STORE_RECORDINGS, "+21,+24", &parts),
		     "no recording of that time: a gap");
	expect_no_error(vp_store_options_parts(STORE, VP_STORE_RECORDINGS, NULL, &parts));
	assert_int_equal(parts.count, 1);
	assert_non_null(strstr(parts.at[0].path, "20261126T000125Z"));
	vp_recording_parts_deinit(&parts);
}

/* Recorders that write at different times: the first recording ends, and the second one begins, at
 * steps close to each other; nothing is divided. */
static void test_seam(void **state)
{
	const uint64_t late = SECOND / 10;
	struct vp_account_recording rec;
	vp_recording_parts parts;

	vp_file_remove_all(STORE);
	assert_int_equal(mkdir(STORE, 0700), 0);
	make("20261126T000100Z", 60, 70, VP_ACCOUNT_EXACT);
	make_at("20261126T000108Z", 68, 80, late, VP_ACCOUNT_EXACT);
	open_joined(",", &rec, &parts);
	assert_int_equal(parts.count, 2);
	const struct vp_account_times *times = &rec.account.times.at[0];
	assert_int_equal(times->wall, 20 * SECOND);
	assert_int_equal(times->exits, 20 * 8);
	assert_int_equal(rec.account.thefts.at[0].preempted, 20 * SECOND / 2);
	assert_int_equal(rec.account.window.state_error, 0);
	assert_false(rec.exact);
	assert_true(has_note(
	    &rec, "cut at steps of the accounting: where two of them meet, at most 100 ms are "
		  "counted twice, or not at all"));
	/* What is between these steps was recorded. */
	assert_true(has_note(&rec, "2 recordings, without a gap"));
	vp_account_recording_close(&rec);
	vp_recording_parts_deinit(&parts);
	/* A window within the first recording's last second has nothing of the second one. */
	open_joined("+8.5,+9.5", &rec, &parts);
	assert_int_equal(rec.account.times.at[0].wall, 2 * SECOND);
	vp_account_recording_close(&rec);
	vp_recording_parts_deinit(&parts);
}

/* Without events, a window is widened to steps of the accounting: its sums are those of records. */
static void test_steps(void **state)
{
	static const struct {
		uint64_t from, to, wall; /* tenths of a second */
	} windows[] = {{624, 641, 30},  {620, 640, 20}, {625, 626, 10}, {601, 602, 10},
		       {600, 700, 100}, {699, 799, 10}, {0, 601, 10},   {631, 640, 10}};
	struct vp_account_recording rec;

	make_store();
	for (size_t i = 0; i < VP_ARRAY_SIZE(windows); i++) {
		const struct vp_window window = {windows[i].from * SECOND / 10,
						 windows[i].to * SECOND / 10};
		expect_no_error(
		    vp_account_recording_open(STORE "/20261126T000100Z", &window, &rec));
		const struct vp_account_times *times = &rec.account.times.at[0];
		assert_int_equal(times->wall, windows[i].wall * SECOND / 10);
		assert_int_equal(times->states[VP_STATE_GUEST], times->wall / 4);
		assert_int_equal(times->exits, 8 * times->wall / SECOND);
		assert_int_equal(rec.account.thefts.at[0].preempted, times->wall / 2);
		assert_int_equal(rec.window.to - rec.window.from, times->wall);
		assert_true(rec.exact && fabs(rec.duration * 1e9 - (double)times->wall) < 1);
		vp_account_recording_close(&rec);
	}
	const struct vp_window after = {71 * SECOND, 72 * SECOND},
			       part = {61 * SECOND, 62 * SECOND + 1};
	expect_error(vp_account_recording_open(STORE "/20261126T000100Z", &after, &rec),
		     "no time of a vCPU in that window");
	expect_no_error(vp_account_recording_open(STORE "/20261126T000100Z", &part, &rec));
	assert_true(has_note(&rec, "widened to whole steps, +1.000000000,+3.000000000,"));
	vp_account_recording_close(&rec);
}

/* Accounts of different grades have no sum; what cannot be read is a note. */
static void test_unlike(void **state)
{
	struct vp_account_recording rec;
	vp_recording_parts parts;

	make_store();
	make("20261126T000130Z", 90, 95, VP_ACCOUNT_SAMPLED);
	expect_no_error(vp_store_options_parts(STORE, VP_STORE_RECORDINGS, ",", &parts));
	expect_error(vp_account_joined_open(STORE, &parts, NULL, &rec), "different grades");
	vp_file_remove_all(STORE "/20261126T000130Z");
	vp_file_remove_all(STORE "/20261126T000108Z");
	vp_recording_parts_deinit(&parts);
	expect_no_error(vp_store_options_parts(STORE, VP_STORE_RECORDINGS, ",", &parts));
	vp_file_remove_all(STORE "/20261126T000100Z/host");
	expect_no_error(vp_account_joined_open(STORE, &parts, NULL, &rec));
	assert_true(has_note(&rec, "20261126T000100Z"));
	assert_int_equal(rec.account.times.at[0].wall, 5 * SECOND);
	vp_account_recording_close(&rec);
	vp_recording_parts_deinit(&parts);
	vp_file_remove_all(STORE "/20261126T000100Z");
	vp_file_remove_all(STORE "/20261126T000125Z");
	expect_error(vp_store_options_parts(STORE, VP_STORE_RECORDINGS, ",", &parts),
		     "has no recording that can be read");
}

/* A command that reads one recording says which ones have the time; one that reads all gets them.
 */
static void test_choose(void **state)
{
	const struct vp_texts none = {0}, some = {.at = (const char *[]){"x"}, .count = 1};
	struct vp_store_options options = {.store = STORE};
	const char *time = "+6,+12", *directory = NULL;

	make_store();
	expect_error(
	    vp_store_options_choose(&options, &none, NULL, "vperf.data", &time, &directory),
	    "that time is in 2 recordings, and this output is of one: name one in place of "
	    "--store, or choose a part of the time: " STORE "/20261126T000100Z (4 s), " STORE
	    "/20261126T000108Z (2 s)");
	vp_store_options_deinit(&options);
	options = (struct vp_store_options){.store = STORE};
	time = "+6,+9";
	expect_no_error(
	    vp_store_options_choose(&options, &none, NULL, "vperf.data", &time, &directory));
	assert_non_null(strstr(directory, "20261126T000100Z"));
	assert_string_equal(time, "66.000000000,69.000000000");
	vp_store_options_deinit(&options);
	options = (struct vp_store_options){.store = STORE, .reads = VP_STORE_EVENTS};
	time = ",";
	expect_error(
	    vp_store_options_choose(&options, &none, NULL, "vperf.data", &time, &directory),
	    "has no events of the host of that time: vperfd keeps them in snapshots");
	vp_store_options_deinit(&options);
	options = (struct vp_store_options){.store = STORE};
	time = NULL;
	expect_no_error(
	    vp_store_options_choose(&options, &none, NULL, "vperf.data", &time, &directory));
	assert_non_null(strstr(directory, "20261126T000125Z"));
	assert_null(time);
	vp_store_options_deinit(&options);
	options = (struct vp_store_options){.store = STORE};
	expect_error(
	    vp_store_options_choose(&options, &some, NULL, "vperf.data", &time, &directory),
	    "--store and the recording 'x' are mutually exclusive");
	options.store = NULL;
	expect_no_error(
	    vp_store_options_choose(&options, &none, NULL, "vperf.data", &time, &directory));
	assert_string_equal(directory, "vperf.data");
}

/* A note names its recording, unless all have it. */
static void test_part_notes(void **state)
{
	static const char *const wanted[] = {"of all", "in 2 of 3 recordings: of two",
					     "'third': of one", "'fourth' is left out"};
	char *first[] = {"of all", "of two"}, *last[] = {"of one", "of all"};
	const vp_sentences two = {first, 2, 2}, third = {last, 2, 2};
	struct vp_part_notes notes = {0};
	vp_sentences ret = {0};

	vp_part_notes_add(&notes, "store/first", &two);
	vp_part_notes_add(&notes, "store/second", &two);
	vp_part_notes_add(&notes, "store/third", &third);
	vp_part_notes_take(&notes, strdup("'fourth' is left out"));
	vp_part_notes_finish(&notes, &ret);
	assert_int_equal(ret.count, VP_ARRAY_SIZE(wanted));
	for (size_t i = 0; i < ret.count; i++) {
		assert_string_equal(ret.at[i], wanted[i]);
		free(ret.at[i]);
	}
	vp_vec_deinit(&ret);
	assert_int_equal(notes.notes.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_part_notes), cmocka_unit_test(test_all),
	    cmocka_unit_test(test_window),     cmocka_unit_test(test_seam),
	    cmocka_unit_test(test_steps),      cmocka_unit_test(test_unlike),
	    cmocka_unit_test(test_choose),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
