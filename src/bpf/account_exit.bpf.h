/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of account.bpf.c: what an exit cost, by reason and by place in the guest. */
#ifndef VP_BPF_ACCOUNT_EXIT_H
#define VP_BPF_ACCOUNT_EXIT_H

#include "bpf/account_state.bpf.h"

/* The highest bit of each byte that has one. */
#define BIT_2(power) (power), (power)
#define BIT_4(power) BIT_2(power), BIT_2(power)
#define BIT_8(power) BIT_4(power), BIT_4(power)
#define BIT_16(power) BIT_8(power), BIT_8(power)
#define BIT_32(power) BIT_16(power), BIT_16(power)
#define BIT_64(power) BIT_32(power), BIT_32(power)
const __u8 highest_bit[256] = {0,         0,         BIT_2(1),  BIT_4(2),  BIT_8(3),
			       BIT_16(4), BIT_32(5), BIT_64(6), BIT_64(7), BIT_64(7)};

/* As vp_bucket_of(), in fewer instructions for less than a millisecond. */
static __always_inline __u64 bucket_of(__u64 ns)
{
	__u32 shift = ns >> 12 ? 12 : VP_BUCKET_FIRST;

	if (ns < 1 << VP_BUCKET_FIRST || ns >> 20)
		return vp_bucket_of(ns);
	__u32 power = shift + highest_bit[ns >> shift & 0xff];
	return (power - VP_BUCKET_FIRST + 1) * 4 + ((__u32)(ns >> (power - 2)) & 3);
}

/* Which of its 256 counters a reason has; what lies far out is moved into gaps of the numbering. */
static __always_inline __u32 code_of(__u32 reason)
{
	if (vendor == VP_VENDOR_INTEL)
		return reason & 0xff;
	if (reason < 0xd0)
		return reason;
	return (reason & ~0xfU) == 0x400 ? 0xd0 | (reason & 0xf) : 0xff;
}

static __noinline __u32 assign_reason(struct vp_account_vcpu *vcpu, __u32 code)
{
	__u32 slot;

	if (!vcpu)
		return 0;
	slot = vcpu->reasons < VP_EXIT_REASONS - 1 ? vcpu->reasons + 1 : VP_EXIT_REASONS;
	vcpu->reasons = slot;
	vcpu->reason_slots[code & (VP_EXIT_CODES - 1)] = slot;
	return slot;
}

static __always_inline bool add_to_old(const struct vp_site_key *key,
				       const struct vp_account_site *site)
{
	struct vp_site_cost *cost = bpf_map_lookup_elem(&old_sites, key);

	if (!cost)
		return false;
	__sync_fetch_and_add(&cost->count, site->count);
	__sync_fetch_and_add(&cost->ns, site->ns);
	cost->last = site->last;
	return true;
}

static __always_inline bool is_in_block(const struct vp_site_key *key)
{
	return key->address != VP_NO_ADDRESS && key->detail_kind != VP_DETAIL_MMIO_READ &&
	       key->detail_kind != VP_DETAIL_MMIO_WRITE;
}

/* A guest that fills its memory has as many blocks as it likes: the last ones share a row without
 * address, so that functions keep their room. */
static __always_inline void evict(const struct vp_account_site *site, __u32 pid)
{
	struct vp_site_key key = {.ip = site->ip,
				  .cr3 = site->cr3,
				  .address = site->address,
				  .detail_kind = site->detail_kind,
				  .detail = site->detail,
				  .pid = pid,
				  .reason = site->reason};

	if (add_to_old(&key, site))
		return;
	if (is_in_block(&key)) {
		if (old_blocks < VP_SITE_BLOCKS)
			__sync_fetch_and_add(&old_blocks, 1);
		else
			key.address = VP_NO_ADDRESS;
		if (key.address == VP_NO_ADDRESS && add_to_old(&key, site))
			return;
	}
	struct vp_site_cost first = {site->count, site->ns, site->last};
	if (bpf_map_update_elem(&old_sites, &key, &first, BPF_NOEXIST))
		__sync_fetch_and_add(&lost.sites, site->count);
}

