/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/stream_state.h"

#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "schema/trace_records.h"

/* Same number of names as in the trace's programs per pCPU: an evicted name is written again before
 * the thread's next event. */
enum { TASKS = VP_TRACE_NAMES, GUEST_TASKS = 4096 };

void vp_stream_state_deinit(struct vp_stream_state *state)
{
	free(state->tasks);
	free(state->guest_tasks);
	*state = (struct vp_stream_state){0};
}

static void *stream_state_copy_of(const void *records, size_t size)
{
	void *copy = records ? vp_alloc(size) : NULL;

	if (copy)
		memcpy(copy, records, size);
	return copy;
}

struct vp_stream_state vp_stream_state_copy(const struct vp_stream_state *state)
{
	struct vp_stream_state copy = *state;

	copy.tasks = stream_state_copy_of(state->tasks, TASKS * sizeof(*state->tasks));
	copy.guest_tasks =
	    stream_state_copy_of(state->guest_tasks, GUEST_TASKS * sizeof(*state->guest_tasks));
	return copy;
}

static void stream_state_see_task(struct vp_stream_state *state,
				  const struct vp_record_header *record)
{
	struct vp_task task;

	memcpy(&task, record, sizeof(task));
	if (!state->tasks)
		state->tasks = vp_alloc(TASKS * sizeof(*state->tasks));
	state->tasks[task.tid % TASKS] = task;
	state->last_tid = task.tid;
}

static void see_guest_task(struct vp_stream_state *state, const struct vp_record_header *record)
{
	struct vp_guest_task task;

	memcpy(&task, record, sizeof(task));
	if (!state->guest_tasks)
		state->guest_tasks = vp_alloc(GUEST_TASKS * sizeof(*state->guest_tasks));
	uint64_t hash = vp_hash64((uint64_t)task.vm << 32 | task.guest_tid);
	state->guest_tasks[hash % GUEST_TASKS] = task;
}

void vp_stream_state_see(struct vp_stream_state *state, const struct vp_record_header *record)
{
	switch (record->id) {
	case VP_ID_task:
		stream_state_see_task(state, record);
		break;
	case VP_ID_guest_task:
		see_guest_task(state, record);
		break;
	case VP_ID_account_loss:
		memcpy(&state->loss, record, sizeof(state->loss));
		break;
	}
}

/* Number of records: 1, or 0 without a record. */
static uint64_t stream_state_put(const void *record, size_t size, uint64_t now,
				 struct vp_buffer *out)
{
	const struct vp_record_header *header = record;

	if (!header->id)
		return 0;
	struct vp_record_header *own = vp_buffer_extend(out, size);
	memcpy(own, record, size);
	own->time = now;
	return 1;
}

uint64_t vp_stream_state_put(const struct vp_stream_state *state, uint64_t now,
			     struct vp_buffer *out)
{
	uint64_t n = stream_state_put(&state->loss, sizeof(state->loss), now, out);
	uint32_t last = state->last_tid % TASKS;

	for (size_t i = 0; state->guest_tasks && i < GUEST_TASKS; i++)
		n += stream_state_put(&state->guest_tasks[i], sizeof(state->guest_tasks[i]), now,
				      out);
	for (size_t i = 0; state->tasks && i < TASKS; i++)
		if (i != last)
			n += stream_state_put(&state->tasks[i], sizeof(state->tasks[i]), now, out);
	/* Thread of the following samples. */
	if (state->tasks)
		n += stream_state_put(&state->tasks[last], sizeof(state->tasks[last]), now, out);
	return n;
}
