/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Model trees as JSON files. */
#ifndef VP_TABLE_MODEL_FILE_H
#define VP_TABLE_MODEL_FILE_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "stats/m5.h"

/* Appends the tree and the columns of its training data as JSON. */
void vp_model_save(const struct vp_m5 *tree, const struct vp_data *data, struct vp_buffer *text);
/* Reads such a file; *schema is a data set with these columns and no rows. */
struct vp_error *vp_model_load(const char *path, struct vp_m5 **tree,
			       struct vp_data *schema) VP_MUST_CHECK;
/* Rearranges the columns of `data` to the order and labels of `schema`, the training data of a
 * model. The target may be missing; `path` names the data in errors. */
struct vp_error *vp_model_align(const struct vp_data *schema, const struct vp_data *data,
				const char *path, struct vp_data *aligned) VP_MUST_CHECK;

#endif
