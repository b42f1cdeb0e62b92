/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The profile for the page's flame graph: texts, rows, and the tree of stacks. */
#include "analyze/profile/profile.h"
#include "analyze/profile/totals.h"
#include "analyze/report/report.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/vec.h"
#include "render/page_parts.h"
#include "store/recording.h"

/* Maximum number of nodes in the page. Samples of the smallest nodes are counted in their
 * callers. */
enum { MAX_NODES = 400000 };

/* Per row: kind, function, module, process (text index + 1, 0: unknown), VM (index + 1, 0: the
 * host), samples of the row itself. */
static void page_profile_put_rows(const struct vp_report *report, struct vp_json *json)
{
	const struct vp_profile *profile = &report->profile;
	struct vp_buffer packed = {0};

	vp_vec_each (&profile->rows, row) {
		vp_page_pack(&packed, row->kind + 1);
		vp_page_pack(&packed, row->function + 1);
		vp_page_pack(&packed, row->module + 1);
		vp_page_pack(&packed, row->process + 1);
		vp_page_pack(&packed, row->vm == VP_NONE ? 0 : (uint64_t)row->vm + 1);
		vp_page_pack(&packed, row->samples);
	}
	vp_json_count(json, "rows", profile->rows.count);
	vp_page_put_packed(json, "rowData", &packed);
}

/* Samples per node, including its children; parents have lower numbers than children. */
static uint64_t *page_profile_sums_of(const vp_profile_nodes *nodes)
{
	uint64_t *ret = vp_realloc_array(NULL, nodes->count + 1, sizeof(*ret));

	for (size_t i = 0; i < nodes->count; i++)
		ret[i] = nodes->at[i].samples;
	for (size_t i = nodes->count; i-- > 0;)
		if (nodes->at[i].parent != VP_NONE)
			ret[nodes->at[i].parent] += ret[i];
	return ret;
}

static uint64_t min_to_keep(const uint64_t *sums, size_t count)
{
	uint64_t least = 1;
	size_t kept = count;

	while (kept > MAX_NODES) {
		least *= 2;
		kept = 0;
		for (size_t i = 0; i < count; i++)
			kept += sums[i] >= least;
	}
	return least;
}

/* Samples that end in each node. Nodes below `least` are omitted; their samples end in the
 * caller. */
static uint64_t *ends_of(const vp_profile_nodes *nodes, const uint64_t *sums, uint64_t least)
{
	uint64_t *ret = vp_realloc_array(NULL, nodes->count + 1, sizeof(*ret));

	for (size_t i = 0; i < nodes->count; i++)
		ret[i] = nodes->at[i].samples;
	for (size_t i = nodes->count; i-- > 0;)
		if (sums[i] < least && nodes->at[i].parent != VP_NONE)
			ret[nodes->at[i].parent] += ret[i];
	return ret;
}

/* Per node: distance to its parent (0: no parent), row, samples that end here. */
static void put_nodes(const struct vp_profile *profile, struct vp_json *json)
{
	const vp_profile_nodes *nodes = &profile->nodes;
	uint64_t *sums = page_profile_sums_of(nodes);
	uint64_t least = min_to_keep(sums, nodes->count);
	uint64_t *ends = ends_of(nodes, sums, least);
	uint32_t *number = vp_realloc_array(NULL, nodes->count + 1, sizeof(*number)), kept = 0;
	struct vp_buffer packed = {0};

	for (size_t i = 0; i < nodes->count; i++) {
		uint32_t parent = nodes->at[i].parent;
		if (sums[i] < least && parent != VP_NONE)
			continue;
		number[i] = kept++;
		vp_page_pack(&packed, parent == VP_NONE ? 0 : number[i] - number[parent]);
		vp_page_pack(&packed, nodes->at[i].row);
		vp_page_pack(&packed, ends[i]);
	}
	vp_json_count(json, "nodes", kept);
	vp_json_count(json, "leastSamples", least);
	vp_page_put_packed(json, "nodeData", &packed);
	free(number);
	free(ends);
	free(sums);
}

void vp_page_put_profile(const struct vp_report *report, const char *key, struct vp_json *json)
{
	const struct vp_profile *profile = &report->profile;
	uint64_t samples = 0;

	vp_vec_each (&profile->parts, part)
		samples += part->samples;
	vp_json_line(json);
	vp_json_object(json, key);
	vp_json_text(json, "path", report->path);
	vp_json_count(json, "samples", samples);
	vp_json_text(json, "unit", vp_recording_unit(&report->recording));
	vp_json_count(json, "samplesTaken", profile->counts.samples);
	vp_json_number(json, "durationS", report->duration);
	vp_json_array(json, "vms");
	vp_vec_each (&report->vms, vm)
		vp_json_text(json, NULL, vm->name);
	vp_json_array_end(json);
	vp_json_array(json, "texts");
	for (uint32_t i = 0; i < profile->texts.strings.count; i++)
		vp_json_text(json, NULL, vp_intern_text(&profile->texts, i));
	vp_json_array_end(json);
	page_profile_put_rows(report, json);
	put_nodes(profile, json);
	vp_json_object_end(json);
}
