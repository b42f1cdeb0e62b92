/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * count-loops [OPTION VALUE]...: a client of libvperf that knows what it does. Prints one line
 * KEY=VALUE ... for each thing that it measured; 'error' in one if the library says one.
 *
 *   --event NAME      may be given again (default: instructions:u)
 *   --way any|user|call|lent, --exact 1
 *   --loops N         of six instructions each, between two reads (default: 1000000)
 *   --rounds N        so many times (default: 5)
 *   --pages N         and N pages of new memory behind each of them
 *   --threads N       all at the same time on CPU 0; thread n does n times the loops
 *   --move MS         and are moved from CPU to CPU, each MS ms one of them, at random
 *   --turns 1         and take turns: while one works, the others sleep
 *   --reads N         reads in a row, that must not go backwards
 *   --view 1          of which each is vperf_view_read() of the first event
 *   --calibrate 1     takes off what counting itself adds
 *   --period N        a signal each so many of the first event
 *   --late 1          and how late they came, by the counter itself
 *   --wait S          before it begins
 *   --user N          as that user
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "known_loop.h"
#include "vperf/counters.h"

enum { MAX_THREADS = 16 };

struct settings {
	const char *events[VPERF_MAX_EVENTS];
	unsigned n;
	struct vperf_options options;
	uint64_t loops, rounds, pages, threads, reads, move, turns, late, view, calibrate;
};

struct worker {
	const struct settings *settings;
	unsigned number;
	pthread_t thread;
	sem_t turn;
	volatile pid_t tid;
	struct vperf_counters *counters;
	volatile uint64_t signals; /* that it got */
	volatile uint64_t late;    /* events after the overflows, in all */
};

static struct worker workers[MAX_THREADS];
/* One calibrates at a time, and none works before all have. */
static pthread_mutex_t calibration = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_are_open;

static void die(const char *what, int status, const char *text)
{
	printf("error=%d what=%s text=%s\n", status, what, text);
	exit(1);
}

static struct vperf_counters *open_set(const struct settings *settings)
{
	struct vperf_counters *counters;
	struct vperf_error error;
	int status = vperf_counters_open(settings->events, settings->n, &settings->options,
					 &counters, &error);

	if (status)
		die("open", status, error.text);
	status = settings->calibrate ? vperf_counters_calibrate(counters, &error) : VPERF_OK;
	if (status)
		die("calibrate", status, error.text);
	return counters;
}

static void check(const char *what, int status)
{
	if (status)
		die(what, status, vperf_status_text(status));
}

static void print_values(const uint64_t *values, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		printf("%s%" PRIu64, i ? "," : "", values[i]);
}

static char *new_pages(uint64_t n)
{
	size_t size = n * (size_t)getpagesize();
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise(memory, size, MADV_NOHUGEPAGE))
		die("mmap", 1, "no memory");
	return memory;
}

static void touch_pages(volatile char *pages, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		pages[i * (size_t)getpagesize()] = 1;
}

static void run_round(const struct settings *settings)
{
	known_loop(settings->loops);
	if (settings->pages)
		touch_pages(new_pages(settings->pages), settings->pages);
}

/* Rounds of the same loop between two reads; and two reads with nothing between. */
static void run_rounds(const struct settings *settings)
{
	uint64_t before[VPERF_MAX_EVENTS], after[VPERF_MAX_EVENTS];
	struct vperf_counters *counters = open_set(settings);
	struct vperf_times times = {.size = sizeof(times)};

	printf("way=%d why=%s\n", vperf_counters_way(counters), vperf_counters_why(counters));
	check("start", vperf_counters_start(counters));
	for (uint64_t round = 0; round < 2 * settings->rounds; round++) {
		check("read", vperf_counters_read(counters, before));
		if (round % 2)
			run_round(settings);
		check("read", vperf_counters_read(counters, after));
		for (unsigned i = 0; i < settings->n; i++)
			after[i] -= before[i];
		printf("%s=", round % 2 ? "loop" : "nothing");
		print_values(after, settings->n);
		printf("\n");
	}
	check("times", vperf_counters_times(counters, &times));
	check("stop", vperf_counters_stop(counters, after));
	printf("all=");
	print_values(after, settings->n);
	printf(" wall=%" PRIu64 " on_cpu=%" PRIu64 " stolen_least=%" PRIu64 " stolen_most=%" PRIu64
	       " known=%u\n",
	       times.wall, times.on_cpu, times.stolen_least, times.stolen_most, times.known);
	vperf_counters_close(counters);
}

