/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies of stacks among records: none goes any further, and chains take their place. */
#include "unit.h"

#include <stdio.h>

#include "base/macros.h"
#include "collect/guests/guest_watch.h"
#include "schema/chain_frames.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "session/instrument_profile_private.h"

enum {
	VMM = 77,
	MAX_STACKS = 200,
	STACK_SIZE = sizeof(struct vp_user_stack) - VP_USER_STACK_BYTES + VP_USER_STACK_LEAST,
	FROM = 0x700000, /* guest address of copies */
};

/* The watch of the session: what the test says. */
static struct {
	bool exists, listens;
	unsigned stacks, requests, waiting, most;
	unsigned interpreted; /* stacks with frames of an interpreter */
	struct vp_stack_job jobs[VP_STACK_JOBS];
} watch;

struct vp_guest_watch *__wrap_vp_session_guest_watch(const struct vp_session *session);
struct vp_stack_job *__wrap_vp_guest_watch_stack(struct vp_guest_watch *self,
						 const struct vp_user_stack *stack,
						 const struct vp_interpreted *interpreted);
void __wrap_vp_guest_watch_unwind(struct vp_guest_watch *self, unsigned timeout_ms);

struct vp_guest_watch *__wrap_vp_session_guest_watch(const struct vp_session *session)
{
	(void)session;
	return watch.exists ? (struct vp_guest_watch *)(void *)&watch : NULL;
}

struct vp_stack_job *__wrap_vp_guest_watch_stack(struct vp_guest_watch *self,
						 const struct vp_user_stack *stack,
						 const struct vp_interpreted *interpreted)
{
	(void)self;
	assert_int_equal(stack->vm, VMM);
	watch.stacks++;
	if (interpreted) {
		assert_int_equal(interpreted->time, stack->time);
		assert_int_equal(interpreted->frames[1], 2 * stack->time);
		watch.interpreted++;
	}
	if (!watch.listens)
		return NULL;
	assert_true(watch.waiting < VP_STACK_JOBS);
	struct vp_stack_job *job = &watch.jobs[watch.waiting++];
	memcpy(&job->stack, stack, stack->size);
	job->count = 0;
	return job;
}

/* The sampler: what stacks needed. */
static struct {
	uint64_t root;
	uint32_t needed;
} noted[MAX_STACKS];
static unsigned n_noted;

void __wrap_vp_sampler_note_stack(struct vp_sampler *sampler, uint64_t as_root, uint32_t needed);

void __wrap_vp_sampler_note_stack(struct vp_sampler *sampler, uint64_t as_root, uint32_t needed)
{
	assert_ptr_equal(sampler, &noted);
	assert_true(n_noted < MAX_STACKS);
	noted[n_noted].root = as_root;
	noted[n_noted++].needed = needed;
}

/* A chain has as many frames as the stack's registers say, and their flags. */
void __wrap_vp_guest_watch_unwind(struct vp_guest_watch *self, unsigned timeout_ms)
{
	(void)self;
	assert_in_range(timeout_ms, 20 + watch.waiting, 20 + VP_STACK_JOBS);
	watch.requests++;
	for (unsigned i = 0; i < watch.waiting; i++) {
		struct vp_stack_job *job = &watch.jobs[i];
		job->count = (uint32_t)job->stack.registers[0];
		job->end = VP_CHAIN_NO_TABLE;
		job->flags = (uint16_t)(VP_CHAIN_BY_TABLES | 0x100 | job->stack.registers[1]);
		job->needed = (uint32_t)job->stack.registers[2];
		for (unsigned frame = 0; frame < VP_CHAIN_LONGEST; frame++)
			job->ips[frame] = job->stack.time * 1000 + frame;
	}
	watch.most = watch.waiting > watch.most ? watch.waiting : watch.most;
	watch.waiting = 0;
}

static struct vp_buffer records;

static void *put(size_t size)
{
	void *record = vp_buffer_extend(&records, size);

	memset(record, 0, size);
	return record;
}

static void put_stack(uint64_t time, uint32_t tid, unsigned frames)
{
	struct vp_user_stack *stack = put(STACK_SIZE);

	stack->time = time;
	stack->id = VP_ID_USER_STACK;
	stack->size = STACK_SIZE;
	stack->vm = VMM;
	stack->tid = tid;
	stack->registers[0] = frames;
	stack->has_frames = true;
}

