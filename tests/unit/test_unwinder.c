/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of a built guest's process, unwound by tables in its page cache. */
#include "unwound_program.h"

#include "opened_guest.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "guestreader/unwinder.h"
#include "guestreader/worker.h"

#define SECOND 1000000000ULL

static void build_guest(bool whole)
{
	build_unwound(&guest, whole);
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
	job = unwound_job(SECOND, 4096);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES);
	assert_int_equal(job.needed, 16);
	job = unwound_job(SECOND, 4096); /* by what is kept */
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
	job = unwound_job(SECOND, 8);
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
	job = unwound_job(SECOND, 8);
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
	job = unwound_job(SECOND, 8);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES | VP_CHAIN_READ_LATER);
	/* Another thread's stack was never read. */
	job = unwound_job(SECOND, 8);
	job.stack.task += 64;
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.end, VP_CHAIN_UNREADABLE);
	vp_guest_unwinder_free(unwinder);
	close_guest(&opened);
}

/* Unwinds a stack whose outer function is beyond the copy. */
static void expect_reading(struct vp_guest_unwinder *unwinder, enum vp_chain_end end)
{
	struct vp_stack_job job = unwound_job(SECOND, 8);
	struct opened opened;

	open_kernel(&opened);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.end, end);
	close_guest(&opened);
}

/* Page tables of a process that has ended may be those of another one. */
static void test_other_memory(void **state)
{
	struct vp_guest_unwinder *unwinder = vp_guest_unwinder_new();
	char *mm;
	uint64_t mm_before;
	struct opened opened;

	(void)state;
	build_guest(true);
	put64(guest.low + 0x108, START + OUTER + 0x80);
	open_kernel(&opened);
	struct vp_stack_job job = unwound_job(SECOND, 4096);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES); /* its mappings are known now, its stack is not */
	close_guest(&opened);
	mm = built_at(&guest, task + guest.pack.at.task_mm);
	memcpy(&mm_before, mm, sizeof(mm_before));
	put64(mm, 0);
	expect_reading(unwinder, VP_CHAIN_UNREADABLE);
	put64(mm, mm_before);
	put32(built_at(&guest, task + guest.pack.at.task_tgid), TGID + 1);
	expect_reading(unwinder, VP_CHAIN_UNREADABLE);
	put32(built_at(&guest, task + guest.pack.at.task_tgid), TGID);
	expect_reading(unwinder, VP_CHAIN_WHOLE);
	vp_guest_unwinder_free(unwinder);
}

/* Code without a table and without a frame pointer, called by the inner function. */
static void unwind_guess(struct vp_guest_unwinder *unwinder, struct opened *opened,
			 uint32_t expected, uint32_t flags)
{
	const uint64_t words[] = {0x1234, START + INNER + 0x80, 0x5678, START + OUTER + 0x80};
	struct vp_stack_job job = unwound_job(SECOND, sizeof(words));

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
	job = unwound_job(SECOND, 16);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.count, 1);
	assert_int_equal(job.end, VP_CHAIN_NO_TABLE);
	assert_int_equal(job.flags, 0);
	close_guest(&opened);

	build_guest(true);
	open_kernel(&opened);
	job = unwound_job(SECOND + SECOND / 2, 16); /* too soon */
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.end, VP_CHAIN_NO_TABLE);
	job = unwound_job(3 * SECOND, 16);
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
	struct vp_stack_job job = unwound_job(SECOND, 16);

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
	struct vp_stack_job job = unwound_job(SECOND, 16);
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
	job = unwound_job(SECOND, 16);
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
	jobs.at[0] = unwound_job(SECOND, 16);
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
	job = unwound_job(SECOND, 16);
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	expect_chain(&job, VP_CHAIN_BY_TABLES);
	close_guest(&opened);

	unwound_file(true);
	const struct page_at pages[] = {{0, built_page(&guest, file_bytes, PAGE)},
					{1, built_page(&guest, file_bytes + PAGE, PAGE)}};
	built_page_cache(&guest, program_file, built_tree(&guest, pages, 2), sizeof(file_bytes));
	open_kernel(&opened);
	job = unwound_job(2 * SECOND, 16);
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
	struct vp_stack_job job = unwound_job(time, 16);

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
	job = unwound_job(SECOND, 16);
	job.stack.guest_pid = TGID + 1;
	vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
	assert_int_equal(job.count, 0);
	job = unwound_job(SECOND, 16);
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
		job = unwound_job(SECOND, 0);
		job.stack.registers[7] = job.stack.from = STACK;
		vp_guest_unwinder_run(unwinder, &opened.kernel, NULL, &job);
		assert_true(job.count <= VP_CHAIN_LONGEST);
		deep += job.end == VP_CHAIN_TOO_DEEP;
	} while (job.end == VP_CHAIN_TOO_DEEP && ++runs < 100000);
	/* 32 Mi units for stacks of 255 rows with 64 each, and a page with 1000. */
	assert_in_range(deep, 10, (32 << 20) / ((VP_CHAIN_LONGEST - 1) * 64 + 1000) + 1);
	job = unwound_job(2 * SECOND, 0);
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
	    cmocka_unit_test(test_other_memory), cmocka_unit_test(test_missing_page),
	    cmocka_unit_test(test_no_process),   cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_reused_file),  cmocka_unit_test(test_late_mapping),
	    cmocka_unit_test(test_copy),         cmocka_unit_test(test_passed_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
