/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks a guest's page tables, in the context of the vCPU thread: each level is one small read of
 * the VMM's memory that cannot sleep. The functions are global, so that the verifier checks each
 * once for all callers.
 */
#ifndef VP_BPF_GUEST_PAGES_BPF_H
#define VP_BPF_GUEST_PAGES_BPF_H

#include "bpf/guest_current.bpf.h"

/* Reads do not cross pages of that size, whatever the guest's page size. */
enum { PAGE_BYTES = 4096 };

/* The VMM's address of a guest physical address, valid up to the end of the page. 0: none. */
__noinline __u64 hva_of_gpa(__u32 number, __u64 gpa)
{
	struct vp_identity_vm *vm = bpf_map_lookup_elem(&identity_vms, &number);

	if (!vm)
		return 0;
	return hva_in_slots(vm->first_slot, vm->n_slots, gpa, sizeof(__u64));
}

/* The same for a virtual address with that page-table root; 0: not mapped now. */
__noinline __u64 hva_of_va(__u32 number, __u64 root, __u64 va)
{
	struct vp_identity_vm *vm = bpf_map_lookup_elem(&identity_vms, &number);

	if (!vm)
		return 0;
	const struct vp_paging *paging = &vm->paging;
	__u64 table = ((__s64)va < 0 && vm->kernel_root ? vm->kernel_root : root) & paging->root;
	for (int level = VP_PAGING_LEVELS; level > 0; level--) {
		__u64 entry = 0;
		if (level > paging->levels)
			continue;
		__u64 at = table + vp_paging_index(paging, level, va) * sizeof(entry);
		__u64 hva = hva_of_gpa(number, at);
		if (!hva || bpf_probe_read_user(&entry, sizeof(entry), (void *)hva) ||
		    !vp_paging_is_valid(paging, level, entry))
			return 0;
		table = vp_paging_address(paging, entry);
		if (vp_paging_is_leaf(paging, level, entry)) {
			__u64 inside = (1ULL << vp_paging_shift(paging, level)) - 1;
			return hva_of_gpa(number, (table & ~inside) | (va & inside));
		}
	}
	return 0;
}

#endif
