/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guests of 64-bit Arm: page tables of every granule and level, true ones and lies; a kernel whose
 * symbol table has functions only. */
#include "arm_guest.h"
#include "unit.h"

#include "guestmem/kernel/kernel.h"
#include "guestmem/kernel/kernel_arm.h"
#include "guestmem/kernel/scan.h"
#include "guestmem/tasks/pagecache.h"
#include "guestmem/tasks/process.h"
#include "guestmem/tasks/tasks.h"

#define USER (1ULL << 6)
#define CONTIGUOUS (1ULL << 52)

/* Words of a memory that is empty otherwise, by their addresses. */
static struct word {
	uint64_t at, value;
} words[64];
static size_t n_words;

static void put_word(uint64_t at, uint64_t value)
{
	assert_true(n_words < VP_ARRAY_SIZE(words));
	words[n_words++] = (struct word){at, value};
}

static bool read_words(void *context, uint64_t hva, void *bytes, size_t size)
{
	assert_true(size <= 8);
	memset(bytes, 0, size);
	for (size_t i = 0; i < n_words; i++)
		if (words[i].at == hva)
			memcpy(bytes, &words[i].value, size);
	return true;
}

static const struct {
	unsigned page_bits, va_bits;
	bool wide;
	unsigned levels;
} granules[] = {{12, 48, false, 4}, {12, 39, false, 3}, {12, 52, true, 5},  {14, 47, false, 3},
		{14, 48, false, 4}, {14, 52, true, 4},  {14, 36, false, 2}, {16, 48, false, 3},
		{16, 52, false, 3}, {16, 42, false, 2}};

static struct vp_guest_memory memory = {.arch = VP_GUEST_ARM64, .read = read_words};

/* Tables down to `level`, each at a multiple of 64 KiB, and the entry there. */
static struct vp_guest_view make_tables(size_t i, uint64_t va, unsigned level, uint64_t entry)
{
	struct vp_guest_view view = {
	    .memory = &memory,
	    .root = 0x10000,
	    .paging = vp_paging_arm(granules[i].page_bits, granules[i].va_bits, granules[i].wide)};
	uint64_t table = view.root;

	n_words = 0;
	for (unsigned at = view.paging.levels; at >= level; at--) {
		uint64_t next = table + 0x10000;
		put_word(table + 8 * vp_paging_index(&view.paging, at, va),
			 at > level ? next | ARM_TABLE : entry);
		table = next;
	}
	return view;
}

static uint64_t an_address(size_t i)
{
	return -(1ULL << granules[i].va_bits) |
	       (0x5a5a5a5a5a5a5a5aULL >> (64 - granules[i].va_bits));
}

static void test_pages(void **state)
{
	const uint64_t gpa = 0x7654320000ULL;

	for (size_t i = 0; i < VP_ARRAY_SIZE(granules); i++) {
		uint64_t va = an_address(i), size = 1ULL << granules[i].page_bits;
		struct vp_guest_page page;
		struct vp_guest_view view =
		    make_tables(i, va, 1, gpa | ARM_PAGE | USER | CONTIGUOUS | 0x400);
		assert_int_equal(view.paging.levels, granules[i].levels);
		assert_true(vp_guest_view_walk(&view, va, &page));
		assert_int_equal(page.gpa, gpa + va % size);
		assert_int_equal(page.left, size - va % size);
		assert_true(page.user);
		/* Its neighbour has no entry; a signed pointer is no address. */
		assert_false(vp_guest_view_walk(&view, va + size, &page));
		assert_false(vp_guest_view_walk(&view, va ^ 5ULL << 54, &page));
		/* The same in the lower half, whose tables are others. */
		assert_true(
		    vp_guest_view_walk(&view, va & ((1ULL << granules[i].va_bits) - 1), &page));
		/* A block at the last level is none; nor is an entry without the valid bit. */
		view = make_tables(i, va, 1, gpa | ARM_VALID);
		assert_false(vp_guest_view_walk(&view, va, &page));
		view = make_tables(i, va, 1, gpa | (ARM_PAGE & ~ARM_VALID));
		assert_false(vp_guest_view_walk(&view, va, &page));
	}
}

