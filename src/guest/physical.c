/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest/physical.h"

#include <errno.h>
#include <unistd.h>

#include "base/io.h"

struct vp_error *vp_guest_physical(const volatile void *word, int pagemap, uint64_t *ret)
{
	const uint64_t present = 1ULL << 63, frame_bits = (1ULL << 55) - 1;
	uint64_t page = (uint64_t)getpagesize(), address = (uint64_t)(uintptr_t)word, entry = 0;

	(void)*(const volatile char *)word; /* faults the page in */
	if (vp_pread(pagemap, &entry, sizeof(entry), (off_t)(address / page * sizeof(entry))) !=
	    sizeof(entry))
		return vp_error_errno(errno, "cannot read '/proc/self/pagemap'");
	if (!(entry & present) || !(entry & frame_bits))
		return vp_error_new(
		    "'/proc/self/pagemap' hides physical addresses: root is required");
	*ret = (entry & frame_bits) * page + address % page;
	return NULL;
}
