/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Part of account.bpf.c: cost of exits, by reason and by exit site. */
#ifndef VP_BPF_ACCOUNT_EXIT_H
#define VP_BPF_ACCOUNT_EXIT_H

#include "bpf/account_state.bpf.h"

/* Table of buckets from 256 ns to 65 us, indexed by time / 64 ns; 0: computed. */
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

enum {
	/* Flags of the open exit. */
	VP_EXIT_FLAGS = VP_EXIT_OPEN | VP_REASON_KNOWN | VP_EXIT_SPLIT | VP_BLOCKED_ONCE |
			VP_RIP_KNOWN | VP_EXIT_UNTIMED
};

static __noinline __u64 work_out_bucket(__u64 ns)
{
	return vp_bucket_of(ns);
}

/* Like vp_bucket_of(), with fewer instructions for most exits. */
static __always_inline __u64 bucket_of(__u64 ns)
{
	__u64 at = ns >> 6, bucket = 0;

	if (at < sizeof(known_buckets))
		bucket = known_buckets[at];
	return bucket ? bucket : work_out_bucket(ns);
}

/* Index of a reason among the 256 counters; large reasons are moved into gaps of the numbering. */
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
	__sync_fetch_and_add(&cost->untimed, site->untimed);
	cost->last = site->last;
	return true;
}

static __always_inline bool is_in_block(const struct vp_site_key *key)
{
	return key->address != VP_NO_ADDRESS && key->detail_kind != VP_DETAIL_MMIO_READ &&
	       key->detail_kind != VP_DETAIL_MMIO_WRITE;
}

/*
 * Moves a site to the table of evicted sites. A guest controls the number of memory blocks: when
 * the limit is reached, further blocks share a row without address, so that functions keep theirs.
 */
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
	struct vp_site_cost first = {site->count, site->ns,     site->last,
				     site->idle,  site->stolen, site->untimed};
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
	site->count = site->ns = site->idle = site->stolen = site->untimed = 0;
	return 0;
}

/* Finds or allocates the row of the exit's site. */
static __always_inline struct vp_account_site *site_of(struct vp_account_vcpu *vcpu, __u32 slot)
{
	__u64 detail = (__u64)vcpu->detail << 20 ^ vcpu->detail_kind ^ vcpu->address << 4;
	__u64 mixed = (vcpu->ip ^ vcpu->cr3 >> 8 ^ (__u64)vcpu->reason << 40 ^ detail) *
		      0x9e3779b97f4a7c15ULL;
	__u32 index = (slot - 1) * VP_EXIT_SITES + (__u32)(mixed >> 55);
	struct vp_account_site *site = bpf_map_lookup_elem(&sites, &index);

	if (!site)
		return 0;
	if (site->ip != vcpu->ip || site->cr3 != vcpu->cr3 || site->reason != vcpu->reason ||
	    site->detail != vcpu->detail || site->detail_kind != vcpu->detail_kind ||
	    site->address != vcpu->address || !site->count)
		replace_site(site, vcpu);
	return site;
}

