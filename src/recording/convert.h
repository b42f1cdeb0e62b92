/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From what the sampling programs hand over to the records of the schema. */
#ifndef VP_RECORDING_CONVERT_H
#define VP_RECORDING_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/sampler.h"
#include "schema/records.h"

/* Any record: big enough for each, told apart by header.id. */
union vp_any_record {
	struct vp_record_header header;
	struct vp_host_sample host_sample;
	struct vp_vcpu_sample vcpu_sample;
	struct vp_guest_sample guest_sample;
	struct vp_task task;
	struct vp_vcpu_in vcpu_in;
	struct vp_vcpu_out vcpu_out;
	struct vp_clock_sync clock_sync;
	struct vp_guest_task guest_task;
};

/* Whether a guest sample hit the guest's kernel or its user space. */
uint32_t vp_convert_guest_mode(const struct vp_raw_record *raw, uint64_t ip);
/* `mode` and `ip` are the kernel's word on what the sample hit; `vendor` an enum vp_vendor. */
void vp_convert_sample(const struct vp_raw_record *raw, uint32_t mode, uint64_t ip, uint32_t vendor,
		       union vp_any_record *ret);
void vp_convert_switch(const struct vp_raw_record *raw, uint32_t vendor, union vp_any_record *ret);
void vp_convert_guest_task(const struct vp_raw_record *raw, union vp_any_record *ret);
void vp_convert_task(const struct vp_raw_record *raw, union vp_any_record *ret);

static inline bool vp_mode_is_guest(uint32_t mode)
{
	return mode == VP_MODE_GUEST_KERNEL || mode == VP_MODE_GUEST_USER;
}

#endif
