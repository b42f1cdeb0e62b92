/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the programs that account for the vCPUs' time, and reads their counters. */
#ifndef VP_COLLECT_PROGRAMS_ACCOUNT_SOURCE_H
#define VP_COLLECT_PROGRAMS_ACCOUNT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "bpf/account_abi.h"
#include "collect/programs/exit_event.h"
#include "collect/programs/exit_programs.h"
#include "collect/programs/identity.h"
#include "schema/account_grade.h"
#include "schema/records.h"
#include "schema/vm.h"

struct vp_account_source;

struct vp_guest_sampler;
struct vp_hypervisor_events;
struct vp_kernel_btf;

struct vp_account_source_options {
	enum vp_account_grade grade;
	bool with_states;   /* every span of a vCPU's time is kept for `drain` */
	bool reports_exits; /* to programs of others: `programs` */
	bool by_memory;     /* Intel: the processes of exits are in guest memory: `identity`
			     */
	struct vp_hypervisor_events *events; /* NULL, or what gets the hypervisor's own events */
	/* NULL, or the receiver of guest exits for interrupts. */
	struct vp_guest_sampler *guest_sampler;
	bool paravirtual; /* also what guests enter the hypervisor for that have no exits */
	const struct vp_exit_event *exit_event; /* NULL, or opened before */
	struct vp_kernel_btf *kernel;           /* read before, or NULL */
};

/*
 * An account of the vCPUs' time, of KVM's by programs (vp_account_source_ops()) or another
 * hypervisor's. A slot is the row of a vCPU in its tables.
 */
struct vp_account_ops {
	bool often;           /* `gather` must be called at least every 0.1 s */
	bool has_grades;      /* other grades than VP_ACCOUNT_EXACT */
	bool has_paravirtual; /* there can be guests without exits */
	/* Loads and attaches the programs; nothing is counted yet. Errors: no permission, a kernel
	 * without BTF or without what the programs need. */
	struct vp_error *(*open)(const vp_vms *vms, const struct vp_account_source_options *options,
				 struct vp_account_source **ret);
	/* Programs that others can join; none if exits are not reported. NULL: none. */
	struct vp_exit_programs (*programs)(const struct vp_account_source *source);
	/* For telling the programs how guests' current tasks are read. NULL, or the result is
	 * NULL: they do not read guest memory. */
	struct vp_identity *(*identity)(struct vp_account_source *source);
	/* Right before `begin`, when all else is ready. NULL: nothing is to be done. */
	struct vp_error *(*prepare)(struct vp_account_source *source);
	/* Counts from now on. The vCPUs of `vms` have an account from `now` (CLOCK_MONOTONIC, ns);
	 * what they are doing then is learnt from the first thing that happens to each. Others'
	 * begin when they are first seen. */
	void (*begin)(struct vp_account_source *source, const vp_vms *vms, uint64_t now);
	/* Takes what has happened; returns up to when everything is known. NULL: it always is. */
	uint64_t (*gather)(struct vp_account_source *source, uint64_t now);
	/* Stops counting; what was counted can still be read. */
	void (*end)(struct vp_account_source *source);
	void (*free)(struct vp_account_source *source);
	/* Limitations on this kernel, as a sentence; NULL: none. */
	const char *(*missing)(const struct vp_account_source *source);
	/* Number of slots that vCPUs may have. */
	size_t (*slots)(const struct vp_account_source *source);
	/* A consistent copy of the vCPU in that slot; false: not found. */
	bool (*vcpu)(const struct vp_account_source *source, size_t slot,
		     struct vp_account_vcpu *ret);
	/* Gives the slots of vCPUs that have ended to new ones: their rows must have been read. */
	void (*release)(struct vp_account_source *source, const uint32_t *slots, size_t count);
	/* The slot's exits (VP_EXIT_REASONS) and exit sites (VP_EXIT_SITES): shared with the
	 * programs. */
	const struct vp_account_exit *(*exits)(const struct vp_account_source *source, size_t slot);
	const struct vp_account_site *(*sites)(const struct vp_account_source *source, size_t slot);
	/* Emits each struct vp_thief_key and its struct vp_thief_cost: of kind VP_BY_MANY those of
	 * a vCPU that there was no room for, together. */
	void (*thieves)(const struct vp_account_source *source,
			void (*take)(void *context, const void *key, const void *cost),
			void *context);
	/*
	 * Makes room in the table of thieves: removes these, of which `take` gets the last counts;
	 * if one takes time again, it begins with nothing. max_thieves: how many there is room
	 * for. Both or none.
	 */
	void (*forget_thieves)(const struct vp_account_source *source,
			       const struct vp_thief_key *keys, size_t count,
			       void (*take)(void *context, const void *key, const void *cost),
			       void *context);
	size_t (*max_thieves)(const struct vp_account_source *source);
	/* Each struct vp_site_key and its struct vp_site_cost. */
	void (*old_sites)(const struct vp_account_source *source,
			  void (*take)(void *context, const void *key, const void *cost),
			  void *context);
	/* Known facts of a thief's thread; false: not found. */
	bool (*task)(const struct vp_account_source *source, uint32_t tid,
		     struct vp_account_task *ret);
	/* Emits the spans (struct vp_vcpu_span) that ended since the last call; to be called some
	 * times a second. Each pCPU's are in order. */
	void (*drain)(struct vp_account_source *source,
		      void (*take)(void *context, struct vp_vcpu_span *record), void *context);
	/* Spans that there was no room for. */
	uint64_t (*lost_states)(const struct vp_account_source *source);
	/* Events for which a table had no room, since `begin`. */
	struct vp_account_lost (*lost)(const struct vp_account_source *source);
	/* Events that were lost on their way here. NULL: none can be. */
	uint64_t (*lost_events)(const struct vp_account_source *source);
};

/* KVM's account. */
const struct vp_account_ops *vp_account_source_ops(void);
/* The operations with a default in the place of those that may be NULL, but for the two of
 * thieves. */
struct vp_account_ops vp_account_ops_complete(const struct vp_account_ops *ops);

#endif
