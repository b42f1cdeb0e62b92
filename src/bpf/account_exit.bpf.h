/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of account.bpf.c: what an exit cost, by reason and by place in the guest. */
#ifndef VP_BPF_ACCOUNT_EXIT_H
#define VP_BPF_ACCOUNT_EXIT_H

#include "bpf/account_state.bpf.h"

/* The bucket of a time by its 64 ns, from 256 ns to 65 us; 0: it is worked out. */
#define TIMES_2(n) (n), (n)
#define TIMES_4(n) TIMES_2(n), TIMES_2(n)
#define TIMES_8(n) TIMES_4(n), TIMES_4(n)
#define TIMES_16(n) TIMES_8(n), TIMES_8(n)
#define TIMES_32(n) TIMES_16(n), TIMES_16(n)
#define TIMES_64(n) TIMES_32(n), TIMES_32(n)
#define TIMES_128(n) TIMES_64(n), TIMES_64(n)
#define FOUR(times, n) times(n), times((n) + 1), times((n) + 2), times((n) + 3)
const __u8 known_buckets[1024] = {TIMES_4(0),
				  20,
				  21,
				  22,
				  23,
				  FOUR(TIMES_2, 24),
				  FOUR(TIMES_4, 28),
				  FOUR(TIMES_8, 32),
				  FOUR(TIMES_16, 36),
				  FOUR(TIMES_32, 40),
				  FOUR(TIMES_64, 44),
				  FOUR(TIMES_128, 48)};

static __noinline __u64 work_out_bucket(__u64 ns)
{
	return vp_bucket_of(ns);
}

/* As vp_bucket_of(), in fewer instructions for most exits. */
static __always_inline __u64 bucket_of(__u64 ns)
{
	__u64 at = ns >> 6, bucket = 0;

	if (at < sizeof(known_buckets))
		bucket = known_buckets[at];
	return bucket ? bucket : work_out_bucket(ns);
}

/* Index of a reason in its 256 counters; distant ones are moved into gaps of the numbering. */
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
	__u32 row;

	if (!vcpu)
		return 0;
	row = vcpu->reasons < VP_EXIT_REASONS - 1 ? vcpu->reasons + 1 : VP_EXIT_REASONS;
	vcpu->reasons = row;
	vcpu->reason_slots[code & (VP_EXIT_CODES - 1)] = row;
	return row;
}

static __always_inline bool add_to_old(const struct vp_site_key *key,
				       const struct vp_account_site *site)
{
	struct vp_site_cost *cost = bpf_map_lookup_elem(&old_sites, key);

	if (!cost)
		return false;
	__sync_fetch_and_add(&cost->count, site->count);
	__sync_fetch_and_add(&cost->ns, site->ns);
	__sync_fetch_and_add(&cost->idle, site->idle);
	__sync_fetch_and_add(&cost->stolen, site->stolen);
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
	struct vp_site_cost first = {site->count, site->ns, site->last, site->idle, site->stolen};
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
	site->count = site->ns = site->idle = site->stolen = 0;
	return 0;
}

static __always_inline void count_site(struct vp_account_vcpu *vcpu, __u32 slot, __u64 total)
{
	__u64 detail = (__u64)vcpu->detail << 20 ^ vcpu->detail_kind ^ vcpu->address << 4;
	__u64 mixed = (vcpu->ip ^ vcpu->cr3 >> 8 ^ (__u64)vcpu->reason << 40 ^ detail) *
		      0x9e3779b97f4a7c15ULL;
	__u32 index = (slot - 1) * VP_EXIT_SITES + (__u32)(mixed >> 55);
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
	site->stolen += vcpu->parts[VP_STATE_IRQ];
	if (!(vcpu->flags & VP_EXIT_SPLIT))
		return;
	site->idle += vcpu->parts[VP_STATE_HALTED] + vcpu->parts[VP_STATE_WAITING];
	site->stolen += vcpu->parts[VP_STATE_PREEMPTED] + vcpu->parts[VP_STATE_THROTTLED] +
			vcpu->parts[VP_STATE_WAKING];
}

static __always_inline void take_parts(struct vp_account_vcpu *vcpu, struct vp_account_exit *exit)
{
	exit->poll += vcpu->parts[VP_STATE_POLL];
	exit->vmm += vcpu->parts[VP_STATE_VMM];
	exit->stolen += vcpu->parts[VP_STATE_PREEMPTED] + vcpu->parts[VP_STATE_THROTTLED];
	exit->blocked += vcpu->parts[VP_STATE_HALTED] + vcpu->parts[VP_STATE_WAITING];
	exit->waking += vcpu->parts[VP_STATE_WAKING];
}

/* Counts an exit that took that long; returns its row, to which its parts are to be added, or 0. */
static __always_inline struct vp_account_exit *count_exit(struct vp_account_vcpu *vcpu, __u32 slot,
							  __u32 reason, __u64 total)
{
	__u32 code = code_of(reason);
	__u32 row = vcpu->reason_slots[code & (VP_EXIT_CODES - 1)];

	if (!row)
		row = assign_reason(vcpu, code);
	__u32 index = (slot - 1) * VP_EXIT_REASONS + row - 1;
	struct vp_account_exit *exit = bpf_map_lookup_elem(&exits, &index);
	if (!exit)
		return 0;
	if (!exit->count)
		exit->reason = reason;
	exit->count++;
	exit->total += total;
	if (total > exit->max)
		exit->max = total;
	__u64 bucket = bucket_of(total);
	barrier_var(bucket); /* or the compiler checks one copy of it and uses another */
	if (bucket < VP_BUCKETS)
		exit->buckets[bucket]++;
	vcpu->exits++;
	return exit;
}

/* The exit that began at exit_at is over. */
static __always_inline void finish_exit(struct vp_account_vcpu *vcpu, __u32 slot, __u64 now)
{
	__u64 total = now - vcpu->exit_at;
	struct vp_account_exit *exit = count_exit(vcpu, slot, vcpu->reason, total);

	if (!exit)
		return;
	exit->stolen += vcpu->parts[VP_STATE_IRQ];
	if (vcpu->flags & VP_EXIT_SPLIT)
		take_parts(vcpu, exit);
	if (vcpu->flags & VP_PLACE_KNOWN)
		count_site(vcpu, slot, total);
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
