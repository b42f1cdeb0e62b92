/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One profile of several recordings of a host. */
#ifndef VP_ANALYZE_PROFILE_PROFILE_SUM_H
#define VP_ANALYZE_PROFILE_PROFILE_SUM_H

#include "analyze/common/vm_join.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/profile.h"
#include "analyze/profile/tick_counts.h"
#include "analyze/profile/totals.h"
#include "base/macros.h"
#include "schema/vm.h"
#include "store/trace_reader.h"

struct vp_profile_sum {
	const struct vp_profile_options *options;
	struct vp_vm_join join;
	struct vp_frames frames;
	struct vp_totals totals;
	vp_walk_counts walks;
	struct vp_pass_counts counts;
	uint32_t jobs;        /* most threads used for a recording */
	uint64_t first, last; /* ns; of the records of the latest recording */
};

/* `options` and `vms`, which receives the VMs of all recordings, must outlive it. The options have
 * no sink. */
void vp_profile_sum_init(struct vp_profile_sum *sum, const struct vp_profile_options *options,
			 vp_vms *vms);
void vp_profile_sum_deinit(struct vp_profile_sum *sum);
/* Adds the samples of a recording from `from` to `to` (ns of its CLOCK_MONOTONIC; 0: no limit), in
 * place of the times in the options. Its weights must be of the same unit as earlier ones. Other
 * parameters and errors as for vp_profile_make(). */
struct vp_error *vp_profile_sum_add(struct vp_profile_sum *sum, uint64_t from, uint64_t to,
				    const struct vp_recording *recording, vp_vms *vms,
				    const vp_stream_readers *streams,
				    const struct vp_naming *naming) VP_MUST_CHECK;
/* Moves the sum to a profile. Errors: several VMs for view guest. */
struct vp_error *vp_profile_sum_finish(struct vp_profile_sum *sum,
				       struct vp_profile *ret) VP_MUST_CHECK;

#endif
