/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest's memory: page tables, kernel, tasks and mappings, true ones and lies. */
#include "opened_guest.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "guestmem/memory/lines.h"
#include "guestmem/symbols/dump.h"
#include "guestmem/tasks/process.h"
#include "guestmem/tasks/tasks.h"
#include "guestreader/worker.h"

struct seen {
	size_t count;
	struct vp_guest_task tasks[16];
	struct vp_guest_mapping mappings[64];
};

static bool keep_task(void *context, const struct vp_guest_task *task)
{
	struct seen *seen = context;

	assert_true(seen->count < 16);
	seen->tasks[seen->count++] = *task;
	return true;
}

static void keep_mapping(void *context, const struct vp_guest_mapping *mapping)
{
	struct seen *seen = context;

	assert_true(seen->count < 64);
	seen->mappings[seen->count++] = *mapping;
}

static void test_snapshot_malformed(void **state)
{
	static const char *const texts[] = {"",
					    "VPGM2\n\n",
					    "VPGM1\n",
					    "VPGM1\nslot 0 0\n\n",
					    "VPGM1\nslot ffffffffffffffff 2\n\n",
					    "VPGM1\nvcpu 0 1 2\n\n",
					    "VPGM1\nwhat\n\n"};
	struct vp_guest_snapshot snapshot;

	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++)
		expect_error(vp_guest_snapshot_init(texts[i], strlen(texts[i]), &snapshot),
			     "malformed");
}

static void test_memory_bounds(void **state)
{
	static const char text[] = "VPGM1\nslot 1000 4\nslot 1004 4\nslot 9000 10\n\nabcdefghij";
	struct vp_guest_snapshot snapshot;
	char bytes[16];

	expect_no_error(vp_guest_snapshot_init(text, sizeof(text) - 1, &snapshot));
	assert_true(vp_guest_memory_read(&snapshot.memory, 0x1002, bytes, 4)); /* over two slots */
	assert_memory_equal(bytes, "cdef", 4);
	assert_false(vp_guest_memory_read(&snapshot.memory, 0x1006, bytes, 3));
	assert_false(vp_guest_memory_read(&snapshot.memory, 0xfff, bytes, 1));
	assert_true(vp_guest_memory_read(&snapshot.memory, 0x9000, bytes, 2));
	assert_false(vp_guest_memory_read(&snapshot.memory, 0x9000, bytes, 3)); /* is not there */
	assert_int_equal(vp_guest_memory_left(&snapshot.memory, 0x1001), 3);
	assert_int_equal(vp_guest_memory_left(&snapshot.memory, 0x2000), 0);
	vp_guest_snapshot_deinit(&snapshot);
}

struct patchy {
	char bytes[4 * VP_GUEST_PAGE];
};

/* The third page cannot be read, whatever the host says. */
static bool read_patchy(void *context, uint64_t hva, void *bytes, size_t size)
{
	const struct patchy *patchy = context;

	if (hva + size > 2 * VP_GUEST_PAGE && hva < 3 * VP_GUEST_PAGE)
		return false;
	memcpy(bytes, patchy->bytes + hva, size);
	return true;
}

/* What cannot be read is zeros, not what was there before. */
static void test_copy_of_holes(void **state)
{
	static struct patchy patchy;
	struct vp_guest_memory memory = {.read = read_patchy, .context = &patchy};
	char bytes[sizeof(patchy.bytes)];

	memset(patchy.bytes, 0x11, sizeof(patchy.bytes));
	memset(bytes, 0xee, sizeof(bytes));
	assert_true(vp_guest_memory_add(&memory, 0, sizeof(bytes), 0));
	assert_int_equal(vp_guest_memory_copy(&memory, 0, bytes, sizeof(bytes)), 3 * VP_GUEST_PAGE);
	for (size_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], i / VP_GUEST_PAGE == 2 ? 0 : 0x11);
	vp_guest_memory_deinit(&memory);
}

/* A page that the host has on its disk is not had: reading would bring it. */
static void test_swapped_out(void **state)
{
	const uint64_t entries[] = {1ULL << 63 | 7, 1ULL << 62 | 9, 0, 1ULL << 63 | 1ULL << 55 | 8};
	struct vp_guest_files files = {memfd_create("memory", MFD_CLOEXEC),
				       memfd_create("pagemap", MFD_CLOEXEC)};
	struct vp_guest_memory memory = {0};
	unsigned char backed[5];

	assert_int_equal(pwrite(files.pagemap, entries, sizeof(entries), 0), sizeof(entries));
	vp_guest_memory_by_files(&memory, &files);
	memory.backed(memory.context, 0, sizeof(backed), backed);
	assert_memory_equal(backed, "\1\0\0\1\0", sizeof(backed));
	close(files.memory);
	close(files.pagemap);
}

/* Tables at 0x1000, 0x2000, … lead to a page at 0x6000, with 4 and with 5 levels. */
/* Memory is plugged in and out. */
/* Counts what is read of the memory below. */
struct counted {
	char bytes[4096];
	unsigned reads;
};

static bool read_counted(void *context, uint64_t hva, void *bytes, size_t size)
{
	struct counted *counted = context;

	counted->reads++;
	if (hva > sizeof(counted->bytes) || size > sizeof(counted->bytes) - hva)
		return false;
	memcpy(bytes, counted->bytes + hva, size);
	return true;
}

/* Any read has the bytes that one without lines has, neighbours are read once, and nothing outlives
 * the next begin. */
