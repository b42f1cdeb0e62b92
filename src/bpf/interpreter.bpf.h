/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the method that an interpreter in a guest executes at a sample: HotSpot's interpreter keeps
 * it at a fixed offset from the frame pointer. The processes, and the ranges of their interpreters,
 * are set by user space.
 */
#ifndef VP_BPF_INTERPRETER_BPF_H
#define VP_BPF_INTERPRETER_BPF_H

#include "bpf/guest_pages.bpf.h"
#include "bpf/kvm_compat.bpf.h"
#include "bpf/sampler_abi.h"

/* By pid of the VMM << 32 | tgid in the guest. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VP_INTERPRETERS);
	__type(key, __u64);
	__type(value, struct vp_interpreter);
} interpreters SEC(".maps");

/* Number of entries: samples skip the lookup if 0. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} interpreter_count SEC(".maps");

/* Three words below the frame pointer: interpreter_frame_method_offset in HotSpot's frame_x86.hpp,
 * JDK 8 to 25. */
#define METHOD_BELOW_FRAME 24

static __always_inline struct vp_interpreter *find_interpreter(__u32 pid, __u32 guest_pid)
{
	__u64 key = (__u64)pid << 32 | guest_pid;
	__u32 zero = 0, *count = bpf_map_lookup_elem(&interpreter_count, &zero);

	return count && *count ? bpf_map_lookup_elem(&interpreters, &key) : 0;
}

/* The method of the innermost frame; 0: unknown. Inline: older kernels limit the stack of nested
 * functions to 512 bytes. */
static __always_inline __u64 interpreted_method(struct kvm_vcpu *vcpu, __u32 pid, __u32 number,
						__u64 root)
{
	__u32 memo = VP_IDENTITY_VCPUS;
	struct vp_identity_vcpu *identity = find_identity(pid, number, &memo);
	__u64 word = 0, hva;

	if (!identity || !root || !read_frame_pointer(vcpu, &word) || word & (sizeof(word) - 1))
		return 0;
	hva = hva_of_va(identity->vm, root, word - METHOD_BELOW_FRAME);
	if (!hva || bpf_probe_read_user(&word, sizeof(word), (void *)hva))
		return 0;
	return word;
}

#endif
