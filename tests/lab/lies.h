/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lies that a guest's kernel may tell about itself: each is a few bytes of the guest's memory,
 * where a running guest does not look at them, and what they are changed to.
 */
#ifndef TESTS_LAB_LIES_H
#define TESTS_LAB_LIES_H

#include "guestmem/tasks/tasks.h"

enum { LIE_BYTES = 128 };

struct lie {
	uint64_t va; /* the guest's address */
	size_t size;
	char truth[LIE_BYTES], lie[LIE_BYTES];
	bool blinks; /* told only every other moment */
};
typedef VP_VEC(struct lie) lie_list;

/*
 * Makes up the lie KIND about the process named `who` (NULL for those about the kernel). The error
 * says what it did not find.
 */
struct vp_error *lies_make(const struct vp_guest_kernel *kernel, const char *kind, const char *who,
			   lie_list *lies) VP_MUST_CHECK;
/* The kinds there are, one per line. */
void lies_list(struct vp_buffer *text);

#endif