static void test_lines(void **state)
{
	struct counted counted = {.reads = 0};
	struct vp_guest_memory below = {.read = read_counted, .context = &counted};
	struct vp_guest_lines *lines = vp_alloc(sizeof(*lines));
	char bytes[2 * VP_GUEST_LINE];

	for (size_t i = 0; i < sizeof(counted.bytes); i++)
		counted.bytes[i] = (char)(i * 7 + i / 256);
	/* The second slot ends in the middle of a line. */
	vp_guest_memory_add(&below, 0, 1024, 0);
	vp_guest_memory_add(&below, 1024, 1024, 4096 - 924);
	vp_guest_lines_begin(lines, &below);
	for (size_t size = 1; size <= sizeof(bytes); size += 51)
		for (uint64_t at = 0; at + size <= 1024 + 900; at += 13) {
			assert_true(vp_guest_memory_read(&lines->memory, at, bytes, size));
			for (size_t i = 0; i < size; i++) {
				uint64_t hva = at + i < 1024 ? at + i : at + i - 1024 + 4096 - 924;
				assert_int_equal(bytes[i], counted.bytes[hva]);
			}
		}
	assert_false(vp_guest_memory_read(&lines->memory, 2047, bytes, 1));
	counted.reads = 0;
	vp_guest_lines_begin(lines, &below);
	for (uint64_t at = 512; at < 768; at += 8)
		assert_true(vp_guest_memory_read(&lines->memory, at, bytes, 8));
	assert_int_equal(counted.reads, 1);
	counted.bytes[512]++;
	vp_guest_lines_begin(lines, &below);
	assert_true(vp_guest_memory_read(&lines->memory, 512, bytes, 1));
	assert_int_equal(bytes[0], counted.bytes[512]);
	vp_guest_memory_deinit(&below);
	free(lines);
}

static void test_memory_changes(void **state)
{
	struct vp_guest_memory memory = {0}, now = {0};

	vp_guest_memory_add(&memory, 0, 4096, 1 << 20);
	vp_guest_memory_add(&memory, 8192, 4096, 2 << 20);
	vp_guest_memory_add(&now, 16384, 4096, 3 << 20);
	vp_guest_memory_add(&now, 8192, 4096, 2 << 20);
	vp_guest_memory_add(&now, 0, 4096, 1 << 20);
	assert_true(vp_guest_memory_change(&memory, &now));
	assert_int_equal(memory.slots.count, 3);
	assert_int_equal(memory.slots.at[0].gpa, 0);
	assert_int_equal(memory.slots.at[2].gpa, 16384);
	assert_false(vp_guest_memory_change(&memory, &now));
	now.slots.at[1].hva = 4 << 20; /* it is elsewhere now */
	assert_true(vp_guest_memory_change(&memory, &now));
	assert_int_equal(memory.slots.at[1].hva, 4 << 20);
	now.slots.count = 1;
	assert_true(vp_guest_memory_change(&memory, &now));
	assert_int_equal(memory.slots.count, 1);
	assert_int_equal(vp_guest_memory_left(&memory, 8192), 0);
	vp_guest_memory_deinit(&memory);
	vp_guest_memory_deinit(&now);
}

static void test_page_walk(void **state)
{
	for (unsigned levels = 4; levels <= 5; levels++) {
		struct vp_guest_page page;
		struct opened opened;
		memset(&guest, 0, sizeof(guest));
		for (unsigned i = 0; i < levels; i++)
			put64(guest.low + 0x1000 * (i + 1) + 8 * (i + 3),
			      0x1000 * (i + 2) | (i == 2 ? 1 : 5));
		uint64_t va = 0;
		for (unsigned i = 0; i < levels; i++)
			va = va << 9 | (i + 3);
		va <<= 12;
		open_guest(&opened);
		struct vp_guest_view view = {.memory = &opened.snapshot.memory,
					     .root = 0x1000,
					     .paging = vp_paging_x86(levels)};
		assert_true(vp_guest_view_walk(&view, va + 0x123, &page));
		assert_int_equal(page.gpa, 0x1000 * (levels + 1) + 0x123);
		assert_int_equal(page.left, 0x1000 - 0x123);
		assert_false(page.user); /* one table on the way is the kernel's */
		assert_false(vp_guest_view_walk(&view, va + 0x1000, &page));
		assert_false(vp_guest_view_walk(&view, va | 1ULL << 60, &page)); /* not canonical */
		view.root = BUILT_LOW + 0x1000000;
		assert_false(vp_guest_view_walk(&view, va, &page));
		view.paging = vp_paging_x86(6);
		assert_false(vp_guest_view_walk(&view, va, &page));
		close_guest(&opened);
		/* A page of 1 GiB: the table at level 3 has it. */
		put64(guest.low + 0x1000 * (levels - 2) + 8 * (levels - 3 + 3), 5ULL << 30 | 0x85);
		open_guest(&opened);
		view = (struct vp_guest_view){.memory = &opened.snapshot.memory,
					      .root = 0x1000,
					      .paging = vp_paging_x86(levels)};
		uint64_t inside = va & ((1 << 30) - 1);
		assert_true(vp_guest_view_walk(&view, va + 0x123, &page));
		assert_int_equal(page.gpa, (5ULL << 30) + inside + 0x123);
		assert_int_equal(page.left, (1 << 30) - inside - 0x123);
		close_guest(&opened);
	}
}

