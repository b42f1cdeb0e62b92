/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slots of the account in the kernel's tables, given back when their vCPUs have ended. */
#ifndef VP_COLLECT_PROGRAMS_ACCOUNT_SLOTS_H
#define VP_COLLECT_PROGRAMS_ACCOUNT_SLOTS_H

#include <stddef.h>
#include <stdint.h>

struct account_bpf;

/*
 * The vCPUs in these `count` slots (from 0 on) have ended, and what was counted of them was read:
 * other vCPUs may have the slots, and begin with nothing.
 */
void vp_account_slots_release(const struct account_bpf *programs, const uint32_t *slots,
			      size_t count);

#endif
