/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attaching to lent counters, and sets of them. What stands for the agent is the other end of a
 * socket of this program.
 */
#include "lent_memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "counters/costs.h"

/* The agent's half: what it shares, and what it answers to the next that connects. */
static struct {
	int cells, threads, socket;
	bool refuses, sends_nothing, is_short, has_no_fds;
	struct vp_lent_reply reply;
} agent;

/* Its files, as it sees them; behind the threads are the stints. */
static struct vp_lent_cell *shared_cells;
static struct vp_lent_thread *shared_threads;

static void *map_file(int fd, size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static int start_agent(void **state)
{
	static const char *const names[] = {"instructions:u", "cycles:u", "branch-misses", "r1a8"};
	size_t threads = sizeof(memory.threads) + sizeof(memory.runs);

	setup(state);
	memset(&agent, 0, sizeof(agent));
	agent.socket = -1;
	agent.cells = memfd_create("cells", MFD_CLOEXEC);
	agent.threads = memfd_create("threads", MFD_CLOEXEC);
	assert_int_equal(ftruncate(agent.cells, sizeof(memory.cells)), 0);
	assert_int_equal(ftruncate(agent.threads, (off_t)threads), 0);
	shared_cells = map_file(agent.cells, sizeof(memory.cells));
	shared_threads = map_file(agent.threads, threads);
	memcpy(shared_cells, memory.cells, sizeof(memory.cells));
	memcpy(shared_threads, memory.threads, threads);
	agent.reply = (struct vp_lent_reply){.version = VP_LENT_VERSION,
					     .thread = PLACE,
					     .cells = CPUS + 1,
					     .events = VP_ARRAY_SIZE(names),
					     .marker = MARKER};
	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++)
		strcpy(agent.reply.names[i], names[i]);
	at_wait = NULL;
	waits = 0;
	return 0;
}

static int end_agent(void **state)
{
	if (agent.socket >= 0)
		close(agent.socket);
	munmap(shared_cells, sizeof(memory.cells));
	munmap(shared_threads, sizeof(memory.threads) + sizeof(memory.runs));
	close(agent.cells);
	close(agent.threads);
	return 0;
}

static void send_reply(void)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int[VP_LENT_FDS]))];
	} control = {.bytes = {0}};
	const int fds[VP_LENT_FDS] = {agent.cells, agent.threads, STDIN_FILENO};
	struct iovec part = {&agent.reply, sizeof(agent.reply) - agent.is_short};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
	if (!agent.has_no_fds) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	assert_int_equal(sendmsg(agent.socket, &message, 0), (ssize_t)part.iov_len);
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	const struct sockaddr_un *path = (const void *)address;
	int ends[2];

	assert_string_equal(path->sun_path, VP_LENT_SOCKET);
	if (agent.refuses) {
		errno = ECONNREFUSED;
		return -1;
	}
	if (agent.socket >= 0)
		close(agent.socket);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(dup3(ends[0], fd, O_CLOEXEC), fd);
	close(ends[0]);
	agent.socket = ends[1];
	if (!agent.sends_nothing)
		send_reply();
	else
		shutdown(agent.socket, SHUT_WR);
	return 0;
}

static unsigned descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* The agent hears which thread it is, and when it is no longer to be counted; the counters are
 * where its answer says. */