static void test_kernel_found(void **state)
{
	for (int layout = BUILT_OLD; layout <= BUILT_PLACE; layout++)
		for (int scan = 0; scan < 2; scan++) {
			vp_guest_cpus cpus = {0};
			struct vp_guest_task task;
			struct opened opened;
			bool unsettled;
			built_kernel(&guest, (enum built_layout)layout);
			open_guest(&opened);
			expect_no_error(find_kernel(&opened, scan, NULL));
			assert_int_equal(opened.kernel.text, BUILT_TEXT);
			assert_string_equal(opened.kernel.pack.release, "6.1.0-built");
			assert_int_equal(opened.kernel.view.image_size, 8 * 0x200000);
			assert_int_equal(opened.kernel.pack.build_id.size, 20);
			assert_memory_equal(&opened.kernel.pack.at, &guest.pack.at,
					    sizeof(guest.pack.at));
			expect_no_error(vp_guest_kernel_check(&opened.kernel));
			expect_no_error(vp_guest_cpus_find(&opened.kernel, &cpus, &unsettled));
			assert_int_equal(cpus.count, 1);
			assert_false(unsettled);
			assert_true(vp_guest_cpu_task(&opened.kernel, &cpus.at[0], &task));
			assert_string_equal(task.comm, "init");
			assert_int_equal(task.root, BUILT_CR3);
			vp_vec_deinit(&cpus);
			close_guest(&opened);
		}
}

/* The name of the task that runs at this moment has no end: who looks again may find another task.
 */
static void test_current_task_is_none(void **state)
{
	vp_guest_cpus cpus = {0};
	struct vp_guest_task task;
	struct opened opened;
	bool unsettled;

	built_kernel(&guest, BUILT_OLD);
	open_kernel(&opened);
	expect_no_error(vp_guest_cpus_find(&opened.kernel, &cpus, &unsettled));
	assert_true(vp_guest_cpu_task(&opened.kernel, &cpus.at[0], &task));
	char *comm = built_at(&guest, task.address + guest.pack.at.task_comm);
	memset(comm, 'A', sizeof(task.comm));
	close_guest(&opened);
	cpus.count = 0;
	open_kernel(&opened);
	expect_error(vp_guest_cpus_find(&opened.kernel, &cpus, &unsettled),
		     "no CPU's current task");
	assert_true(unsettled);
	vp_vec_deinit(&cpus);
	close_guest(&opened);
}

/* vCPUs are numbered by APIC ids, which need not be the kernel's numbers of its CPUs. */
static void test_apic_ids(void **state)
{
	vp_guest_cpus cpus = {0};
	struct opened opened;
	bool unsettled;
	uint64_t area;

	built_kernel(&guest, BUILT_OLD);
	memcpy(&area, guest.image + AT_PER_CPU, sizeof(area));
	put32(built_at(&guest, area + PERCPU_APICID), 6);
	open_kernel(&opened);
	expect_no_error(vp_guest_cpus_find(&opened.kernel, &cpus, &unsettled));
	assert_int_equal(cpus.count, 1);
	assert_int_equal(cpus.at[0].cpu, 0);
	assert_int_equal(cpus.at[0].vcpu, 6);
	vp_vec_deinit(&cpus);
	close_guest(&opened);
}

static void test_threads(void **state)
{
	struct vp_guest_task task;
	struct opened opened;

	built_kernel(&guest, BUILT_NEW);
	uint64_t thread = built_object(&guest, BUILT_TASK, 16);
	built_task(&guest, thread, 300, 301, built_mm(&guest), "worker");
	open_kernel(&opened);
	assert_true(vp_guest_task_read(&opened.kernel, thread, &task));
	assert_int_equal(task.tgid, 300);
	assert_int_equal(task.tid, 301);
	close_guest(&opened);
}

/* Gives process 1 page tables of its own: two, of which the second is for user space. */
static uint64_t built_own_tables(void)
{
	uint64_t tables = built_object(&guest, 2 * VP_GUEST_PAGE, 2 * VP_GUEST_PAGE), init, mm;

	memcpy(&init, guest.image + AT_INIT_TASK + guest.pack.at.task_tasks, sizeof(init));
	init -= guest.pack.at.task_tasks;
	memcpy(&mm, built_at(&guest, init + guest.pack.at.task_mm), sizeof(mm));
	built_put64(&guest, mm + guest.pack.at.mm_pgd, tables);
	memcpy(built_at(&guest, tables), guest.low + BUILT_CR3, VP_GUEST_PAGE);
	built_put64(&guest, tables + 8, 0x5000 | 7);
	built_put64(&guest, tables + VP_GUEST_PAGE + 8, 0x5000 | 0x67);
	return tables;
}

static void test_page_table_isolation(void **state)
{
	struct opened opened;

	built_kernel(&guest, BUILT_OLD);
	uint64_t tables = built_own_tables();
	open_kernel(&opened);
	expect_no_error(vp_guest_kernel_check(&opened.kernel));
	assert_true(vp_guest_kernel_isolates(&opened.kernel));
	close_guest(&opened);
	/* What follows the tables are others. */
	built_put64(&guest, tables + VP_GUEST_PAGE + 16, 0x6000 | 7);
	open_kernel(&opened);
	assert_false(vp_guest_kernel_isolates(&opened.kernel));
	close_guest(&opened);
}

/* Page tables without the kernel are not those of process 1. */
static void test_tables_without_kernel(void **state)
{
	struct opened opened;

	built_kernel(&guest, BUILT_OLD);
	built_put64(&guest, built_own_tables() + 8 * 511, 0);
	open_kernel(&opened);
	expect_error(vp_guest_kernel_check(&opened.kernel), "do not map the kernel");
	close_guest(&opened);
}

