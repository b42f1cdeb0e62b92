/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the shim says of perf's events, with lent counters that the test makes. Their companions are
 * the kernel's own events.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "counters/counters_lent.h"
#include "preload/shim_events.h"

static struct vp_counters_lent_state lent;
static uint64_t children[VP_LENT_EVENTS]; /* of what the thread made */
static uint32_t live;
static bool is_gone, is_missed;
static unsigned attached;
static const char *const names[] = {"instructions:u", "cycles:u"};

int vp_counters_lent_attach(pid_t tid, bool inherits, struct vp_counters_lent **ret,
			    struct vperf_error *error)
{
	*ret = calloc(1, sizeof(**ret));
	assert_non_null(*ret);
	attached++;
	return VPERF_OK;
}

void vp_counters_lent_close(struct vp_counters_lent *counters)
{
	free(counters);
	attached--;
}

int vp_counters_lent_index(const struct vp_counters_lent *counters,
			   const struct vp_counters_event *event)
{
	struct vp_counters_event named;

	for (int i = 0; i < 2; i++)
		if (vp_counters_event_find(names[i], &named) &&
		    vp_counters_event_same(&named, event))
			return i;
	return -1;
}

int vp_counters_lent_read_state(const struct vp_counters_lent *counters,
				struct vp_counters_lent_state *ret)
{
	*ret = lent;
	return is_gone ? VPERF_E_LOST : VPERF_OK;
}

int vp_counters_lent_children(const struct vp_counters_lent *counters,
			      uint64_t counts[VP_LENT_EVENTS], uint32_t *ret)
{
	memcpy(counts, children, sizeof(children));
	*ret = live;
	return is_missed ? VPERF_E_LOST : VPERF_OK;
}

static void happen(uint64_t instructions, uint64_t cycles)
{
	lent.counts[0] += instructions;
	lent.counts[1] += cycles;
}

static struct perf_event_attr attr_of(uint64_t config, bool disabled, uint64_t format)
{
	return (struct perf_event_attr){.size = sizeof(struct perf_event_attr),
					.type = PERF_TYPE_HARDWARE,
					.config = config,
					.disabled = disabled,
					.exclude_kernel = 1,
					.read_format = format};
}

static int open_attr(const struct perf_event_attr *attr, int group)
{
	return vp_shim_open(attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC, ENOENT);
}

static int open_event(uint64_t config, bool disabled, uint64_t format, int group)
{
	struct perf_event_attr attr = attr_of(config, disabled, format);
	int fd = open_attr(&attr, group);

	if (fd == -EACCES || fd == -EPERM || fd == -ENOSYS)
		skip(); /* a container that may not count */
	assert_true(fd >= 0);
	return fd;
}

static void close_event(int fd)
{
	vp_shim_close(fd);
	assert_int_equal(close(fd), 0);
	assert_false(vp_shim_has(fd));
}

static uint64_t value_of(int fd)
{
	uint64_t value;

	assert_int_equal(vp_shim_read(fd, &value, sizeof(value)), sizeof(value));
	return value;
}

static int setup(void **state)
{
	lent = (struct vp_counters_lent_state){.counts = {1000, 5000}};
	memset(children, 0, sizeof(children));
	live = 0;
	is_gone = is_missed = false;
	return 0;
}

/* Only what happens while it is enabled, and from 0 after a reset. */
static void test_counts(void **state)
{
	int fd = open_event(PERF_COUNT_HW_INSTRUCTIONS, true, 0, -1);
	uint64_t byte = 0;

	assert_true(vp_shim_has(fd));
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	happen(7, 0);
	assert_int_equal(value_of(fd), 0);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	happen(30, 99);
	assert_int_equal(value_of(fd), 30);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	happen(500, 0);
	assert_int_equal(value_of(fd), 30);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_RESET, 0), 0);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	happen(4, 0);
	assert_int_equal(value_of(fd), 4);
	assert_int_equal(vp_shim_read(fd, &byte, 1), -ENOSPC);
	/* What goes past the shim finds no number. */
	assert_int_equal(read(fd, &byte, sizeof(byte)), -1);
	close_event(fd);
	assert_int_equal(attached, 0);
}

/* The members of a group count while their leader does, and are read as the kernel lays them out.
 */
