/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of a built guest's process, unwound by tables in its page cache. */
#include "guest_files.h"

#include "opened_guest.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "guestreader/unwinder.h"
#include "guestreader/worker.h"

enum {
	TGID = 5,
	START = 0x400000, /* of the program, whose file is mapped from its begin on */
	STACK = 0x600000, /* a large page of user space, at the begin of memory */
	NOTE = 0x600,
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
static bool with_build_id;

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

static void put_note(void)
{
	static const char note[] = "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\xab\xcd\xef\1";

	memcpy(file_bytes + NOTE, note, sizeof(note) - 1);
	put_phdr(2, PT_NOTE, NOTE, sizeof(note) - 1);
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
				   .e_phnum = with_build_id ? 3 : 2};
	uint32_t at = FRAME, fdes[2];

	memset(file_bytes, 0, sizeof(file_bytes));
	memcpy(file_bytes, &header, sizeof(header));
	file_bytes[HEADER - 1] = ends; /* its first page identifies it */
	put_phdr(0, PT_LOAD, 0, sizeof(file_bytes));
	if (with_build_id)
		put_note();
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

static uint64_t task, program_file, program_vma;
static uint64_t stack_entry, code_entry; /* of the page table, as offsets in memory */

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
	uint64_t mm;
	memcpy(&mm, built_at(&guest, task + guest.pack.at.task_mm), sizeof(mm));
	memcpy(&program_vma, built_at(&guest, mm + guest.pack.at.mm_maple_root),
	       sizeof(program_vma));
	built_put64(&guest, program_vma + guest.pack.at.vma_pgoff, 0);
	uint64_t pdpt = built_object(&guest, PAGE, PAGE) - BUILT_DIRECT;
	uint64_t pd = built_object(&guest, PAGE, PAGE) - BUILT_DIRECT;
	put64(guest.low + BUILT_CR3, pdpt | PRESENT_USER);
	put64(guest.low + pdpt, pd | PRESENT_USER);
	stack_entry = pd + 8 * (STACK >> 21);
	code_entry = pd + 8 * (START >> 21);
	put64(guest.low + stack_entry, 0 | LARGE | PRESENT_USER);
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
	job = job_at(SECOND, 4096);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES);
	assert_int_equal(job.needed, 16);
	job = job_at(SECOND, 4096); /* by what is kept */
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES);
	assert_int_equal(job.needed, 16);
	/* At the function's first instruction the return address is at RSP. */
	job.stack.registers[16] = START + INNER;
	job.stack.registers[7] += 8;
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.count, 2);
	assert_int_equal(job.ips[1], START + OUTER + 0x80);
	vp_guest_unwinder_free(unwinder);
	close_guest(&opened);
}

/* Opens the guest, whose outer frame is beyond the copy, and unwinds. */
static void unwind_short_copy(struct vp_guest_unwinder *unwinder, struct opened *ret)
{
	struct vp_stack_job job;

	build_guest(true);
	put64(guest.low + 0x108, START + OUTER + 0x80);
	open_kernel(ret);
	job = job_at(SECOND, 8);
	vp_guest_unwinder_run(unwinder, &ret->kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES | VP_CHAIN_READ_LATER);
	assert_int_equal(job.needed, 16);
}

/* What is beyond the copy is read from memory, if it is there. */
static void test_short_copy(void **state)
{
	struct vp_guest_unwinder *unwinder = vp_guest_unwinder_new();
	struct vp_stack_job job;
	struct opened opened;

	(void)state;
	unwind_short_copy(unwinder, &opened);
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

/* A process that has ended before its last stacks are unwound: outer frames are those of a stack
 * before. */
static void test_ended_process(void **state)
{
	struct vp_guest_unwinder *unwinder = vp_guest_unwinder_new();
	struct vp_stack_job job;
	struct opened opened;

	(void)state;
	unwind_short_copy(unwinder, &opened);
	close_guest(&opened);
	put64(guest.low + stack_entry, 0);
	open_kernel(&opened);
	job = job_at(SECOND, 8);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES | VP_CHAIN_READ_LATER);
	/* Another thread's stack was never read. */
	job = job_at(SECOND, 8);
	job.stack.task += 64;
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.end, VP_CHAIN_UNREADABLE);
	vp_guest_unwinder_free(unwinder);
	close_guest(&opened);
}

