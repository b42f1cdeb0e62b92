/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "counters/overflow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "counters/set.h"

/* Interval of the timer, ns. The first one measures the rate. The minimum is the cost of the
 * kernel's timer, the maximum the latest time at which a changed rate is noticed. With an
 * inaccurate rate, the interval grows by a factor. A thread that advances by less than
 * 1/MIN_PART of its rate spends its time in the handler. */
enum { FIRST_NS = 50000, MIN_NS = 10000, MAX_NS = 4000000, GROWTH = 4, MIN_PART = 4 };
enum { MAX_OVERFLOWS = 1024 };

struct vp_counters_overflow {
	const struct vp_counters_overflow_ops *ops;
	void *context;
	unsigned n, event;
	uint64_t period;
	int signal, fd;
	int reported_fd; /* file descriptor in the signal's siginfo */
	pid_t tid;
	uint64_t rest[VPERF_MAX_EVENTS]; /* counts of the handler in addition to those it measures
					    itself */
	uint64_t origin;                 /* counter value at the start */
	uint64_t stopped_at;             /* counter value when it was stopped */
	uint64_t sent;                   /* signals since the start */
	uint64_t count, ns;              /* at the last check: count, and thread time */
	uint64_t asked_ns;               /* timer interval as last set */
	uint64_t min_ns;                 /* lower limit of the timer interval */
	struct pace {
		uint64_t count, ns;
	} paces[2];             /* of the last two periods that were long enough */
	bool runs, is_measured; /* is_measured: the handler's overhead is known */
	bool is_armed;          /* a timer signal is pending or will come */
};

/* By the timer's file descriptor, which is all that its signal contains. The signal handler has
 * no other way to find its state. */
static _Atomic(struct vp_counters_overflow *) overflows[MAX_OVERFLOWS];

static _Atomic(struct vp_counters_overflow *) *slot_of(int fd)
{
	for (int i = 0; i < MAX_OVERFLOWS; i++) {
		_Atomic(struct vp_counters_overflow *) *slot = &overflows[(fd + i) % MAX_OVERFLOWS];
		struct vp_counters_overflow *overflow = atomic_load(slot);
		if (overflow && overflow->fd == fd)
			return slot;
	}
	return NULL;
}

static bool overflow_claim_slot(struct vp_counters_overflow *overflow)
{
	for (int i = 0; i < MAX_OVERFLOWS; i++) {
		struct vp_counters_overflow *none = NULL;
		if (atomic_compare_exchange_strong(&overflows[(overflow->fd + i) % MAX_OVERFLOWS],
						   &none, overflow))
			return true;
	}
	return false;
}

static uint64_t thread_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Sends it to this thread, with the contents of perf's overflow signal. False: the signal queue
 * is full. */
static bool send_signal(const struct vp_counters_overflow *overflow, int number)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = number;
	info.si_code = POLL_IN;
	info.si_band = POLLIN | POLLRDNORM;
	info.si_fd = number == overflow->signal ? overflow->reported_fd : overflow->fd;
	return !syscall(SYS_rt_tgsigqueueinfo, getpid(), overflow->tid, number, &info);
}

/* Non-real-time signals do not queue: the next is sent after the previous one was delivered.
 * False: more real-time signals cannot be queued, either. */
static bool send_due(struct vp_counters_overflow *overflow, uint64_t count, const void *interrupted)
{
	const struct vp_counters_overflow_ops *ops = overflow->ops;
	sigset_t pending;
	bool goes_on = true;

	while (goes_on && overflow->sent < count / overflow->period) {
		if (overflow->signal < SIGRTMIN && !sigpending(&pending) &&
		    sigismember(&pending, overflow->signal))
			break;
		goes_on = !ops->notify || ops->notify(overflow->context, interrupted);
		if (!send_signal(overflow, overflow->signal))
			return false;
		overflow->sent++;
	}
	if (!goes_on) {
		overflow->runs = false;
		overflow->stopped_at = overflow->origin + count;
	}
	return true;
}

/* Counts and time since the last check. A check that comes late shows steal, which is included in
 * the thread's apparent CPU time: its pace is not the thread's. */
