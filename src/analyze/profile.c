/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile_private.h"

#include <string.h>

const char *vp_route_name(enum vp_route route)
{
	static const char *const names[] = {[VP_ROUTE_NONE] = "none",
					    [VP_ROUTE_CR3] = "cr3",
					    [VP_ROUTE_KERNEL] = "kernel-symbols",
					    [VP_ROUTE_MEMORY] = "memory"};

	return names[route];
}

const char *vp_kind_name(uint32_t kind)
{
	static const char *const names[] = {[VP_KIND_OS] = "os",
					    [VP_KIND_USER] = "user",
					    [VP_KIND_IDLE] = "idle",
					    [VP_KIND_STEAL] = "steal",
					    [VP_KIND_VM] = "vm"};

	return kind < VP_KINDS ? names[kind] : NULL;
}

const char *vp_walk_name(enum vp_walk walk)
{
	static const char *const names[] = {[VP_WALK_GUEST_USER] = "guest user space",
					    [VP_WALK_GUEST_KERNEL] = "guest kernels",
					    [VP_WALK_HOST] = "the host"};

	return names[walk];
}

const char *vp_walk_end_name(enum vp_walk_end end)
{
	static const char *const names[] = {[VP_WALK_WHOLE] = "whole",
					    [VP_WALK_NO_FRAME] =
						"up to code without frame pointers",
					    [VP_WALK_TOO_DEEP] = "too deep",
					    [VP_WALK_UNREADABLE] = "unreadable page",
					    [VP_WALK_NO_RULE] = "code without unwind table",
					    [VP_WALK_NO_STACK] = "more stack than was kept",
					    [VP_WALK_NO_REGISTER] = "unknown register",
					    [VP_WALK_NOT_WALKED] = "not walked"};

	return names[end];
}

struct vp_error *vp_profile_choose_vms(const vp_vms *vms, const char *vm, bool **ret)
{
	bool *chosen = vp_alloc(vms->count + 1);
	struct vp_buffer known = {0};
	bool any = false;

	for (size_t i = 0; i < vms->count; i++) {
		char pid[16];
		snprintf(pid, sizeof(pid), "%u", vms->at[i].pid);
		chosen[i] = !vm || !strcmp(vms->at[i].name, vm);
		any |= chosen[i];
		vp_buffer_printf(&known, "%s%s (%s)", known.size ? ", " : "", vms->at[i].name, pid);
	}
	for (size_t i = 0; i < vms->count && vm && !any; i++) {
		char pid[16];
		snprintf(pid, sizeof(pid), "%u", vms->at[i].pid);
		chosen[i] = !strcmp(pid, vm);
		any |= chosen[i];
	}
	struct vp_error *error = NULL;
	if (vm && !any)
		error = vp_error_new("the recording has no VM '%s'; it has %s", vm,
				     known.size ? vp_buffer_text(&known) : "none");
	vp_buffer_deinit(&known);
	if (error)
		free(chosen);
	else
		*ret = chosen;
	return error;
}

static unsigned usual_columns(const struct vp_profile_options *options)
{
	unsigned columns = options->columns;

	if (!columns)
		columns = VP_COLUMN_FUNCTION | VP_COLUMN_MODULE | VP_COLUMN_PROCESS;
	if (!options->columns && options->view == VP_VIEW_UNIFIED)
		columns |= VP_COLUMN_VM;
	if (options->per_process)
		columns |= VP_COLUMN_PROCESS | VP_COLUMN_PID;
	if (options->per_vcpu && options->view != VP_VIEW_GUEST)
		columns |= VP_COLUMN_VCPU | VP_COLUMN_VM;
	return columns;
}

static struct vp_error *check_guest_view(const struct vp_profile_options *options,
					 const vp_vms *vms)
{
	if (options->view != VP_VIEW_GUEST || options->vm)
		return NULL;
	if (!vms->count)
		return vp_error_new("the recording has no VM: there is no guest to view");
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

void vp_builder_see(struct vp_builder *builder, const struct vp_tick *tick)
{
	struct vp_profile *profile = builder->profile;

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

struct vp_error *vp_profile_make(const struct vp_profile_options *options,
				 const struct vp_recording *recording, vp_vms *vms,
				 const vp_stream_readers *streams, const struct vp_naming *naming,
				 struct vp_profile *ret)
{
	struct vp_timeline timeline;
	struct vp_builder builder = {.profile = ret,
				     .options = options,
				     .naming = naming,
				     .vms = vms,
				     .timeline = &timeline,
				     .n_chosen = vms->count,
				     .all_chosen = !options->vm,
				     .idle_row = VP_NONE};

	*ret = (struct vp_profile){.view = options->view, .columns = usual_columns(options)};
	VP_TRY(check_guest_view(options, vms));
	VP_TRY(vp_profile_choose_vms(vms, options->vm, &builder.chosen));
	vp_timeline_init(&timeline, recording, vms, streams);
	vp_builder_init(&builder);
	if (options->view == VP_VIEW_GUEST)
		vp_view_guest(&builder);
	else if (options->view == VP_VIEW_HOST)
		vp_view_host(&builder);
	else
		vp_view_unified(&builder);
	vp_builder_flush(&builder);
	if (options->chains)
		vp_stacks_finish(&builder);
	if (!ret->parts.count)
		vp_builder_part(&builder, VP_NONE, VP_NONE);
	ret->first = timeline.first;
	ret->last = timeline.last;
	for (size_t i = 0; i < ret->rows.count; i++)
		ret->rows.at[i].samples = builder.counts.at[i];
	vp_builder_deinit(&builder);
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
