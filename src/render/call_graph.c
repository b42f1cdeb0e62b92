/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A call tree below a row of a table, in the layout of perf report --stdio. */
#include "render/call_graph.h"

#include <string.h>

#include "analyze/profile/call_tree.h"
#include "analyze/profile/profile.h"
#include "analyze/profile/totals.h"
#include "base/macros.h"

struct drawing {
	const struct vp_report *report;
	const struct vp_profile_part *part;
	const struct vp_call_tree *tree;
	struct vp_buffer margin; /* the part of the line to the left of the current branch */
	struct vp_buffer *out;
};

enum { DEEPEST = 256 };

static void call_graph_put_name(struct drawing *drawing, uint32_t call)
{
	const struct vp_profile *profile = &drawing->report->profile;
	uint32_t row = drawing->tree->calls.at[call].row;
	const char *name = vp_profile_text(profile, profile->rows.at[row].function);

	vp_buffer_string(drawing->out, name ? name : "[unknown]");
	vp_buffer_string(drawing->out, "\n");
}

static void put_margin(struct drawing *drawing, const char *rest)
{
	vp_buffer_append(drawing->out, drawing->margin.bytes, drawing->margin.size);
	vp_buffer_string(drawing->out, rest);
}

/* The only child, if all samples of the call went through it; otherwise VP_NONE. */
static uint32_t only_branch(const struct vp_call_tree *tree, uint32_t call)
{
	uint32_t branch = tree->calls.at[call].first;

	if (branch == VP_NONE || tree->calls.at[branch].next != VP_NONE ||
	    tree->calls.at[branch].samples != tree->calls.at[call].samples)
		return VP_NONE;
	return branch;
}

static void put_branches(struct drawing *drawing, uint32_t call, unsigned depth);

/* One line per call up to the next branch; branches follow below it. */
static void put_call_line(struct drawing *drawing, uint32_t call, unsigned depth)
{
	call_graph_put_name(drawing, call);
	for (uint32_t only; depth < DEEPEST && (only = only_branch(drawing->tree, call)) != VP_NONE;
	     call = only, depth++) {
		put_margin(drawing, "");
		call_graph_put_name(drawing, only);
	}
	if (depth < DEEPEST)
		put_branches(drawing, call, depth + 1);
}

static void put_branches(struct drawing *drawing, uint32_t call, unsigned depth)
{
	const struct vp_call_tree *tree = drawing->tree;
	size_t margin = drawing->margin.size;

	for (uint32_t at = tree->calls.at[call].first; at != VP_NONE;
	     at = tree->calls.at[at].next) {
		bool last = tree->calls.at[at].next == VP_NONE;
		put_margin(drawing, "|\n");
		put_margin(drawing, last ? " --" : "|--");
		vp_buffer_printf(drawing->out, "%.2f%%--",
				 vp_report_percent(drawing->part, tree->calls.at[at].samples));
		vp_buffer_string(&drawing->margin, last ? "           " : "|          ");
		put_call_line(drawing, at, depth);
		drawing->margin.size = margin;
	}
}

void vp_render_call_graph(const struct vp_report *report, const struct vp_profile_part *part,
			  uint32_t row, struct vp_buffer *out)
{
	struct vp_call_tree tree;
	struct drawing drawing = {.report = report, .part = part, .tree = &tree, .out = out};
	double least = report->graph.min_percent / 100 * (double)part->samples;

	vp_call_tree_make(&report->profile, row, report->graph.order,
			  least < 1 ? 1 : (uint64_t)least, &tree);
	if (tree.calls.count && tree.calls.at[0].first != VP_NONE) {
		vp_buffer_string(&drawing.margin, "            ");
		put_margin(&drawing, "|\n");
		put_margin(&drawing, "---");
		vp_buffer_string(&drawing.margin, "   ");
		put_call_line(&drawing, 0, 0);
		vp_buffer_string(out, "\n");
	}
	vp_buffer_deinit(&drawing.margin);
	vp_call_tree_deinit(&tree);
}
