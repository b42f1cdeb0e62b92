/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The accounting programs in the kernel, attached to nothing: a test runs them itself. */
#ifndef VP_TESTS_BPF_ACCOUNT_RIG_H
#define VP_TESTS_BPF_ACCOUNT_RIG_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/account_abi.h"

#include "account.skel.h"
#include "kernel.h"
#include "schema/records.h"

struct rig {
	struct account_bpf *programs;
	uint32_t slots, pcpus;
	/* Shared with the programs, and writable. */
	struct vp_account_vcpu *vcpus;
	struct vp_account_exit *exits;
	struct vp_account_site *sites;
	struct vp_account_cpu *cpus;
};

/* Loads them, and has them count. */
struct rig *rig_open(enum vp_vendor vendor, uint32_t slots);
/* The same, where frequent exits are timed 1 in N. */
struct rig *rig_open_sampled(enum vp_vendor vendor, uint32_t slots);
/* The same, where only the scheduler's programs count. */
struct rig *rig_open_states(enum vp_vendor vendor, uint32_t slots);
void rig_close(struct rig *rig);
/* Has the programs find out anew which thread has which pCPU. */
void rig_forget_pcpus(struct rig *rig);
/* The account of the thread, or NULL. */
struct vp_account_vcpu *rig_vcpu(const struct rig *rig, uint32_t tid);

/* As Arm's KVM tells them: an exit because of an exception of that class, at that place. */
void rig_exit(const struct rig *rig, uint32_t class, uint64_t ip);
void rig_entry(const struct rig *rig);

/* As if all that happened to it so far had happened so much earlier. */
void rig_let_pass(struct rig *rig, struct vp_account_vcpu *vcpu, uint64_t ns);
/* Every nanosecond since its begin is in one state. */
void rig_expect_whole(const struct vp_account_vcpu *vcpu);
/* The row of the vCPU's exits for a reason; it must be there. */
const struct vp_account_exit *rig_exits(const struct rig *rig, const struct vp_account_vcpu *vcpu,
					uint32_t reason);
/* All rows: their sum, each one's buckets checked. */
struct vp_account_exit rig_all_exits(const struct rig *rig, const struct vp_account_vcpu *vcpu);
/* What was taken from the vCPU in the states of that mask by that kind (0: any): by `thieves`, and
 * by the rows of devices. */
struct vp_thief_cost rig_thieves(const struct rig *rig, const struct vp_account_vcpu *vcpu,
				 uint32_t states, uint32_t kind, uint32_t id);

#endif
