/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of VMs in Prometheus text formats: 0.0.4, and OpenMetrics 1.0. */
#ifndef VP_EXPORT_EXPORT_METRICS_H
#define VP_EXPORT_EXPORT_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/account/account_counters.h"
#include "base/buffer.h"
#include "schema/vm.h"

enum vp_metrics_format { VP_METRICS_TEXT, VP_METRICS_OPENMETRICS, VP_METRICS_FORMATS };

/* Findings of a VM that have a series; the others lose less time. A VM with 4 vCPUs then has at
 * most 100 series. */
enum { VP_METRICS_FINDINGS = 4 };

/* A present finding for a VM. */
struct vp_metrics_finding {
	uint32_t vm; /* vp_vm_id() */
	const char *rule;
	double ratio; /* share of the VM's vCPU time */
};

/* Metrics of vperfd's store. */
struct vp_metrics_store {
	const char *recording; /* the present recording; or "" */
	uint64_t bytes, recordings, fired;
	/* Profiles: sent, dropped because too many waited, refused by the server, waiting. */
	uint64_t sent, overflowed, refused, waiting;
	uint64_t spooled, spool_dropped; /* recordings */
	const struct vp_metrics_finding *findings;
	size_t n_findings;
};

/* Metrics about vperf itself. */
struct vp_metrics_self {
	uint64_t cpu_ns;                      /* from vp_process_cost_update() */
	uint64_t memory;                      /* likewise */
	uint64_t realtime_ns;                 /* of this update */
	uint64_t accounted_ns;                /* end of the last interval; 0: none */
	const struct vp_metrics_store *store; /* or NULL */
};

/* The format's Content-Type. */
const char *vp_metrics_type(enum vp_metrics_format format);
/* Appends all series. VMs that are not in `vms`, which has the names, are skipped. */
void vp_export_metrics(const struct vp_account_counters *counters, const vp_vms *vms,
		       const struct vp_metrics_self *self, enum vp_metrics_format format,
		       struct vp_buffer *out);

#endif
