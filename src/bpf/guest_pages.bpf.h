/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest's virtual addresses through its own page tables, in the context of its vCPU's thread:
 * each level is one small read of the VMM's memory that cannot wait. Functions that are global, so
 * that the verifier looks at each once, whoever calls it.
 */
#ifndef VP_BPF_GUEST_PAGES_BPF_H
#define VP_BPF_GUEST_PAGES_BPF_H

#include "bpf/guest_current.bpf.h"

/* Intel 64 and AMD64 page table entries: volume 3A, chapter 4 of Intel's manual. */
#define ENTRY_ADDRESS 0x000ffffffffff000ULL
enum { ENTRY_PRESENT = 1, ENTRY_LARGE = 0x80, PAGE_BYTES = 4096, TOP_LEVEL = 5, LARGEST_PAGE = 3 };

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
	__u64 table = root & ENTRY_ADDRESS;

	if (!vm)
		return 0;
	for (int level = TOP_LEVEL; level > 0; level--) {
		__u32 shift = 12 + 9 * (level - 1);
		__u64 entry = 0;
		if (level > vm->levels)
			continue;
		__u64 hva = hva_of_gpa(number, table + (va >> shift & 511) * sizeof(entry));
		if (!hva || bpf_probe_read_user(&entry, sizeof(entry), (void *)hva) ||
		    !(entry & ENTRY_PRESENT))
			return 0;
		table = entry & ENTRY_ADDRESS;
		if (level == 1 || (level <= LARGEST_PAGE && entry & ENTRY_LARGE)) {
			__u64 inside = (1ULL << shift) - 1;
			return hva_of_gpa(number, (table & ~inside) | (va & inside));
		}
	}
	return 0;
}

#endif
