/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by m5.c and m5_grow.c. */
#ifndef VP_STATS_M5_GROW_H
#define VP_STATS_M5_GROW_H

#include "stats/m5.h"

/* Grows and prunes the tree's root from the rows in `order`, which is modified. */
void vp_m5_grow(struct vp_m5 *tree, const struct vp_data *data, uint32_t *order, size_t n);
/* Turns an inner node into a leaf. */
void vp_m5_node_prune(struct vp_m5_node *node);

#endif