static void test_group(void **state)
{
	const uint64_t format = PERF_FORMAT_GROUP | PERF_FORMAT_ID |
				PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	int leader = open_event(PERF_COUNT_HW_INSTRUCTIONS, true, format, -1);
	int member = open_event(PERF_COUNT_HW_CPU_CYCLES, false, format, leader);
	struct {
		uint64_t n, enabled, running;
		struct {
			uint64_t value, id;
		} events[2];
	} reading;
	uint64_t ids[2];

	assert_int_equal(attached, 1);
	happen(1, 1);
	assert_int_equal(vp_shim_ioctl(leader, PERF_EVENT_IOC_ENABLE, 0), 0);
	happen(20, 40);
	assert_int_equal(vp_shim_ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP), 0);
	happen(300, 300);
	assert_int_equal(vp_shim_ioctl(leader, PERF_EVENT_IOC_ID, (unsigned long)&ids[0]), 0);
	assert_int_equal(vp_shim_ioctl(member, PERF_EVENT_IOC_ID, (unsigned long)&ids[1]), 0);
	assert_int_equal(vp_shim_read(leader, &reading, sizeof(reading)), sizeof(reading));
	assert_int_equal(reading.n, 2);
	assert_int_equal(reading.enabled, reading.running);
	assert_true(reading.enabled > 0);
	assert_int_equal(reading.events[0].value, 20);
	assert_int_equal(reading.events[1].value, 40);
	assert_int_equal(reading.events[0].id, ids[0]);
	assert_int_equal(reading.events[1].id, ids[1]);
	assert_int_not_equal(ids[0], ids[1]);
	/* The flag disabled the member, too. Alone, it is on when it is enabled. */
	close_event(leader);
	assert_int_equal(vp_shim_ioctl(member, PERF_EVENT_IOC_ENABLE, 0), 0);
	happen(0, 2);
	assert_int_equal(vp_shim_read(member, &reading, sizeof(reading)), 5 * sizeof(uint64_t));
	assert_int_equal(reading.n, 1);
	assert_int_equal(reading.events[0].value, 42);
	close_event(member);
	assert_int_equal(attached, 0);
}

/* Counted from the first program on that the thread executes. */
static void test_exec(void **state)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_HW_INSTRUCTIONS, true, 0);
	struct perf_event_attr member = attr_of(PERF_COUNT_HW_CPU_CYCLES, false, 0);

	attr.enable_on_exec = 1;
	int fd = open_attr(&attr, -1);
	if (fd < 0)
		skip();
	int other = open_attr(&member, fd);
	assert_true(other >= 0);
	happen(100, 100);
	assert_int_equal(value_of(fd), 0);
	happen(11, 11);
	lent.executed = 2;
	memcpy(lent.at_exec, lent.counts, sizeof(lent.counts));
	happen(23, 24);
	assert_int_equal(value_of(fd), 23);
	assert_int_equal(value_of(other), 24);
	/* From the next one on: that is not kept. */
	assert_int_equal(open_attr(&attr, -1), -ENOENT);
	close_event(other);
	close_event(fd);
}

/* What a thread makes is counted with it if that is asked for, from then on. */
static void test_inherits(void **state)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_HW_INSTRUCTIONS, false, 0);
	uint64_t value;

	lent.n_children = 1; /* once before, and that has ended */
	children[0] = 700;
	attr.inherit = 1;
	int inherited = open_attr(&attr, -1);
	if (inherited < 0)
		skip();
	int own = open_event(PERF_COUNT_HW_INSTRUCTIONS, false, 0, -1);
	assert_int_equal(attached, 2);
	happen(5, 5);
	lent.n_children++;
	live = 1;
	children[0] += 40;
	assert_int_equal(value_of(inherited), 45);
	assert_int_equal(value_of(own), 5);
	/* The kernel would not count what is there already. */
	assert_int_equal(open_attr(&attr, -1), -ENOENT);
	assert_int_equal(vp_shim_ioctl(inherited, PERF_EVENT_IOC_DISABLE, 0), 0);
	children[0] += 1000;
	assert_int_equal(value_of(inherited), 45);
	is_missed = true;
	assert_int_equal(vp_shim_read(inherited, &value, sizeof(value)), 0);
	assert_int_equal(value_of(own), 5);
	close_event(inherited);
	close_event(own);
	assert_int_equal(attached, 0);
}