static __always_inline void add_to_site(const struct vp_account_vcpu *vcpu,
					struct vp_account_site *site, __u64 total)
{
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

static __always_inline struct vp_account_exit *row_of(struct vp_account_vcpu *vcpu, __u32 slot,
						      __u32 reason)
{
	__u32 code = code_of(reason);

	barrier_var(code); /* otherwise clang 19 checks one copy and uses another */
	__u32 row = vcpu->reason_slots[code & (VP_EXIT_CODES - 1)];

	if (!row)
		row = assign_reason(vcpu, code);
	__u32 index = (slot - 1) * VP_EXIT_REASONS + row - 1;
	struct vp_account_exit *exit = bpf_map_lookup_elem(&exits, &index);
	if (exit && !exit->count)
		exit->reason = reason;
	return exit;
}

static __always_inline void add_to_bucket(struct vp_account_exit *exit, __u64 total, __u32 count)
{
	__u64 bucket = bucket_of(total);

	barrier_var(bucket); /* otherwise the compiler checks one copy and uses another */
	if (bucket < VP_BUCKETS)
		exit->buckets[bucket] += count;
}

/* Counts an exit of that length; returns its row, to which its parts are added, or 0. */
static __always_inline struct vp_account_exit *count_exit(struct vp_account_vcpu *vcpu, __u32 slot,
							  __u32 reason, __u64 total)
{
	struct vp_account_exit *exit = row_of(vcpu, slot, reason);

	if (!exit)
		return 0;
	exit->count++;
	exit->total += total;
	if (total > exit->max)
		exit->max = total;
	add_to_bucket(exit, total, 1);
	vcpu->exits++;
	return exit;
}

/* Part of the open exit outside the kernel, ns. */
static __always_inline __u64 sum_parts(const struct vp_account_vcpu *vcpu)
{
	__u64 sum = 0;

	if (!(vcpu->flags & VP_EXIT_SPLIT))
		return vcpu->parts[VP_STATE_IRQ];
#pragma unroll
	for (int i = 0; i < VP_STATES; i++)
		sum += vcpu->parts[i];
	return sum;
}

/* Whether the exit slept or was in the VMM. */
static __always_inline bool exit_is_long(const struct vp_account_vcpu *vcpu)
{
	return vcpu->flags & VP_EXIT_SPLIT &&
	       (vcpu->parts[VP_STATE_VMM] | vcpu->parts[VP_STATE_POLL] |
		vcpu->parts[VP_STATE_HALTED] | vcpu->parts[VP_STATE_WAITING]);
}

/* Exits that are always timed: halts, and those for the host's own interrupts. They are rare, or
 * timed at no extra cost, and KVM reports the polling of halts. */
static __always_inline bool is_always_timed(const struct vp_account_vcpu *vcpu)
{
	__u32 reason = vcpu->reason, basic = reason & 0xffff;

	if (reason_is_halt(vcpu))
		return true;
	if (vendor == VP_VENDOR_AMD)
		return reason >= AMD_INTR && reason <= AMD_SMI;
	if (vendor == VP_VENDOR_ARM)
		return reason & VP_ARM_NO_TRAP;
	return basic == VMX_EXTERNAL_INTERRUPT || basic == VMX_PREEMPTION_TIMER;
}

/*
 * Decides for an exit that has just started, with its reason noted; true: counted but not timed. A
 * timed exit represents the previous untimed ones for its reason, so the choice must be independent
 * of their type and time: the number of skipped exits is random. *times_next: whether the next one
 * for the same reason will be timed.
 */
static __always_inline bool leave_untimed(struct vp_account_vcpu *vcpu, __u32 slot,
					  __u32 *times_next)
{
	if (is_always_timed(vcpu))
		return false;
	struct vp_account_exit *exit = row_of(vcpu, slot, vcpu->reason);
	if (!exit || !exit->skip)
		return false;
	/* the reason has become rare; `since` is late by less than the host's tick */
	if ((__s64)(vcpu->since - exit->timed_at) > 4 * VP_TIMED_EVERY_NS)
		return false;
	exit->skip--;
	*times_next = !exit->skip;
	exit->untimed++;
	exit->count++;
	vcpu->exits++;
	vcpu->flags |= VP_EXIT_OPEN | VP_EXIT_UNTIMED;
	return true;
}

/* Chooses the number of next exits that are not timed. */
static __always_inline void choose_skip(const struct vp_account_vcpu *vcpu,
					struct vp_account_exit *exit)
{
	__u64 passed = vcpu->since - exit->timed_at;
	__u32 gap = exit->gap ? exit->gap : 1;