static void update_pace(struct vp_counters_overflow *overflow, uint64_t counted, uint64_t took)
{
	struct pace *paces = overflow->paces;

	if (paces[0].count && (counted < overflow->period / 8 || took / 2 > overflow->asked_ns))
		return;
	if (paces[0].count >= overflow->period / 8)
		paces[1] = paces[0];
	paces[0] = (struct pace){counted, took};
}

/* The faster one: it is less disturbed by steal. */
static struct pace pace_of(const struct vp_counters_overflow *overflow)
{
	struct pace last = overflow->paces[0], before = overflow->paces[1];

	return (__uint128_t)before.count * last.ns > (__uint128_t)last.count * before.ns ? before
											 : last;
}

/* The timer continues while its handler returns. If that takes longer than the interval, the
 * thread makes no progress, so the interval grows until it does. */
static void ensure_progress(struct vp_counters_overflow *overflow, uint64_t counted)
{
	struct pace pace = pace_of(overflow);
	bool gets_on = (__uint128_t)counted * pace.ns * MIN_PART >=
		       (__uint128_t)pace.count * overflow->asked_ns;
	uint64_t ns = gets_on ? overflow->min_ns / 2 : overflow->min_ns * 2;

	overflow->min_ns = ns < MIN_NS ? MIN_NS : ns > MAX_NS ? MAX_NS : ns;
}

/* Thread time until the next overflow at the current rate; slightly longer, because an early
 * timer fires twice. */
static uint64_t time_left(struct vp_counters_overflow *overflow, uint64_t count, uint64_t now)
{
	uint64_t took = now - overflow->ns, next = (overflow->sent + 1) * overflow->period;
	uint64_t most = took * GROWTH < MAX_NS ? took * GROWTH : MAX_NS;
	uint64_t least = overflow->min_ns;
	__uint128_t time = most;

	update_pace(overflow, count - overflow->count, took);
	struct pace pace = pace_of(overflow);
	if (next <= count)
		return least;
	if (pace.count)
		time = (__uint128_t)(next - count) * pace.ns / pace.count;
	time += time / 64;
	if (pace.count >= overflow->period / 8)
		most = MAX_NS;
	if (time > most)
		time = most;
	return time < least ? least : (uint64_t)time;
}

/* Sets the timer for one signal, excluding the time of the check itself. The kernel adds
 * refreshed periods: refreshing before the previous signal was delivered would yield two
 * signals, and if checks take longer than the interval, an increasing number. */
static int set_timer(struct vp_counters_overflow *overflow, uint64_t ns)
{
	overflow->asked_ns = ns;
	if (ioctl(overflow->fd, PERF_EVENT_IOC_PERIOD, &ns) ||
	    (!overflow->is_armed && ioctl(overflow->fd, PERF_EVENT_IOC_REFRESH, 1)))
		return -errno;
	overflow->is_armed = true;
	return 0;
}

/* Sets the timer beyond any program's run time instead of disarming it: a signal that arrives
 * after execve() would kill the new program. */
static void hold_timer(struct vp_counters_overflow *overflow)
{
	uint64_t never = 1ULL << 60;

	ioctl(overflow->fd, PERF_EVENT_IOC_PERIOD, &never);
}

/* False: the counters failed. `own`: counts of the handler itself. */
static bool overflow_check_counter(struct vp_counters_overflow *overflow, const void *interrupted,
				   uint64_t *own)
{
	uint64_t before[VPERF_MAX_EVENTS], now = thread_ns();
	bool has_room = true;

	if (!overflow->ops->read(overflow->context, before))
		return false;
	uint64_t count = before[overflow->event] - overflow->origin;
	if (!overflow->is_measured)
		has_room = send_due(overflow, count, interrupted);
	ensure_progress(overflow, count - overflow->count);
	uint64_t left = has_room ? time_left(overflow, count, now) : MAX_NS;
	overflow->count = count;
	if (!overflow->ops->read(overflow->context, own))
		return false;
	for (unsigned i = 0; i < overflow->n; i++)
		own[i] -= before[i];
	if (overflow->runs || overflow->is_measured)
		set_timer(overflow, left);
	overflow->ns = thread_ns();
	return true;
}

