/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lent counters as the host and the agent write them: cells of several CPUs, a thread that runs on
 * one of them, looks of other threads. What stands for the agent is the other end of a socket of
 * this program, and what happens while the library waits, the test does in nanosleep()'s place.
 */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "counters/costs.h"
#include "counters/counters_lent.h"

enum { CPUS = 3, PLACE = 5 /* of the thread */, MARKER = 77 };
/* Of each counter, at each publication. */
enum { MORE = 1001 };

/* What the agent shares; behind the threads are the stints. */
struct shared {
	struct vp_lent_cell cells[CPUS + 1];
	struct vp_lent_thread threads[VP_LENT_THREADS];
	struct vp_lent_stint stints[CPUS + 1]; /* the last is none of theirs */
};
static struct shared memory;
static struct vp_counters_lent lent;

int __real_vp_counters_lent_read(struct vp_counters_lent *own, bool exact, const uint64_t *start,
				 uint64_t *values);

static uint64_t count_of(unsigned cpu, unsigned place)
{
	return 10000 * (cpu + 1) + 100 * place;
}

static uint64_t base_of(unsigned place)
{
	return place % 2 ? 7 + place : 0 - (uint64_t)(3 + place);
}

static struct vp_lent_thread *thread_here(void)
{
	return &memory.threads[PLACE];
}

static void fill(struct shared *shared)
{
	memset(shared, 0, sizeof(*shared));
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		shared->cells[cpu] = (struct vp_lent_cell){
		    .marker = MARKER, .sequence = 10 + cpu, .stolen = 500 * (cpu + 1)};
		for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
			shared->cells[cpu].counts[i] = count_of(cpu, i);
	}
	struct vp_lent_thread *thread = &shared->threads[PLACE];
	*thread = (struct vp_lent_thread){.sequence = 8,
					  .state = VP_LENT_RUNNING,
					  .cpu = 1,
					  .stolen_base = 40,
					  .executed = 2,
					  .made = 9,
					  .made_at_exec = 4,
					  .born = 3};
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++) {
		thread->base[i] = base_of(i);
		thread->at_exec[i] = 60 + i;
	}
}

/* The thread's counters as one who attached to it has them, all events being asked for in the
 * opposite order. */
static int setup(void **state)
{
	fill(&memory);
	lent = (struct vp_counters_lent){.cells = memory.cells,
					 .thread = thread_here(),
					 .stints = memory.stints,
					 .n_cpus = CPUS,
					 .place = PLACE,
					 .marker = MARKER,
					 .n = VP_LENT_EVENTS,
					 .events = VP_LENT_EVENTS,
					 .tid = gettid()};
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		lent.places[i] = VP_LENT_EVENTS - 1 - i;
	return 0;
}

/* The host publishes. */
static void publish(unsigned cpu)
{
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		memory.cells[cpu].counts[i] += MORE;
	memory.cells[cpu].stolen += MORE;
	memory.cells[cpu].sequence++;
}

static void publish_here(void)
{
	publish(thread_here()->cpu);
}

/* The thread goes on on the last CPU, and that publishes. */
static void move(void)
{
	struct vp_lent_thread *thread = thread_here();
	const struct vp_lent_cell *from = &memory.cells[thread->cpu], *to = &memory.cells[CPUS - 1];

	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		thread->base[i] += from->counts[i] - to->counts[i];
	thread->stolen_base += from->stolen - to->stolen;
	thread->cpu = CPUS - 1;
	thread->sequence += 4;
	publish(CPUS - 1);
}

static void test_each_counter_on_each_cpu(void **state)
{
	uint64_t start[VPERF_MOST_EVENTS], values[VPERF_MOST_EVENTS];

	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		start[i] = i * i;
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		thread_here()->cpu = cpu;
		for (unsigned n = 1; n <= VP_LENT_EVENTS; n++) {
			lent.n = n;
			memset(values, 0xee, sizeof(values));
			assert_true(vp_counters_lent_read_own(&lent, start, values));
			for (unsigned i = 0; i < n; i++) {
				unsigned place = VP_LENT_EVENTS - 1 - i;
				assert_int_equal(values[i],
						 base_of(place) + count_of(cpu, place) - start[i]);
			}
			for (unsigned i = n; i < VP_LENT_EVENTS; i++)
				assert_int_equal(values[i], 0xeeeeeeeeeeeeeeee);
		}
	}
}

/* The host cannot count on that CPU, or has gone; or the thread has missed something, and its cell
 * is nobody's. */
