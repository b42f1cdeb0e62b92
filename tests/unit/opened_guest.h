/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The built guest of a test, and its kernel found in a snapshot of it. */
#ifndef VP_TESTS_OPENED_GUEST_H
#define VP_TESTS_OPENED_GUEST_H

#include "guest_builder.h"
#include "guestmem/kernel/kernel.h"
#include "guestmem/kernel/scan.h"
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

/* By registers, or by a scan to its end. */
static inline struct vp_error *find_kernel(struct opened *opened, bool scan,
					   const vp_kernel_packs *packs)
{
	static const vp_kernel_packs none;
	const struct vp_scan_setup setup = {.memory = &opened->snapshot.memory,
					    .packs = packs ? packs : &none};
	enum vp_scan_result result = VP_SCAN_GOES_ON;
	struct vp_guest_view found;

	if (!scan)
		return vp_guest_kernel_find(setup.memory, opened->snapshot.vcpus.at,
					    opened->snapshot.vcpus.count, setup.packs, 42,
					    &opened->kernel);
	struct vp_kernel_scan *searching = vp_kernel_scan_new(&setup);
	while (result == VP_SCAN_GOES_ON)
		result = vp_kernel_scan_step(searching, UINT32_MAX, &found);
	vp_kernel_scan_free(searching);
	return result == VP_SCAN_FOUND
		   ? vp_guest_kernel_read(&found, setup.packs, 42, &opened->kernel)
		   : vp_error_new("nothing was found");
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
