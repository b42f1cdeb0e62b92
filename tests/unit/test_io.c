/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls go on when a signal interrupts them; the first three descriptors are always open;
 * workers end with their parent. */
#include "unit.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/io.h"
#include "base/worker_process.h"
#include "collect/guests/guest_answer.h"

enum { EVERY_US = 2000, ENOUGH = 10, LATER_US = 60000 };

/* How many came; another process sees it, too. */
static atomic_uint *signals;

static void count_signal(int number)
{
	++*signals;
}

/* Signals that are handled, as SIGCHLD, SIGUSR2 or SIGWINCH are, one after another. */
static void interrupt(bool on)
{
	const struct itimerval often = {{0, on ? EVERY_US : 0}, {0, on ? EVERY_US : 0}};
	struct sigaction action = {.sa_handler = count_signal};

	sigaction(SIGALRM, &action, NULL);
	*signals = 0;
	setitimer(ITIMER_REAL, &often, NULL);
}

/* A process that does `act` when this one has been interrupted some times, and ends. */
static pid_t later(void (*act)(int fd), int fd)
{
	*signals = 0;
	pid_t child = fork();
	if (child)
		return child;
	while (*signals < ENOUGH)
		sched_yield();
	act(fd);
	_exit(0);
}

static void write_one(int fd)
{
	_exit(write(fd, "x", 1) != 1);
}

static void write_answer(int fd)
{
	_exit(write(fd, "wrote 1\n.\n", 10) != 10);
}

static void end_well(pid_t child)
{
	int status;

	assert_true(*signals >= ENOUGH);
	assert_int_equal(vp_waitpid(child, &status, 0), child);
	interrupt(false);
	assert_int_equal(status, 0);
}

static void test_reads_go_on(void **state)
{
	char byte;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	pid_t child = later(write_one, ends[1]);
	interrupt(true);
	assert_int_equal(vp_read(ends[0], &byte, 1), 1);
	end_well(child);
	child = later(write_one, ends[1]);
	interrupt(true);
	assert_int_equal(vp_recv(ends[0], &byte, 1, 0), 1);
	end_well(child);
	close(ends[0]);
	close(ends[1]);
}

enum { LARGE = 4 << 20 };

/* Reads what is counted up from 0, in whole, slowly. */
static void read_numbers(int fd)
{
	static uint32_t numbers[LARGE / sizeof(uint32_t)];
	size_t size = 0;

	for (ssize_t got; size < LARGE; size += (size_t)got)
		if ((got = read(fd, (char *)numbers + size, LARGE - size)) <= 0)
			_exit(1);
	for (uint32_t i = 0; i < LARGE / sizeof(uint32_t); i++)
		if (numbers[i] != i)
			_exit(2);
	_exit(0);
}

/* What is written in parts goes on where it was interrupted. */
static void test_writes_go_on(void **state)
{
	static uint32_t numbers[LARGE / sizeof(uint32_t)];
	char *bytes = (char *)numbers;
	int ends[2];

	for (uint32_t i = 0; i < LARGE / sizeof(uint32_t); i++)
		numbers[i] = i;
	assert_int_equal(pipe(ends), 0);
	for (int in_parts = 0; in_parts < 2; in_parts++) {
		struct iovec parts[] = {
		    {bytes, 0}, {bytes, LARGE / 2 + 3}, {bytes + LARGE / 2 + 3, LARGE / 2 - 3}};
		pid_t child = later(read_numbers, ends[0]);
		interrupt(true);
		assert_int_equal(in_parts ? vp_fd_write_parts(ends[1], parts, 3)
					  : vp_fd_write_all(ends[1], numbers, LARGE),
				 0);
		end_well(child);
	}
	close(ends[0]);
	close(ends[1]);
}

static void test_poll_waits_for_its_time(void **state)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	struct pollfd ready = {.fd = ends[0], .events = POLLIN};
	interrupt(true);
	uint64_t begin = vp_clock_monotonic();
	assert_int_equal(vp_poll(&ready, 1, LATER_US / 1000), 0);
	assert_true(vp_clock_monotonic() - begin >= (LATER_US - 1000) * 1000ULL);
	assert_int_equal(vp_poll_or_signal(&ready, 1, 60000), 0); /* such a loop has to look */
	begin = vp_clock_monotonic();
	vp_sleep_us(LATER_US);
	assert_true(vp_clock_monotonic() - begin >= LATER_US * 1000ULL);
	pid_t child = later(write_one, ends[1]);
	assert_int_equal(vp_poll(&ready, 1, -1), 1);
	end_well(child);
	close(ends[0]);
	close(ends[1]);
}

