/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Summary of a recording: records by pCPU and type, VMs, state of their symbol maps. */
#ifndef VP_ANALYZE_REPORT_SUMMARY_H
#define VP_ANALYZE_REPORT_SUMMARY_H

#include "analyze/common/health.h"
#include "analyze/model/intervals.h"
#include "analyze/report/report.h"
#include "base/macros.h"
#include "base/vec.h"

struct vp_summary_pcpu {
	uint32_t cpu;
	uint64_t records[VP_ID_MAX + 1]; /* by record id */
	uint64_t events, events_lost;    /* of classes defined in the recording */
};

struct vp_summary {
	struct vp_report report; /* unified view: attribution, notes, machines */
	VP_VEC(struct vp_summary_pcpu) pcpus;
	uint64_t events, events_lost;                       /* of all pCPUs */
	uint64_t vcpu_spans;                                /* number of vcpu_span records */
	uint64_t hypervisor_events, hypervisor_events_lost; /* of the hypervisor itself */
	uint64_t account_lost;                              /* events that the accounting missed */
	bool has_more; /* samples or vCPU accounting in addition to intervals */
	bool has_intervals;
	bool has_trace;
	struct vp_interval_recording intervals;
};

/* Reads the whole recording in `directory`, which must outlive the summary. Errors: not a
 * recording. */
struct vp_error *vp_summary_make(const char *directory, struct vp_summary *ret) VP_MUST_CHECK;
void vp_summary_deinit(struct vp_summary *summary);
/* One row per pCPU. */
void vp_summary_table(const struct vp_summary *summary, struct vp_table *table);
/* Problems of the recording, including unresolved samples. */
const vp_sentences *vp_summary_notes(const struct vp_summary *summary);
/* Whether the VM started or ended during the recording. */
bool vp_summary_vm_started(const struct vp_summary *summary, const struct vp_vm *vm);

#endif
