/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of vCPUs that are related by Xen's system time. */
#include "unit.h"

#include "base/macros.h"
#include "schema/vm.h"
#include "vchan/xen_time.h"
#include "xen/xen_counters.h"

/* 2.5 GHz: 0.4 ns a tick. */
#define MUL_2500 1717986918U
/* 1 GHz: an emulated counter. */
#define MUL_1000 2147483648U

static const struct vp_xen_time dom0 = {.tsc = 5000000000000, .ns = 2000000000000, .mul = MUL_2500};

static uint64_t away(uint64_t one, uint64_t other)
{
	return one > other ? one - other : other - one;
}

static void test_time_and_back(void **state)
{
	const struct vp_xen_time emulated = {
	    .tsc = 77, .ns = 2000000000123, .mul = MUL_1000, .shift = 1};

	assert_int_equal(vp_xen_time_at(&dom0, dom0.tsc), dom0.ns);
	/* A second later and one earlier, but for the last bit of `mul`. */
	assert_true(away(vp_xen_time_at(&dom0, dom0.tsc + 2500000000), dom0.ns + 1000000000) <= 1);
	assert_true(away(vp_xen_time_at(&dom0, dom0.tsc - 2500000000), dom0.ns - 1000000000) <= 1);
	assert_int_equal(vp_xen_time_at(&emulated, 77 + 1000), emulated.ns + 1000);
	for (int64_t ns = -3000000000; ns < 3000000000; ns += 99999989) {
		uint64_t tsc = vp_xen_time_ticks(&dom0, dom0.ns + (uint64_t)ns);
		assert_true(away(vp_xen_time_at(&dom0, tsc), dom0.ns + (uint64_t)ns) <= 1);
	}
}

/* Taken by Xen at one moment, as of a PVH guest: the offset is exact. */
static void test_same_moment(void **state)
{
	const struct vp_xen_time guest = {
	    .tsc = dom0.tsc - 123456789012, .ns = dom0.ns, .mul = dom0.mul};
	struct vp_xen_relation relation = vp_xen_relate(&guest, &dom0);

	assert_int_equal(relation.frac_bits, 0);
	assert_int_equal(relation.offset, -123456789012);
}

/* At different moments: to a nanosecond, or three ticks. */
static void test_other_moment(void **state)
{
	for (uint64_t later = 1; later < 2000000000; later = later * 3 + 1) {
		const struct vp_xen_time guest = {.tsc = dom0.tsc + later - 123456789012,
						  .ns = vp_xen_time_at(&dom0, dom0.tsc + later),
						  .mul = dom0.mul};
		struct vp_xen_relation relation = vp_xen_relate(&guest, &dom0);
		assert_int_equal(relation.frac_bits, 0);
		assert_true(away((uint64_t)relation.offset, (uint64_t)-123456789012) <= 3);
	}
}

static struct vp_vcpu vcpu_of(const struct vp_xen_time *guest)
{
	struct vp_vcpu vcpu = {.number = 0};

	assert_int_equal(vp_xen_counters_relate(&dom0, 1, guest, &vcpu), 0);
	assert_true(vcpu.has_tsc);
	return vcpu;
}

/* An emulated counter of another speed, for up to a minute. */
static void test_emulated(void **state)
{
	const struct vp_xen_time guest = {
	    .tsc = 4242, .ns = dom0.ns + 500000, .mul = MUL_1000, .shift = 1};
	struct vp_vcpu vcpu = vcpu_of(&guest);

	for (uint64_t ns = 0; ns < 60000000000; ns += 999999937) {
		uint64_t host = vp_vcpu_host_tsc(&vcpu, guest.tsc + ns);
		assert_true(away(vp_xen_time_at(&dom0, host), guest.ns + ns) <= 2);
	}
}

/* Of several of dom0's, the one of the same moment counts: others may be of a processor that Xen
 * set by itself. */
static void test_nearest(void **state)
{
	struct vp_xen_time own[] = {dom0, dom0, dom0};
	const struct vp_xen_time guest = {.tsc = 1000, .ns = dom0.ns, .mul = dom0.mul};
	struct vp_vcpu vcpu = {0};

	own[0].ns -= 900;
	own[2].ns += 2000000000;
	vp_xen_counters_relate(own, VP_ARRAY_SIZE(own), &guest, &vcpu);
	assert_int_equal(vp_vcpu_host_tsc(&vcpu, 1000), dom0.tsc);
}

/* What a new one differs by is the error of what was converted by the old one. */
static void test_error_is_told(void **state)
{
	struct vp_xen_time guest = {.tsc = dom0.tsc, .ns = dom0.ns, .mul = dom0.mul};
	struct vp_vcpu vcpu = vcpu_of(&guest);

	guest.tsc += 2500000000;
	guest.ns += 1000000000;
	assert_true(vp_xen_counters_relate(&dom0, 1, &guest, &vcpu) <= 1);
	guest.tsc += 2500;
	assert_true(away(vp_xen_counters_relate(&dom0, 1, &guest, &vcpu), 1000) <= 1);
}

static void test_insane(void **state)
{
	static const struct vp_xen_time insane[] = {{.mul = 0},
						    {.mul = 65535},
						    {.mul = 1 << 31, .shift = 32},
						    {.mul = 1 << 31, .shift = -32},
						    {.mul = 1 << 31, .shift = INT32_MIN}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(insane); i++)
		assert_false(vp_xen_time_is_sane(&insane[i]));
	assert_true(vp_xen_time_is_sane(&dom0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_time_and_back), cmocka_unit_test(test_same_moment),
	    cmocka_unit_test(test_other_moment),  cmocka_unit_test(test_emulated),
	    cmocka_unit_test(test_nearest),       cmocka_unit_test(test_error_is_told),
	    cmocka_unit_test(test_insane),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
