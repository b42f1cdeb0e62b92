/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/history.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_reader.h"

#define SECOND 1000000000ULL
enum { REMAINS_SECONDS = 30 };
/* CLOCK_MONOTONIC of a host that has run for 100 years, ns. */
#define MOST_UPTIME (SECOND * 86400 * 366 * 100)

const char *vp_kept_kind_name(enum vp_kept_kind kind)
{
	static const char *const names[] = {[VP_KEPT_RECORDING] = "recording",
					    [VP_KEPT_SNAPSHOT] = "snapshot",
					    [VP_KEPT_SAMPLES] = "samples",
					    [VP_KEPT_REMAINS] = "remains",
					    [VP_KEPT_FOREIGN] = "foreign"};

	return names[kind];
}

uint64_t vp_disk_bytes(const char *path)
{
	VP_AUTO_FREE char *root = vp_strdup(path);
	char *const paths[] = {root, NULL};
	FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	uint64_t bytes = 0;

	for (FTSENT *entry; tree && (entry = fts_read(tree));)
		if (entry->fts_info != FTS_DP && entry->fts_info != FTS_NS &&
		    entry->fts_info != FTS_ERR)
			bytes += (uint64_t)entry->fts_statp->st_blocks * 512;
	if (tree)
		fts_close(tree);
	return bytes;
}

bool vp_kept_is_locked(const char *path)
{
	VP_AUTO_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	/* The lock is released with the descriptor. */
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
}

/* Reads "20261126T055305Z" at the start of a name; 0 if it has no time. *rest follows it. */
static uint64_t history_read_time(const char *name, const char **rest)
{
	struct tm date = {0};
	int used = 0;

	if (strspn(name, "0123456789") != 8 ||
	    sscanf(name, "%4d%2d%2dT%2d%2d%2dZ%n", &date.tm_year, &date.tm_mon, &date.tm_mday,
		   &date.tm_hour, &date.tm_min, &date.tm_sec, &used) != 6 ||
	    used != 16)
		return 0;
	date.tm_year -= 1900;
	date.tm_mon--;
	*rest = name + used;
	if (**rest == '-') /* the second one of that time, … */
		*rest += 1 + strspn(*rest + 1, "0123456789");
	time_t time = timegm(&date);
	return time > 0 ? (uint64_t)time * SECOND : 0;
}

static bool history_ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), part = strlen(end);

	return size >= part && !strcmp(text + size - part, end);
}

/* The kind, from the name that vperfd would have chosen. */
static enum vp_kept_kind kind_of_name(const char *name, uint64_t *time)
{
	const char *rest = "";

	*time = history_read_time(name, &rest);
	if (!*time)
		return VP_KEPT_FOREIGN;
	if (!*rest)
		return VP_KEPT_RECORDING;
	if (!strcmp(rest, VP_KEPT_FLIGHT_SUFFIX))
		return VP_KEPT_SNAPSHOT;
	if (!strcmp(rest, VP_KEPT_SAMPLES_SUFFIX))
		return VP_KEPT_SAMPLES;
	return history_ends_with(rest, VP_KEPT_REMOVED_SUFFIX) || history_ends_with(rest, ".new")
		   ? VP_KEPT_REMAINS
		   : VP_KEPT_FOREIGN;
}

/* Time of the last packet of all streams, or `start`. */
static uint64_t last_time(const char *path, uint64_t start)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", path);
	vp_stream_readers streams = {0};
	uint64_t last = start, time;
	struct vp_error *error = vp_trace_open(host, VP_STREAMS_ALL, &streams);

	vp_error_free(error);
	vp_vec_each (&streams, stream)
		if (vp_stream_time_near(*stream, vp_stream_size(*stream), &time) && time > last)
			last = time;
	vp_trace_close(&streams);
	return last;
}

static bool has_metadata(const char *path)
{
	VP_AUTO_FREE char *file = vp_format("%s/host/metadata", path);
	struct stat status;

	return !stat(file, &status) && S_ISREG(status.st_mode) && status.st_size;
}

