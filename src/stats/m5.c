/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/m5.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "stats/data.h"
#include "stats/m5_grow.h"
#include "stats/random.h"

/* Weight of a parent's model, in rows (RuleNode: SMOOTHING_CONSTANT). */
#define SMOOTHING 15.0

struct vp_m5_node *vp_m5_node_new(size_t n_inputs)
{
	struct vp_m5_node *node = vp_alloc(sizeof(*node));

	node->model.coefficients = vp_alloc(n_inputs * sizeof(double));
	return node;
}

static void node_free(struct vp_m5_node *node)
{
	if (!node)
		return;
	node_free(node->left);
	node_free(node->right);
	free(node->model.coefficients);
	free(node);
}

void vp_m5_node_prune(struct vp_m5_node *node)
{
	node_free(node->left);
	node_free(node->right);
	node->left = node->right = NULL;
}

static unsigned m5_number(struct vp_m5_node *node, unsigned before)
{
	if (node->left)
		return m5_number(node->right, m5_number(node->left, before));
	node->number = before + 1;
	return before + 1;
}

void vp_m5_number(struct vp_m5 *tree)
{
	tree->leaves = m5_number(tree->root, 0);
}

/* A node on the path to a leaf, as it was before smoothing. */
struct step {
	const struct vp_m5_node *node;
	const struct step *up;
};

static void smooth_leaf(struct vp_m5_node *leaf, const struct step *up, size_t n_inputs)
{
	double rows = (double)leaf->rows;
	struct vp_linear_model *model = &leaf->model;

	for (; up; rows = (double)up->node->rows, up = up->up) {
		const struct vp_linear_model *above = &up->node->model;
		double whole = rows + SMOOTHING;
		for (size_t i = 0; i < n_inputs; i++) {
			model->coefficients[i] = model->coefficients[i] * rows / whole;
			model->coefficients[i] += SMOOTHING * above->coefficients[i] / whole;
		}
		model->intercept = model->intercept * rows / whole;
		model->intercept += SMOOTHING * above->intercept / whole;
	}
}

static void smooth(struct vp_m5_node *node, const struct step *up, size_t n_inputs)
{
	struct step here = {node, up};

	if (!node->left) {
		smooth_leaf(node, up, n_inputs);
		return;
	}
	smooth(node->left, &here, n_inputs);
	smooth(node->right, &here, n_inputs);
}

struct vp_m5 *vp_m5_build(const struct vp_data *data, const uint32_t *rows, size_t n,
			  const struct vp_m5_options *options)
{
	struct vp_m5 *tree = vp_alloc(sizeof(*tree));
	uint32_t *order = vp_realloc_array(NULL, n, sizeof(*order));
	struct vp_random random;

	memcpy(order, rows, n * sizeof(*order));
	tree->options = *options;
	tree->target = vp_strdup(data->columns.at[data->target].name);
	vp_inputs_learn(&tree->inputs, data, rows, n);
	vp_random_init(&random, 1); /* M5Base shuffles with seed 1 */
	vp_random_shuffle(&random, order, n);
	vp_m5_grow(tree, data, order, n);
	if (!options->unsmoothed)
		smooth(tree->root, NULL, tree->inputs.at.count);
	vp_m5_number(tree);
	free(order);
	return tree;
}

void vp_m5_free(struct vp_m5 *tree)
{
	if (!tree)
		return;
	node_free(tree->root);
	vp_inputs_deinit(&tree->inputs);
	free(tree->target);
	free(tree);
}

const struct vp_m5_node *vp_m5_leaf(const struct vp_m5 *tree, const struct vp_data *data,
				    size_t row)
{
	const struct vp_m5_node *node = tree->root;

	while (node->left)
		node = vp_input_value(&tree->inputs, node->input, data, row) <= node->cut
			   ? node->left
			   : node->right;
	return node;
}

double vp_m5_predict(const struct vp_m5 *tree, const struct vp_data *data, size_t row)
{
	const struct vp_linear_model *model = &vp_m5_leaf(tree, data, row)->model;
	double sum = 0;

	for (size_t i = 0; i < tree->inputs.at.count; i++)
		if (model->coefficients[i] != 0)
			sum += model->coefficients[i] * vp_input_value(&tree->inputs, i, data, row);
	return sum + model->intercept;
}
