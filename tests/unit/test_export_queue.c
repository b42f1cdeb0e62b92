/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The exporter's queue: each batch is received once, in order, with what was put into it and
 * nothing of the batch that had its place before. */
#include "unit.h"

#include "analyze/report/export_queue.h"

enum { BATCHES = 5 * VP_EXPORT_BATCHES };

static uint64_t received;

/* Batch n has n + 1 samples and one more of each further part. */
static void expect_batch(void *context, const struct vp_export_batch *batch)
{
	assert_ptr_equal(context, &received);
	assert_int_equal(batch->samples.count, received + 1);
	assert_int_equal(batch->frames.count, received + 2);
	assert_int_equal(batch->addresses.count, received + 3);
	assert_int_equal(batch->texts.count, received + 4);
	assert_int_equal(batch->vms.count, received + 5);
	for (size_t i = 0; i < batch->samples.count; i++)
		assert_int_equal(batch->samples.at[i].time, 1000 * received + i);
	received++;
}

static void fill(struct vp_export_batch *batch, uint64_t number)
{
	for (uint64_t i = 0; i < number + 1; i++)
		vp_vec_push(&batch->samples, ((struct vp_sample){.time = 1000 * number + i}));
	for (uint64_t i = 0; i < number + 2; i++)
		vp_vec_push(&batch->frames, (struct vp_frame){0});
	for (uint64_t i = 0; i < number + 3; i++)
		vp_vec_push(&batch->addresses, (struct vp_frame_address){0});
	for (uint64_t i = 0; i < number + 4; i++)
		vp_vec_push(&batch->texts, "text");
	for (uint64_t i = 0; i < number + 5; i++)
		vp_vec_push(&batch->vms, (struct vp_vm){0});
}

static void expect_all(bool threaded)
{
	struct vp_export_queue queue = {.take = expect_batch, .context = &received};

	received = 0;
	vp_export_queue_begin(&queue, threaded);
	assert_int_equal(queue.has_thread, threaded);
	for (uint64_t number = 0; number < BATCHES; number++) {
		fill(vp_export_queue_batch(&queue), number);
		vp_export_queue_submit(&queue);
	}
	vp_export_queue_end(&queue);
	assert_int_equal(received, BATCHES);
}

static void test_with_a_thread(void **state)
{
	expect_all(true);
}

static void test_without_a_thread(void **state)
{
	expect_all(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_with_a_thread),
	    cmocka_unit_test(test_without_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