/* Code without a table and without a frame pointer, called by the inner function. */
static void unwind_guess(struct vp_guest_unwinder *unwinder, struct opened *opened,
			 uint32_t expected, uint32_t flags)
{
	const uint64_t words[] = {0x1234, START + INNER + 0x80, 0x5678, START + OUTER + 0x80};
	struct vp_stack_job job = job_at(SECOND, sizeof(words));

	open_kernel(opened);
	memcpy(job.stack.stack, words, sizeof(words));
	job.stack.registers[16] = START + OUTER + 0x200;
	vp_guest_unwinder_run(unwinder, &opened->kernel, NULL, &job);
	assert_int_equal(job.count, expected);
	assert_int_equal(job.flags, flags);
	assert_int_equal(job.end, expected == 3 ? VP_CHAIN_WHOLE : VP_CHAIN_NO_TABLE);
	if (expected < 3)
		return;
	assert_int_equal(job.ips[1], (START + INNER + 0x80) | VP_CHAIN_GUESSED_IP);
	assert_int_equal(job.ips[2], START + OUTER + 0x80);
}

/* The caller is guessed if it follows a call, also after the process has ended. */
static void test_guess(void **state)
{
	enum { PRESENT_USER = 5, LARGE = 0x80 };
	struct vp_guest_unwinder *unwinder = vp_guest_unwinder_new();
	char *before_return;
	struct opened opened;

	(void)state;
	build_guest(true);
	put64(guest.low + code_entry, 0 | LARGE | PRESENT_USER);
	before_return = guest.low + INNER + 0x80 - 2;
	unwind_guess(unwinder, &opened, 1, 0);
	close_guest(&opened);
	memcpy(before_return, "\xff\xd0", 2); /* call *%rax */
	unwind_guess(unwinder, &opened, 3, VP_CHAIN_BY_TABLES | VP_CHAIN_GUESSED);
	close_guest(&opened);
	put64(guest.low + code_entry, 0);
	put64(guest.low + stack_entry, 0);
	unwind_guess(unwinder, &opened, 3, VP_CHAIN_BY_TABLES | VP_CHAIN_GUESSED);
	close_guest(&opened);
	vp_guest_unwinder_free(unwinder);
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

/* The host's copy of the file; to be closed. */
static int host_copy(void)
{
	char path[] = "/tmp/vperf-copy-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(vp_fd_write_all(fd, file_bytes, sizeof(file_bytes)), 0);
	return fd;
}

static void expect_no_table(struct vp_guest_unwinder *unwinder, const struct opened *opened)
{
	struct vp_stack_job job = job_at(SECOND, 16);

	vp_guest_unwinder_run(unwinder, &opened->kernel, NULL, &job);
	assert_int_equal(job.end, VP_CHAIN_NO_TABLE);
}

/* Pages that the guest's page cache does not have are read from a copy of the file, only if that
 * has the same build-id. */
static void expect_copy_used(void)
{
	struct vp_guest_unwinder *unwinder = vp_guest_unwinder_new();
	const struct vp_build_id id = vp_build_id_of("\xab\xcd\xef\1", 4),
				 other = vp_build_id_of("\xab\xcd\xef\2", 4);
	struct vp_stack_job job = job_at(SECOND, 16);
	struct vp_buffer answer = {0};
	struct opened opened;

	build_guest(false);
	open_kernel(&opened);
	int copy = host_copy();
	expect_no_table(unwinder, &opened);
	vp_guest_unwinder_take_file(unwinder, &id, copy); /* not asked for yet */
	expect_no_table(unwinder, &opened);
	vp_guest_unwinder_list(unwinder, &answer);
	assert_string_equal(vp_buffer_text(&answer), "file abcdef01 /prog\n");
	answer.size = 0;
	vp_guest_unwinder_list(unwinder, &answer); /* once */
	assert_int_equal(answer.size, 0);
	vp_guest_unwinder_take_file(unwinder, &other, copy);
	expect_no_table(unwinder, &opened);
	/* A file that has changed. */
	assert_int_equal(pwrite(copy, "x", 1, NOTE + 16), 1);
	vp_guest_unwinder_take_file(unwinder, &id, copy);
	expect_no_table(unwinder, &opened);
	assert_int_equal(pwrite(copy, "\xab", 1, NOTE + 16), 1);
	vp_guest_unwinder_take_file(unwinder, &id, copy);
	job = job_at(SECOND, 16);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES);
	close(copy);
	vp_buffer_deinit(&answer);
	vp_guest_unwinder_free(unwinder);
	close_guest(&opened);
}

static void test_copy(void **state)
{
	(void)state;
	with_build_id = true;
	expect_copy_used();
	header_at = LATER_HEADER;
	expect_copy_used();
	header_at = HEADER;
	with_build_id = false;
}

static void send_file(int channel, const char *request, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)request, strlen(request)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	assert_int_equal(sendmsg(channel, &message, 0), strlen(request));
}

