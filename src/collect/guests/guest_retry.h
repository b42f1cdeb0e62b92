/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times of searches for a guest's kernel after one that failed. A search takes some 10 million
 * instructions, so a guest without Linux must not cause many; a sample in a Linux kernel shows that
 * the next one is worth it. */
#ifndef VP_COLLECT_GUESTS_GUEST_RETRY_H
#define VP_COLLECT_GUESTS_GUEST_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* Limits of the interval, in seconds. The longest one is for a guest that is sampled. */
enum { VP_RETRY_S = 3, VP_RETRY_SAMPLED_S = 600, VP_RETRY_UNSAMPLED_S = 60, VP_RETRY_SIGN_S = 120 };

struct vp_guest_retry {
	unsigned tries;  /* failures since the kernel was last known … */
	unsigned signs;  /* … of these, after a sign */
	uint64_t failed; /* time of the last failure, ns */
	bool has_sign;   /* since then, a sample was in a Linux kernel */
};

/* A search has failed. */
void vp_guest_retry_fail(struct vp_guest_retry *retry, uint64_t now);
/* A sample of the guest's kernel at that address. */
void vp_guest_retry_note(struct vp_guest_retry *retry, uint64_t ip);
/* Whether to search now. `sampled`: samples of guests are taken. */
bool vp_guest_retry_is_due(const struct vp_guest_retry *retry, bool sampled, uint64_t now);
/* The longest interval between two searches, in seconds. */
unsigned vp_guest_retry_longest_s(bool sampled);

#endif
