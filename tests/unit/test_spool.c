/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A store's spool: complete recordings only, which outlast the store's, within a size. */
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "store/history.h"
#include "store/spool.h"

#define STORE "test_spool.store"
enum { SIZE = 100000 };

static void make(const char *name)
{
	static char bytes[SIZE];
	VP_AUTO_FREE char *path = vp_format(STORE "/%s", name);
	VP_AUTO_FREE char *host = vp_format("%s/host", path);
	VP_AUTO_FREE char *file = vp_format("%s/cpu0", host);
	VP_AUTO_FREE char *about = vp_format("%s/recording", path);

	mkdir(STORE, 0700);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(mkdir(host, 0700), 0);
	expect_no_error(vp_file_publish(file, bytes, sizeof(bytes)));
	expect_no_error(vp_file_publish(about, "x", 1));
}

static void test_links(void **state)
{
	struct stat one, other;
	uint64_t dropped = 9;

	vp_file_remove_all(STORE);
	make("20261126T055305Z");
	expect_no_error(vp_spool_add(STORE, "20261126T055305Z", 1 << 30, &dropped));
	assert_int_equal(dropped, 0);
	assert_int_equal(stat(STORE "/20261126T055305Z/host/cpu0", &one), 0);
	assert_int_equal(stat(STORE "/spool/20261126T055305Z/host/cpu0", &other), 0);
	assert_int_equal(one.st_ino, other.st_ino);
	assert_int_equal(access(STORE "/spool/20261126T055305Z/recording", F_OK), 0);
	/* What the store removes stays in the spool; the spool is nothing of the store's. */
	vp_file_remove_all(STORE "/20261126T055305Z");
	assert_int_equal(access(STORE "/spool/20261126T055305Z/host/cpu0", F_OK), 0);
	vp_history history;
	expect_no_error(vp_history_read(STORE, &history));
	assert_int_equal(history.count, 0);
	vp_history_deinit(&history);
	expect_error(vp_spool_add(STORE, "nothing", 1 << 30, &dropped), "nothing");
	assert_int_equal(access(STORE "/spool/nothing", F_OK), -1);
	assert_int_equal(access(STORE "/spool/nothing.new", F_OK), -1);
}

/* Nobody fetches them: the oldest go, and are counted. */
static void test_full(void **state)
{
	static const char *const names[] = {"20261126T055305Z", "20261126T065305Z",
					    "20261126T075305Z", "20261126T085305Z"};
	uint64_t dropped, all = 0;

	vp_file_remove_all(STORE);
	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++) {
		make(names[i]);
		expect_no_error(vp_spool_add(STORE, names[i], 2 * SIZE + SIZE / 2, &dropped));
		all += dropped;
		assert_in_range(vp_disk_bytes(STORE "/spool"), 1, 2 * SIZE + SIZE / 2);
	}
	assert_int_equal(all, 2);
	assert_int_equal(access(STORE "/spool/20261126T065305Z", F_OK), -1);
	assert_int_equal(access(STORE "/spool/20261126T075305Z", F_OK), 0);
	assert_int_equal(access(STORE "/20261126T055305Z/recording", F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_links),
					   cmocka_unit_test(test_full)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
