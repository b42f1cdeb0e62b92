/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampling programs copy guests' user stacks into the records. Here, readers of guest memory
 * unwind them, and call chains replace the copies. No stack contents are passed on. */
#include "base/macros.h"
#include "collect/guests/guest_watch.h"
#include "collect/programs/sampler.h"
#include "guestreader/stack_job.h"
#include "schema/chain_end.h"
#include "schema/chain_frames.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "schema/user_stack.h"
#include "session/instrument.h"
#include "session/instrument_profile_private.h"

#include <string.h>

/* Maximum time that samples wait for unwinding: for the reader's other work, and for each stack. A
 * stack of 60 frames takes about 0.5 ms on a slow CPU. After that they have the chain by frame
 * pointers. */
enum { WAIT_MS = 20, WAIT_PER_STACK_MS = 1 };
/* Upper limit of user space with 5 levels of page tables. */
#define USER_END (1ULL << 56)

_Static_assert(sizeof(struct vp_user_stack) - VP_USER_STACK_BYTES + VP_USER_STACK_LEAST >=
		   VP_CHAIN_LONGEST / VP_CHAIN_FRAMES_PER_RECORD * sizeof(struct vp_chain_frames),
	       "a chain has the place of its copy");

/* A part of the records with at most VP_STACK_JOBS stacks. */
struct stacks_part {
	char *begin, *end;
	const struct vp_stack_job *jobs[VP_STACK_JOBS]; /* of its stacks; NULL: none */
	unsigned count;
};

static struct vp_record_header *header_at(char *at)
{
	return (void *)at;
}

/* Whether it is a record that is not written. */
static bool is_transient(const struct vp_record_header *header)
{
	return header->id == VP_ID_USER_STACK || header->id == VP_ID_INTERPRETED;
}

/* Starts unwinding of as many stacks as there are jobs. */
static void request_chains(struct vp_profile_instrument *profile, char *end,
			   struct stacks_part *part)
{
	struct vp_guest_watch *watch = vp_session_guest_watch(profile->base.session);
	const struct vp_interpreted *interpreted = NULL;

	part->count = 0;
	for (part->end = part->begin; part->end < end;) {
		const struct vp_record_header *header = header_at(part->end);
		if (part->count == VP_STACK_JOBS && is_transient(header))
			break;
		if (header->id == VP_ID_USER_STACK)
			part->jobs[part->count++] =
			    watch
				? vp_guest_watch_stack(watch, (const void *)part->end, interpreted)
				: NULL;
		interpreted = header->id == VP_ID_INTERPRETED ? (const void *)part->end : NULL;
		part->end += vp_record_length(header);
	}
	if (watch && part->count)
		vp_guest_watch_unwind(watch, WAIT_MS + WAIT_PER_STACK_MS * part->count);
}

/* Number of frames found by the job; 0: none, or not finished. */
static uint32_t frames_of(const struct vp_stack_job *job)
{
	uint32_t count = job ? __atomic_load_n(&job->count, __ATOMIC_ACQUIRE) : 0;

	return count < VP_CHAIN_LONGEST ? count : VP_CHAIN_LONGEST;
}

struct found_chain {
	const uint64_t *ips;
	uint32_t count;
	uint16_t end, flags;
};

/* Writes the chain as records to `to`, which needs less space than the stack did; returns the
 * end. */
static char *put_chain(const struct vp_user_stack *stack, const struct found_chain *chain, char *to)
{
	const uint16_t end = chain->end < VP_CHAIN_GOES_ON ? chain->end : VP_CHAIN_FAILED;
	struct vp_chain_frames record = {
	    .time = stack->time,
	    .id = VP_ID_chain_frames,
	    .mode = VP_MODE_GUEST_USER,
	    .tid = stack->tid,
	    .flags = chain->flags &
		     (VP_CHAIN_BY_TABLES | VP_CHAIN_READ_LATER | VP_CHAIN_LINK | VP_CHAIN_GUESSED)};

	for (uint32_t at = 0; at < chain->count; at += record.count, to += sizeof(record)) {
		uint32_t left = chain->count - at;
		bool last = left <= VP_CHAIN_FRAMES_PER_RECORD;
		record.count = (uint16_t)(last ? left : VP_CHAIN_FRAMES_PER_RECORD);
		record.end = last ? end : VP_CHAIN_GOES_ON;
		memset(record.ips, 0, sizeof(record.ips));
		memcpy(record.ips, chain->ips + at, record.count * sizeof(*record.ips));
		memcpy(to, &record, sizeof(record));
	}
	return to;
}

