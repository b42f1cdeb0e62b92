/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A store: what is in it, by its names and by what can be read; gaps; what goes first. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/macros.h"
#include "make_recording.h"
#include "store/history.h"
#include "store/kept_findings.h"
#include "store/retention.h"

#define STORE "test_history.store"
#define SECOND 1000000000ULL

static void make_store(void)
{
	vp_file_remove_all(STORE);
	assert_int_equal(mkdir(STORE, 0700), 0);
}

/* A recording from tick `begin` on to `end`; 0: interrupted. */
static void make(const char *name, uint64_t begin, uint64_t last, uint64_t end)
{
	VP_AUTO_FREE char *path = vp_format(STORE "/%s", name);
	struct made made;

	made_begin(&made, path, 2);
	made.about.start = MADE_START + begin * MADE_PERIOD;
	made_idle(&made, 0, begin);
	made_idle(&made, 0, last);
	made_end(&made, end);
}

static vp_history read_store(void)
{
	vp_history history;

	expect_no_error(vp_history_read(STORE, &history));
	return history;
}

static const struct vp_kept *find(const vp_history *history, const char *name)
{
	vp_vec_each (history, kept)
		if (!strcmp(kept->name, name))
			return kept;
	fail_msg("there is no '%s'", name);
	return NULL;
}

static void test_kinds(void **state)
{
	make_store();
	make("20261126T055305Z", 0, 90, 100);
	make("20261126T055405Z-2", 110, 190, 0);
	make("20261126T055405Z.flight", 100, 190, 200);
	make("20261126T055405Z.samples", 105, 190, 200);
	make("mine", 0, 10, 20);
	make("2026x126T055305Z", 0, 10, 20);
	assert_int_equal(mkdir(STORE "/20261126T055505Z", 0700), 0);
	assert_int_equal(mkdir(STORE "/20261126T055505Z.a1b2.new", 0700), 0);
	assert_int_equal(mkdir(STORE "/flight", 0700), 0);
	expect_no_error(vp_file_publish(STORE "/20261126T055605Z", "x", 1));
	vp_history history = read_store();
	assert_int_equal(history.count, 9);
	const struct vp_kept *kept = find(&history, "20261126T055305Z");
	assert_int_equal(kept->kind, VP_KEPT_RECORDING);
	assert_null(kept->problem);
	assert_int_equal(kept->end - kept->start, 100 * MADE_PERIOD);
	assert_int_equal(kept->vms.count, 2);
	assert_false(kept->is_interrupted || kept->is_open);
	kept = find(&history, "20261126T055405Z-2");
	assert_int_equal(kept->kind, VP_KEPT_RECORDING);
	assert_true(kept->is_interrupted);
	assert_int_equal(kept->end, MADE_START + 190 * MADE_PERIOD);
	assert_int_equal(find(&history, "20261126T055405Z.flight")->kind, VP_KEPT_SNAPSHOT);
	assert_int_equal(find(&history, "20261126T055405Z.samples")->kind, VP_KEPT_SAMPLES);
	assert_int_equal(find(&history, "mine")->kind, VP_KEPT_FOREIGN);
	assert_int_equal(find(&history, "2026x126T055305Z")->kind, VP_KEPT_FOREIGN);
	assert_int_equal(find(&history, "20261126T055605Z")->kind, VP_KEPT_FOREIGN);
	assert_non_null(find(&history, "20261126T055505Z")->problem);
	kept = find(&history, "20261126T055505Z.a1b2.new");
	assert_int_equal(kept->kind, VP_KEPT_REMAINS);
	assert_true(kept->is_open); /* it was just made */
	vp_history_deinit(&history);
}

/* A recording of a newer vperf is listed with the reason, and keeps its place by its name. */
static void test_newer(void **state)
{
	static const char text[] = "vperf-recording 999\n";

	make_store();
	make("20261126T055305Z", 0, 90, 100);
	expect_no_error(
	    vp_file_publish(STORE "/20261126T055305Z/recording", text, sizeof(text) - 1));
	vp_history history = read_store();
	assert_int_equal(history.count, 1);
	assert_non_null(strstr(history.at[0].problem, "999"));
	assert_int_equal(vp_kept_start(&history.at[0]), 1795672385 * SECOND);
	vp_history_deinit(&history);
}