static void test_lost(void **state)
{
	const uint64_t start[VPERF_MOST_EVENTS] = {0};
	uint64_t values[VPERF_MOST_EVENTS], stolen;

	memory.cells[1].marker = 0;
	assert_false(vp_counters_lent_read_own(&lent, start, values));
	assert_int_equal(vp_counters_lent_read(&lent, false, start, values), VPERF_E_LOST);
	assert_int_equal(vp_counters_lent_stolen(&lent, &stolen), VPERF_E_LOST);
	memory.cells[1].marker = MARKER + 1; /* an earlier agent's */
	assert_false(vp_counters_lent_read_own(&lent, start, values));
	thread_here()->cpu = 2; /* there it can */
	assert_true(vp_counters_lent_read_own(&lent, start, values));
	assert_int_equal(vp_counters_lent_read(&lent, false, start, values), VPERF_OK);
	assert_int_equal(vp_counters_lent_stolen(&lent, &stolen), VPERF_OK);
	thread_here()->cpu = CPUS;
	assert_false(vp_counters_lent_read_own(&lent, start, values));
}

static void test_stolen_and_stints(void **state)
{
	uint64_t stolen;

	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		thread_here()->cpu = cpu;
		assert_int_equal(vp_counters_lent_stolen(&lent, &stolen), VPERF_OK);
		assert_int_equal(stolen, 40 + 500 * (cpu + 1));
	}
	assert_int_equal(vp_counters_lent_stints(&lent), 2);
	thread_here()->sequence = 11;
	assert_int_equal(vp_counters_lent_stints(&lent), 2);
	thread_here()->sequence = 12;
	assert_int_equal(vp_counters_lent_stints(&lent), 3);
}

#if defined(__x86_64__)

/* Has the processor trap behind each instruction; what shall happen then happens behind one of
 * them, as an exit from the guest may come anywhere. */
enum { TRAP_FLAG = 0x100, MOST_STEPS = 2000, FURTHER = 500 };
static int steps_before;
static void (*at_step)(void);
static bool publishes_before; /* at each step until then */

static void on_step(int number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	if (steps_before-- > 0) {
		if (publishes_before)
			publish_here();
		return;
	}
	at_step();
	at_step = NULL;
	interrupted->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static inline __attribute__((always_inline)) void step_from_here(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
			 "lea 128(%%rsp), %%rsp" ::
			     : "memory", "cc");
}

static inline __attribute__((always_inline)) void step_no_more(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\t"
			 "lea 128(%%rsp), %%rsp" ::
			     : "memory", "cc");
}

static const uint64_t from_0[VPERF_MOST_EVENTS];
static uint64_t seen[VPERF_MOST_EVENTS];

/* Two events are enough, and each step takes its time. */
enum { STEPPED_EVENTS = 2 };

static int read_once(void)
{
	return __real_vp_counters_lent_read(&lent, false, from_0, seen);
}

static int read_stolen(void)
{
	int status = vp_counters_lent_stolen(&lent, &seen[0]);

	seen[1] = seen[0]; /* as if it were two counters */
	return status;
}

static int read_exactly(void)
{
	return __real_vp_counters_lent_read(&lent, true, from_0, seen);
}

static int look_here(void)
{
	struct vp_counters_lent_state state;
	int status = vp_counters_lent_look(&lent, &state);

	seen[0] = state.counts[1];
	seen[1] = state.counts[0];
	return status;
}

static void setup_stepped(void)
{
	setup(NULL);
	lent.n = lent.events = STEPPED_EVENTS;
	lent.places[0] = 1;
	lent.places[1] = 0;
}

/* How often what was read was what it was before anything happened, is from afterwards, or is
 * lost. */
struct outcomes {
	unsigned before, after, lost;
	int steps; /* of the longest read */
};

/* Has that happen behind each `stride`th instruction of a read, one after the other, up to the one
 * with number `most`: all values are of one moment. */
