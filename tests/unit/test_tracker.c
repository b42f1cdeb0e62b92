/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's bookkeeping of processes and their mappings. */
#include "unit.h"

#include "guest/tracker.h"

static void add(struct vp_tracker *tracker, uint64_t time, enum vp_tracker_kind kind, uint32_t tgid,
		uint32_t parent, uint64_t root, const char *comm)
{
	struct vp_tracker_event event = {
	    .time_ns = time, .kind = kind, .tgid = tgid, .root = root, .parent = parent};

	strncpy(event.comm, comm, sizeof(event.comm) - 1);
	vp_tracker_add(tracker, &event);
}

static void add_map(struct vp_tracker *tracker, uint64_t time, enum vp_tracker_kind kind,
		    uint32_t tgid, uint64_t start, const char *path)
{
	struct vp_tracker_event event = {.time_ns = time,
					 .kind = kind,
					 .tgid = tgid,
					 .start = start,
					 .end = start + 0x1000,
					 .image = vp_tracker_image(tracker, NULL, path)};

	vp_tracker_add(tracker, &event);
}

static size_t count_mappings(const struct vp_tracker *tracker, uint32_t space)
{
	size_t count = 0;

	for (uint32_t i = tracker->spaces.at[space].first_mapping; i != VP_TRACKER_NONE;
	     i = tracker->mappings.at[i].next)
		count++;
	return count;
}

/* Events arrive per CPU and per source, not in order of time. */
static void test_life_of_a_process(void **state)
{
	struct vp_tracker tracker;

	vp_tracker_init(&tracker);
	add(&tracker, 50, VP_TRACKER_EXIT, 11, 0, 0, "");
	add(&tracker, 10, VP_TRACKER_EXISTING, 10, 0, 0x1000, "shell");
	add(&tracker, 20, VP_TRACKER_FORK, 11, 10, 0x2000, "shell");
	add(&tracker, 33, VP_TRACKER_EXEC_DONE, 11, 0, 0x3000, "child");
	add_map(&tracker, 11, VP_TRACKER_MAP_SEEN, 10, 0x400000, "/bin/sh");
	add_map(&tracker, 31, VP_TRACKER_MAP, 11, 0x400000, "/bin/true");
	add(&tracker, 30, VP_TRACKER_EXEC_BEGIN, 11, 0, 0, "child");
	add(&tracker, 40, VP_TRACKER_COMM, 11, 0, 0, "renamed");
	vp_tracker_apply(&tracker, 45);
	assert_int_equal(vp_tracker_space_of(&tracker, 11), 2);
	vp_tracker_apply(&tracker, 60);
	assert_int_equal(tracker.pending.count, 0);

	assert_int_equal(tracker.spaces.count, 3);
	const struct vp_tracker_space *space = tracker.spaces.at;
	assert_true(space[0].start_ns == 0 && space[0].end_ns == 0 && space[0].root == 0x1000);
	assert_true(space[1].start_ns == 20 && space[1].end_ns == 30 && space[1].root == 0x2000);
	assert_int_equal(space[1].parent, 0);
	assert_true(space[2].start_ns == 30 && space[2].end_ns == 50 && space[2].root == 0x3000);
	assert_int_equal(space[2].parent, VP_TRACKER_NONE);
	assert_string_equal(space[2].comm, "renamed");
	assert_int_equal(count_mappings(&tracker, 0), 1);
	assert_int_equal(count_mappings(&tracker, 1), 0);
	assert_int_equal(count_mappings(&tracker, 2), 1);
	assert_int_equal(vp_tracker_space_of(&tracker, 11), VP_TRACKER_NONE);
	vp_tracker_deinit(&tracker);
}

/* A child of vfork has its parent's address space until it executes a program. */
static void test_vfork(void **state)
{
	struct vp_tracker tracker;
	struct vp_tracker_event fork = {
	    .time_ns = 2, .kind = VP_TRACKER_FORK, .tgid = 11, .parent = 10, .shared = true};

	vp_tracker_init(&tracker);
	add(&tracker, 1, VP_TRACKER_EXISTING, 10, 0, 0x1000, "shell");
	vp_tracker_add(&tracker, &fork);
	add(&tracker, 3, VP_TRACKER_EXEC_DONE, 11, 0, 0x2000, "child");
	vp_tracker_apply(&tracker, 9);
	assert_int_equal(tracker.spaces.count, 2);
	assert_true(tracker.spaces.at[0].end_ns == 0);
	assert_int_equal(tracker.spaces.at[1].start_ns, 3);
	assert_int_equal(tracker.spaces.at[1].tgid, 11);
	vp_tracker_deinit(&tracker);
}

