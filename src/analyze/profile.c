/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile.h"

#include <string.h>

static unsigned usual_columns(const struct vp_profile_options *options)
{
	const struct vp_view_ops *view = vp_view_of(options->view);
	unsigned columns = options->columns ? options->columns : view->columns;

	if (options->per_process)
		columns |= VP_COLUMN_PROCESS | VP_COLUMN_PID;
	if (options->per_vcpu && !view->of_one_vm)
		columns |= VP_COLUMN_VCPU | VP_COLUMN_VM;
	return columns;
}

static struct vp_error *check_vms(const struct vp_profile_options *options, const vp_vms *vms)
{
	if (!vp_view_of(options->view)->of_one_vm || options->vm)
		return NULL;
	if (!vms->count)
		return vp_error_new("the recording has no VM: --view guest has nothing to show");
	bool one = true;
	struct vp_buffer known = {0};
	vp_vec_each (vms, vm) {
		one &= !strcmp(vm->name, vms->at[0].name);
		vp_buffer_printf(&known, "%s%s", known.size ? ", " : "", vm->name);
	}
	struct vp_error *error =
	    one ? NULL
		: vp_error_usage("--view guest shows one VM: give --vm NAME, one of %s",
				 vp_buffer_text(&known));
	vp_buffer_deinit(&known);
	return error;
}

/* Notes what is counted of every tick, whatever the view. */
static void see(struct vp_profile *profile, const struct vp_tick *tick)
{
	profile->ticks += tick->weight;
	if (!tick->sample) {
		profile->filled += tick->weight;
	} else if (vp_tick_is_guest(tick)) {
		const struct vp_guest_sample *sample = (const void *)tick->sample;
		profile->guest_samples++;
		profile->no_root += !(sample->flags & (VP_HAS_AS_ROOT | VP_HIDDEN | VP_BY_MEMORY));
		profile->late += (sample->flags & VP_LATE) != 0;
	} else if (tick->sample->id == VP_ID_vcpu_sample) {
		const struct vp_vcpu_sample *sample = (const void *)tick->sample;
		profile->late += (sample->flags & VP_LATE) != 0;
	} else {
		profile->late += (tick->sample->flags & VP_LATE) != 0;
	}
}

/* Most rows have few samples, and are told apart by their texts: by their rank, not letter by
 * letter. */
struct sorted_row {
	uint64_t samples;
	uint32_t part, rank, was;
};

static int by_part_and_samples(const void *left, const void *right)
{
	const struct sorted_row *a = left, *b = right;

	if (a->part != b->part)
		return a->part < b->part ? -1 : 1;
	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->was < b->was ? -1 : 1;
}

struct ranked_text {
	const char *text;
	uint32_t number;
};

static int by_text(const void *left, const void *right)
{
	const struct ranked_text *a = left, *b = right;

	return strcmp(a->text, b->text);
}

/* The rank of each text in the order of strcmp(), from 1 on, as a new array. */
static uint32_t *rank_texts(const struct vp_intern *texts)
{
	size_t count = texts->strings.count;
	struct ranked_text *sorted = vp_realloc_array(NULL, count + 1, sizeof(*sorted));
	uint32_t *ranks = vp_realloc_array(NULL, count + 1, sizeof(*ranks));

	for (uint32_t i = 0; i < count; i++)
		sorted[i] = (struct ranked_text){vp_intern_text(texts, i), i};
	qsort(sorted, count, sizeof(*sorted), by_text);
	for (uint32_t i = 0; i < count; i++)
		ranks[sorted[i].number] = i + 1;
	free(sorted);
	return ranks;
}

static int by_row_and_count(const void *left, const void *right)
{
	const struct vp_profile_reason *a = left, *b = right;

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return a->exit.reason < b->exit.reason ? -1 : a->exit.reason > b->exit.reason;
}