/* From the first program on, too; not if the thread has made something before it. */
static void test_inherits_from_exec(void **state)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_HW_INSTRUCTIONS, true, 0);
	uint64_t value;

	lent.n_children = lent.children_at_exec = 2;
	children[0] = 700;
	attr.inherit = attr.enable_on_exec = 1;
	int fd = open_attr(&attr, -1), early = open_attr(&attr, -1);
	if (fd < 0)
		skip();
	happen(100, 100);
	lent.executed = 1;
	memcpy(lent.at_exec, lent.counts, sizeof(lent.counts));
	happen(3, 3);
	lent.n_children++;
	children[0] += 20;
	assert_int_equal(value_of(fd), 23);
	lent.children_at_exec = 3;
	assert_int_equal(vp_shim_read(early, &value, sizeof(value)), 0);
	close_event(early);
	close_event(fd);
}

static int open_kernels(int group, bool disabled, uint64_t format)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_PAGE_FAULTS,
				       .disabled = disabled,
				       .exclude_kernel = 1,
				       .read_format = format};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, vp_shim_kernels_group(group),
			      PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		skip();
	vp_shim_note(fd, &attr, 0, -1, group);
	return fd;
}

static void touch_pages(void)
{
	size_t size = 16 * (size_t)getpagesize();
	volatile char *memory =
	    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	for (size_t at = 0; at < size; at += (size_t)getpagesize())
		memory[at] = 1;
	munmap((void *)memory, size);
}

struct two_events {
	uint64_t n;
	struct {
		uint64_t value, id;
	} events[2];
};

static void check_two(int leader, int of, unsigned lent_one)
{
	struct two_events reading;
	uint64_t id;

	assert_true(vp_shim_has(of));
	assert_int_equal(vp_shim_ioctl(leader, PERF_EVENT_IOC_ENABLE, 0), 0);
	happen(20, 40);
	touch_pages();
	assert_int_equal(vp_shim_ioctl(leader, PERF_EVENT_IOC_DISABLE, 0), 0);
	happen(300, 300);
	assert_int_equal(vp_shim_read(leader, &reading, sizeof(reading)), sizeof(reading));
	assert_int_equal(reading.n, 2);
	assert_int_equal(reading.events[lent_one].value, 20);
	assert_in_range(reading.events[1 - lent_one].value, 16, 1000);
	assert_int_equal(vp_shim_ioctl(of, PERF_EVENT_IOC_ID, (unsigned long)&id), 0);
	assert_int_equal(reading.events[1].id, id);
	assert_int_equal(vp_shim_read(of, &reading, sizeof(reading)), sizeof(reading));
	assert_int_equal(reading.events[lent_one].value, 20);
}

/* Lent events and the kernel's in one group, whichever leads. */
static void test_joins_kernels(void **state)
{
	const uint64_t format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	int leader = open_event(PERF_COUNT_HW_INSTRUCTIONS, true, format, -1);
	int member = open_kernels(leader, false, format);
	uint64_t words[8];

	check_two(leader, member, 0);
	vp_shim_close(leader);
	close(leader);
	/* Alone, it is the kernel's. */
	assert_false(vp_shim_has(member));
	assert_int_equal(read(member, words, sizeof(words)), 3 * sizeof(uint64_t));
	vp_shim_close(member);
	close(member);

	leader = open_kernels(-1, true, format);
	assert_false(vp_shim_has(leader));
	member = open_event(PERF_COUNT_HW_INSTRUCTIONS, false, format, leader);
	check_two(leader, member, 1);
	assert_true(vp_shim_has(leader));
	close_event(member);
	assert_false(vp_shim_has(leader));
	/* A descriptor that means something else by now. */
	member = open_event(PERF_COUNT_HW_INSTRUCTIONS, false, format, leader);
	int other = open("/dev/null", O_RDONLY);
	assert_int_equal(dup2(other, leader), leader);
	assert_false(vp_shim_has(leader));
	close(other);
	vp_shim_close(leader);
	close(leader);
	close_event(member);
	assert_int_equal(attached, 0);
}