static void test_attach(void **state)
{
	struct vp_counters_event event;
	struct vp_counters_lent *got;
	struct vp_counters_lent_state look;
	struct vp_lent_request request;
	struct vp_lent_run *runs = (void *)(shared_threads + VP_LENT_THREADS);
	uint64_t children[VP_LENT_EVENTS];
	uint32_t live;
	unsigned before = descriptors();

	shared_threads[PLACE].state = VP_LENT_OUT;
	assert_int_equal(vp_counters_lent_attach(getppid(), true, &got, NULL), VPERF_OK);
	assert_int_equal(recv(agent.socket, &request, sizeof(request), MSG_DONTWAIT),
			 sizeof(request));
	assert_int_equal(request.version, VP_LENT_VERSION);
	assert_int_equal(request.tid, getppid());
	assert_int_equal(request.flags, VP_LENT_INHERIT);
	assert_true(vp_counters_event_find("r1a8", &event));
	assert_int_equal(vp_counters_lent_index(got, &event), 3);
	assert_true(vp_counters_event_find("PAPI_TOT_CYC:u", &event));
	assert_int_equal(vp_counters_lent_index(got, &event), 1);
	assert_true(vp_counters_event_find("cycles", &event));
	assert_int_equal(vp_counters_lent_index(got, &event), -1);
	assert_int_equal(vp_counters_lent_read_state(got, &look), VPERF_OK);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(look.counts[i], base_of(i));
	runs[CPUS - 1] = (struct vp_lent_run){.runs = 1, .index = PLACE, .born = 3};
	runs[CPUS] = runs[CPUS - 1];
	runs[CPUS].start[2] = 1;
	shared_threads[PLACE].live = 1;
	assert_int_equal(vp_counters_lent_children(got, children, &live), VPERF_OK);
	assert_int_equal(children[2], count_of(CPUS - 1, 2));
	assert_int_equal(live, 1);
	vp_counters_lent_close(got);
	assert_int_equal(recv(agent.socket, &request, sizeof(request), MSG_DONTWAIT), 0);
	close(agent.socket);
	agent.socket = -1;
	assert_int_equal(descriptors(), before);
	vp_counters_lent_close(NULL);
}

static void expect_failure(int expected, const char *part)
{
	struct vp_counters_event events[2];
	struct vp_counters_lent *got = NULL;
	struct vperf_error error = {0};

	assert_true(vp_counters_event_find("cycles:u", &events[0]));
	assert_true(vp_counters_event_find("branch-misses", &events[1]));
	int status = vp_counters_lent_open(events, 2, false, &got, &error);
	if (status != expected || !strstr(error.text, part))
		fail_msg("%d: '%s' instead of %d: '%s'", status, error.text, expected, part);
	assert_int_equal(error.status, expected);
	assert_null(got);
	if (agent.socket >= 0)
		close(agent.socket);
	agent.socket = -1;
}

/* Whatever is wrong with the answer is said, and nothing stays open. */
static void test_refusals(void **state)
{
	unsigned before = descriptors();

	agent.refuses = true;
	expect_failure(VPERF_E_NOT_LENT, "Connection refused");
	agent.refuses = false;
	agent.sends_nothing = true;
	expect_failure(VPERF_E_NOT_LENT, "the host provides no counters");
	agent.sends_nothing = false;
	agent.is_short = true;
	expect_failure(VPERF_E_NOT_LENT, "the host provides no counters");
	agent.is_short = false;
	agent.has_no_fds = true;
	expect_failure(VPERF_E_NOT_LENT, "has no descriptors");
	agent.has_no_fds = false;
	agent.reply.version = VP_LENT_VERSION + 1;
	expect_failure(VPERF_E_VERSION, "version 5, expected 4");
	agent.reply.version = VP_LENT_VERSION;
	strcpy(agent.reply.text, "too many threads");
	agent.reply.status = ENOSPC;
	expect_failure(VPERF_E_TOO_MANY, "too many threads");
	agent.reply.status = EPERM;
	expect_failure(VPERF_E_NOT_LENT, "too many threads");
	agent.reply.status = 0;
	agent.reply.thread = VP_LENT_THREADS;
	expect_failure(VPERF_E_SYSTEM, "cannot map");
	agent.reply.thread = PLACE;
	agent.reply.cells = 0;
	expect_failure(VPERF_E_SYSTEM, "cannot map");
	agent.reply.cells = CPUS + 1;
	agent.reply.events = 2;
	expect_failure(VPERF_E_NOT_LENT, "the host does not provide 'branch-misses'");
	agent.reply.events = 3;
	shared_threads[PLACE].state = VP_LENT_NEW;
	expect_failure(VPERF_E_LOST, "does not receive switches of this thread");
	assert_int_equal(waits, VP_COUNTERS_MAX_WAITS);
	assert_int_equal(descriptors(), before);
}