/* A copy without a chain by frame pointers after it: of a frame at `bp`, which leads to `next`. */
static void put_frame(uint64_t bp, uint64_t next, uint64_t ip)
{
	const uint64_t frame[] = {next, ip};

	put_stack(5, 1, 0);
	struct vp_user_stack *stack = (void *)(records.bytes + records.size - STACK_SIZE);
	stack->has_frames = false;
	stack->from = FROM;
	stack->bytes = VP_USER_STACK_LEAST;
	stack->registers[VP_USER_X86_BP] = bp;
	stack->registers[VP_USER_X86_SP] = FROM + 0x80;
	stack->registers[VP_USER_X86_IP] = 0x1234;
	if (bp - FROM <= VP_USER_STACK_LEAST - sizeof(frame))
		memcpy(stack->stack + (bp - FROM), frame, sizeof(frame));
}

static void put_interpreted(uint64_t time)
{
	struct vp_interpreted *frames = put(sizeof(*frames));

	frames->time = time;
	frames->id = VP_ID_INTERPRETED;
	frames->size = sizeof(*frames);
	frames->count = 2;
	frames->frames[1] = 2 * time;
}

static void put_frames(uint64_t time, uint32_t tid, uint16_t mode)
{
	struct vp_chain_frames *frames = put(sizeof(*frames));

	frames->time = time;
	frames->id = VP_ID_chain_frames;
	frames->tid = tid;
	frames->mode = mode;
	frames->count = 1;
	frames->ips[0] = 1;
}

static void put_sample(uint64_t time, uint32_t tid)
{
	struct vp_guest_sample *sample = put(sizeof(*sample));

	sample->time = time;
	sample->id = VP_ID_guest_sample;
	sample->tid = tid;
}

static void replace(void)
{
	static struct vp_profile_instrument profile;

	profile.sampler = (struct vp_sampler *)(void *)&noted;
	n_noted = 0;
	watch.stacks = watch.requests = watch.most = watch.interpreted = 0;
	records.size = vp_profile_unwind_stacks(&profile, records.bytes, records.size);
}

/* Record `number` from the start. */
static const union vp_any_record *record_at(unsigned number)
{
	size_t at = 0;

	for (;; number--) {
		assert_true(at < records.size);
		const union vp_any_record *record = (void *)(records.bytes + at);
		assert_true(vp_record_size(record->header.id) > 0); /* one of the schema */
		if (!number)
			return record;
		at += vp_record_size(record->header.id);
	}
}

static void test_replaced(void **state)
{
	(void)state;
	watch = (__typeof__(watch)){.exists = true, .listens = true};
	records.size = 0;
	put_frames(5, 1, VP_MODE_KERNEL);
	put_stack(5, 1, 10);
	put_frames(5, 1, VP_MODE_GUEST_USER); /* two records of one chain */
	put_frames(5, 1, VP_MODE_GUEST_USER);
	put_sample(5, 1);
	put_frames(6, 1, VP_MODE_GUEST_USER); /* the next sample's */
	put_sample(6, 1);
	replace();
	assert_int_equal(watch.requests, 1);
	assert_int_equal(record_at(0)->chain_frames.mode, VP_MODE_KERNEL);
	const struct vp_chain_frames *frames = &record_at(1)->chain_frames;
	assert_int_equal(frames->count, 8);
	assert_int_equal(frames->end, VP_CHAIN_GOES_ON);
	assert_int_equal(frames->flags, VP_CHAIN_BY_TABLES); /* nothing that is unknown */
	assert_int_equal(frames->tid, 1);
	assert_int_equal(frames->ips[7], 5007);
	frames = &record_at(2)->chain_frames;
	assert_int_equal(frames->count, 2);
	assert_int_equal(frames->end, VP_CHAIN_NO_TABLE);
	assert_int_equal(frames->ips[1], 5009);
	assert_int_equal(frames->ips[2], 0);
	assert_int_equal(record_at(3)->header.id, VP_ID_guest_sample);
	assert_int_equal(record_at(4)->chain_frames.time, 6);
	assert_int_equal(record_at(5)->header.id, VP_ID_guest_sample);
	assert_int_equal(records.size, 4 * sizeof(*frames) + 2 * sizeof(struct vp_guest_sample));
}

