/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds who had the pCPU while the vCPU of a trigger waited for it. */
#ifndef VP_COLLECT_PROGRAMS_CONDITION_THIEF_H
#define VP_COLLECT_PROGRAMS_CONDITION_THIEF_H

#include <stdint.h>

#include "bpf/conditions_abi.h"

/* Sets the thief in the notification from that pCPU's slices. */
void vp_condition_find_thief(const struct vp_condition_cpu *cpu, struct vp_fired *fired);

#endif
