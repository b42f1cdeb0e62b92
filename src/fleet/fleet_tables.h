/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of hosts and VMs, from the answers of a metrics engine. */
#ifndef VP_FLEET_FLEET_TABLES_H
#define VP_FLEET_FLEET_TABLES_H

#include "analyze/common/table.h"
#include "base/error.h"
#include "base/macros.h"
#include "fleet/fleet_answer.h"
#include "fleet/fleet_query.h"

/* A metrics engine; after an error, ask() leaves `ret` empty. */
struct vp_fleet_engine {
	struct vp_error *(*ask)(void *context, const char *query, struct vp_fleet_answer *ret);
	void *context;
};

enum vp_fleet_table {
	VP_FLEET_VCPUS,   /* the worst by steal */
	VP_FLEET_PAIRS,   /* VMs that take CPU time from other VMs */
	VP_FLEET_HOSTS,   /* hosts with waiting vCPUs */
	VP_FLEET_CHANGES, /* VMs, compared with the day before */
	VP_FLEET_TABLES
};

struct vp_fleet {
	struct vp_fleet_answer answers[VP_FLEET_QUERIES];
	vp_fleet_texts texts; /* owns the texts of the tables */
	struct vp_table tables[VP_FLEET_TABLES];
};

struct vp_error *vp_fleet_make(const struct vp_fleet_engine *engine,
			       const struct vp_fleet_options *options,
			       struct vp_fleet *ret) VP_MUST_CHECK;
void vp_fleet_deinit(struct vp_fleet *fleet);

#endif
