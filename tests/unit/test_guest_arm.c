/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guests of 64-bit Arm: page tables of every granule and level, true ones and lies; a kernel whose
 * symbol table has functions only. */
#include "arm_guest.h"
#include "unit.h"

#include "guestmem/kernel/arm_code.h"
#include "guestmem/kernel/kernel.h"
#include "guestmem/kernel/kernel_arm.h"
#include "guestmem/kernel/scan.h"
#include "guestmem/tasks/pagecache.h"
#include "guestmem/tasks/process.h"
#include "guestmem/tasks/tasks.h"

static struct arm_words words;

static bool read_words(void *context, uint64_t hva, void *bytes, size_t size)
{
	assert_true(size <= 8);
	memset(bytes, 0, size);
	for (size_t i = 0; i < words.count; i++)
		if (words.at[i].at == hva)
			memcpy(bytes, &words.at[i].value, size);
	return true;
}

static struct vp_guest_memory memory = {.arch = VP_GUEST_ARM64, .read = read_words};

/* Tables down to `level`, and that entry there. */
static struct vp_guest_view make_tables(const struct arm_granule *granule, uint64_t va,
					unsigned level, uint64_t entry)
{
	words.count = 0;
	arm_words_put(&words, arm_words_put_tables(&words, granule, va, level), entry);
	return (struct vp_guest_view){
	    .memory = &memory, .root = ARM_TABLES_AT, .paging = arm_granule_paging(granule)};
}

#define each_granule(granule)                                                                      \
	for (const struct arm_granule *granule = arm_granules;                                     \
	     granule < arm_granules + VP_ARRAY_SIZE(arm_granules); granule++)

static void test_pages(void **state)
{
	const uint64_t gpa = 0x7654320000ULL;

	each_granule (granule) {
		uint64_t va = arm_granule_address(granule), size = arm_granule_size(granule, 1);
		struct vp_guest_page page;
		struct vp_guest_view view =
		    make_tables(granule, va, 1, gpa | ARM_PAGE | ARM_USER | 0x400);
		assert_int_equal(view.paging.levels, granule->levels);
		assert_true(vp_guest_view_walk(&view, va, &page));
		assert_int_equal(page.gpa, gpa + va % size);
		assert_int_equal(page.left, size - va % size);
		assert_true(page.user);
		/* Its neighbour has no entry; a signed pointer is no address. */
		assert_false(vp_guest_view_walk(&view, va + size, &page));
		assert_false(vp_guest_view_walk(&view, va ^ 5ULL << 54, &page));
		/* The same in the lower half, whose tables are others. */
		assert_true(
		    vp_guest_view_walk(&view, va & ((1ULL << granule->va_bits) - 1), &page));
		/* A block at the last level is none; nor is an entry without the valid bit. */
		view = make_tables(granule, va, 1, gpa | ARM_VALID);
		assert_false(vp_guest_view_walk(&view, va, &page));
		view = make_tables(granule, va, 1, gpa | (ARM_PAGE & ~ARM_VALID));
		assert_false(vp_guest_view_walk(&view, va, &page));
	}
}

static void test_blocks(void **state)
{
	each_granule (granule)
		for (unsigned level = 2; level <= granule->levels; level++) {
			uint64_t va = arm_granule_address(granule);
			uint64_t size = arm_granule_size(granule, level);
			uint64_t gpa = size & 0xffffffffffffULL;
			bool allowed = arm_granule_has_block(granule, level);
			struct vp_guest_page page;
			struct vp_guest_view view =
			    make_tables(granule, va, level, gpa | ARM_VALID);
			assert_int_equal(vp_guest_view_walk(&view, va, &page), allowed);
			if (!allowed)
				continue;
			assert_int_equal(page.gpa, gpa + va % size);
			assert_int_equal(page.left, size - va % size);
			assert_false(page.user);
		}
}

/* An address of memory with as many bits as entries have, a multiple of `size`. */
static uint64_t high_address(const struct arm_granule *granule, uint64_t size)
{
	const unsigned bits = granule->page_bits == 16 || granule->wide ? 52 : 48;

	return 0xdb65432130000ULL & ((1ULL << bits) - 1) & ~(size - 1);
}

