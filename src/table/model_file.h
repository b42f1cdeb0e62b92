/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Model trees in files, as JSON. */
#ifndef VP_TABLE_MODEL_FILE_H
#define VP_TABLE_MODEL_FILE_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "stats/m5.h"

/* Appends the tree and the columns of the data set that it was learnt from, as a file has them. */
void vp_model_save(const struct vp_m5 *tree, const struct vp_data *data, struct vp_buffer *text);
/* Reads them back; *schema is a data set of these columns without rows. */
struct vp_error *vp_model_load(const char *path, struct vp_m5 **tree,
			       struct vp_data *schema) VP_MUST_CHECK;
/*
 * The columns of `data` in the order and with the labels of `schema`, for a model that was learnt
 * from that one. The target may be missing; `path` names the data in errors.
 */
struct vp_error *vp_model_align(const struct vp_data *schema, const struct vp_data *data,
				const char *path, struct vp_data *aligned) VP_MUST_CHECK;

#endif