/* Events of one time count in the order in which they came. */
static void test_events_of_one_time(void **state)
{
	struct vp_tracker tracker;

	vp_tracker_init(&tracker);
	add(&tracker, 1, VP_TRACKER_EXISTING, 10, 0, 0x1000, "shell");
	add(&tracker, 5, VP_TRACKER_COMM, 10, 0, 0, "first");
	add(&tracker, 5, VP_TRACKER_COMM, 10, 0, 0, "second");
	add(&tracker, 5, VP_TRACKER_COMM, 10, 0, 0, "third");
	vp_tracker_apply(&tracker, 9);
	assert_string_equal(tracker.spaces.at[0].comm, "third");
	vp_tracker_deinit(&tracker);
}

static void test_mappings_seen_twice(void **state)
{
	struct vp_tracker tracker;

	vp_tracker_init(&tracker);
	add(&tracker, 1, VP_TRACKER_EXISTING, 10, 0, 0x1000, "shell");
	add_map(&tracker, 2, VP_TRACKER_MAP, 10, 0x400000, "/bin/sh");
	add_map(&tracker, 3, VP_TRACKER_MAP_SEEN, 10, 0x400000, "/bin/sh");
	add_map(&tracker, 4, VP_TRACKER_MAP_SEEN, 10, 0x500000, "/lib/x");
	add(&tracker, 5, VP_TRACKER_FORK, 11, 10, 0x2000, "shell");
	add_map(&tracker, 6, VP_TRACKER_MAP_SEEN, 11, 0x400000, "/bin/sh");
	vp_tracker_apply(&tracker, 9);
	assert_int_equal(count_mappings(&tracker, 0), 2);
	assert_int_equal(count_mappings(&tracker, 1), 0);
	vp_tracker_deinit(&tracker);
}

/* Files that are deleted while they are mapped are the same ones. */
static void test_images(void **state)
{
	struct vp_tracker tracker;

	vp_tracker_init(&tracker);
	uint32_t image = vp_tracker_image(&tracker, NULL, "/lib/x");
	assert_int_equal(vp_tracker_image(&tracker, NULL, "/lib/x (deleted)"), image);
	assert_string_equal(tracker.images.at[image].path, "/lib/x");
	assert_int_not_equal(vp_tracker_image(&tracker, NULL, "/lib/y"), image);
	vp_tracker_deinit(&tracker);
}

/* The end of the process that had the number before was not seen. */
static void test_number_is_used_again(void **state)
{
	struct vp_tracker tracker;

	vp_tracker_init(&tracker);
	add(&tracker, 1, VP_TRACKER_EXISTING, 10, 0, 0x1000, "shell");
	add(&tracker, 2, VP_TRACKER_FORK, 11, 10, 0x2000, "first");
	add(&tracker, 5, VP_TRACKER_FORK, 11, 10, 0x3000, "second");
	vp_tracker_apply(&tracker, 9);
	assert_int_equal(tracker.spaces.count, 3);
	assert_int_equal(tracker.spaces.at[0].children, 2);
	assert_int_equal(tracker.spaces.at[1].end_ns, 5);
	assert_int_equal(tracker.spaces.at[2].end_ns, 0);
	assert_int_equal(vp_tracker_space_of(&tracker, 11), 2);
	vp_tracker_deinit(&tracker);
}

/* A child of vfork() is renamed: the address space is its parent's, and so is the name. */
static void test_name_of_shared_space(void **state)
{
	struct vp_tracker tracker;
	struct vp_tracker_event fork = {
	    .time_ns = 2, .kind = VP_TRACKER_FORK, .tgid = 11, .parent = 10, .shared = 1};

	vp_tracker_init(&tracker);
	add(&tracker, 1, VP_TRACKER_EXISTING, 10, 0, 0x1000, "shell");
	vp_tracker_add(&tracker, &fork);
	add(&tracker, 3, VP_TRACKER_COMM, 11, 0, 0, "child");
	vp_tracker_apply(&tracker, 9);
	assert_string_equal(tracker.spaces.at[0].comm, "shell");
	add(&tracker, 10, VP_TRACKER_COMM, 10, 0, 0, "renamed");
	vp_tracker_apply(&tracker, 19);
	assert_string_equal(tracker.spaces.at[0].comm, "renamed");
	vp_tracker_deinit(&tracker);
}

/* Another part of a file is another mapping. One that is only seen was there from the begin on. */
static void test_parts_of_a_file(void **state)
{
	struct vp_tracker tracker;
	struct vp_tracker_event map = {.time_ns = 4,
				       .kind = VP_TRACKER_MAP_SEEN,
				       .tgid = 11,
				       .start = 0x400000,
				       .end = 0x401000,
				       .pgoff = 0x5000};

	vp_tracker_init(&tracker);
	map.image = vp_tracker_image(&tracker, NULL, "/bin/sh");
	add(&tracker, 1, VP_TRACKER_EXISTING, 10, 0, 0x1000, "shell");
	add(&tracker, 2, VP_TRACKER_FORK, 11, 10, 0x2000, "shell");
	add_map(&tracker, 3, VP_TRACKER_MAP, 11, 0x400000, "/bin/sh");
	vp_tracker_add(&tracker, &map);
	vp_tracker_apply(&tracker, 9);
	assert_int_equal(count_mappings(&tracker, 1), 2);
	assert_int_equal(tracker.mappings.at[0].from_ns, 3);
	assert_int_equal(tracker.mappings.at[1].pgoff, 0x5000);
	assert_int_equal(tracker.mappings.at[1].from_ns, 2);
	vp_tracker_deinit(&tracker);
}