/* Bits 51 to 48 are elsewhere, in entries of pages and of blocks. */
static void test_wide_addresses(void **state)
{
	each_granule (granule)
		for (unsigned level = 1; level <= granule->levels; level++) {
			if (level > 1 && !arm_granule_has_block(granule, level))
				continue;
			uint64_t va = arm_granule_address(granule);
			uint64_t size = arm_granule_size(granule, level);
			uint64_t gpa = high_address(granule, size);
			struct vp_guest_page page;
			assert_true(gpa >> 47);
			assert_int_equal(vp_guest_memory_left(&memory, gpa), 0);
			struct vp_guest_view view = make_tables(
			    granule, va, level,
			    arm_granule_entry(granule, gpa) | (level > 1 ? ARM_VALID : ARM_PAGE));
			assert_true(vp_guest_view_walk(&view, va, &page));
			assert_int_equal(page.gpa, gpa + va % size);
		}
}

/* A table above 48 bits. */
static void test_wide_tables(void **state)
{
	each_granule (granule) {
		uint64_t va = arm_granule_address(granule), size = arm_granule_size(granule, 1);
		uint64_t table = high_address(granule, 1ULL << 16), gpa = 0x7654320000ULL;
		const struct vp_paging paging = arm_granule_paging(granule);
		struct vp_guest_memory everywhere = {.arch = VP_GUEST_ARM64, .read = read_words};
		struct vp_guest_page page;
		struct vp_guest_view view =
		    make_tables(granule, va, 2, arm_granule_entry(granule, table) | ARM_TABLE);
		vp_guest_memory_add(&everywhere, 0, 1ULL << 52, 0);
		view.memory = &everywhere;
		arm_words_put(&words, table + 8 * vp_paging_index(&paging, 1, va), gpa | ARM_PAGE);
		assert_true(vp_guest_view_walk(&view, va, &page));
		assert_int_equal(page.gpa, gpa + va % size);
		vp_guest_memory_deinit(&everywhere);
	}
}

/* The entries of a contiguous block, each with its own address, and what surrounds them. */
static void test_contiguous(void **state)
{
	each_granule (granule)
		for (unsigned level = 1; level <= granule->levels; level++) {
			const unsigned count = granule->contiguous[level - 1];
			if (!count)
				continue;
			uint64_t size = arm_granule_size(granule, level), whole = count * size;
			uint64_t va = arm_granule_address(granule) & ~(whole - 1);
			uint64_t gpa = high_address(granule, whole), at;
			uint64_t entry = arm_granule_entry(granule, gpa) | ARM_CONTIGUOUS |
					 (level > 1 ? ARM_VALID : ARM_PAGE);
			struct vp_guest_page page;
			struct vp_guest_view view = make_tables(granule, va, level, entry);
			uint64_t first = words.at[words.count - 1].at;
			for (unsigned i = 1; i < count; i++)
				arm_words_put(&words, first + 8 * i,
					      arm_granule_entry(granule, gpa + i * size) |
						  (entry & (ARM_CONTIGUOUS | ARM_PAGE)));
			for (uint64_t inside = 0; inside < whole; inside += size / 4) {
				assert_true(vp_guest_view_walk(&view, va + inside + 4, &page));
				assert_int_equal(page.gpa, gpa + inside + 4);
				assert_int_equal(page.left, size - (inside + 4) % size);
			}
			assert_false(vp_guest_view_walk(&view, va + whole, &page));
			/* The memory of one after it is found behind a hole, which is skipped. */
			assert_true(
			    vp_guest_view_first_page(&view, va - size, va + whole, &at, &page));
			assert_int_equal(at, va);
			assert_false(vp_guest_view_first_page(&view, va + whole, va + 2 * whole,
							      &at, &page));
			/* A guest that lies: an entry of the block is missing, another one is
			 * somewhere else. */
			words.at[words.count - 1].value = 0;
			words.at[words.count - 2].value =
			    (entry & (ARM_CONTIGUOUS | ARM_PAGE)) | arm_granule_entry(granule, gpa);
			assert_false(vp_guest_view_walk(&view, va + whole - size, &page));
			assert_true(vp_guest_view_walk(&view, va + whole - 2 * size, &page));
			assert_int_equal(page.gpa, gpa);
		}
}

