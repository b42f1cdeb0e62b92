/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A growable array: `VP_VEC(struct thing) things = {0};`, items in .at[0] … .at[.count - 1]. */
#ifndef VP_BASE_VEC_H
#define VP_BASE_VEC_H

#include <stddef.h>

#include "base/alloc.h"

#define VP_VEC(type)                                                                               \
	struct {                                                                                   \
		type *at;                                                                          \
		size_t count;                                                                      \
		size_t room;                                                                       \
	}

/* Appends a slot whose contents are undefined, and yields its address; valid until the next
 * push. */
#define vp_vec_push_slot(vec)                                                                      \
	({                                                                                         \
		if ((vec)->count == (vec)->room) {                                                 \
			(vec)->room = (vec)->room ? 2 * (vec)->room : 16;                          \
			(vec)->at = vp_realloc_array((vec)->at, (vec)->room, sizeof(*(vec)->at));  \
		}                                                                                  \
		&(vec)->at[(vec)->count++];                                                        \
	})

/* Appends `item`. The expression may use the vector: it is evaluated before the vector grows. */
#define vp_vec_push(vec, item)                                                                     \
	({                                                                                         \
		__typeof__(*(vec)->at) vp_pushed = (item);                                         \
		*vp_vec_push_slot(vec) = vp_pushed;                                                \
	})

#define vp_vec_deinit(vec)                                                                         \
	do {                                                                                       \
		free((vec)->at);                                                                   \
		(vec)->at = NULL;                                                                  \
		(vec)->count = (vec)->room = 0;                                                    \
	} while (0)

#define vp_vec_each(vec, item)                                                                     \
	for (__typeof__(&*(vec)->at) item = (vec)->at;                                             \
	     (vec)->count && item < (vec)->at + (vec)->count; item++)

#endif
