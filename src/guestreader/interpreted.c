/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestreader/interpreted.h"

#include <stdbool.h>
#include <string.h>

#include "schema/chain_end.h"
#include "schema/user_stack.h"

/* A chain in progress. */
struct merged {
	uint64_t ips[VP_CHAIN_LONGEST];
	uint32_t count;
	bool full;
};

static void merged_add(struct merged *merged, uint64_t ip)
{
	if (merged->count == VP_CHAIN_LONGEST)
		merged->full = true;
	else
		merged->ips[merged->count++] = ip;
}

/* Number of frames in the group that starts at frame `at`. */
static uint32_t group_size(const struct vp_interpreted *frames, uint32_t at)
{
	uint32_t size = 0;

	while (at + size < frames->count)
		if (frames->frames[at + size++] & VP_INTERPRETED_ENTRY)
			break;
	return size;
}

static uint32_t count_groups(const struct vp_interpreted *frames)
{
	uint32_t count = 0;

	for (uint32_t at = 0; at < frames->count; at += group_size(frames, at))
		count++;
	return count;
}

static bool is_loop(uint64_t ip, uint32_t number, uint64_t low, uint64_t high)
{
	/* All addresses except the first are return addresses. */
	ip = (ip & ~VP_CHAIN_GUESSED_IP) - (number != 0);
	return ip >= low && ip < high;
}

/* Adds the group in place of the loop's frame `ip`. */
static void add_group(struct merged *merged, const struct vp_interpreted *frames, uint32_t at,
		      uint32_t size, uint64_t ip)
{
	for (uint32_t i = 0; i < size; i++)
		merged_add(merged, ((frames->frames[at + i] & ~7ULL) + (merged->count != 0)) |
				       (i ? 0 : ip & VP_CHAIN_GUESSED_IP));
}

void vp_interpreted_merge(struct vp_stack_job *job, uint64_t low, uint64_t high)
{
	struct vp_interpreted frames = job->interpreted;
	struct merged merged = {.count = 0};
	uint32_t count = job->count < VP_CHAIN_LONGEST ? job->count : VP_CHAIN_LONGEST;
	uint32_t loops = 0, at = 0;

	if (frames.count > VP_INTERPRETED_FRAMES)
		frames.count = VP_INTERPRETED_FRAMES;
	for (uint32_t i = 0; i < count; i++)
		loops += is_loop(job->ips[i], i, low, high);
	uint32_t groups = count_groups(&frames);
	bool whole = job->end == VP_CHAIN_WHOLE;
	/* Innermost calls of the function without interpreter frames: not pushed yet, or already
	 * popped. */
	uint32_t without = whole && loops > groups ? loops - groups : 0;
	for (uint32_t extra = whole && groups > loops ? groups - loops : 0; extra; extra--)
		at += group_size(&frames, at);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t size = group_size(&frames, at);
		if (!is_loop(job->ips[i], i, low, high) || !size) {
			merged_add(&merged, job->ips[i]);
		} else if (without) {
			without--;
			merged_add(&merged, job->ips[i]);
		} else {
			add_group(&merged, &frames, at, size, job->ips[i]);
			at += size;
		}
	}
	memcpy(job->ips, merged.ips, merged.count * sizeof(*merged.ips));
	if (merged.full)
		job->end = VP_CHAIN_TOO_DEEP;
	job->count = merged.count;
}