/* Reads the caller's frame pointer and the return address; false: not in the copy. */
static bool read_frame(const struct vp_user_stack *stack, uint64_t bp, uint64_t frame[2])
{
	enum { SIZE = 2 * sizeof(*frame) };
	uint64_t at = bp - stack->from;

	if (stack->bytes < SIZE || stack->bytes > sizeof(stack->stack) || at > stack->bytes - SIZE)
		return false;
	memcpy(frame, stack->stack + at, SIZE);
	return true;
}

/* Walks the frame pointers in a copy of x86-64, as walk_user_frames() of the sampling program does
 * in the guest's memory. Returns the number of addresses. */
static uint32_t walk_copy(const struct vp_user_stack *stack, uint64_t ips[VP_CHAIN_FRAMES],
			  enum vp_chain_end *end)
{
	uint64_t bp = stack->registers[VP_USER_X86_BP], above = stack->registers[VP_USER_X86_SP];
	uint32_t count = 0;

	ips[count++] = stack->registers[VP_USER_X86_IP];
	while (count < VP_CHAIN_FRAMES) {
		uint64_t frame[2];
		*end = bp ? VP_CHAIN_NO_FRAME : VP_CHAIN_WHOLE;
		if (!bp || bp % sizeof(bp) || bp < above || bp >= USER_END)
			return count;
		*end = VP_CHAIN_UNREADABLE;
		if (!read_frame(stack, bp, frame))
			return count;
		*end = frame[0] ? VP_CHAIN_NO_FRAME : VP_CHAIN_WHOLE;
		if (!frame[1] || frame[1] >= USER_END)
			return count;
		ips[count++] = frame[1];
		above = bp + sizeof(frame);
		bp = frame[0];
	}
	*end = VP_CHAIN_TOO_DEEP;
	return count;
}

/* Writes the chain by frame pointers of a stack that was not unwound; returns the end. */
static char *put_pointer_chain(const struct vp_user_stack *copy, char *to)
{
	/* The chain may overwrite the stack: only the header is needed then. */
	struct vp_user_stack stack;
	uint64_t ips[VP_CHAIN_FRAMES];
	enum vp_chain_end end;
	uint32_t count = walk_copy(copy, ips, &end);
	const struct found_chain chain = {.ips = ips, .count = count, .end = (uint16_t)end};

	memcpy(&stack, copy, offsetof(struct vp_user_stack, registers));
	return put_chain(&stack, &chain, to);
}

/* Whether the record is part of a chain that the job's chain replaces. */
static bool is_replaced(const struct vp_record_header *header, const struct vp_user_stack *by)
{
	const struct vp_chain_frames *frames = (const void *)header;

	return by->time && header->id == VP_ID_chain_frames && frames->mode == VP_MODE_GUEST_USER &&
	       frames->tid == by->tid && frames->time == by->time;
}

/* Notes how much of the stack was needed; before its process is known, that is not known. */
static void note_need(struct vp_profile_instrument *profile, const struct vp_user_stack *stack,
		      const struct vp_stack_job *job)
{
	enum { USUAL = 4096 };
	uint32_t needed = frames_of(job) ? job->needed : USUAL;

	if (profile->sampler)
		vp_sampler_note_stack(profile->sampler, stack->as_root, needed);
}

/* Moves the part's records to `to`, with chains instead of stacks; returns the end. */
static char *replace_stacks(struct vp_profile_instrument *profile, const struct stacks_part *part,
			    char *to)
{
	struct vp_user_stack stack = {.time = 0}; /* only the header is used */
	unsigned number = 0;

	for (char *at = part->begin; at < part->end;) {
		const struct vp_record_header *header = header_at(at);
		size_t size = vp_record_length(header);
		if (header->id == VP_ID_USER_STACK) {
			const struct vp_stack_job *job = part->jobs[number++];
			const uint32_t count = frames_of(job);
			note_need(profile, (const void *)at, job);
			memcpy(&stack, header, offsetof(struct vp_user_stack, registers));
			if (count)
				to = put_chain(&stack,
					       &(const struct found_chain){job->ips, count,
									   job->end, job->flags},
					       to);
			else if (!stack.has_frames)
				to = put_pointer_chain((const void *)at, to);
			else
				stack.time = 0;
		} else if (!is_transient(header) && !is_replaced(header, &stack)) {
			memmove(to, at, size);
			to += size;
		}
		at += size;
	}
	return to;
}

size_t vp_profile_unwind_stacks(struct vp_profile_instrument *profile, char *records, size_t size)
{
	struct stacks_part part = {.end = records};
	char *to = records;

	while (part.end < records + size) {
		part.begin = part.end;
		request_chains(profile, records + size, &part);
		to = replace_stacks(profile, &part, to);
	}
	return (size_t)(to - records);
}