static void test_open(void **state)
{
	make_store();
	make("20261126T055305Z", 0, 90, 0);
	int fd = open(STORE "/20261126T055305Z", O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	vp_history history = read_store();
	assert_true(history.at[0].is_open);
	assert_false(history.at[0].is_interrupted);
	vp_history_deinit(&history);
	close(fd);
	history = read_store();
	assert_false(history.at[0].is_open);
	vp_history_deinit(&history);
}

static struct vp_kept of_time(uint64_t start, uint64_t end, int64_t offset)
{
	return (struct vp_kept){.kind = VP_KEPT_RECORDING,
				.start = start * SECOND,
				.end = end * SECOND,
				.realtime_offset = offset * (int64_t)SECOND};
}

static void test_gaps(void **state)
{
	const struct vp_kept first = of_time(100, 200, 5000), next = of_time(203, 300, 5000),
			     early = of_time(199, 300, 5000),
			     /* NTP set the clock back by an hour. */
	    stepped = of_time(203, 300, 1400),
			     /* The host was booted 400 s after the first one's end. */
	    booted = of_time(250, 300, 5000 + 200 + 150);

	assert_int_equal(vp_kept_gap(&first, &next), 3 * SECOND);
	assert_int_equal(vp_kept_gap(&first, &early), -(int64_t)SECOND);
	assert_int_equal(vp_kept_gap(&first, &stepped), 3 * SECOND);
	assert_true(vp_kept_is_same_boot(&first, &stepped));
	assert_false(vp_kept_is_same_boot(&first, &booted));
	assert_int_equal(vp_kept_gap(&first, &booted), 400 * SECOND);
}

/* A recording that says which boot it is of, and of which date its clock's zero is. */
static struct vp_kept of_boot(char *boot, uint64_t start, uint64_t end, int64_t offset)
{
	struct vp_kept kept = of_time(start, end, offset);

	kept.boot = boot;
	return kept;
}

/* With the boot's id, the clock may be set by more than the uptime, and the host may sleep. */
static void test_boots(void **state)
{
	const struct vp_kept first = of_boot("a", 100, 200, 5000),
			     stepped = of_boot("a", 203, 300, 5000 + 200000),
			     back = of_boot("a", 203, 300, 1000),
			     slewed = of_boot("a", 203, 300, 5000),
			     booted = of_boot("b", 203, 300, 5001);

	assert_int_equal(vp_kept_gap(&first, &stepped), 3 * SECOND);
	assert_int_equal(vp_kept_jump(&first, &stepped), 200000 * SECOND);
	assert_int_equal(vp_kept_jump(&first, &back), -4000 * (int64_t)SECOND);
	assert_int_equal(vp_kept_jump(&first, &slewed), 0);
	assert_false(vp_kept_is_same_boot(&first, &booted));
	assert_int_equal(vp_kept_gap(&first, &booted), 4 * SECOND);
	assert_int_equal(vp_kept_jump(&first, &booted), 0);
}

/* The age is by the clocks that cannot be set, within the time in which the host slept. */
static void test_ages(void **state)
{
	const struct vp_kept kept = of_boot("a", 100, 200, 1000000);
	struct vp_age_moment now = {.realtime = 1000260 * SECOND,
				    .monotonic = 250 * SECOND,
				    .boottime = 270 * SECOND,
				    .boot = "a"};

	assert_int_equal(vp_kept_age(&kept, &now), 60 * SECOND);
	now.realtime = 3000000 * SECOND;
	assert_int_equal(vp_kept_age(&kept, &now), 70 * SECOND);
	now.realtime = 0;
	assert_int_equal(vp_kept_age(&kept, &now), 50 * SECOND);
	now.boot = "b";
	assert_int_equal(vp_kept_age(&kept, &now), 0);
	now.realtime = 3000000 * SECOND;
	assert_int_equal(vp_kept_age(&kept, &now), 1999800 * SECOND);
}

static void make_of(const char *name, const char *boot, uint64_t begin, int64_t day)
{
	VP_AUTO_FREE char *metadata = vp_format(STORE "/%s/host/metadata", name);
	VP_AUTO_FREE char *recording = vp_format(STORE "/%s/recording", name);

	make(name, begin, begin + 10, begin + 20);
	FILE *file = fopen(metadata, "w");
	assert_non_null(file);
	fprintf(file, "\toffset_s = %lld;\n\toffset = 0;\n", (long long)day * 86400);
	assert_int_equal(fclose(file), 0);
	file = fopen(recording, "a");
	assert_non_null(file);
	fprintf(file, "boot %s\n", boot);
	assert_int_equal(fclose(file), 0);
}

/* Oldest first, also when the clock was set back: by the last date of the boot. */
static void test_order(void **state)
{
	static const char *const expected[] = {"20261110T000000Z", "20261124T000000Z",
					       "20261124T010000Z", "20261118T000000Z"};

	make_store();
	make_of("20261124T000000Z", "a", 1000, 24);
	make_of("20261124T010000Z", "a", 2000, 24);
	make_of("20261118T000000Z", "a", 3000, 18);
	make_of("20261110T000000Z", "b", 1000, 10);
	vp_history history = read_store();
	assert_int_equal(history.count, VP_ARRAY_SIZE(expected));
	for (size_t i = 0; i < history.count; i++)
		assert_string_equal(history.at[i].name, expected[i]);
	vp_history_deinit(&history);
}

static void test_names(void **state)
{
	char name[VP_KEPT_NAME_SIZE];
	const uint64_t time = 1795672385 * SECOND + 1;

	make_store();
	assert_string_equal(vp_history_name(STORE, time, "", name), "20261126T055305Z");
	assert_string_equal(vp_history_name(STORE, time, ".flight", name),
			    "20261126T055305Z.flight");
	make("20261126T055305Z", 0, 1, 2);
	assert_string_equal(vp_history_name(STORE, time, "", name), "20261126T055305Z-2");
}

static struct vp_kept of_size(enum vp_kept_kind kind, uint64_t end, uint64_t bytes, bool open)
{
	struct vp_kept kept = of_time(end - 1, end, 0);

	kept.kind = kind;
	kept.bytes = bytes;
	kept.is_open = open;
	return kept;
}

static uint32_t next_at(const vp_history *history, uint64_t realtime, uint64_t more, uint64_t disk,
			const struct vp_retention *limits, enum vp_removal *why)
{
	const struct vp_age_moment now = {.realtime = realtime, .boot = "other"};

	return vp_retention_next(history, limits, &now, more, disk, why);
}

static void test_retention(void **state)
{
	struct vp_kept all[] = {of_size(VP_KEPT_FOREIGN, 10, 1000000, false),
				of_size(VP_KEPT_RECORDING, 100, 1000, true),
				of_size(VP_KEPT_RECORDING, 200, 1000, false),
				of_size(VP_KEPT_SNAPSHOT, 300, 1000, false),
				of_size(VP_KEPT_RECORDING, 400, 1000, true)};
	vp_history history = {.at = all, .count = 5};
	struct vp_retention limits = {0};
	enum vp_removal why;

	assert_int_equal(vp_history_bytes(&history), 4000);
	assert_int_equal(next_at(&history, 99999 * SECOND, 0, 0, &limits, &why), VP_NONE);
	/* The open ones count and stay; the limit holds with what is still to come. */
	limits.keep_bytes = 4000;
	assert_int_equal(next_at(&history, 0, 0, 0, &limits, &why), VP_NONE);
	assert_int_equal(next_at(&history, 0, 1, 0, &limits, &why), 2);
	assert_int_equal(why, VP_REMOVE_SIZE);
	limits = (struct vp_retention){.free_bytes = 500};
	assert_int_equal(next_at(&history, 0, 10, 510, &limits, &why), VP_NONE);
	assert_int_equal(next_at(&history, 0, 10, 509, &limits, &why), 2);
	assert_int_equal(why, VP_REMOVE_DISK);
	limits = (struct vp_retention){.keep_ns = 50 * SECOND};
	assert_int_equal(next_at(&history, 250 * SECOND, 0, 0, &limits, &why), VP_NONE);
	assert_int_equal(next_at(&history, 251 * SECOND, 0, 0, &limits, &why), 2);
	assert_int_equal(why, VP_REMOVE_OLD);
	/* Remains go without a limit, unless somebody is at it. */
	limits = (struct vp_retention){0};
	all[3].kind = VP_KEPT_REMAINS;
	assert_int_equal(next_at(&history, 0, 0, 0, &limits, &why), 3);
	all[3].is_open = true;
	assert_int_equal(next_at(&history, 0, 0, 0, &limits, &why), VP_NONE);
}

/* A snapshot of a flight recorder begins with the oldest event of the ring, before recordings that
 * ended long before the snapshot was taken: those go first. */
static void test_retention_by_end(void **state)
{
	static const char *const expected[] = {"20261126T055405Z", "20261126T055505Z",
					       "20261126T055500Z.flight"};
	const struct vp_retention limits = {.keep_bytes = 1};
	enum vp_removal why;

	make_store();
	make("20261126T055500Z.flight", 0, 100, 260);
	make("20261126T055405Z", 10, 110, 200);
	make("20261126T055505Z", 20, 190, 250);
	vp_history history = read_store();
	assert_string_equal(history.at[0].name, "20261126T055500Z.flight");
	for (size_t i = 0; i < VP_ARRAY_SIZE(expected); i++) {
		uint32_t next = next_at(&history, 0, 0, 0, &limits, &why);
		assert_int_not_equal(next, VP_NONE);
		assert_string_equal(history.at[next].name, expected[i]);
		expect_no_error(vp_history_remove(&history, next));
	}
	vp_history_deinit(&history);
}

/* Names of a recording are written at once: as much must be free. */
static void test_burst(void **state)
{
	static const char zeros[100000];

	make_store();
	make("20261126T055305Z", 0, 90, 100);
	make("20261126T055405Z", 110, 190, 200);
	FILE *file = fopen(STORE "/20261126T055305Z/host.maps", "w");
	assert_non_null(file);
	assert_int_equal(fwrite(zeros, 1, sizeof(zeros), file), sizeof(zeros));
	assert_int_equal(fclose(file), 0);
	vp_history history = read_store();
	assert_in_range(vp_history_burst(&history), sizeof(zeros), 2 * sizeof(zeros));
	assert_true(history.at[1].names_bytes < sizeof(zeros));
	vp_history_deinit(&history);
}

static void test_remove(void **state)
{
	make_store();
	make("20261126T055305Z", 0, 90, 100);
	make("20261126T055405Z", 110, 190, 200);
	vp_history history = read_store();
	expect_no_error(vp_history_remove(&history, 0));
	assert_int_equal(history.count, 1);
	assert_string_equal(history.at[0].name, "20261126T055405Z");
	vp_history_deinit(&history);
	history = read_store();
	assert_int_equal(history.count, 1);
	vp_history_deinit(&history);
	assert_int_equal(access(STORE "/20261126T055305Z", F_OK), -1);
	assert_int_equal(access(STORE "/20261126T055305Z.removed", F_OK), -1);
}

/* One whose removal was cut off goes at the next look. */
static void test_removal_cut_off(void **state)
{
	const struct vp_retention limits = {0};
	enum vp_removal why;

	make_store();
	make("20261126T055305Z", 0, 90, 100);
	assert_int_equal(rename(STORE "/20261126T055305Z", STORE "/20261126T055305Z.removed"), 0);
	assert_int_equal(utime(STORE "/20261126T055305Z.removed", &(struct utimbuf){1, 1}), 0);
	vp_history history = read_store();
	assert_int_equal(history.at[0].kind, VP_KEPT_REMAINS);
	assert_int_equal(next_at(&history, 0, 0, 0, &limits, &why), 0);
	expect_no_error(vp_history_remove(&history, 0));
	vp_history_deinit(&history);
	assert_int_equal(access(STORE "/20261126T055305Z.removed", F_OK), -1);
}

static void append(uint64_t time, const char *vm, const char *sentence)
{
	const char *texts[VP_KEPT_TEXTS] = {
	    [VP_KEPT_RULE] = "vm-steal", [VP_KEPT_VM] = vm, [VP_KEPT_SENTENCE] = sentence};
	struct vp_buffer line = {0};

	vp_kept_finding_put(time, 1234, texts, &line);
	expect_no_error(vp_kept_finding_append(STORE, &line));
	vp_buffer_deinit(&line);
}

/* Names are tenants': they end neither a field nor a line. A line that was cut off costs itself. */
static void test_findings(void **state)
{
	vp_kept_findings findings;
	uint64_t bad;

	make_store();
	expect_no_error(vp_kept_findings_read(STORE, &findings, &bad));
	assert_int_equal(findings.count + bad, 0);
	append(10, "a\tb\nc", "first");
	FILE *file = fopen(STORE "/findings", "a");
	fputs("20\t3", file);
	fclose(file);
	append(30, "db", "third");
	expect_no_error(vp_kept_findings_read(STORE, &findings, &bad));
	assert_int_equal(findings.count, 2);
	assert_int_equal(bad, 1);
	assert_string_equal(findings.at[0].texts[VP_KEPT_VM], "a?b?c");
	assert_string_equal(findings.at[1].texts[VP_KEPT_SENTENCE], "third");
	assert_int_equal(findings.at[1].time, 30);
	assert_int_equal(findings.at[1].permyriad, 1234);
	assert_string_equal(findings.at[1].texts[VP_KEPT_TRACE], "");
	vp_kept_findings_deinit(&findings);
	expect_no_error(vp_kept_findings_trim(STORE, 20));
	expect_no_error(vp_kept_findings_read(STORE, &findings, &bad));
	assert_int_equal(findings.count, 1);
	assert_int_equal(bad, 0);
	assert_int_equal(findings.at[0].time, 30);
	vp_kept_findings_deinit(&findings);
}

/* The file is bounded: the oldest go. */
static void test_many_findings(void **state)
{
	char long_text[1000];
	vp_kept_findings findings;
	uint64_t bad;
	struct stat status;

	make_store();
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = 0;
	for (uint64_t i = 1; i <= 1200; i++)
		append(i, "db", long_text);
	expect_no_error(vp_kept_findings_trim(STORE, 0));
	assert_int_equal(stat(STORE "/findings", &status), 0);
	assert_in_range(status.st_size, 500000, 1 << 19);
	expect_no_error(vp_kept_findings_read(STORE, &findings, &bad));
	assert_int_equal(bad, 0);
	assert_int_equal(findings.at[findings.count - 1].time, 1200);
	vp_kept_findings_deinit(&findings);
}

static void test_no_store(void **state)
{
	vp_history history;

	expect_error(vp_history_read("/nonexistent", &history), "cannot open store '/nonexistent'");
}

/* A clock that is set makes nothing old; time that passes does, also while the host sleeps. */
static void test_clock_set(void **state)
{
	const uint64_t start = 1000000 * SECOND;
	struct vp_age_clock clock = {0};

	assert_int_equal(vp_age_clock_now(&clock, start, 5 * SECOND), start);
	assert_int_equal(vp_age_clock_now(&clock, start + 10 * SECOND, 15 * SECOND),
			 start + 10 * SECOND);
	/* Set to a week later, then back, then to before the start. */
	assert_int_equal(vp_age_clock_now(&clock, start + 604800 * SECOND, 20 * SECOND),
			 start + 15 * SECOND);
	assert_int_equal(vp_age_clock_now(&clock, start + 25 * SECOND, 30 * SECOND),
			 start + 25 * SECOND);
	assert_int_equal(vp_age_clock_now(&clock, start - 3600 * SECOND, 40 * SECOND),
			 start - 3600 * SECOND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_newer),
	    cmocka_unit_test(test_open),
	    cmocka_unit_test(test_gaps),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_retention),
	    cmocka_unit_test(test_retention_by_end),
	    cmocka_unit_test(test_remove),
	    cmocka_unit_test(test_removal_cut_off),
	    cmocka_unit_test(test_findings),
	    cmocka_unit_test(test_many_findings),
	    cmocka_unit_test(test_no_store),
	    cmocka_unit_test(test_clock_set),
	    cmocka_unit_test(test_boots),
	    cmocka_unit_test(test_ages),
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