static void test_blocks(void **state)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(granules); i++)
		for (unsigned level = 2; level <= granules[i].levels; level++) {
			unsigned page_bits = granules[i].page_bits;
			uint64_t va = an_address(i), gpa;
			uint64_t size = 1ULL << (page_bits + (page_bits - 3) * (level - 1));
			bool allowed = level == 2 ||
				       (level == 3 && (page_bits != 14 || granules[i].wide)) ||
				       (level == 4 && page_bits == 12 && granules[i].wide);
			struct vp_guest_page page;
			gpa = size & 0xffffffffffffULL;
			struct vp_guest_view view = make_tables(i, va, level, gpa | ARM_VALID);
			assert_int_equal(vp_guest_view_walk(&view, va, &page), allowed);
			if (!allowed)
				continue;
			assert_int_equal(page.gpa, gpa + va % size);
			assert_int_equal(page.left, size - va % size);
			assert_false(page.user);
		}
}

/* Bits 51 to 48 are elsewhere. */
static void test_wide_addresses(void **state)
{
	const uint64_t gpa = 0xd765432130000ULL;

	for (size_t i = 0; i < VP_ARRAY_SIZE(granules); i++) {
		uint64_t va = an_address(i), entry = 0;
		struct vp_guest_page page;
		if (granules[i].page_bits == 16)
			entry = (gpa & 0xffffffff0000ULL) | gpa >> 48 << 12;
		else if (granules[i].wide)
			entry = (gpa & 0x3ffffffff0000ULL) | gpa >> 50 << 8;
		else
			continue;
		struct vp_guest_view view = make_tables(i, va, 1, entry | ARM_PAGE);
		assert_true(vp_guest_memory_left(&memory, gpa) == 0);
		assert_true(vp_guest_view_walk(&view, va, &page));
		assert_int_equal(page.gpa, gpa + va % (1ULL << granules[i].page_bits));
	}
}

/* Five blocks of 2 MiB are an image. Its header, if it is not in the first one, is before it. */
static void test_header(void **state)
{
	const uint64_t va = 0xffff800008000000, gpa = 0x40000000, block = 2 << 20;
	const uint64_t header = 0x10000, magic = 0x644d5241;
	struct vp_guest_view view = make_tables(0, va, 2, gpa | ARM_VALID);

	for (uint64_t i = 1; i < 5; i++)
		put_word(0x30000 + 8 * (vp_paging_index(&view.paging, 2, va) + i),
			 (gpa + i * block) | ARM_VALID);
	assert_true(vp_guest_view_find_image(&view, va + 2 * block + 0x1234));
	assert_int_equal(view.image_va, va - header);
	assert_int_equal(view.image_gpa, gpa - header);
	assert_int_equal(view.image_size, 5 * block + header);
	put_word(gpa + 56, magic);
	assert_true(vp_guest_view_find_image(&view, va + 2 * block + 0x1234));
	assert_int_equal(view.image_va, va);
	assert_int_equal(view.image_gpa, gpa);
	assert_int_equal(view.image_size, 5 * block);
}

/* Tables that lead to themselves end after as many as there are levels; those that nobody has are
 * not walked. */
static void test_lies(void **state)
{
	static const struct vp_guest_memory none = {.arch = VP_GUEST_ARM64, .read = read_words};
	struct vp_guest_page page;
	uint64_t va;

	for (size_t i = 0; i < VP_ARRAY_SIZE(granules); i++) {
		struct vp_guest_view view = make_tables(i, 0, 1, 0);
		n_words = 0;
		put_word(0x10000, 0x10000 | ARM_TABLE);
		assert_true(vp_guest_view_walk(&view, 0, &page));
		assert_int_equal(page.gpa, 0x10000);
		assert_true(vp_guest_view_first_page(&view, 0, 1ULL << 32, &va, &page));
		assert_int_equal(va, 0);
		n_words = 0;
		assert_false(vp_guest_view_first_page(&view, 0, UINT64_MAX, &va, &page));
		view.memory = &none;
		assert_false(vp_guest_view_walk(&view, 0, &page));
	}
	assert_int_equal(vp_paging_arm(13, 48, false).levels, 0);
	assert_int_equal(vp_paging_arm(12, 53, true).levels, 0);
	assert_int_equal(vp_paging_arm(0, 48, false).levels, 0);
	assert_int_equal(vp_paging_arm(12, 20, false).levels, 0);
}

struct opened {
	struct vp_buffer bytes;
	struct vp_guest_snapshot snapshot;
	struct vp_guest_kernel kernel;
};

static struct vp_error *open_arm_with(struct opened *opened, const vp_kernel_packs *packs)
{
	*opened = (struct opened){0};
	arm_snapshot(&opened->bytes);
	expect_no_error(
	    vp_guest_snapshot_init(opened->bytes.bytes, opened->bytes.size, &opened->snapshot));
	return vp_guest_kernel_find(&opened->snapshot.memory, opened->snapshot.vcpus.at,
				    opened->snapshot.vcpus.count, packs, 42, &opened->kernel);
}