static __noinline int replace_site(struct vp_account_site *site, struct vp_account_vcpu *vcpu)
{
	if (!site || !vcpu)
		return 0;
	if (site->count)
		evict(site, vcpu->pid);
	site->ip = vcpu->ip;
	site->cr3 = vcpu->cr3;
	site->address = vcpu->address;
	site->reason = vcpu->reason;
	site->detail_kind = vcpu->detail_kind;
	site->detail = vcpu->detail;
	site->count = site->ns = 0;
	return 0;
}

static __always_inline void count_site(struct vp_account_vcpu *vcpu, __u32 place, __u64 total)
{
	__u64 detail = (__u64)vcpu->detail << 20 ^ vcpu->detail_kind ^ vcpu->address << 4;
	__u64 mixed = (vcpu->ip ^ vcpu->cr3 >> 8 ^ (__u64)vcpu->reason << 40 ^ detail) *
		      0x9e3779b97f4a7c15ULL;
	__u32 index = (place - 1) * VP_EXIT_SITES + (__u32)(mixed >> 55);
	struct vp_account_site *site = bpf_map_lookup_elem(&sites, &index);

	if (!site)
		return;
	if (site->ip != vcpu->ip || site->cr3 != vcpu->cr3 || site->reason != vcpu->reason ||
	    site->detail != vcpu->detail || site->detail_kind != vcpu->detail_kind ||
	    site->address != vcpu->address || !site->count)
		replace_site(site, vcpu);
	site->count++;
	site->ns += total;
	site->last = vcpu->since;
}

static __always_inline void take_parts(struct vp_account_vcpu *vcpu, struct vp_account_exit *exit)
{
	exit->poll += vcpu->parts[VP_STATE_POLL];
	exit->vmm += vcpu->parts[VP_STATE_VMM];
	exit->stolen += vcpu->parts[VP_STATE_PREEMPTED] + vcpu->parts[VP_STATE_THROTTLED];
	exit->blocked += vcpu->parts[VP_STATE_HALTED] + vcpu->parts[VP_STATE_WAITING];
	exit->waking += vcpu->parts[VP_STATE_WAKING];
}

/* The exit that began at exit_at is over. */
static __always_inline void finish_exit(struct vp_account_vcpu *vcpu, __u32 place, __u64 now)
{
	__u64 total = now - vcpu->exit_at;
	__u32 code = code_of(vcpu->reason);
	__u32 slot = vcpu->reason_slots[code & (VP_EXIT_CODES - 1)];

	if (!slot)
		slot = assign_reason(vcpu, code);
	__u32 index = (place - 1) * VP_EXIT_REASONS + slot - 1;
	struct vp_account_exit *exit = bpf_map_lookup_elem(&exits, &index);
	if (!exit)
		return;
	if (!exit->count)
		exit->reason = vcpu->reason;
	exit->count++;
	exit->total += total;
	if (total > exit->max)
		exit->max = total;
	__u64 bucket = bucket_of(total);
	barrier_var(bucket); /* or the compiler checks one copy of it and uses another */
	if (bucket < VP_BUCKETS)
		exit->buckets[bucket]++;
	exit->stolen += vcpu->parts[VP_STATE_IRQ];
	if (vcpu->flags & VP_EXIT_SPLIT)
		take_parts(vcpu, exit);
	vcpu->exits++;
	if (vcpu->flags & VP_PLACE_KNOWN)
		count_site(vcpu, place, total);
}

static __always_inline void clear_exit(struct vp_account_vcpu *vcpu)
{
	vcpu->parts[VP_STATE_IRQ] = 0;
	if (vcpu->flags & VP_EXIT_SPLIT) {
#pragma unroll
		for (int i = 0; i < VP_STATES; i++)
			vcpu->parts[i] = 0;
	}
	vcpu->flags &=
	    ~(VP_EXIT_OPEN | VP_REASON_KNOWN | VP_EXIT_SPLIT | VP_BLOCKED_ONCE | VP_PLACE_KNOWN);
}

#endif
