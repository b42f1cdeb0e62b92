/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/xen_counters.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/vec.h"
#include "xen/domains.h"
#include "xen/library.h"

/* Xen updates its time info once a second. */
#define OLD_NS 100000000ULL

struct vp_xen_counters {
	struct vp_xen *xen;
	struct vp_xen_times *times;
	VP_VEC(struct vp_xen_time) own; /* of dom0's vCPUs … */
	uint64_t read_at;               /* … read at this time, CLOCK_MONOTONIC */
};

/* Linux numbers possible CPUs contiguously. */
static void read_own(struct vp_xen_counters *counters)
{
	uint64_t now = vp_clock_monotonic();
	struct vp_xen_time time;

	if (counters->own.count && now - counters->read_at < OLD_NS)
		return;
	counters->own.count = 0;
	counters->read_at = now;
	for (uint32_t cpu = 0; vp_xen_times_read(counters->times, cpu, &time); cpu++)
		vp_vec_push(&counters->own, time);
}

struct vp_error *vp_xen_counters_open(struct vp_xen_counters **ret)
{
	struct vp_xen_counters *counters = vp_alloc(sizeof(*counters));
	struct vp_error *error = vp_xen_open(&counters->xen);

	if (!error)
		error = vp_xen_times_open(&counters->times);
	if (error)
		vp_xen_counters_close(counters);
	else
		*ret = counters;
	return error;
}

void vp_xen_counters_close(struct vp_xen_counters *counters)
{
	if (!counters)
		return;
	vp_xen_times_close(counters->times);
	vp_xen_close(counters->xen);
	vp_vec_deinit(&counters->own);
	free(counters);
}

bool vp_xen_counters_is_gone(const struct vp_xen_counters *counters, const struct vp_vm *vm)
{
	struct vp_xen_domain domain;

	return !vp_xen_domain_of(counters->xen, vm, &domain);
}

static uint64_t away(uint64_t one, uint64_t other)
{
	return one > other ? one - other : other - one;
}

/* dom0's time info closest to that time: ideally updated together with the guest's. */
static const struct vp_xen_time *nearest(const struct vp_xen_time *own, size_t count, uint64_t ns)
{
	const struct vp_xen_time *best = own;

	for (size_t i = 1; i < count; i++)
		if (away(own[i].ns, ns) < away(best->ns, ns))
			best = &own[i];
	return best;
}

uint64_t vp_xen_counters_relate(const struct vp_xen_time *own, size_t count,
				const struct vp_xen_time *guest, struct vp_vcpu *vcpu)
{
	const struct vp_xen_time *other = nearest(own, count, guest->ns);
	const struct vp_xen_relation relation = vp_xen_relate(guest, other);
	const struct vp_vcpu before = *vcpu;

	vcpu->has_tsc = true;
	vcpu->tsc_offset = relation.offset;
	vcpu->tsc_ratio = relation.ratio;
	vcpu->tsc_frac_bits = relation.frac_bits;
	if (!before.has_tsc)
		return 0;
	return away(vp_xen_time_at(other, vp_vcpu_host_tsc(&before, guest->tsc)),
		    vp_xen_time_at(other, vp_vcpu_host_tsc(vcpu, guest->tsc)));
}

uint64_t vp_xen_counters_update(struct vp_xen_counters *counters, const struct vp_xen_time *guest,
				struct vp_vcpu *vcpu)
{
	read_own(counters);
	return counters->own.count && vp_xen_time_is_sane(guest)
		   ? vp_xen_counters_relate(counters->own.at, counters->own.count, guest, vcpu)
		   : 0;
}
