/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Xen's pCPUs, and the ones that each vCPU may use. */
#include "unit.h"

#include <errno.h>

#include "xen/domains.h"
#include "xen/placement.h"

struct vp_error *__wrap_vp_xen_open(struct vp_xen **ret);
void __wrap_vp_xen_close(struct vp_xen *xen);

enum { BYTES = 2 };

/* Domain 5 with three vCPUs. */
static struct vp_xen_domain domain;
static uint8_t hard[3][BYTES]; /* all bits of the last one: Xen refuses to answer */
static struct vp_xen_cpupool pool;
static uint8_t in_pool[BYTES];
static size_t n_open, n_pools;
static bool fails;

static int get_domains(void *xen, uint32_t first, unsigned max, struct vp_xen_domain *ret)
{
	*ret = domain;
	return first <= domain.id;
}

static int get_machine(void *xen, struct vp_xen_machine *ret)
{
	ret->n_pcpus = 12;
	return fails ? -1 : 0;
}

static int get_size(void *xen)
{
	return fails ? -1 : BYTES;
}

static int get_affinity(void *xen, uint32_t id, int vcpu, uint8_t *ret, uint8_t *soft,
			uint32_t flags)
{
	assert_int_equal(id, 5);
	assert_int_equal(flags, 1);
	assert_null(soft);
	if (vcpu >= 3)
		return -1;
	memcpy(ret, hard[vcpu], BYTES);
	return 0;
}

static struct vp_xen_cpupool *get_pool(void *xen, uint32_t id)
{
	n_pools++;
	return &pool;
}

static void free_pool(void *xen, struct vp_xen_cpupool *of)
{
	assert_ptr_equal(of, &pool);
	n_pools--;
}

static struct vp_xen here = {.call = {.domain_getinfolist = get_domains,
				      .physinfo = get_machine,
				      .get_cpumap_size = get_size,
				      .vcpu_getaffinity = get_affinity,
				      .cpupool_getinfo = get_pool,
				      .cpupool_infofree = free_pool}};

struct vp_error *__wrap_vp_xen_open(struct vp_xen **ret)
{
	if (fails)
		return vp_error_errno(EACCES, "no Xen");
	n_open++;
	*ret = &here;
	return NULL;
}

void __wrap_vp_xen_close(struct vp_xen *xen)
{
	n_open--;
}

static int setup(void **state)
{
	domain = (struct vp_xen_domain){.id = 5, .last_vcpu = 2, .cpupool = 1};
	memcpy(hard, (uint8_t[3][BYTES]){{0x0f, 0x00}, {0xff, 0xff}, {0x00, 0x80}}, sizeof(hard));
	memcpy(in_pool, (uint8_t[BYTES]){0xfc, 0x03}, BYTES);
	pool = (struct vp_xen_cpupool){.id = 1, .scheduler = 6, .pcpus = in_pool};
	fails = false;
	return 0;
}

static vp_vms make_vms(void)
{
	vp_vms vms = {0};

	vp_vec_push(&vms, ((struct vp_vm){.pid = 6, .has_domain = true, .domain = 5}));
	for (uint32_t i = 0; i < 4; i++)
		vp_vm_vcpu(&vms.at[0], i)->pcpus = vp_strdup("99");
	return vms;
}

static void expect_lists(const vp_vms *vms, const char *const expected[4], const char *scheduler)
{
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(vms->at[0].vcpus.at[i].pcpus, expected[i]);
	if (scheduler)
		assert_string_equal(vms->at[0].scheduler, scheduler);
	else
		assert_null(vms->at[0].scheduler);
	assert_int_equal(n_open, 0);
	assert_int_equal(n_pools, 0);
}

/* A vCPU that may use none of its pool's pCPUs, and one that Xen does not have, keep theirs. */
static void test_lists(void **state)
{
	static const char *const expected[] = {"2-3", "2-9", "99", "99"};
	vp_vms vms = make_vms();

	vp_xen_domains_read_placements(&vms);
	expect_lists(&vms, expected, "credit2");
	assert_int_equal(vp_xen_count_pcpus(), 12);
	assert_int_equal(n_open, 0);
	vp_vms_deinit(&vms);
}

static void test_schedulers(void **state)
{
	static const char *const names[] = {"credit", "credit2", "arinc653", "rtds", "null"};

	for (uint32_t id = 4; id <= 10; id++) {
		vp_vms vms = make_vms();
		pool.scheduler = id;
		vp_xen_domains_read_placements(&vms);
		if (id > 4 && id < 10)
			assert_string_equal(vms.at[0].scheduler, names[id - 5]);
		else
			assert_null(vms.at[0].scheduler);
		vp_vms_deinit(&vms);
	}
}

/* Nothing changes where Xen does not answer, answers for another pool, or the VM has ended. */
static void test_not_known(void **state)
{
	static const char *const before[] = {"99", "99", "99", "99"};
	vp_vms vms = make_vms();

	fails = true;
	vp_xen_domains_read_placements(&vms);
	assert_int_equal(vp_xen_count_pcpus(), 0);
	fails = false;
	pool.id = 2;
	vp_xen_domains_read_placements(&vms);
	pool.id = 1;
	domain.id = 7;
	vp_xen_domains_read_placements(&vms);
	domain.id = 5;
	vms.at[0].end = 1000;
	vp_xen_domains_read_placements(&vms);
	expect_lists(&vms, before, NULL);
	vp_vms_deinit(&vms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_lists, setup),
	    cmocka_unit_test_setup(test_schedulers, setup),
	    cmocka_unit_test_setup(test_not_known, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