static struct vp_error *open_arm(struct opened *opened)
{
	static const vp_kernel_packs none;

	return open_arm_with(opened, &none);
}

static void close_arm(struct opened *opened)
{
	vp_guest_kernel_deinit(&opened->kernel);
	vp_guest_snapshot_deinit(&opened->snapshot);
	vp_buffer_deinit(&opened->bytes);
}

static const unsigned kernels[][2] = {{12, 48}, {14, 47}, {14, 48}, {16, 48}};

/* By what is there, without the symbols of data; and its current task by the register. */
static void test_kernel(void **state)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(kernels); i++) {
		vp_guest_cpus cpus = {0};
		struct vp_guest_task task;
		struct opened opened;
		bool unsettled;
		make_arm(kernels[i][0], kernels[i][1], true);
		expect_no_error(open_arm(&opened));
		assert_int_equal(opened.kernel.text, BUILT_TEXT);
		assert_int_equal(opened.kernel.view.direct_map, BUILT_DIRECT);
		assert_string_equal(opened.kernel.pack.release, "6.1.0-built");
		if (opened.kernel.lacks)
			fail_msg("it lacks %s", opened.kernel.lacks);
		assert_memory_equal(&opened.kernel.pack.at, &guest.pack.at, sizeof(guest.pack.at));
		assert_int_equal(opened.kernel.pack.symbol.init_task.offset, AT_INIT_TASK);
		assert_int_equal(opened.kernel.pack.symbol.entry_task.offset,
				 PERCPU_AT + PERCPU_ENTRY_TASK);
		expect_no_error(vp_guest_kernel_check(&opened.kernel));
		expect_no_error(vp_guest_cpus_find(&opened.kernel, &cpus, &unsettled));
		assert_int_equal(cpus.count, 2);
		assert_int_equal(cpus.at[0].vcpu, 5);
		assert_int_equal(cpus.at[0].cpu, 0);
		assert_int_equal(cpus.at[1].vcpu, 6);
		assert_int_equal(cpus.at[1].cpu, 1);
		assert_true(vp_guest_cpu_task(&opened.kernel, &cpus.at[0], &task));
		assert_string_equal(task.comm, "init");
		assert_int_equal(task.root, BUILT_CR3);
		vp_vec_deinit(&cpus);
		close_arm(&opened);
	}
}

/* By the kernel's own table, if no vCPU's registers tell; KVM has a vCPU's number in three pieces
 * of its id. */
static void test_cpus_by_table(void **state)
{
	enum { OFFSETS = 0x700, IDS = 0x740, COUNT = 0x780 };
	static const uint64_t bad[] = {16, 0x1f, 1ULL << 40};
	vp_guest_cpus cpus = {0};
	struct opened opened;
	bool unsettled;

	make_arm(12, 48, true);
	for (unsigned cpu = 0; cpu < 2; cpu++)
		put64(guest.image + OFFSETS + 8 * cpu, arm.tpidr1[cpu]);
	put64(guest.image + IDS, 15);
	put64(guest.image + IDS + 8, 0xfe340cULL);
	put32(guest.image + COUNT, 3);
	for (size_t i = 0; i <= VP_ARRAY_SIZE(bad); i++) {
		expect_no_error(open_arm(&opened));
		struct vp_kernel_pack *pack = &opened.kernel.pack;
		pack->symbol.per_cpu_offset.offset = OFFSETS;
		pack->symbol.cpu_logical_map.offset = IDS;
		pack->symbol.nr_cpu_ids.offset = COUNT;
		opened.kernel.view.n_vcpus = 0;
		expect_no_error(vp_guest_cpus_find(&opened.kernel, &cpus, &unsettled));
		assert_false(unsettled);
		assert_int_equal(cpus.count, i ? 1 : 2);
		assert_int_equal(cpus.at[0].vcpu, 15);
		assert_int_equal(cpus.at[0].cpu, 0);
		if (!i) {
			assert_int_equal(cpus.at[1].vcpu, 12 | 0x34 << 4 | 0xfe << 12);
			assert_int_equal(cpus.at[1].cpu, 1);
			assert_int_equal(cpus.at[1].base, arm.tpidr1[1]);
		}
		close_arm(&opened);
		vp_vec_deinit(&cpus);
		/* An id that KVM gives to no vCPU. */
		if (i < VP_ARRAY_SIZE(bad))
			put64(guest.image + IDS + 8, bad[i]);
	}
	put32(guest.image + COUNT, 1U << 20);
	expect_no_error(open_arm(&opened));
	opened.kernel.pack.symbol.nr_cpu_ids.offset = COUNT;
	opened.kernel.view.n_vcpus = 0;
	expect_error(vp_guest_cpus_find(&opened.kernel, &cpus, &unsettled), "number of CPUs");
	close_arm(&opened);
}

