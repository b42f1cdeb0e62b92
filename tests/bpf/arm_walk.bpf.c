/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks page tables and frame records of a guest of 64-bit Arm as the sampler does, on the thread
 * that runs the program. */
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/chain.bpf.h"

/* The start of a walk, and what was found. */
__u64 root, va_mask, ip, bp, sp, link;
__u64 hva, frames[VP_CHAIN_FRAMES];
__u32 count, end;
__u64 record, user_ip, user_sp, user_bp, user_link;
__u32 has_user;

/* Translates an address with that page-table root. */
SEC("raw_tp")
int translate(struct bpf_raw_tracepoint_args *context)
{
	hva = hva_of_va(0, context->args[0], context->args[1]);
	return 0;
}

static __always_inline struct chain_maker *begin(void)
{
	struct chain_maker *maker = chain_begin(1, 1, 0);

	if (!maker)
		return 0;
	maker->vm = 0;
	maker->root = root;
	maker->page = 1; /* none */
	maker->va_mask = va_mask;
	maker->ip = ip;
	maker->sp = sp;
	maker->bp = bp;
	maker->link = link_of(maker, link);
	return maker;
}

static __always_inline void finish(const struct chain_maker *maker)
{
	count = maker->count;
	end = maker->end;
	__builtin_memcpy(frames, maker->frames, sizeof(frames));
}

SEC("raw_tp")
int walk_user(struct bpf_raw_tracepoint_args *context)
{
	struct chain_maker *maker = begin();

	if (!maker)
		return 0;
	walk_user_frames();
	finish(maker);
	return 0;
}

/* And the registers of user space at its end. */
SEC("raw_tp")
int walk_kernel(struct bpf_raw_tracepoint_args *context)
{
	struct chain_maker *maker = begin();

	if (!maker)
		return 0;
	maker->count = chain_first(maker);
	record = walk_arm_kernel();
	finish(maker);
	has_user = record && take_arm_user_regs(record - ARM_REGS_RECORD);
	user_ip = maker->ip;
	user_sp = maker->sp;
	user_bp = maker->bp;
	user_link = maker->link;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
