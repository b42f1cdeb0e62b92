/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/pass.h"

#include <string.h>

#include "analyze/common/filter.h"
#include "analyze/common/naming.h"
#include "analyze/profile/classes.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/resolve.h"
#include "analyze/profile/stack.h"
#include "analyze/profile/tally.h"
#include "analyze/profile/totals.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/records.h"
#include "schema/weighting.h"
#include "timeline/batches.h"
#include "timeline/segment.h"

unsigned vp_pass_columns(const struct vp_profile_options *options)
{
	const struct vp_view_ops *view = vp_view_of(options->view);
	unsigned columns = options->columns ? options->columns : view->columns;

	if (options->per_process)
		columns |= VP_COLUMN_PROCESS | VP_COLUMN_PID;
	if (options->per_vcpu && !view->of_one_vm)
		columns |= VP_COLUMN_VCPU | VP_COLUMN_VM;
	return columns;
}

static void flow_deinit(struct vp_flow *flow)
{
	vp_filter_deinit(&flow->filter);
	vp_frames_deinit(&flow->frames);
	vp_tally_deinit(&flow->tally);
	vp_resolver_free(flow->resolver);
	vp_totals_deinit(&flow->totals);
	vp_map_deinit(&flow->part_of_vcpu);
}

/* Whether each tick is needed individually: with its stack, or for a sink. */
static bool wants_each(const struct vp_profile_options *options)
{
	return options->sink || options->chains;
}

/* Whether passes share frames: not if each numbers the parts of frames by itself, nor for stacks.
 */
static bool shares_frames(const struct vp_pass_input *input)
{
	return input->first && !input->options->per_vcpu && !wants_each(input->options);
}

static struct vp_error *flow_init(struct vp_flow *flow, const struct vp_pass_input *input,
				  const vp_vms *vms, struct vp_timeline *timeline)
{
	const struct vp_profile_options *options = input->options;
	struct vp_flow *first = shares_frames(input) ? &input->first->flow : NULL;

	*flow = (struct vp_flow){.vms = vms,
				 .timeline = timeline,
				 .sink = options->sink,
				 .per_vcpu = options->per_vcpu,
				 .chains = options->chains,
				 .unsplit_part = VP_NONE,
				 .idle_frame = VP_NONE};
	VP_TRY(vp_filter_init(&flow->filter, vms, options->vm));
	flow->filter.comm = options->comm;
	flow->filter.pid = options->pid;
	flow->filter.has_vcpu = options->has_vcpu;
	flow->filter.vcpu = options->vcpu;
	vp_frames_init(&flow->frames, vp_pass_columns(options));
	vp_totals_init(&flow->totals);
	flow->resolver = vp_resolver_new(
	    &(struct vp_resolver_setup){.naming = input->naming,
					.timeline = timeline,
					.filter = &flow->filter,
					.frames = first ? &first->frames : &flow->frames,
					.shares = first ? first->resolver : NULL,
					.take = vp_flow_take,
					.context = flow});
	vp_tally_init(&flow->tally, flow->resolver, &flow->totals);
	flow->stacks = (struct vp_stacks){.resolver = flow->resolver,
					  .timeline = timeline,
					  .naming = input->naming,
					  .frames = &flow->frames,
					  .hosts_only = vp_view_of(options->view)->hosts_only};
	return NULL;
}

struct vp_error *vp_pass_init(struct vp_pass *pass, const struct vp_pass_input *input)
{
	*pass = (struct vp_pass){.input = *input};
	pass->n_input_vms = input->vms->count;
	pass->vms = input->stop ? &pass->own : input->vms;
	if (input->stop)
		vp_vec_each (input->vms, vm)
			vp_vec_push(&pass->own, *vm);
	return flow_init(&pass->flow, &pass->input, pass->vms, &pass->timeline);
}

void vp_pass_deinit(struct vp_pass *pass)
{
	flow_deinit(&pass->flow);
	vp_timeline_deinit(&pass->timeline);
	for (size_t i = pass->n_input_vms; i < pass->own.count; i++) {
		struct vp_vm *vm = &pass->own.at[i];
		free(vm->name);
		free(vm->uuid);
		free(vm->agent);
		free(vm->memory);
	}
	vp_vec_deinit(&pass->own);
}

static bool is_stopped(const struct vp_pass *pass)
{
	return pass->input.stop && __atomic_load_n(pass->input.stop, __ATOMIC_RELAXED);
}

