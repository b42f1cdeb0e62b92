/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The built guest of a test, and its kernel found in a snapshot of it. */
#ifndef VP_TESTS_OPENED_GUEST_H
#define VP_TESTS_OPENED_GUEST_H

#include "guest_builder.h"
#include "guestmem/kernel.h"
#include "unit.h"

static struct guest_builder guest;

/* The guest as it is now, opened; `found` is its kernel. */
struct opened {
	struct vp_buffer bytes;
	struct vp_guest_snapshot snapshot;
	struct vp_guest_kernel kernel;
};

static inline void open_guest(struct opened *opened)
{
	*opened = (struct opened){0};
	built_snapshot(&guest, &opened->bytes);
	expect_no_error(
	    vp_guest_snapshot_init(opened->bytes.bytes, opened->bytes.size, &opened->snapshot));
}

static inline struct vp_error *find_kernel(struct opened *opened, bool scan,
					   const vp_kernel_packs *packs)
{
	static const vp_kernel_packs none;

	return vp_guest_kernel_find(&opened->snapshot.memory, opened->snapshot.vcpus.at,
				    scan ? 0 : opened->snapshot.vcpus.count, packs ? packs : &none,
				    42, &opened->kernel);
}

static inline void open_kernel(struct opened *opened)
{
	open_guest(opened);
	expect_no_error(find_kernel(opened, false, NULL));
}

static inline void close_guest(struct opened *opened)
{
	vp_guest_kernel_deinit(&opened->kernel);
	vp_guest_snapshot_deinit(&opened->snapshot);
	vp_buffer_deinit(&opened->bytes);
}

#endif
