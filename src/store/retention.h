/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How long a store (history.h) keeps what is in it. */
#ifndef VP_STORE_RETENTION_H
#define VP_STORE_RETENTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "store/history.h"

/* 0: no limit. */
struct vp_retention {
	uint64_t keep_ns;    /* since its end */
	uint64_t keep_bytes; /* of all that vperfd made, the open ones included */
	uint64_t free_bytes; /* of the disk that stay free */
};

/* Ages do not follow a clock that is set: it goes on at the rate of CLOCK_BOOTTIME from the first
 * reading, and is never ahead of the host's clock. Starts zeroed. */
struct vp_age_clock {
	uint64_t realtime, boottime; /* the first reading */
};

/* The present time for ages, ns since 1970. `realtime` and `boottime` are the present readings. */
uint64_t vp_age_clock_now(struct vp_age_clock *clock, uint64_t realtime, uint64_t boottime);

enum vp_removal { VP_REMOVE_NONE, VP_REMOVE_OLD, VP_REMOVE_SIZE, VP_REMOVE_DISK };

/*
 * The next one to be removed, and in *why the limit that it is removed for; VP_NONE: no one.
 * `more`: bytes that are likely to be written until the next look; `disk`: bytes that are free.
 * Remains go first, then the oldest; what is being written and what is not vperfd's stays.
 */
uint32_t vp_retention_next(const vp_history *history, const struct vp_retention *limits,
			   uint64_t now, uint64_t more, uint64_t disk, enum vp_removal *why);
/* Bytes of all that vperfd made. */
uint64_t vp_history_bytes(const vp_history *history);
/* Removes it from the disk and from the list. A crash in between leaves remains. */
struct vp_error *vp_history_remove(vp_history *history, uint32_t index) VP_MUST_CHECK;
/* ": it is older than keep-for", … */
const char *vp_removal_text(enum vp_removal why);

#endif