static void be_seen(unsigned nth)
{
	if (nth == 2)
		shared_threads[PLACE].state = VP_LENT_RUNNING;
}

/* Its share begins when it is next switched in: that is waited for. */
static void test_waits_to_be_seen(void **state)
{
	struct vp_counters_lent *got;

	shared_threads[PLACE].state = VP_LENT_NEW;
	at_wait = be_seen;
	assert_int_equal(vp_counters_lent_attach(gettid(), false, &got, NULL), VPERF_OK);
	assert_int_equal(waits, 3);
	vp_counters_lent_close(got);
}

/* A thread that sleeps until it hears something. */
static void *sleep_until_told(void *fds)
{
	const int *ends = fds;
	const pid_t tid = gettid();
	char byte;

	if (write(ends[1], &tid, sizeof(tid)) != sizeof(tid) || read(ends[2], &byte, 1) != 1)
		abort();
	return NULL;
}

static char state_of(pid_t tid)
{
	char path[64], text[256] = {0};

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	return strrchr(text, ')')[2];
}

/* One that sleeps has nothing yet, however long that lasts. */
static void test_does_not_wait_for_who_sleeps(void **state)
{
	struct vp_counters_lent *got;
	int ends[4];
	pthread_t thread;
	pid_t tid;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(ends + 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, sleep_until_told, ends), 0);
	assert_int_equal(read(ends[0], &tid, sizeof(tid)), sizeof(tid));
	while (state_of(tid) == 'R')
		;
	shared_threads[PLACE].state = VP_LENT_NEW;
	assert_int_equal(vp_counters_lent_attach(tid, false, &got, NULL), VPERF_OK);
	assert_int_equal(waits, 0);
	vp_counters_lent_close(got);
	assert_int_equal(write(ends[3], "", 1), 1);
	pthread_join(thread, NULL);
	for (int i = 0; i < 4; i++)
		close(ends[i]);
}

/* What reads add to the two counters, and what a switch does: as if the host counted it. */
static const struct vp_counters_costs costs = {
    .exact_read = {300, 31}, .read = {7, 70}, .run = {2700, 11}};
static bool reads_are_free;

int __wrap_vp_counters_costs_measure(const struct vp_counters_costs_ops *ops, void *context,
				     unsigned n, struct vp_counters_costs *ret,
				     struct vperf_error *error);
int __wrap_vp_counters_costs_measure(const struct vp_counters_costs_ops *ops, void *context,
				     unsigned n, struct vp_counters_costs *ret,
				     struct vperf_error *error)
{
	assert_int_equal(n, 2);
	assert_int_equal(ops->runs(context), 2);
	*ret = costs;
	return VPERF_OK;
}

static void happen(uint64_t first, uint64_t second)
{
	struct vp_lent_cell *cell = &shared_cells[shared_threads[PLACE].cpu];

	cell->counts[1] += first;
	cell->counts[0] += second;
	cell->sequence++;
}

static unsigned exact_reads, usual_reads;

int __wrap_vp_counters_lent_read(struct vp_counters_lent *own, bool exact, const uint64_t *start,
				 uint64_t *values);
int __wrap_vp_counters_lent_read(struct vp_counters_lent *own, bool exact, const uint64_t *start,
				 uint64_t *values)
{
	bool exactly = exact || own->exact;
	const uint64_t *cost = exactly ? costs.exact_read : costs.read;

	exact_reads += exactly;
	usual_reads += !exactly;
	if (!reads_are_free)
		happen(cost[0], cost[1]);
	return vp_counters_lent_read_own(own, start, values) ? VPERF_OK : VPERF_E_LOST;
}

static struct vperf_counters *open_lent_set(uint32_t flags)
{
	static const char *const events[] = {"cycles:u", "instructions:u"};
	const struct vperf_options options = {
	    .size = sizeof(options), .way = VPERF_WAY_LENT, .flags = flags};
	struct vperf_counters *set;
	struct vperf_error error;

