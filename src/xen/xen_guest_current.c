/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/xen_guest_current.h"

#include <string.h>

#include "base/error.h"

/* Address bits of CR3, without PCID (bit 12: one of two tables with page-table isolation) and
 * bit 63. */
#define ROOT_BITS 0x7fffffffffffe000ULL

enum { LARGEST_STRUCT = 1 << 16 };

struct vp_error *vp_xen_kernel_init(const struct vp_guest_finding *finding,
				    struct vp_xen_kernel *ret)
{
	if (finding->off_tgid != finding->off_tid + sizeof(uint32_t) ||
	    finding->off_tid > LARGEST_STRUCT || finding->off_comm > LARGEST_STRUCT ||
	    finding->off_mm > LARGEST_STRUCT || finding->off_pgd > LARGEST_STRUCT)
		return vp_error_new("unknown layout of the guest's task_struct");
	*ret = (struct vp_xen_kernel){.direct_map = finding->direct_map,
				      .image_va = finding->text,
				      .image_size = finding->size,
				      .image_gpa = finding->gpa,
				      .off_tid = finding->off_tid,
				      .off_comm = finding->off_comm,
				      .off_mm = finding->off_mm,
				      .off_pgd = finding->off_pgd};
	return NULL;
}

/* Physical address of an address in the kernel image or direct map. */
static uint64_t physical(const struct vp_xen_kernel *kernel, uint64_t address)
{
	uint64_t in_image = address - kernel->image_va;

	return in_image < kernel->image_size ? kernel->image_gpa + in_image
					     : address - kernel->direct_map;
}

static bool read_at(const struct vp_xen_kernel *kernel, const struct vp_xen_memory *memory,
		    uint64_t address, void *bytes, size_t size)
{
	return memory->read(memory->context, physical(kernel, address), bytes, size);
}

static bool has_root(const struct vp_xen_kernel *kernel, const struct vp_xen_memory *memory,
		     uint64_t task, uint64_t root, bool user)
{
	uint64_t mm, pgd;

	if (!read_at(kernel, memory, task + kernel->off_mm, &mm, sizeof(mm)))
		return false;
	if (!mm)
		return !user;
	return read_at(kernel, memory, mm + kernel->off_pgd, &pgd, sizeof(pgd)) &&
	       (physical(kernel, pgd) & ROOT_BITS) == (root & ROOT_BITS);
}

bool vp_xen_task_read(const struct vp_xen_kernel *kernel, const struct vp_xen_memory *memory,
		      uint64_t current, uint64_t root, bool user, struct vp_xen_task *ret)
{
	uint32_t ids[2];

	if (!memory->read(memory->context, current, &ret->address, sizeof(ret->address)) ||
	    !read_at(kernel, memory, ret->address + kernel->off_tid, ids, sizeof(ids)) ||
	    !read_at(kernel, memory, ret->address + kernel->off_comm, ret->comm,
		     sizeof(ret->comm)) ||
	    !has_root(kernel, memory, ret->address, root, user))
		return false;
	ret->tid = ids[0];
	ret->pid = ids[1];
	ret->comm[sizeof(ret->comm) - 1] = 0;
	return true;
}
