/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Spelling suggestions: known names closest to an unknown one. */
#ifndef VP_BASE_NEAREST_H
#define VP_BASE_NEAREST_H

#include <stddef.h>

#include "base/cursor.h"

enum { VP_NEAREST_MAX = 3, VP_NEAREST_SIZE = 64 };

struct vp_nearest {
	struct vp_slice wanted;
	struct {
		char name[VP_NEAREST_SIZE];
		size_t distance; /* number of letters to change, insert and delete */
	} best[VP_NEAREST_MAX];
	size_t count;
};

/* `wanted` must outlive the search. */
void vp_nearest_init(struct vp_nearest *nearest, struct vp_slice wanted);
/* Compares one more name; names of VP_NEAREST_SIZE letters or more are ignored. */
void vp_nearest_add(struct vp_nearest *nearest, const char *name);
/* Compares each word of a list such as "a, b or c". */
void vp_nearest_add_words(struct vp_nearest *nearest, const char *list);
/* " (did you mean a, b or c?)", or "" if no name is near; the caller frees it. */
char *vp_nearest_text(const struct vp_nearest *nearest);
/* The same with `prefix` before each name, such as "--". */
char *vp_nearest_text_with(const struct vp_nearest *nearest, const char *prefix);

#endif
