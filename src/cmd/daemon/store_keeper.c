/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits of the store: sizes, ages, free disk space. */
#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/daemon/vperfd.h"
#include "daemon/daemon_config.h"
#include "store/history.h"
#include "store/kept_findings.h"
#include "store/retention.h"

/* Maximum time between two scans of the whole store. */
#define REREAD_NS 60000000000ULL
/* Growth between checks that is assumed at first. */
#define GROWTH_LEAST (256ULL << 10)

static uint64_t free_bytes(const char *path)
{
	struct statvfs disk;

	return statvfs(path, &disk) ? UINT64_MAX : (uint64_t)disk.f_bavail * disk.f_frsize;
}

static struct vp_age_moment now_for_ages(struct vperfd *daemon)
{
	struct timespec booted;
	struct vp_clock_reading clock = vp_clock_read();

	clock_gettime(CLOCK_BOOTTIME, &booted);
	uint64_t boottime = (uint64_t)booted.tv_sec * 1000000000 + (uint64_t)booted.tv_nsec;
	return (struct vp_age_moment){.realtime =
					  vp_age_clock_now(&daemon->ages, clock.realtime, boottime),
				      .monotonic = clock.monotonic,
				      .boottime = boottime,
				      .boot = daemon->boot};
}

static uint64_t own_bytes(const struct vperfd *daemon, const char *name)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s", daemon->config.directory, name);

	return vp_disk_bytes(path);
}

static bool read_store(struct vperfd *daemon, uint64_t now)
{
	if (daemon->history_read && now - daemon->history_read < REREAD_NS) {
		vp_vec_each (&daemon->history, kept)
			if (kept->is_open)
				kept->bytes = vp_disk_bytes(kept->path);
		return true;
	}
	vp_history_deinit(&daemon->history);
	VP_AUTO_ERROR struct vp_error *error =
	    vp_history_read(daemon->config.directory, &daemon->history);
	if (error) {
		vperfd_say(vp_error_message(error));
		return false;
	}
	daemon->history_read = now;
	uint64_t realtime = now_for_ages(daemon).realtime, keep = daemon->config.keep_ns;
	if (keep && realtime > keep)
		vp_error_free(vp_kept_findings_trim(daemon->config.directory, realtime - keep));
	return true;
}

void vperfd_reread_store(struct vperfd *daemon)
{
	daemon->history_read = 0;
}

static void say_full(struct vperfd *daemon, enum vp_removal why)
{
	if (!daemon->said_full)
		VPERFD_SAY("%s, and nothing more can be removed", vp_removal_text(why));
	daemon->said_full = true;
}

/* Removes one entry; false: the store is within its limits, or nothing may be removed. */
static bool remove_one(struct vperfd *daemon, const struct vp_retention *limits, uint64_t more)
{
	enum vp_removal why;
	struct vp_age_moment now = now_for_ages(daemon);
	uint32_t index = vp_retention_next(&daemon->history, limits, &now, more,
					   free_bytes(daemon->config.directory), &why);

	if (index == VP_NONE)
		return false;
	VP_AUTO_FREE char *name = vp_strdup(daemon->history.at[index].name);
	VP_AUTO_ERROR struct vp_error *error = vp_history_remove(&daemon->history, index);
	if (error)
		vperfd_say(vp_error_message(error));
	else
		VPERFD_SAY("removed '%s': %s", name, vp_removal_text(why));
	daemon->said_full = false;
	return !error;
}

/* The largest growth between two checks so far, or what is written at once at a recording's end;
 * the next one may be as large. */
static uint64_t growth_of(struct vperfd *daemon, uint64_t bytes)
{
	if (daemon->bytes_then && bytes > daemon->bytes_then &&
	    bytes - daemon->bytes_then > daemon->grown)
		daemon->grown = bytes - daemon->bytes_then;
	uint64_t burst = vp_history_burst(&daemon->history);
	uint64_t most = daemon->grown > burst ? daemon->grown : burst;
	return most > GROWTH_LEAST ? most : GROWTH_LEAST;
}

void vperfd_keep_store(struct vperfd *daemon, uint64_t now)
{
	const struct vp_daemon_config *config = &daemon->config;
	const struct vp_retention limits = {config->keep_ns, config->keep_bytes,
					    config->free_bytes};

	if (!read_store(daemon, now))
		return;
	uint64_t others = own_bytes(daemon, VP_HISTORY_FLIGHT) +
			  own_bytes(daemon, VP_HISTORY_FINDINGS) +
			  own_bytes(daemon, VP_HISTORY_LOCK);
	uint64_t bytes = vp_history_bytes(&daemon->history) + others;
	uint64_t more = growth_of(daemon, bytes) + others;
	while (remove_one(daemon, &limits, more))
		;
	bytes = vp_history_bytes(&daemon->history) + others;
	daemon->bytes_then = bytes;
	if (config->keep_bytes && bytes > config->keep_bytes)
		say_full(daemon, VP_REMOVE_SIZE);
	else if (config->free_bytes && free_bytes(config->directory) < config->free_bytes)
		say_full(daemon, VP_REMOVE_DISK);
}