/* A page of the page cache, and a mapping's offset in pages, of the guest's own size. */
static void take_mapping(void *context, const struct vp_guest_mapping *mapping)
{
	*(struct vp_guest_mapping *)context = *mapping;
}

static void test_page_sizes(void **state)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(kernels); i++) {
		const unsigned page_bits = kernels[i][0];
		struct vp_guest_mapping mapping = {0};
		struct vp_guest_file file;
		struct opened opened;
		char text[4];
		make_arm(page_bits, kernels[i][1], true);
		const struct vp_kernel_pack *pack = &guest.pack;
		uint64_t mm = built_mm(&guest), gpa = 3ULL << 16;
		built_put64(&guest, mm + pack->at.mm_maple_root,
			    built_vma(&guest, 0x400000, 0x500000, 7, 8));
		uint64_t head = BUILT_MEMMAP + (gpa >> page_bits) * BUILT_PAGE_SIZE_OF;
		uint64_t object = built_object(&guest, 2048, 16), inode = object + 1024;
		built_put64(&guest, object + pack->at.file_mapping, object);
		built_put64(&guest, object + pack->at.mapping_xa_head, head);
		built_put64(&guest, object + pack->at.mapping_host, inode);
		built_put64(&guest, inode + pack->at.inode_size, 8);
		memcpy(guest.low + gpa, "abcdefgh", 8);
		expect_no_error(open_arm(&opened));
		opened.kernel.memmap = BUILT_MEMMAP;
		assert_true(vp_guest_file_open(&opened.kernel, object, &file));
		assert_true(vp_guest_file_read(&file, 2, text, sizeof(text)));
		assert_memory_equal(text, "cdef", 4);
		assert_true(vp_guest_mappings_each(&opened.kernel, mm, take_mapping, &mapping));
		assert_int_equal(mapping.pgoff, 7ULL << page_bits);
		close_arm(&opened);
	}
}

/* Where the struct page of address 0 would be, with memory from 0x40000000 on: as kernels
 * of 6.1, 5.10 and 6.12 have it, with 48 bits and pages of 4 KiB. */
static void test_memmap(void **state)
{
	static const uint64_t memmaps[] = {0xfffffbffff000000, 0xfffffdfffee00000,
					   0xfffffdffbf000000};
	const uint64_t image = 0x40200000;

	for (size_t i = 0; i < VP_ARRAY_SIZE(memmaps); i++) {
		const uint64_t page = memmaps[i] + (image >> 12) * BUILT_PAGE_SIZE_OF;
		struct vp_guest_kernel kernel = {
		    .view = make_tables(0, 0xffff000000200000, 2, image | ARM_VALID)};
		uint64_t table = 0x80000;
		vp_kernel_pack_init(&kernel.pack);
		kernel.pack.page_size_of = BUILT_PAGE_SIZE_OF;
		kernel.view.image_gpa = image;
		for (unsigned level = 4; level; level--, table += 0x10000)
			put_word((level == 4 ? kernel.view.root : table) +
				     8 * vp_paging_index(&kernel.view.paging, level, page),
				 level > 1 ? (table + 0x10000) | ARM_TABLE : ARM_PAGE);
		vp_guest_kernel_settle_arm(&kernel);
		assert_int_equal(kernel.view.direct_map, 0xfffeffffc0000000);
		assert_int_equal(kernel.memmap, memmaps[i]);
	}
}

/* A stale copy of the first task, before it: the list of tasks does not lead there. */
static void test_copy_of_first_task(void **state)
{
	enum { SIZE = 0x200 };
	struct opened opened;

	make_arm(12, 48, true);
	assert_true(guest.pack.at.task_comm + sizeof("swapper/0") <= SIZE);
	memcpy(guest.image + AT_INIT_TASK - SIZE, guest.image + AT_INIT_TASK, SIZE);
	expect_no_error(open_arm(&opened));
	assert_int_equal(opened.kernel.pack.symbol.init_task.offset, AT_INIT_TASK);
	close_arm(&opened);
}

/* Without any of what is looked for there is a kernel all the same, whose tasks are not known. */
static void test_nothing_to_find(void **state)
{
	struct opened opened;

	make_arm(12, 48, true);
	memset(guest.image + AT_INIT_TASK + guest.pack.at.task_comm, 'x', 16);
	expect_no_error(open_arm(&opened));
	assert_non_null(strstr(opened.kernel.lacks, "init_task"));
	close_arm(&opened);
	make_arm(12, 48, true);
	arm.tpidr1[0] += 8;
	arm.tpidr1[1] += 8;
	expect_no_error(open_arm(&opened));
	assert_non_null(opened.kernel.lacks);
	close_arm(&opened);
	make_arm(12, 48, true);
	memset(guest.image + AT_NOTES, 0, 36);
	expect_error(open_arm(&opened), "build-id");
	close_arm(&opened);
}

