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
#include "schema/records.h"
#include "schema/vm.h"

struct vp_account_source;

struct vp_guest_sampler;
struct vp_hypervisor_events;
struct vp_kernel_btf;

struct vp_account_source_options {
	bool with_states; /* every stretch of a vCPU's time is kept for vp_account_source_drain() */
	bool tells_exits; /* to programs of others: vp_account_source_programs() */
	bool by_memory; /* Intel: guests' memory says whose exits are: vp_account_source_identity()
			 */
	struct vp_hypervisor_events *events; /* NULL, or what gets the hypervisor's own events */
	/* NULL, or the receiver of guest exits for interrupts. */
	struct vp_guest_sampler *guest_sampler;
	bool paravirtual; /* also what guests enter the hypervisor for that have no exits */
	const struct vp_exit_event *exit_event; /* NULL, or opened before */
	struct vp_kernel_btf *kernel;           /* read before, or NULL */
};

/* Loads and attaches the programs; nothing is counted yet. Errors: no permission, a kernel without
 * BTF or without what the programs need. */
struct vp_error *vp_account_source_open(const vp_vms *vms,
					const struct vp_account_source_options *options,
					struct vp_account_source **ret) VP_MUST_CHECK;
/* Programs that others can join; none if exits are not reported. */
struct vp_exit_programs vp_account_source_programs(const struct vp_account_source *source);
/* For telling the programs how guests' current tasks are read; NULL: they do not ask. */
struct vp_identity *vp_account_source_identity(struct vp_account_source *source);
/*
 * Counts from now on. The vCPUs of `vms` have an account from `now` (CLOCK_MONOTONIC, ns); what
 * they are doing then is learnt from the first thing that happens to each. Others' begin when they
 * are first seen.
 */
void vp_account_source_begin(struct vp_account_source *source, const vp_vms *vms, uint64_t now);
/* Stops counting; what was counted can still be read. */
void vp_account_source_end(struct vp_account_source *source);
void vp_account_source_free(struct vp_account_source *source);

/* Limitations on this kernel, as a sentence; NULL: none. */
const char *vp_account_source_missing(const struct vp_account_source *source);
/* Number of places that vCPUs may have. */
size_t vp_account_source_places(const struct vp_account_source *source);
/* A consistent copy of the vCPU in that place; false if there is none. */
bool vp_account_source_vcpu(const struct vp_account_source *source, size_t place,
			    struct vp_account_vcpu *ret);
/*
 * Gives the places of vCPUs that have ended to those who come: what is in their rows must have been
 * taken before.
 */
void vp_account_source_release(struct vp_account_source *source, const uint32_t *places,
			       size_t count);
/* Its exits (VP_EXIT_REASONS) and their places (VP_EXIT_SITES): shared with the programs. */
const struct vp_account_exit *vp_account_source_exits(const struct vp_account_source *source,
						      size_t place);
const struct vp_account_site *vp_account_source_sites(const struct vp_account_source *source,
						      size_t place);
/* Hands over each struct vp_thief_key and its struct vp_thief_cost: of kind VP_BY_MANY those of a
 * vCPU that there was no place for, together. */
void vp_account_source_thieves(const struct vp_account_source *source,
			       void (*take)(void *context, const void *key, const void *cost),
			       void *context);
/* Each struct vp_site_key and its struct vp_site_cost. */
void vp_account_source_old_sites(const struct vp_account_source *source,
				 void (*take)(void *context, const void *key, const void *cost),
				 void *context);
/* Known facts of a thief's thread; false if there are none. */
bool vp_account_source_task(const struct vp_account_source *source, uint32_t tid,
			    struct vp_account_task *ret);
/* Hands over the stretches of time (struct vp_vcpu_span) that ended since the last call; to be
 * called some times a second. Each pCPU's are in order. */
void vp_account_source_drain(struct vp_account_source *source,
			     void (*take)(void *context, struct vp_vcpu_span *record),
			     void *context);
/* Stretches that there was no room for. */
uint64_t vp_account_source_lost_states(const struct vp_account_source *source);
/* Events for which a table had no room, since vp_account_source_begin(). */
struct vp_account_lost vp_account_source_lost(const struct vp_account_source *source);

/* Where an account comes from, as operations: these functions, or another hypervisor's. */
struct vp_account_ops {
	bool often;           /* `gather` must be called at least every 0.1 s */
	bool has_paravirtual; /* there can be guests without exits */
	struct vp_error *(*open)(const vp_vms *vms, const struct vp_account_source_options *options,
				 struct vp_account_source **ret);
	struct vp_exit_programs (*programs)(const struct vp_account_source *source);
	/* NULL: guests' memory is not asked. */
	struct vp_identity *(*identity)(struct vp_account_source *source);
	/* Right before `begin`, when all else is ready. NULL: nothing is to be done. */
	struct vp_error *(*prepare)(struct vp_account_source *source);
	void (*begin)(struct vp_account_source *source, const vp_vms *vms, uint64_t now);
	/* Takes what has happened; returns up to when everything is known. NULL: it always is. */
	uint64_t (*gather)(struct vp_account_source *source, uint64_t now);
	void (*end)(struct vp_account_source *source);
	void (*free)(struct vp_account_source *source);
	const char *(*missing)(const struct vp_account_source *source);
	size_t (*places)(const struct vp_account_source *source);
	bool (*vcpu)(const struct vp_account_source *source, size_t place,
		     struct vp_account_vcpu *ret);
	void (*release)(struct vp_account_source *source, const uint32_t *places, size_t count);
	const struct vp_account_exit *(*exits)(const struct vp_account_source *source,
					       size_t place);
	const struct vp_account_site *(*sites)(const struct vp_account_source *source,
					       size_t place);
	void (*thieves)(const struct vp_account_source *source,
			void (*take)(void *context, const void *key, const void *cost),
			void *context);
	/*
	 * Makes room in the table of thieves: removes these, of which `take` gets the last counts;
	 * if one takes time again, it begins with nothing. most_thieves: how many there is room
	 * for. Both or none.
	 */
	void (*forget_thieves)(const struct vp_account_source *source,
			       const struct vp_thief_key *keys, size_t count,
			       void (*take)(void *context, const void *key, const void *cost),
			       void *context);
	size_t (*most_thieves)(const struct vp_account_source *source);
	void (*old_sites)(const struct vp_account_source *source,
			  void (*take)(void *context, const void *key, const void *cost),
			  void *context);
	bool (*task)(const struct vp_account_source *source, uint32_t tid,
		     struct vp_account_task *ret);
	void (*drain)(struct vp_account_source *source,
		      void (*take)(void *context, struct vp_vcpu_span *record), void *context);
	uint64_t (*lost_states)(const struct vp_account_source *source);
	struct vp_account_lost (*lost)(const struct vp_account_source *source);
	/* Events that were lost on their way here. NULL: none can be. */
	uint64_t (*lost_events)(const struct vp_account_source *source);
};

const struct vp_account_ops *vp_account_source_ops(void);

#endif
