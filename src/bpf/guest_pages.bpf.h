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

/*
 * A translated page. It is still valid if the entry that maps it has not changed: Linux clears
 * entries before it frees or replaces their table. Tables that are moved to another address (a
 * large mremap) are noticed after MEMO_USES.
 */
struct page_memo {
	__u64 table, page;      /* root of the page tables; address of the page */
	__u64 entry_hva, entry; /* that maps it */
	__u64 hva;
	__u32 revision; /* of the VM's memory slots */
	__u32 uses;     /* left */
	__u64 va, now;  /* that is looked up; the entry that was read */
};

enum { PAGE_MEMOS = 16, MEMO_USES = 64 };

struct page_memos {
	struct page_memo of[PAGE_MEMOS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct page_memos);
} page_memos SEC(".maps");

static __always_inline struct page_memo *memo_of_page(__u64 va)
{
	__u32 zero = 0;
	struct page_memos *memos = bpf_map_lookup_elem(&page_memos, &zero);

	return memos ? &memos->of[va / PAGE_BYTES & (PAGE_MEMOS - 1)] : 0;
}

static __always_inline bool memo_is_valid(struct page_memo *memo, __u32 revision, __u64 table)
{
	if (!revision || memo->revision != revision || memo->table != table ||
	    memo->page != (memo->va & ~(PAGE_BYTES - 1ULL)) || !memo->uses)
		return false;
	memo->uses--;
	return !bpf_probe_read_user(&memo->now, sizeof(memo->now), (void *)memo->entry_hva) &&
	       memo->now == memo->entry;
}

/* Remembers the page of memo->va, and returns the VMM's address; 0: none. */
static __always_inline __u64 memo_set(struct page_memo *memo, __u32 revision, __u64 hva)
{
	if (!hva)
		return 0;
	memo->entry = memo->now;
	memo->hva = hva;
	memo->page = memo->va & ~(PAGE_BYTES - 1ULL);
	memo->uses = MEMO_USES;
	memo->revision = revision;
	return hva + (memo->va & (PAGE_BYTES - 1));
}

/* The VMM's address of a virtual address with that page-table root, valid up to the end of the
 * page; 0: not mapped now. Older kernels limit the stack of nested functions to 512 bytes: the memo
 * has what would be on it. */
__noinline __u64 hva_of_va(__u32 number, __u64 root, __u64 va)
{
	struct vp_identity_vm *vm = bpf_map_lookup_elem(&identity_vms, &number);
	struct page_memo *memo = memo_of_page(va);

	if (!vm || !memo)
		return 0;
	__u64 table = ((__s64)va < 0 && vm->kernel_root ? vm->kernel_root : root) & vm->paging.root;
	memo->va = va;
	if (memo_is_valid(memo, vm->revision, table))
		return memo->hva + (memo->va & (PAGE_BYTES - 1));
	memo->revision = 0;
	memo->table = table;
	for (int level = VP_PAGING_LEVELS; level > 0; level--) {
		if (level > vm->paging.levels)
			continue;
		table += vp_paging_index(&vm->paging, level, memo->va) * sizeof(memo->now);
		memo->entry_hva = hva_of_gpa(number, table);
		if (!memo->entry_hva ||
		    bpf_probe_read_user(&memo->now, sizeof(memo->now), (void *)memo->entry_hva) ||
		    !vp_paging_is_valid(&vm->paging, level, memo->now))
			return 0;
		table = vp_paging_address(&vm->paging, memo->now);
		if (vp_paging_is_leaf(&vm->paging, level, memo->now)) {
			__u64 inside = (1ULL << vp_paging_shift(&vm->paging, level)) - 1;
			table = (table & ~inside) | (memo->va & inside & ~(PAGE_BYTES - 1ULL));
			return memo_set(memo, vm->revision, hva_of_gpa(number, table));
		}
	}
	return 0;
}

#endif
