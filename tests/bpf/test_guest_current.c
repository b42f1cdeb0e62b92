/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who runs in a guest, by its memory: this thread has that memory mapped, as a VMM has. */
#include "unit.h"

#include <string.h>

#include <bpf/bpf.h>

#include "bpf/guest_current_abi.h"
#include "collect/programs/identity.h"
#include "kernel.h"
#include "schema/chain_end.h"
#include "schema/records.h"

#include "guest_current.skel.h"

enum { MS = 1000000, AT_IDS = 16, AT_COMM = 32, AT_MM = 48, AT_PGD = 24 };
enum {
	CURRENT = 0,
	TASK = 0x100,
	OTHER_TASK = 0x200,
	MM = 0x300,
	OTHER_MM = 0x400,
	MEMORY = 0x500
};
#define DIRECT_MAP 0xffff888000000000ULL
#define GPA 0x100000ULL /* of the memory */

struct guest {
	struct guest_current_bpf *programs;
	_Alignas(8) char memory[MEMORY];
	uint64_t time;
};

static uint64_t va_of(uint32_t at)
{
	return DIRECT_MAP + GPA + at;
}

static void put_word(struct guest *guest, uint32_t at, uint64_t word)
{
	memcpy(guest->memory + at, &word, sizeof(word));
}

static void put_task(struct guest *guest, uint32_t at, uint64_t tgid, uint64_t mm, const char *comm)
{
	put_word(guest, at + AT_IDS, tgid << 32 | tgid);
	strcpy(guest->memory + at + AT_COMM, comm);
	put_word(guest, at + AT_MM, mm);
}

static void open_guest(struct guest *guest, uint32_t vendor)
{
	const struct vp_identity_vm vm = {
	    .direct_map = DIRECT_MAP, .paging = vp_paging_x86(4), .n_slots = 1};
	const struct vp_identity_slot slot = {GPA, MEMORY, (uint64_t)(uintptr_t)guest->memory};
	const struct vp_identity_vcpu vcpu = {.key = 1ULL << 32,
					      .current_hva = (uint64_t)(uintptr_t)guest->memory,
					      .off_ids = AT_IDS,
					      .off_comm = AT_COMM,
					      .off_mm = AT_MM,
					      .off_pgd = AT_PGD};
	uint32_t zero = 0;

	memset(guest, 0, sizeof(*guest));
	guest->time = 1000ULL * MS;
	guest->programs = guest_current_bpf__open();
	assert_non_null(guest->programs);
	guest->programs->rodata->vendor = vendor;
	assert_int_equal(guest_current_bpf__load(guest->programs), 0);
	const struct guest_current_bpf *programs = guest->programs;
	assert_int_equal(
	    bpf_map_update_elem(bpf_map__fd(programs->maps.identity_vms), &zero, &vm, 0), 0);
	assert_int_equal(
	    bpf_map_update_elem(bpf_map__fd(programs->maps.identity_slots), &zero, &slot, 0), 0);
	assert_int_equal(
	    bpf_map_update_elem(bpf_map__fd(programs->maps.identity_vcpus), &zero, &vcpu, 0), 0);
	assert_int_equal(
	    bpf_map_update_elem(bpf_map__fd(programs->maps.identity_index), &vcpu.key, &zero, 0),
	    0);
	put_word(guest, CURRENT, va_of(TASK));
	put_task(guest, TASK, 7, va_of(MM), "seven");
	put_task(guest, OTHER_TASK, 8, 0, "kthread");
	put_word(guest, MM + AT_PGD, DIRECT_MAP + 0x5000);
	put_word(guest, OTHER_MM + AT_PGD, DIRECT_MAP + 0x6000);
}

/* After so long, with that root as the processor tells it. */
static void expect(struct guest *guest, uint64_t ns, uint64_t told, uint32_t tgid, uint64_t root)
{
	const struct guest_current_bpf *programs = guest->programs;

	guest->time += ns;
	vp_run(programs->progs.ask, told, guest->time, 0);
	assert_true(programs->bss->known);
	assert_int_equal(programs->bss->tgid, tgid);
	assert_int_equal(programs->bss->as_root, root);
}

/* Intel: the root is that of the current task's page tables; exec, another process and a thread of
 * the kernel change it at once, the numbers are read anew when it does, and else every 4 ms. */
static void test_root_by_memory(void **state)
{
	static struct guest guest;

	open_guest(&guest, VP_VENDOR_INTEL);
	expect(&guest, 0, 0, 7, 0x5000);
	assert_true(guest.programs->bss->is_new);
	assert_string_equal(guest.programs->bss->comm, "seven");
	put_task(&guest, TASK, 9, va_of(MM), "nine");
	expect(&guest, MS, 0, 7, 0x5000); /* as it was */
	put_task(&guest, TASK, 9, va_of(OTHER_MM), "nine");
	expect(&guest, MS, 0, 9, 0x6000);
	put_word(&guest, CURRENT, va_of(OTHER_TASK));
	expect(&guest, MS, 0, 8, 0);
	put_word(&guest, CURRENT, va_of(TASK));
	expect(&guest, MS, 0, 9, 0x6000);
	put_word(&guest, OTHER_MM + AT_PGD, DIRECT_MAP + 0x7000);
	expect(&guest, 10 * MS, 0, 9, 0x6000); /* such pages are not given away so soon */
	expect(&guest, 100 * MS, 0, 9, 0x7000);
	guest_current_bpf__destroy(guest.programs);
}

