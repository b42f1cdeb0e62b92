/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions shared by the subcommands of 'vperf model'. */
#ifndef VP_CMD_READ_CMD_MODEL_H
#define VP_CMD_READ_CMD_MODEL_H

#include "analyze/model/model_groups.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "cmd/common/choice.h"
#include "cmd/common/options.h"
#include "cmd/common/verb.h"
#include "stats/evaluate.h"
#include "stats/m5.h"

enum vp_model_format { VP_MODEL_TEXT, VP_MODEL_JSON, VP_MODEL_CSV, VP_MODEL_DOT };

struct vp_model_options {
	const char *target, *groups, *predict, *save, *load, *svg, *merged, *workload, *path;
	uint64_t folds, minimum;
	struct vp_format_words format;
	bool nonneg, unpruned, unsmoothed, regression;
	struct vp_texts operands;
	/* Parsed options. */
	enum vp_model_format chosen;
};

/* Reads a data set and determines its target. Errors: no rows with a known target. */
struct vp_error *vp_model_read(const struct vp_model_options *options, const char *path,
			       struct vp_data *data) VP_MUST_CHECK;
/* Writes the file of --svg or --merged; frees `text`. */
struct vp_error *vp_model_publish(const char *path, struct vp_buffer *text) VP_MUST_CHECK;
/* The number of folds of --cv; 0: none. Errors: not enough rows. */
struct vp_error *vp_model_folds(const struct vp_model_options *options, const struct vp_data *data,
				size_t *folds) VP_MUST_CHECK;
/* The tree's options; a regression (to be freed) on all rows with a known target. */
struct vp_m5_options vp_model_tree_options(const struct vp_model_options *options);

/* One function per kind of model; each appends its report to `out`. */
struct vp_error *vp_model_tree(const struct vp_model_options *options,
			       struct vp_buffer *out) VP_MUST_CHECK;

struct vp_error *vp_model_linear(const struct vp_model_options *options,
				 struct vp_buffer *out) VP_MUST_CHECK;

struct vp_error *vp_model_compare(const struct vp_model_options *options,
				  struct vp_buffer *out) VP_MUST_CHECK;
struct vp_error *vp_model_check(const struct vp_model_options *options,
				struct vp_buffer *out) VP_MUST_CHECK;

#endif
