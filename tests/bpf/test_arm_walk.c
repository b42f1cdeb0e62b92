/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Page tables and frame records of guests of 64-bit Arm, as the sampling programs walk them: this
 * thread has that memory mapped, as a VMM has. */
#include "unit.h"

#include <sched.h>

#include <bpf/bpf.h>

#include "bpf/guest_current_abi.h"
#include "kernel.h"
#include "schema/chain_frames.h"

#include "../unit/arm_tables.h"
#include "arm_walk.skel.h"

/* Of the memory that tables and entries lead to, which nothing reads. */
#define FAR_HVA (1ULL << 60)
#define FAR_GPA (1ULL << 46)
/* Memory with stacks. */
enum { NEAR_GPA = 0x800000, NEAR_SIZE = 0x10000 };

struct walk {
	struct arm_walk_bpf *programs;
	_Alignas(8) char tables[VP_PAGING_LEVELS * ARM_TABLE_STEP];
	_Alignas(8) char near[NEAR_SIZE];
};

static struct walk walk;
static struct arm_words words;
static uint32_t revision; /* of the slots; 0: nothing is remembered */

static void put_slot(uint32_t number, uint64_t gpa, uint64_t size, uint64_t hva)
{
	const struct vp_identity_slot slot = {gpa, size, hva};

	assert_int_equal(
	    bpf_map_update_elem(bpf_map__fd(walk.programs->maps.identity_slots), &number, &slot, 0),
	    0);
}

/* The guest has those words in its tables. */
static void use(const struct arm_granule *granule)
{
	const struct vp_identity_vm vm = {.paging = arm_granule_paging(granule),
					  .kernel_root = ARM_TABLES_AT,
					  .n_slots = 3,
					  .revision = revision};
	uint32_t zero = 0;

	memset(walk.tables, 0, sizeof(walk.tables));
	for (size_t i = 0; i < words.count; i++) {
		assert_in_range(words.at[i].at, ARM_TABLES_AT,
				ARM_TABLES_AT + sizeof(walk.tables) - 8);
		memcpy(walk.tables + (words.at[i].at - ARM_TABLES_AT), &words.at[i].value, 8);
	}
	assert_int_equal(
	    bpf_map_update_elem(bpf_map__fd(walk.programs->maps.identity_vms), &zero, &vm, 0), 0);
}

static uint64_t translate(uint64_t va)
{
	vp_run(walk.programs->progs.translate, ARM_TABLES_AT, va, 0);
	return walk.programs->bss->hva;
}

static int open_walk(void **state)
{
	cpu_set_t here; /* what is remembered is of a pCPU */

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	assert_int_equal(sched_setaffinity(0, sizeof(here), &here), 0);
	walk.programs = arm_walk_bpf__open();
	assert_non_null(walk.programs);
	walk.programs->rodata->vendor = VP_VENDOR_ARM;
	assert_int_equal(arm_walk_bpf__load(walk.programs), 0);
	put_slot(0, ARM_TABLES_AT, sizeof(walk.tables), (uintptr_t)walk.tables);
	put_slot(1, NEAR_GPA, sizeof(walk.near), (uintptr_t)walk.near);
	put_slot(2, FAR_GPA, (1ULL << 52) - FAR_GPA, FAR_HVA);
	return 0;
}

static int close_walk(void **state)
{
	arm_walk_bpf__destroy(walk.programs);
	return 0;
}

/* Pages and blocks of each granule and level, alone and as contiguous blocks of the architecture's
 * size; above 48 bits where entries can be; with access bits around the address. */
static void expect_entries(const struct arm_granule *granule, unsigned level)
{
	const unsigned contiguous = granule->contiguous[level - 1];
	const unsigned count = contiguous ? contiguous : 1;
	const bool high = granule->page_bits == 16 || granule->wide;
	const bool allowed = level == 1 || arm_granule_has_block(granule, level);
	uint64_t size = arm_granule_size(granule, level), whole = count * size;
	uint64_t va = arm_granule_address(granule) & ~(whole - 1);
	uint64_t gpa = (high ? 0xdb65432130000ULL : 0xb65432130000ULL) & ~(whole - 1);
	uint64_t bits = (level > 1 ? ARM_VALID : ARM_PAGE) | 0x7cULL | 7ULL << 52 |
			(contiguous ? ARM_CONTIGUOUS : 0);

	words.count = 0;
	uint64_t first = arm_words_put_tables(&words, granule, va, level);
	for (unsigned i = 0; i < count; i++)
		arm_words_put(&words, first + 8 * i,
			      arm_granule_entry(granule, gpa + i * size) | bits);
	use(granule);
	for (uint64_t inside = 0; inside < whole; inside += size / 4) {
		uint64_t expected = allowed ? FAR_HVA + (gpa + inside + 8 - FAR_GPA) : 0;
		assert_int_equal(translate(va + inside + 8), expected);
		assert_int_equal(translate((va + inside + 8) & ((1ULL << granule->va_bits) - 1)),
				 expected);
	}
	assert_int_equal(translate(va + whole), 0);
	assert_int_equal(translate(va - size), 0);
}

