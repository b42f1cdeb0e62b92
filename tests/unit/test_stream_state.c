/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What still holds of a stream whose oldest records are overwritten. */
#include "unit.h"

#include "base/alloc.h"
#include "base/buffer.h"
#include "bpf/trace_abi.h"
#include "store/stream_state.h"

static void see_task(struct vp_stream_state *state, uint32_t pid, uint32_t tid, const char *comm)
{
	struct vp_task task = {.time = 5, .id = VP_ID_task, .pid = pid, .tid = tid};

	strncpy(task.comm, comm, sizeof(task.comm) - 1);
	vp_stream_state_see(state, (const struct vp_record_header *)&task);
}

static void see_guest_task(struct vp_stream_state *state, uint32_t vm, uint32_t tid,
			   const char *comm)
{
	struct vp_guest_task task = {
	    .time = 5, .id = VP_ID_guest_task, .vm = vm, .guest_pid = tid, .guest_tid = tid};

	strncpy(task.comm, comm, sizeof(task.comm) - 1);
	vp_stream_state_see(state, (const struct vp_record_header *)&task);
}

/* The records as "what:number:name", in their order. */
static void expect_state(const struct vp_stream_state *state, uint64_t count, const char *expected)
{
	struct vp_buffer out = {0}, text = {0};
	size_t at = 0;

	assert_int_equal(vp_stream_state_put(state, 77, &out), count);
	for (uint64_t i = 0; i < count; i++) {
		const struct vp_record_header *record = (const void *)(out.bytes + at);
		assert_int_equal(record->time, 77);
		if (record->id == VP_ID_task) {
			const struct vp_task *task = (const void *)record;
			vp_buffer_printf(&text, "task:%u/%u:%s ", task->pid, task->tid, task->comm);
			at += sizeof(*task);
		} else if (record->id == VP_ID_guest_task) {
			const struct vp_guest_task *task = (const void *)record;
			vp_buffer_printf(&text, "guest:%u/%u:%s ", task->vm, task->guest_tid,
					 task->comm);
			at += sizeof(*task);
		} else {
			assert_int_equal(record->id, VP_ID_account_loss);
			at += sizeof(struct vp_account_loss);
			vp_buffer_string(&text, "loss ");
		}
	}
	assert_int_equal(at, out.size);
	assert_string_equal(vp_buffer_text(&text), expected);
	vp_buffer_deinit(&out);
	vp_buffer_deinit(&text);
}

/* The last thread is the last record: samples that follow are its. One that has another's place
 * takes it. */
static void test_tasks(void **state)
{
	struct vp_stream_state known = {0};

	expect_state(&known, 0, "");
	see_task(&known, 40, 41, "first");
	see_task(&known, 30, 31, "second");
	see_task(&known, 50, 51, "third");
	see_task(&known, 40, 41, "renamed");
	expect_state(&known, 3, "task:30/31:second task:50/51:third task:40/41:renamed ");
	see_task(&known, 60, 31 + VP_TRACE_NAMES, "in its place");
	see_task(&known, 50, 51, "third");
	VP_AUTO_FREE char *expected = vp_format(
	    "task:60/%u:in its place task:40/41:renamed task:50/51:third ", 31 + VP_TRACE_NAMES);
	expect_state(&known, 3, expected);
	vp_stream_state_deinit(&known);
	expect_state(&known, 0, "");
}

/* Threads of guests may have the same numbers; what the account lost is the last count. */
static void test_guests_and_losses(void **state)
{
	struct vp_stream_state known = {0};
	struct vp_account_loss loss = {.time = 5, .id = VP_ID_account_loss};

	see_guest_task(&known, 1000, 7, "one");
	see_guest_task(&known, 1000, 7, "one again");
	expect_state(&known, 1, "guest:1000/7:one again ");
	see_guest_task(&known, 2000, 7, "other");
	struct vp_buffer out = {0};
	assert_int_equal(vp_stream_state_put(&known, 1, &out), 2);
	vp_buffer_deinit(&out);
	vp_stream_state_see(&known, (const struct vp_record_header *)&loss);
	assert_int_equal(vp_stream_state_put(&known, 1, &out), 3);
	const struct vp_record_header *first = (const void *)out.bytes;
	assert_int_equal(first->id, VP_ID_account_loss);
	vp_buffer_deinit(&out);
	/* What says nothing for later is not kept. */
	struct vp_host_sample sample = {.id = VP_ID_host_sample};
	vp_stream_state_see(&known, (const struct vp_record_header *)&sample);
	assert_int_equal(vp_stream_state_put(&known, 1, &out), 3);
	vp_buffer_deinit(&out);
	vp_stream_state_deinit(&known);
}

/* A copy goes its own way. */
static void test_copy(void **state)
{
	struct vp_stream_state known = {0};

	struct vp_stream_state empty = vp_stream_state_copy(&known);
	see_task(&known, 40, 41, "first");
	see_task(&known, 30, 31, "second");
	see_guest_task(&known, 1000, 7, "one");
	struct vp_stream_state copy = vp_stream_state_copy(&known);
	see_task(&known, 40, 41, "renamed");
	see_guest_task(&known, 1000, 7, "another");
	expect_state(&empty, 0, "");
	expect_state(&copy, 3, "guest:1000/7:one task:40/41:first task:30/31:second ");
	expect_state(&known, 3, "guest:1000/7:another task:30/31:second task:40/41:renamed ");
	vp_stream_state_deinit(&known);
	expect_state(&copy, 3, "guest:1000/7:one task:40/41:first task:30/31:second ");
	vp_stream_state_deinit(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tasks),
	    cmocka_unit_test(test_guests_and_losses),
	    cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
