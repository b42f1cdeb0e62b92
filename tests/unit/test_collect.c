/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How processes and threads of the host are told apart, one of vperf's own is confined, and what
 * the kernel says of its pCPUs and rings is read. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/confine.h"
#include "collect/guests/guest_state.h"
#include "collect/programs/account_source.h"
#include "collect/programs/convert.h"
#include "collect/tracefs/thread_names.h"
#include "host/cpu_hotplug.h"
#include "maps/proc.h"
#include "schema/busy.h"

/* A pid is given to another process when the first has ended. */
static void test_process_is_the_same(void **state)
{
	struct vp_guest_state guest = {.pid = (uint32_t)getpid()};

	expect_error(vp_guest_state_expect_same(&guest), "the pid was reused");
	uint64_t started = vp_proc_start_time(guest.pid);
	prctl(PR_SET_NAME, "a) R 1 2 (3");
	guest.started = vp_proc_start_time(guest.pid);
	assert_true(guest.started > 1);
	assert_int_equal(guest.started, started);
	expect_no_error(vp_guest_state_expect_same(&guest));
	guest.started--;
	expect_error(vp_guest_state_expect_same(&guest), "the pid was reused");
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	guest = (struct vp_guest_state){(uint32_t)child, vp_proc_start_time((uint32_t)child)};
	assert_true(guest.started > 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(vp_proc_start_time((uint32_t)child), 0);
	expect_error(vp_guest_state_expect_same(&guest), "the pid was reused");
}

static VP_NORETURN void say_confined(int kept)
{
	static const int others[] = {STDOUT_FILENO, STDERR_FILENO};

	for (size_t i = 0; i < VP_ARRAY_SIZE(others); i++)
		if (dup2(kept, others[i]) < 0)
			_exit(1);
	if (vp_confine(&kept, 1, 0, 0))
		_exit(1);
	for (size_t i = 0; i < VP_ARRAY_SIZE(others); i++)
		if (write(others[i], "bad", 3) != 3)
			_exit(1);
	_exit(write(kept, "good", 4) != 4);
}

/* What it says elsewhere than it is heard is nobody's to read: a terminal does as it is told. */
static void test_confined_is_heard_only_where_asked(void **state)
{
	int ends[2];
	char heard[64];

	if (geteuid() != 0)
		skip();
	unsetenv("VPERF_DEBUG");
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0)
		say_confined(ends[1]);
	close(ends[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(read(ends[0], heard, sizeof(heard)), 4);
	assert_memory_equal(heard, "good", 4);
	close(ends[0]);
}

/* In a process of its own: true if it ends by itself, with that request allowed. */
static bool outlives_request(int fd, unsigned long allowed, unsigned long request)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		int number;
		if (vp_confine(&fd, 1, allowed, 0))
			_exit(1);
		/* Directly: the sanitizers do more on the way. */
		syscall(SYS_exit_group, syscall(SYS_ioctl, fd, request, &number) != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	else
		assert_int_equal(WTERMSIG(status), SIGSYS);
	return WIFEXITED(status);
}

static void test_confined_may_make_one_request(void **state)
{
	int ends[2];

	if (geteuid() != 0)
		skip();
	assert_int_equal(pipe(ends), 0);
	assert_true(outlives_request(ends[0], FIONREAD, FIONREAD));
	assert_false(outlives_request(ends[0], FIONREAD, FIONBIO));
	assert_false(outlives_request(ends[0], 0, FIONREAD));
	close(ends[0]);
	close(ends[1]);
}

/* In a process of its own, that may pass bytes on: true if it ends by itself after that. */
static bool outlives_passing(int *ends, bool opens)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct pollfd ready = {.events = POLLIN};
		char byte;
		if (vp_confine_to_passing(ends, 2, FIONREAD))
			_exit(1);
		ready.fd = ends[0];
		if (poll(&ready, 1, 10000) != 1 || read(ends[0], &byte, 1) != 1 ||
		    write(ends[1], &byte, 1) != 1)
			syscall(SYS_exit_group, 1);
		if (opens)
			syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY, 0);
		syscall(SYS_exit_group, 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	else
		assert_int_equal(WTERMSIG(status), SIGSYS);
	return WIFEXITED(status);
}

static void test_confined_may_pass_bytes_on(void **state)
{
	int from[2], to[2];
	char bytes[3];

	if (geteuid() != 0)
		skip();
	assert_int_equal(pipe(from), 0);
	assert_int_equal(pipe(to), 0);
	assert_int_equal(write(from[1], "ab", 2), 2);
	assert_true(outlives_passing((int[]){from[0], to[1]}, false));
	assert_false(outlives_passing((int[]){from[0], to[1]}, true));
	assert_int_equal(read(to[0], bytes, sizeof(bytes)), 2);
	assert_memory_equal(bytes, "ab", 2);
	for (int i = 0; i < 2; i++) {
		close(from[i]);
		close(to[i]);
	}
}

static int by_value(const void *one, const void *other)
{
	const int *a = one, *b = other;

	return (*a > *b) - (*a < *b);
}

/* glibc's qsort() of more than 1 KiB asks how much memory there is, the first time that it is
 * called: in a confined process, if none was before. */
static void test_confined_may_sort(void **state)
{
	enum { COUNT = 4096 };
	int status;

	if (geteuid() != 0)
		skip();
	int *numbers = calloc(COUNT, sizeof(*numbers));
	for (int i = 0; i < COUNT; i++)
		numbers[i] = COUNT - i;
	pid_t child = fork();
	if (child == 0) {
		struct sysinfo info;
		if (vp_confine(NULL, 0, 0, 0))
			_exit(1);
		qsort(numbers, COUNT, sizeof(*numbers), by_value);
		syscall(SYS_exit_group, syscall(SYS_sysinfo, &info) || numbers[0] != 1 ? 2 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	free(numbers);
	assert_int_equal(status, 0);
}

/* In a process of its own, confined, beside `mapped` bytes that it inherits: what mmap() says of
 * `bytes` more, or -1. */
static int room_when_confined(size_t mapped, size_t bytes)
{
	void *inherited = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int status;

	assert_ptr_not_equal(inherited, MAP_FAILED);
	pid_t child = fork();
	if (child == 0) {
		if (vp_confine(NULL, 0, 0, 0))
			_exit(2);
		long result = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		syscall(SYS_exit_group, result == -1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	munmap(inherited, mapped);
	return WIFEXITED(status) && WEXITSTATUS(status) < 2 ? !WEXITSTATUS(status) : -1;
}

/* A flight recorder of many GiB has readers, too; none of them may have more than its share. */
static void test_confined_memory_is_its_own(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(room_when_confined(1 << 20, 1 << 20), true);
	assert_int_equal(room_when_confined(6ULL << 30, 512 << 20), true);
	assert_int_equal(room_when_confined(1 << 20, VP_CONFINED_MEMORY + (1 << 20)), false);
	assert_int_equal(room_when_confined(6ULL << 30, VP_CONFINED_MEMORY + (1 << 20)), false);
}

/* With as many descriptors as it may have. */
static void test_confined_without_a_free_descriptor(void **state)
{
	const struct rlimit few = {64, 64};
	int status;

	if (geteuid() != 0)
		skip();
	pid_t child = fork();
	if (child == 0) {
		int fd = open("/dev/null", O_RDONLY), kept = fd;
		if (setrlimit(RLIMIT_NOFILE, &few))
			_exit(2);
		while (dup(fd) >= 0)
			;
		if (errno != EMFILE || vp_confine(&kept, 1, 0, 0))
			_exit(3);
		syscall(SYS_exit_group, 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* What it writes to memory is the host's. */
static void test_confined_files_are_limited(void **state)
{
	enum { MAX = 100000 };
	int file = memfd_create("test", MFD_CLOEXEC), status;
	struct stat written;

	if (geteuid() != 0)
		skip();
	assert_true(file >= 0);
	pid_t child = fork();
	if (child == 0) {
		static char bytes[MAX / 3];
		if (vp_confine(&file, 1, 0, MAX))
			_exit(2);
		for (int i = 0; i < 10; i++)
			if (write(file, bytes, sizeof(bytes)) < 0)
				syscall(SYS_exit_group, errno == EFBIG ? 0 : 3);
		syscall(SYS_exit_group, 4);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(fstat(file, &written), 0);
	assert_int_equal(written.st_size, MAX);
	close(file);
}

/* Without the rights to become nobody: why there is no reader is an answer. */
static void test_reader_says_why_it_is_not_confined(void **state)
{
	int status;

	if (geteuid() != 0)
		skip();
	pid_t child = fork();
	if (child == 0) {
		if (setresuid(65534, 65534, 65534))
			_exit(2);
		struct vp_error *error = vp_confine(NULL, 0, 0, 0);
		_exit(!error || !strstr(vp_error_message(error),
					"cannot confine a process: its privileges: "));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

struct sleeper {
	pthread_t thread;
	uint32_t tid;
	bool stop;
};

/* Sleeps and wakes up, as a vCPU does. */
static void *sleep_often(void *context)
{
	struct sleeper *sleeper = context;

	__atomic_store_n(&sleeper->tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&sleeper->stop, __ATOMIC_RELAXED))
		usleep(5000);
	return NULL;
}

enum { DEADLINE_S = 60 };

/* The account of vCPU `number` when it has been woken, or when that has taken far too long; false
 * if programs cannot be loaded here. */
static bool account_of(const vp_vms *vms, uint32_t number, struct vp_account_vcpu *ret)
{
	struct vp_account_source *source;
	const struct vp_account_source_options options = {0};
	struct vp_error *error = vp_account_source_ops()->open(vms, &options, &source);

	if (error) {
		vp_error_free(error);
		return false;
	}
	uint64_t begin = vp_clock_monotonic();
	vp_account_source_ops()->begin(source, vms, begin);
	do {
		for (size_t i = 0; i < vp_account_source_ops()->slots(source); i++)
			if (vp_account_source_ops()->vcpu(source, i, ret) && ret->number == number)
				break;
		sched_yield();
	} while (!(ret->number == number && ret->wakeups) &&
		 vp_clock_monotonic() - begin < DEADLINE_S * 1000000000ULL);
	vp_account_source_ops()->free(source);
	return true;
}

/* Other vCPUs' threads have ids of the same low bits: each keeps an account of its own. */
static void test_account_of_like_threads(void **state)
{
	enum { LIKE = 20 };
	struct sleeper sleeper = {0};
	struct vp_account_vcpu found = {0};
	struct vp_vm vm = {.pid = (uint32_t)getpid()};
	vp_vms vms = {0};

	assert_int_equal(pthread_create(&sleeper.thread, NULL, sleep_often, &sleeper), 0);
	while (!__atomic_load_n(&sleeper.tid, __ATOMIC_ACQUIRE))
		sched_yield();
	for (uint32_t i = 1; i <= LIKE; i++)
		vp_vm_vcpu(&vm, i)->tid = sleeper.tid + i * VP_TID_BITS;
	vp_vm_vcpu(&vm, LIKE + 1)->tid = sleeper.tid;
	vp_vec_push(&vms, vm);
	bool loaded = account_of(&vms, LIKE + 1, &found);
	__atomic_store_n(&sleeper.stop, true, __ATOMIC_RELAXED);
	pthread_join(sleeper.thread, NULL);
	vp_vms_deinit(&vms);
	if (!loaded) /* not root, or not this kernel */
		skip();
	assert_int_equal(found.number, LIKE + 1);
	assert_true(found.wakeups > 0);
}

static bool is_hotplug(const char *bytes, size_t size, uint32_t *pcpu, bool *online)
{
	VP_AUTO_FREE char *copy = memcpy(vp_alloc(size + !size), bytes, size); /* nothing behind */

	return vp_cpu_hotplug_parse(copy, size, pcpu, online);
}

static void test_pcpus_come_and_go(void **state)
{
	static const char came[] = "online@/devices/system/cpu/cpu17\0ACTION=online\0SEQNUM=4";
	static const char *const others[] = {
	    "online@/devices/system/cpu/cpu",
	    "online@/devices/system/cpu/cpu1x",
	    "online@/devices/system/memory/m1",
	    "add@/devices/system/cpu/cpu1",
	    "online@/devices/system/cpu/cpu1/c",
	    "online@/devices/system/cpu/cpu99999999999999999999",
	    "libudev",
	    "online@",
	    "",
	};
	uint32_t pcpu;
	bool online;

	assert_true(is_hotplug(came, sizeof(came), &pcpu, &online));
	assert_true(online && pcpu == 17);
	assert_true(is_hotplug("offline@/devices/system/cpu/cpu0", 32, &pcpu, &online));
	assert_true(!online && pcpu == 0);
	for (size_t i = 0; i < VP_ARRAY_SIZE(others); i++)
		assert_false(is_hotplug(others[i], strlen(others[i]), &pcpu, &online));
}

static void test_lost_in_a_ring(void **state)
{
	static const char stats[] = "entries: 7\noverrun: 20\ncommit overrun: 3\nbytes: 4999\n"
				    "oldest event ts:     1.5\ndropped events: 100\n";
	char directory[] = "/tmp/vperf-test-XXXXXX";
	uint64_t lost;

	assert_non_null(mkdtemp(directory));
	VP_AUTO_FREE char *command =
	    vp_format("mkdir -p '%s/per_cpu/cpu3' && printf '%%s' '%s' > '%s/per_cpu/cpu3/stats'",
		      directory, stats, directory);
	VP_AUTO_FREE char *removal = vp_format("rm -r '%s'", directory);
	assert_int_equal(system(command), 0);
	expect_no_error(vp_proc_ftrace_lost(directory, 3, &lost));
	assert_int_equal(lost, 123);
	expect_error(vp_proc_ftrace_lost(directory, 4, &lost), "per_cpu/cpu4/stats");
	assert_int_equal(system(removal), 0);
}

/* What waited for the end of an exit comes in where the guest's interrupts do. */
static void test_hits_of_guests(void **state)
{
	enum { CPUID = 10, INTERRUPT = 1 };
	struct vp_raw_record raw = {.flags = VP_HAS_EXIT_REASON | VP_RAW_ON_VCPU,
				    .exit_reason = CPUID};

	assert_false(vp_convert_hit_guest(&raw, VP_MODE_GUEST_USER, VP_VENDOR_INTEL));
	raw.exit_reason = INTERRUPT;
	assert_true(vp_convert_hit_guest(&raw, VP_MODE_GUEST_USER, VP_VENDOR_INTEL));
	assert_false(vp_convert_hit_guest(&raw, VP_MODE_KERNEL, VP_VENDOR_INTEL));
	raw.exit_reason = CPUID;
	raw.flags = VP_RAW_ON_VCPU; /* which is not known, then */
	assert_true(vp_convert_hit_guest(&raw, VP_MODE_GUEST_KERNEL, VP_VENDOR_INTEL));
	raw.flags |= VP_RAW_IN_HOST; /* where perf cannot tell, by the place in KVM's code */
	assert_false(vp_convert_hit_guest(&raw, VP_MODE_GUEST_KERNEL, VP_VENDOR_ARM));
	raw.host_ip = 0xffffffff81000000;
	assert_int_equal(vp_convert_mode(&raw), VP_MODE_KERNEL);
	raw.host_ip = 0x7fffffffffff;
	assert_int_equal(vp_convert_mode(&raw), VP_MODE_USER);
}

/* What is recorded of a sample in a guest: who it was, and flags that are the record's own. */
static void test_conversion(void **state)
{
	const struct vp_raw_record raw = {.time = 5,
					  .pid = 100,
					  .tid = 101,
					  .vcpu = 3,
					  .as_root = 0x1000,
					  .exit_reason = 0x60,
					  .cpl = 3,
					  .guest_pid = 7,
					  .guest_tid = 8,
					  .other_tid = 55,
					  .kind = VP_RAW_VCPU_OUT,
					  .flags = VP_HAS_EXIT_REASON | VP_HAS_AS_ROOT |
						   VP_HAS_CPL | VP_BLOCKED | VP_RAW_ON_VCPU};
	struct vp_raw_record in = raw;
	union vp_any_record record;

	memset(&record, 0, sizeof(record));
	vp_convert_sample(&raw, VP_MODE_GUEST_KERNEL, 0x401000, VP_VENDOR_AMD, &record);
	assert_int_equal(record.header.id, VP_ID_guest_sample);
	assert_int_equal(record.guest_sample.vm, 100);
	assert_int_equal(record.guest_sample.tid, 101);
	assert_int_equal(record.guest_sample.guest_pid, 7);
	assert_int_equal(record.guest_sample.guest_tid, 8);
	assert_int_equal(record.guest_sample.mode, VP_MODE_GUEST_USER); /* by its level */
	assert_int_equal(record.guest_sample.flags,
			 VP_HAS_EXIT_REASON | VP_HAS_AS_ROOT | VP_HAS_CPL);
	vp_convert_sample(&raw, VP_MODE_KERNEL, 0x401000, VP_VENDOR_AMD, &record);
	assert_int_equal(record.header.id, VP_ID_vcpu_sample);
	assert_int_equal(record.vcpu_sample.flags, VP_HAS_EXIT_REASON);
	assert_int_equal(record.vcpu_sample.vcpu, 3);
	vp_convert_switch(&raw, VP_VENDOR_AMD, &record);
	assert_int_equal(record.header.id, VP_ID_vcpu_out);
	assert_int_equal(record.vcpu_out.flags, VP_HAS_EXIT_REASON | VP_BLOCKED);
	assert_int_equal(record.vcpu_out.other_tid, 55);
	in.kind = VP_RAW_VCPU_IN;
	vp_convert_switch(&in, VP_VENDOR_AMD, &record);
	assert_int_equal(record.header.id, VP_ID_vcpu_in);
}

/* A thread's name is what it was told to be last; its process is read where it is not told. */
static void test_thread_names(void **state)
{
	struct vp_thread_names names = {0};
	uint32_t pid = (uint32_t)getpid();

	prctl(PR_SET_NAME, "first");
	assert_string_equal(vp_thread_names_find(&names, 0, pid)->comm, "first");
	assert_int_equal(vp_thread_names_find(&names, 0, pid)->pid, pid);
	prctl(PR_SET_NAME, "second"); /* which nobody told */
	assert_string_equal(vp_thread_names_find(&names, 0, pid)->comm, "first");
	vp_thread_names_set(&names, 0, pid, (struct vp_slice){"third, and more than 16", 23});
	assert_string_equal(vp_thread_names_find(&names, 0, pid)->comm, "third, and more");
	assert_int_equal(vp_thread_names_find(&names, 0, pid)->pid, pid);
	vp_thread_names_set(&names, 7, 1 << 23, (struct vp_slice){"new\0old", 7});
	assert_string_equal(vp_thread_names_find(&names, 0, 1 << 23)->comm, "new");
	assert_int_equal(vp_thread_names_find(&names, 0, 1 << 23)->pid, 7);
	vp_thread_names_deinit(&names);
}

/* 3 events per ns, sampled each 1 ms: a longer gap was busy as far as the counter counted. */
static void test_busy_gaps(void **state)
{
	static const struct {
		uint64_t gap, events, busy;
	} samples[] = {
	    {1, 1, 0},              /* perf begins with a period of one event */
	    {8000, 900000, 0},      /* too short a gap for a rate */
	    {5000000, 15000000, 0}, /* the rate is not known yet: it was idle, or slower */
	    {20000, 60000, 0},      /* the rate */
	    {6000000, 18000000, 6000000},
	    {9000000, 18000000, 6000000},
	    {9000000, 3000000, 0}, /* idle but for one period */
	    {1500000, 4500000, 0}, /* not more than 1.5 periods */
	    {900000, 2700000, 0},
	    {2000000, 8000000, 2000000}, /* faster than ever */
	};
	struct vp_busy busy = {0};
	uint64_t time = 1000000000;

	assert_int_equal(vp_busy_before(&busy, time, 1, 1000000), 0);
	for (size_t i = 0; i < VP_ARRAY_SIZE(samples); i++) {
		time += samples[i].gap;
		uint64_t ns = vp_busy_before(&busy, time, samples[i].events, 1000000);
		assert_true(ns <= samples[i].busy && ns + ns / 50 >= samples[i].busy);
	}
	/* Slower for good, as the clock of the pCPU is: after some usual gaps that is the rate. */
	for (unsigned i = 0; i < 100; i++)
		vp_busy_before(&busy, time += 1000000, 1000000, 1000000);
	assert_int_equal(vp_busy_before(&busy, time += 5000000, 5000000, 1000000) / 1000000, 5);
	/* An older time than the last one's, and the first of another pCPU. */
	assert_int_equal(vp_busy_before(&busy, time - 1, 5000000, 1000000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_process_is_the_same),
	    cmocka_unit_test(test_hits_of_guests),
	    cmocka_unit_test(test_account_of_like_threads),
	    cmocka_unit_test(test_confined_is_heard_only_where_asked),
	    cmocka_unit_test(test_confined_may_make_one_request),
	    cmocka_unit_test(test_confined_may_pass_bytes_on),
	    cmocka_unit_test(test_confined_may_sort),
	    cmocka_unit_test(test_confined_memory_is_its_own),
	    cmocka_unit_test(test_confined_files_are_limited),
	    cmocka_unit_test(test_confined_without_a_free_descriptor),
	    cmocka_unit_test(test_reader_says_why_it_is_not_confined),
	    cmocka_unit_test(test_busy_gaps),
	    cmocka_unit_test(test_pcpus_come_and_go),
	    cmocka_unit_test(test_lost_in_a_ring),
	    cmocka_unit_test(test_conversion),
	    cmocka_unit_test(test_thread_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
