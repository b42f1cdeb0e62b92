/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a reader of a guest's memory answers, as it arrives and as it is understood. */
#include "unit.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "collect/guests/guest_answer.h"

enum { HERE, THERE, WAIT_MS = 10, TOO_LONG_S = 10 };

struct talk {
	int ends[2];
	struct vp_buffer heard;
};

static struct talk begin(void)
{
	struct talk talk = {0};

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, talk.ends), 0);
	return talk;
}

static void end(struct talk *talk)
{
	close(talk->ends[HERE]);
	if (talk->ends[THERE] >= 0)
		close(talk->ends[THERE]);
	vp_buffer_deinit(&talk->heard);
}

static void say(const struct talk *talk, const char *text)
{
	assert_int_equal(write(talk->ends[THERE], text, strlen(text)), strlen(text));
}

static struct vp_error *hear(struct talk *talk, bool *done, struct vp_slice *answer)
{
	return vp_guest_answer_take(talk->ends[HERE], WAIT_MS, &talk->heard, done, answer);
}

static void test_pieces(void **state)
{
	struct talk talk = begin();
	struct vp_slice answer = {0};
	bool done = true;

	expect_no_error(hear(&talk, &done, &answer));
	assert_false(done);
	say(&talk, "task 1 2 a.\n"); /* which ends as the last line does */
	expect_no_error(hear(&talk, &done, &answer));
	assert_false(done);
	say(&talk, ".");
	expect_no_error(hear(&talk, &done, &answer));
	assert_false(done);
	say(&talk, "\n");
	expect_no_error(hear(&talk, &done, &answer));
	assert_true(done);
	assert_true(vp_slice_is(answer, "task 1 2 a.\n"));
	end(&talk);
}

static void test_error_in_words(void **state)
{
	struct talk talk = begin();
	struct vp_slice answer;
	bool done;

	say(&talk, "dropped x\nerror no%20kernel\n.\n");
	expect_error(hear(&talk, &done, &answer), "no kernel");
	end(&talk);
}

/* Whatever an earlier call left in errno. */
static void test_death(void **state)
{
	static const int before[] = {EAGAIN, EINTR, 0};

	for (size_t i = 0; i < 3; i++) {
		struct talk talk = begin();
		struct vp_slice answer;
		bool done;
		say(&talk, "task 1");
		close(talk.ends[THERE]);
		talk.ends[THERE] = -1;
		alarm(TOO_LONG_S);
		errno = before[i];
		expect_error(hear(&talk, &done, &answer), "has died");
		alarm(0);
		assert_false(done);
		end(&talk);
	}
}

static struct vp_error *find(const char *text, struct vp_guest_finding *ret)
{
	return vp_guest_finding_parse((struct vp_slice){text, strlen(text)}, ret);
}

#define KERNEL "kernel ffffffff81000000 1000000 200000 ffff888000000000 4 0 1 0 abcd Linux%20x\n"

static void test_finding(void **state)
{
	struct vp_guest_finding finding;

	expect_no_error(find(KERNEL
			     "at 8 c 10 0 18 20\ncpu 0 1 5000 7000\ncount 0 2 6000 1\npack a%0ab\n",
			     &finding));
	assert_int_equal(finding.text, 0xffffffff81000000);
	assert_int_equal(finding.paging.levels, 4);
	assert_true(finding.scanned && !finding.cached && !finding.derived);
	assert_string_equal(finding.banner, "Linux x");
	assert_string_equal(finding.pack, "a\nb");
	assert_null(finding.lacks);
	assert_int_equal(finding.off_mm, 0x18);
	assert_int_equal(finding.off_pgd, 0x20);
	assert_int_equal(finding.cpus.count, 1);
	assert_int_equal(finding.cpus.at[0].current_gpa, 0x5000);
	assert_int_equal(finding.cpus.at[0].chosen_gpa, 0x7000);
	assert_int_equal(finding.counts.count, 1);
	assert_true(finding.counts.at[0].narrow);
	vp_guest_finding_deinit(&finding);
}

static void test_finding_of_liars(void **state)
{
	struct vp_guest_finding finding;

	expect_error(find("", &finding), "no reply");
	expect_error(find("pack a\nlacks b\n", &finding), "no reply");
	expect_error(find(KERNEL "cpu 0\n", &finding), "malformed reply");
	expect_error(find(KERNEL "cpu 0 1 5000\n", &finding), "malformed reply");
	expect_error(find(KERNEL "count 0 99 6000 1\n", &finding), "malformed reply");
	expect_error(find(KERNEL "what\n", &finding), "malformed reply");
	expect_error(find("kernel 1 2\n", &finding), "malformed reply");
}

static struct vp_error *list(const char *text, vp_guest_processes *ret, bool *damaged)
{
	return vp_guest_processes_parse((struct vp_slice){text, strlen(text)}, ret, damaged);
}

static void test_processes(void **state)
{
	vp_guest_processes processes = {0};
	bool damaged;

	expect_no_error(
	    list("task 1 2000 init\ntask a 3000 a%20b\ndamaged\n", &processes, &damaged));
	assert_true(damaged);
	assert_int_equal(processes.count, 2);
	assert_int_equal(processes.at[1].tgid, 10);
	assert_string_equal(processes.at[1].comm, "a b");
	expect_error(list("task 1\n", &processes, &damaged), "malformed reply");
	assert_false(damaged);
	vp_guest_processes_deinit(&processes);
}

/* A search that goes on has found nothing yet, and says how far it is. */
static void test_searching(void **state)
{
	struct vp_guest_finding finding;

	expect_no_error(find("searching 200000 40000000\n", &finding));
	assert_true(finding.searching);
	assert_int_equal(finding.searched, 2 << 20);
	assert_int_equal(finding.to_search, 1 << 30);
	assert_null(finding.banner);
	vp_guest_finding_deinit(&finding);
	expect_error(find("searching 200000\n", &finding), "malformed");
	expect_error(find("banner xyz\n", &finding), "malformed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pieces),
	    cmocka_unit_test(test_error_in_words),
	    cmocka_unit_test(test_death),
	    cmocka_unit_test(test_finding),
	    cmocka_unit_test(test_finding_of_liars),
	    cmocka_unit_test(test_processes),
	    cmocka_unit_test(test_searching),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
