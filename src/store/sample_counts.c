/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/sample_counts.h"

#include "base/map.h"
#include "base/vec.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "store/packet.h"
#include "store/trace_writer.h"

static struct vp_vm_samples *counts_of(struct vp_sample_counts *counts, uint32_t vm)
{
	bool inserted;
	uint32_t number =
	    *vp_map_insert(&counts->index, vm, (uint32_t)counts->vms.count, &inserted);

	if (inserted)
		vp_vec_push(&counts->vms,
			    ((struct vp_vm_samples){.id = VP_ID_vm_samples, .vm = vm}));
	return &counts->vms.at[number];
}

void vp_sample_counts_add(struct vp_sample_counts *counts, const union vp_any_record *sample,
			  uint64_t n)
{
	if (sample->header.id == VP_ID_vcpu_sample)
		counts_of(counts, sample->vcpu_sample.vm)->host += n;
	else if (sample->header.id != VP_ID_guest_sample)
		return;
	else if (sample->guest_sample.mode == VP_MODE_GUEST_USER)
		counts_of(counts, sample->guest_sample.vm)->guest_user += n;
	else
		counts_of(counts, sample->guest_sample.vm)->guest_kernel += n;
}

void vp_sample_counts_write(struct vp_sample_counts *counts, uint64_t now,
			    struct vp_trace_writer *trace)
{
	vp_vec_each (&counts->vms, record) {
		record->time = now;
		vp_trace_append(trace, (struct vp_stream_id){VP_STREAM_ACCOUNT, VP_NO_PCPU},
				record);
	}
	vp_sample_counts_deinit(counts);
}

void vp_sample_counts_deinit(struct vp_sample_counts *counts)
{
	vp_map_deinit(&counts->index);
	vp_vec_deinit(&counts->vms);
}