/* Whether there are damaged packets, which a later segment's survey considered valid. */
static bool is_damaged(const struct vp_pass *pass)
{
	vp_vec_each (pass->input.streams, stream)
		if (vp_stream_health(*stream).damaged)
			return true;
	return false;
}

static void stop_if_worthless(struct vp_pass *pass)
{
	if (vp_resolver_is_full(pass->flow.resolver) || (pass->input.until && is_damaged(pass)))
		__atomic_store_n(pass->input.stop, true, __ATOMIC_RELAXED);
}

/* Number of ticks between two checks of whether to stop. */
enum { CHECK_EVERY = 1 << 16 };

static bool is_in_time(const struct vp_profile_options *options, uint64_t time)
{
	return time >= options->from && (!options->to || time <= options->to);
}

/* Counts ticks one by one. */
static void run_ticks(const struct vp_view_ops *view, struct vp_pass *pass, void *state)
{
	const struct vp_profile_options *options = pass->input.options;
	struct vp_tick tick;
	uint32_t left = CHECK_EVERY;

	while (vp_timeline_next(&pass->timeline, &tick)) {
		if (is_in_time(options, tick.time)) {
			vp_pass_counts_add(&pass->counts, &tick, 1);
			view->tick(state, &pass->flow, &tick);
		}
		if (--left)
			continue;
		left = CHECK_EVERY;
		if (pass->input.stop)
			stop_if_worthless(pass);
		if (is_stopped(pass))
			break;
	}
}

/* Counts samples by class. */
static void run_classes(struct vp_pass *pass, void *state)
{
	struct vp_classes *classes =
	    vp_classes_new(&(struct vp_classes_setup){.view = vp_view_of(pass->input.options->view),
						      .state = state,
						      .flow = &pass->flow,
						      .counts = &pass->counts,
						      .from = pass->input.options->from,
						      .to = pass->input.options->to});
	struct vp_batches batches;
	struct vp_batch *batch;
	uint64_t records, last = 0, left = CHECK_EVERY;

	vp_batches_init(&batches, &pass->timeline, pass->input.in_order);
	while ((batch = vp_batches_next(&batches))) {
		records = vp_classes_take(classes, batch, &last);
		vp_batches_taken(&batches, records, last);
		left -= records < left ? records : left;
		if (left)
			continue;
		left = CHECK_EVERY;
		if (pass->input.stop)
			stop_if_worthless(pass);
		if (is_stopped(pass))
			break;
	}
	vp_batches_deinit(&batches);
	vp_classes_close(classes);
	vp_classes_free(classes);
}

/* Whether each tick is needed individually, also because some are filled in between. */
static bool wants_ticks(const struct vp_pass *pass)
{
	return wants_each(pass->input.options) || pass->timeline.fill_period;
}

/* The state that the pass needs from earlier records. */
static struct vp_segment segment_of(const struct vp_pass_input *input)
{
	enum vp_weighting weighting = input->recording->weighting;

	return (struct vp_segment){
	    .from = input->from,
	    .until = input->until,
	    .needs = {.ticks = wants_each(input->options) || weighting == VP_WEIGHTING_TIME,
		      .homes = vp_view_of(input->options->view)->other,
		      .weights = weighting != VP_WEIGHTING_TICKS}};
}

uint64_t vp_pass_records(const struct vp_pass *pass, uint32_t stream)
{
	return segment_of(&pass->input).needs.ticks ? 0 : pass->timeline.pcpus.at[stream].records;
}

static void run_view(const struct vp_view_ops *view, struct vp_pass *pass, bool ticks)
{
	VP_AUTO_FREE void *state = vp_alloc(view->state_size);
	struct vp_flow *flow = &pass->flow;

	if (!view->of_one_vm)
		vp_flow_part(flow, VP_NONE, VP_NONE);
	if (ticks)
		run_ticks(view, pass, state);
	else
		run_classes(pass, state);
	if (view->deinit)
		view->deinit(state);
	vp_resolver_flush(flow->resolver);
	vp_tally_close(&flow->tally);
}

void vp_pass_run(struct vp_pass *pass)
{
	const struct vp_pass_input *input = &pass->input;
	const struct vp_view_ops *view = vp_view_of(input->options->view);

	const struct vp_segment segment = segment_of(input);

	vp_segment_init(&pass->timeline, input->recording, pass->vms, input->streams, &segment);
	bool ticks = wants_ticks(pass);
	pass->timeline.no_homes = !ticks && !view->other;
	pass->timeline.no_chains = !ticks;
	pass->begin = input->from ? vp_segment_digest(&pass->timeline) : 0;
	run_view(view, pass, ticks);
	pass->end = input->until ? vp_segment_digest(&pass->timeline) : 0;
	(void)vp_resolver_unnamed(pass->flow.resolver, &pass->unnamed);
	if (input->stop)
		stop_if_worthless(pass);
}

