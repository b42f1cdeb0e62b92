/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/m5_grow.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "stats/data.h"
#include "stats/m5_fit.h"
#include "stats/m5_split.h"
#include "stats/order.h"
#include "stats/prepare.h"

/* weka.classifiers.trees.m5.RuleNode */
#define DEVIATION_PART 0.05 /* a node of less than this part of the deviation is not split */
#define PRUNING 2.0         /* weight of parameters in a model's error */
#define PRUNING_FULL 10.0   /* the error's factor if there are as many parameters as rows */
#define NO_ERROR 1e-5       /* of the deviation: below it the model is kept */
#define BETTER 1e-6         /* another input must take away so much more */

struct grower {
	struct vp_m5 *tree;
	struct vp_matrix matrix;
	size_t n;
	uint32_t *order;   /* of all rows; a node has a piece of it, in WEKA's order */
	uint32_t **sorted; /* the same pieces ascending by one input; NULL before the root's sort */
	uint32_t *spare;
	struct vp_keyed *keyed;
	double *x, *y; /* of a node's rows, ascending by the input looked at; in keyed's place */
	double *predicted; /* by row, from the models of the leaves as they are */
	struct vp_split_work split;
	struct vp_fit_work fit;
};

/* The rows of a node. */
struct piece {
	size_t begin, n;
};

static double deviation(const double *y, const uint32_t *rows, size_t n)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		sum += y[rows[i]];
		squares += y[rows[i]] * y[rows[i]];
	}
	return n > 1 ? sqrt(fabs((squares - sum * sum / (double)n) / (double)n)) : 0;
}

static bool all_differ(const double *x, const uint32_t *rows, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (x[rows[i]] == x[rows[i - 1]])
			return false;
	return true;
}

/*
 * Orders the node's rows by an input as WEKA would, from the order that they are in; g->x gets the
 * input's values. Where no value repeats there is only one such order, which is known from the
 * root's.
 */
static void m5_grow_sort_rows(struct grower *g, size_t input, struct piece piece)
{
	uint32_t *rows = g->order + piece.begin;
	const uint32_t *sorted = g->sorted[input] ? g->sorted[input] + piece.begin : NULL;
	const double *x = g->matrix.x[input];

	if (sorted && all_differ(x, sorted, piece.n)) {
		memcpy(rows, sorted, piece.n * sizeof(*rows));
		for (size_t i = 0; i < piece.n; i++)
			g->x[i] = x[rows[i]];
		return;
	}
	for (size_t i = 0; i < piece.n; i++)
		g->keyed[i] = (struct vp_keyed){x[rows[i]], rows[i]};
	vp_order_sort(g->keyed, piece.n);
	for (size_t i = 0; i < piece.n; i++)
		rows[i] = g->keyed[i].row;
	for (size_t i = 0; i < piece.n; i++)
		g->x[i] = g->keyed[i].value;
	if (!sorted) {
		g->sorted[input] = vp_realloc_array(NULL, g->n, sizeof(*rows));
		memcpy(g->sorted[input], rows, piece.n * sizeof(*rows));
	}
}

static bool find_split(struct grower *g, struct piece piece, struct vp_split *best)
{
	const uint32_t *rows = g->order + piece.begin;
	bool found = false;

	best->impurity = -1e20;
	for (size_t input = 0; input < g->matrix.n_inputs; input++) {
		struct vp_split split;
		m5_grow_sort_rows(g, input, piece);
		for (size_t i = 0; i < piece.n; i++)
			g->y[i] = g->matrix.y[rows[i]];
		if (!vp_split_find(g->x, g->y, piece.n, &g->split, &split) ||
		    !(fabs(split.impurity - best->impurity) > BETTER &&
		      split.impurity > best->impurity + BETTER))
			continue;
		split.input = input;
		*best = split;
		found = true;
	}
	return found;
}

/* Rows up to the cut to the front, both sides in the order they had. */
static size_t divide(struct grower *g, uint32_t *rows, size_t n, const struct vp_split *split)
{
	const double *x = g->matrix.x[split->input];
	size_t left = 0, right = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t row = rows[i];
		if (x[row] <= split->cut)
			rows[left++] = row;
		else
			g->spare[right++] = row;
	}
	memcpy(rows + left, g->spare, right * sizeof(*rows));
	return left;
}

static double predict_row(const struct grower *g, const struct vp_linear_model *model, uint32_t row)
{
	double sum = 0;

	for (size_t i = 0; i < g->matrix.n_inputs; i++)
		if (model->coefficients[i] != 0)
			sum += model->coefficients[i] * g->matrix.x[i][row];
	return sum + model->intercept;
}

static double model_rmse(const struct grower *g, const struct vp_linear_model *model,
			 const uint32_t *rows, size_t n, double *predicted)
{
	double squares = 0;

	for (size_t i = 0; i < n; i++) {
		predicted[i] = predict_row(g, model, rows[i]);
		double off = predicted[i] - g->matrix.y[rows[i]];
		squares += off * off;
	}
	return sqrt(squares / (double)n);
}

static double subtree_rmse(const struct grower *g, const uint32_t *rows, size_t n)
{
	double squares = 0;

	for (size_t i = 0; i < n; i++) {
		double off = g->predicted[rows[i]] - g->matrix.y[rows[i]];
		squares += off * off;
	}
	return sqrt(squares / (double)n);
}