/* Samples would have the counts of the lent ones' companions. */
static void test_samples_of_group(void **state)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 100000,
				       .sample_type = PERF_SAMPLE_IP};
	int leader = open_event(PERF_COUNT_HW_INSTRUCTIONS, true, 0, -1);

	assert_true(vp_shim_may_join(&attr, leader));
	attr.sample_type |= PERF_SAMPLE_READ;
	assert_false(vp_shim_may_join(&attr, leader));
	assert_true(vp_shim_may_join(&attr, -1));
	close_event(leader);
}

/* What cannot be counted any more ends, as the kernel says it. */
static void test_lost(void **state)
{
	uint64_t value;
	int fd = open_event(PERF_COUNT_HW_INSTRUCTIONS, false, 0, -1);

	happen(5, 5);
	assert_int_equal(value_of(fd), 5);
	is_gone = true;
	assert_int_equal(vp_shim_read(fd, &value, sizeof(value)), 0);
	is_gone = false;
	assert_int_equal(vp_shim_read(fd, &value, sizeof(value)), 0);
	close_event(fd);
}

/* What is not lent, or not so, gets the kernel's own refusal. */
static void test_refuses(void **state)
{
	struct perf_event_attr attr = attr_of(PERF_COUNT_HW_BRANCH_MISSES, false, 0);
	int fd = open_event(PERF_COUNT_HW_INSTRUCTIONS, true, 0, -1);

	assert_int_equal(open_attr(&attr, -1), -ENOENT);
	attr = attr_of(PERF_COUNT_HW_INSTRUCTIONS, false, 0);
	attr.exclude_kernel = 0; /* only user space is lent */
	assert_int_equal(open_attr(&attr, -1), -ENOENT);
	attr.exclude_kernel = 1;
	attr.sample_period = 1000;
	assert_int_equal(open_attr(&attr, -1), -ENOENT);
	attr.sample_period = 0;
	assert_int_equal(vp_shim_open(&attr, -1, 0, -1, 0, ENOENT), -ENOENT);
	assert_int_equal(vp_shim_open(&attr, 0, 0, -1, 0, ENOENT), -ENOENT); /* on one CPU */
	attr.size = 8;
	assert_int_equal(open_attr(&attr, -1), -ENOENT);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1), -EINVAL);
	assert_int_equal(vp_shim_ioctl(fd, 0, 0), -ENOTTY);
	close_event(fd);
	assert_int_equal(attached, 0);
}

static void test_page(void **state)
{
	int fd = open_event(PERF_COUNT_HW_INSTRUCTIONS, true, 0, -1);
	size_t page = (size_t)getpagesize();
	void *mapped = NULL;

	assert_int_equal(vp_shim_mmap(fd, NULL, 4 * page, PROT_READ, MAP_SHARED, 0, &mapped),
			 -EINVAL);
	assert_int_equal(vp_shim_mmap(fd, NULL, page, PROT_READ, MAP_SHARED, 0, &mapped), 0);
	const struct perf_event_mmap_page *head = mapped;
	assert_true(head->cap_bit0_is_deprecated && !head->cap_user_rdpmc && !head->index);
	munmap(mapped, page);
	assert_int_equal(vp_shim_mmap(fd, NULL, 5 * page, PROT_READ, MAP_SHARED, 0, &mapped), 0);
	head = mapped;
	assert_int_equal(head->data_size, 4 * page);
	munmap(mapped, 5 * page);
	close_event(fd);
}

/* Another file is put in an event's place behind the shim's back. */
static void test_replaced(void **state)
{
	int fd = open_event(PERF_COUNT_HW_INSTRUCTIONS, true, 0, -1);

	assert_int_equal(dup2(STDIN_FILENO, fd), fd);
	assert_false(vp_shim_has(fd));
	assert_int_equal(attached, 1);
	close_event(fd);
	assert_int_equal(attached, 0);
}

enum { PERIOD = 10000, SAMPLE_PAGES = 8 };
static volatile unsigned signals;
static volatile int told_fd;

static void on_overflow(int number, siginfo_t *info, void *context)
{
	signals++;
	told_fd = info->si_fd;
}

static struct perf_event_mmap_page *map_samples(int fd, unsigned pages)
{
	size_t size = (size_t)getpagesize() * (1 + pages);
	void *mapped;

	assert_int_equal(
	    vp_shim_mmap(fd, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, 0, &mapped), 0);
	return mapped;
}

