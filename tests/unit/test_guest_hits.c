/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples in code that a process made itself, on the way to the guest's reader. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_hits.h"

#define MILLISECOND 1000000ULL

static bool starting;

static struct vp_error *parse(const char *text, vp_guest_runtime_list *list)
{
	return vp_guest_runtimes_parse((struct vp_slice){text, strlen(text)}, list, &starting);
}

static void test_runtimes(void **state)
{
	static struct vp_guest_hits hits;

	(void)state;
	expect_no_error(
	    parse("java 1f 7000 8000 7100 7200\njava 20 9000 a000 0 0\n", &hits.runtimes));
	assert_int_equal(hits.runtimes.count, 2);
	assert_int_equal(hits.runtimes.at[0].interpreter_low, 0x7100);
	assert_int_equal(hits.runtimes.at[0].interpreter_high, 0x7200);
	assert_true(vp_guest_hits_has_code(&hits, 0x1f, 0x7000));
	assert_true(vp_guest_hits_has_code(&hits, 0x1f, 0x7fff));
	assert_false(vp_guest_hits_has_code(&hits, 0x1f, 0x8000));
	assert_false(vp_guest_hits_has_code(&hits, 0x1f, 0x6fff));
	assert_false(vp_guest_hits_has_code(&hits, 0x1f, 0x9000)); /* another process's */
	assert_true(vp_guest_hits_has_code(&hits, 0x20, 0x9000));
	assert_false(starting);
	/* The next answer replaces them. */
	expect_no_error(parse("starting\n", &hits.runtimes));
	assert_true(starting);
	assert_false(vp_guest_hits_has_code(&hits, 0x20, 0x9000));
	expect_error(parse("java 1f 7000 8000 7100\n", &hits.runtimes), "malformed");
	expect_error(parse("java 1f 7000 8000 7100 7200 1\n", &hits.runtimes), "malformed");
	expect_error(parse("perl 1f 7000 8000 7100 7200\n", &hits.runtimes), "malformed");
	vp_guest_hits_deinit(&hits);
}

static void test_python(void **state)
{
	static struct vp_guest_hits hits;

	(void)state;
	expect_no_error(parse("python 1f 7000 8000 7100 7200 a0 38 8 20 30 44 1 0\n"
			      "thread 1f 21 9000 2\n",
			      &hits.runtimes));
	assert_int_equal(hits.runtimes.count, 2);
	const struct vp_guest_runtime *python = &hits.runtimes.at[0];
	assert_int_equal(python->kind, VP_RUNTIME_PYTHON);
	assert_int_equal(python->high, 0x8000);
	assert_int_equal(python->interpreter_low, 0x7100);
	assert_int_equal(python->python.native_id, 0xa0);
	assert_int_equal(python->python.frame, 0x38);
	assert_int_equal(python->python.frame_in, 8);
	assert_int_equal(python->python.code, 0x20);
	assert_int_equal(python->python.previous, 0x30);
	assert_int_equal(python->python.owner, 0x44);
	assert_int_equal(python->python.entry_value, 1);
	assert_int_equal(python->python.entry_is_empty, 0);
	const struct vp_guest_runtime *thread = &hits.runtimes.at[1];
	assert_int_equal(thread->kind, VP_RUNTIME_THREAD);
	assert_int_equal(thread->tgid, 0x1f);
	assert_int_equal(thread->tid, 0x21);
	assert_int_equal(thread->state, 0x9000);
	assert_int_equal(thread->native_id, 2);
	/* The code is the file's, no code that the process has made. */
	assert_false(vp_guest_hits_has_code(&hits, 0x1f, 0x7100));
	assert_false(vp_guest_hits_has_code(&hits, 0x1f, 0));
	expect_error(parse("python 1f 7000 8000 7100 7200 a0 38 8 20 30 44 1\n", &hits.runtimes),
		     "malformed");
	expect_error(parse("thread 1f 21 9000\n", &hits.runtimes), "malformed");
	expect_error(parse("thread 1f 21 9000 2 3\n", &hits.runtimes), "malformed");
	vp_guest_hits_deinit(&hits);
}

static void test_v8(void **state)
{
	static struct vp_guest_hits hits;

	(void)state;
	expect_no_error(parse("v8 1f 7000 8000 4100 4200 8 10 20\n", &hits.runtimes));
	assert_int_equal(hits.runtimes.count, 1);
	const struct vp_guest_runtime *v8 = &hits.runtimes.at[0];
	assert_int_equal(v8->kind, VP_RUNTIME_V8);
	assert_int_equal(v8->tgid, 0x1f);
	assert_int_equal(v8->low, 0x7000);
	assert_int_equal(v8->high, 0x8000);
	assert_int_equal(v8->interpreter_low, 0x4100);
	assert_int_equal(v8->interpreter_high, 0x4200);
	assert_int_equal(v8->v8.context_below, 8);
	assert_int_equal(v8->v8.function_below, 0x10);
	assert_int_equal(v8->v8.shared, 0x20);
	/* Functions are read at the sample; addresses of code have no names. */
	assert_false(vp_guest_hits_has_code(&hits, 0x1f, 0x7100));
	expect_error(parse("v8 1f 7000 8000 4100 4200 8 10\n", &hits.runtimes), "malformed");
	expect_error(parse("v9 1f 7000 8000 4100 4200 8 10 20\n", &hits.runtimes), "malformed");
	vp_guest_hits_deinit(&hits);
}

