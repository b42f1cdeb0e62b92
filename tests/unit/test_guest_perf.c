/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's perf buffers, in memory that the test fills in the kernel's place, and its vCPUs. */
#include "unit.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "guest/cpus.h"
#include "guest/watch.h"
#include "perf_open.h"

enum { RING_BYTES = 512 * 1024, PAGE = 4096 };

struct vp_error *__real_vp_file_read(const char *path, size_t most, struct vp_buffer *ret);
struct vp_error *__wrap_vp_file_read(const char *path, size_t most, struct vp_buffer *ret);

static int opened;    /* events */
static int lacks;     /* the kernel has no build-ids in mappings */
static int refuses;   /* errno for all events */
static int seen_task; /* the last event's */
static const char *cpuinfo;

/* An event is a file of a buffer's size. */
static long open_event(const struct perf_event_attr *attr, const long *words)
{
	int pid = (int)words[1], cpu = (int)words[2];

	assert_int_equal(pid, -1);
	assert_true(attr->use_clockid && attr->clockid == CLOCK_MONOTONIC && attr->sample_id_all);
	errno = lacks && attr->build_id ? EINVAL : cpu ? ENODEV : refuses;
	if (errno)
		return -1;
	seen_task = attr->task;
	int fd = memfd_create("event", MFD_CLOEXEC);
	assert_false(ftruncate(fd, PAGE + RING_BYTES));
	opened++;
	return fd;
}

struct vp_error *__wrap_vp_file_read(const char *path, size_t most, struct vp_buffer *ret)
{
	if (!cpuinfo)
		return __real_vp_file_read(path, most, ret);
	assert_string_equal(path, "/proc/cpuinfo");
	vp_buffer_string(ret, cpuinfo);
	return NULL;
}

/* The buffer of a CPU as the kernel sees it. */
struct kernel {
	struct vp_perf_watch *watch;
	struct perf_event_mmap_page *page;
	char *data;
	uint64_t head;
};

static struct kernel kernel_of(bool lives)
{
	struct kernel kernel = {0};
	const int *fds;

