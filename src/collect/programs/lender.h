/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Provides host counters to a guest ("lends" them): protocol/lent.h, docs/method-counters.md. */
#ifndef VP_COLLECT_PROGRAMS_LENDER_H
#define VP_COLLECT_PROGRAMS_LENDER_H

#include "base/error.h"
#include "base/macros.h"
#include "protocol/lend_protocol.h"
#include "schema/vm.h"

struct vp_lender;

/* VM entries of the vCPUs, by outcome. */
struct vp_lender_totals {
	uint64_t published;
	uint64_t idle;      /* no client in the guest: nothing to do */
	uint64_t unread;    /* a counter could not be read: clients get an error */
	uint64_t unwritten; /* guest memory was not mapped, or was being changed */
};

/*
 * Opens the events (names of schema/event.h) on the VM's vCPU threads, loads and attaches the
 * program, and requests cells from the guest's agent at vsock port `port`. Errors: no permission,
 * an event that this host cannot count, no vsock.
 */
struct vp_error *vp_lender_open(const struct vp_vm *vm, const char *const *names, size_t n,
				unsigned port, struct vp_lender **ret) VP_MUST_CHECK;
/* Stops; clients in the guest receive an error. NULL is allowed. */
void vp_lender_free(struct vp_lender *lender);
/* Waits for the agent's messages, with a timeout. Errors: the agent has stopped or is missing.
 * *lends: counters are being published to clients. */
struct vp_error *vp_lender_step(struct vp_lender *lender, int timeout_ms,
				bool *lends) VP_MUST_CHECK;
/* Number of vCPUs. */
size_t vp_lender_vcpus(const struct vp_lender *lender);
struct vp_lender_totals vp_lender_totals(const struct vp_lender *lender);

#endif
