/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of a built guest's process, unwound by tables in its page cache. */
#include "guest_files.h"

#include "opened_guest.h"

#include <elf.h>

#include "guestreader/unwinder.h"

enum {
	TGID = 5,
	START = 0x400000,      /* of the program, whose file is mapped from its begin on */
	STACK = 0x600000,      /* a large page of user space, at the begin of memory */
	HEADER = 0x800,        /* of the unwind tables, in the file … */
	LATER_HEADER = 0x1400, /* … or in its second page */
	FRAME = 0x1000,
	INNER = 0x1800, /* functions: the first saves RBP … */
	OUTER = 0x1900, /* … the second one is nobody's callee */
	PAGE = 0x1000,
};
#define SECOND 1000000000ULL

static char file_bytes[2 * PAGE];
static uint32_t header_at = HEADER;

static void put_phdr(unsigned number, uint32_t type, uint64_t at, uint64_t size)
{
	const Elf64_Phdr segment = {.p_type = type,
				    .p_flags = PF_R | PF_X,
				    .p_offset = at,
				    .p_vaddr = at,
				    .p_filesz = size,
				    .p_memsz = size};

	memcpy(file_bytes + sizeof(Elf64_Ehdr) + number * sizeof(segment), &segment,
	       sizeof(segment));
}

static uint32_t put_rules(uint32_t at, const void *body, uint32_t size)
{
	put32(file_bytes + at, size);
	memcpy(file_bytes + at + 4, body, size);
	return at + 4 + size;
}

static uint32_t put_function(uint32_t at, uint32_t cie, uint32_t start, const char *rules,
			     uint32_t size)
{
	char body[64] = {0};
	uint32_t words[] = {at + 4 - cie, start - (at + 8), 0x100};

	memcpy(body, words, sizeof(words));
	memcpy(body + sizeof(words) + 1, rules, size); /* after the size of augmentation data: 0 */
	return put_rules(at, body, 32);
}

/* The file. `ends`: the inner function is nobody's callee either. */
static void build_file(bool ends)
{
	/* CFA is RSP + 8, RIP is at CFA - 8 */
	static const char cie[24] = "\0\0\0\0\1zR\0\1\x78\x10\1\x1b\x0c\7\x8\x90\1";
	/* after one byte: CFA is RSP + 16, RBP at CFA - 16; RIP is undefined */
	static const char inner[] = "\x41\x0e\x10\x86\2", outer[] = "\7\x10";
	const Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
				   .e_phoff = sizeof(header),
				   .e_phentsize = sizeof(Elf64_Phdr),
				   .e_phnum = 2};
	uint32_t at = FRAME, fdes[2];

	memset(file_bytes, 0, sizeof(file_bytes));
	memcpy(file_bytes, &header, sizeof(header));
	file_bytes[HEADER - 1] = ends; /* its first page identifies it */
	put_phdr(0, PT_LOAD, 0, sizeof(file_bytes));
	put_phdr(1, PT_GNU_EH_FRAME, header_at, 12 + 8 * 2);
	at = put_rules(at, cie, sizeof(cie));
	fdes[0] = at;
	at = ends ? put_function(at, FRAME, INNER, outer, sizeof(outer))
		  : put_function(at, FRAME, INNER, inner, sizeof(inner));
	fdes[1] = at;
	put_function(at, FRAME, OUTER, outer, sizeof(outer));
	memcpy(file_bytes + header_at, "\1\x1b\3\x3b", 4);
	put32(file_bytes + header_at + 4, FRAME - (header_at + 4));
	put32(file_bytes + header_at + 8, 2);
	for (uint32_t i = 0; i < 2; i++) {
		put32(file_bytes + header_at + 12 + 8 * i, (i ? OUTER : INNER) - header_at);
		put32(file_bytes + header_at + 16 + 8 * i, fdes[i] - header_at);
	}
}

static uint64_t task, program_file;