/* That many slots, of which one, with so many before it, is the guest's memory. */
static void tell_slots(struct guest *guest, struct vp_identity *identity, uint32_t number,
		       uint32_t count, uint32_t before)
{
	const struct vp_guest_finding finding = {.direct_map = DIRECT_MAP,
						 .paging = vp_paging_x86(4)};
	struct vp_guest_state state = {.pid = 1};

	vp_guest_memory_add(&state.memory, GPA, MEMORY, (uintptr_t)guest->memory);
	for (uint32_t i = 0; i < before; i++)
		vp_guest_memory_add(&state.memory, 16 * i, 16, 8);
	for (uint32_t i = before + 1; i < count; i++)
		vp_guest_memory_add(&state.memory, GPA + MEMORY + 4096ULL * i, 4096, 8);
	assert_int_equal(state.memory.slots.count, count);
	expect_no_error(vp_identity_set_memory(identity, number, &state, &finding));
	vp_guest_state_deinit(&state);
}

/* However many memory slots a VM has, its memory is found among them, and so is another VM's. */
static void test_many_slots(void **state)
{
	static const uint32_t counts[] = {1, 2, 3, 16, 17, 300, 512, VP_GUEST_SLOTS_MAX};
	static struct guest guest;

	open_guest(&guest, VP_VENDOR_INTEL);
	struct vp_identity identity = {.vms = bpf_map__fd(guest.programs->maps.identity_vms),
				       .slots = bpf_map__fd(guest.programs->maps.identity_slots)};
	for (size_t i = 0; i < VP_ARRAY_SIZE(counts); i++)
		for (uint32_t before = 0; before < counts[i]; before += 1 + counts[i] / 5) {
			tell_slots(&guest, &identity, 1, counts[i], before); /* another VM's */
			tell_slots(&guest, &identity, 0, counts[i], before);
			put_word(&guest, CURRENT, va_of(OTHER_TASK));
			expect(&guest, 100 * MS, 0, 8, 0);
			put_word(&guest, CURRENT, va_of(TASK));
			expect(&guest, 100 * MS, 0, 7, 0x5000);
		}
	assert_int_equal(identity.ranges.count, 2); /* what a VM had before is free again */
	/* Until there is no room, which is said. */
	struct vp_guest_state full = {.pid = 1};
	const struct vp_guest_finding finding = {.direct_map = DIRECT_MAP};
	for (uint64_t i = 0; i < VP_GUEST_SLOTS_MAX; i++)
		vp_guest_memory_add(&full.memory, i << 12, 4096, 8);
	struct vp_error *error = NULL;
	for (uint32_t vm = 2; vm < VP_IDENTITY_SLOTS / VP_GUEST_SLOTS_MAX + 2 && !error; vm++)
		error = vp_identity_set_memory(&identity, vm, &full, &finding);
	assert_non_null(error);
	vp_error_free(error);
	put_word(&guest, CURRENT, va_of(OTHER_TASK));
	expect(&guest, 100 * MS, 0, 8, 0);
	vp_guest_state_deinit(&full);
	vp_identity_deinit(&identity);
	guest_current_bpf__destroy(guest.programs);
}

/* Where there is nothing of the guest there is no root, but no harm either. */
static void test_root_of_liars(void **state)
{
	static const uint64_t nowhere[] = {1, DIRECT_MAP, DIRECT_MAP + GPA + MEMORY - 8,
					   UINT64_MAX};
	static struct guest guest;

	open_guest(&guest, VP_VENDOR_INTEL);
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		put_task(&guest, TASK, 7, nowhere[i], "seven");
		expect(&guest, MS, 0, 7, 0);
	}
	guest_current_bpf__destroy(guest.programs);
}

/* AMD: as the VMCB says, whatever is in memory. */
static void test_root_told(void **state)
{
	static struct guest guest;

	open_guest(&guest, VP_VENDOR_AMD);
	expect(&guest, 0, 0x1000, 7, 0x1000);
	put_task(&guest, TASK, 9, va_of(OTHER_MM), "nine");
	expect(&guest, MS, 0x1000, 7, 0x1000);
	expect(&guest, MS, 0x2000, 9, 0x2000);
	guest_current_bpf__destroy(guest.programs);
}

static void expect_tables(struct guest *guest, uint64_t in_use, enum vp_chain_end expected)
{
	expect(guest, MS, in_use, 7, in_use);
	assert_int_equal(guest->programs->bss->memory, expected);
}

/* The page tables in use are those of the task, or of another one. */
static void test_memory_of_task(void **state)
{
	static struct guest guest;

	open_guest(&guest, VP_VENDOR_AMD);
	expect_tables(&guest, 0x5000 | 0x7, VP_CHAIN_WHOLE); /* with a PCID */
	expect_tables(&guest, 0x5000, VP_CHAIN_WHOLE);
	expect_tables(&guest, 0x7000, VP_CHAIN_UNREADABLE);
	put_task(&guest, TASK, 7, va_of(OTHER_MM), "seven");
	expect_tables(&guest, 0x6000, VP_CHAIN_WHOLE);
	expect_tables(&guest, 0x7000, VP_CHAIN_WHOLE); /* its other one: page-table isolation */
	put_task(&guest, TASK, 7, 0, "seven");
	expect_tables(&guest, 0x6000, VP_CHAIN_EXITED);
	put_task(&guest, TASK, 7, va_of(MEMORY), "seven");
	expect_tables(&guest, 0x6000, VP_CHAIN_UNREADABLE);
	guest_current_bpf__destroy(guest.programs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_root_by_memory), cmocka_unit_test(test_root_of_liars),
	    cmocka_unit_test(test_many_slots),     cmocka_unit_test(test_root_told),
	    cmocka_unit_test(test_memory_of_task),
	};

	if (!vp_kernel_takes_programs("tasks of guests"))
		return VP_SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
