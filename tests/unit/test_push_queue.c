/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Profiles that wait to be sent: windows, tries again, and the bound of the queue. */
#include "unit.h"

#include "base/alloc.h"
#include "base/notices.h"
#include "daemon/push_queue.h"

#define SECOND 1000000000ULL

static struct {
	int started;
	bool fails, has_ended;
	enum vp_push_outcome outcome;
	uint64_t from_s, to_s;
} host;

static vp_notices notices;

static struct vp_error *start(void *context, const struct vp_push *push, pid_t *ret)
{
	if (host.fails)
		return vp_error_new("there is no vperf-push");
	host.from_s = push->from_s;
	host.to_s = push->to_s;
	*ret = ++host.started;
	return NULL;
}

static bool has_ended(void *context, pid_t process, enum vp_push_outcome *outcome)
{
	assert_int_equal(process, host.started);
	*outcome = host.outcome;
	return host.has_ended;
}

static const struct vp_push_ops ops = {start, has_ended};

static struct vp_push_queue begin(void)
{
	memset(&host, 0, sizeof(host));
	return (struct vp_push_queue){.ops = &ops, .notices = &notices};
}

static void end(struct vp_push_queue *queue)
{
	vp_push_queue_deinit(queue);
	vp_notices_deinit(&notices);
}

/* One step in which the process ends in that way, and the next may be started. */
static void finish(struct vp_push_queue *queue, enum vp_push_outcome outcome, uint64_t second)
{
	host.has_ended = true;
	host.outcome = outcome;
	vp_push_queue_step(queue, second * SECOND);
	host.has_ended = false;
}

static void test_windows(void **state)
{
	struct vp_push_queue queue = begin();

	vp_push_queue_step(&queue, 0);
	assert_int_equal(host.started, 0);
	vp_push_queue_add(&queue, "/s/1", 700, 300);
	assert_int_equal(queue.waiting.count, 3);
	vp_push_queue_step(&queue, SECOND);
	vp_push_queue_step(&queue, 2 * SECOND); /* one at a time */
	assert_int_equal(host.started, 1);
	assert_int_equal(host.from_s, 0);
	assert_int_equal(host.to_s, 300);
	finish(&queue, VP_PUSH_SENT, 3);
	assert_int_equal(host.from_s, 300);
	finish(&queue, VP_PUSH_REFUSED, 4);
	assert_int_equal(host.from_s, 600);
	assert_int_equal(host.to_s, 0); /* its end */
	finish(&queue, VP_PUSH_SENT, 5);
	assert_int_equal(queue.waiting.count, 0);
	assert_int_equal(queue.sent, 2);
	assert_int_equal(queue.refused, 1);
	assert_int_equal(notices.count, 0);
	end(&queue);
}

/* A server that is away is asked after 1, 2, 4, … seconds; nothing is lost. */
static void test_back_off(void **state)
{
	struct vp_push_queue queue = begin();
	uint64_t now = 10;

	vp_push_queue_add(&queue, "/s/1", 10, 300);
	vp_push_queue_step(&queue, now * SECOND);
	for (uint64_t wait = 1; wait < 2000; wait *= 2) {
		uint64_t expected = wait < VP_PUSH_RETRY_MAX_S ? wait : VP_PUSH_RETRY_MAX_S;
		int started = host.started;
		finish(&queue, VP_PUSH_LATER, now);
		vp_push_queue_step(&queue, (now + expected) * SECOND - 1);
		assert_int_equal(host.started, started);
		now += expected;
		vp_push_queue_step(&queue, now * SECOND);
		assert_int_equal(host.started, started + 1);
	}
	assert_int_equal(notices.count, 1); /* not one for each */
	finish(&queue, VP_PUSH_SENT, now);
	assert_int_equal(queue.sent, 1);
	assert_int_equal(queue.failures, 0);
	end(&queue);
}

static void test_no_process(void **state)
{
	struct vp_push_queue queue = begin();

	host.fails = true;
	vp_push_queue_add(&queue, "/s/1", 10, 300);
	vp_push_queue_step(&queue, SECOND);
	assert_int_equal(notices.count, 1);
	assert_non_null(strstr(notices.at[0], "there is no vperf-push"));
	host.fails = false;
	vp_push_queue_step(&queue, 2 * SECOND);
	assert_int_equal(host.started, 1);
	end(&queue);
}

/* The oldest go, but not the one that is being sent. */
static void test_bound(void **state)
{
	struct vp_push_queue queue = begin();

	vp_push_queue_add(&queue, "/s/1", VP_PUSH_MOST, 1);
	assert_int_equal(queue.overflowed, 0);
	vp_push_queue_step(&queue, SECOND);
	vp_push_queue_add(&queue, "/s/2", 2, 1);
	assert_int_equal(queue.waiting.count, VP_PUSH_MOST);
	assert_int_equal(queue.overflowed, 2);
	assert_int_equal(queue.waiting.at[0].from_s, 0);
	assert_int_equal(queue.waiting.at[1].from_s, 3);
	assert_string_equal(queue.waiting.at[VP_PUSH_MOST - 1].path, "/s/2");
	assert_int_equal(notices.count, 1);
	end(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_windows), cmocka_unit_test(test_back_off),
	    cmocka_unit_test(test_no_process), cmocka_unit_test(test_bound)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