/* A text that goes over the end of a page. */
static void test_text_over_pages(void **state)
{
	char text[32];
	struct opened opened;

	built_kernel(&guest, BUILT_OLD);
	uint64_t address =
	    built_object(&guest, 2 * VP_GUEST_PAGE, VP_GUEST_PAGE) + VP_GUEST_PAGE - 3;
	strcpy(built_at(&guest, address), "abcdefgh");
	open_kernel(&opened);
	assert_true(vp_guest_view_string(&opened.kernel.view, address, text, sizeof(text)));
	assert_string_equal(text, "abcdefgh");
	assert_false(
	    vp_guest_view_string(&opened.kernel.view, address, text, 8)); /* its end is not there */
	close_guest(&opened);
}

static void test_no_kernel(void **state)
{
	struct opened opened;

	memset(&guest, 0, sizeof(guest));
	open_guest(&opened);
	expect_error(find_kernel(&opened, false, NULL), "no Linux kernel");
	close_guest(&opened);
}

static void test_pack_text(void **state)
{
	struct vp_buffer text = {0};
	struct vp_kernel_pack again;
	struct opened opened;

	built_kernel(&guest, BUILT_OLD);
	open_kernel(&opened);
	vp_kernel_pack_write(&opened.kernel.pack, &text);
	expect_no_error(vp_kernel_pack_parse("x", text.bytes, text.size, &again));
	assert_memory_equal(&again.at, &opened.kernel.pack.at, sizeof(again.at));
	assert_memory_equal(&again.symbol, &opened.kernel.pack.symbol, sizeof(again.symbol));
	assert_int_equal(again.hash, opened.kernel.pack.hash);
	expect_error(vp_kernel_pack_parse("x", text.bytes, text.size - 8, &again), "'x'");
	text.bytes[0] = 'V';
	expect_error(vp_kernel_pack_parse("x", text.bytes, text.size, &again), "in line 1");
	static const char bad[] = "vperf-pack 6\nmember task_struct.pid fffffff0\nend 2\n";
	expect_error(vp_kernel_pack_parse("x", bad, strlen(bad), &again), "line 2");
	vp_buffer_deinit(&text);
	close_guest(&opened);
}

/* A pack serves the kernel it was made of, and is not used for another, whatever it claims. */
static void test_pack_cached(void **state)
{
	vp_kernel_packs packs = {0};
	struct opened opened;

	built_kernel(&guest, BUILT_OLD);
	open_kernel(&opened);
	assert_int_equal(opened.kernel.route, VP_PACK_READ);
	vp_vec_push(&packs, opened.kernel.pack);
	close_guest(&opened);

	open_guest(&opened);
	expect_no_error(find_kernel(&opened, false, &packs));
	assert_int_equal(opened.kernel.route, VP_PACK_CACHED);
	expect_no_error(vp_guest_kernel_check(&opened.kernel));
	close_guest(&opened);

	packs.at[0].build_id.bytes[0] ^= 1; /* of another kernel */
	open_guest(&opened);
	expect_no_error(find_kernel(&opened, false, &packs));
	assert_int_equal(opened.kernel.route, VP_PACK_READ);
	close_guest(&opened);
	packs.at[0].build_id.bytes[0] ^= 1;

	guest.image[AT_BTF + 100] ^= 1; /* the same build-id, other contents */
	open_guest(&opened);
	expect_no_error(find_kernel(&opened, false, &packs));
	assert_int_equal(opened.kernel.route, VP_PACK_READ);
	close_guest(&opened);
	vp_vec_deinit(&packs);
}

/* Places that are not those of the kernel: the pack is rejected, whatever it is. */
static void test_pack_wrong(void **state)
{
	struct opened opened;
	uint32_t *places[] = {&opened.kernel.pack.at.task_pid,
			      &opened.kernel.pack.at.task_tgid,
			      &opened.kernel.pack.at.task_comm,
			      &opened.kernel.pack.at.task_mm,
			      &opened.kernel.pack.at.task_tasks,
			      &opened.kernel.pack.at.mm_pgd,
			      &opened.kernel.pack.symbol.init_task.offset};

	built_kernel(&guest, BUILT_OLD);
	open_kernel(&opened);
	for (size_t i = 0; i < VP_ARRAY_SIZE(places); i++) {
		*places[i] += 8;
		expect_error(vp_guest_kernel_check(&opened.kernel), "does not match");
		*places[i] -= 8;
	}
	expect_no_error(vp_guest_kernel_check(&opened.kernel));
	close_guest(&opened);
}

static void test_tasks(void **state)
{
	struct seen seen = {0};
	struct opened opened;
	bool damaged;

	built_kernel(&guest, BUILT_NEW);
	built_process(&guest, 2, 0, "kthreadd");
	built_process(&guest, 300, built_mm(&guest), "work");
	built_process(&guest, 301, built_mm(&guest), "\n\xc3\xa9");
	open_kernel(&opened);
	vp_guest_tasks_each(&opened.kernel, keep_task, &seen, &damaged);
	assert_false(damaged);
	assert_int_equal(seen.count, 4);
	assert_int_equal(seen.tasks[1].mm, 0);
	assert_string_equal(seen.tasks[2].comm, "work");
	assert_int_equal(seen.tasks[2].tgid, 300);
	close_guest(&opened);
}

