/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of chain.bpf.h: 64-bit Arm. User space and the kernel keep frame records: x29 points to
 * the caller's x29 and the return address. A leaf function has no frame record; its return
 * address is only in x30. */
#ifndef VP_BPF_CHAIN_ARM_BPF_H
#define VP_BPF_CHAIN_ARM_BPF_H

#include "bpf/kvm_arm.bpf.h"

/* Words of struct pt_regs, and x29 in it. */
enum { ARM_FRAME = 29, ARM_LINK, ARM_SP, ARM_PC, ARM_PSTATE };
enum { ARM_REGS_FRAME = ARM_FRAME * 8 };
/* Offset of its frame record: since v6.13, and before. */
enum { ARM_REGS_RECORD = 296, ARM_REGS_RECORD_OLD = 304 };
/* Since v6.13: the word after an empty record in an interrupted kernel's struct pt_regs. */
enum { ARM_RECORD_OF_KERNEL = 2 };
/* Bits of PSTATE that 64-bit user space may have set when it is interrupted: NZCV, TCO, DIT, SS,
 * SSBS, BTYPE. */
#define ARM_USER_PSTATE 0xf3201c00ULL

/* An address without its signature (PAC) or tag. */
static __always_inline __u64 without_signature(const struct chain_maker *maker, __u64 va)
{
	return va >> 55 & 1 ? va | ~maker->va_mask : va & maker->va_mask;
}

/* Continues at the registers in a struct pt_regs if they are those of user space; false: they
 * are not. */
__noinline int take_arm_user_regs(__u64 regs)
{
	struct chain_maker *maker = chain_maker();

	if (!maker)
		return 0;
	__u64 *saved = maker->general;
	__u64 hva = hva_of_piece(maker, regs, sizeof(maker->general));
	maker->has_general = 0;
	if (!hva || bpf_probe_read_user(saved, sizeof(maker->general), (void *)hva) ||
	    saved[ARM_PSTATE] & ~ARM_USER_PSTATE || !saved[ARM_PC] ||
	    saved[ARM_PC] > maker->va_mask || saved[ARM_SP] > maker->va_mask)
		return 0;
	maker->ip = saved[ARM_PC];
	maker->sp = saved[ARM_SP];
	maker->bp = saved[ARM_FRAME] & maker->va_mask;
	maker->link = saved[ARM_LINK] & maker->va_mask;
	maker->has_general = 1;
	return 1;
}

/* Walks the guest kernel's frame records from maker's bp; its stacks are in no particular order.
 * The last record is empty and part of the struct pt_regs of the interrupted code, or of the
 * kernel entry: returns its address, or 0. The state is in the maker because the BPF stack is
 * nearly full. */
__noinline __u64 walk_arm_kernel(void)
{
	struct chain_maker *maker = chain_maker();

	if (!maker)
		return 0;
	struct user_frame *frame = (void *)maker->top;
	__u64 bp = maker->bp;
	maker->end = VP_CHAIN_TOO_DEEP;
	for (__u32 i = 0; i < VP_CHAIN_FRAMES && maker->count < VP_CHAIN_FRAMES; i++) {
		if (!bp || bp & 7 || (__s64)bp >= 0) {
			maker->end = bp ? VP_CHAIN_NO_FRAME : VP_CHAIN_WHOLE;
			return 0;
		}
		if (!read_user_frame(maker, bp, frame)) {
			maker->end = VP_CHAIN_UNREADABLE;
			return 0;
		}
		if (!frame->next && !frame->ip) {
			maker->end = VP_CHAIN_WHOLE;
			return bp;
		}
		maker->count =
		    chain_add(maker, i, maker->count, without_signature(maker, frame->ip));
		bp = frame->next;
	}
	return 0;
}

/* Continues at the interrupted kernel code, if the empty record is in its struct pt_regs. */
__noinline int take_arm_kernel_regs(__u64 record)
{
	struct chain_maker *maker = chain_maker();

	if (!maker)
		return 0;
	struct user_frame *frame = (void *)maker->top;
	__u64 regs = record - ARM_REGS_RECORD + ARM_REGS_FRAME;
	if (!read_guest_word(maker, record + sizeof(*frame), &frame->next) ||
	    frame->next != ARM_RECORD_OF_KERNEL || !read_guest_word(maker, regs, &frame->next) ||
	    !read_guest_word(maker, regs + 3 * sizeof(regs), &frame->ip))
		return 0;
	maker->count = chain_add(maker, 1, maker->count, frame->ip);
	maker->bp = frame->next;
	return 1;
}

/* x30 if it can be a return address: in the same half of the address space. */
static __always_inline __u64 link_of(const struct chain_maker *maker, __u64 link)
{
	link = without_signature(maker, link);
	return link && (__s64)(link ^ maker->ip) >= 0 ? link : 0;
}

/* Reads the start of the chain (maker's sp, bp and link) from maker's vCPU; 0: unknown. */
__noinline int read_arm_chain_regs(__u32 user)
{
	struct chain_maker *maker = chain_maker();

	if (!maker)
		return 0;
	struct vp_identity_vm *vm = bpf_map_lookup_elem(&identity_vms, &maker->vm);
	__u64 *saved = maker->general;
	if (!vm || !vm->paging.va_bits || vm->paging.va_bits > 55 ||
	    !read_arm_registers((void *)maker->vcpu, saved))
		return 0;
	maker->va_mask = (1ULL << vm->paging.va_bits) - 1;
	maker->bp = user ? saved[ARM_FRAME] & maker->va_mask : saved[ARM_FRAME];
	/* SP_EL0 is the stack pointer of user space. The kernel's is not needed. */
	maker->sp = user ? saved[ARM_SP] & maker->va_mask : 0;
	maker->link = link_of(maker, saved[ARM_LINK]);
	maker->has_general = user;
	return 1;
}

/* Uses maker's vCPU, VM and address space. A separate function: the caller's BPF stack is nearly
 * full. */
__noinline int chain_of_arm_guest(__u32 is_user)
{
	struct chain_maker *maker = chain_maker();

	if (!maker)
		return 0;
	maker->page = 1; /* none */
	maker->has_general = 0;
	if (!read_arm_chain_regs(is_user))
		return 0;
	struct vp_guest_regs *record = (void *)chain_records(maker);
	if (!record)
		return 0;
	record->flags |= VP_HAS_STACK;
	record->sp = maker->sp;
	record->bp = maker->bp;
	if (!is_user) {
		maker->count = chain_first(maker);
		__u64 regs = walk_arm_kernel();
		/* At most an interrupt in an interrupt handler or in a fault. */
		for (int i = 0; i < 2 && regs && take_arm_kernel_regs(regs); i++)
			regs = walk_arm_kernel();
		put_frames(VP_MODE_GUEST_KERNEL);
		if (!regs || (!take_arm_user_regs(regs - ARM_REGS_RECORD_OLD) &&
			      !take_arm_user_regs(regs - ARM_REGS_RECORD)))
			return 0;
	}
	put_user_frames(maker);
	return 0;
}

#endif