	exit->timed_at = vcpu->since;
	if (exit_is_long(vcpu))
		exit->all = VP_TIMED_AFTER_LONG;
	if (exit->all) {
		exit->all--;
		exit->gap = 1;
		exit->skip = 0;
		return;
	}
	if (passed < VP_TIMED_EVERY_NS / 2 && gap < VP_LARGEST_GAP)
		gap *= 2;
	else if (passed > 2 * VP_TIMED_EVERY_NS && gap > 1)
		gap /= 2;
	exit->gap = gap;
	exit->skip = gap > 1 ? bpf_get_prandom_u32() % (2 * gap - 1) : 0;
}

/* Adds a timed exit with the exits that it represents. Returns its kernel time. */
static __always_inline __u64 weigh_exit(struct vp_account_vcpu *vcpu, struct vp_account_exit *exit,
					__u64 total)
{
	__u64 others = sum_parts(vcpu), guest = vcpu->states[VP_STATE_GUEST];
	__u64 kernel = total > others ? total - others : 0;
	__u64 untimed = exit->untimed, scaled = kernel >> VP_SQUARE_SHIFT;

	exit->timed++;
	exit->sum += scaled;
	exit->squares += scaled * scaled;
	if (untimed) {
		__u64 more = untimed * kernel;
		more = more < guest ? more : guest;
		vcpu->states[VP_STATE_GUEST] -= more;
		vcpu->states[VP_STATE_KERNEL] += more;
		exit->total += more;
		exit->weights += untimed * (untimed + 1);
		exit->untimed = 0;
		add_to_bucket(exit, total, (__u32)untimed);
	}
	choose_skip(vcpu, exit);
	return kernel;
}

/* The same for an interrupt that hit the guest, and its exit. */
static __always_inline void weigh_hit(struct vp_account_vcpu *vcpu, struct vp_account_exit *exit,
				      __u32 source, __u64 irq, __u64 kernel)
{
	__u32 *irqs = &vcpu->irq_untimed[source & (VP_IRQ_SOURCES - 1)];
	__u64 untimed = exit->untimed, more_irq = *irqs * irq, more_kernel = untimed * kernel;
	__u64 scaled = (irq + kernel) >> VP_SQUARE_SHIFT;

	exit->timed++;
	exit->sum += scaled;
	exit->squares += scaled * scaled;
	exit->weights += untimed * (untimed + 1);
	if (more_irq + more_kernel <= vcpu->states[VP_STATE_GUEST]) {
		vcpu->states[VP_STATE_GUEST] -= more_irq + more_kernel;
		vcpu->states[VP_STATE_IRQ] += more_irq;
		vcpu->states[VP_STATE_KERNEL] += more_kernel;
		vcpu->irq_ns[source & (VP_IRQ_SOURCES - 1)] += more_irq;
		exit->stolen += more_irq;
		exit->total += more_irq + more_kernel;
	}
	if (untimed)
		add_to_bucket(exit, irq + kernel, (__u32)untimed);
	*irqs = exit->untimed = 0;
	choose_skip(vcpu, exit);
}

/* Counts the site of an exit that is not timed; `others`: ns that are known nevertheless. */
static __noinline int count_untimed_site(struct vp_account_vcpu *vcpu, __u32 slot, __u64 others)
{
	struct vp_account_site *site = vcpu ? site_of(vcpu, slot) : 0;

	if (!site)
		return 0;
	site->untimed++;
	add_to_site(vcpu, site, others);
	return 0;
}

/* Ends the exit that started at exit_at. */
static __always_inline void finish_exit(struct vp_account_vcpu *vcpu, __u32 slot, __u64 now)
{
	__u64 total = now - vcpu->exit_at;
	struct vp_account_exit *exit = count_exit(vcpu, slot, vcpu->reason, total);
	__u64 kernel = 0;

	if (!exit)
		return;
	if (samples_exits)
		kernel = weigh_exit(vcpu, exit, total);
	exit->stolen += vcpu->parts[VP_STATE_IRQ];
	if (vcpu->flags & VP_EXIT_SPLIT)
		take_parts(vcpu, exit);
	if (!(vcpu->flags & VP_RIP_KNOWN))
		return;
	struct vp_account_site *site = site_of(vcpu, slot);
	if (!site)
		return;
	add_to_site(vcpu, site, total);
	if (samples_exits) {
		site->ns += site->untimed * kernel;
		site->untimed = 0;
	}
}

/* Ends an exit that is not timed: only its recorded parts count. */
static __always_inline void finish_untimed(struct vp_account_vcpu *vcpu, __u32 slot)
{
	struct vp_account_exit *exit = row_of(vcpu, slot, vcpu->reason);
	__u64 others = sum_parts(vcpu);

	if (!exit)
		return;
	exit->total += others;
	exit->stolen += vcpu->parts[VP_STATE_IRQ];
	if (vcpu->flags & VP_EXIT_SPLIT)
		take_parts(vcpu, exit);
	if (exit_is_long(vcpu)) {
		exit->all = VP_TIMED_AFTER_LONG;
		exit->skip = 0;
	}
	if (vcpu->flags & VP_RIP_KNOWN)
		count_untimed_site(vcpu, slot, others);
}

static __always_inline void clear_exit(struct vp_account_vcpu *vcpu)
{
	vcpu->parts[VP_STATE_IRQ] = 0;
	if (vcpu->flags & VP_EXIT_SPLIT) {
#pragma unroll
		for (int i = 0; i < VP_STATES; i++)
			vcpu->parts[i] = 0;
	}
	vcpu->flags &= ~VP_EXIT_FLAGS;
}

static __noinline int end_untimed(struct vp_account_vcpu *vcpu, __u32 slot)
{
	if (!vcpu)
		return 0;
	finish_untimed(vcpu, slot);
	clear_exit(vcpu);
	return 0;
}

#endif