static struct outcomes read_at_each_step(int (*read)(void), void (*happens)(void), int stride,
					 int most)
{
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	struct outcomes ret = {0};
	uint64_t first[VPERF_MOST_EVENTS];

	sigaction(SIGTRAP, &action, NULL);
	setup_stepped();
	if (read == read_stolen)
		read_stolen();
	else
		read_once();
	memcpy(first, seen, sizeof(first));
	bool happened = true;
	for (int step = 0; happened && step < most; step += stride) {
		setup_stepped();
		steps_before = step;
		at_step = happens;
		step_from_here();
		int status = read();
		step_no_more();
		happened = !at_step;
		ret.steps = step;
		uint64_t newer = seen[0] - first[0];
		ret.lost += status != VPERF_OK;
		if (status != VPERF_OK)
			continue;
		if (newer != seen[1] - first[1] || newer % MORE ||
		    newer / MORE > (unsigned)step + 1)
			fail_msg("step %d: %llu and %llu more", step, (unsigned long long)newer,
				 (unsigned long long)(seen[1] - first[1]));
		ret.before += !newer;
		ret.after += newer != 0;
	}
	signal(SIGTRAP, SIG_DFL);
	return ret;
}

static void (*const happenings[])(void) = {publish_here, move};

/* Whatever comes between two instructions of a read. */
static void test_read_is_of_one_moment(void **state)
{
	static int (*const reads[])(void) = {read_once, read_stolen};

	publishes_before = false;
	for (unsigned i = 0; i < 4; i++) {
		struct outcomes of =
		    read_at_each_step(reads[i / 2], happenings[i % 2], 1, MOST_STEPS);
		assert_true(of.steps < MOST_STEPS - 1);
		assert_int_equal(of.lost, 0);
		assert_true(of.before && of.after);
	}
}

/* An exact read forces the host to publish: what it has is from after that, or it is lost. Where
 * that publishes, too, as often as can be, it is still of one moment. */
static void test_exact_read(void **state)
{
	static int (*const reads[])(void) = {read_exactly, look_here};
	uint64_t values[VPERF_MOST_EVENTS];

	for (unsigned i = 0; i < 4; i++) {
		publishes_before = false;
		struct outcomes of =
		    read_at_each_step(reads[i / 2], happenings[i % 2], 1, MOST_STEPS);
		assert_true(of.steps < MOST_STEPS - 1);
		assert_int_equal(of.before, 0);
		assert_true(of.after && of.lost);
		publishes_before = true;
		of = read_at_each_step(reads[i / 2], happenings[i % 2], 7, of.steps + FURTHER);
		assert_int_equal(of.before, 0);
		assert_true(of.after);
	}
	publishes_before = false;
	/* Where nobody publishes. */
	setup(NULL);
	assert_int_equal(vp_counters_lent_read(&lent, false, from_0, values), VPERF_OK);
	assert_int_equal(vp_counters_lent_read(&lent, true, from_0, values), VPERF_E_LOST);
	lent.exact = true;
	assert_int_equal(vp_counters_lent_read(&lent, false, from_0, values), VPERF_E_LOST);
}

#endif

/* What happens at each wait of the library, and how many there were. */
static void (*at_wait)(unsigned nth);
static unsigned waits;

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest)
{
	assert_int_equal(time->tv_sec, 0);
	assert_int_equal(time->tv_nsec, VP_COUNTERS_WAIT_NS);
	if (at_wait)
		at_wait(waits);
	waits++;
	return 0;
}

static int look_with(void (*happens)(unsigned nth), struct vp_counters_lent_state *ret)
{
	at_wait = happens;
	waits = 0;
	return vp_counters_lent_look(&lent, ret);
}

static void expect_look(const struct vp_counters_lent_state *look, unsigned cpu, uint64_t more)
{
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++) {
		uint64_t of_cell = cpu < CPUS ? count_of(cpu, i) : 0;
		assert_int_equal(look->counts[i], base_of(i) + of_cell + more);
		assert_int_equal(look->at_exec[i], 60 + i);
	}
	assert_int_equal(look->executed, 2);
	assert_int_equal(look->made, 9);
	assert_int_equal(look->made_at_exec, 4);
}

static void publish_twice(unsigned nth)
{
	if (nth < 2)
		publish_here();
}

static void publish_once(unsigned nth)
{
	if (!nth)
		publish_here();
}

static void publish_always(unsigned nth)
{
	publish_here();
}

static void leave_cpu(unsigned nth)
{
	struct vp_lent_thread *thread = thread_here();

	if (nth)
		return;
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		thread->base[i] += memory.cells[thread->cpu].counts[i];
	thread->state = VP_LENT_OUT;
	thread->cpu = 0;
	thread->sequence += 2;
}

static void move_once(unsigned nth)
{
	if (!nth)
		move();
}

static void be_switched(unsigned nth)
{
	thread_here()->sequence = nth < 4 ? 9 : 10;
}

/* A thread that runs elsewhere has what its vCPU has published since: that takes two publications,
 * as one may have been under way. */
