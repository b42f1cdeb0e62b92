/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Times of a guest as the host's. A message between both cannot arrive before it was sent: each
 * that the guest sends bounds what is to be added to its times from above, each that the host sends
 * from below (docs/method-trace.md).
 */
#ifndef VP_IMPORT_IMPORT_CLOCK_H
#define VP_IMPORT_IMPORT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "import/import_channel.h"

/* Clock data of a trace. */
struct vp_import_timing {
	bool has_clock;
	bool is_unshifted; /* VP_IMPORT_UNSHIFTED */
	int64_t offset;    /* from the Epoch to its zero, ns */
	VP_VEC(struct vp_import_mark) marks;
};

struct vp_import_clock_node {
	uint64_t time; /* the guest's */
	int64_t shift; /* what is added to it */
};

struct vp_import_clock {
	VP_VEC(struct vp_import_clock_node) nodes; /* by time; none: the clock is the host's */
};

/* How it was found out. */
enum vp_import_clock_way {
	VP_IMPORT_CLOCK_SAME,
	VP_IMPORT_CLOCK_MESSAGES,    /* `error_ns` is right */
	VP_IMPORT_CLOCK_ONE_WAY,     /* messages of one direction only: as late as can be, or as
					early */
	VP_IMPORT_CLOCK_WALL_CLOCKS, /* both have the time since the Epoch */
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
