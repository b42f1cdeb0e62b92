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

/* Constants of weka.classifiers.trees.m5.RuleNode. */
#define DEVIATION_PART 0.05 /* nodes below this fraction of the root's deviation are leaves */
#define PRUNING 2.0         /* weight of parameters in a model's error */
#define PRUNING_FULL 10.0   /* error factor if there are as many parameters as rows */
#define NO_ERROR 1e-5       /* fraction of the deviation: a model with a smaller error is kept */
#define BETTER 1e-6         /* minimum improvement over the best split so far */

struct grower {
	struct vp_m5 *tree;
	struct vp_matrix matrix;
	size_t n;
	uint32_t *order;   /* all rows; each node has a range of them, in WEKA's order */
	uint32_t **sorted; /* the same ranges sorted by one input; NULL before the root is sorted */
	uint32_t *spare;
	struct vp_keyed *keyed;
	double *x, *y; /* a node's rows, ascending by the current input; share memory with keyed */
	double *predicted; /* by row, from the current models of the leaves */
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
 * Sorts the node's rows by an input in WEKA's order, which depends on their present order; g->x
 * gets the input's values. If no value repeats, the order is unique and taken from the root's.
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

/* Moves rows up to the cut to the front; a stable partition. */
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

/* Fits a node and, if it is an inner node, decides whether it becomes a leaf. */
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

/* Nothing is sorted any more after the root's subtrees: frees memory for the root's fit. */
static void free_sorted(struct grower *g)
{
	for (size_t i = 0; i < g->matrix.n_inputs; i++) {
		free(g->sorted[i]);
		g->sorted[i] = NULL;
	}
}

/* Grows a subtree; `below` gets the inputs that split it. */
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
	/* The children reorder their ranges; this node is fitted to the rows in their present
	 * order. */
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