/* Bits of a page's or block's entry that are no part of its address: attributes, ignored bits,
 * and in blocks the reserved ones below the address with nT (bit 16). */
static uint64_t other_bits(const struct arm_granule *granule, unsigned level)
{
	const bool high = granule->page_bits == 16 || granule->wide;
	uint64_t low = arm_granule_size(granule, level) - 1;
	uint64_t above = high && granule->page_bits < 16 ? 50 : 48;

	if (high)
		low &= granule->page_bits == 16 ? ~0xf000ULL : ~0x300ULL;
	return (low & ~(ARM_PAGE | ARM_USER)) | -(1ULL << above);
}

/* All bits around the address, at each level; those of tables say who has access. */
static void test_attributes(void **state)
{
	const uint64_t of_tables = 0xdff0000000000ffcULL; /* without APTable[0] */

	each_granule (granule)
		for (unsigned level = 1; level <= granule->levels; level++) {
			uint64_t va = arm_granule_address(granule);
			uint64_t size = arm_granule_size(granule, level), other;
			uint64_t gpa = high_address(granule, size);
			struct vp_guest_page page;
			if (level > 1 && !arm_granule_has_block(granule, level))
				continue;
			other = other_bits(granule, level) | ARM_USER |
				(level > 1 ? ARM_VALID : ARM_PAGE);
			struct vp_guest_view view = make_tables(
			    granule, va, level, arm_granule_entry(granule, gpa) | other);
			const size_t tables = words.count - 1;
			for (size_t i = 0; i < tables; i++)
				words.at[i].value |= granule->page_bits == 16 || granule->wide
							 ? of_tables & ~0xf00ULL
							 : of_tables;
			assert_true(vp_guest_view_walk(&view, va, &page));
			assert_int_equal(page.gpa, gpa + va % size);
			assert_true(page.user);
			for (size_t i = 0; i < tables; i++) {
				words.at[i].value |= ARM_KERNEL_TABLE;
				assert_true(vp_guest_view_walk(&view, va, &page));
				assert_false(page.user);
				words.at[i].value &= ~ARM_KERNEL_TABLE;
			}
			words.at[tables].value &= ~ARM_USER;
			assert_true(vp_guest_view_walk(&view, va, &page));
			assert_false(page.user);
		}
}