/* Lists that bite their own tail, lead nowhere, or to what is no task. */
static void test_tasks_lies(void **state)
{
	const uint64_t nowhere[] = {0, 0x1234, BUILT_DIRECT + BUILT_LOW + 0x10000,
				    0xffffc90000000000, UINT64_MAX};

	for (size_t i = 0; i <= VP_ARRAY_SIZE(nowhere) + 2; i++) {
		struct seen seen = {0};
		struct opened opened;
		bool damaged;
		built_kernel(&guest, BUILT_OLD);
		uint64_t second = built_process(&guest, 2, 0, "second");
		uint64_t third = built_process(&guest, 3, 0, "third");
		uint32_t link = guest.pack.at.task_tasks;
		if (i < VP_ARRAY_SIZE(nowhere))
			built_put64(&guest, third + link, nowhere[i]);
		else if (i == VP_ARRAY_SIZE(nowhere))
			built_put64(&guest, third + link, second + link);
		else if (i == VP_ARRAY_SIZE(nowhere) + 1) /* a thread of no process */
			put32(built_at(&guest, third + guest.pack.at.task_tgid), 0);
		else
			memset(built_at(&guest, third + guest.pack.at.task_comm), 'x', 16);
		open_kernel(&opened);
		vp_guest_tasks_each(&opened.kernel, keep_task, &seen, &damaged);
		assert_true(damaged);
		assert_true(seen.count <= 3);
		close_guest(&opened);
	}
}

/* Without a maple tree: the list of mappings. */
static void test_mapping_list(void **state)
{
	struct seen seen = {0};
	struct opened opened;

	built_kernel(&guest, BUILT_OLD);
	uint64_t mm = built_mm(&guest);
	uint64_t first = built_vma(&guest, 0x400000, 0x401000, 1, 0x1000);
	uint64_t second = built_vma(&guest, 0x500000, 0x502000, 0, 0);
	built_put64(&guest, mm + guest.pack.at.mm_mmap, first);
	built_put64(&guest, first + guest.pack.at.vma_next, second);
	open_kernel(&opened);
	opened.kernel.pack.at.mm_maple_root = VP_PACK_NONE;
	assert_true(vp_guest_mappings_each(&opened.kernel, mm, keep_mapping, &seen));
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.mappings[0].pgoff, 0x1000);
	assert_int_equal(seen.mappings[1].end, 0x502000);
	close_guest(&opened);

	built_put64(&guest, first + guest.pack.at.vma_flags, 3); /* not executable */
	open_kernel(&opened);
	opened.kernel.pack.at.mm_maple_root = VP_PACK_NONE;
	seen.count = 0;
	assert_true(vp_guest_mappings_each(&opened.kernel, mm, keep_mapping, &seen));
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.mappings[0].end, 0x502000);
	close_guest(&opened);
	built_put64(&guest, first + guest.pack.at.vma_flags, 5);

	built_put64(&guest, second + guest.pack.at.vma_next, first); /* a ring */
	open_kernel(&opened);
	opened.kernel.pack.at.mm_maple_root = VP_PACK_NONE;
	seen.count = 0;
	assert_false(vp_guest_mappings_each(&opened.kernel, mm, keep_mapping, &seen));
	close_guest(&opened);
}

/* A maple node: (last address, entry) for each slot, the rest not in use. */
static uint64_t maple_node(unsigned type, const uint64_t (*slots)[2], size_t count)
{
	uint64_t node = built_object(&guest, 256, 256);
	size_t slot = type == 3 ? 80 : 128, pivots = type == 3 ? 9 : 15;

	for (size_t i = 0; i < count; i++) {
		if (i < pivots)
			built_put64(&guest, node + 8 + 8 * i, slots[i][0]);
		built_put64(&guest, node + slot + 8 * i, slots[i][1]);
	}
	return node | type << 3 | 4;
}

enum { LEAF = 1, RANGE = 2, ARANGE = 3, ROOT = 2 };

static void test_maple_tree(void **state)
{
	struct seen seen = {0};
	struct opened opened;

	built_kernel(&guest, BUILT_NEW);
	uint64_t mm = built_mm(&guest);
	uint64_t a = built_vma(&guest, 0x400000, 0x401000, 0, 0);
	uint64_t b = built_vma(&guest, 0x500000, 0x502000, 0, 0);
	uint64_t c = built_vma(&guest, 0x7ff000000000, 0x7ff000001000, 0, 0);
	const uint64_t low[][2] = {
	    {0x3fffff, 0}, {0x400fff, a}, {0x4fffff, 0}, {0x501fff, b}, {0x6fffffffffff, 0}};
	/* Behind its last slot a node has what was in it before. */
	const uint64_t high[][2] = {
	    {0x7fefffffffff, 0}, {0x7ff000000fff, c}, {UINT64_MAX, 0}, {UINT64_MAX, a}};
	const uint64_t both[][2] = {{0x6fffffffffff, maple_node(LEAF, low, 5)},
				    {UINT64_MAX, maple_node(LEAF, high, 4)}};
	uint64_t root = maple_node(ARANGE, both, 2) | ROOT;
	built_put64(&guest, mm + guest.pack.at.mm_maple_root, root);
	open_kernel(&opened);
	assert_true(vp_guest_mappings_each(&opened.kernel, mm, keep_mapping, &seen));
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.mappings[0].start, 0x400000);
	assert_int_equal(seen.mappings[2].start, 0x7ff000000000);
	close_guest(&opened);

	built_put64(&guest, mm + guest.pack.at.mm_maple_root, a); /* one mapping, no node */
	open_kernel(&opened);
	seen.count = 0;
	assert_true(vp_guest_mappings_each(&opened.kernel, mm, keep_mapping, &seen));
	assert_int_equal(seen.count, 1);
	close_guest(&opened);
}

