/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of 'vperf diagnose', as a table. */
#ifndef VP_ANALYZE_REPORT_DIAGNOSE_RULES_H
#define VP_ANALYZE_REPORT_DIAGNOSE_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "store/recording.h"

/* Measure of a rule, for a VM's vCPUs. */
enum vp_loss {
	VP_LOSS_THIEVES,     /* time taken by thieves of a class, except overcommit: */
	VP_LOSS_OVERCOMMIT,  /* … its unavoidable part (analyze/account/overcommit.h) */
	VP_LOSS_WAKING,      /* wakeup latency on an idle pCPU */
	VP_LOSS_THROTTLED,   /* time throttled */
	VP_LOSS_POLL_WASTED, /* polling time before sleeping nevertheless */
	VP_LOSS_EXITS,       /* time of the host kernel and the VMM for exits */
	VP_LOSS_TLB,         /* guest time for TLB misses, from intervals */
	VP_LOSS_RECORDS,     /* not about a VM: records missing in the recording */
	VP_LOSS_GUEST_EVENTS /* missing events of the guest */
};

/* Bits: classes of thieves. */
enum {
	VP_THIEF_OTHER_VM = 1,
	VP_THIEF_SAME_VM = 2,
	VP_THIEF_TASK = 4,  /* host tasks, except the next two */
	VP_THIEF_VMM = 8,   /* the VM's own: threads of the VMM, kernel threads that work for it */
	VP_THIEF_TOOL = 16, /* vperf */
	VP_THIEF_DEVICE = 32, /* device interrupts, softirqs */
	VP_THIEF_VECTOR = 64, /* the pCPU's own interrupts: timer, function-call IPIs */
	VP_THIEF_STORM = 128  /* interrupts of both kinds during a storm */
};

/* Condition: several vCPUs, some of which were preempted. */
enum vp_rule_preempted { VP_RULE_ALWAYS, VP_RULE_IF_PREEMPTED, VP_RULE_UNLESS_PREEMPTED };

/* Exits for one reason can be to memory or to devices. If unknown, exits handled by the VMM count
 * as devices, and exits handled by the kernel as memory. */
enum vp_rule_memory { VP_RULE_OF_ANY, VP_RULE_OF_DEVICES, VP_RULE_OF_MEMORY };

/* Xen's schedulers with different commands of xl. */
enum vp_scheduler {
	VP_SCHEDULER_CREDIT2,
	VP_SCHEDULER_CREDIT,
	VP_SCHEDULER_RTDS,
	VP_SCHEDULER_OTHER, /* no weights, caps or budgets: null, arinc653 */
	VP_SCHEDULERS
};

struct vp_rule {
	const char *id;
	enum vp_loss loss;
	unsigned thieves;
	unsigned streams;    /* bits (VP_STREAMS()) of the stream classes with losses … */
	const char *records; /* … and the name of the records */
	/*
	 * Exits for these reasons (separated by spaces) with one of these details (as in 'vperf
	 * exits --by function', or a reason that counts as a whole; separated by commas) or, if the
	 * detail is unknown, in functions with one of these words in their names. NULL for both:
	 * exits of no other rule.
	 */
	const char *reasons, *details, *functions;
	enum vp_rule_preempted preempted;
	enum vp_rule_memory memory;
	double least;         /* threshold: percent of vCPU time, or of records; 0: none */
	const char *what;     /* completes "… loses … to"; for records "… lost …:" */
	const char *evidence; /* command and options that show details */
	const char *advice, *source;
	bool advises_weight; /* a larger weight of the VM helps, if it has no other pCPUs */
	/* `what`, `advice` and `source` for Xen domains; NULL: the same. */
	struct vp_rule_words {
		const char *what, *advice, *source;
	} of_domains;
	/* … and if they depend on the scheduler, one for each; NULL: they do not. */
	const struct vp_rule_words *by_scheduler;
};

/* The scheduler of a domain; credit2, Xen's default, if the recording does not have its name
 * (before 0.3). */
enum vp_scheduler vp_scheduler_of(const struct vp_vm *vm);

/* The rule's texts for the VM; vm NULL: not about a VM. */
struct vp_rule_words vp_rule_words(const struct vp_rule *rule, const struct vp_vm *vm);
const struct vp_rule *vp_rules(size_t *count);

#endif
