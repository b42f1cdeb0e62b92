/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vCPU accounting: loads the BPF programs and reads their counters. */
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

struct vp_condition_watch;
struct vp_guest_sampler;
struct vp_hypervisor_events;
struct vp_kernel_btf;

struct vp_account_source_options {
	enum vp_account_grade grade;
	bool with_states;   /* keep every span of a vCPU's time for `drain` */
	bool reports_exits; /* to programs of other instruments: `programs` */
	bool by_memory;     /* Intel: read the processes of exits from guest memory: `identity` */
	struct vp_hypervisor_events *events; /* receiver of the hypervisor's own events, or NULL */
	/* Receiver of guest exits for interrupts, or NULL. */
	struct vp_guest_sampler *guest_sampler;
	/* Receiver of what can fire a trigger, if its triggers are not evaluated by programs; or
	 * NULL. */
	struct vp_condition_watch *watch;
	bool paravirtual; /* also count entries into the hypervisor of guests without exits */
	const struct vp_exit_event *exit_event; /* already open, or NULL */
	struct vp_kernel_btf *kernel;           /* already parsed, or NULL */
};

/* A source of vCPU accounting: KVM's by BPF programs (vp_account_source_ops()), or another
 * hypervisor's. A slot is the row of a vCPU in its tables. */
struct vp_account_ops {
	bool often;           /* `gather` must be called at least every 0.1 s */
	bool has_grades;      /* grades other than VP_ACCOUNT_EXACT */
	bool has_paravirtual; /* guests without exits are possible */
	/* Loads and attaches the programs; nothing is counted yet. Errors: no permission; a kernel
	 * without BTF or other required features. */
	struct vp_error *(*open)(const vp_vms *vms, const struct vp_account_source_options *options,
				 struct vp_account_source **ret);
	/* Programs that other instruments can join; empty if exits are not reported. NULL: none. */
	struct vp_exit_programs (*programs)(const struct vp_account_source *source);
	/* Configures how the programs read guests' current tasks. NULL, or NULL result: guest
	 * memory is not read. */
	struct vp_identity *(*identity)(struct vp_account_source *source);
	/* Runs right before `begin`. NULL: nothing to do. */
	struct vp_error *(*prepare)(struct vp_account_source *source);
	/*
	 * Starts counting. The accounting of vCPUs in `vms` starts at `now` (CLOCK_MONOTONIC, ns);
	 * their state is unknown until their first event. That of other vCPUs starts when they are
	 * first seen.
	 */
	void (*begin)(struct vp_account_source *source, const vp_vms *vms, uint64_t now);
	/* Collects events; returns the time up to which all are known. NULL: counters are always
	 * complete. */
	uint64_t (*gather)(struct vp_account_source *source, uint64_t now);
	/* Stops counting; counters can still be read. */
	void (*end)(struct vp_account_source *source);
	void (*free)(struct vp_account_source *source);
	/* Limitations on this kernel, as a sentence; NULL: none. */
	const char *(*missing)(const struct vp_account_source *source);
	/* Number of slots. */
	size_t (*slots)(const struct vp_account_source *source);
	/* A consistent copy of the vCPU in that slot; false: empty slot. */
	bool (*vcpu)(const struct vp_account_source *source, size_t slot,
		     struct vp_account_vcpu *ret);
	/* Frees the slots of ended vCPUs, whose rows must have been read. */
	void (*release)(struct vp_account_source *source, const uint32_t *slots, size_t count);
	/* The slot's exits (VP_EXIT_REASONS) and exit sites (VP_EXIT_SITES): memory shared with the
	 * programs. */
	const struct vp_account_exit *(*exits)(const struct vp_account_source *source, size_t slot);
	const struct vp_account_site *(*sites)(const struct vp_account_source *source, size_t slot);
	/* Emits each struct vp_thief_key with its struct vp_thief_cost; kind VP_BY_MANY: the sum of
	 * a vCPU's thieves that did not fit. */
	void (*thieves)(const struct vp_account_source *source,
			void (*take)(void *context, const void *key, const void *cost),
			void *context);
	/* Removes thieves from the table; `take` receives their last counts. If one takes time
	 * again, it starts at zero. max_thieves: size of the table. Both or none. */
	void (*forget_thieves)(const struct vp_account_source *source,
			       const struct vp_thief_key *keys, size_t count,
			       void (*take)(void *context, const void *key, const void *cost),
			       void *context);
	size_t (*max_thieves)(const struct vp_account_source *source);
	/* Emits each struct vp_site_key with its struct vp_site_cost. */
	void (*old_sites)(const struct vp_account_source *source,
			  void (*take)(void *context, const void *key, const void *cost),
			  void *context);
	/* Facts about a thief's thread; false: unknown. */
	bool (*task)(const struct vp_account_source *source, uint32_t tid,
		     struct vp_account_task *ret);
	/* Emits the spans (struct vp_vcpu_span) that ended since the last call; call it several
	 * times a second. Those of one pCPU are in order. */
	void (*drain)(struct vp_account_source *source,
		      void (*take)(void *context, struct vp_vcpu_span *record), void *context);
	/* Number of spans lost in full buffers. */
	uint64_t (*lost_states)(const struct vp_account_source *source);
	/* Events for which a table was full, since `begin`. */
	struct vp_account_lost (*lost)(const struct vp_account_source *source);
	/* Number of events lost before they were counted. NULL: impossible. */
	uint64_t (*lost_events)(const struct vp_account_source *source);
};

/* The accounting of KVM. */
const struct vp_account_ops *vp_account_source_ops(void);
/* The operations, with defaults for those that may be NULL, except the two for thieves. */
struct vp_account_ops vp_account_ops_complete(const struct vp_account_ops *ops);

#endif
