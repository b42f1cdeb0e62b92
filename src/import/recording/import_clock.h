/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Converts a guest's times to the host's. A message cannot arrive before it is sent: messages from
 * the guest give upper bounds of the offset, messages from the host lower bounds
 * (docs/method-trace.md).
 */
#ifndef VP_IMPORT_RECORDING_IMPORT_CLOCK_H
#define VP_IMPORT_RECORDING_IMPORT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "import/common/import_channel.h"

/* Clock data of a file. */
struct vp_import_timing {
	bool has_clock;
	bool is_unshifted; /* VP_IMPORT_UNSHIFTED */
	int64_t offset;    /* from the Epoch to the clock's zero, ns */
	VP_VEC(struct vp_import_mark) marks;
};

struct vp_import_clock_node {
	uint64_t time; /* on the guest's clock */
	int64_t shift; /* offset to add */
};

struct vp_import_clock {
	VP_VEC(struct vp_import_clock_node) nodes; /* by time; empty: the clock is the host's */
};

/* Source of the offset. */
enum vp_import_clock_way {
	VP_IMPORT_CLOCK_SAME,
	VP_IMPORT_CLOCK_MESSAGES, /* `error_ns` is valid */
	VP_IMPORT_CLOCK_ONE_WAY,  /* messages in one direction only: the offset is one of the bounds
				   */
	VP_IMPORT_CLOCK_WALL_CLOCKS, /* both clocks show the time since the Epoch */
};

struct vp_import_clock_fit {
	enum vp_import_clock_way way;
	uint64_t messages;
	uint64_t error_ns;
};

struct vp_import_clock_fit vp_import_clock_make(const struct vp_import_timing *host,
						const struct vp_import_timing *guest,
						struct vp_import_clock *ret);
uint64_t vp_import_clock_at(const struct vp_import_clock *clock, uint64_t time);
void vp_import_clock_deinit(struct vp_import_clock *clock);

#endif
