/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts samples of perf and of the BPF programs to records of the schema. */
#ifndef VP_COLLECT_PROGRAMS_CONVERT_H
#define VP_COLLECT_PROGRAMS_CONVERT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/sampler_abi.h"
#include "schema/records.h"
#include "schema/schema.h"

/*
 * Whether a sample that the kernel attributes to the guest is one. An interrupt that became pending
 * while KVM handled an exit is delivered at the same place as one that interrupted the guest; the
 * exit reason distinguishes them.
 */
bool vp_convert_hit_guest(const struct vp_raw_record *raw, uint32_t mode, uint32_t vendor);
/* Host kernel or user space, from the sampled address. */
uint32_t vp_convert_mode(const struct vp_raw_record *raw);
/* Converts a raw record of the programs. `mode` (enum vp_mode) and `ip`: from the kernel's sample;
 * `vendor`: enum vp_vendor. */
void vp_convert_sample(const struct vp_raw_record *raw, uint32_t mode, uint64_t ip, uint32_t vendor,
		       union vp_any_record *ret);
void vp_convert_switch(const struct vp_raw_record *raw, uint32_t vendor, union vp_any_record *ret);
void vp_convert_guest_task(const struct vp_raw_record *raw, union vp_any_record *ret);
/* Makes a record of the next sample's weight, in the recording's unit. */
void vp_convert_period(const struct vp_raw_record *raw, uint64_t weight, union vp_any_record *ret);
void vp_convert_task(const struct vp_raw_record *raw, union vp_any_record *ret);

#endif
