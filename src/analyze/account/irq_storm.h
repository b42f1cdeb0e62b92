/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interrupt storms: interrupts on a vCPU's pCPU at a rate that takes much of its time and biases
 * samples, which are taken by interrupts themselves. */
#ifndef VP_ANALYZE_ACCOUNT_IRQ_STORM_H
#define VP_ANALYZE_ACCOUNT_IRQ_STORM_H

#include "analyze/account/account.h"
#include "analyze/common/health.h"
#include "schema/records.h"

/* The most frequent interrupts of a vCPU's pCPU, while the vCPU had it. */
struct vp_irq_storm {
	char source[VP_COMM_SIZE + 1];
	uint32_t kind, id; /* of it, as the account has it */
	double per_s;
	double percent; /* of the vCPU's time that they took */
};

/* Whether there is an interrupt storm on that vCPU; `times` is one of the account's. */
bool vp_irq_storm_find(const struct vp_account *account, const struct vp_account_times *times,
		       struct vp_irq_storm *ret);

/*
 * Appends a sentence for each vCPU with a storm: what it is of, what it takes, what the vCPU exited
 * for, and, with samples every `period_ns` (0: no samples), how far the samples are off.
 * The sentences are the caller's to free.
 */
void vp_irq_storm_notes(const struct vp_account *account, uint64_t period_ns,
			vp_sentences *sentences);

#endif