/* A guest with the program, whose second page is in the page cache or not. */
static void build_guest(bool whole)
{
	enum { PRESENT_USER = 5, LARGE = 0x80 };

	build_file(false);
	built_kernel(&guest, BUILT_NEW);
	struct root root = built_root(&guest);
	uint64_t dentry = built_dentry(&guest, root.dentry, "prog");
	program_file = built_file(&guest, dentry, root.mnt);
	const struct page_at pages[] = {{0, built_page(&guest, file_bytes, PAGE)},
					{1, built_page(&guest, file_bytes + PAGE, PAGE)}};
	built_page_cache(&guest, program_file, built_tree(&guest, pages, whole ? 2 : 1),
			 sizeof(file_bytes));
	task = built_program(&guest, &root, TGID, program_file);
	/* its mapping is from the file's begin on */
	uint64_t mm, vma;
	memcpy(&mm, built_at(&guest, task + guest.pack.at.task_mm), sizeof(mm));
	memcpy(&vma, built_at(&guest, mm + guest.pack.at.mm_maple_root), sizeof(vma));
	built_put64(&guest, vma + guest.pack.at.vma_pgoff, 0);
	uint64_t pdpt = built_object(&guest, PAGE, PAGE) - BUILT_DIRECT;
	uint64_t pd = built_object(&guest, PAGE, PAGE) - BUILT_DIRECT;
	put64(guest.low + BUILT_CR3, pdpt | PRESENT_USER);
	put64(guest.low + pdpt, pd | PRESENT_USER);
	put64(guest.low + pd + 8 * (STACK >> 21), 0 | LARGE | PRESENT_USER);
}

/* A stack where the inner function was called from the outer one, copied or not. */
static struct vp_stack_job job_at(uint64_t time, uint32_t copied)
{
	struct vp_stack_job job = {.stack = {.time = time,
					     .guest_pid = TGID,
					     .task = task,
					     .as_root = BUILT_CR3,
					     .known = 0x1ffff,
					     .from = STACK + 0x100,
					     .bytes = copied}};
	const uint64_t words[] = {0x1234, START + OUTER + 0x80};

	job.stack.registers[6] = 0x77;
	job.stack.registers[7] = STACK + 0x100;
	job.stack.registers[16] = START + INNER + 0x10;
	memcpy(job.stack.stack, words, copied < sizeof(words) ? copied : sizeof(words));
	return job;
}

static void expect_chain(const struct vp_stack_job *job, uint32_t flags)
{
	assert_int_equal(job->count, 2);
	assert_int_equal(job->ips[0], START + INNER + 0x10);
	assert_int_equal(job->ips[1], START + OUTER + 0x80);
	assert_int_equal(job->end, VP_CHAIN_WHOLE);
	assert_int_equal(job->flags, flags);
}

static void test_chain(void **state)
{
	struct vp_guest_unwinder *unwinder = vp_guest_unwinder_new();
	struct vp_stack_job job;
	struct opened opened;

	(void)state;
	build_guest(true);
	open_kernel(&opened);
	job = job_at(SECOND, 16);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES);
	job = job_at(SECOND, 16); /* by what is kept */
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES);
	/* At the function's first instruction the return address is at RSP. */
	job.stack.registers[16] = START + INNER;
	job.stack.registers[7] += 8;
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.count, 2);
	assert_int_equal(job.ips[1], START + OUTER + 0x80);
	vp_guest_unwinder_free(unwinder);
	close_guest(&opened);
}

/* What is beyond the copy is read from memory, if it is there. */
static void test_short_copy(void **state)
{
	struct vp_guest_unwinder *unwinder = vp_guest_unwinder_new();
	struct vp_stack_job job;
	struct opened opened;

	(void)state;
	build_guest(true);
	put64(guest.low + 0x108, START + OUTER + 0x80);
	open_kernel(&opened);
	job = job_at(SECOND, 8);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES | VP_CHAIN_READ_LATER);
	job = job_at(SECOND, 8);
	job.stack.from += 0x10000000; /* no memory */
	job.stack.registers[7] += 0x10000000;
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.count, 1);
	assert_int_equal(job.end, VP_CHAIN_UNREADABLE);
	job.stack.bytes = VP_USER_STACK_BYTES + 1; /* impossible */
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.count, 0);
	vp_guest_unwinder_free(unwinder);
	close_guest(&opened);
}

