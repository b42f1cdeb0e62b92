/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is written into a guest's memory at VM entries, and when nothing is. */
#include "unit.h"

#include <unistd.h>

#include <bpf/bpf.h>

#include "bpf/lend_abi.h"
#include "fake_vcpu.h"
#include "kernel.h"
#include "protocol/lent.h"
#include "schema/records.h"

#include "host_lend.skel.h"

enum { MARKER = 77, GENERATION = 1234 };

struct rig {
	struct host_lend_bpf *programs;
	struct fake_vcpu vcpu;
	struct vp_lent_cell cell;
	uint32_t place;
};

static bool rig_open(struct rig *rig)
{
	*rig = (struct rig){.place = vp_own_tid() % VP_LEND_SLOTS};
	if (!fake_vcpu_make(&rig->vcpu)) {
		print_message("skipped: this kernel does not describe KVM\n");
		return false;
	}
	rig->programs = host_lend_bpf__open();
	assert_non_null(rig->programs);
	rig->programs->rodata->vendor = VP_VENDOR_INTEL;
	if (host_lend_bpf__load(rig->programs)) {
		print_message("skipped: this kernel lets no program write to users' memory\n");
		host_lend_bpf__destroy(rig->programs);
		fake_vcpu_free(&rig->vcpu);
		return false;
	}
	const struct vp_lend_vcpu vcpu = {
	    .tid = vp_own_tid(), .hva = (uintptr_t)&rig->cell, .marker = MARKER};
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(rig->programs->maps.vcpus), &rig->place,
					     &vcpu, BPF_ANY),
			 0);
	rig->cell.marker = MARKER;
	*rig->vcpu.generation = GENERATION;
	rig->programs->bss->generation = GENERATION;
	return true;
}

static void rig_close(struct rig *rig)
{
	host_lend_bpf__destroy(rig->programs);
	fake_vcpu_free(&rig->vcpu);
}

/* A VM entry; what became of those up to now. */
static struct vp_lend_vcpu enter(const struct rig *rig)
{
	struct vp_lend_vcpu vcpu;

	vp_run(rig->programs->progs.publish, rig->vcpu.address, 0, 0);
	assert_int_equal(
	    bpf_map_lookup_elem(bpf_map__fd(rig->programs->maps.vcpus), &rig->place, &vcpu), 0);
	return vcpu;
}

/* Memory that is no longer the guest's is not written to, whatever it has where the marker was. */
static void test_memory_that_changes(void **state)
{
	struct rig rig;

	if (!rig_open(&rig))
		return;
	assert_int_equal(enter(&rig).published, 1);
	assert_int_equal(rig.cell.sequence, 1);
	const struct vp_lent_cell before = rig.cell;
	*rig.vcpu.generation = GENERATION + 16;
	struct vp_lend_vcpu vcpu = enter(&rig);
	assert_true(vcpu.published == 1 && vcpu.moved == 1);
	*rig.vcpu.generation = GENERATION | 1ULL << 63; /* KVM is at it */
	assert_int_equal(enter(&rig).moved, 2);
	assert_memory_equal(&rig.cell, &before, sizeof(before));
	/* Once the slots were listed again. */
	rig.programs->bss->generation = GENERATION + 16;
	*rig.vcpu.generation = GENERATION + 16;
	assert_int_equal(enter(&rig).published, 2);
	assert_int_equal(rig.cell.sequence, 2);
	rig_close(&rig);
}

/* Nor is anything before they were listed, or without a client. */
static void test_before(void **state)
{
	struct rig rig;

	if (!rig_open(&rig))
		return;
	rig.programs->bss->generation = 0;
	*rig.vcpu.generation = 0;
	struct vp_lend_vcpu vcpu = enter(&rig);
	assert_true(!vcpu.published && vcpu.moved == 1 && !rig.cell.sequence);
	rig.cell.marker = MARKER + 1;
	assert_int_equal(enter(&rig).idle, 1);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_memory_that_changes),
	    cmocka_unit_test(test_before),
	};

	if (!vp_kernel_takes_programs("lending counters"))
		return VP_SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
