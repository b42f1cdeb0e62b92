/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of 'vperf diagnose', as a table. */
#ifndef VP_ANALYZE_REPORT_DIAGNOSE_RULES_H
#define VP_ANALYZE_REPORT_DIAGNOSE_RULES_H

#include <stddef.h>

#include "store/recording.h"

/* Measure of a rule for a VM's vCPUs. */
enum vp_loss {
	VP_LOSS_THIEVES,    /* time that thieves of a class took while a vCPU wanted to run, but
			       for the next: */
	VP_LOSS_OVERCOMMIT, /* … what of it could not be avoided (analyze/account/overcommit.h) */
	VP_LOSS_WAKING,     /* time from a wake-up on, on a pCPU that was idle */
	VP_LOSS_THROTTLED,  /* time without quota */
	VP_LOSS_POLL_WASTED, /* time polled before it slept all the same */
	VP_LOSS_EXITS,       /* time of the host's kernel and the VMM for exits */
	VP_LOSS_TLB,         /* guest time for TLB misses, by the recording's intervals */
	VP_LOSS_RECORDS,     /* of no VM: records that the recording lacks */
	VP_LOSS_GUEST_EVENTS /* of the guest's own, that it lacks */
};

/* Classes of thieves: bits of vp_rule.thieves. */
enum {
	VP_THIEF_OTHER_VM = 1,
	VP_THIEF_SAME_VM = 2,
	VP_THIEF_TASK = 4,    /* of the host, but for the next two */
	VP_THIEF_VMM = 8,     /* the VM's own: of its VMM, or a kernel thread that works for it */
	VP_THIEF_TOOL = 16,   /* vperf */
	VP_THIEF_DEVICE = 32, /* interrupts of devices, soft interrupts */
	VP_THIEF_VECTOR = 64, /* the pCPU's own interrupts: its timer, calls of other pCPUs */
	VP_THIEF_STORM = 128  /* of either kind of interrupts, those that are a storm's */
};

/* With several vCPUs, of which some wait for their pCPU. */
enum vp_rule_preempted { VP_RULE_ALWAYS, VP_RULE_IF_PREEMPTED, VP_RULE_UNLESS_PREEMPTED };

/* Exits of one reason can be to both. Where it is not known to which, what the VMM served is taken
 * for a device's, and what the kernel served for memory. */
enum vp_rule_memory { VP_RULE_OF_ANY, VP_RULE_OF_DEVICES, VP_RULE_OF_MEMORY };

struct vp_rule {
	const char *id;
	enum vp_loss loss;
	unsigned thieves;
	unsigned streams;    /* bits (VP_STREAMS()) of classes of streams that lost records … */
	const char *records; /* … what these are called */
	/* Exits of these reasons, separated by spaces, that were to one of these (as 'vperf exits
	 * --by function' has it, or a reason of which all count; separated by commas), or, if it is
	 * not known to what, in functions with one of these words in their names. NULL for both
	 * stands for those of no other rule. */
	const char *reasons, *details, *functions;
	enum vp_rule_preempted preempted;
	enum vp_rule_memory memory;
	double least;         /* percent of the vCPUs' time, or of the records; 0: any */
	const char *what;     /* "… loses … to WHAT"; of records "… lost …: WHAT" */
	const char *evidence; /* the verb and its options that show it */
	const char *advice, *source;
	/* `what`, `advice` and `source` of VMs that are domains; NULL: the same. */
	struct vp_rule_words {
		const char *what, *advice, *source;
	} of_domains;
};

/* The rule's sentence about the VM; without a VM if that is NULL. */
struct vp_rule_words vp_rule_words(const struct vp_rule *rule, const struct vp_vm *vm);
const struct vp_rule *vp_rules(size_t *count);

#endif
