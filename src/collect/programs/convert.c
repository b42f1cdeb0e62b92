/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/convert.h"

#include <string.h>

#include "schema/exit_reason.h"

enum { SAMPLE_FLAGS = VP_HAS_EXIT_REASON | VP_HAS_AS_ROOT | VP_HAS_CPL | VP_BY_MEMORY };

/*
 * Kernel or user space of the guest. The mode given by perf is not used: KVM of 6.1, for example,
 * reports the mode at the vCPU's last preemption (kvm_arch_vcpu_in_kernel() of a running vCPU). The
 * privilege level is exact; if it is unknown (Intel), the upper half of the addresses is the
 * kernel.
 */
static uint32_t guest_mode(const struct vp_raw_record *raw, uint64_t ip)
{
	bool user = raw->flags & VP_HAS_CPL ? raw->cpl == 3 : (int64_t)ip >= 0;

	return user ? VP_MODE_GUEST_USER : VP_MODE_GUEST_KERNEL;
}

static void guest_sample(const struct vp_raw_record *raw, uint64_t ip, uint32_t vendor,
			 struct vp_guest_sample *ret)
{
	*ret = (struct vp_guest_sample){
	    .time = raw->time,
	    .id = VP_ID_guest_sample,
	    .vm = raw->pid,
	    .tid = raw->tid,
	    .mode = guest_mode(raw, ip),
	    .ip = ip,
	    .as_root = raw->as_root,
	    .vcpu = raw->vcpu,
	    .exit_reason = raw->exit_reason,
	    .vendor = vendor,
	    .flags = raw->flags & SAMPLE_FLAGS,
	    .cpl = raw->cpl,
	    .guest_pid = raw->guest_pid,
	    .guest_tid = raw->guest_tid,
	};
}

static void vcpu_sample(const struct vp_raw_record *raw, uint32_t mode, uint64_t ip,
			uint32_t vendor, struct vp_vcpu_sample *ret)
{
	*ret = (struct vp_vcpu_sample){
	    .time = raw->time,
	    .id = VP_ID_vcpu_sample,
	    .vm = raw->pid,
	    .tid = raw->tid,
	    .mode = mode,
	    .ip = ip,
	    .vcpu = raw->vcpu,
	    .exit_reason = raw->exit_reason,
	    .vendor = vendor,
	    .flags = raw->flags & VP_HAS_EXIT_REASON,
	};
}

bool vp_convert_hit_guest(const struct vp_raw_record *raw, uint32_t mode, uint32_t vendor)
{
	return vp_mode_is_guest(mode) && !(raw->flags & VP_RAW_IN_HOST) &&
	       (!(raw->flags & VP_HAS_EXIT_REASON) ||
		vp_exit_reason_is_interrupt(vendor, raw->exit_reason));
}

uint32_t vp_convert_mode(const struct vp_raw_record *raw)
{
	return (int64_t)raw->host_ip < 0 ? VP_MODE_KERNEL : VP_MODE_USER;
}

void vp_convert_sample(const struct vp_raw_record *raw, uint32_t mode, uint64_t ip, uint32_t vendor,
		       union vp_any_record *ret)
{
	if (vp_mode_is_guest(mode)) {
		guest_sample(raw, ip, vendor, &ret->guest_sample);
	} else if (raw->flags & VP_RAW_ON_VCPU) {
		vcpu_sample(raw, mode, ip, vendor, &ret->vcpu_sample);
	} else {
		ret->host_sample = (struct vp_host_sample){
		    .time = raw->time,
		    .id = VP_ID_host_sample,
		    .pid = raw->pid,
		    .tid = raw->tid,
		    .mode = mode,
		    .ip = ip,
		};
	}
}

void vp_convert_switch(const struct vp_raw_record *raw, uint32_t vendor, union vp_any_record *ret)
{
	struct vp_vcpu_out *out = &ret->vcpu_out;

	/* vcpu_in has the same fields in the same order. */
	_Static_assert(sizeof(struct vp_vcpu_in) == sizeof(struct vp_vcpu_out), "same fields");
	*out = (struct vp_vcpu_out){
	    .time = raw->time,
	    .id = raw->kind == VP_RAW_VCPU_IN ? VP_ID_vcpu_in : VP_ID_vcpu_out,
	    .vm = raw->pid,
	    .tid = raw->tid,
	    .vcpu = raw->vcpu,
	    .exit_reason = raw->exit_reason,
	    .vendor = vendor,
	    .flags = raw->flags & (VP_HAS_EXIT_REASON | VP_BLOCKED),
	    .other_tid = raw->other_tid,
	};
}

void vp_convert_guest_task(const struct vp_raw_record *raw, union vp_any_record *ret)
{
	ret->guest_task = (struct vp_guest_task){
	    .time = raw->time,
	    .id = VP_ID_guest_task,
	    .flags = raw->cpl == 3 ? VP_IN_USER : 0,
	    .vm = raw->pid,
	    .guest_pid = raw->guest_pid,
	    .guest_tid = raw->guest_tid,
	    .task = raw->guest_task,
	};
	memcpy(ret->guest_task.comm, raw->guest_comm, sizeof(ret->guest_task.comm));
}

void vp_convert_period(const struct vp_raw_record *raw, uint64_t weight, union vp_any_record *ret)
{
	ret->sample_period = (struct vp_sample_period){
	    .time = raw->time, .id = VP_ID_sample_period, .events = weight};
}

void vp_convert_task(const struct vp_raw_record *raw, union vp_any_record *ret)
{
	ret->task = (struct vp_task){
	    .time = raw->time,
	    .id = VP_ID_task,
	    .pid = raw->pid,
	    .tid = raw->tid,
	};
	memcpy(ret->task.comm, raw->comm, sizeof(ret->task.comm));
}
