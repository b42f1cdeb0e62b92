/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * M5' model trees (Quinlan 1992; Wang and Witten 1997), grown, pruned and smoothed as WEKA 3.6's
 * M5P does it, to the rounding; docs/method-model.md has every constant.
 */
#ifndef VP_STATS_M5_H
#define VP_STATS_M5_H

#include "stats/m5_fit.h"
#include "stats/prepare.h"

struct vp_m5_options {
	bool unpruned;   /* WEKA's -N */
	bool unsmoothed; /* -U */
	bool regression; /* -R: leaves are constants */
	double minimum;  /* -M: a node of fewer rows is not split; 4 */
	bool nonneg;     /* no coefficient of a leaf is below zero; not WEKA's */
};

struct vp_m5_node {
	struct vp_m5_node *left, *right; /* NULL in a leaf */
	size_t input;
	double cut; /* values up to it go left */
	size_t rows;
	double rmse; /* of the node as it is, before smoothing */
	double mean; /* of the target */
	size_t parameters;
	unsigned number; /* of a leaf, from 1 */
	struct vp_linear_model model;
};

struct vp_m5 {
	struct vp_m5_options options;
	struct vp_inputs inputs;
	char *target;
	double deviation; /* of the target in all rows */
	size_t leaves;
	struct vp_m5_node *root;
};

/* Builds from `n` rows (at least one) whose target is known. Free with vp_m5_free(). */
struct vp_m5 *vp_m5_build(const struct vp_data *data, const uint32_t *rows, size_t n,
			  const struct vp_m5_options *options);
void vp_m5_free(struct vp_m5 *tree);
/* An empty leaf whose model has room for `n_inputs` coefficients; the tree's once it is in it. */
struct vp_m5_node *vp_m5_node_new(size_t n_inputs);
/* Numbers the leaves from left to right. */
void vp_m5_number(struct vp_m5 *tree);
/* The target of a row of a data set whose columns are as those of the one that was learnt from. */
double vp_m5_predict(const struct vp_m5 *tree, const struct vp_data *data, size_t row);
/* The leaf that the row falls into. */
const struct vp_m5_node *vp_m5_leaf(const struct vp_m5 *tree, const struct vp_data *data,
				    size_t row);

#endif
