/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Retention rules of a store (history.h). */
#ifndef VP_STORE_RETENTION_H
#define VP_STORE_RETENTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "store/history.h"

/* 0: no limit. */
struct vp_retention {
	uint64_t keep_ns;    /* age since the end of a recording */
	uint64_t keep_bytes; /* total size of all entries created by vperfd, open ones included */
	uint64_t free_bytes; /* disk space to leave free */
};

/* Clock for ages that is not affected by setting the host's clock: it advances with CLOCK_BOOTTIME
 * from the first reading, and is never ahead of the host's clock. Zero-initialized. */
struct vp_age_clock {
	uint64_t realtime, boottime; /* the first reading */
};

/* Present time for ages, ns since 1970. `realtime` and `boottime`: present readings. */
uint64_t vp_age_clock_now(struct vp_age_clock *clock, uint64_t realtime, uint64_t boottime);

/* The present moment, for the ages of recordings. */
struct vp_age_moment {
	uint64_t realtime;            /* vp_age_clock_now() */
	uint64_t monotonic, boottime; /* readings of these clocks */
	const char *boot;             /* vp_boot_id() */
};

/* Time since the end of an entry, ns. Recordings of the present boot cannot be younger than the
 * time on CLOCK_MONOTONIC since, nor older than that and all time in which the host slept. */
uint64_t vp_kept_age(const struct vp_kept *kept, const struct vp_age_moment *now);

enum vp_removal { VP_REMOVE_NONE, VP_REMOVE_OLD, VP_REMOVE_SIZE, VP_REMOVE_DISK };

/*
 * Index of the next entry to remove, with the exceeded limit in *why; VP_NONE: nothing to remove.
 * `more`: expected bytes written until the next check; `disk`: free bytes. Remains go first, then
 * the entry that ended first; open and foreign entries stay.
 */
uint32_t vp_retention_next(const vp_history *history, const struct vp_retention *limits,
			   const struct vp_age_moment *now, uint64_t more, uint64_t disk,
			   enum vp_removal *why);
/* The most that a recorder may write at once, by what is in the store: names. */
uint64_t vp_history_burst(const vp_history *history);
/* Total size of all entries created by vperfd, bytes. */
uint64_t vp_history_bytes(const vp_history *history);
/* Removes the entry from the disk and from the list. After a crash in between, the rest is
 * VP_KEPT_REMAINS. */
struct vp_error *vp_history_remove(vp_history *history, uint32_t index) VP_MUST_CHECK;
/* ": it is older than keep-for", … */
const char *vp_removal_text(enum vp_removal why);

#endif