static void test_look_at_other(void **state)
{
	struct vp_counters_lent_state look;

	lent.tid = gettid() + 1;
	assert_int_equal(look_with(publish_twice, &look), VPERF_OK);
	expect_look(&look, 1, 2 * MORE);
	assert_int_equal(waits, 3);

	setup(NULL);
	lent.tid = gettid() + 1;
	assert_int_equal(look_with(publish_once, &look), VPERF_E_LOST);
	assert_int_equal(waits, VP_COUNTERS_MOST_WAITS);

	setup(NULL);
	lent.tid = gettid() + 1;
	assert_int_equal(look_with(publish_always, &look), VPERF_E_LOST);

	/* It is switched out, or to another CPU, meanwhile. */
	setup(NULL);
	lent.tid = gettid() + 1;
	assert_int_equal(look_with(leave_cpu, &look), VPERF_OK);
	expect_look(&look, 1, 0);
	assert_int_equal(waits, 2);
	setup(NULL);
	lent.tid = gettid() + 1;
	assert_int_equal(look_with(move_once, &look), VPERF_OK);
	expect_look(&look, 1, MORE);

	/* Its writer is at work for a while. */
	setup(NULL);
	lent.tid = gettid() + 1;
	assert_int_equal(look_with(be_switched, &look), VPERF_OK);
	assert_int_equal(waits, 6);

	/* It missed something, or its CPU's counts are not known. */
	for (int missed = 0; missed < 2; missed++) {
		setup(NULL);
		lent.tid = gettid() + 1;
		memory.cells[1].marker = missed ? MARKER : 0;
		thread_here()->stale = (unsigned)missed;
		assert_int_equal(look_with(be_switched, &look), VPERF_E_LOST);
		assert_int_equal(waits, 6);
	}
}

/* One that does not run has nothing in any cell. */
static void test_look_at_one_that_is_out(void **state)
{
	struct vp_counters_lent_state look;

	lent.tid = gettid() + 1;
	thread_here()->state = VP_LENT_OUT;
	assert_int_equal(look_with(NULL, &look), VPERF_OK);
	expect_look(&look, CPUS, 0);
	assert_int_equal(waits, 1);
}

static void settle_late(unsigned nth)
{
	memory.stints[2].sequence = nth < 3 ? 1 : 4;
}

static void publish_nothing(unsigned nth)
{
	if (nth < 4)
		memory.cells[0].sequence++;
}