	opened = 0;
	expect_no_error(vp_perf_open(lives, &kernel.watch));
	assert_int_equal(vp_perf_fds(kernel.watch, &fds), 1);
	assert_int_equal(opened, 1); /* the other CPUs are offline */
	assert_int_equal(seen_task, lives);
	void *memory = mmap(NULL, PAGE + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	kernel.page = memory;
	kernel.data = (char *)memory + PAGE;
	return kernel;
}

static void kernel_end(struct kernel *kernel)
{
	munmap(kernel->page, PAGE + RING_BYTES);
	vp_perf_close(kernel->watch);
}

/* A record with the time at its end, on 8 bytes. */
static void put(struct kernel *kernel, uint32_t type, uint16_t misc, const void *body, size_t size,
		uint64_t time)
{
	_Alignas(8) char record[8192] = {0};
	size_t padded = (size + 7) & ~(size_t)7;
	struct perf_event_header header = {
	    .type = type, .misc = misc, .size = (uint16_t)(sizeof(header) + padded + 8)};

	memcpy(record, &header, sizeof(header));
	memcpy(record + sizeof(header), body, size);
	memcpy(record + sizeof(header) + padded, &time, sizeof(time));
	for (size_t i = 0; i < header.size; i++)
		kernel->data[(kernel->head + i) % RING_BYTES] = record[i];
	kernel->head += header.size;
	kernel->page->data_head = kernel->head;
}

static void put_comm(struct kernel *kernel, uint32_t pid, uint32_t tid, const char *comm,
		     bool execs, uint64_t time)
{
	struct {
		uint32_t pid, tid;
		char comm[16];
	} body = {pid, tid, ""};

	strncpy(body.comm, comm, sizeof(body.comm) - 1);
	put(kernel, PERF_RECORD_COMM, execs ? PERF_RECORD_MISC_COMM_EXEC : 0, &body, sizeof(body),
	    time);
}

static void put_task(struct kernel *kernel, bool exits, uint32_t pid, uint32_t parent, uint32_t tid,
		     uint64_t time)
{
	struct {
		uint32_t pid, parent, tid, parent_tid;
		uint64_t time;
	} body = {pid, parent, tid, parent, time};

	put(kernel, exits ? PERF_RECORD_EXIT : PERF_RECORD_FORK, 0, &body, sizeof(body), time);
}

static void put_mmap(struct kernel *kernel, uint32_t pid, uint64_t start, uint64_t size,
		     const char *id, const char *path, uint64_t time)
{
	struct {
		uint32_t pid, tid;
		uint64_t start, size, pgoff;
		char file[24];
		uint32_t protection, flags;
		char path[64];
	} body = {.pid = pid, .tid = pid, .start = start, .size = size, .pgoff = 0x3000};

	if (id) {
		body.file[0] = (char)strlen(id);
		memcpy(body.file + 4, id, strlen(id));
	}
	strncpy(body.path, path, sizeof(body.path) - 1);
	put(kernel, PERF_RECORD_MMAP2, id ? 1 << 14 : 0, &body, sizeof(body), time);
}

static void test_processes(void **state)
{
	struct kernel kernel = kernel_of(true);
	struct vp_tracker tracker;

	vp_tracker_init(&tracker);
	put_task(&kernel, false, 10, 1, 10, 100);
	put_task(&kernel, false, 10, 10, 11, 110); /* a thread */
	put_comm(&kernel, 10, 10, "server", true, 120);
	put_comm(&kernel, 10, 11, "worker", false, 130);
	put_task(&kernel, true, 10, 1, 11, 140);
	vp_perf_drain(kernel.watch, &tracker);
	vp_tracker_apply(&tracker, 1000);
	uint32_t number = vp_tracker_space_of(&tracker, 10);
	assert_int_not_equal(number, VP_TRACKER_NONE); /* a thread's end is not the process's */
	assert_string_equal(tracker.spaces.at[number].comm, "server");
	assert_int_equal(tracker.spaces.at[number].start_ns, 120);
	put_comm(&kernel, 10, 10, "renamed", false, 150);
	vp_perf_drain(kernel.watch, &tracker);
	vp_tracker_apply(&tracker, 1000);
	assert_string_equal(tracker.spaces.at[number].comm, "renamed");
	assert_int_equal(tracker.spaces.count, 2);
	put_task(&kernel, true, 10, 1, 10, 160);
	vp_perf_drain(kernel.watch, &tracker);
	vp_tracker_apply(&tracker, 1000);
	assert_int_equal(tracker.spaces.at[number].end_ns, 160);
	assert_int_equal(kernel.page->data_tail, kernel.head);
	vp_tracker_deinit(&tracker);
	kernel_end(&kernel);
}

/* The BPF programs report process starts and exits, and perf names and mappings only. */
static void test_names_only(void **state)
{
	struct kernel kernel = kernel_of(false);
	struct vp_tracker tracker;

	vp_tracker_init(&tracker);
	put_task(&kernel, false, 10, 1, 10, 100);
	put_comm(&kernel, 11, 11, "other", true, 120);
	vp_perf_drain(kernel.watch, &tracker);
	assert_int_equal(tracker.pending.count, 1);
	assert_int_equal(tracker.pending.at[0].kind, VP_TRACKER_EXEC_BEGIN);
	vp_tracker_deinit(&tracker);
	kernel_end(&kernel);
}

static void test_mappings(void **state)
{
	struct kernel kernel = kernel_of(true);
	struct vp_tracker tracker;

	vp_tracker_init(&tracker);
	put_mmap(&kernel, 10, 0x400000, 0x2000, "0123456789abcdefghij", "/bin/first", 100);
	put_mmap(&kernel, UINT32_MAX, 0x500000, 0x1000, NULL, "[module]", 110);
	put_mmap(&kernel, 10, 0x600000, 0, NULL, "/bin/empty", 120);
	put_mmap(&kernel, 10, 0x700000, 0x1000, NULL, "/bin/second", 130);
	put_mmap(&kernel, 10, 0x800000, 0x1000, "0123456789abcdefghijk", "/bin/third", 140);
	vp_perf_drain(kernel.watch, &tracker);
	assert_int_equal(tracker.pending.count, 3);
	const struct vp_tracker_event *first = &tracker.pending.at[0];
	assert_true(first->kind == VP_TRACKER_MAP && first->tgid == 10 && first->time_ns == 100);
	assert_true(first->start == 0x400000 && first->end == 0x402000 && first->pgoff == 0x3000);
	const struct vp_tracker_image *image = &tracker.images.at[first->image];
	assert_string_equal(image->path, "/bin/first");
	assert_int_equal(image->build_id.size, 20);
	assert_memory_equal(image->build_id.bytes, "0123456789abcdefghij", 20);
	image = &tracker.images.at[tracker.pending.at[1].image];
	assert_string_equal(image->path, "/bin/second");
	assert_int_equal(image->build_id.size, 0);
	/* More bytes than there is room for. */
	assert_int_equal(tracker.images.at[tracker.pending.at[2].image].build_id.size, 0);
	vp_tracker_deinit(&tracker);
	kernel_end(&kernel);
}

/* Records go over the buffer's end; the kernel counts those for which there was no room. */
static void test_laps_and_losses(void **state)
{
	struct kernel kernel = kernel_of(true);
	struct vp_tracker tracker;
	const uint64_t lost[2] = {7, 5};
	unsigned records = 0;

	vp_tracker_init(&tracker);
	while (kernel.head < 2 * RING_BYTES + 1000) {
		for (int i = 0; i < 1000; i++, records++)
			put_mmap(&kernel, records, 0x1000, 0x1000, NULL, "/bin/x", records);
		vp_perf_drain(kernel.watch, &tracker);
	}
	assert_int_equal(tracker.pending.count, records);
	for (unsigned i = 0; i < records; i++)
		assert_true(tracker.pending.at[i].tgid == i && tracker.pending.at[i].time_ns == i);
	assert_int_equal(tracker.images.count, 1);
	assert_int_equal(vp_perf_lost(kernel.watch), 0);
	put(&kernel, PERF_RECORD_LOST, 0, lost, sizeof(lost), 1);
	put(&kernel, PERF_RECORD_LOST, 0, lost, sizeof(lost), 2);
	vp_perf_drain(kernel.watch, &tracker);
	assert_int_equal(vp_perf_lost(kernel.watch), 10);
	vp_tracker_deinit(&tracker);
	kernel_end(&kernel);
}

static void test_kernels(void **state)
{
	struct vp_perf_watch *watch;

	lacks = 1; /* Linux before 5.12 */
	struct kernel kernel = kernel_of(true);
	kernel_end(&kernel);
	lacks = 0;
	refuses = EACCES;
	expect_error(vp_perf_open(true, &watch), "cannot open a perf event on CPU 0");
	refuses = 0;
}

static uint32_t numbers[8][2];
static unsigned told;

static struct vp_error *take(void *context, uint32_t cpu, uint32_t vcpu)
{
	numbers[told][0] = cpu;
	numbers[told++][1] = vcpu;
	return context ? vp_error_new("enough") : NULL;
}

static void test_cpus(void **state)
{
	cpuinfo = "processor\t: 0\nflags\t\t: fpu\napicid\t\t: 4\ninitial apicid\t: 9\n\n"
		  "processor\t: 1\napicid\t\t: 6\n\nprocessor\t: 3\napicid\t\t: 7\n\n";
	told = 0;
	expect_no_error(vp_guest_cpus(take, NULL));
	const uint32_t expected[][2] = {{0, 4}, {1, 6}, {3, 7}};
	assert_int_equal(told, 3);
	assert_memory_equal(numbers, expected, sizeof(expected));
	/* Arm has no APIC. */
	cpuinfo = "processor\t: 0\nBogoMIPS\t: 50.00\n\nprocessor\t: 1\nBogoMIPS\t: 50.00\n";
	told = 0;
	expect_no_error(vp_guest_cpus(take, NULL));
	const uint32_t plain[][2] = {{0, 0}, {1, 1}};
	assert_int_equal(told, 2);
	assert_memory_equal(numbers, plain, sizeof(plain));
	told = 0;
	expect_error(vp_guest_cpus(take, &told), "enough");
	assert_int_equal(told, 1);
	cpuinfo = "";
	told = 0;
	expect_no_error(vp_guest_cpus(take, NULL));
	assert_int_equal(told, 0);
	cpuinfo = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_processes), cmocka_unit_test(test_names_only),
	    cmocka_unit_test(test_mappings),  cmocka_unit_test(test_laps_and_losses),
	    cmocka_unit_test(test_kernels),   cmocka_unit_test(test_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
