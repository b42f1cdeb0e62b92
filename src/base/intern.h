/* SPDX-License-Identifier: GPL-2.0-or-later */
/* String table: each distinct string once, numbered from 0 in order of insertion. */
#ifndef VP_BASE_INTERN_H
#define VP_BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct vp_intern {
	VP_VEC(char *) strings;
	uint32_t *slots; /* string number + 1; 0: free */
	uint32_t mask;
};

void vp_intern_deinit(struct vp_intern *intern);
/* The number of a text (`size` bytes; or a string), inserted if new. */
uint32_t vp_intern_add(struct vp_intern *intern, const char *text, size_t size);
uint32_t vp_intern_string(struct vp_intern *intern, const char *text);
bool vp_intern_has(const struct vp_intern *intern, const char *text);
/* The text of string `id`; valid as long as the table. */
const char *vp_intern_text(const struct vp_intern *intern, uint32_t id);

#endif
