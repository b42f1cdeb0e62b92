/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/recent_hour.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "schema/account_terms.h"

#define MINUTE 60000000000ULL

static enum vp_hour_part hour_part_of(size_t state)
{
	switch (state) {
	case VP_STATE_HALTED:
	case VP_STATE_WAITING:
		return VP_HOUR_IDLE;
	case VP_STATE_WAKING:
	case VP_STATE_PREEMPTED:
	case VP_STATE_THROTTLED:
	case VP_STATE_IRQ:
		return VP_HOUR_STOLEN;
	default:
		return VP_HOUR_USED;
	}
}

static struct vp_hour_vm *hour_vm_of(struct vp_hour *hour, uint32_t id, const vp_vms *vms)
{
	vp_vec_each (&hour->vms, vm)
		if (vm->id == id)
			return vm;
	const struct vp_vm *about = vp_vms_find(vms, id);
	if (!about)
		return NULL;
	vp_vec_push(&hour->vms, ((struct vp_hour_vm){.id = id, .name = vp_strdup(about->name)}));
	return &hour->vms.at[hour->vms.count - 1];
}

static void hour_count(const struct vp_counted_vm *counted, uint64_t minute, struct vp_hour_vm *vm)
{
	uint64_t totals[VP_HOUR_PARTS] = {0};

	vp_vec_each (&counted->vcpus, vcpu)
		for (size_t state = 0; state < VP_STATES; state++)
			totals[hour_part_of(state)] += vcpu->ns[state];
	vm->vcpus = counted->vcpus.count;
	for (size_t part = 0; part < VP_HOUR_PARTS; part++) {
		if (totals[part] > vm->before[part])
			vm->ns[minute % VP_HOUR_MINUTES][part] += totals[part] - vm->before[part];
		vm->before[part] = totals[part];
	}
}

/* Clears the minutes that begin now; all of them after a jump of the clock. */
static void hour_advance(struct vp_hour *hour, uint64_t minute)
{
	bool jumps = minute < hour->minute || minute - hour->minute >= VP_HOUR_MINUTES;

	for (uint64_t i = jumps ? minute - VP_HOUR_MINUTES : hour->minute; i < minute; i++)
		vp_vec_each (&hour->vms, vm)
			memset(vm->ns[(i + 1) % VP_HOUR_MINUTES], 0, sizeof(vm->ns[0]));
	hour->minute = minute;
}

static bool hour_is_counted(const struct vp_account_counters *counters, uint32_t id)
{
	vp_vec_each (&counters->vms, vm)
		if (vm->id == id)
			return true;
	return false;
}

static void hour_forget(struct vp_hour *hour, const struct vp_account_counters *counters)
{
	size_t kept = 0;

	vp_vec_each (&hour->vms, vm) {
		uint64_t sum[VP_HOUR_PARTS];
		vp_hour_sum(vm, sum);
		if (sum[VP_HOUR_USED] + sum[VP_HOUR_STOLEN] + sum[VP_HOUR_IDLE] ||
		    hour_is_counted(counters, vm->id))
			hour->vms.at[kept++] = *vm;
		else
			free(vm->name);
	}
	hour->vms.count = kept;
}

void vp_hour_add(struct vp_hour *hour, const struct vp_account_counters *counters,
		 const vp_vms *vms, uint64_t realtime)
{
	uint64_t minute = realtime / MINUTE;

	/* Counted time may end some seconds before the time of a call without records. */
	if (minute < hour->minute && hour->minute - minute <= 1)
		minute = hour->minute;
	if (minute != hour->minute) {
		hour_advance(hour, minute);
		hour_forget(hour, counters);
	}
	vp_vec_each (&counters->vms, counted) {
		struct vp_hour_vm *vm = hour_vm_of(hour, counted->id, vms);
		if (vm)
			hour_count(counted, minute, vm);
	}
}

void vp_hour_deinit(struct vp_hour *hour)
{
	vp_vec_each (&hour->vms, vm)
		free(vm->name);
	vp_vec_deinit(&hour->vms);
	*hour = (struct vp_hour){0};
}

const uint64_t *vp_hour_minute(const struct vp_hour *hour, const struct vp_hour_vm *vm,
			       unsigned ago)
{
	return vm->ns[(hour->minute + VP_HOUR_MINUTES - ago) % VP_HOUR_MINUTES];
}

void vp_hour_sum(const struct vp_hour_vm *vm, uint64_t ret[VP_HOUR_PARTS])
{
	for (size_t part = 0; part < VP_HOUR_PARTS; part++) {
		ret[part] = 0;
		for (size_t i = 0; i < VP_HOUR_MINUTES; i++)
			ret[part] += vm->ns[i][part];
	}
}

double vp_hour_steal(const uint64_t ns[VP_HOUR_PARTS])
{
	uint64_t all = ns[VP_HOUR_USED] + ns[VP_HOUR_STOLEN] + ns[VP_HOUR_IDLE];

	return all ? (double)ns[VP_HOUR_STOLEN] / (double)all : 0;
}