static double pruning_factor(size_t n, size_t parameters)
{
	if (n <= parameters)
		return PRUNING_FULL;
	return ((double)n + PRUNING * (double)parameters) / (double)(n - parameters);
}

static void set_predictions(struct grower *g, const uint32_t *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		g->predicted[rows[i]] = g->y[i];
}

/* Fits a node and, if it is not a leaf, decides whether it becomes one. */
static void finish_node(struct grower *g, struct vp_m5_node *node, const uint32_t *rows,
			const bool *below)
{
	size_t n = node->rows, inputs = g->matrix.n_inputs;
	VP_AUTO_FREE uint32_t *candidates = vp_alloc(inputs * sizeof(*candidates));
	struct vp_fit_task task = {&g->matrix, rows, n, candidates, 0, g->tree->options.nonneg};

	for (size_t i = 0; i < inputs && !g->tree->options.regression; i++)
		if (below[i])
			candidates[task.n_candidates++] = (uint32_t)i;
	vp_m5_fit(&task, &g->fit, &node->model);
	double rmse = model_rmse(g, &node->model, rows, n, g->y);
	size_t parameters = node->model.parameters + 1;
	if (!node->left || g->tree->options.unpruned) {
		node->rmse = rmse;
		node->parameters = node->left ? parameters : 1;
	} else {
		double subtree = subtree_rmse(g, rows, n);
		size_t together = node->left->parameters + node->right->parameters + 1;
		double by_model = rmse * pruning_factor(n, parameters);
		bool keep = !(by_model <= subtree * pruning_factor(n, together) ||
			      by_model < g->tree->deviation * NO_ERROR);
		node->rmse = keep ? subtree : rmse;
		node->parameters = keep ? together : parameters;
		if (keep)
			return;
		vp_m5_node_prune(node);
	}
	set_predictions(g, rows, n);
}

static double m5_grow_mean_of(const double *y, const uint32_t *rows, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += y[rows[i]];
	return sum / (double)n;
}

/* After the root's subtrees, nothing is sorted any more: frees memory for the root's fit. */
static void free_sorted(struct grower *g)
{
	for (size_t i = 0; i < g->matrix.n_inputs; i++) {
		free(g->sorted[i]);
		g->sorted[i] = NULL;
	}
}

/* Grows a node and what is below it; `below` gets the inputs that it is split by. */
static struct vp_m5_node *grow(struct grower *g, struct piece piece, bool *below)
{
	uint32_t *rows = g->order + piece.begin;
	struct vp_m5_node *node = vp_m5_node_new(g->matrix.n_inputs);
	struct vp_split split;

	node->rows = piece.n;
	node->mean = m5_grow_mean_of(g->matrix.y, rows, piece.n);
	if ((double)piece.n < g->tree->options.minimum ||
	    deviation(g->matrix.y, rows, piece.n) < g->tree->deviation * DEVIATION_PART ||
	    !find_split(g, piece, &split)) {
		finish_node(g, node, rows, below);
		return node;
	}
	/* The children sort their pieces; this node is fitted to the rows as they are now. */
	VP_AUTO_FREE uint32_t *own = vp_realloc_array(NULL, piece.n, sizeof(*own));
	VP_AUTO_FREE bool *right_below = vp_alloc(g->matrix.n_inputs);
	memcpy(own, rows, piece.n * sizeof(*own));
	size_t left = divide(g, rows, piece.n, &split);
	for (size_t i = 0; i < g->matrix.n_inputs; i++)
		divide(g, g->sorted[i] + piece.begin, piece.n, &split);
	node->input = split.input;
	node->cut = split.cut;
	node->left = grow(g, (struct piece){piece.begin, left}, below);
	node->right = grow(g, (struct piece){piece.begin + left, piece.n - left}, right_below);
	for (size_t i = 0; i < g->matrix.n_inputs; i++)
		below[i] |= right_below[i];
	below[split.input] = true;
	if (piece.n == g->n)
		free_sorted(g);
	finish_node(g, node, own, below);
	return node;
}

static void grower_deinit(struct grower *g)
{
	free_sorted(g);
	free(g->sorted);
	free(g->spare);
	free(g->keyed);
	free(g->predicted);
	vp_split_work_deinit(&g->split);
	vp_fit_work_deinit(&g->fit);
	vp_matrix_deinit(&g->matrix);
}

void vp_m5_grow(struct vp_m5 *tree, const struct vp_data *data, uint32_t *order, size_t n)
{
	struct grower g = {.tree = tree, .order = order, .n = n};

	vp_matrix_init(&g.matrix, &tree->inputs, data);
	VP_AUTO_FREE bool *below = vp_alloc(g.matrix.n_inputs);
	g.sorted = vp_alloc(g.matrix.n_inputs * sizeof(*g.sorted));
	g.spare = vp_realloc_array(NULL, n, sizeof(*g.spare));
	g.keyed = vp_realloc_array(NULL, n, sizeof(*g.keyed));
	g.x = (double *)g.keyed;
	g.y = g.x + n;
	g.predicted = vp_realloc_array(NULL, data->rows, sizeof(*g.predicted));
	vp_split_work_init(&g.split, n);
	tree->deviation = deviation(g.matrix.y, order, n);
	tree->root = grow(&g, (struct piece){0, n}, below);
	grower_deinit(&g);
}