	reads_are_free = false;
	exact_reads = usual_reads = 0;
	if (vperf_counters_open(events, 2, &options, &set, &error))
		fail_msg("%s", error.text);
	assert_int_equal(vperf_counters_way(set), VPERF_WAY_LENT);
	return set;
}

static void be_switched_in(void)
{
	shared_threads[PLACE].sequence += 4;
	happen(costs.run[0], costs.run[1]);
}

static void expect_values(struct vperf_counters *set, uint64_t first, uint64_t second)
{
	uint64_t values[2];

	assert_int_equal(vperf_counters_read(set, values), VPERF_OK);
	assert_int_equal(values[0], first);
	assert_int_equal(values[1], second);
}

/* A set's values are those of its events, from its start on. */
static void test_set(void **state)
{
	struct vperf_counters *set = open_lent_set(0);
	const struct vperf_view *view = vperf_counters_view(set, VPERF_VIEW_1);
	struct vperf_times times = {.size = sizeof(times)};
	uint64_t values[2] = {0}, sum[2] = {5, 5}, one = 0;

	reads_are_free = true;
	assert_int_equal(vperf_counters_start(set), VPERF_OK);
	happen(40, 3);
	expect_values(set, 40, 3);
	assert_int_equal(vperf_counters_accumulate(set, sum), VPERF_OK);
	happen(10, 1);
	assert_int_equal(vperf_counters_accumulate(set, sum), VPERF_OK);
	assert_int_equal(sum[0], 55);
	assert_int_equal(sum[1], 9);
	/* On another CPU. */
	shared_threads[PLACE].cpu = 0;
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		shared_threads[PLACE].base[i] +=
		    shared_cells[1].counts[i] - shared_cells[0].counts[i];
	shared_threads[PLACE].stolen_base += shared_cells[1].stolen - shared_cells[0].stolen;
	happen(6, 2);
	expect_values(set, 56, 6);
	assert_int_equal(vperf_view_read(view, 0, &one), VPERF_OK);
	assert_int_equal(one, 56);
	assert_int_equal(vperf_view_read(view, 1, &one), VPERF_OK);
	assert_int_equal(one, 6);
	assert_int_equal(vperf_counters_read_one(set, 1, &one), VPERF_OK);
	assert_int_equal(one, 6);
	shared_cells[0].stolen += 900;
	assert_int_equal(vperf_counters_times(set, &times), VPERF_OK);
	assert_true(times.known & VPERF_KNOWN_STOLEN);
	assert_int_equal(times.stolen_least, 900);
	assert_int_equal(times.stolen_most, 900);
	assert_int_equal(vperf_counters_stop(set, values), VPERF_OK);
	assert_int_equal(values[0], 56);
	assert_int_equal(values[1], 6);
	assert_int_equal(exact_reads, 2); /* at the start and the end */
	assert_int_equal(vperf_view_read(view, 1, &one), VPERF_E_ARGUMENT);
	/* Again from 0. */
	assert_int_equal(vperf_counters_start(set), VPERF_OK);
	happen(1, 2);
	expect_values(set, 1, 2);
	sum[0] = sum[1] = 0;
	assert_int_equal(vperf_counters_accumulate(set, sum), VPERF_OK);
	assert_int_equal(sum[0], 1);
	assert_int_equal(vperf_view_read(view, 0, &one), VPERF_OK);
	assert_int_equal(one, 1);
	shared_cells[0].marker = 0;
	assert_int_equal(vperf_counters_read(set, values), VPERF_E_LOST);
	assert_int_equal(vperf_view_read(view, 0, &one), VPERF_E_LOST);
	vperf_counters_close(set);
}

static void *calibrate_foreign(void *context)
{
	struct vperf_error error;

	return (void *)(intptr_t)vperf_counters_calibrate(context, &error);
}

