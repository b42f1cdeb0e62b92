/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest's clock by messages between it and the host, which are never received before they were
 * sent, however long they take each way. */
#include "unit.h"

#include "import/recording/import_clock.h"

enum { TID = 9 };
#define SECOND 1000000000ULL

static void add(struct vp_import_timing *timing, enum vp_import_side side, uint64_t time,
		uint64_t vm, uint32_t count)
{
	vp_vec_push(&timing->marks,
		    ((struct vp_import_mark){
			.time = time, .vm = vm, .count = count, .side = side, .tid = TID}));
}

/* Both sides' marks of a message, by the host's clock; the guest's shows `shift` less. */
struct talk {
	struct vp_import_timing host, guest;
	uint64_t vm;
	uint32_t messages;
};

static void guest_sends(struct talk *talk, uint64_t sent, uint64_t took, int64_t shift)
{
	add(&talk->guest, VP_IMPORT_GUEST_SENDS, sent - (uint64_t)shift, talk->vm, talk->messages);
	add(&talk->host, VP_IMPORT_HOST_RECV, sent + took, talk->vm, talk->messages++);
}

static void host_sends(struct talk *talk, uint64_t sent, uint64_t took, int64_t shift)
{
	add(&talk->host, VP_IMPORT_HOST_SENDS, sent, talk->vm, talk->messages);
	add(&talk->guest, VP_IMPORT_GUEST_RECV, sent + took - (uint64_t)shift, talk->vm,
	    talk->messages++);
}

static struct talk talk_begin(void)
{
	return (struct talk){.host = {.has_clock = true, .offset = 5},
			     .guest = {.has_clock = true, .offset = 7},
			     .vm = 0xabcdef0123456789};
}

static struct vp_import_clock_fit fit_of(struct talk *talk, struct vp_import_clock *clock)
{
	*clock = (struct vp_import_clock){0};
	struct vp_import_clock_fit fit = vp_import_clock_make(&talk->host, &talk->guest, clock);

	vp_vec_deinit(&talk->host.marks);
	vp_vec_deinit(&talk->guest.marks);
	return fit;
}

/* The quickest message each way are the bounds: here one way takes far longer than the other, and
 * all but the quickest longer still. */
static void test_bounds(void **state)
{
	const int64_t shifts[] = {700 * (int64_t)SECOND, -3 * (int64_t)SECOND};

	for (size_t i = 0; i < VP_ARRAY_SIZE(shifts); i++) {
		struct talk talk = talk_begin();
		struct vp_import_clock clock;
		uint64_t from = 1000 * SECOND;
		for (uint64_t n = 0; n < 8; n++) {
			guest_sends(&talk, from + n * 1000000, n == 5 ? 10000 : 400000, shifts[i]);
			host_sends(&talk, from + n * 1000000, n == 2 ? 90000 : 7000000, shifts[i]);
		}
		struct vp_import_clock_fit fit = fit_of(&talk, &clock);
		assert_int_equal(fit.way, VP_IMPORT_CLOCK_MESSAGES);
		assert_int_equal(fit.messages, 16);
		assert_int_equal(fit.error_ns, 50001);
		assert_int_equal(clock.nodes.count, 1);
		assert_int_equal(clock.nodes.at[0].shift, shifts[i] - 40000);
		assert_int_equal(vp_import_clock_at(&clock, from + 500 - (uint64_t)shifts[i]),
				 from + 500 - 40000);
		vp_import_clock_deinit(&clock);
	}
}

/* What one side says of a message that the other did not see, or that was another guest's, or of
 * the other direction, is nothing. */
static void test_unmatched(void **state)
{
	struct talk talk = talk_begin();
	struct vp_import_clock clock;

	guest_sends(&talk, 10 * SECOND, 10, 1000);
	host_sends(&talk, 10 * SECOND, 10, 1000);
	add(&talk.guest, VP_IMPORT_GUEST_SENDS, 10 * SECOND, talk.vm, 77);
	add(&talk.host, VP_IMPORT_HOST_RECV, 10 * SECOND, talk.vm + 1, 77);
	add(&talk.guest, VP_IMPORT_GUEST_RECV, 10 * SECOND, talk.vm, 78);
	add(&talk.host, VP_IMPORT_HOST_RECV, 10 * SECOND, talk.vm, 78);
	add(&talk.guest, VP_IMPORT_GUEST_RECV, 10 * SECOND, talk.vm, 79);
	struct vp_import_clock_fit fit = fit_of(&talk, &clock);
	assert_int_equal(fit.messages, 2);
	assert_int_equal(clock.nodes.count, 1);
	assert_int_equal(clock.nodes.at[0].shift, 1000);
	vp_import_clock_deinit(&clock);
}

/* Clocks that drift apart: each second has its own shift, and between two it changes evenly. What
 * it changes by is part of the error. */
