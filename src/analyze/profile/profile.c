/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/profile/profile.h"

#include <string.h>

#include "analyze/common/naming.h"
#include "analyze/profile/flow.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/passes.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/radix.h"
#include "store/recording.h"

struct vp_error *vp_profile_check_vms(const struct vp_profile_options *options, const vp_vms *vms)
{
	if (vp_view_of(options->view)->of_one_vm && options->vm && strchr(options->vm, '\n'))
		return vp_error_usage("--view guest shows one VM: give --vm NAME once");
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

/* Sort key of rows with equal samples and functions: texts are compared by rank, not letter by
 * letter. */
struct row_order {
	const struct vp_profile_row *rows; /* unsorted */
	const uint32_t *ranks;             /* of texts */
};

static int by_number(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

static int by_text_rank(const uint32_t *ranks, uint32_t a, uint32_t b)
{
	return by_number(a == VP_NONE ? 0 : ranks[a], b == VP_NONE ? 0 : ranks[b]);
}

/* Compares further columns. */
static int by_other_columns(const void *left, const void *right, void *context)
{
	const struct row_order *by = context;
	const struct vp_profile_row *a = &by->rows[((const struct vp_keyed *)left)->item];
	const struct vp_profile_row *b = &by->rows[((const struct vp_keyed *)right)->item];
	int order = by_text_rank(by->ranks, a->module, b->module);

	if (!order)
		order = by_text_rank(by->ranks, a->process, b->process);
	if (!order)
		order = by_number(a->pid, b->pid);
	if (!order)
		order = by_number(a->vm, b->vm);
	if (!order)
		order = by_number(a->vcpu, b->vcpu);
	return order ? order : by_number(a->kind, b->kind);
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

/* The rank of each text in the order of strcmp(), from 1, as a new array. */
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
	if (a->exit.reason != b->exit.reason)
		return a->exit.reason < b->exit.reason ? -1 : 1;
	return (int)(2 * a->exit.vendor + a->exit.known) -
	       (int)(2 * b->exit.vendor + b->exit.known);
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

/* Permutes the rows to the order of `sorted`, which has their old indices. */
static void move_rows(struct vp_profile_row *rows, struct vp_keyed *sorted, size_t count)
{
	for (uint32_t first = 0; first < count; first++) {
		struct vp_profile_row row = rows[first];
		uint32_t at = first, was;
		while ((was = sorted[at].item) != first) {
			rows[at] = rows[was];
			sorted[at].item = at;
			at = was;
		}
		rows[at] = row;
		sorted[at].item = at;
	}
}

static uint64_t profile_count_of(const struct vp_profile_row *row, bool by_total)
{
	return by_total ? row->total : row->samples;
}

/* Sorts rows by part, by samples descending, and by function name. */
static struct vp_keyed *order_rows(const struct vp_profile *profile, bool by_total)
{
	const struct vp_profile_row *rows = profile->rows.at;
	size_t count = profile->rows.count, end;
	struct vp_keyed *sorted = vp_realloc_array(NULL, count + 1, sizeof(*sorted));
	VP_AUTO_FREE uint32_t *ranks = rank_texts(&profile->texts);
	struct row_order order = {rows, ranks};

	for (uint32_t i = 0; i < count; i++)
		sorted[i] =
		    (struct vp_keyed){rows[i].function == VP_NONE ? 0 : ranks[rows[i].function], i};
	vp_radix_sort(sorted, count);
	for (size_t i = 0; i < count; i++)
		sorted[i].key = UINT64_MAX - profile_count_of(&rows[sorted[i].item], by_total);
	vp_radix_sort(sorted, count);
	for (size_t i = 0; i < count; i++)
		sorted[i].key = rows[sorted[i].item].part;
	vp_radix_sort(sorted, count);
	for (size_t begin = 0; begin < count; begin = end) {
		const struct vp_profile_row *first = &rows[sorted[begin].item], *row;
		for (end = begin + 1; end < count; end++) {
			row = &rows[sorted[end].item];
			if (row->part != first->part || row->function != first->function ||
			    profile_count_of(row, by_total) != profile_count_of(first, by_total))
				break;
		}
		if (end - begin > 1)
			qsort_r(&sorted[begin], end - begin, sizeof(*sorted), by_other_columns,
				&order);
	}
	return sorted;
}

static void profile_sort_rows(struct vp_profile *profile, bool by_total)
{
	size_t count = profile->rows.count;
	VP_AUTO_FREE struct vp_keyed *sorted = order_rows(profile, by_total);
	VP_AUTO_FREE uint32_t *now_at = vp_realloc_array(NULL, count + 1, sizeof(*now_at));

	for (uint32_t i = 0; i < count; i++) {
		struct vp_profile_part *part =
		    &profile->parts.at[profile->rows.at[sorted[i].item].part];
		now_at[sorted[i].item] = i;
		if (!part->rows++)
			part->first_row = i;
	}
	move_rows(profile->rows.at, sorted, count);
	sort_reasons(profile, now_at);
	vp_vec_each (&profile->nodes, node)
		node->row = now_at[node->row];
}

struct sorted_node {
	uint32_t depth, parent, row, was; /* `parent`: its new index */
};

static int by_depth(const void *left, const void *right)
{
	const struct sorted_node *a = left, *b = right;

	return by_number(a->depth, b->depth);
}

static int by_parent_and_row(const void *left, const void *right)
{
	const struct sorted_node *a = left, *b = right;

	return a->parent != b->parent ? by_number(a->parent, b->parent) : by_number(a->row, b->row);
}

/* Sorts the nodes of one depth, from `at` on; returns the start of the next depth. */
static uint32_t sort_depth(struct sorted_node *sorted, uint32_t at, uint32_t count,
			   const vp_profile_nodes *nodes, uint32_t *now_at)
{
	uint32_t next = at;

	for (; next < count && sorted[next].depth == sorted[at].depth; next++) {
		uint32_t parent = nodes->at[sorted[next].was].parent;
		sorted[next].parent = parent == VP_NONE ? VP_NONE : now_at[parent];
	}
	qsort(&sorted[at], next - at, sizeof(*sorted), by_parent_and_row);
	for (uint32_t i = at; i < next; i++)
		now_at[sorted[i].was] = i;
	return next;
}

/* Sorts nodes by depth, and those of each parent in the order of the rows. */
static struct sorted_node *order_nodes(const vp_profile_nodes *nodes)
{
	uint32_t count = (uint32_t)nodes->count;
	struct sorted_node *sorted = vp_realloc_array(NULL, count, sizeof(*sorted));
	uint32_t *depths = vp_realloc_array(NULL, count, sizeof(*depths));
	uint32_t *now_at = vp_realloc_array(NULL, count, sizeof(*now_at));

	for (uint32_t i = 0; i < count; i++) {
		uint32_t parent = nodes->at[i].parent;
		depths[i] = parent == VP_NONE ? 0 : depths[parent] + 1;
		sorted[i] =
		    (struct sorted_node){.depth = depths[i], .row = nodes->at[i].row, .was = i};
	}
	qsort(sorted, count, sizeof(*sorted), by_depth);
	for (uint32_t at = 0; at < count;)
		at = sort_depth(sorted, at, count, nodes, now_at);
	free(now_at);
	free(depths);
	return sorted;
}

/* Depth-first order of nodes, children in the order of the rows: independent of the order of
 * samples. */
static void sort_nodes(struct vp_profile *profile)
{
	vp_profile_nodes *nodes = &profile->nodes, moved = {0};
	uint32_t count = (uint32_t)nodes->count, top = 0;
	struct sorted_node *sorted = order_nodes(nodes);
	uint32_t *sizes =
	    vp_alloc((count + 1) * sizeof(*sizes)); /* size of each subtree, including its root */
	uint32_t *new_index = vp_realloc_array(NULL, count, sizeof(*new_index));
	uint32_t *free_at = vp_realloc_array(NULL, count, sizeof(*free_at));

	for (uint32_t i = 0; i < count; i++)
		vp_vec_push(&moved, (struct vp_profile_node){0});
	for (uint32_t i = count; i-- > 0;) {
		sizes[i]++;
		if (sorted[i].parent != VP_NONE)
			sizes[sorted[i].parent] += sizes[i];
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t parent = sorted[i].parent;
		uint32_t *next = parent == VP_NONE ? &top : &free_at[parent];
		new_index[i] = *next;
		*next += sizes[i];
		free_at[i] = new_index[i] + 1;
		moved.at[new_index[i]] = (struct vp_profile_node){
		    .parent = parent == VP_NONE ? VP_NONE : new_index[parent],
		    .row = sorted[i].row,
		    .samples = nodes->at[sorted[i].was].samples};
	}
	vp_vec_deinit(nodes);
	*nodes = moved;
	free(free_at);
	free(new_index);
	free(sizes);
	free(sorted);
}

static int by_vm_and_vcpu(const void *left, const void *right)
{
	const struct vp_profile_part *a = left, *b = right;

	if (a->vm != b->vm)
		return a->vm < b->vm ? -1 : 1;
	return (a->vcpu > b->vcpu) - (a->vcpu < b->vcpu);
}

/* Makes a row per frame, in the order of the frames. */
static void make_rows(struct vp_profile *profile, const struct vp_frames *frames,
		      const struct vp_totals *totals)
{
	profile->rows.room = frames->at.count + 1;
	profile->rows.at = vp_realloc_array(NULL, profile->rows.room, sizeof(*profile->rows.at));
	for (uint32_t i = 0; i < frames->at.count; i++) {
		const struct vp_frame *frame = &frames->at.at[i];
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

static void profile_take_parts(struct vp_profile *profile, struct vp_frames *frames,
			       struct vp_totals *totals)
{
	profile->frames = frames->at.count;
	profile->texts = frames->texts;
	frames->texts = (struct vp_intern){0};
	profile->parts = totals->parts;
	totals->parts = (vp_profile_parts){0};
	memcpy(profile->routes, totals->routes, sizeof(profile->routes));
	profile->unattributed = totals->unattributed;
}

void vp_profile_take(struct vp_profile *profile, struct vp_frames *frames, struct vp_totals *totals)
{
	make_rows(profile, frames, totals);
	profile->reasons = totals->reasons;
	totals->reasons = (vp_profile_reasons){0};
	profile_take_parts(profile, frames, totals);
}

/* Converts the totals to the view's rows, and frees the rest. */
static void take_pass(struct vp_profile *profile, struct vp_pass *pass)
{
	struct vp_flow *flow = &pass->flow;

	/* A sink of single samples does not need totals. */
	if (pass->input.options->sink)
		profile_take_parts(profile, &flow->frames, &flow->totals);
	else
		vp_profile_take(profile, &flow->frames, &flow->totals);
	memcpy(profile->walks, flow->stacks.walks, sizeof(profile->walks));
	profile->counts = pass->counts;
	profile->first = pass->timeline.first;
	profile->last = pass->timeline.last;
}

void vp_profile_sort(struct vp_profile *profile, bool by_callees)
{
	profile_sort_rows(profile, by_callees);
	sort_nodes(profile);
	qsort(profile->parts.at, profile->parts.count, sizeof(*profile->parts.at), by_vm_and_vcpu);
}

struct vp_error *vp_profile_make(const struct vp_profile_options *options,
				 const struct vp_recording *recording, vp_vms *vms,
				 const vp_stream_readers *streams, const struct vp_naming *naming,
				 struct vp_profile *ret)
{
	struct vp_pass_input input = {.options = options,
				      .recording = recording,
				      .vms = vms,
				      .streams = streams,
				      .naming = naming};
	struct vp_passes passes;

	*ret = (struct vp_profile){.view = options->view, .columns = vp_pass_columns(options)};
	VP_TRY(vp_profile_check_vms(options, vms));
	VP_TRY(vp_passes_make(&input, &passes));
	ret->jobs = passes.count;
	vp_pass_close(passes.at);
	take_pass(ret, passes.at);
	vp_passes_deinit(&passes);
	vp_profile_sort(ret, options->by_callees);
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