static int read_next(struct vperf_counters *counters, const struct vperf_view *view, uint64_t *now)
{
	return view ? vperf_view_read(view, 0, now) : vperf_counters_read(counters, now);
}

static void run_reads(const struct settings *settings)
{
	uint64_t now[VPERF_MAX_EVENTS] = {0}, last[VPERF_MAX_EVENTS] = {0};
	uint64_t backwards = 0, done = 0;
	struct vperf_counters *counters = open_set(settings);
	const struct vperf_view *view =
	    settings->view ? vperf_counters_view(counters, VPERF_VIEW_1) : NULL;
	struct timespec begin, end;
	int status = vperf_counters_start(counters);

	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (!status && done < settings->reads) {
		status = read_next(counters, view, now);
		for (unsigned i = 0; !status && i < settings->n; i++) {
			backwards += now[i] < last[i];
			last[i] = now[i];
		}
		done++;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("reads=%" PRIu64 " backwards=%" PRIu64 " status=%d ns=%.0f last=", done, backwards,
	       status,
	       (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec));
	print_values(last, settings->n);
	printf("\n");
	vperf_counters_close(counters);
}

static void count_signal(struct worker *worker)
{
	const struct settings *settings = worker->settings;
	uint64_t values[VPERF_MAX_EVENTS];

	worker->signals++;
	if (settings->late && !vperf_counters_read(worker->counters, values))
		worker->late += values[0] - worker->signals * settings->options.period;
}

static void on_overflow(int number, siginfo_t *info, void *context)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	for (unsigned i = 0; i < MAX_THREADS; i++)
		if (workers[i].tid == tid)
			count_signal(&workers[i]);
}

/* Whether it was bound to another one before. */
static bool bind_to(pid_t tid, unsigned number)
{
	cpu_set_t cpu, before;

	CPU_ZERO(&cpu);
	CPU_SET(number, &cpu);
	bool moves = !sched_getaffinity(tid, sizeof(before), &before) && !CPU_EQUAL(&cpu, &before);
	sched_setaffinity(tid, sizeof(cpu), &cpu);
	return moves;
}

/* Until it is this one's turn, and the one before has gone to sleep: on the lab's Arm host a
 * counter counts what all pCPUs execute. */
static void await_turn(struct worker *worker)
{
	if (!worker->settings->turns)
		return;
	while (sem_wait(&worker->turn) && errno == EINTR)
		;
	usleep(1000);
}

static void end_turn(struct worker *worker)
{
	const struct settings *settings = worker->settings;

	if (settings->turns)
		sem_post(&workers[worker->number % settings->threads].turn);
}

static void *work(void *context)
{
	struct worker *worker = context;
	const struct settings *settings = worker->settings;
	uint64_t values[VPERF_MAX_EVENTS];
	struct rusage usage;

	bind_to(0, 0);
	worker->tid = (pid_t)syscall(SYS_gettid);
	pthread_mutex_lock(&calibration);
	struct vperf_counters *counters = open_set(settings);
	pthread_mutex_unlock(&calibration);
	worker->counters = counters;
	if (settings->calibrate)
		pthread_barrier_wait(&all_are_open);
	check("start", vperf_counters_start(counters));
	for (uint64_t i = 0; i < settings->rounds; i++) {
		await_turn(worker);
		known_loop(settings->loops * worker->number);
		end_turn(worker);
		if (i % 4 == 3)
			sched_yield();
	}
	check("stop", vperf_counters_stop(counters, values));
	getrusage(RUSAGE_THREAD, &usage);
	printf("thread=%u expected=%" PRIu64 " signals=%" PRIu64 " switches=%ld values=",
	       worker->number, 6 * settings->loops * worker->number * settings->rounds,
	       worker->signals, usage.ru_nvcsw + usage.ru_nivcsw);
	print_values(values, settings->n);
	if (settings->late && worker->signals)
		printf(" late=%" PRIu64, worker->late / worker->signals);
	printf("\n");
	vperf_counters_close(counters);
	worker->tid = 0;
	return NULL;
}