/* Five blocks of 2 MiB are an image. Its header, if it is not in the first one, is before it. */
static void test_header(void **state)
{
	const uint64_t va = 0xffff800008000000, gpa = 0x40000000, block = 2 << 20;
	const uint64_t header = 0x10000, magic = 0x644d5241;
	struct vp_guest_view view = make_tables(&arm_granules[0], va, 2, gpa | ARM_VALID);

	for (uint64_t i = 1; i < 5; i++)
		arm_words_put(&words, 0x30000 + 8 * (vp_paging_index(&view.paging, 2, va) + i),
			      (gpa + i * block) | ARM_VALID);
	assert_true(vp_guest_view_find_image(&view, va + 2 * block + 0x1234));
	assert_int_equal(view.image_va, va - header);
	assert_int_equal(view.image_gpa, gpa - header);
	assert_int_equal(view.image_size, 5 * block + header);
	arm_words_put(&words, gpa + 56, magic);
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

	each_granule (granule) {
		struct vp_guest_view view = make_tables(granule, 0, 1, 0);
		words.count = 0;
		arm_words_put(&words, 0x10000, 0x10000 | ARM_TABLE);
		assert_true(vp_guest_view_walk(&view, 0, &page));
		assert_int_equal(page.gpa, 0x10000);
		assert_true(vp_guest_view_first_page(&view, 0, 1ULL << 32, &va, &page));
		assert_int_equal(va, 0);
		words.count = 0;
		assert_false(vp_guest_view_first_page(&view, 0, UINT64_MAX, &va, &page));
		view.memory = &none;
		assert_false(vp_guest_view_walk(&view, 0, &page));
	}
	assert_int_equal(vp_paging_arm(13, 48, false).levels, 0);
	assert_int_equal(vp_paging_arm(12, 53, true).levels, 0);
	assert_int_equal(vp_paging_arm(0, 48, false).levels, 0);
	assert_int_equal(vp_paging_arm(0xf888cd, 48, false).levels, 0);
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

/* Linux 5.10 has no per-CPU variables in its BTF: the run queue is found by its contents, and a
 * CPU's current task by that. */
static void test_run_queue_by_contents(void **state)
{
	static const char section[] = ".data..percpu";

	for (unsigned other = 0; other < 3; other++) {
		vp_guest_cpus cpus = {0};
		struct vp_guest_task task;
		struct opened opened;
		bool unsettled;
		make_arm(12, 48, true);
		char *name = memmem(guest.image, sizeof(guest.image), section, sizeof(section));
		assert_non_null(name);
		name[1] = 'x';
		const uint32_t queue = PERCPU_AT + PERCPU_RUNQUEUES;
		for (unsigned cpu = 0; cpu < 2; cpu++) {
			uint64_t here = BUILT_TEXT + queue + arm.tpidr1[cpu];
			if (other == 1) /* what it points to has no name */
				built_put64(&guest, here + guest.pack.at.rq_curr, here);
			if (other == 2) /* a copy, so that there are two places */
				memcpy(built_at(&guest, here + 128), built_at(&guest, here), 128);
		}
		expect_no_error(open_arm(&opened));
		if (other == 0) {
			assert_null(opened.kernel.lacks);
			assert_int_equal(opened.kernel.pack.symbol.runqueues.offset, queue);
			assert_int_equal(opened.kernel.pack.symbol.entry_task.offset,
					 queue + guest.pack.at.rq_curr);
			expect_no_error(vp_guest_cpus_find(&opened.kernel, &cpus, &unsettled));
			assert_int_equal(cpus.count, 2);
			assert_int_equal(cpus.at[1].cpu, 1);
			assert_true(vp_guest_cpu_task(&opened.kernel, &cpus.at[0], &task));
			assert_string_equal(task.comm, "init");
		} else {
			assert_non_null(opened.kernel.lacks);
		}
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
		    .view =
			make_tables(&arm_granules[0], 0xffff000000200000, 2, image | ARM_VALID)};
		uint64_t table = 0x80000;
		vp_kernel_pack_init(&kernel.pack);
		kernel.pack.page_size_of = BUILT_PAGE_SIZE_OF;
		kernel.view.image_gpa = image;
		for (unsigned level = 4; level; level--, table += 0x10000)
			arm_words_put(&words,
				      (level == 4 ? kernel.view.root : table) +
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

/* Instructions of A64, with x registers. */
static uint32_t a64_adrp(unsigned to, uint32_t from, uint32_t address)
{
	uint32_t pages = (address >> 12) - (from >> 12);

	return 0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5 | to;
}

static uint32_t a64_add(unsigned to, unsigned from, uint32_t amount)
{
	return 0x91000000 | amount << 10 | from << 5 | to;
}

static uint32_t a64_load(unsigned to, unsigned base, uint32_t offset)
{
	return 0xf9400000 | offset / 8 << 10 | base << 5 | to;
}

static uint32_t a64_store(unsigned from, unsigned base, uint32_t offset)
{
	return 0xf9000000 | offset / 8 << 10 | base << 5 | from;
}

enum { COUNTER = 0x1f800, CODE_WORDS = 9 };

/* As in Debian's 6.1: two registers have the address of a struct, and one is restored in between.
 */
static void put_fork_code(uint32_t code[CODE_WORDS], uint32_t at)
{
	const uint32_t words_[CODE_WORDS] = {
	    a64_load(1, 2, 16), /* of an unknown address */
	    a64_adrp(0, at + 4, COUNTER),
	    a64_add(0, 0, (COUNTER & 0xfff) - 56),
	    a64_adrp(2, at + 12, COUNTER),
	    a64_add(2, 2, (COUNTER & 0xfff) - 56),
	    0xf9402be1, /* ldr x1, [sp, #80] */
	    a64_load(0, 0, 56),
	    a64_add(0, 0, 1),
	    a64_store(0, 2, 56),
	};

	memcpy(code, words_, sizeof(words_));
}

static void expect_forks(const uint32_t code[CODE_WORDS], uint32_t at, uint64_t count,
			 uint32_t expected)
{
	struct opened opened;

	make_arm(12, 48, true);
	memcpy(guest.image + at, code, CODE_WORDS * sizeof(*code));
	put64(guest.image + COUNTER, count);
	expect_no_error(open_arm(&opened));
	assert_int_equal(opened.kernel.pack.symbol.total_forks.offset, expected);
	close_arm(&opened);
}

/* The counter of forks is the variable that copy_process() increments by one, and no other. */
static void test_forks(void **state)
{
	static const struct {
		unsigned word;
		uint32_t instruction;
	} others[] = {
	    {7, 0x91000800}, /* add x0, x0, #2 */
	    {7, 0xd1000400}, /* sub x0, x0, #1 */
	    {8, 0xf9002040}, /* str x0, [x2, #64] */
	    {6, 0xb9403800}, /* ldr w0, [x0, #56] */
	    {7, 0xd503201f}, /* nop */
	    {4, 0x915f2042}, /* add x2, x2, #0x7c8, lsl #12 */
	    {5, 0x94000010}, /* bl: x0 is another one after it */
	    {5, 0xaa0303e2}, /* mov x2, x3 */
	    {5, 0xa8c10be1}, /* ldp x1, x2, [sp], #16 */
	    {8, 0xf9001c41}, /* str x1, [x2, #56] */
	};
	uint32_t code[CODE_WORDS];

	put_fork_code(code, AT_FORK);
	expect_forks(code, AT_FORK, 1234, COUNTER);
	expect_forks(code, AT_FORK, 0, VP_PACK_NONE);
	/* Branches change no register, whatever their lowest bits are. */
	static const uint32_t branches[] = {0xb5000042 /* cbnz x2 */, 0x54000042 /* b.cs */,
					    0x14000002 /* b */, 0xd5384142 /* mrs x2, sp_el0 */};
	for (size_t i = 0; i < VP_ARRAY_SIZE(branches); i++) {
		code[5] = branches[i];
		expect_forks(code, AT_FORK, 1234, i < 3 ? COUNTER : VP_PACK_NONE);
	}
	for (size_t i = 0; i < VP_ARRAY_SIZE(others); i++) {
		put_fork_code(code, AT_FORK);
		code[others[i].word] = others[i].instruction;
		expect_forks(code, AT_FORK, 1234, VP_PACK_NONE);
	}
	put_fork_code(code, AT_AFTER_FORK);
	expect_forks(code, AT_AFTER_FORK, 1234, VP_PACK_NONE);
	put_fork_code(code, AT_AFTER_FORK - 4);
	expect_forks(code, AT_AFTER_FORK - 4, 1234, VP_PACK_NONE);
	/* A variable outside of the image. */
	put_fork_code(code, AT_FORK);
	code[1] = a64_adrp(0, AT_FORK + 4, 0x70000000);
	code[3] = a64_adrp(2, AT_FORK + 12, 0x70000000);
	expect_forks(code, AT_FORK, 1234, VP_PACK_NONE);
}

/* As in Debian's 5.10: handle_mm_fault() adds the CPU's base to the address of a count, and
 * handle_percpu_devid_irq() loads a count with both. */
static void test_percpu_code(void **state)
{
	enum { AT = 0x4000, SUM = 4, LOAD = 5 };
	const uint32_t sum[] = {a64_adrp(4, AT, COUNTER), 0xd2800021 /* mov x1, #1 */,
				0xd538d080 /* mrs x0, tpidr_el1 */, a64_add(4, 4, COUNTER & 0xfff),
				0x8b000080 /* add x0, x4, x0 */};
	const uint32_t load[] = {
	    a64_adrp(1, AT, COUNTER),           a64_add(1, 1, COUNTER & 0xfff),
	    0xd538d084 /* mrs x4, tpidr_el1 */, 0xb8646802 /* ldr w2, [x0, x4] */,
	    0xd53cd042 /* mrs x2, tpidr_el2 */, 0xf8626820 /* ldr x0, [x1, x2] */};
	uint32_t code[6];
	uint64_t at = 0;

	assert_true(vp_arm_code_find_percpu(sum, sizeof(sum), AT, &at));
	assert_int_equal(at, COUNTER);
	assert_false(vp_arm_code_find_percpu(sum, sizeof(sum) - 4, AT, &at));
	assert_true(vp_arm_code_find_percpu(load, sizeof(load), AT, &at));
	assert_int_equal(at, COUNTER);
	assert_false(vp_arm_code_find_percpu(load, sizeof(load) - 4, AT, &at));
	/* Another register, a call in between, and a sum of 32 bits. */
	static const uint32_t others[] = {0xd5384100, 0x94000010, 0x0b000080};
	for (unsigned i = 0; i < VP_ARRAY_SIZE(others); i++) {
		memcpy(code, sum, sizeof(sum));
		code[i < 2 ? 2 + i : SUM] = others[i];
		assert_false(vp_arm_code_find_percpu(code, sizeof(sum), AT, &at));
	}
	memcpy(code, load, sizeof(load));
	code[LOAD] = 0xf8227820; /* str x2, [x1, x2, lsl #3] */
	assert_false(vp_arm_code_find_percpu(code, sizeof(load), AT, &at));
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

/* The first module is loaded after the kernel was found. */
static void test_first_module(void **state)
{
	static const char *const names[] = {"virtio_net"};
	enum { LIST = 0x740 };
	struct vp_buffer now = {0};
	struct opened opened;

	make_arm(12, 48, true);
	expect_no_error(open_arm(&opened));
	vp_guest_kernel_find_modules(&opened.kernel);
	assert_int_equal(opened.kernel.pack.symbol.modules.offset, VP_PACK_NONE);
	put_modules(LIST, names, 1);
	arm_snapshot(&now);
	assert_int_equal(now.size, opened.bytes.size);
	memcpy(opened.bytes.bytes, now.bytes, now.size);
	vp_buffer_deinit(&now);
	vp_guest_kernel_find_modules(&opened.kernel);
	assert_int_equal(opened.kernel.pack.symbol.modules.offset, LIST);
	close_arm(&opened);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pages),
	    cmocka_unit_test(test_blocks),
	    cmocka_unit_test(test_wide_addresses),
	    cmocka_unit_test(test_wide_tables),
	    cmocka_unit_test(test_contiguous),
	    cmocka_unit_test(test_attributes),
	    cmocka_unit_test(test_header),
	    cmocka_unit_test(test_lies),
	    cmocka_unit_test(test_kernel),
	    cmocka_unit_test(test_copy_of_first_task),
	    cmocka_unit_test(test_run_queue_by_contents),
	    cmocka_unit_test(test_cpus_by_table),
	    cmocka_unit_test(test_page_sizes),
	    cmocka_unit_test(test_memmap),
	    cmocka_unit_test(test_nothing_to_find),
	    cmocka_unit_test(test_modules),
	    cmocka_unit_test(test_forks),
	    cmocka_unit_test(test_percpu_code),
	    cmocka_unit_test(test_modules_later),
	    cmocka_unit_test(test_first_module),
	};

	vp_guest_memory_add(&memory, 0, 1ULL << 47, 0);
	int result = cmocka_run_group_tests(tests, NULL, NULL);
	vp_guest_memory_deinit(&memory);
	return result;
}
