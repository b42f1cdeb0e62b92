/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Translates addresses of this process to guest-physical addresses. */
#ifndef VP_GUEST_PHYSICAL_H
#define VP_GUEST_PHYSICAL_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* The guest-physical address of a word, from an open '/proc/self/pagemap'. The page must belong to
 * the kernel (vmalloc), which neither moves nor swaps it. */
struct vp_error *vp_guest_physical(const volatile void *word, int pagemap,
				   uint64_t *ret) VP_MUST_CHECK;

#endif