static void overflow_check(struct vp_counters_overflow *overflow, const void *interrupted)
{
	uint64_t own[VPERF_MAX_EVENTS];

	if (!overflow_check_counter(overflow, interrupted, own))
		return;
	if (overflow->is_measured) {
		memcpy(overflow->rest, own, sizeof(own));
		memset(own, 0, sizeof(own));
		overflow->ops->take_off(overflow->context, own);
		overflow->is_measured = false;
		return;
	}
	for (unsigned i = 0; i < overflow->n; i++)
		own[i] += overflow->rest[i];
	if (overflow->runs) /* otherwise counting ended with this check */
		overflow->origin += own[overflow->event];
	overflow->ops->take_off(overflow->context, own);
}

static void overflow_on_timer(int number, siginfo_t *info, void *context)
{
	_Atomic(struct vp_counters_overflow *) *slot = slot_of(info->si_fd);
	struct vp_counters_overflow *overflow = slot ? atomic_load(slot) : NULL;
	int errnum = errno;

	if (overflow && overflow->tid == gettid()) {
		if (info->si_code == POLL_HUP) /* sent by the timer, for the last time */
			overflow->is_armed = false;
		if (overflow->runs || overflow->is_measured)
			overflow_check(overflow, context);
	}
	errno = errnum;
}

/* Signal for the timer: the highest real-time signal without a handler, or the one already in
 * use, or 0. */
static int timer_signal(int wanted)
{
	struct sigaction action = {.sa_sigaction = overflow_on_timer,
				   .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction before;

	/* The program's signals are delivered after the handler, at the interrupted instruction. */
	sigfillset(&action.sa_mask);
	for (int number = SIGRTMAX; number >= SIGRTMIN; number--) {
		if (number == wanted || sigaction(number, NULL, &before))
			continue;
		if (before.sa_flags & SA_SIGINFO && before.sa_sigaction == overflow_on_timer)
			return number;
		if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL &&
		    !sigaction(number, &action, NULL))
			return number;
	}
	return 0;
}

/* Excluding the kernel: such a timer needs fewer privileges. */
static int open_timer(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .sample_period = FIRST_NS,
				       .wakeup_events = 1,
				       .disabled = 1,
				       .exclude_hv = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0 || (errno != EACCES && errno != EPERM))
		return fd;
	attr.exclude_kernel = 1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int direct_timer_signal(struct vp_counters_overflow *overflow, int number)
{
	struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = overflow->tid};

	overflow->fd = open_timer();
	if (overflow->fd < 0 || fcntl(overflow->fd, F_SETOWN_EX, &owner) ||
	    fcntl(overflow->fd, F_SETSIG, number) || fcntl(overflow->fd, F_SETFL, O_ASYNC))
		return -errno;
	return 0;
}

/* Measures the handler's counts in addition to those it measures itself; keeps the minimum.
 * False: unreadable. */
static bool measure_once(struct vp_counters_overflow *overflow, int number, uint64_t *least)
{
	uint64_t shown[3][VPERF_MAX_EVENTS];
	const struct vp_counters_overflow_ops *ops = overflow->ops;
	bool can_read = ops->read(overflow->context, shown[0]);

	send_signal(overflow, 0); /* includes the call itself */
	can_read = can_read && ops->read(overflow->context, shown[1]);
	overflow->is_measured = true;
	send_signal(overflow, number);
	can_read = can_read && ops->read(overflow->context, shown[2]);
	for (unsigned i = 0; can_read && i < overflow->n; i++) {
		uint64_t all = shown[2][i] - shown[1][i];
		uint64_t known = shown[1][i] - shown[0][i] + overflow->rest[i];
		uint64_t rest = all > known ? all - known : 0;
		least[i] = rest < least[i] ? rest : least[i];
	}
	return can_read;
}

/* The first run includes one-time costs such as page faults. */
static int measure_handler(struct vp_counters_overflow *overflow, int number,
			   struct vperf_error *error)
{
	uint64_t least[VPERF_MAX_EVENTS];
	bool can_read = true;