/* The reason that the recording has no place in the order of time, or NULL. */
static const char *misplaced(const char *path, const struct vp_recording *about)
{
	if (!about->realtime_offset && !has_metadata(path))
		return "its date is not known: the metadata of its trace cannot be read";
	if (about->start > MOST_UPTIME ||
	    (about->end && (about->end < about->start || about->end > MOST_UPTIME)))
		return "its start or end cannot be right";
	return NULL;
}

static void history_read_recording(struct vp_kept *kept)
{
	struct vp_recording about;
	struct vp_error *error = vp_recording_read(kept->path, &about);

	if (error) {
		kept->problem = vp_strdup(vp_error_message(error));
		vp_error_free(error);
		return;
	}
	const char *problem = misplaced(kept->path, &about);
	if (problem) {
		kept->problem = vp_format("'%s': %s", kept->path, problem);
		vp_recording_deinit(&about);
		return;
	}
	kept->start = about.start;
	kept->realtime_offset = about.realtime_offset;
	kept->boot = VP_TAKE(about.boot);
	kept->is_interrupted = !about.end && !kept->is_open;
	kept->end = about.end ? about.end : last_time(kept->path, about.start);
	vp_recording_deinit(&about);
	/* Without the file, VMs have no names; the rest is readable. */
	error = vp_vms_read(kept->path, &kept->vms);
	vp_error_free(error);
}

static void history_add(const char *path, const char *name, vp_history *ret)
{
	struct vp_kept kept = {.path = vp_format("%s/%s", path, name), .name = vp_strdup(name)};
	struct stat status;

	kept.kind = kind_of_name(name, &kept.named);
	kept.bytes = vp_disk_bytes(kept.path);
	VP_AUTO_FREE char *streams = vp_format("%s/host", kept.path);
	uint64_t streams_bytes = vp_disk_bytes(streams);
	kept.names_bytes = kept.bytes > streams_bytes ? kept.bytes - streams_bytes : 0;
	if (lstat(kept.path, &status) || !S_ISDIR(status.st_mode))
		kept.kind = VP_KEPT_FOREIGN;
	if (kept.kind == VP_KEPT_FOREIGN) {
		kept.problem = vp_strdup("not made by vperfd");
	} else {
		/* Checking the lock of a directory that was just created would disturb its
		 * recorder. */
		bool is_new =
		    kept.kind == VP_KEPT_REMAINS && time(NULL) - status.st_mtime < REMAINS_SECONDS;
		kept.is_open = is_new || vp_kept_is_locked(kept.path);
		if (kept.kind == VP_KEPT_REMAINS)
			kept.problem = vp_strdup("not complete");
		else
			history_read_recording(&kept);
	}
	vp_vec_push(ret, kept);
}

static bool is_of_store(const char *name)
{
	static const char *const own[] = {
	    ".", "..", VP_HISTORY_LOCK, VP_HISTORY_FLIGHT, VP_HISTORY_FINDINGS, VP_HISTORY_SPOOL};

	for (size_t i = 0; i < VP_ARRAY_SIZE(own); i++)
		if (!strcmp(name, own[i]))
			return true;
	/* The flight recorder's directory before it is renamed, and its predecessor. */
	return !strncmp(name, VP_HISTORY_FLIGHT ".", sizeof(VP_HISTORY_FLIGHT));
}

static int compare_times(uint64_t one, uint64_t other)
{
	return one < other ? -1 : one > other;
}

static int history_by_time(const void *a, const void *b)
{
	const struct vp_kept *left = a, *right = b;
	int order = compare_times(left->sorted, right->sorted);

	if (!order)
		order = compare_times(left->start, right->start);
	return order ? order : strcmp(left->name, right->name);
}

static bool has_boot(const struct vp_kept *kept)
{
	return !kept->problem && kept->boot && kept->boot[0];
}

static bool is_of_boot(const struct vp_kept *kept, const char *boot)
{
	return has_boot(kept) && !strcmp(kept->boot, boot);
}

