/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Findings: the largest losses of a VM, by the time that its vCPUs lost in the exact account. Rules
 * are data (diagnose_rules.c): a measure, a threshold, what to try, and a reference. */
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
	struct vp_rule_words words; /* the rule's, for that VM */
	uint32_t vm;     /* index in the account's VMs; VP_FINDING_OF_NO_VM: about the recording */
	uint64_t ns;     /* lost; of samples, the time that they stand for, of other records 0 */
	double percent;  /* of the time of the VM's vCPUs; of all records, or of the guest's events,
			  * those that are lost */
	uint64_t count;  /* how often */
	uint64_t most;   /* ns of `who` */
	const char *who; /* who took or caused the most of it; NULL: not known. The diagnosis' */
	/* The guest's memory that most of it was for, and how often; NULL: not known, or for none.
	 */
	const char *address;
	uint64_t address_count;
	const char *detail;   /* the rule's own sentence, or NULL. The diagnosis' */
	const char *pcpus;    /* that the VM's vCPUs may use, or "": all, or not known */
	const char *cgroup;   /* of `who`, or NULL */
	const char *commands; /* of the VM's manager, a line each; or "" */
	/* By vp_diagnose_seconds(), of what its VM lost: */
	uint32_t seconds;    /* long enough to be observations; 0: it is not about time */
	uint64_t since;      /* begin of the first second in which it held, CLOCK_MONOTONIC */
	double held_percent; /* share of the VM's vCPUs' time in whose seconds it held */
	bool has_interval;   /* there are enough seconds for the next two: */
	double low, high;    /* 95% confidence interval of `percent` */
	size_t cause; /* index of the first finding with the same cause, + 1; 0: it is that */
};

struct vp_diagnosis {
	VP_VEC(struct vp_finding) findings; /* the most time first */
	struct vp_intern texts;
};

/* `exit_sites`: vp_account_sites_table() of the same view by function; `addresses`:
 * vp_account_addresses_table();
 * `intervals`: the recording's, or NULL. */
void vp_diagnose(const struct vp_account_view *view, const struct vp_table *exit_sites,
		 const struct vp_table *addresses, const struct vp_losses *losses,
		 const struct vp_interval_recording *intervals, struct vp_diagnosis *ret);
/* When each finding held, and how sure it is: a second holds it if its VM lost at least the rule's
 * least share. `directory` is the recording's; the tables are those of vp_diagnose(). */
struct vp_error *vp_diagnose_seconds(const char *directory, const struct vp_account_view *view,
				     const struct vp_table *exit_sites,
				     struct vp_diagnosis *diagnosis) VP_MUST_CHECK;
void vp_diagnosis_deinit(struct vp_diagnosis *diagnosis);

#endif