/* Maps texts of `next` to numbers in `pass`. False: a single pass would have merged some unnamed
 * addresses. */
static bool merge_texts(struct vp_pass *pass, const struct vp_pass *next, size_t *unnamed,
			uint32_t **ret)
{
	struct vp_intern *texts = &pass->flow.frames.texts;
	const struct vp_intern *others = &next->flow.frames.texts;
	uint32_t *numbers = vp_realloc_array(NULL, others->strings.count, sizeof(*numbers));
	size_t count, before;
	const uint32_t *addresses = vp_resolver_unnamed(next->flow.resolver, &count);

	for (size_t i = 0; i < count; i++) {
		before = texts->strings.count;
		(void)vp_intern_string(texts, vp_intern_text(others, addresses[i]));
		*unnamed += texts->strings.count > before;
	}
	for (uint32_t i = 0; i < others->strings.count; i++)
		numbers[i] = vp_intern_string(texts, vp_intern_text(others, i));
	*ret = numbers;
	return *unnamed < VP_RESOLVER_UNNAMED;
}

/* Maps frames of `next` to those of `pass`; NULL: see merge_texts(). */
static uint32_t *merge_frames(struct vp_pass *pass, const struct vp_pass *next,
			      const uint32_t *part_of)
{
	VP_AUTO_FREE uint32_t *text_of = NULL;

	if (!merge_texts(pass, next, &pass->unnamed, &text_of))
		return NULL;
	return vp_frames_merge(&pass->flow.frames, &next->flow.frames,
			       &(struct vp_frame_numbers){part_of, text_of, NULL});
}

/* Maps each frame to itself. */
static uint32_t *same_frames(const struct vp_frames *frames)
{
	uint32_t *numbers = vp_realloc_array(NULL, frames->at.count + 1, sizeof(*numbers));

	for (uint32_t i = 0; i < frames->at.count; i++)
		numbers[i] = i;
	return numbers;
}

static void merge_counts(struct vp_pass *pass, const struct vp_pass *next)
{
	vp_pass_counts_merge(&pass->counts, &next->counts);
	vp_walks_merge(pass->flow.stacks.walks, next->flow.stacks.walks);
	if (!pass->timeline.first)
		pass->timeline.first = next->timeline.first;
	if (next->timeline.last > pass->timeline.last)
		pass->timeline.last = next->timeline.last;
}

/* Adds VMs that became known meanwhile. */
static void merge_vms(struct vp_pass *pass, const struct vp_pass *next)
{
	for (size_t i = pass->own.count; i < next->own.count; i++) {
		struct vp_vm vm = next->own.at[i];
		vm.name = vp_strdup(vm.name);
		vm.uuid = vp_strdup(vm.uuid);
		vm.agent = vp_strdup(vm.agent);
		vm.memory = vp_strdup(vm.memory);
		vp_vec_push(&pass->own, vm);
	}
}

bool vp_pass_merge(struct vp_pass *pass, const struct vp_pass *next)
{
	VP_AUTO_FREE uint32_t *part_of = NULL, *frame_of = NULL;

	if (pass->end != next->begin || is_stopped(next))
		return false;
	part_of = vp_totals_merge_parts(&pass->flow.totals, &next->flow.totals, NULL);
	frame_of = shares_frames(&next->input) ? same_frames(&pass->flow.frames)
					       : merge_frames(pass, next, part_of);
	if (!frame_of)
		return false;
	vp_totals_merge(&pass->flow.totals, &next->flow.totals, part_of, frame_of);
	merge_counts(pass, next);
	merge_vms(pass, next);
	pass->end = next->end;
	return true;
}

void vp_pass_close(struct vp_pass *pass)
{
	vp_vms *vms = pass->input.vms;

	for (size_t i = pass->n_input_vms; i < pass->own.count; i++)
		vp_vec_push(vms, pass->own.at[i]);
	pass->own.count = 0;
	if (pass->input.options->chains)
		vp_totals_close_stacks(&pass->flow.totals);
	if (!pass->flow.totals.parts.count)
		vp_flow_part(&pass->flow, VP_NONE, VP_NONE);
}