/* Of what has ended the older half is forgotten; parents of what is kept stay, and are found. */
static void test_older_half_is_forgotten(void **state)
{
	struct vp_tracker tracker;
	uint64_t time = 1;

	vp_tracker_init(&tracker);
	add(&tracker, time++, VP_TRACKER_EXISTING, 1, 0, 0x1000, "init");
	for (uint32_t pid = 100; pid < 140; pid++) {
		add(&tracker, time++, VP_TRACKER_FORK, pid, 1, 0x2000, "parent");
		add(&tracker, time++, VP_TRACKER_FORK, 1000 + pid, pid, 0x3000, "child");
		add(&tracker, time++, VP_TRACKER_EXIT, pid, 0, 0, "");
	}
	vp_tracker_apply(&tracker, time);
	assert_int_equal(tracker.spaces.count, 81);
	/* Its children live: their parents are needed for their names. */
	tracker.max_bytes = 1;
	add(&tracker, time++, VP_TRACKER_COMM, 1, 0, 0, "init");
	vp_tracker_apply(&tracker, time);
	assert_int_equal(tracker.forgotten, 0);
	for (uint32_t pid = 100; pid < 120; pid++)
		add(&tracker, time++, VP_TRACKER_EXIT, 1000 + pid, 0, 0, "");
	vp_tracker_apply(&tracker, time);
	add(&tracker, time++, VP_TRACKER_COMM, 1, 0, 0, "init");
	vp_tracker_apply(&tracker, time);
	/* The first that ended, at once; then its parent, and half of the others. */
	assert_int_equal(tracker.forgotten, 1 + 1 + 10);
	assert_int_equal(tracker.spaces.count + tracker.forgotten, 81);
	/* Those that ended last are there, with their parents. */
	for (uint32_t i = 1; i < tracker.spaces.count; i++) {
		const struct vp_tracker_space *space = &tracker.spaces.at[i];
		assert_true(space->parent < i);
		if (space->tgid > 1000)
			assert_int_equal(tracker.spaces.at[space->parent].tgid + 1000, space->tgid);
		else
			assert_int_equal(tracker.spaces.at[space->parent].tgid, 1);
		assert_true(space->tgid < 1000 || space->tgid > 1110);
	}
	vp_tracker_deinit(&tracker);
}

static void test_memory_is_bounded(void **state)
{
	struct vp_tracker tracker;
	uint64_t time = 1;

	vp_tracker_init(&tracker);
	tracker.max_bytes = 1 << 20;
	add(&tracker, time++, VP_TRACKER_EXISTING, 1, 0, 0x1000, "init");
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t pid = 100 + i % 30000;
		add(&tracker, time++, VP_TRACKER_FORK, pid, 1, 0x2000 + i * 0x1000ULL, "init");
		add(&tracker, time++, VP_TRACKER_EXEC_DONE, pid, 0, 0x3000, "child");
		add_map(&tracker, time++, VP_TRACKER_MAP, pid, 0x400000, "/bin/child");
		add(&tracker, time++, VP_TRACKER_EXIT, pid, 0, 0, "");
		if (i % 1000 == 0)
			vp_tracker_apply(&tracker, time);
	}
	vp_tracker_apply(&tracker, time);
	assert_true(tracker.spaces.count * sizeof(*tracker.spaces.at) < 2 << 20);
	assert_int_equal(tracker.forgotten + tracker.spaces.count, 200001);
	assert_int_equal(tracker.spaces.at[0].tgid, 1);
	assert_int_equal(vp_tracker_space_of(&tracker, 1), 0);
	/* The last ones are there, whole. */
	const struct vp_tracker_space *last = &tracker.spaces.at[tracker.spaces.count - 1];
	assert_int_equal(last->id, 200001);
	assert_int_equal(count_mappings(&tracker, (uint32_t)tracker.spaces.count - 1), 1);
	assert_int_equal(tracker.spaces.at[tracker.spaces.count - 2].parent, 0);
	vp_tracker_deinit(&tracker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_life_of_a_process),
	    cmocka_unit_test(test_vfork),
	    cmocka_unit_test(test_events_of_one_time),
	    cmocka_unit_test(test_mappings_seen_twice),
	    cmocka_unit_test(test_images),
	    cmocka_unit_test(test_number_is_used_again),
	    cmocka_unit_test(test_name_of_shared_space),
	    cmocka_unit_test(test_parts_of_a_file),
	    cmocka_unit_test(test_older_half_is_forgotten),
	    cmocka_unit_test(test_memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