/* The sampler learns what stacks needed. */
static void test_needs(void **state)
{
	static const struct {
		unsigned frames, flags;
		uint64_t root;
		uint32_t needed, noted;
	} stacks[] = {{3, 0, 0x1000, 100, 100},
		      {3, VP_CHAIN_READ_LATER, 0x2000, 9000, 9000},
		      {0, VP_CHAIN_READ_LATER, 0x3000, 9000, 4096}, /* no chain */
		      {3, VP_CHAIN_READ_LATER | VP_CHAIN_GUESSED, 0x4000, 20000, 20000}};

	(void)state;
	watch = (__typeof__(watch)){.exists = true, .listens = true};
	records.size = 0;
	for (size_t i = 0; i < VP_ARRAY_SIZE(stacks); i++) {
		put_stack(5 + i, 1, stacks[i].frames);
		struct vp_user_stack *stack = (void *)(records.bytes + records.size - STACK_SIZE);
		stack->registers[1] = stacks[i].flags;
		stack->registers[2] = stacks[i].needed;
		stack->as_root = stacks[i].root;
		put_sample(5 + i, 1);
	}
	replace();
	assert_int_equal(n_noted, VP_ARRAY_SIZE(stacks));
	for (size_t i = 0; i < VP_ARRAY_SIZE(stacks); i++) {
		assert_int_equal(noted[i].root, stacks[i].root);
		assert_int_equal(noted[i].needed, stacks[i].noted);
	}
	assert_int_equal(record_at(0)->chain_frames.flags, VP_CHAIN_BY_TABLES);
	assert_int_equal(record_at(5)->chain_frames.flags,
			 VP_CHAIN_BY_TABLES | VP_CHAIN_READ_LATER | VP_CHAIN_GUESSED);
}

/* Without a reader, or a chain of it, frame pointers have to do; the stack is gone. */
static void test_not_unwound(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 3; how++) {
		watch = (__typeof__(watch)){.exists = how > 0, .listens = how > 1};
		records.size = 0;
		put_stack(5, 1, 0);
		put_frames(5, 1, VP_MODE_GUEST_USER);
		put_sample(5, 1);
		replace();
		assert_int_equal(watch.stacks, how > 0);
		assert_int_equal(record_at(0)->chain_frames.ips[0], 1);
		assert_int_equal(record_at(1)->header.id, VP_ID_guest_sample);
		assert_int_equal(records.size,
				 sizeof(struct vp_chain_frames) + sizeof(struct vp_guest_sample));
	}
}

/* Where the sampling program did not walk the frame pointers, the copy is walked. */
static void test_by_pointers(void **state)
{
	static const struct {
		uint64_t bp, next, ip;
		unsigned count, end;
	} cases[] = {
	    {FROM + 0x100, 0, 0x4321, 2, VP_CHAIN_WHOLE},
	    {FROM + 0x80, 0, 0x4321, 2, VP_CHAIN_WHOLE},
	    {FROM + VP_USER_STACK_LEAST - 16, 0, 0x4321, 2, VP_CHAIN_WHOLE},
	    {FROM + VP_USER_STACK_LEAST - 8, 0, 0x4321, 1, VP_CHAIN_UNREADABLE},
	    {FROM + 0x100, FROM + 0x1000, 0x4321, 2, VP_CHAIN_UNREADABLE},
	    {FROM + 0x100, FROM + 0x108, 0x4321, 2, VP_CHAIN_NO_FRAME},
	    {FROM + 0x100, FROM + 0x113, 0x4321, 2, VP_CHAIN_NO_FRAME},
	    {FROM + 0x78, 0, 0x4321, 1, VP_CHAIN_NO_FRAME}, /* below the stack pointer */
	    {1ULL << 56, 0, 0x4321, 1, VP_CHAIN_NO_FRAME},
	    {FROM + 0x100, FROM + 0x200, 0, 1, VP_CHAIN_NO_FRAME},
	    {FROM + 0x100, FROM + 0x200, 1ULL << 56, 1, VP_CHAIN_NO_FRAME},
	    {FROM + 0x100, 0, 0, 1, VP_CHAIN_WHOLE},
	    {0, 0, 0, 1, VP_CHAIN_WHOLE},
	};

	(void)state;
	for (unsigned i = 0; i < 3 * VP_ARRAY_SIZE(cases); i++) {
		watch = (__typeof__(watch)){.exists = i % 3 > 0, .listens = i % 3 > 1};
		records.size = 0;
		put_frame(cases[i / 3].bp, cases[i / 3].next, cases[i / 3].ip);
		put_sample(5, 1);
		replace();
		const struct vp_chain_frames *frames = &record_at(0)->chain_frames;
		assert_int_equal(frames->count, cases[i / 3].count);
		assert_int_equal(frames->end, cases[i / 3].end);
		assert_int_equal(frames->flags, 0);
		assert_int_equal(frames->tid, 1);
		assert_int_equal(frames->ips[0], 0x1234);
		assert_int_equal(frames->ips[1], frames->count > 1 ? 0x4321 : 0);
		assert_int_equal(record_at(1)->header.id, VP_ID_guest_sample);
		assert_int_equal(records.size, sizeof(*frames) + sizeof(struct vp_guest_sample));
	}
}

