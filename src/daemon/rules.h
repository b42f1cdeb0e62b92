/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Evaluates the rules of 'vperf diagnose' on the accounting of the last seconds, and limits the
 * rate of triggers. */
#ifndef VP_DAEMON_RULES_H
#define VP_DAEMON_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/account/account.h"
#include "base/vec.h"
#include "daemon/daemon_config.h"

/* A finding at present. */
struct vp_held_rule {
	const char *rule; /* id of the rule */
	uint32_t vm;      /* vp_vm_id() */
	double percent;   /* percent of the VM's vCPU time */
	bool is_own;      /* about vperf itself; triggered recordings would make it worse */
	char *who;        /* top cause, or "" */
	char *sentence;
};
typedef VP_VEC(struct vp_held_rule) vp_held_rules;

void vp_held_rules_deinit(vp_held_rules *rules);
/* Finds all rules that apply to the accounting, which is settled by that; rules in `config->ignore`
 * are skipped. */
void vp_rules_evaluate(struct vp_account *account, const struct vp_daemon_config *config,
		       vp_held_rules *ret);

/* Time of the last trigger by a rule for a VM. */
struct vp_fired_rule {
	uint64_t key; /* hash of rule and VM */
	uint64_t time;
};
typedef VP_VEC(struct vp_fired_rule) vp_fired_rules;

/* Whether the finding may trigger something now: it is large enough, and the last trigger for that
 * VM is older than `config->again_ns`. If so, notes the trigger. Times are CLOCK_MONOTONIC. */
bool vp_rules_may_fire(vp_fired_rules *fired, const struct vp_daemon_config *config,
		       const struct vp_held_rule *held, const struct vp_vm *vm, uint64_t now);

#endif