static void test_entries(void **state)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(arm_granules); i++)
		for (unsigned level = 1; level <= arm_granules[i].levels; level++)
			expect_entries(&arm_granules[i], level);
}

/* Tables that lead to themselves, and to nowhere. */
static void test_lies(void **state)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(arm_granules); i++) {
		words.count = 0;
		arm_words_put(&words, ARM_TABLES_AT, ARM_TABLES_AT | ARM_TABLE);
		use(&arm_granules[i]);
		assert_int_equal(translate(0), (uintptr_t)walk.tables);
		words.at[0].value = -1ULL;
		use(&arm_granules[i]);
		assert_int_equal(translate(0), 0);
	}
}

/* Returns the last word, which maps the page at `va` to the memory that is near. */
static uint64_t *map_near(uint64_t va)
{
	words.count = 0;
	arm_words_put(&words, arm_words_put_tables(&words, &arm_granules[0], va, 1),
		      NEAR_GPA | ARM_PAGE | ARM_USER);
	use(&arm_granules[0]);
	return &words.at[words.count - 1].value;
}

static void expect_near(uint64_t va)
{
	assert_int_equal(translate(va), (uintptr_t)walk.near + 8);
}

/* A page that was translated before: its entry, the root of the tables, or the slots change. */
static void test_remembered(void **state)
{
	const struct arm_granule *granule = &arm_granules[0];
	uint64_t va = (arm_granule_address(granule) & ((1ULL << 47) - 1) & ~0xffffULL) + 8;
	uint64_t *entry = map_near(va);

	revision = 1;
	use(granule);
	expect_near(va);
	expect_near(va);
	*entry = (NEAR_GPA + 0x1000) | ARM_PAGE | ARM_USER;
	use(granule);
	assert_int_equal(translate(va), (uintptr_t)walk.near + 0x1008);
	*entry = 0;
	use(granule);
	assert_int_equal(translate(va), 0);
	*entry = NEAR_GPA | ARM_PAGE | ARM_USER;
	use(granule);
	expect_near(va);
	/* Another process, whose table has no entries. */
	vp_run(walk.programs->progs.translate, NEAR_GPA, va, 0);
	assert_int_equal(walk.programs->bss->hva, 0);
	expect_near(va);
	put_slot(1, NEAR_GPA, sizeof(walk.near), (uintptr_t)walk.near + 0x4000);
	revision = 2;
	use(granule);
	assert_int_equal(translate(va), (uintptr_t)walk.near + 0x4008);
	put_slot(1, NEAR_GPA, sizeof(walk.near), (uintptr_t)walk.near);
	revision = 0;
}

/* Tables that are elsewhere now are noticed after some uses. */
static void test_moved_tables(void **state)
{
	const struct arm_granule *granule = &arm_granules[0];
	uint64_t va = (arm_granule_address(granule) & ((1ULL << 47) - 1) & ~0xffffULL) + 8;
	unsigned uses = 0;

	map_near(va);
	revision = 1;
	use(granule);
	expect_near(va);
	words.at[0].value = 0;
	use(granule);
	while (translate(va) && uses < 1000)
		uses++;
	assert_in_range(uses, 1, 64);
	revision = 0;
}

/* Signatures, tags and what a process may put there: all bits above the address but 55, which
 * says which half it is in. */
static const uint64_t signatures[] = {
    0, ~0ULL, 0x5555555555555555ULL, 0xaaaaaaaaaaaaaaaaULL, 1ULL << 54, 1ULL << 63};

static uint64_t sign(uint64_t va, uint64_t signature)
{
	const uint64_t mask = walk.programs->bss->va_mask | 1ULL << 55;

	return (va & mask) | (signature & ~mask);
}

static void put_near(uint64_t at, uint64_t value)
{
	memcpy(walk.near + at, &value, sizeof(value));
}

/* A page with stacks at that address, of which user space and the kernel each have the same. */
static uint64_t make_stack(const struct arm_granule *granule)
{
	struct arm_walk_bpf__bss *bss = walk.programs->bss;
	uint64_t va = arm_granule_address(granule) & ~0xffffULL;

	words.count = 0;
	arm_words_put(&words, arm_words_put_tables(&words, granule, va, 1),
		      NEAR_GPA | ARM_PAGE | ARM_USER);
	use(granule);
	memset(walk.near, 0, sizeof(walk.near));
	bss->root = ARM_TABLES_AT;
	bss->va_mask = (1ULL << granule->va_bits) - 1;
	bss->link = 0;
	return va;
}

static void expect_frames(enum vp_chain_end end, const uint64_t *ips, uint32_t count)
{
	assert_int_equal(walk.programs->bss->end, end);
	assert_int_equal(walk.programs->bss->count, count);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(walk.programs->bss->frames[i], ips[i]);
}