/* A copy full of frames. */
static void test_many_pointers(void **state)
{
	enum { FRAMES = VP_USER_STACK_LEAST / 16 }; /* 64: without the innermost address */

	(void)state;
	watch = (__typeof__(watch)){.exists = false};
	records.size = 0;
	put_frame(FROM, FROM + 16, 0x1000);
	struct vp_user_stack *stack = (void *)records.bytes;
	stack->registers[VP_USER_X86_SP] = FROM;
	for (uint64_t i = 0; i < FRAMES; i++) {
		const uint64_t frame[] = {FROM + 16 * (i + 1), 0x1000 + i};
		memcpy(stack->stack + 16 * i, frame, sizeof(frame));
	}
	put_sample(5, 1);
	replace();
	for (unsigned i = 0; i < VP_CHAIN_FRAMES; i++) {
		const struct vp_chain_frames *frames = &record_at(i / 8)->chain_frames;
		assert_int_equal(frames->count, 8);
		assert_int_equal(frames->end, i / 8 == 7 ? VP_CHAIN_TOO_DEEP : VP_CHAIN_GOES_ON);
		assert_int_equal(frames->ips[i % 8], i ? 0xfff + i : 0x1234);
	}
	assert_int_equal(record_at(8)->header.id, VP_ID_guest_sample);
}

/* More stacks than a request has, with the longest chains, and one that claims to be longer. */
static void test_many(void **state)
{
	enum { RECORDS = VP_CHAIN_LONGEST / VP_CHAIN_FRAMES_PER_RECORD };

	(void)state;
	watch = (__typeof__(watch)){.exists = true, .listens = true};
	records.size = 0;
	for (unsigned i = 0; i < MAX_STACKS; i++) {
		put_stack(i + 1, 1, i == 7 ? 1U << 30 : VP_CHAIN_LONGEST);
		put_sample(i + 1, 1);
	}
	replace();
	assert_int_equal(watch.stacks, MAX_STACKS);
	assert_int_equal(watch.requests, (MAX_STACKS + VP_STACK_JOBS - 1) / VP_STACK_JOBS);
	assert_int_equal(watch.most, VP_STACK_JOBS);
	assert_int_equal(records.size, MAX_STACKS * (RECORDS * sizeof(struct vp_chain_frames) +
						     sizeof(struct vp_guest_sample)));
	for (unsigned i = 0; i < MAX_STACKS; i++) {
		const struct vp_chain_frames *last =
		    &record_at((RECORDS + 1) * i + RECORDS - 1)->chain_frames;
		assert_int_equal(last->time, i + 1);
		assert_int_equal(last->ips[7], (i + 1) * 1000 + VP_CHAIN_LONGEST - 1);
		assert_int_equal(record_at((RECORDS + 1) * i + RECORDS)->header.id,
				 VP_ID_guest_sample);
	}
}

/* Frames of an interpreter belong to the next stack, also if that is in the next request. */
static void test_interpreted(void **state)
{
	(void)state;
	watch = (__typeof__(watch)){.exists = true, .listens = true};
	records.size = 0;
	for (unsigned i = 0; i < MAX_STACKS; i++) {
		if (i % 2 == 0)
			put_interpreted(i + 1);
		put_stack(i + 1, 1, 1);
		put_sample(i + 1, 1);
	}
	put_interpreted(MAX_STACKS + 1); /* its stack could not be read */
	put_sample(MAX_STACKS + 1, 1);
	replace();
	assert_int_equal(watch.stacks, MAX_STACKS);
	assert_int_equal(watch.interpreted, (MAX_STACKS + 1) / 2);
	assert_int_equal(records.size, MAX_STACKS * sizeof(struct vp_chain_frames) +
					   (MAX_STACKS + 1) * sizeof(struct vp_guest_sample));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_replaced),      cmocka_unit_test(test_needs),
	    cmocka_unit_test(test_not_unwound),   cmocka_unit_test(test_by_pointers),
	    cmocka_unit_test(test_many_pointers), cmocka_unit_test(test_many),
	    cmocka_unit_test(test_interpreted),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	vp_buffer_deinit(&records);
	return failed;
}
