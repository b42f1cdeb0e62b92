/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Findings: the largest losses of vCPU time per VM, from the vCPU accounting. Rules are data
 * (diagnose_rules.c): measure, threshold, advice, and reference. */
#ifndef VP_ANALYZE_REPORT_DIAGNOSE_H
#define VP_ANALYZE_REPORT_DIAGNOSE_H

#include "analyze/account/account_tables.h"
#include "analyze/common/health.h"
#include "analyze/model/intervals.h"
#include "analyze/report/diagnose_rules.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"

enum { VP_FINDING_OF_NO_VM = UINT32_MAX };

struct vp_finding {
	const struct vp_rule *rule;
	struct vp_rule_words words; /* of the rule, for that VM */
	uint32_t vm; /* index in the account's VMs; VP_FINDING_OF_NO_VM: the recording itself */
	uint64_t ns; /* lost time; for samples, the time that they represent; for other records 0 */
	double percent; /* of the VM's vCPU time; for records, of all records or all guest events */
	uint64_t count; /* number of occurrences */
	uint64_t most;  /* ns due to `who` */
	const char *who; /* top cause; NULL: unknown. Owned by the diagnosis */
	/* Guest physical address with the largest part, and its count; NULL: unknown, or none. */
	const char *address;
	uint64_t address_count;
	const char *detail;   /* the rule's own sentence, or NULL; owned by the diagnosis */
	const char *pcpus;    /* pCPUs that the VM's vCPUs may use; "": all, or unknown */
	const char *cgroup;   /* of `who`, or NULL */
	const char *commands; /* of the VM's manager, one per line; or "" */
	/* Set by vp_diagnose_seconds(), about the losses of its VM: */
	uint32_t seconds;    /* number of observations; 0: not about time */
	uint64_t since;      /* start of the first second with the finding, CLOCK_MONOTONIC */
	double held_percent; /* share of the VM's vCPU time in seconds with the finding */
	bool has_interval;   /* there are enough seconds for a confidence interval: */
	double low, high;    /* 95% confidence interval of `percent` */
	size_t
	    cause; /* index of the first finding with the same cause, + 1; 0: this is the first */
};

struct vp_diagnosis {
	VP_VEC(struct vp_finding) findings; /* sorted by time, descending */
	struct vp_intern texts;
};

/* `exit_sites`: vp_account_sites_table() of the same view by function; `addresses`:
 * vp_account_addresses_table(); `intervals`: of the recording, or NULL. */
void vp_diagnose(const struct vp_account_view *view, const struct vp_table *exit_sites,
		 const struct vp_table *addresses, const struct vp_losses *losses,
		 const struct vp_interval_recording *intervals, struct vp_diagnosis *ret);
/* The same for several recordings joined to one: exit sites and single seconds exist for a single
 * recording only, which is added to `notes`. */
void vp_diagnose_joined(const struct vp_account_view *view, const struct vp_losses *losses,
			vp_sentences *notes, struct vp_diagnosis *ret);
/* Computes when each finding applied, and its confidence interval: it applies to a second if the VM
 * lost at least the rule's threshold. `directory`: the recording; tables as for vp_diagnose(). */
struct vp_error *vp_diagnose_seconds(const char *directory, const struct vp_account_view *view,
				     const struct vp_table *exit_sites,
				     struct vp_diagnosis *diagnosis) VP_MUST_CHECK;
void vp_diagnosis_deinit(struct vp_diagnosis *diagnosis);

#endif