/* All slots of a node are in use: the last one has no pivot. */
static void test_full_maple_node(void **state)
{
	uint64_t slots[16][2], vmas[2];
	struct seen seen = {0};
	struct opened opened;

	built_kernel(&guest, BUILT_NEW);
	uint64_t mm = built_mm(&guest);
	for (unsigned i = 0; i < 16; i++) {
		slots[i][0] = 0x400fff + 0x1000 * i;
		slots[i][1] = 0;
	}
	vmas[0] = built_vma(&guest, 0x40e000, 0x40f000, 0, 0);
	vmas[1] = built_vma(&guest, 0x40f000, 0x410000, 0, 0);
	slots[14][1] = vmas[0];
	slots[15][1] = vmas[1];
	slots[15][0] = UINT64_MAX;
	uint64_t root = maple_node(LEAF, (const uint64_t(*)[2])slots, 16) | ROOT;
	built_put64(&guest, mm + guest.pack.at.mm_maple_root, root);
	open_kernel(&opened);
	assert_true(vp_guest_mappings_each(&opened.kernel, mm, keep_mapping, &seen));
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.mappings[0].start, 0x40e000);
	assert_int_equal(seen.mappings[1].start, 0x40f000);
	close_guest(&opened);
}

/* Trees that contain themselves, have pivots in disorder, unknown types, or no memory. */
static void test_maple_lies(void **state)
{
	for (int lie = 0; lie < 5; lie++) {
		struct seen seen = {0};
		struct opened opened;
		built_kernel(&guest, BUILT_NEW);
		uint64_t mm = built_mm(&guest), root;
		const uint64_t disorder[][2] = {{0x5000, 0}, {0x4000, 0}, {UINT64_MAX, 0}};
		uint64_t self = (BUILT_DIRECT + built_align(guest.free, 256)) | RANGE << 3 | 4;
		uint64_t all[16][2];
		for (unsigned i = 0; i < 16; i++) {
			all[i][0] = 0x1000 * (i + 1);
			all[i][1] = self;
		}
		if (lie == 0)
			root = maple_node(RANGE, (const uint64_t(*)[2])all, 16);
		else if (lie == 1)
			root = maple_node(LEAF, disorder, 3);
		else
			root = lie == 2   ? BUILT_DIRECT + 0x5000 + (9 << 3)
			       : lie == 3 ? BUILT_DIRECT + BUILT_LOW + 0x100000 + (LEAF << 3)
					  : UINT64_MAX & ~1ULL;
		built_put64(&guest, mm + guest.pack.at.mm_maple_root, root | ROOT);
		open_kernel(&opened);
		assert_false(vp_guest_mappings_each(&opened.kernel, mm, keep_mapping, &seen));
		assert_int_equal(seen.count, 0);
		close_guest(&opened);
	}
}

/* Answers of a worker to these requests, in one text. */
static const char *work(struct opened *opened, const struct vp_buffer *packs, size_t n_packs,
			const char *requests, struct vp_buffer *answers)
{
	int channel[2];
	ssize_t got;
	struct vp_guest_worker_options options = {.memory = &opened->snapshot.memory,
						  .vcpus = opened->snapshot.vcpus.at,
						  .n_vcpus = opened->snapshot.vcpus.count,
						  .packs = packs,
						  .n_packs = n_packs,
						  .seed = 7,
						  .dump = -1};

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, channel), 0);
	assert_int_equal(vp_fd_write_all(channel[0], requests, strlen(requests)), 0);
	shutdown(channel[0], SHUT_WR);
	options.channel = channel[1];
	vp_guest_worker_run(&options);
	close(channel[1]);
	answers->size = 0;
	while ((got = read(channel[0], vp_buffer_extend(answers, 65536), 65536)) > 0)
		answers->size -= 65536 - (size_t)got;
	answers->size -= 65536;
	close(channel[0]);
	return vp_buffer_text(answers);
}

static void test_worker(void **state)
{
	struct vp_buffer answers = {0}, pack = {0};
	struct opened opened;

	built_kernel(&guest, BUILT_OLD);
	open_kernel(&opened);
	const char *text =
	    work(&opened, NULL, 0, "tasks\nfind\ntasks\ncheck\nwhat\ndump 1\n", &answers);
	assert_non_null(
	    strstr(text, "error the%20kernel%20has%20not%20been%20found%20yet\n.\nkernel "));
	assert_non_null(strstr(text, "\ncpu 0 0 "));
	assert_non_null(strstr(text, "\ntask 1 1000 init\n.\n.\nerror unknown%20request\n"));
	assert_non_null(strstr(text, "error no%20output"));

	/* A pack that was tampered with is dropped, and the kernel is read. */
	opened.kernel.pack.at.task_comm += 8;
	vp_kernel_pack_write(&opened.kernel.pack, &pack);
	text = work(&opened, &pack, 1, "find\ntasks\n", &answers);
	assert_non_null(strstr(text, "dropped the%20kernel%20pack%20does%20not%20match"));
	assert_non_null(strstr(text, "\ntask 1 1000 init\n"));
	opened.kernel.pack.at.task_comm -= 8;

	/* One that is to blame for what is missing, or that lacks something itself, is too. */
	uint32_t page_offset_base = opened.kernel.pack.symbol.page_offset_base.offset;
	const uint32_t wrong[] = {page_offset_base - 8, VP_PACK_NONE};
	for (size_t i = 0; i < VP_ARRAY_SIZE(wrong); i++) {
		opened.kernel.pack.symbol.page_offset_base.offset = wrong[i];
		pack.size = 0;
		vp_kernel_pack_write(&opened.kernel.pack, &pack);
		text = work(&opened, &pack, 1, "find\ntasks\n", &answers);
		assert_null(strstr(text, "\nlacks"));
		assert_non_null(strstr(text, "\ntask 1 1000 init\n"));
	}
	vp_buffer_deinit(&pack);
	vp_buffer_deinit(&answers);
	close_guest(&opened);
}