/* Another thread cannot calibrate a set, nor undo that it is calibrated. */
static void test_calibrated_by_its_thread_only(void **state)
{
	struct vperf_counters *set = open_lent_set(0);
	struct vperf_error error;
	pthread_t thread;
	void *status;

	assert_int_equal(vperf_counters_calibrate(set, &error), VPERF_OK);
	assert_int_equal(pthread_create(&thread, NULL, calibrate_foreign, set), 0);
	assert_int_equal(pthread_join(thread, &status), 0);
	assert_int_equal((intptr_t)status, VPERF_E_THREAD);
	assert_int_equal(vperf_counters_start(set), VPERF_OK);
	happen(1000, 50);
	expect_values(set, 1000, 50);
	be_switched_in();
	expect_values(set, 1000, 50);
	vperf_counters_close(set);
}

/* A calibrated set takes off what each of its reads adds, by its kind, and each switch. */
static void test_calibrated_set(void **state)
{
	struct vperf_counters *set = open_lent_set(0);
	struct vperf_error error;
	uint64_t values[2];

	assert_int_equal(vperf_counters_calibrate(set, &error), VPERF_OK);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(vperf_counters_start(set), VPERF_OK);
		expect_values(set, 0, 0);
		happen(1000, 50);
		expect_values(set, 1000, 50);
		be_switched_in();
		expect_values(set, 1000, 50);
		be_switched_in();
		be_switched_in();
		happen(8, 9);
		expect_values(set, 1008, 59);
		/* A read that costs less than was measured: nothing goes back. */
		reads_are_free = true;
		expect_values(set, 1008, 59);
		happen(20, 100);
		expect_values(set, 1008 + 20 - 14, 59);
		reads_are_free = false;
		happen(0, 300);
		expect_values(set, 1014, 59 + 400 - 140);
		assert_int_equal(vperf_counters_stop(set, values), VPERF_OK);
		assert_int_equal(values[0], 1014);
		assert_int_equal(values[1], 319);
	}
	assert_true(usual_reads);
	vperf_counters_close(set);
}

/* Each read of an exact set is one that forces an exit, calibrated or not. */
static void test_exact_set(void **state)
{
	struct vperf_counters *set = open_lent_set(VPERF_EXACT);
	struct vperf_error error;
	uint64_t one;

	assert_int_equal(vperf_counters_start(set), VPERF_OK);
	happen(5, 6);
	expect_values(set, 5 + 300, 6 + 31);
	assert_int_equal(vperf_counters_read_one(set, 0, &one), VPERF_OK);
	assert_int_equal(vperf_view_read(vperf_counters_view(set, VPERF_VIEW_1), 1, &one),
			 VPERF_OK);
	assert_int_equal(one, 6 + 3 * 31);
	assert_int_equal(exact_reads, 4);
	assert_int_equal(vperf_counters_stop(set, NULL), VPERF_OK);
	assert_int_equal(vperf_counters_calibrate(set, &error), VPERF_OK);
	assert_int_equal(vperf_counters_start(set), VPERF_OK);
	happen(600, 40);
	expect_values(set, 600, 40);
	be_switched_in();
	expect_values(set, 600, 40);
	assert_int_equal(usual_reads, 0);
	vperf_counters_close(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_attach, start_agent, end_agent),
	    cmocka_unit_test_setup_teardown(test_refusals, start_agent, end_agent),
	    cmocka_unit_test_setup_teardown(test_waits_to_be_seen, start_agent, end_agent),
	    cmocka_unit_test_setup_teardown(test_does_not_wait_for_who_sleeps, start_agent,
					    end_agent),
	    cmocka_unit_test_setup_teardown(test_set, start_agent, end_agent),
	    cmocka_unit_test_setup_teardown(test_calibrated_set, start_agent, end_agent),
	    cmocka_unit_test_setup_teardown(test_calibrated_by_its_thread_only, start_agent,
					    end_agent),
	    cmocka_unit_test_setup_teardown(test_exact_set, start_agent, end_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
