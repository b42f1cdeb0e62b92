/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rules of 'vperf diagnose' on the account of the last seconds, and how often each may cause
 * something. */
#ifndef VP_DAEMON_RULES_H
#define VP_DAEMON_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/account/account.h"
#include "base/vec.h"
#include "daemon/daemon_config.h"

/* A rule that holds now. */
struct vp_held_rule {
	const char *rule; /* its id */
	uint32_t vm;      /* vp_vm_id() */
	double percent;   /* of the time of the VM's vCPUs */
	bool is_own;      /* it is about vperf itself, and would be made worse by what it causes */
	char *who;        /* who took the most of it, or "" */
	char *sentence;
};
typedef VP_VEC(struct vp_held_rule) vp_held_rules;

void vp_held_rules_deinit(vp_held_rules *rules);
/* All rules that hold in the account, which is settled by that; those of `config->ignore` are
 * left out. */
void vp_rules_evaluate(struct vp_account *account, const struct vp_daemon_config *config,
		       vp_held_rules *ret);

/* When a rule caused something for a VM. */
struct vp_fired_rule {
	uint64_t key; /* hash of rule and VM */
	uint64_t time;
};
typedef VP_VEC(struct vp_fired_rule) vp_fired_rules;

/* Whether the rule may cause something now: it holds strongly enough, and has not for that VM since
 * `config->again_ns`. If so, it is noted. Times are CLOCK_MONOTONIC. */
bool vp_rules_may_fire(vp_fired_rules *fired, const struct vp_daemon_config *config,
		       const struct vp_held_rule *held, const struct vp_vm *vm, uint64_t now);

#endif
