/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much of a disk triggered snapshots may take, on a file system of the test's own. */
#include "unit.h"

#include <sys/statvfs.h>

#include "session/snapshot_limits.h"

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)

static struct statvfs disk;

/* Its name where offsets of files have 64 bits. */
int __wrap_statvfs64(const char *path, struct statvfs *ret);

int __wrap_statvfs64(const char *path, struct statvfs *ret)
{
	*ret = disk;
	return 0;
}

static void set_disk(uint64_t size, uint64_t left)
{
	disk = (struct statvfs){
	    .f_frsize = 4096, .f_bsize = 1, .f_blocks = size / 4096, .f_bavail = left / 4096};
}

/* Why there may be no more; "" if there may. */
static const char *no_room(uint64_t largest, uint64_t wanted)
{
	static char text[200];
	const struct vp_snapshots snapshots = {.count = 1, .bytes = largest, .largest = largest};
	const struct vp_snapshot_limits limits = {
	    .count = 100, .bytes = UINT64_MAX, .free_bytes = wanted};
	VP_AUTO_FREE char *why = vp_snapshots_no_room(&snapshots, &limits, "/");

	snprintf(text, sizeof(text), "%s", why ? why : "");
	return text;
}

/* A tenth of a small disk is left, 1 GiB of a large one. */
static void test_room_by_default(void **state)
{
	set_disk(5 * GIB, GIB / 2 + 100 * MIB);
	assert_string_equal(no_room(100 * MIB, VP_SNAPSHOT_FREE_DEFAULT), "");
	set_disk(5 * GIB, GIB / 2 + 99 * MIB);
	assert_non_null(strstr(no_room(100 * MIB, VP_SNAPSHOT_FREE_DEFAULT), "611 MiB free"));
	set_disk(500 * GIB, GIB + 100 * MIB);
	assert_string_equal(no_room(100 * MIB, VP_SNAPSHOT_FREE_DEFAULT), "");
	set_disk(500 * GIB, GIB + 99 * MIB);
	assert_non_null(strstr(no_room(100 * MIB, VP_SNAPSHOT_FREE_DEFAULT), "1123 MiB free"));
}

/* As much as the user says is left, which may be nothing; the next snapshot must fit. */
static void test_room_by_option(void **state)
{
	set_disk(500 * GIB, 100 * MIB);
	assert_string_equal(no_room(100 * MIB, 0), "");
	assert_string_not_equal(no_room(100 * MIB + 4096, 0), "");
	assert_string_equal(no_room(60 * MIB, 40 * MIB), "");
	assert_string_not_equal(no_room(60 * MIB, 41 * MIB), "");
}

static bool is_used_up(uint64_t count, uint64_t bytes, uint64_t largest)
{
	const struct vp_snapshots snapshots = {count, bytes, largest};
	const struct vp_snapshot_limits limits = {.count = 3, .bytes = 100 * MIB};
	VP_AUTO_FREE char *why = vp_snapshots_used_up(&snapshots, &limits);

	return why != NULL;
}

static void test_used_up(void **state)
{
	assert_false(is_used_up(0, 0, 0));
	assert_false(is_used_up(2, 60 * MIB, 40 * MIB));
	assert_true(is_used_up(3, 60 * MIB, 40 * MIB));
	assert_true(is_used_up(2, 61 * MIB, 40 * MIB));
	assert_true(is_used_up(2, 101 * MIB, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_room_by_default),
	    cmocka_unit_test(test_room_by_option),
	    cmocka_unit_test(test_used_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