static void expect_drift(const unsigned order[3])
{
	struct talk talk = talk_begin();
	struct vp_import_clock clock;

	for (unsigned n = 0; n < 3; n++) {
		unsigned i = order[n];
		uint64_t from = (100 + 10 * i) * SECOND;
		int64_t shift = 5000 + 3000 * (int64_t)i;
		guest_sends(&talk, from, 20, shift);
		host_sends(&talk, from + SECOND / 2, 20, shift);
	}
	/* A second with messages of one direction alone tells less. */
	guest_sends(&talk, 150 * SECOND, 20, 0);
	struct vp_import_clock_fit fit = fit_of(&talk, &clock);
	assert_int_equal(fit.way, VP_IMPORT_CLOCK_MESSAGES);
	assert_int_equal(fit.messages, 7);
	assert_int_equal(fit.error_ns, 21 + 3000);
	assert_int_equal(clock.nodes.count, 3);
	uint64_t first = clock.nodes.at[0].time, second = clock.nodes.at[1].time;
	assert_int_equal(first, 100 * SECOND - 5000 + SECOND / 4 + 10);
	assert_int_equal(vp_import_clock_at(&clock, first - SECOND), first - SECOND + 5000);
	assert_int_equal(vp_import_clock_at(&clock, first), first + 5000);
	uint64_t third = first + (second - first) / 3;
	assert_in_range(vp_import_clock_at(&clock, third), third + 5999, third + 6000);
	assert_int_equal(vp_import_clock_at(&clock, second), second + 8000);
	assert_int_equal(vp_import_clock_at(&clock, 900 * SECOND), 900 * SECOND + 11000);
	/* No time is below 0. */
	vp_import_clock_deinit(&clock);
	vp_vec_push(&clock.nodes, ((struct vp_import_clock_node){0, -50}));
	assert_int_equal(vp_import_clock_at(&clock, 49), 0);
	assert_int_equal(vp_import_clock_at(&clock, 51), 1);
	vp_import_clock_deinit(&clock);
}

/* Whatever was seen first. */
static void test_drift(void **state)
{
	expect_drift((const unsigned[]){0, 1, 2});
	expect_drift((const unsigned[]){2, 0, 1});
}

/* Messages that are far from each other: together they bound it, without saying when it changed. */
static void test_few_messages(void **state)
{
	struct talk talk = talk_begin();
	struct vp_import_clock clock;

	guest_sends(&talk, 100 * SECOND, 600, 9000);
	host_sends(&talk, 200 * SECOND, 200, 9000);
	struct vp_import_clock_fit fit = fit_of(&talk, &clock);
	assert_int_equal(fit.way, VP_IMPORT_CLOCK_MESSAGES);
	assert_int_equal(fit.error_ns, 401);
	assert_int_equal(vp_import_clock_at(&clock, SECOND), SECOND + 9200);
	vp_import_clock_deinit(&clock);
}

static void test_one_way(void **state)
{
	struct talk late = talk_begin(), early = talk_begin();
	struct vp_import_clock clock;

	guest_sends(&late, 100 * SECOND, 600, 9000);
	guest_sends(&late, 200 * SECOND, 300, 9000);
	assert_int_equal(fit_of(&late, &clock).way, VP_IMPORT_CLOCK_ONE_WAY);
	assert_int_equal(vp_import_clock_at(&clock, SECOND), SECOND + 9300);
	vp_import_clock_deinit(&clock);
	host_sends(&early, 100 * SECOND, 600, 9000);
	host_sends(&early, 200 * SECOND, 300, 9000);
	assert_int_equal(fit_of(&early, &clock).way, VP_IMPORT_CLOCK_ONE_WAY);
	assert_int_equal(vp_import_clock_at(&clock, SECOND), SECOND + 8700);
	vp_import_clock_deinit(&clock);
}

/* Without messages, what both say of the Epoch; and one clock needs nothing. */
static void test_without_messages(void **state)
{
	struct talk talk = talk_begin();
	struct vp_import_clock clock;

	talk.host.offset = -700;
	assert_int_equal(fit_of(&talk, &clock).way, VP_IMPORT_CLOCK_WALL_CLOCKS);
	assert_int_equal(vp_import_clock_at(&clock, SECOND), SECOND + 707);
	vp_import_clock_deinit(&clock);
	for (int has_clock = 0; has_clock < 2; has_clock++) {
		talk = talk_begin();
		talk.guest.has_clock = has_clock;
		talk.guest.offset = talk.host.offset;
		guest_sends(&talk, 100 * SECOND, 600, 9000);
		assert_int_equal(fit_of(&talk, &clock).way, VP_IMPORT_CLOCK_SAME);
		assert_int_equal(clock.nodes.count, 0);
		assert_int_equal(vp_import_clock_at(&clock, SECOND), SECOND);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bounds),  cmocka_unit_test(test_unmatched),
	    cmocka_unit_test(test_drift),   cmocka_unit_test(test_few_messages),
	    cmocka_unit_test(test_one_way), cmocka_unit_test(test_without_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