/* Without registers it scans, says where the kernel's banner is, and takes that as a hint; while
 * nothing is found it says how far it is, and at the end that there is nothing. */
static void test_worker_scans(void **state)
{
	struct vp_buffer answers = {0}, requests = {0};
	struct opened opened;

	built_kernel(&guest, BUILT_OLD);
	open_guest(&opened);
	const char *text = work(&opened, NULL, 0, "find scan\ntasks\n", &answers);
	assert_non_null(strstr(text, " 0 1 0 ")); /* not cached, scanned, not derived */
	assert_non_null(strstr(text, "\nbanner 200200\n"));
	assert_non_null(strstr(text, "\ntask 1 1000 init\n"));
	text = work(&opened, NULL, 0, "find scan banner 200200\nfind banner zz\n", &answers);
	assert_non_null(strstr(text, "\nbanner 200200\n"));
	text = work(&opened, NULL, 0, "find what\n", &answers);
	assert_string_equal(text, "error unknown%20request\n.\n");
	close_guest(&opened);

	/* A kernel whose tasks are none is left behind. */
	memset(guest.image + AT_INIT_TASK, 0, BUILT_TASK / 4);
	open_guest(&opened);
	/* Each answer takes a time, not an amount of memory: how many it takes is the machine's. */
	for (int i = 0; i < 100; i++)
		vp_buffer_string(&requests, "find scan\n");
	text = work(&opened, NULL, 0, vp_buffer_text(&requests), &answers);
	assert_memory_equal(text, "searching ", 10);
	assert_non_null(strstr(text, "\n.\nerror "));
	close_guest(&opened);
	vp_buffer_deinit(&requests);
	vp_buffer_deinit(&answers);
}

/* The slots can be told anew: without any, nothing can be read. */
static void test_worker_memory(void **state)
{
	struct vp_buffer answers = {0}, requests = {0};
	struct opened opened;

	built_kernel(&guest, BUILT_OLD);
	open_kernel(&opened);
	vp_buffer_string(&requests, "find\nmemory\ncheck\n");
	vp_vec_each (&opened.snapshot.memory.slots, slot)
		vp_buffer_printf(&requests, "memory %llx %llx %llx\n",
				 (unsigned long long)slot->gpa, (unsigned long long)slot->size,
				 (unsigned long long)slot->hva);
	vp_buffer_string(&requests, "memory what\ntasks\n");
	const char *text = work(&opened, NULL, 0, vp_buffer_text(&requests), &answers);
	assert_non_null(strstr(text, "\n.\nerror the%20kernel%20pack%20does%20not%20match"));
	assert_non_null(strstr(text, "\n.\ntask 1 1000 init\n.\n"));
	vp_buffer_deinit(&requests);
	vp_buffer_deinit(&answers);
	close_guest(&opened);
}

/* As where a page of a large read is missing: page by page it goes. */
static bool read_pages_only(void *context, uint64_t hva, void *bytes, size_t size)
{
	const struct vp_guest_snapshot *snapshot = context;

	if (size > 4096 || hva > snapshot->size || size > snapshot->size - hva)
		return false;
	memcpy(bytes, snapshot->bytes + hva, size);
	return true;
}

/* The tables end within a page: nothing is written behind them. */
static void test_tables_by_page(void **state)
{
	enum { ROOM = 8 << 20, MARK = 0x5a };
	struct vp_buffer whole = {0}, paged = {0};
	struct vp_kallsyms tables;
	struct opened opened;

	built_kernel(&guest, BUILT_OLD);
	open_kernel(&opened);
	assert_true(vp_guest_kernel_tables(&opened.kernel, &whole, &tables));
	assert_true(whole.size > 4096 && whole.size % 4096 && whole.size < ROOM);
	memset(vp_buffer_extend(&paged, ROOM), MARK, ROOM);
	opened.snapshot.memory.read = read_pages_only;
	assert_true(vp_guest_kernel_tables(&opened.kernel, &paged, &tables));
	assert_int_equal(paged.size, whole.size);
	assert_memory_equal(paged.bytes, whole.bytes, whole.size);
	for (size_t i = paged.size; i < ROOM; i++)
		assert_int_equal(paged.bytes[i], MARK);
	vp_buffer_deinit(&whole);
	vp_buffer_deinit(&paged);
	close_guest(&opened);
}

/* Without BTF the tasks cannot be told, but the kernel's symbols can. */
static void test_no_btf(void **state)
{
	struct vp_guest_dump *dump = vp_guest_dump_new();
	struct opened opened;
	size_t processes;
	struct seen seen = {0};
	bool damaged;

	built_kernel(&guest, BUILT_OLD);
	memset(guest.image + AT_BTF, 0, guest.btf_size);
	open_kernel(&opened);
	assert_non_null(strstr(opened.kernel.lacks, "CONFIG_DEBUG_INFO_BTF"));
	expect_error(vp_guest_kernel_check(&opened.kernel), "does not provide");
	vp_guest_tasks_each(&opened.kernel, keep_task, &seen, &damaged);
	assert_true(damaged);
	VP_AUTO_CLOSE int fd = memfd_create("maps", MFD_CLOEXEC);
	vp_guest_dump_keep(dump, &opened.kernel);
	expect_no_error(vp_guest_dump_write(dump, &opened.kernel, fd, true, &processes));
	assert_int_equal(processes, 0);
	assert_true(lseek(fd, 0, SEEK_END) > 20 * BUILT_SYMBOLS);
	vp_guest_dump_free(dump);
	close_guest(&opened);
}

