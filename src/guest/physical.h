/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a word of this process is in the guest's memory. */
#ifndef VP_GUEST_PHYSICAL_H
#define VP_GUEST_PHYSICAL_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/*
 * Its guest-physical address, by an open '/proc/self/pagemap'. For a page that is the kernel's own
 * (vmalloc): it neither moves nor is it swapped out.
 */
struct vp_error *vp_guest_physical(const volatile void *word, int pagemap,
				   uint64_t *ret) VP_MUST_CHECK;

#endif