/* Of a family, some run: two on two CPUs, of which one is switched just now. */
static void test_family_on_several_cpus(void **state)
{
	uint64_t counts[VP_LENT_EVENTS];
	struct vp_lent_thread *thread = thread_here();
	uint32_t live = 0;

	thread->live = 4;
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		thread->family[i] = 1 + i;
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		memory.stints[cpu] = (struct vp_lent_stint){
		    .runs = cpu != 1, .place = PLACE, .born = 3, .sequence = 2};
		for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
			memory.stints[cpu].start[i] = count_of(cpu, i) - 10 * (cpu + 1) - i;
	}
	at_wait = settle_late;
	waits = 0;
	assert_int_equal(vp_counters_lent_family(&lent, counts, &live), VPERF_OK);
	for (unsigned i = 0; i < VP_LENT_EVENTS; i++)
		assert_int_equal(counts[i], 1 + i + 10 + i + 30 + i);
	assert_int_equal(live, 4);
	assert_int_equal(waits, 5);
	/* What counts nothing is published on one of its CPUs for a while. */
	at_wait = publish_nothing;
	waits = 0;
	assert_int_equal(vp_counters_lent_family(&lent, counts, &live), VPERF_OK);
	assert_int_equal(waits, 5);
	/* Of another place, or an earlier family of this one. */
	at_wait = NULL;
	memory.stints[0].place = PLACE + 1;
	memory.stints[2].born = 2;
	assert_int_equal(vp_counters_lent_family(&lent, counts, &live), VPERF_OK);
	assert_int_equal(counts[3], 4);
	thread->missed = 1;
	assert_int_equal(vp_counters_lent_family(&lent, counts, &live), VPERF_E_LOST);
}

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
	size_t threads = sizeof(memory.threads) + sizeof(memory.stints);

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
	munmap(shared_threads, sizeof(memory.threads) + sizeof(memory.stints));
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
	struct vp_lent_stint *stints = (void *)(shared_threads + VP_LENT_THREADS);
	uint64_t family[VP_LENT_EVENTS];
	uint32_t live;
	unsigned before = descriptors();

	shared_threads[PLACE].state = VP_LENT_OUT;
	assert_int_equal(vp_counters_lent_attach(getppid(), true, &got, NULL), VPERF_OK);
	assert_int_equal(recv(agent.socket, &request, sizeof(request), MSG_DONTWAIT),
			 sizeof(request));
	assert_int_equal(request.version, VP_LENT_VERSION);
	assert_int_equal(request.tid, getppid());
	assert_int_equal(request.flags, VP_LENT_ADOPT);
	assert_true(vp_counters_event_find("r1a8", &event));
	assert_int_equal(vp_counters_lent_place(got, &event), 3);
	assert_true(vp_counters_event_find("PAPI_TOT_CYC:u", &event));
	assert_int_equal(vp_counters_lent_place(got, &event), 1);
	assert_true(vp_counters_event_find("cycles", &event));
	assert_int_equal(vp_counters_lent_place(got, &event), -1);
	assert_int_equal(vp_counters_lent_look(got, &look), VPERF_OK);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(look.counts[i], base_of(i));
	stints[CPUS - 1] = (struct vp_lent_stint){.runs = 1, .place = PLACE, .born = 3};
	stints[CPUS] = stints[CPUS - 1];
	stints[CPUS].start[2] = 1;
	shared_threads[PLACE].live = 1;
	assert_int_equal(vp_counters_lent_family(got, family, &live), VPERF_OK);
	assert_int_equal(family[2], count_of(CPUS - 1, 2));
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
	expect_failure(VPERF_E_NOT_LENT, "no host lends counters");
	agent.sends_nothing = false;
	agent.is_short = true;
	expect_failure(VPERF_E_NOT_LENT, "no host lends counters");
	agent.is_short = false;
	agent.has_no_fds = true;
	expect_failure(VPERF_E_NOT_LENT, "has no descriptors");
	agent.has_no_fds = false;
	agent.reply.version = VP_LENT_VERSION + 1;
	expect_failure(VPERF_E_VERSION, "in version 5, expected 4");
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
	expect_failure(VPERF_E_NOT_LENT, "the host does not lend 'branch-misses'");
	agent.reply.events = 3;
	shared_threads[PLACE].state = VP_LENT_NEW;
	expect_failure(VPERF_E_LOST, "does not see this thread");
	assert_int_equal(waits, VP_COUNTERS_MOST_WAITS);
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
    .exact_read = {300, 31}, .read = {7, 70}, .stint = {2700, 11}};
static bool reads_are_free;

int __wrap_vp_counters_costs_measure(const struct vp_counters_costs_ops *ops, void *context,
				     unsigned n, struct vp_counters_costs *ret,
				     struct vperf_error *error);
int __wrap_vp_counters_costs_measure(const struct vp_counters_costs_ops *ops, void *context,
				     unsigned n, struct vp_counters_costs *ret,
				     struct vperf_error *error)
{
	assert_int_equal(n, 2);
	assert_int_equal(ops->stints(context), 2);
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

	if (own == &lent) /* no set's */
		return __real_vp_counters_lent_read(own, exact, start, values);
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
	happen(costs.stint[0], costs.stint[1]);
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
	assert_true(times.known & VPERF_KNOWS_STOLEN);
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
		cmocka_unit_test_setup(test_each_counter_on_each_cpu, setup),
		cmocka_unit_test_setup(test_lost, setup),
		cmocka_unit_test_setup(test_stolen_and_stints, setup),
#if defined(__x86_64__)
		cmocka_unit_test_setup(test_read_is_of_one_moment, setup),
		cmocka_unit_test_setup(test_exact_read, setup),
#endif
		cmocka_unit_test_setup(test_look_at_other, setup),
		cmocka_unit_test_setup(test_look_at_one_that_is_out, setup),
		cmocka_unit_test_setup(test_family_on_several_cpus, setup),
		cmocka_unit_test_setup_teardown(test_attach, start_agent, end_agent),
		cmocka_unit_test_setup_teardown(test_refusals, start_agent, end_agent),
		cmocka_unit_test_setup_teardown(test_waits_to_be_seen, start_agent, end_agent),
		cmocka_unit_test_setup_teardown(test_does_not_wait_for_who_sleeps, start_agent,
						end_agent),
		cmocka_unit_test_setup_teardown(test_set, start_agent, end_agent),
		cmocka_unit_test_setup_teardown(test_calibrated_set, start_agent, end_agent),
		cmocka_unit_test_setup_teardown(test_exact_set, start_agent, end_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
