/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/buffer.h"
#include "base/json.h"
#include "render/render_model.h"
#include "stats/m5.h"
#include "stats/m5_fit.h"

#include <math.h>
#include <string.h>

#include "render/decimal.h"

/* "(165/12.903%)": number of rows, and the error in percent of the target's deviation. */
static void put_share(const struct vp_m5 *tree, const struct vp_m5_node *node,
		      struct vp_buffer *out)
{
	vp_buffer_printf(out, " (%zu", node->rows);
	if (tree->deviation > 0) {
		vp_buffer_string(out, "/");
		vp_render_decimal(100.0 * node->rmse / tree->deviation, 3, out);
		vp_buffer_string(out, "%");
	}
	vp_buffer_string(out, ")");
}

static void put_node(const struct vp_m5 *tree, const struct vp_m5_node *node, int level,
		     struct vp_buffer *out);

static void put_branch(const struct vp_m5 *tree, const struct vp_m5_node *node, bool right,
		       int level, struct vp_buffer *out)
{
	const char *name = tree->inputs.at.at[node->input].name;

	for (int i = 0; i < level; i++)
		vp_buffer_string(out, "|   ");
	if (*name == '[') {
		vp_buffer_printf(out, "%s %s : ", name, right ? "true" : "false");
	} else {
		vp_buffer_printf(out, "%s %s ", name, right ? "> " : "<=");
		vp_render_decimal(node->cut, 3, out);
		vp_buffer_string(out, " : ");
	}
	put_node(tree, right ? node->right : node->left, level + 1, out);
}

static void put_node(const struct vp_m5 *tree, const struct vp_m5_node *node, int level,
		     struct vp_buffer *out)
{
	if (!node->left) {
		vp_buffer_printf(out, "LM%u", node->number);
		put_share(tree, node, out);
		vp_buffer_string(out, "\n");
		return;
	}
	vp_buffer_string(out, "\n");
	put_branch(tree, node, false, level, out);
	put_branch(tree, node, true, level, out);
}

static void put_model(const struct vp_m5 *tree, const struct vp_linear_model *model,
		      struct vp_buffer *out)
{
	bool first = true;

	vp_buffer_printf(out, "\n%s = ", tree->target);
	for (size_t i = 0; i < tree->inputs.at.count; i++) {
		double c = model->coefficients[i];
		if (c == 0)
			continue;
		vp_buffer_string(out, first ? "\n\t" : c < 0 ? "\n\t- " : "\n\t+ ");
		vp_render_decimal(first ? c : fabs(c), 4, out);
		vp_buffer_printf(out, " * %s ", tree->inputs.at.at[i].name);
		first = false;
	}
	vp_buffer_string(out, model->intercept < 0 ? "\n\t- " : "\n\t+ ");
	vp_render_decimal(fabs(model->intercept), 4, out);
}

static void put_models(const struct vp_m5 *tree, const struct vp_m5_node *node,
		       struct vp_buffer *out)
{
	if (node->left) {
		put_models(tree, node->left, out);
		put_models(tree, node->right, out);
		return;
	}
	vp_buffer_printf(out, "\nLM num: %u", node->number);
	put_model(tree, &node->model, out);
	vp_buffer_string(out, "\n");
}

void vp_render_tree_text(const struct vp_m5 *tree, struct vp_buffer *out)
{
	vp_buffer_printf(out, "M5 %s %s tree:\n", tree->options.unpruned ? "unpruned" : "pruned",
			 tree->options.regression ? "regression" : "model");
	if (!tree->options.unsmoothed)
		vp_buffer_string(out, "(using smoothed linear models)\n");
	put_node(tree, tree->root, 0, out);
	put_models(tree, tree->root, out);
	vp_buffer_printf(out, "\nNumber of Rules : %zu\n", tree->leaves);
}

static void render_model_tree_put_json_model(const struct vp_m5 *tree,
					     const struct vp_linear_model *model,
					     struct vp_json *json)
{
	vp_json_number(json, "constant", model->intercept);
	vp_json_array(json, "coefficients");
	for (size_t i = 0; i < tree->inputs.at.count; i++) {
		if (model->coefficients[i] == 0)
			continue;
		vp_json_object(json, NULL);
		vp_json_text(json, "input", tree->inputs.at.at[i].name);
		vp_json_number(json, "value", model->coefficients[i]);
		vp_json_object_end(json);
	}
	vp_json_array_end(json);
}

static void put_json_node(const struct vp_m5 *tree, const struct vp_m5_node *node, const char *key,
			  struct vp_json *json)
{
	vp_json_object(json, key);
	vp_json_count(json, "rows", node->rows);
	vp_json_number(json, "share", (double)node->rows / (double)tree->root->rows);
	vp_json_number(json, "mean", node->mean);
	vp_json_number(json, "rmse", node->rmse);
	if (!node->left) {
		vp_json_count(json, "rule", node->number);
		render_model_tree_put_json_model(tree, &node->model, json);
	} else {
		vp_json_text(json, "input", tree->inputs.at.at[node->input].name);
		vp_json_number(json, "cut", node->cut);
		put_json_node(tree, node->left, "below", json);
		vp_json_line(json);
		put_json_node(tree, node->right, "above", json);
	}
	vp_json_object_end(json);
}

void vp_render_tree_json(const struct vp_m5 *tree, const char *key, struct vp_json *json)
{
	vp_json_object(json, key);
	vp_json_text(json, "target", tree->target);
	vp_json_bool(json, "pruned", !tree->options.unpruned);
	vp_json_bool(json, "smoothed", !tree->options.unsmoothed);
	vp_json_bool(json, "regression", tree->options.regression);
	vp_json_number(json, "minimum", tree->options.minimum);
	vp_json_number(json, "deviation", tree->deviation);
	vp_json_count(json, "rules", tree->leaves);
	vp_json_line(json);
	put_json_node(tree, tree->root, "root", json);
	vp_json_object_end(json);
}

static void put_dot_name(const char *name, struct vp_buffer *out)
{
	for (; *name; name++) {
		if (*name == '"' || *name == '\\')
			vp_buffer_string(out, "\\");
		vp_buffer_append(out, name, 1);
	}
}

/* Numbers nodes in the order in which they are written; returns the next free number. */
static unsigned put_dot_node(const struct vp_m5 *tree, const struct vp_m5_node *node, unsigned id,
			     struct vp_buffer *out)
{
	unsigned next = id + 1;

	vp_buffer_printf(out, "N%u [label=\"", id);
	if (!node->left) {
		vp_buffer_printf(out, "LM %u", node->number);
		put_share(tree, node, out);
		vp_buffer_string(out, "\" shape=box style=filled ]\n");
		return next;
	}
	put_dot_name(tree->inputs.at.at[node->input].name, out);
	vp_buffer_string(out, "\"]\n");
	for (int right = 0; right < 2; right++) {
		vp_buffer_printf(out, "N%u->N%u [label=\"%s", id, next, right ? ">" : "<=");
		vp_render_decimal(node->cut, 3, out);
		vp_buffer_string(out, "\"]\n");
		next = put_dot_node(tree, right ? node->right : node->left, next, out);
	}
	return next;
}

void vp_render_tree_dot(const struct vp_m5 *tree, struct vp_buffer *out)
{
	vp_buffer_string(out, "digraph M5Tree {\n");
	put_dot_node(tree, tree->root, 0, out);
	vp_buffer_string(out, "}\n");
}
