/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Detects interrupt storms: interrupts on a vCPU's pCPU at a rate that takes much of its time and
 * biases samples, which are taken by interrupts. */
#ifndef VP_ANALYZE_ACCOUNT_IRQ_STORM_H
#define VP_ANALYZE_ACCOUNT_IRQ_STORM_H

#include "analyze/account/account.h"
#include "analyze/common/health.h"
#include "schema/records.h"

/* The most frequent interrupt source on a vCPU's pCPU while the vCPU was running. */
struct vp_irq_storm {
	char source[VP_COMM_SIZE + 1];
	uint32_t kind, id; /* kind and id of the source, as in the accounting */
	double per_s;
	double percent; /* percent of the vCPU's time */
};

/* Whether there was an interrupt storm on that vCPU; `times`: an item of the account. */
bool vp_irq_storm_find(const struct vp_account *account, const struct vp_account_times *times,
		       struct vp_irq_storm *ret);

/* Appends a sentence per vCPU with a storm: source, cost, exits of the vCPU, and, with samples
 * every `period_ns` (0: no samples), the error of the samples. The sentences are to be freed. */
void vp_irq_storm_notes(const struct vp_account *account, uint64_t period_ns,
			vp_sentences *sentences);

#endif