static void sort_reasons(struct vp_profile *profile, const uint32_t *now_at)
{
	vp_vec_each (&profile->reasons, reason)
		reason->row = now_at[reason->row];
	if (profile->reasons.count)
		qsort(profile->reasons.at, profile->reasons.count, sizeof(*profile->reasons.at),
		      by_row_and_count);
	for (uint32_t i = 0; i < profile->reasons.count; i++) {
		struct vp_profile_row *row = &profile->rows.at[profile->reasons.at[i].row];
		if (!row->reasons++)
			row->first_reason = i;
	}
}

static void sort_rows(struct vp_profile *profile, bool by_total)
{
	size_t count = profile->rows.count;
	struct sorted_row *sorted = vp_realloc_array(NULL, count + 1, sizeof(*sorted));
	uint32_t *now_at = vp_realloc_array(NULL, count + 1, sizeof(*now_at));
	struct vp_profile_row *rows = vp_realloc_array(NULL, count + 1, sizeof(*rows));
	uint32_t *ranks = rank_texts(&profile->texts);

	for (uint32_t i = 0; i < count; i++) {
		const struct vp_profile_row *row = &profile->rows.at[i];
		uint32_t rank = row->function == VP_NONE ? 0 : ranks[row->function];
		sorted[i] =
		    (struct sorted_row){by_total ? row->total : row->samples, row->part, rank, i};
	}
	qsort(sorted, count, sizeof(*sorted), by_part_and_samples);
	for (uint32_t i = 0; i < count; i++) {
		struct vp_profile_part *part = &profile->parts.at[sorted[i].part];
		rows[i] = profile->rows.at[sorted[i].was];
		now_at[sorted[i].was] = i;
		if (!part->rows++)
			part->first_row = i;
	}
	free(profile->rows.at);
	profile->rows.at = rows;
	profile->rows.room = count + 1;
	free(ranks);
	free(sorted);
	sort_reasons(profile, now_at);
	vp_vec_each (&profile->nodes, node)
		node->row = now_at[node->row];
	free(now_at);
}

static int by_vm_and_vcpu(const void *left, const void *right)
{
	const struct vp_profile_part *a = left, *b = right;

	if (a->vm != b->vm)
		return a->vm < b->vm ? -1 : 1;
	return (a->vcpu > b->vcpu) - (a->vcpu < b->vcpu);
}

static void flow_deinit(struct vp_flow *flow)
{
	vp_filter_deinit(&flow->filter);
	vp_frames_deinit(&flow->frames);
	vp_resolver_free(flow->resolver);
	vp_totals_deinit(&flow->totals);
	vp_map_deinit(&flow->part_of_vcpu);
}

static struct vp_error *flow_init(struct vp_flow *flow, const struct vp_profile_options *options,
				  const vp_vms *vms, const struct vp_naming *naming,
				  struct vp_timeline *timeline)
{
	*flow = (struct vp_flow){.vms = vms,
				 .timeline = timeline,
				 .sink = options->sink,
				 .per_vcpu = options->per_vcpu,
				 .chains = options->chains,
				 .idle_frame = VP_NONE};
	VP_TRY(vp_filter_init(&flow->filter, vms, options->vm));
	flow->filter.comm = options->comm;
	flow->filter.pid = options->pid;
	flow->filter.has_vcpu = options->has_vcpu;
	flow->filter.vcpu = options->vcpu;
	vp_frames_init(&flow->frames, usual_columns(options));
	vp_totals_init(&flow->totals);
	flow->resolver = vp_resolver_new(&(struct vp_resolver_setup){.naming = naming,
								     .timeline = timeline,
								     .filter = &flow->filter,
								     .frames = &flow->frames,
								     .take = vp_totals_take,
								     .context = &flow->totals});
	flow->stacks = (struct vp_stacks){.resolver = flow->resolver,
					  .timeline = timeline,
					  .naming = naming,
					  .frames = &flow->frames,
					  .hosts_only = vp_view_of(options->view)->hosts_only};
	return NULL;
}

