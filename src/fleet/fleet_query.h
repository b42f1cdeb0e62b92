/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queries (PromQL) about hosts and VMs, in the part of the language that Prometheus,
 * VictoriaMetrics, Mimir and Thanos share. */
#ifndef VP_FLEET_FLEET_QUERY_H
#define VP_FLEET_FLEET_QUERY_H

#include <stdint.h>

#include "base/buffer.h"
#include "fleet/fleet_answer.h"

struct vp_fleet_options {
	const char *match; /* further label matchers, or "" */
	uint64_t range_s;  /* of rates */
	uint64_t limit;
};

enum vp_fleet_query {
	VP_FLEET_QUERY_VCPUS,      /* steal of the worst vCPUs */
	VP_FLEET_QUERY_PAIRS,      /* … of VMs by other VMs */
	VP_FLEET_QUERY_BACK,       /* the same of VMs and thieves that are named */
	VP_FLEET_QUERY_WAITING,    /* vCPUs that wait, by host */
	VP_FLEET_QUERY_OVERCOMMIT, /* largest share that a VM loses to overcommit, by host */
	VP_FLEET_QUERY_VMS,        /* VMs of hosts */
	VP_FLEET_QUERY_WORSE,      /* VMs whose steal is more than a day before */
	VP_FLEET_QUERY_BETTER,     /* … less */
	VP_FLEET_QUERY_STEAL,      /* steal of VMs that are named */
	VP_FLEET_QUERY_RECORDINGS, /* the recording of each host that has the moment */
	VP_FLEET_QUERY_INFO,       /* identity of VMs that are named */
	VP_FLEET_QUERIES
};

/* Appends the query. `vms` and `thieves` are the names, for queries that have some. */
void vp_fleet_query_put(const struct vp_fleet_options *options, enum vp_fleet_query query,
			const vp_fleet_texts *vms, const vp_fleet_texts *thieves,
			struct vp_buffer *out);

#endif
