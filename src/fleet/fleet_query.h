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
	VP_FLEET_QUERY_BACK,       /* the same for given VMs and thieves */
	VP_FLEET_QUERY_WAITING,    /* waiting vCPUs per host */
	VP_FLEET_QUERY_OVERCOMMIT, /* largest share that a VM loses to overcommit, per host */
	VP_FLEET_QUERY_VMS,        /* number of VMs per host */
	VP_FLEET_QUERY_WORSE,      /* VMs with more steal than the day before */
	VP_FLEET_QUERY_BETTER,     /* … with less */
	VP_FLEET_QUERY_STEAL,      /* steal of given VMs */
	VP_FLEET_QUERY_RECORDINGS, /* the recording per host that covers the time */
	VP_FLEET_QUERY_INFO,       /* identity of given VMs */
	VP_FLEET_QUERIES
};

/* Appends the query. `vms` and `thieves`: names, for queries that need them. */
void vp_fleet_query_put(const struct vp_fleet_options *options, enum vp_fleet_query query,
			const vp_fleet_texts *vms, const vp_fleet_texts *thieves,
			struct vp_buffer *out);

#endif