	memset(least, 0xff, sizeof(least));
	for (int i = 0; can_read && i < 3; i++)
		can_read = measure_once(overflow, number, least);
	hold_timer(overflow);
	if (!can_read)
		return vp_counters_fail(error, VPERF_E_LOST, "the counters cannot be read");
	if (overflow->is_measured)
		return vp_counters_fail(
		    error, VPERF_E_ARGUMENT,
		    "the thread blocks signal %d, which the timer for overflow signals uses",
		    number);
	memcpy(overflow->rest, least, sizeof(least));
	return VPERF_OK;
}

static int set_up(struct vp_counters_overflow *overflow, struct vperf_error *error)
{
	int number = timer_signal(overflow->signal);

	if (!number)
		return vp_counters_fail(error, VPERF_E_SYSTEM,
					"the timer for overflow signals needs a real-time signal, "
					"but the program has handlers for all of them");
	int errnum = -direct_timer_signal(overflow, number);
	if (errnum)
		return vp_counters_fail(
		    error, errnum == EACCES || errnum == EPERM ? VPERF_E_RIGHTS : VPERF_E_SYSTEM,
		    "overflow signals of host-provided counters need a perf timer (task-clock): "
		    "%s: see kernel.perf_event_paranoid",
		    strerror(errnum));
	if (!overflow_claim_slot(overflow))
		return vp_counters_fail(error, VPERF_E_TOO_MANY,
					"more than %d sets with overflow signals", MAX_OVERFLOWS);
	return measure_handler(overflow, number, error);
}

int vp_counters_overflow_open(const struct vp_counters_overflow_ops *ops, void *context, unsigned n,
			      const struct vperf_options *options,
			      struct vp_counters_overflow **ret, struct vperf_error *error)
{
	struct vp_counters_overflow *overflow = calloc(1, sizeof(*overflow));

	if (!overflow)
		return vp_counters_fail(error, VPERF_E_SYSTEM, "out of memory");
	overflow->ops = ops;
	overflow->context = context;
	overflow->n = n;
	overflow->event = options->event;
	overflow->period = options->period;
	overflow->signal = options->signal;
	overflow->tid = gettid();
	overflow->fd = -1;
	int status = set_up(overflow, error);
	overflow->reported_fd = overflow->fd;
	if (status)
		vp_counters_overflow_close(overflow);
	else
		*ret = overflow;
	return status;
}

void vp_counters_overflow_close(struct vp_counters_overflow *overflow)
{
	if (!overflow)
		return;
	if (overflow->fd >= 0) {
		_Atomic(struct vp_counters_overflow *) *slot = slot_of(overflow->fd);
		if (overflow->tid == gettid()) /* not in a forked child */
			ioctl(overflow->fd, PERF_EVENT_IOC_DISABLE, 0);
		if (slot)
			atomic_store(slot, NULL);
		close(overflow->fd);
	}
	free(overflow);
}

int vp_counters_overflow_start(struct vp_counters_overflow *overflow, uint64_t shown)
{
	overflow->origin = shown;
	overflow->sent = overflow->count = 0;
	overflow->ns = thread_ns();
	overflow->min_ns = MIN_NS;
	memset(overflow->paces, 0, sizeof(overflow->paces));
	overflow->runs = true;
	return set_timer(overflow, FIRST_NS) ? VPERF_E_SYSTEM : VPERF_OK;
}

void vp_counters_overflow_stop(struct vp_counters_overflow *overflow, uint64_t shown)
{
	overflow->runs = false;
	overflow->stopped_at = shown;
	hold_timer(overflow);
	send_due(overflow, shown - overflow->origin, NULL);
}

int vp_counters_overflow_resume(struct vp_counters_overflow *overflow, uint64_t shown)
{
	overflow->origin += shown - overflow->stopped_at;
	overflow->count = shown - overflow->origin;
	overflow->ns = thread_ns();
	uint64_t left = time_left(overflow, overflow->count, overflow->ns);
	overflow->runs = true;
	return set_timer(overflow, left) ? VPERF_E_SYSTEM : VPERF_OK;
}

int vp_counters_overflow_fd(const struct vp_counters_overflow *overflow)
{
	return overflow->fd;
}

void vp_counters_overflow_set_fd(struct vp_counters_overflow *overflow, int fd)
{
	overflow->reported_fd = fd;
}
