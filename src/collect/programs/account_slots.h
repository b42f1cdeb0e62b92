/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slots of the accounting programs' tables, freed when their vCPUs have ended. */
#ifndef VP_COLLECT_PROGRAMS_ACCOUNT_SLOTS_H
#define VP_COLLECT_PROGRAMS_ACCOUNT_SLOTS_H

#include <stddef.h>
#include <stdint.h>

struct account_bpf;

/* Frees `count` slots (numbered from 0) of ended vCPUs whose counters were read. Other vCPUs may
 * reuse the slots, starting at zero. */
void vp_account_slots_release(const struct account_bpf *programs, const uint32_t *slots,
			      size_t count);

#endif
