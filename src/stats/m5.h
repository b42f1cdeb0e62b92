/* SPDX-License-Identifier: GPL-2.0-or-later */
/* M5' model trees (Quinlan 1992; Wang and Witten 1997), grown, pruned and smoothed exactly as by
 * WEKA 3.6's M5P, including rounding; docs/method-model.md has all constants. */
#ifndef VP_STATS_M5_H
#define VP_STATS_M5_H

#include "stats/m5_fit.h"
#include "stats/prepare.h"

struct vp_m5_options {
	bool unpruned;   /* WEKA's -N */
	bool unsmoothed; /* -U */
	bool regression; /* -R: leaves are constants */
	double minimum;  /* -M: minimum rows for splitting a node; 4 */
	bool nonneg;     /* no negative coefficients in leaves; not in WEKA */
};

struct vp_m5_node {
	struct vp_m5_node *left, *right; /* NULL for a leaf */
	size_t input;
	double cut; /* values <= cut go left */
	size_t rows;
	double rmse; /* of the node before smoothing */
	double mean; /* mean of the target */
	size_t parameters;
	unsigned number; /* number of a leaf, from 1 */
	struct vp_linear_model model;
};

struct vp_m5 {
	struct vp_m5_options options;
	struct vp_inputs inputs;
	char *target;
	double deviation; /* standard deviation of the target in all rows */
	size_t leaves;
	struct vp_m5_node *root;
};

/* Builds a tree from `n` rows (at least one) with a known target. Free with vp_m5_free(). */
struct vp_m5 *vp_m5_build(const struct vp_data *data, const uint32_t *rows, size_t n,
			  const struct vp_m5_options *options);
void vp_m5_free(struct vp_m5 *tree);
/* A new leaf for a model of `n_inputs` coefficients; owned by the tree once inserted. */
struct vp_m5_node *vp_m5_node_new(size_t n_inputs);
/* Numbers the leaves from left to right. */
void vp_m5_number(struct vp_m5 *tree);
/* Predicts the target of a row of a data set with the same columns as the training data. */
double vp_m5_predict(const struct vp_m5 *tree, const struct vp_data *data, size_t row);
/* The leaf of the row. */
const struct vp_m5_node *vp_m5_leaf(const struct vp_m5 *tree, const struct vp_data *data,
				    size_t row);

#endif