/* A guest with the eight tasks and more that a kernel has when it is up, without BTF. */
static void build_without_btf(enum built_layout layout)
{
	built_kernel(&guest, layout);
	for (uint32_t i = 2; i < 10; i++)
		built_process(&guest, i, 0, "kthread");
	built_process(&guest, 300, built_mm(&guest), "work");
	memset(guest.image + AT_BTF, 0, guest.btf_size);
}

/* What is needed of tasks can be worked out; it is what the BTF says, and it is kept in packs. */
static void test_derived(void **state)
{
	const enum built_layout layouts[] = {BUILT_OLD, BUILT_NEW, BUILT_PLACE};

	for (size_t i = 0; i < VP_ARRAY_SIZE(layouts); i++) {
		const struct vp_kernel_pack *pack;
		struct vp_buffer text = {0};
		struct vp_kernel_pack again;
		struct opened opened;
		build_without_btf(layouts[i]);
		open_kernel(&opened);
		pack = &opened.kernel.pack;
		assert_null(opened.kernel.lacks);
		assert_true(pack->derived);
		assert_int_equal(pack->at.task_pid, guest.pack.at.task_pid);
		assert_int_equal(pack->at.task_tgid, guest.pack.at.task_tgid);
		assert_int_equal(pack->at.task_comm, guest.pack.at.task_comm);
		assert_int_equal(pack->at.task_mm, guest.pack.at.task_mm);
		assert_int_equal(pack->at.task_tasks, guest.pack.at.task_tasks);
		assert_int_equal(pack->at.mm_pgd, guest.pack.at.mm_pgd);
		expect_no_error(vp_guest_kernel_check(&opened.kernel));
		vp_kernel_pack_write(pack, &text);
		expect_no_error(vp_kernel_pack_parse("x", text.bytes, text.size, &again));
		assert_true(again.derived);
		vp_buffer_deinit(&text);
		close_guest(&opened);
	}
}

/* Two places that would fit, or too few tasks to tell: nothing is believed. */
static void test_derived_doubt(void **state)
{
	enum { SECOND_NUMBERS, SECOND_NAME, TWICE_THE_SAME, WRONG_TABLES, NOT_A_RING, DOUBTS };

	for (int doubt = 0; doubt < DOUBTS; doubt++) {
		struct opened opened;
		build_without_btf(BUILT_OLD);
		const uint64_t idle = BUILT_TEXT + AT_INIT_TASK;
		uint64_t link = guest.pack.at.task_tasks, task = idle, next;
		for (unsigned i = 0; i < 10; i++) {
			memcpy(&next, built_at(&guest, task + link), sizeof(next));
			task = next - link;
			char *ids = built_at(&guest, task + guest.pack.at.task_pid);
			if (doubt == SECOND_NUMBERS)
				memcpy(built_at(&guest, task + 400), ids, 8);
		}
		/* `task` is the process of user space. */
		uint64_t mm;
		memcpy(&mm, built_at(&guest, task + guest.pack.at.task_mm), sizeof(mm));
		if (doubt == SECOND_NAME)
			strcpy(built_at(&guest, idle + 400), "swapper/0");
		else if (doubt == TWICE_THE_SAME)
			built_put64(&guest, task + guest.pack.at.task_pid, 0x500000005);
		else if (doubt == WRONG_TABLES)
			built_put64(&guest, mm + guest.pack.at.mm_pgd, BUILT_DIRECT + 0x3000);
		else if (doubt == NOT_A_RING)
			built_put64(&guest, task + link, task + link);
		open_kernel(&opened);
		assert_non_null(opened.kernel.lacks);
		assert_false(opened.kernel.pack.derived);
		close_guest(&opened);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_snapshot_malformed),
	    cmocka_unit_test(test_memory_bounds),
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_memory_changes),
	    cmocka_unit_test(test_page_walk),
	    cmocka_unit_test(test_kernel_found),
	    cmocka_unit_test(test_current_task_is_none),
	    cmocka_unit_test(test_copy_of_holes),
	    cmocka_unit_test(test_swapped_out),
	    cmocka_unit_test(test_apic_ids),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_page_table_isolation),
	    cmocka_unit_test(test_tables_without_kernel),
	    cmocka_unit_test(test_no_kernel),
	    cmocka_unit_test(test_pack_text),
	    cmocka_unit_test(test_pack_cached),
	    cmocka_unit_test(test_pack_wrong),
	    cmocka_unit_test(test_tasks),
	    cmocka_unit_test(test_tasks_lies),
	    cmocka_unit_test(test_mapping_list),
	    cmocka_unit_test(test_maple_tree),
	    cmocka_unit_test(test_maple_lies),
	    cmocka_unit_test(test_full_maple_node),
	    cmocka_unit_test(test_worker),
	    cmocka_unit_test(test_worker_scans),
	    cmocka_unit_test(test_worker_memory),
	    cmocka_unit_test(test_tables_by_page),
	    cmocka_unit_test(test_no_btf),
	    cmocka_unit_test(test_derived),
	    cmocka_unit_test(test_derived_doubt),
	    cmocka_unit_test(test_text_over_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
