/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the programs that detect a flight recorder's triggers (schema/condition.h). */
#ifndef VP_COLLECT_PROGRAMS_CONDITIONS_H
#define VP_COLLECT_PROGRAMS_CONDITIONS_H

#include "base/error.h"
#include "base/macros.h"
#include "bpf/conditions_abi.h"
#include "schema/condition.h"

struct vp_condition_watch;

/* A hypervisor's triggers: KVM's are found by the programs below. */
struct vp_condition_ops {
	bool needs_account; /* triggers are evaluated in the accounting's records */
	/* See vp_condition_watch_open(). */
	struct vp_error *(*open)(const struct vp_conditions *conditions, bool every_vm,
				 struct vp_condition_watch **ret);
	/* Errors: a data source that it needs was not opened. NULL: it needs none. */
	struct vp_error *(*check)(const struct vp_condition_watch *watch);
	/* A trigger that cannot fire at present, as a sentence; NULL, also in its place: none. */
	const char *(*missing)(const struct vp_conditions *conditions);
	void (*add)(struct vp_condition_watch *watch, uint32_t pid);
	void (*arm)(struct vp_condition_watch *watch);
	int (*fd)(const struct vp_condition_watch *watch); /* -1: _take() after each drain */
	bool (*take)(struct vp_condition_watch *watch, struct vp_fired *ret);
	uint64_t (*dropped)(const struct vp_condition_watch *watch);
	void (*free)(struct vp_condition_watch *watch);
};

/* `every_vm`: watch all VMs, otherwise only added ones. Starts disarmed. Errors: a trigger that
 * this kernel does not support, no permission. */
struct vp_error *vp_condition_watch_open(const struct vp_conditions *conditions, bool every_vm,
					 struct vp_condition_watch **ret) VP_MUST_CHECK;
/* Also watches the VM of VMM process `pid`. */
void vp_condition_watch_add(struct vp_condition_watch *watch, uint32_t pid);
/* Enables the next notification; further triggers are only counted. */
void vp_condition_watch_arm(struct vp_condition_watch *watch);
/* A descriptor that is readable when a notification is available. */
int vp_condition_watch_fd(const struct vp_condition_watch *watch);
/* False: no trigger since it was armed. */
bool vp_condition_watch_take(struct vp_condition_watch *watch, struct vp_fired *ret);
/* Number of triggers without a notification. */
uint64_t vp_condition_watch_dropped(const struct vp_condition_watch *watch);
void vp_condition_watch_free(struct vp_condition_watch *watch);

#endif
