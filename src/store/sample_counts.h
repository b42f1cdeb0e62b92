/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Number of samples of each VM by mode, since the last write to the account. */
#ifndef VP_STORE_SAMPLE_COUNTS_H
#define VP_STORE_SAMPLE_COUNTS_H

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "schema/records.h"
#include "store/trace_writer.h"

/* Zero-initialized. */
struct vp_sample_counts {
	struct vp_map index; /* in `vms`, by VM number */
	VP_VEC(struct vp_vm_samples) vms;
};

/* Adds `n` samples like this one; samples outside of VMs are ignored. */
void vp_sample_counts_add(struct vp_sample_counts *counts, const union vp_any_record *sample,
			  uint64_t n);
/* Writes a record for each VM that has samples to the account, and starts again from 0. */
void vp_sample_counts_write(struct vp_sample_counts *counts, uint64_t now,
			    struct vp_trace_writer *trace);
void vp_sample_counts_deinit(struct vp_sample_counts *counts);

#endif
