/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vCPU time of each VM by minute, for the last hour: used, stolen and idle. */
#ifndef VP_DAEMON_RECENT_HOUR_H
#define VP_DAEMON_RECENT_HOUR_H

#include <stddef.h>
#include <stdint.h>

#include "analyze/account/account_counters.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/vm.h"

enum { VP_HOUR_MINUTES = 60 };

/* Used: in the guest, the hypervisor or the VMM. Idle: halted or waiting in the VMM. */
enum vp_hour_part { VP_HOUR_USED, VP_HOUR_STOLEN, VP_HOUR_IDLE, VP_HOUR_PARTS };

struct vp_hour_vm {
	uint32_t id; /* vp_vm_id() */
	char *name;
	size_t vcpus;
	uint64_t before[VP_HOUR_PARTS]; /* totals of the counters at the last call, ns */
	uint64_t ns[VP_HOUR_MINUTES][VP_HOUR_PARTS]; /* minute N is in element N % 60 */
};

struct vp_hour {
	VP_VEC(struct vp_hour_vm) vms;
	uint64_t minute; /* number of the present minute since 1970; 0: none yet */
};

/* Adds the growth of the counters since the last call. `realtime`: end of the counted time, ns.
 * VMs that have had no time in the last hour are forgotten. */
void vp_hour_add(struct vp_hour *hour, const struct vp_account_counters *counters,
		 const vp_vms *vms, uint64_t realtime);
void vp_hour_deinit(struct vp_hour *hour);

/* Time of the minute that is `ago` minutes before the present one. */
const uint64_t *vp_hour_minute(const struct vp_hour *hour, const struct vp_hour_vm *vm,
			       unsigned ago);
/* Sum of the hour. */
void vp_hour_sum(const struct vp_hour_vm *vm, uint64_t ret[VP_HOUR_PARTS]);
/* Steal as a share of the time, 0 to 1. */
double vp_hour_steal(const uint64_t ns[VP_HOUR_PARTS]);

#endif
