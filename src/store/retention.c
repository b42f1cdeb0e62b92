/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/retention.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/vec.h"
#include "schema/vm.h"

uint64_t vp_age_clock_now(struct vp_age_clock *clock, uint64_t realtime, uint64_t boottime)
{
	if (!clock->boottime)
		*clock = (struct vp_age_clock){realtime, boottime};
	uint64_t lasted = clock->realtime + (boottime - clock->boottime);
	return realtime < lasted ? realtime : lasted;
}

uint64_t vp_kept_age(const struct vp_kept *kept, const struct vp_age_moment *now)
{
	uint64_t end = vp_kept_end(kept);
	uint64_t age = now->realtime > end ? now->realtime - end : 0;

	if (kept->problem || !kept->boot || !kept->boot[0] || strcmp(kept->boot, now->boot) != 0)
		return age;
	uint64_t least = now->monotonic > kept->end ? now->monotonic - kept->end : 0;
	uint64_t most = least + (now->boottime - now->monotonic);
	return age < least ? least : age > most ? most : age;
}

uint64_t vp_history_bytes(const vp_history *history)
{
	uint64_t bytes = 0;

	vp_vec_each (history, kept)
		if (kept->kind != VP_KEPT_FOREIGN)
			bytes += kept->bytes;
	return bytes;
}

uint64_t vp_history_burst(const vp_history *history)
{
	uint64_t most = 0;

	vp_vec_each (history, kept)
		if (kept->kind != VP_KEPT_FOREIGN && kept->names_bytes > most)
			most = kept->names_bytes;
	return most;
}

static bool may_go(const struct vp_kept *kept)
{
	return kept->kind != VP_KEPT_FOREIGN && !kept->is_open;
}

/* When it ended, on the clock by which the store is sorted. By its start, a snapshot of a flight
 * recorder would be older than recordings that ended before it was taken. */
static uint64_t sorted_end(const struct vp_kept *kept)
{
	return kept->sorted + (kept->problem ? 0 : kept->end - kept->start);
}

uint32_t vp_retention_next(const vp_history *history, const struct vp_retention *limits,
			   const struct vp_age_moment *now, uint64_t more, uint64_t disk,
			   enum vp_removal *why)
{
	uint32_t oldest = VP_NONE;

	*why = VP_REMOVE_NONE;
	for (uint32_t i = 0; i < history->count; i++) {
		const struct vp_kept *kept = &history->at[i];
		if (!may_go(kept))
			continue;
		if (kept->kind == VP_KEPT_REMAINS) {
			*why = VP_REMOVE_OLD;
			return i;
		}
		if (oldest == VP_NONE || sorted_end(kept) < sorted_end(&history->at[oldest]))
			oldest = i;
	}
	if (oldest == VP_NONE)
		return VP_NONE;
	if (limits->keep_bytes && vp_history_bytes(history) + more > limits->keep_bytes)
		*why = VP_REMOVE_SIZE;
	else if (limits->free_bytes && disk < limits->free_bytes + more)
		*why = VP_REMOVE_DISK;
	else if (limits->keep_ns && vp_kept_age(&history->at[oldest], now) > limits->keep_ns)
		*why = VP_REMOVE_OLD;
	return *why == VP_REMOVE_NONE ? VP_NONE : oldest;
}

struct vp_error *vp_history_remove(vp_history *history, uint32_t index)
{
	struct vp_kept *kept = &history->at[index];
	VP_AUTO_FREE char *going = vp_format("%s" VP_KEPT_REMOVED_SUFFIX, kept->path);

	if (kept->kind != VP_KEPT_REMAINS && rename(kept->path, going))
		return vp_error_errno(errno, "cannot remove '%s'", kept->path);
	vp_file_remove_all(kept->kind == VP_KEPT_REMAINS ? kept->path : going);
	free(kept->name);
	free(kept->path);
	free(kept->problem);
	free(kept->boot);
	vp_vms_deinit(&kept->vms);
	history->count--;
	memmove(kept, kept + 1, (history->count - index) * sizeof(*kept));
	return NULL;
}

const char *vp_removal_text(enum vp_removal why)
{
	static const char *const texts[] = {[VP_REMOVE_NONE] = "",
					    [VP_REMOVE_OLD] = "older than keep-for",
					    [VP_REMOVE_SIZE] = "the store is at keep-size",
					    [VP_REMOVE_DISK] = "the disk is at keep-free"};

	return texts[why];
}