static void run_view(const struct vp_view_ops *view, struct vp_flow *flow,
		     struct vp_profile *profile)
{
	VP_AUTO_FREE void *state = vp_alloc(view->state_size);
	struct vp_tick tick;

	if (!view->of_one_vm)
		vp_flow_part(flow, VP_NONE, VP_NONE);
	while (vp_timeline_next(flow->timeline, &tick)) {
		see(profile, &tick);
		view->tick(state, flow, &tick);
	}
	if (view->deinit)
		view->deinit(state);
	vp_resolver_flush(flow->resolver);
	if (flow->chains)
		vp_totals_close_stacks(&flow->totals);
	if (!flow->totals.parts.count)
		vp_flow_part(flow, VP_NONE, VP_NONE);
}

/* A row for each frame, in the order of the frames. */
static void make_rows(struct vp_profile *profile, const struct vp_flow *flow)
{
	const struct vp_totals *totals = &flow->totals;

	for (uint32_t i = 0; i < flow->frames.at.count; i++) {
		const struct vp_frame *frame = &flow->frames.at.at[i];
		vp_vec_push(&profile->rows,
			    ((struct vp_profile_row){
				.part = frame->part,
				.kind = frame->kind,
				.function = frame->function,
				.module = frame->module,
				.process = frame->process,
				.pid = frame->pid,
				.vm = frame->vm,
				.vcpu = frame->vcpu,
				.samples = i < totals->samples.count ? totals->samples.at[i] : 0,
				.total = i < totals->within.count ? totals->within.at[i] : 0}));
	}
	for (uint32_t i = 0; i < totals->ended.count; i++) {
		struct vp_profile_node node = vp_totals_node(totals, i);
		vp_vec_push(&profile->nodes, node);
	}
}

/* The totals as a view's rows: what is not needed any more stays behind. */
static void take_totals(struct vp_profile *profile, struct vp_flow *flow)
{
	struct vp_totals *totals = &flow->totals;

	make_rows(profile, flow);
	profile->texts = flow->frames.texts;
	flow->frames.texts = (struct vp_intern){0};
	profile->parts = totals->parts;
	totals->parts = (vp_profile_parts){0};
	profile->reasons = totals->reasons;
	totals->reasons = (vp_profile_reasons){0};
	memcpy(profile->walks, flow->stacks.walks, sizeof(profile->walks));
	memcpy(profile->routes, totals->routes, sizeof(profile->routes));
	profile->unattributed = totals->unattributed;
}

struct vp_error *vp_profile_make(const struct vp_profile_options *options,
				 const struct vp_recording *recording, vp_vms *vms,
				 const vp_stream_readers *streams, const struct vp_naming *naming,
				 struct vp_profile *ret)
{
	struct vp_timeline timeline;
	struct vp_flow flow;

	*ret = (struct vp_profile){.view = options->view, .columns = usual_columns(options)};
	VP_TRY(check_vms(options, vms));
	VP_TRY(flow_init(&flow, options, vms, naming, &timeline));
	vp_timeline_init(&timeline, recording, vms, streams);
	run_view(vp_view_of(options->view), &flow, ret);
	take_totals(ret, &flow);
	ret->first = timeline.first;
	ret->last = timeline.last;
	flow_deinit(&flow);
	vp_timeline_deinit(&timeline);
	sort_rows(ret, options->by_callees);
	qsort(ret->parts.at, ret->parts.count, sizeof(*ret->parts.at), by_vm_and_vcpu);
	return NULL;
}

void vp_profile_deinit(struct vp_profile *profile)
{
	vp_intern_deinit(&profile->texts);
	vp_vec_deinit(&profile->parts);
	vp_vec_deinit(&profile->rows);
	vp_vec_deinit(&profile->reasons);
	vp_vec_deinit(&profile->nodes);
}