static void unmap_samples(struct perf_event_mmap_page *buffer, unsigned pages)
{
	munmap(buffer, (size_t)getpagesize() * (1 + pages));
}

/* Where its signals go, as PAPI says it. */
static int open_sampling(void)
{
	struct sigaction action = {.sa_sigaction = on_overflow, .sa_flags = SA_SIGINFO};
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = gettid()};
	struct perf_event_attr attr = attr_of(PERF_COUNT_HW_INSTRUCTIONS, true, 0);

	attr.sample_period = PERIOD;
	attr.sample_type = PERF_SAMPLE_IP;
	attr.wakeup_events = 1;
	int fd = open_attr(&attr, -1);
	assert_true(fd >= 0);
	sigaction(SIGRTMIN + 4, &action, NULL);
	/* PAPI tries whether it counts, before it says that. */
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	assert_int_equal(vp_shim_fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK), 0);
	assert_int_equal(vp_shim_fcntl(fd, F_SETOWN_EX, (unsigned long)&owner), 0);
	assert_int_equal(vp_shim_fcntl(fd, F_SETSIG, SIGRTMIN + 4), 0);
	assert_int_equal(vp_shim_fcntl(fd, F_SETOWN, 1), -EINVAL);
	signals = 0;
	return fd;
}

static void happen_often(unsigned times)
{
	for (unsigned i = 0; i < times; i++) {
		lent.counts[0]++;
		lent.counts[1]++;
		__asm__ volatile("" ::: "memory");
	}
}

/* A signal and a sample for each period; and with a limit, no more than that. */
static void test_sampling(void **state)
{
	enum { COUNT = 200 * PERIOD + 5, FIRST = COUNT / 2 + PERIOD / 2 };
	int fd = open_sampling();
	struct perf_event_mmap_page *buffer = map_samples(fd, SAMPLE_PAGES);
	uint64_t count;

	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	happen_often(FIRST); /* and half a period, which counts for the next one */
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	happen_often(COUNT);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	happen_often(COUNT - FIRST);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	assert_int_equal(vp_shim_read(fd, &count, sizeof(count)), sizeof(count));
	assert_int_equal(count, COUNT);
	assert_int_equal(signals, COUNT / PERIOD);
	assert_int_equal(told_fd, fd);
	assert_int_equal(buffer->data_head, signals * 16);
	const struct perf_event_header *first = (void *)((char *)buffer + getpagesize());
	assert_int_equal(first->type, PERF_RECORD_SAMPLE);
	assert_int_equal(first->size, 16);
	assert_true(*(const uint64_t *)(first + 1) != 0);

	/* Another one of the group counts as long. */
	signals = 0;
	int other = open_event(PERF_COUNT_HW_CPU_CYCLES, false, 0, fd);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_RESET, 0), 0);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1), 0);
	happen_often(COUNT);
	assert_int_equal(signals, 1);
	assert_int_equal(vp_shim_read(fd, &count, sizeof(count)), sizeof(count));
	assert_in_range(count, PERIOD - 5, COUNT - 1);
	uint64_t others;
	assert_int_equal(vp_shim_read(other, &others, sizeof(others)), sizeof(others));
	assert_in_range(others, count - 1, count + 1);

	/* It may be found out only at the end. */
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_REFRESH, 1), 0);
	happen(2 * PERIOD, 2 * PERIOD);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	assert_int_equal(signals, 2);
	assert_int_equal(vp_shim_read(fd, &count, sizeof(count)), sizeof(count));
	assert_int_equal(vp_shim_read(other, &others, sizeof(others)), sizeof(others));
	assert_in_range(others, count - 2, count + 2);
	close_event(other);
	unmap_samples(buffer, SAMPLE_PAGES);
	close_event(fd);
	assert_int_equal(attached, 0);
}

