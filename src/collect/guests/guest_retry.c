/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/guests/guest_retry.h"

#include "guestmem/memory/guest_view.h"

#define SECOND 1000000000ULL
/* Lowest address of Linux kernels' code; other systems' kernels may have it there, too. */
#ifdef __aarch64__ /* a guest of KVM has its host's architecture */
#define LINUX_KERNEL 0xffff000000000000ULL
#else
#define LINUX_KERNEL VP_KERNEL_MAP
#endif

enum {
	/* A guest that has just started or rebooted has no kernel yet: that many retries are soon,
	 * then the interval grows. */
	QUICK_TRIES = 5,
	QUICK_SIGNS = 20, /* a kernel that boots is not complete for some time */
	GROWTH = 2,
	GROWTH_SAMPLED = 4, /* a guest that boots Linux is noticed by samples */
};

static unsigned pause_s(unsigned tries, unsigned quick, unsigned growth, unsigned longest)
{
	unsigned pause = VP_RETRY_S;

	for (unsigned i = quick; i < tries && pause < longest; i++)
		pause *= growth;
	return pause < longest ? pause : longest;
}

void vp_guest_retry_fail(struct vp_guest_retry *retry, uint64_t now)
{
	retry->tries++;
	retry->signs += retry->has_sign;
	retry->has_sign = false;
	retry->failed = now;
}

void vp_guest_retry_note(struct vp_guest_retry *retry, uint64_t ip)
{
	retry->has_sign |= ip >= LINUX_KERNEL;
}

unsigned vp_guest_retry_longest_s(bool sampled)
{
	return sampled ? VP_RETRY_SAMPLED_S : VP_RETRY_UNSAMPLED_S;
}

bool vp_guest_retry_is_due(const struct vp_guest_retry *retry, bool sampled, uint64_t now)
{
	unsigned pause = pause_s(retry->tries, QUICK_TRIES, sampled ? GROWTH_SAMPLED : GROWTH,
				 vp_guest_retry_longest_s(sampled));
	unsigned after_sign = pause_s(retry->signs, QUICK_SIGNS, GROWTH, VP_RETRY_SIGN_S);

	if (retry->has_sign && after_sign < pause)
		pause = after_sign;
	return now >= retry->failed + pause * SECOND;
}
