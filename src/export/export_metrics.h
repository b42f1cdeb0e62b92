/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of VMs in Prometheus' text formats: 0.0.4, and OpenMetrics 1.0. */
#ifndef VP_EXPORT_EXPORT_METRICS_H
#define VP_EXPORT_EXPORT_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/account/account_counters.h"
#include "base/buffer.h"
#include "schema/vm.h"

enum vp_metrics_format { VP_METRICS_TEXT, VP_METRICS_OPENMETRICS, VP_METRICS_FORMATS };

/* A rule of 'vperf diagnose' that holds for a VM. */
struct vp_metrics_finding {
	uint32_t vm; /* vp_vm_id() */
	const char *rule;
	double ratio; /* of the time of the VM's vCPUs */
};

/* The part of a scrape that only vperfd has. */
struct vp_metrics_store {
	const char *recording; /* that has this moment; or "" */
	uint64_t bytes, recordings, fired;
	const struct vp_metrics_finding *findings;
	size_t n_findings;
};

/* The part of a scrape about vperf itself. */
struct vp_metrics_self {
	uint64_t cpu_ns;                      /* CPU time of vperf and what it waits for */
	uint64_t memory;                      /* resident bytes */
	uint64_t realtime_ns;                 /* when the last interval ended */
	const struct vp_metrics_store *store; /* or NULL */
};

/* The Content-Type of a format. */
const char *vp_metrics_type(enum vp_metrics_format format);
/* Appends all series. `vms` has the names; VMs that are not in it have no series. */
void vp_export_metrics(const struct vp_account_counters *counters, const vp_vms *vms,
		       const struct vp_metrics_self *self, enum vp_metrics_format format,
		       struct vp_buffer *out);

#endif
