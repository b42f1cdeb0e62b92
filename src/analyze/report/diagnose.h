/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Findings: the largest losses of a VM, by the time that its vCPUs lost in the exact account. Rules
 * are data (diagnose_rules.c): a measure, a threshold, what to try, and a reference. */
#ifndef VP_ANALYZE_REPORT_DIAGNOSE_H
#define VP_ANALYZE_REPORT_DIAGNOSE_H

#include "analyze/account/account_tables.h"
#include "analyze/common/health.h"
#include "analyze/report/diagnose_rules.h"
#include "base/intern.h"
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
	size_t cause; /* index of the first finding with the same cause, + 1; 0: it is that */
};

struct vp_diagnosis {
	VP_VEC(struct vp_finding) findings; /* the most time first */
	struct vp_intern texts;
};

/* `exit_sites`: vp_account_sites_table() of the same view by function; `addresses`:
 * vp_account_addresses_table(). */
void vp_diagnose(const struct vp_account_view *view, const struct vp_table *exit_sites,
		 const struct vp_table *addresses, const struct vp_losses *losses,
		 struct vp_diagnosis *ret);
void vp_diagnosis_deinit(struct vp_diagnosis *diagnosis);

#endif
