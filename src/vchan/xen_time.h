/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How Xen's system time, which is one for all domains, follows from a vCPU's time-stamp counter:
 * struct vcpu_time_info of Xen's public/xen.h, which Xen keeps up to date in the memory of this
 * domain's kernel. Two of them, of two domains, relate their counters.
 */
#ifndef VP_VCHAN_XEN_TIME_H
#define VP_VCHAN_XEN_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

/* System time is `ns` at `tsc`; from there on it is (ticks << shift) * mul / 2^32 more (for
 * negative shifts, >>). */
struct vp_xen_time {
	uint64_t tsc, ns;
	uint32_t mul;
	int32_t shift;
};

/* A counter by another one: own = (other * ratio >> frac_bits) + offset, or without frac_bits,
 * own = other + offset. */
struct vp_xen_relation {
	int64_t offset;
	uint64_t ratio;
	uint32_t frac_bits;
};

/* Whether these can be Xen's: no more than that is believed of what a guest sends. */
bool vp_xen_time_is_sane(const struct vp_xen_time *time);
/* The system time, and the ticks of the counter at one. */
uint64_t vp_xen_time_at(const struct vp_xen_time *time, uint64_t tsc);
uint64_t vp_xen_time_ticks(const struct vp_xen_time *time, uint64_t ns);
/* How the counter of `own` follows from that of `other`. Where Xen took both at one moment and they
 * run at one speed, it is exact; otherwise to the resolution of system time, a nanosecond. */
struct vp_xen_relation vp_xen_relate(const struct vp_xen_time *own,
				     const struct vp_xen_time *other);

/* The vCPUs of this domain. */
struct vp_xen_times;

/* Errors: this kernel is not one of Xen's, or hides its memory. */
struct vp_error *vp_xen_times_open(struct vp_xen_times **ret) VP_MUST_CHECK;
void vp_xen_times_close(struct vp_xen_times *times);
/* The time of a CPU, as Linux numbers it. False: it has none (yet). */
bool vp_xen_times_read(const struct vp_xen_times *times, uint32_t cpu,
		       struct vp_xen_time *ret) VP_MUST_CHECK;
/* Xen's number of that CPU. */
bool vp_xen_times_vcpu(const struct vp_xen_times *times, uint32_t cpu, uint32_t *ret) VP_MUST_CHECK;

#endif