static void test_requests(void **state)
{
	static struct vp_guest_hits hits;
	uint64_t now = 5000 * MILLISECOND;

	(void)state;
	assert_false(vp_guest_hits_add(&hits, 0x1f, 0x7010, false, now));
	assert_false(vp_guest_hits_add(&hits, 0x1f, 0x7010, false, now + MILLISECOND));
	assert_false(vp_guest_hits_add(&hits, 0x1f, 0x7010, false, now - MILLISECOND));
	assert_false(vp_guest_hits_add(&hits, 0x20, 0x7010, true, now));
	assert_string_equal(vp_buffer_text(&hits.requests),
			    "hit 1f 7010 12a05f200\nmethod 20 7010 12a05f200\n");
	hits.requests.size = 0;
	/* After a while the code may be another's. */
	assert_false(vp_guest_hits_add(&hits, 0x1f, 0x7010, false, now + 99 * MILLISECOND));
	assert_int_equal(hits.requests.size, 0);
	assert_false(vp_guest_hits_add(&hits, 0x1f, 0x7010, false, now + 100 * MILLISECOND));
	assert_string_equal(vp_buffer_text(&hits.requests), "hit 1f 7010 12ffbd300\n");
	vp_guest_hits_deinit(&hits);
}

/* They are sent before they are too long to be sent at once, and no more than the reader can do. */
static void test_limits(void **state)
{
	static struct vp_guest_hits hits;
	unsigned sent = 0, lines = 0;

	(void)state;
	for (unsigned i = 0; i < 6000; i++) {
		bool full =
		    vp_guest_hits_add(&hits, UINT32_MAX, UINT64_MAX - i, true, UINT64_MAX / 2);
		assert_true(hits.requests.size <= VP_GUEST_HITS_BYTES);
		assert_int_equal(full, hits.requests.size > VP_GUEST_HITS_BYTES - 64);
		if (!full)
			continue;
		for (size_t j = 0; j < hits.requests.size; j++)
			lines += hits.requests.bytes[j] == '\n';
		hits.requests.size = 0;
		sent++;
	}
	assert_true(sent > 10);
	for (size_t j = 0; j < hits.requests.size; j++)
		lines += hits.requests.bytes[j] == '\n';
	assert_int_equal(lines, 2000);
	assert_int_equal(hits.dropped, 4000);
	/* In the next second there are more. */
	hits.requests.size = 0;
	assert_false(vp_guest_hits_add(&hits, 1, 2, false, UINT64_MAX / 2 + 1000 * MILLISECOND));
	assert_true(hits.requests.size > 0);
	vp_guest_hits_deinit(&hits);
}

static void test_wanted_files(void **state)
{
	static const char text[] = "file abcd /usr/lib/a%20b.so\njava 1f 7000 8000 7100 7200\n"
				   "file - /x\nfile zz /x\nfile\nfiles abcd /x\nfile 01 /y\n";
	vp_guest_runtime_list runtimes = {0};
	vp_guest_wanted_files files = {0};
	struct vp_buffer many = {0};

	(void)state;
	vp_guest_wanted_files_parse((struct vp_slice){text, strlen(text)}, &files);
	assert_int_equal(files.count, 2);
	assert_string_equal(files.at[0].path, "/usr/lib/a b.so");
	assert_int_equal(files.at[0].build_id.size, 2);
	assert_string_equal(files.at[1].path, "/y");
	vp_guest_wanted_files_deinit(&files);
	expect_no_error(parse("file abcd /x\njava 1f 7000 8000 7100 7200\n", &runtimes));
	assert_int_equal(runtimes.count, 1);
	vp_vec_deinit(&runtimes);
	files = (vp_guest_wanted_files){0};
	for (unsigned i = 0; i < 2 * VP_GUEST_FILES; i++)
		vp_buffer_string(&many, "file ab /x\n");
	vp_guest_wanted_files_parse((struct vp_slice){many.bytes, many.size}, &files);
	assert_int_equal(files.count, VP_GUEST_FILES);
	vp_guest_wanted_files_deinit(&files);
	vp_buffer_deinit(&many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_runtimes), cmocka_unit_test(test_python),
	    cmocka_unit_test(test_v8),       cmocka_unit_test(test_requests),
	    cmocka_unit_test(test_limits),   cmocka_unit_test(test_wanted_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