/* Requests with descriptors, several of them waiting, to a worker. */
static void test_passed_copy(void **state)
{
	static struct vp_stack_jobs jobs;
	struct vp_guest_worker_options options = {.dump = -1, .seed = 7, .jobs = &jobs};
	struct vp_buffer requests = {0};
	struct opened opened;
	int channel[2];

	(void)state;
	with_build_id = true;
	build_guest(false);
	open_kernel(&opened);
	int copy = host_copy(), wrong = open("/dev/null", O_RDONLY | O_CLOEXEC);
	options.memory = &opened.snapshot.memory;
	options.vcpus = opened.snapshot.vcpus.at;
	options.n_vcpus = opened.snapshot.vcpus.count;
	jobs.at[0] = job_at(SECOND, 16);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, channel), 0);
	options.channel = channel[1];
	/* The worker receives the first descriptor with a part of its line, then both lines. */
	vp_buffer_string(&requests, "find\nunwind 1 1\ncheck\n");
	while (requests.size < 240)
		vp_buffer_string(&requests, "unknown\n");
	assert_int_equal(vp_fd_write_all(channel[0], requests.bytes, requests.size), 0);
	vp_buffer_deinit(&requests);
	send_file(channel[0], "file abcdef02\n", wrong);
	send_file(channel[0], "file abcdef01\n", copy);
	assert_int_equal(vp_fd_write_all(channel[0], "unwind 2 1\n", 11), 0);
	shutdown(channel[0], SHUT_WR);
	vp_guest_worker_run(&options);
	assert_int_equal(jobs.done, 2);
	expect_chain(&jobs.at[0], VP_CHAIN_BY_TABLES);
	close(channel[0]);
	close(channel[1]);
	close(copy);
	close(wrong);
	close_guest(&opened);
	with_build_id = false;
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

static void map_program(struct opened *opened, uint64_t start)
{
	close_guest(opened);
	built_put64(&guest, program_vma + guest.pack.at.vma_start, start);
	built_put64(&guest, program_vma + guest.pack.at.vma_end, start + sizeof(file_bytes));
	open_kernel(opened);
}

static bool is_unwound(struct vp_guest_unwinder *unwinder, const struct opened *opened,
		       uint64_t time)
{
	struct vp_stack_job job = job_at(time, 16);

	vp_guest_unwinder_run(unwinder, &opened->kernel, NULL, &job);
	return job.count == 2 && job.end == VP_CHAIN_WHOLE;
}

/* A process that has just begun is read again 2 ms later; one that lacks a mapping for long, every
 * 100 ms. */
static void test_late_mapping(void **state)
{
	enum { MS = 1000000 };
	struct vp_guest_unwinder *unwinder = vp_guest_unwinder_new();
	struct opened opened;
	uint64_t now = SECOND, mapped;

	(void)state;
	build_guest(true);
	open_kernel(&opened);
	map_program(&opened, START + (16 << 20));
	assert_false(is_unwound(unwinder, &opened, now));
	map_program(&opened, START);
	assert_false(is_unwound(unwinder, &opened, now + MS));
	assert_true(is_unwound(unwinder, &opened, now + 3 * MS));
	vp_guest_unwinder_free(unwinder);

	unwinder = vp_guest_unwinder_new();
	map_program(&opened, START + (16 << 20));
	for (; now < SECOND + 1600 * MS; now += MS)
		assert_false(is_unwound(unwinder, &opened, now));
	/* Reads were after 3, 8, 17, 34, 67, 132 and 233 ms, and every 101 after that: the next one
	 * is not within 5 ms. */
	map_program(&opened, START);
	mapped = now;
	while (!is_unwound(unwinder, &opened, now) && now < 4 * SECOND)
		now += MS;
	assert_in_range(now - mapped, 5 * MS, 101 * MS);
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
	for (uint32_t at = 0; at < VP_CHAIN_LONGEST * 16; at += 8)
		put64(guest.low + at, START + INNER + 0x10);
	open_kernel(&opened);
	do {
		job = job_at(SECOND, 0);
		job.stack.registers[7] = job.stack.from = STACK;
		vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
		assert_true(job.count <= VP_CHAIN_LONGEST);
		deep += job.end == VP_CHAIN_TOO_DEEP;
	} while (job.end == VP_CHAIN_TOO_DEEP && ++runs < 100000);
	/* 32 Mi units for stacks of 255 rows with 64 each, and a page with 1000. */
	assert_in_range(deep, 10, (32 << 20) / ((VP_CHAIN_LONGEST - 1) * 64 + 1000) + 1);
	job = job_at(2 * SECOND, 0);
	job.stack.registers[7] = job.stack.from = STACK;
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.end, VP_CHAIN_TOO_DEEP);
	vp_guest_unwinder_free(unwinder);
	close_guest(&opened);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_chain),        cmocka_unit_test(test_guess),
	    cmocka_unit_test(test_short_copy),   cmocka_unit_test(test_ended_process),
	    cmocka_unit_test(test_missing_page), cmocka_unit_test(test_no_process),
	    cmocka_unit_test(test_bounds),       cmocka_unit_test(test_reused_file),
	    cmocka_unit_test(test_late_mapping), cmocka_unit_test(test_copy),
	    cmocka_unit_test(test_passed_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