/* Until all are done; how often is known to who reads it. */
static void move_threads(const struct settings *settings)
{
	unsigned cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN), alive = 1, moves = 0;

	while (alive) {
		usleep((useconds_t)settings->move * 1000);
		alive = 0;
		for (unsigned j = 0; j < settings->threads; j++)
			alive += workers[j].tid != 0;
		pid_t tid = workers[(uint64_t)random() % settings->threads].tid;
		if (tid)
			moves += bind_to(tid, (unsigned)random() % cpus);
	}
	printf("moves=%u\n", moves);
}

static void run_threads(const struct settings *settings)
{
	struct sigaction action = {.sa_sigaction = on_overflow,
				   .sa_flags = SA_SIGINFO | SA_RESTART};

	pthread_barrier_init(&all_are_open, NULL, (unsigned)settings->threads);
	if (settings->options.signal)
		sigaction(settings->options.signal, &action, NULL);
	for (unsigned i = 0; i < settings->threads; i++) {
		workers[i] = (struct worker){.settings = settings, .number = i + 1};
		sem_init(&workers[i].turn, 0, !i);
	}
	for (unsigned i = 0; i < settings->threads; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	if (settings->move)
		move_threads(settings);
	for (unsigned i = 0; i < settings->threads; i++)
		pthread_join(workers[i].thread, NULL);
}

static uint32_t way_of(const char *name)
{
	static const char *const names[] = {"any", "user", "call", "lent"};

	for (uint32_t i = 0; i < 4; i++)
		if (!strcmp(name, names[i]))
			return i;
	die("--way", 2, name);
	return 0;
}

static void take_user(uid_t user)
{
	if (setresuid(user, user, user))
		die("--user", 1, strerror(errno));
}

static void take_option(struct settings *settings, const char *name, const char *value)
{
	uint64_t number = strtoull(value, NULL, 0);

	if (!strcmp(name, "--event") && settings->n < VPERF_MAX_EVENTS)
		settings->events[settings->n++] = value;
	else if (!strcmp(name, "--way"))
		settings->options.way = way_of(value);
	else if (!strcmp(name, "--exact"))
		settings->options.flags = number ? VPERF_EXACT : 0;
	else if (!strcmp(name, "--loops"))
		settings->loops = number;
	else if (!strcmp(name, "--rounds"))
		settings->rounds = number;
	else if (!strcmp(name, "--pages"))
		settings->pages = number;
	else if (!strcmp(name, "--threads") && number <= MAX_THREADS)
		settings->threads = number;
	else if (!strcmp(name, "--move"))
		settings->move = number;
	else if (!strcmp(name, "--reads"))
		settings->reads = number;
	else if (!strcmp(name, "--view"))
		settings->view = number;
	else if (!strcmp(name, "--calibrate"))
		settings->calibrate = number;
	else if (!strcmp(name, "--turns"))
		settings->turns = number;
	else if (!strcmp(name, "--late"))
		settings->late = number;
	else if (!strcmp(name, "--period")) {
		settings->options.period = number;
		settings->options.signal = SIGRTMIN + 1;
	} else if (!strcmp(name, "--wait"))
		usleep((useconds_t)(strtod(value, NULL) * 1e6));
	else if (!strcmp(name, "--user"))
		take_user((uid_t)number);
	else
		die("option", 2, name);
}

int main(int argc, char **argv)
{
	struct settings settings = {
	    .loops = 1000000, .rounds = 5, .options = {.size = sizeof(struct vperf_options)}};

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i + 1 < argc; i += 2)
		take_option(&settings, argv[i], argv[i + 1]);
	if (!settings.n)
		settings.events[settings.n++] = "instructions:u";
	if (settings.threads)
		run_threads(&settings);
	else if (settings.reads)
		run_reads(&settings);
	else
		run_rounds(&settings);
	return 0;
}
