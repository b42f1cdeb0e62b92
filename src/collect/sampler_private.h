/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the sampler share. */
#ifndef VP_COLLECT_SAMPLER_PRIVATE_H
#define VP_COLLECT_SAMPLER_PRIVATE_H

#include <bpf/libbpf.h>

#include "base/vec.h"
#include "collect/sampler.h"
#include "sampler.skel.h"

/* The rings of all pCPUs in one mapping of the kernel's arrays; see struct vp_ring. */
struct rings {
	struct vp_ring *states;
	struct vp_raw_record *slots;
	size_t count; /* highest pCPU + 1 */
	size_t size;  /* slots of each */
	VP_VEC(int) pcpus;
	struct comm {
		char text[sizeof(((struct vp_raw_record *)0)->comm)];
	} * comms; /* per pCPU: of the last sample */
	struct ring_buffer *doorbell;
};

/* Records come through `buffer` or `rings`, by `seen_by`. */
struct vp_sampler {
	struct sampler_bpf *programs;
	enum vp_seen_by seen_by;
	struct perf_buffer *buffer;
	struct rings rings;
	struct bpf_link *switch_link, *rename_link;
	vp_raw_taker take;
	void *context;
	uint64_t *lost_values; /* one per possible pCPU: what a per-CPU map look-up fills */
	int n_possible;
};

#endif
