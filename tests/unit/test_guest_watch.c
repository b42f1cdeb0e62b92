/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is said of guests whose kernel is not found, while they are recorded. */
#include "unit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "collect/kernel_places.h"
#include "recording/guest_watch.h"

static void forget(void *context, uint32_t pid)
{
	unsigned *forgotten = context;

	assert_true(pid);
	++*forgotten;
}

static struct vp_guest_watch *new_watch(vp_notices *notices, unsigned *forgotten)
{
	const struct vp_guest_user user = {
	    .context = forgotten, .name = "samples", .check_s = 1, .forget = forget};
	struct vp_guest_watch *watch =
	    vp_guest_watch_new(vp_guest_access_kvm(), notices, "test_guest_watch.dir", false);

	vp_guest_watch_join(watch, &user);
	return watch;
}

/* This process is no VM: the kernel of its guest cannot be found. */
static void test_not_found_is_told_at_once(void **state)
{
	struct vp_vm vm = {.pid = (uint32_t)getpid(), .name = "g1", .at_start = true};
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = new_watch(&notices, &forgotten);

	vp_guest_watch_add(watch, &vm);
	vp_guest_watch_settle(watch, 0);
	vp_guest_watch_step(watch);
	assert_int_equal(notices.count, 1);
	assert_non_null(strstr(notices.at[0], "VM 'g1': the kernel has not been found"));
	assert_int_equal(forgotten, 1);
	assert_false(vp_guest_watch_has_found(watch, &vm));
	VP_AUTO_FREE char *outcome = vp_guest_watch_state(watch, &vm);
	assert_non_null(strstr(notices.at[0], outcome)); /* the same reason as at the end */
	free(notices.at[0]);
	vp_vec_deinit(&notices);
	vp_guest_watch_free(watch);
}

/* A VM that was just started has no kernel yet, and one that has ended never will. */
static void test_what_is_not_told(void **state)
{
	struct vp_vm fresh = {.pid = (uint32_t)getpid(), .name = "fresh"};
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = new_watch(&notices, &forgotten);
	pid_t child = fork();

	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	struct vp_vm ended = {.pid = (uint32_t)child, .name = "ended", .at_start = true};
	vp_guest_watch_add(watch, &fresh);
	vp_guest_watch_add(watch, &ended);
	assert_int_equal(forgotten, 2);
	assert_int_equal(notices.count, 0);
	vp_guest_watch_free(watch);
}

/* Where kernels were is kept for each VM, whatever it is called and whatever is in the file. */
static void test_places_are_remembered(void **state)
{
	static const char folder[] = "test_guest_watch.places", junk[] = "zz a\n12\n\n77 other\n";
	VP_AUTO_FREE char *path = vp_format("%s/places", folder);

	unlink(path);
	assert_int_equal(vp_kernel_place_recall(folder, "g1"), 0);
	expect_no_error(vp_kernel_place_remember(folder, "g 1", 0x2000200));
	expect_no_error(vp_kernel_place_remember(folder, "g1", 0x4000200));
	expect_no_error(vp_kernel_place_remember(folder, "g 1", 0x6000200));
	assert_int_equal(vp_kernel_place_recall(folder, "g 1"), 0x6000200);
	assert_int_equal(vp_kernel_place_recall(folder, "g1"), 0x4000200);
	assert_int_equal(vp_kernel_place_recall(folder, "g"), 0);
	expect_no_error(vp_file_publish(path, junk, sizeof(junk) - 1));
	expect_no_error(vp_kernel_place_remember(folder, "g1", 1));
	assert_int_equal(vp_kernel_place_recall(folder, "g1"), 1);
	assert_int_equal(vp_kernel_place_recall(folder, "other"), 0x77);
	/* There is an end to it: what was found long ago goes first. */
	char name[8192] = {0};
	for (unsigned i = 0; i < 10; i++) {
		memset(name, 'a' + (int)i, sizeof(name) - 1);
		expect_no_error(vp_kernel_place_remember(folder, name, i + 1));
	}
	assert_int_equal(vp_kernel_place_recall(folder, name), 10);
	assert_int_equal(vp_kernel_place_recall(folder, "other"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_not_found_is_told_at_once),
	    cmocka_unit_test(test_what_is_not_told),
	    cmocka_unit_test(test_places_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
