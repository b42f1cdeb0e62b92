/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Searches a guest's memory for its kernel without vCPU registers: at its last known address, then
 * at usual addresses, then everywhere. It works in steps, at a bounded pace (base/pace.h), and
 * accesses only pages that are present in the host.
 *
 * Usual addresses: since v4.12 the read-only data of an x86-64 kernel start with the object of
 * init/version.c. Image and read-only data are at multiples of 2 MiB, with and without KASLR
 * (vmlinux.lds.S, X86_ALIGN_RODATA_BEGIN). Reading one page per 2 MiB is enough to find "Linux
 * version".
 */
#ifndef VP_GUESTMEM_KERNEL_SCAN_H
#define VP_GUESTMEM_KERNEL_SCAN_H

#include "base/macros.h"
#include "base/pace.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"

struct vp_kernel_scan;

enum vp_scan_result {
	VP_SCAN_GOES_ON,
	VP_SCAN_FOUND,
	VP_SCAN_ENDED, /* no kernel was found, or no further one */
};

struct vp_scan_setup {
	const struct vp_guest_memory *memory; /* must have `backed` */
	const vp_kernel_packs *packs;
	uint64_t remembered; /* last known address of a kernel's banner; 0: none */
	const struct vp_throttle_clock *clock; /* NULL: the clocks of this process */
};

/* Progress of the search of all memory, in bytes. */
struct vp_scan_progress {
	uint64_t done, all;
};

/* Memory and packs must outlive the scan. After a change of the memory's slots, a new scan is
 * needed. */
struct vp_kernel_scan *vp_kernel_scan_new(const struct vp_scan_setup *setup);
void vp_kernel_scan_free(struct vp_kernel_scan *scan);
/* Continues the search for at most `slice_ns`, including sleep, and a little longer to check a
 * candidate. `ret`: the kernel's own page tables, and its image as they map it. If the caller
 * rejects the kernel, the next step continues after it. */
enum vp_scan_result vp_kernel_scan_step(struct vp_kernel_scan *scan, uint64_t slice_ns,
					struct vp_guest_view *ret) VP_MUST_CHECK;
struct vp_scan_progress vp_kernel_scan_progress(const struct vp_kernel_scan *scan);

#endif