/* In a full buffer the oldest samples stay, as with perf. The next map of it is empty. */
static void test_full_buffer(void **state)
{
	const uint64_t size = (uint64_t)getpagesize();
	int fd = open_sampling();
	struct perf_event_mmap_page *buffer = map_samples(fd, 1);
	struct perf_event_header *first = (void *)((char *)buffer + size);

	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	happen_often(PERIOD + 5);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	assert_int_equal(buffer->data_head, 16);
	first->misc = 0x1234; /* a mark */
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	happen_often((unsigned)(size / 16 + 20) * PERIOD);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	assert_int_equal(signals, size / 16 + 21);
	assert_int_equal(buffer->data_head, size);
	assert_int_equal(first->misc, 0x1234);
	unmap_samples(buffer, 1);
	buffer = map_samples(fd, 1);
	assert_int_equal(buffer->data_head, 0);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), 0);
	happen_often(PERIOD + 5);
	assert_int_equal(vp_shim_ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	assert_int_equal(buffer->data_head, 16);
	first = (void *)((char *)buffer + size);
	assert_int_equal(first->type, PERF_RECORD_SAMPLE);
	unmap_samples(buffer, 1);
	close_event(fd);
}

static void test_codes(void **state)
{
	struct vp_counters_event instructions, raw = {.type = PERF_TYPE_RAW};

	assert_true(vp_counters_event_find("instructions", &instructions));
#ifdef __x86_64__
	raw.config = 0xc0;
#else
	raw.config = 0x08;
#endif
	assert_true(vp_counters_event_same(&instructions, &raw));
	raw.exclude_kernel = true;
	assert_false(vp_counters_event_same(&instructions, &raw));
	raw = (struct vp_counters_event){.type = PERF_TYPE_RAW, .config = 0x12345};
	assert_false(vp_counters_event_same(&instructions, &raw));
}

/* A child of vfork() that closes its descriptors has its parent's memory: the events stay. */
static void test_child_of_vfork_closes(void **state)
{
	int fd = open_event(PERF_COUNT_HW_INSTRUCTIONS, false, 0, -1);
	pid_t child = vfork();

	if (!child) {
		vp_shim_close(fd);
		_exit(vp_shim_ioctl(fd, PERF_EVENT_IOC_RESET, 0) != -EBADF);
	}
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(vp_shim_has(fd));
	happen(30, 0);
	assert_int_equal(value_of(fd), 30);
	close_event(fd);
}

static int read_in_handler;
static volatile sig_atomic_t handled;

static void read_counter(int signal)
{
	uint64_t value;

	handled += vp_shim_read(read_in_handler, &value, sizeof(value)) == sizeof(value);
}

static void raise_within_fork(void)
{
	raise(SIGUSR1);
}

/* A signal whose handler reads a counter, as PAPI's for overflows does, while fork() is under way:
 * between the shim's part and the kernel's. A handler that has to wait for the lock waits for ever,
 * with all signals blocked: then the test's time limit ends it. */
static void test_signal_during_fork(void **state)
{
	struct sigaction action = {.sa_handler = read_counter}, before;

	read_in_handler = open_event(PERF_COUNT_HW_INSTRUCTIONS, false, 0, -1);
	/* The one that is registered last is called first. */
	assert_int_equal(pthread_atfork(raise_within_fork, NULL, NULL), 0);
	assert_int_equal(pthread_atfork(vp_shim_lock, vp_shim_unlock, vp_shim_unlock), 0);
	sigaction(SIGUSR1, &action, &before);
	pid_t child = fork();
	if (!child) /* has the event, and no pending signal */
		_exit(!vp_shim_has(read_in_handler) || handled != 0);
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(handled, 1);
	sigaction(SIGUSR1, &before, NULL);
	close_event(read_in_handler);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_counts, setup),
	    cmocka_unit_test_setup(test_group, setup),
	    cmocka_unit_test_setup(test_exec, setup),
	    cmocka_unit_test_setup(test_lost, setup),
	    cmocka_unit_test_setup(test_refuses, setup),
	    cmocka_unit_test_setup(test_page, setup),
	    cmocka_unit_test_setup(test_replaced, setup),
	    cmocka_unit_test(test_codes),
	    cmocka_unit_test_setup(test_sampling, setup),
	    cmocka_unit_test_setup(test_full_buffer, setup),
	    cmocka_unit_test_setup(test_inherits, setup),
	    cmocka_unit_test_setup(test_inherits_from_exec, setup),
	    cmocka_unit_test_setup(test_joins_kernels, setup),
	    cmocka_unit_test_setup(test_samples_of_group, setup),
	    cmocka_unit_test_setup(test_child_of_vfork_closes, setup),
	    cmocka_unit_test_setup(test_signal_during_fork, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