/* A clock that was set makes dates of one boot contradict CLOCK_MONOTONIC. The last date is the one
 * to believe: a clock is set because it was wrong. */
static const struct vp_kept *last_of_boot(const vp_history *history, const char *boot)
{
	const struct vp_kept *last = NULL;

	vp_vec_each (history, kept)
		if (is_of_boot(kept, boot) && (!last || kept->start > last->start))
			last = kept;
	return last;
}

static void history_sort(vp_history *history)
{
	const struct vp_kept *last = NULL;

	vp_vec_each (history, kept) {
		if (has_boot(kept) && (!last || !is_of_boot(last, kept->boot)))
			last = last_of_boot(history, kept->boot);
		kept->sorted = has_boot(kept) ? kept->start + (uint64_t)last->realtime_offset
					      : vp_kept_start(kept);
	}
	if (history->count)
		qsort(history->at, history->count, sizeof(*history->at), history_by_time);
}

struct vp_error *vp_history_read(const char *path, vp_history *ret)
{
	DIR *entries = opendir(path);

	*ret = (vp_history){0};
	if (!entries)
		return vp_error_errno(errno, "cannot open store '%s'", path);
	for (struct dirent *entry; (entry = readdir(entries));)
		if (!is_of_store(entry->d_name))
			history_add(path, entry->d_name, ret);
	closedir(entries);
	history_sort(ret);
	return NULL;
}

void vp_history_deinit(vp_history *history)
{
	vp_vec_each (history, kept) {
		free(kept->name);
		free(kept->path);
		free(kept->problem);
		free(kept->boot);
		vp_vms_deinit(&kept->vms);
	}
	vp_vec_deinit(history);
}

uint64_t vp_kept_start(const struct vp_kept *kept)
{
	return kept->problem ? kept->named : kept->start + (uint64_t)kept->realtime_offset;
}

uint64_t vp_kept_end(const struct vp_kept *kept)
{
	return kept->problem ? kept->named : kept->end + (uint64_t)kept->realtime_offset;
}

/* Recordings before 0.3 lack the boot. CLOCK_REALTIME may be changed, but CLOCK_MONOTONIC restarts
 * at each boot: its start, as a date, is later by at least the uptime of the former boot. */
bool vp_kept_is_same_boot(const struct vp_kept *before, const struct vp_kept *after)
{
	if (has_boot(before) && has_boot(after))
		return !strcmp(before->boot, after->boot);
	return after->start >= before->start &&
	       after->realtime_offset < before->realtime_offset + (int64_t)before->end;
}

int64_t vp_kept_gap(const struct vp_kept *before, const struct vp_kept *after)
{
	if (vp_kept_is_same_boot(before, after))
		return (int64_t)after->start - (int64_t)before->end;
	return (int64_t)vp_kept_start(after) - (int64_t)vp_kept_end(before);
}

int64_t vp_kept_jump(const struct vp_kept *before, const struct vp_kept *after)
{
	int64_t jump = after->realtime_offset - before->realtime_offset;

	return vp_kept_is_same_boot(before, after) && llabs(jump) >= (int64_t)SECOND ? jump : 0;
}

const struct vp_kept *vp_history_before(const vp_history *history, size_t index)
{
	while (index-- > 0)
		if (history->at[index].kind == VP_KEPT_RECORDING && !history->at[index].problem)
			return &history->at[index];
	return NULL;
}

const char *vp_history_name(const char *path, uint64_t realtime, const char *suffix,
			    char name[VP_KEPT_NAME_SIZE])
{
	time_t seconds = (time_t)(realtime / SECOND);
	struct tm date = {0};
	char text[32];
	struct stat status;

	gmtime_r(&seconds, &date);
	strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &date);
	snprintf(name, VP_KEPT_NAME_SIZE, "%s%s", text, suffix);
	for (unsigned nth = 2;; nth++) {
		VP_AUTO_FREE char *full = vp_format("%s/%s", path, name);
		if (lstat(full, &status))
			return name;
		snprintf(name, VP_KEPT_NAME_SIZE, "%s-%u%s", text, nth, suffix);
	}
}