/* A page of the tables comes into the page cache later. */
static void expect_later_page(void)
{
	struct vp_guest_unwinder *unwinder = vp_guest_unwinder_new();
	struct vp_stack_job job;
	struct opened opened;

	build_guest(false);
	open_kernel(&opened);
	job = job_at(SECOND, 16);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.count, 1);
	assert_int_equal(job.end, VP_CHAIN_NO_TABLE);
	assert_int_equal(job.flags, 0);
	close_guest(&opened);

	build_guest(true);
	open_kernel(&opened);
	job = job_at(SECOND + SECOND / 2, 16); /* too soon */
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.end, VP_CHAIN_NO_TABLE);
	job = job_at(3 * SECOND, 16);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES);
	vp_guest_unwinder_free(unwinder);
	close_guest(&opened);
}

static void test_missing_page(void **state)
{
	(void)state;
	expect_later_page();
	/* The page has the header of the tables, too. */
	header_at = LATER_HEADER;
	expect_later_page();
	header_at = HEADER;
}

/* The process runs another program, whose struct file is where the first one's was. */
static void test_reused_file(void **state)
{
	struct vp_guest_unwinder *unwinder = vp_guest_unwinder_new();
	struct vp_stack_job job;
	struct opened opened;

	(void)state;
	build_guest(true);
	open_kernel(&opened);
	job = job_at(SECOND, 16);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES);
	close_guest(&opened);

	build_file(true);
	const struct page_at pages[] = {{0, built_page(&guest, file_bytes, PAGE)},
					{1, built_page(&guest, file_bytes + PAGE, PAGE)}};
	built_page_cache(&guest, program_file, built_tree(&guest, pages, 2), sizeof(file_bytes));
	open_kernel(&opened);
	job = job_at(2 * SECOND, 16);
	job.stack.as_root += 2 * PAGE;
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.count, 1);
	assert_int_equal(job.end, VP_CHAIN_WHOLE);
	vp_guest_unwinder_free(unwinder);
	close_guest(&opened);
}

/* A task that is not the process, or has ended. */
static void test_no_process(void **state)
{
	struct vp_guest_unwinder *unwinder = vp_guest_unwinder_new();
	struct vp_stack_job job;
	struct opened opened;

	(void)state;
	build_guest(true);
	open_kernel(&opened);
	job = job_at(SECOND, 16);
	job.stack.guest_pid = TGID + 1;
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.count, 0);
	job = job_at(SECOND, 16);
	job.stack.task = 8;
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.count, 0);
	vp_guest_unwinder_free(unwinder);
	close_guest(&opened);
}

/* Return addresses that go on for ever, all of them to be read from memory: the work of a second is
 * bounded, and the next second has its own. */
static void test_bounds(void **state)
{
	struct vp_guest_unwinder *unwinder = vp_guest_unwinder_new();
	struct vp_stack_job job;
	struct opened opened;
	unsigned deep = 0, runs = 0;

	(void)state;
	build_guest(true);
	for (uint32_t at = 0x100; at < 0x100 + 64 * 16; at += 8)
		put64(guest.low + at, START + INNER + 0x10);
	open_kernel(&opened);
	do {
		job = job_at(SECOND, 0);
		vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
		assert_true(job.count <= VP_CHAIN_FRAMES);
		deep += job.end == VP_CHAIN_TOO_DEEP;
	} while (job.end == VP_CHAIN_TOO_DEEP && ++runs < 100000);
	/* 32 Mi units for stacks of 63 rows with 64 each, and a page with 1000. */
	assert_in_range(deep, 10, (32 << 20) / (63 * 64 + 1000) + 1);
	job = job_at(2 * SECOND, 0);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.end, VP_CHAIN_TOO_DEEP);
	vp_guest_unwinder_free(unwinder);
	close_guest(&opened);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_chain),        cmocka_unit_test(test_short_copy),
	    cmocka_unit_test(test_missing_page), cmocka_unit_test(test_no_process),
	    cmocka_unit_test(test_bounds),       cmocka_unit_test(test_reused_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