/* A list of modules with these names; the head is in the image, and the modules are not. */
static void put_modules(uint64_t head, const char *const *names, size_t count)
{
	enum { MODULE_SIZE = 128 };
	const struct vp_kernel_pack *pack = &guest.pack;
	uint64_t before = BUILT_TEXT + head;

	for (size_t i = 0; i < count; i++) {
		uint64_t module = built_object(&guest, MODULE_SIZE, 64);
		uint64_t link = module + pack->at.module_list;
		strcpy(built_at(&guest, module + pack->at.module_name), names[i]);
		built_put64(&guest, module + pack->at.module_kallsyms, module);
		built_put64(&guest, before, link);
		built_put64(&guest, link + 8, before);
		before = link;
	}
	built_put64(&guest, before, BUILT_TEXT + head);
	built_put64(&guest, BUILT_TEXT + head + 8, before);
}

static void expect_modules(uint32_t expected)
{
	struct opened opened;

	expect_no_error(open_arm(&opened));
	assert_int_equal(opened.kernel.pack.symbol.modules.offset, expected);
	close_arm(&opened);
}

/* The list of modules is found without a symbol; no other list is taken for it. */
static void test_modules(void **state)
{
	static const char *const names[] = {"virtio_net", "ext4"}, *const others[] = {"a file"};
	static const char *const none[] = {""};
	enum { OTHER = 0x700, EMPTY_NAME = 0x720, LIST = 0x740 };

	for (size_t i = 0; i < VP_ARRAY_SIZE(kernels); i++) {
		make_arm(kernels[i][0], kernels[i][1], true);
		put_modules(OTHER, others, 1);
		put_modules(EMPTY_NAME, none, 1);
		expect_modules(VP_PACK_NONE);
		put_modules(LIST, names, 2);
		expect_modules(LIST);
	}
	/* Lists that do not come back to their heads. */
	uint64_t first, second;
	memcpy(&first, guest.image + LIST, sizeof(first));
	memcpy(&second, built_at(&guest, first), sizeof(second));
	built_put64(&guest, second + 8, BUILT_TEXT + LIST);
	expect_modules(VP_PACK_NONE);
	built_put64(&guest, first, first);
	expect_modules(VP_PACK_NONE);
	put_modules(LIST, names, 2);
	put64(guest.image + LIST + 8, first);
	expect_modules(VP_PACK_NONE);
}

/* A cached pack that was made before the first module was loaded is made anew. */
static void test_modules_later(void **state)
{
	static const char *const names[] = {"virtio_net"};
	enum { LIST = 0x740 };
	vp_kernel_packs packs = {0};
	struct opened opened;

	make_arm(12, 48, true);
	expect_no_error(open_arm(&opened));
	assert_null(opened.kernel.lacks);
	vp_vec_push(&packs, opened.kernel.pack);
	close_arm(&opened);
	put_modules(LIST, names, 1);
	for (unsigned cached = 0; cached < 2; cached++) {
		expect_no_error(open_arm_with(&opened, &packs));
		assert_int_equal(opened.kernel.route, cached ? VP_PACK_CACHED : VP_PACK_READ);
		assert_int_equal(opened.kernel.pack.symbol.modules.offset, LIST);
		vp_vec_push(&packs, opened.kernel.pack);
		close_arm(&opened);
	}
	vp_vec_deinit(&packs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pages),
	    cmocka_unit_test(test_blocks),
	    cmocka_unit_test(test_wide_addresses),
	    cmocka_unit_test(test_header),
	    cmocka_unit_test(test_lies),
	    cmocka_unit_test(test_kernel),
	    cmocka_unit_test(test_copy_of_first_task),
	    cmocka_unit_test(test_cpus_by_table),
	    cmocka_unit_test(test_page_sizes),
	    cmocka_unit_test(test_memmap),
	    cmocka_unit_test(test_nothing_to_find),
	    cmocka_unit_test(test_modules),
	    cmocka_unit_test(test_modules_later),
	};

	vp_guest_memory_add(&memory, 0, 1ULL << 47, 0);
	int result = cmocka_run_group_tests(tests, NULL, NULL);
	vp_guest_memory_deinit(&memory);
	return result;
}
