/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/profile_sum.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/common/naming.h"
#include "analyze/profile/flow.h"
#include "analyze/profile/pass.h"
#include "analyze/profile/passes.h"
#include "analyze/profile/stack.h"
#include "analyze/profile/tick_counts.h"
#include "analyze/profile/totals.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/map.h"
#include "store/recording.h"

void vp_profile_sum_init(struct vp_profile_sum *sum, const struct vp_profile_options *options,
			 vp_vms *vms)
{
	*sum = (struct vp_profile_sum){.options = options, .join = {.vms = vms}};
	vp_frames_init(&sum->frames, vp_pass_columns(options));
	vp_totals_init(&sum->totals);
}

void vp_profile_sum_deinit(struct vp_profile_sum *sum)
{
	vp_vm_join_deinit(&sum->join);
	vp_frames_deinit(&sum->frames);
	vp_totals_deinit(&sum->totals);
}

/* Maps indices in `vms` to those in the joined list. */
static uint32_t *join_vms(struct vp_vm_join *join, const vp_vms *vms)
{
	uint32_t *vm_of = vp_realloc_array(NULL, vms->count + 1, sizeof(*vm_of));

	vp_vm_join_next(join);
	vp_vm_join_add(join, vms);
	for (size_t i = 0; i < vms->count; i++) {
		const uint32_t *number = vp_map_find(&join->ids, vp_vm_id(&vms->at[i]));
		vm_of[i] = (uint32_t)(vp_vms_find(join->vms, *number) - join->vms->at);
	}
	return vm_of;
}

static uint32_t *join_texts(struct vp_intern *texts, const struct vp_intern *from)
{
	uint32_t *text_of = vp_realloc_array(NULL, from->strings.count, sizeof(*text_of));

	for (uint32_t i = 0; i < from->strings.count; i++)
		text_of[i] = vp_intern_string(texts, vp_intern_text(from, i));
	return text_of;
}

static void add_pass(struct vp_profile_sum *sum, const struct vp_pass *pass)
{
	const struct vp_flow *flow = &pass->flow;
	VP_AUTO_FREE uint32_t *vm_of = join_vms(&sum->join, pass->input.vms);
	VP_AUTO_FREE uint32_t *text_of = join_texts(&sum->frames.texts, &flow->frames.texts);
	VP_AUTO_FREE uint32_t *part_of = vp_totals_merge_parts(&sum->totals, &flow->totals, vm_of);
	VP_AUTO_FREE uint32_t *frame_of = vp_frames_merge(
	    &sum->frames, &flow->frames, &(struct vp_frame_numbers){part_of, text_of, vm_of});

	vp_totals_merge(&sum->totals, &flow->totals, part_of, frame_of);
	vp_pass_counts_merge(&sum->counts, &pass->counts);
	vp_walks_merge(sum->walks, flow->stacks.walks);
	sum->first = pass->timeline.first;
	sum->last = pass->timeline.last;
}

struct vp_error *vp_profile_sum_add(struct vp_profile_sum *sum, uint64_t from, uint64_t to,
				    const struct vp_recording *recording, vp_vms *vms,
				    const vp_stream_readers *streams,
				    const struct vp_naming *naming)
{
	struct vp_profile_options options = *sum->options;
	struct vp_pass_input input = {.options = &options,
				      .recording = recording,
				      .vms = vms,
				      .streams = streams,
				      .naming = naming};
	struct vp_passes passes;

	options.from = from;
	options.to = to;
	VP_TRY(vp_profile_check_vms(&options, vms));
	VP_TRY(vp_passes_make(&input, &passes));
	if (passes.count > sum->jobs)
		sum->jobs = passes.count;
	vp_pass_close(passes.at);
	add_pass(sum, passes.at);
	vp_passes_deinit(&passes);
	return NULL;
}

struct vp_error *vp_profile_sum_finish(struct vp_profile_sum *sum, struct vp_profile *ret)
{
	*ret = (struct vp_profile){.view = sum->options->view,
				   .columns = vp_pass_columns(sum->options),
				   .counts = sum->counts,
				   .jobs = sum->jobs};
	VP_TRY(vp_profile_check_vms(sum->options, sum->join.vms));
	memcpy(ret->walks, sum->walks, sizeof(ret->walks));
	vp_profile_take(ret, &sum->frames, &sum->totals);
	vp_profile_sort(ret, sum->options->by_callees);
	return NULL;
}