static void connect_to(int listener)
{
	struct sockaddr_un address;
	socklen_t size = sizeof(address);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	_exit(getsockname(listener, (struct sockaddr *)&address, &size) ||
	      vp_connect(fd, (struct sockaddr *)&address, size));
}

static void test_accept_goes_on(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	/* A name of the kernel's choice. */
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(listener, 1), 0);
	pid_t child = later(connect_to, listener);
	interrupt(true);
	int connection = vp_accept(listener, SOCK_CLOEXEC);
	assert_true(connection >= 0);
	end_well(child);
	close(connection);
	close(listener);
}

/* A guest's symbol map is not given up because COMMAND ended or a snapshot was asked for. */
static void test_answer_is_waited_for(void **state)
{
	struct vp_buffer heard = {0};
	struct vp_slice answer;
	bool done = false;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	pid_t child = later(write_answer, ends[1]);
	interrupt(true);
	expect_no_error(vp_guest_answer_take(ends[0], 60000, &heard, &done, &answer));
	assert_true(done);
	assert_memory_equal(answer.bytes, "wrote 1\n", 8);
	end_well(child);
	vp_buffer_deinit(&heard);
	close(ends[0]);
	close(ends[1]);
}

/* In a process of its own, without those of 0 to 2 that are in `closed`. */
static void open_without(unsigned closed)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		for (int fd = 0; fd < 3; fd++)
			if (closed & 1U << fd)
				close(fd);
		bool good = vp_open_standard_files();
		for (int fd = 0; fd < 3; fd++)
			good = good && fcntl(fd, F_GETFD) == 0; /* for programs it starts, too */
		int next = open("/", O_RDONLY);
		_exit(!good || next < 3);
	}
	assert_int_equal(vp_waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_standard_files(void **state)
{
	for (unsigned closed = 0; closed < 8; closed++)
		open_without(closed);
}

/* The limits of a process that has these and no capabilities, once they were raised; *before is
 * what they were. */
static struct rlimit raised(rlim_t soft, rlim_t hard, struct rlimit *before)
{
	struct rlimit found[2] = {0};
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	pid_t pid = fork();
	if (!pid) {
		const struct rlimit limit = {soft, hard};
		bool may = !setrlimit(RLIMIT_NOFILE, &limit) && (geteuid() || !setuid(65534));
		vp_raise_file_limit(&found[0]);
		getrlimit(RLIMIT_NOFILE, &found[1]);
		_exit(!may || write(pipes[1], found, sizeof(found)) != sizeof(found));
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], found, sizeof(found)), sizeof(found));
	close(pipes[0]);
	waitpid(pid, NULL, 0);
	*before = found[0];
	return found[1];
}

/* The soft limit of open files becomes the hard one, as COMMAND's limits stay known. */
static void test_file_limit(void **state)
{
	struct rlimit before, after = raised(100, 1000, &before);

	assert_int_equal(before.rlim_cur, 100);
	assert_int_equal(before.rlim_max, 1000);
	assert_int_equal(after.rlim_cur, 1000);
	assert_int_equal(after.rlim_max, 1000);
	after = raised(1000, 1000, &before);
	assert_int_equal(after.rlim_cur, 1000);
	assert_int_equal(after.rlim_max, 1000);
}

static void wait_for_good(void *context, int channel)
{
	const pid_t self = getpid();

	(void)channel;
	while (write(*(const int *)context, &self, sizeof(self)) != sizeof(self))
		;
	for (;;)
		pause();
}

/* A worker does not outlive its parent, even one that is killed and whose channel nobody reads. */
static void test_worker_ends_with_parent(void **state)
{
	int told[2], status = 0;
	pid_t worker = 0, ended = 0;

	(void)state;
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(pipe(told), 0);
	pid_t parent = fork();
	if (!parent) {
		struct vp_worker_process process;
		vp_error_free(
		    vp_worker_process_start(SOCK_STREAM, wait_for_good, &told[1], &process));
		for (;;)
			pause();
	}
	assert_int_equal(read(told[0], &worker, sizeof(worker)), sizeof(worker));
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	for (int i = 0; i < 1000 && !ended; i++) {
		ended = waitpid(worker, &status, WNOHANG);
		usleep(10000);
	}
	if (!ended)
		kill(worker, SIGKILL);
	assert_int_equal(ended, worker);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
	close(told[0]);
	close(told[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_worker_ends_with_parent),
	    cmocka_unit_test(test_file_limit),
	    cmocka_unit_test(test_reads_go_on),
	    cmocka_unit_test(test_poll_waits_for_its_time),
	    cmocka_unit_test(test_accept_goes_on),
	    cmocka_unit_test(test_answer_is_waited_for),
	    cmocka_unit_test(test_standard_files),
	    cmocka_unit_test(test_writes_go_on),
	};

	signals =
	    mmap(NULL, sizeof(*signals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (signals == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