/* leaf ← middle, by x30 ← outer ← main. */
static void test_user(void **state)
{
	struct arm_walk_bpf__bss *bss = walk.programs->bss;

	for (size_t i = 0; i < VP_ARRAY_SIZE(arm_granules); i++)
		for (size_t j = 0; j < VP_ARRAY_SIZE(signatures); j++) {
			uint64_t stack = make_stack(&arm_granules[i]) & bss->va_mask;
			const uint64_t code = 0x400000,
				       ips[] = {code, code + 0x10, code + 0x20, code + 0x30};
			bss->ip = ips[0];
			bss->link = sign(ips[1], signatures[j]);
			bss->sp = stack;
			bss->bp = stack + 0x40;
			put_near(0x40, sign(stack + 0x80, ~signatures[j]));
			put_near(0x48, sign(ips[2], signatures[j]));
			put_near(0x80, 0);
			put_near(0x88, sign(ips[3], signatures[j]));
			vp_run(walk.programs->progs.walk_user, 0, 0, 0);
			expect_frames(VP_CHAIN_WHOLE, ips, 4);
			/* A function that has a frame has put x30 there. */
			bss->link = sign(ips[2], ~signatures[j]);
			vp_run(walk.programs->progs.walk_user, 0, 0, 0);
			expect_frames(VP_CHAIN_WHOLE, (const uint64_t[]){ips[0], ips[2], ips[3]},
				      3);
			/* Nothing but a signature; a link to the kernel. */
			put_near(0x48, sign(0, signatures[j]));
			bss->link = sign(-1ULL, signatures[j]);
			vp_run(walk.programs->progs.walk_user, 0, 0, 0);
			expect_frames(VP_CHAIN_NO_FRAME, ips, 1);
		}
}

/* Up to the registers of the user space from which the kernel was entered. */
static void test_kernel(void **state)
{
	enum { REGS = 0x200, PC = 32, PSTATE, RECORD = 296 };
	struct arm_walk_bpf__bss *bss = walk.programs->bss;

	for (size_t i = 0; i < VP_ARRAY_SIZE(arm_granules); i++)
		for (size_t j = 0; j < VP_ARRAY_SIZE(signatures); j++) {
			uint64_t stack = make_stack(&arm_granules[i]);
			const uint64_t code = -(1ULL << 30),
				       ips[] = {code, code + 0x10, code + 0x20};
			bss->ip = ips[0];
			bss->bp = stack + 0x40;
			put_near(0x40, stack + 0x20); /* stacks are in no order */
			put_near(0x48, sign(ips[1], signatures[j]));
			put_near(0x20, stack + REGS + RECORD);
			put_near(0x28, sign(ips[2], signatures[j]));
			put_near(REGS + 8 * 29, sign(0x7000, signatures[j]));
			put_near(REGS + 8 * 30, sign(0x400010, signatures[j]));
			put_near(REGS + 8 * 31, 0x6ff0);
			put_near(REGS + 8 * PC, 0x400000);
			vp_run(walk.programs->progs.walk_kernel, 0, 0, 0);
			expect_frames(VP_CHAIN_WHOLE, ips, 3);
			assert_int_equal(bss->record, stack + REGS + RECORD);
			assert_true(bss->has_user);
			assert_int_equal(bss->user_ip, 0x400000);
			assert_int_equal(bss->user_sp, 0x6ff0);
			assert_int_equal(bss->user_bp, 0x7000);
			assert_int_equal(bss->user_link, 0x400010);
			/* Those of the kernel, and of no program. */
			put_near(REGS + 8 * PSTATE, 5);
			vp_run(walk.programs->progs.walk_kernel, 0, 0, 0);
			assert_false(bss->has_user);
			put_near(REGS + 8 * PSTATE, 0);
			put_near(REGS + 8 * PC, 1ULL << arm_granules[i].va_bits);
			vp_run(walk.programs->progs.walk_kernel, 0, 0, 0);
			assert_false(bss->has_user);
			/* A chain that never ends, and one that leads to user space. */
			put_near(0x20, stack + 0x40);
			vp_run(walk.programs->progs.walk_kernel, 0, 0, 0);
			assert_int_equal(bss->count, VP_CHAIN_FRAMES);
			assert_int_equal(bss->end, VP_CHAIN_TOO_DEEP);
			assert_int_equal(bss->record, 0);
			put_near(0x20, (stack + 0x40) & bss->va_mask);
			vp_run(walk.programs->progs.walk_kernel, 0, 0, 0);
			expect_frames(VP_CHAIN_NO_FRAME, ips, 3);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_entries),    cmocka_unit_test(test_lies),
	    cmocka_unit_test(test_remembered), cmocka_unit_test(test_moved_tables),
	    cmocka_unit_test(test_user),       cmocka_unit_test(test_kernel),
	};

	if (!vp_kernel_takes_programs("guests of 64-bit Arm"))
		return VP_SKIPPED;
	return cmocka_run_group_tests(tests, open_walk, close_walk);
}
