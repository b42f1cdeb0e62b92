/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the sampler. */
#ifndef VP_COLLECT_PROGRAMS_SAMPLER_PRIVATE_H
#define VP_COLLECT_PROGRAMS_SAMPLER_PRIVATE_H

#include <bpf/libbpf.h>

#include "base/buffer.h"
#include "base/vec.h"
#include "bpf/sampler_abi.h"
#include "collect/programs/identity.h"
#include "collect/programs/rings.h"
#include "collect/programs/sampler.h"
#include "collect/programs/stack_sizes.h"
#include "host/kernel_function.h"
#include "sampler.skel.h"
#include "schema/busy.h"
#include "schema/records.h"

/* With perf's buffers: records made from the buffer of a pCPU and not passed on yet. */
struct sample_batch {
	struct vp_buffer records;
	struct vp_buffer chains; /* stacks of the next sample */
	uint32_t tid;            /* the thread whose name was recorded last */
	char comm[VP_COMM_SIZE];
	struct vp_busy busy;
};

struct vp_sampler {
	struct sampler_bpf *programs;
	const struct vp_trigger *trigger;
	enum vp_vendor vendor;
	enum vp_seen_by seen_by;
	struct vp_kernel_function run; /* 64-bit Arm: KVM's run loop */
	bool hits_no_guests;
	bool by_memory;
	bool with_chains;
	bool by_frame_pointers;
	size_t buffer_pages;
	struct vp_rings rings;
	struct ring_buffer *doorbell;        /* with IRQs */
	struct perf_buffer *buffer;          /* with perf's buffers */
	VP_VEC(struct sample_batch) batches; /* with perf's buffers, by pCPU */
	struct vp_identity identity;
	struct vp_stack_sizes stack_sizes;
	struct bpf_link *switch_link, *rename_link;
	vp_records_fn take;
	void *context;
};

#endif
