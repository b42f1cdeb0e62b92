/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest's virtual addresses through its own page tables, in the context of its vCPU's thread:
 * each level is one small read of the VMM's memory that cannot wait. Functions that are global, so
 * that the verifier looks at each once, whoever calls it.
 */
#ifndef VP_BPF_GUEST_PAGES_BPF_H
#define VP_BPF_GUEST_PAGES_BPF_H

#include "bpf/guest_current.bpf.h"

/* A read does not cross pieces of that size, whatever the size of the guest's pages. */
enum { PAGE_BYTES = 4096 };

/* Where in the VMM the guest's physical address is; its page follows to the end. 0: nowhere. */
__noinline __u64 hva_of_gpa(__u32 number, __u64 gpa)
{
	struct vp_identity_vm *vm = bpf_map_lookup_elem(&identity_vms, &number);

	if (!vm)
		return 0;
	return hva_in_slots(vm->first_slot, vm->n_slots, gpa, sizeof(__u64));
}

/* The same of a virtual address of the address space with that root; 0: not mapped now. */
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
