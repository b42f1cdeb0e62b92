/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libvperf-papi.so, for LD_PRELOAD: libvperf's counters as software-defined events of PAPI
 * (sde:::vperf::NAME). PAPI's component for these searches the program for the functions sde_ti_*
 * of its library libsde; this library defines them. If the program has libsde too, as
 * papi_native_avail has, other events are forwarded to it, with numbers after vperf's.
 *
 * libsde has one value per event for all threads. Here each thread has its own: PAPI starts,
 * reads and stops in the thread that it counts. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>

#include "counters/counters_event.h"
#include "vperf/counters.h"

#define PUBLIC __attribute__((visibility("default")))

/* From sde_lib.h of PAPI 7.0; the last two are from papi.h and returned by PAPI_overflow(). */
enum { SDE_OK = 0, SDE_EINVAL = -1, SDE_ENOMEM = -2, SDE_ENOEVNT = -7 };
enum { PAPI_ECMP = -4, PAPI_EPERM = -15 };
enum { MAX_EVENTS = 128, NAME_SIZE = VP_COUNTERS_NAME_SIZE + 8 };
static const char prefix[] = "vperf::";

/* State of an event in one thread. */
struct reader {
	struct vperf_counters *counters;
	uint64_t base;
	/* State of PAPI_overflow(), 0 without it: its threshold, and the number of periods
	 * since; whether PAPI receives a call. */
	uint64_t period, overflows;
	volatile bool delivers;
};

struct event {
	char name[NAME_SIZE]; /* including the prefix */
	char description[160];
};

static struct event events[MAX_EVENTS];
static _Atomic unsigned n_events;
static uint32_t n_reserved; /* numbers before libsde's, reserved for vperf's events */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* PAPI's function that calls the program's overflow handler. */
typedef void check_overflow(uint32_t number, long long value);
static _Atomic(check_overflow *) papi_check_overflow;
static pthread_key_t readers_key;
/* Context interrupted by the overflow signal, while PAPI may request it. */
static __thread const ucontext_t *interrupted __attribute__((tls_model("initial-exec")));
static pthread_once_t key_once = PTHREAD_ONCE_INIT, list_once = PTHREAD_ONCE_INIT;

/* libsde's function of that name; NULL: no libsde in the program. */
static void *find_next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* NULL: not a vperf event. */
static struct event *papi_event_of(uint32_t number)
{
	return number < atomic_load(&n_events) ? &events[number] : NULL;
}

static void close_readers(void *readers)
{
	for (unsigned i = 0; i < MAX_EVENTS; i++)
		vperf_counters_close(((struct reader *)readers)[i].counters);
	free(readers);
}

static void make_key(void)
{
	pthread_key_create(&readers_key, close_readers);
}

/* State of the calling thread; NULL: out of memory. */
static struct reader *reader_of(const struct event *event)
{
	pthread_once(&key_once, make_key);
	struct reader *readers = pthread_getspecific(readers_key);
	if (!readers) {
		readers = calloc(MAX_EVENTS, sizeof(*readers));
		if (!readers || pthread_setspecific(readers_key, readers)) {
			free(readers);
			return NULL;
		}
	}
	return &readers[event - events];
}

/* Finds the functions of the caller's copy of PAPI: a program may have loaded it with
 * RTLD_LOCAL. */
static bool find_papi(const void *caller)
{
	static const char name[] = "papi_sde_check_overflow_status";
	Dl_info info = {0};
	void *library = dladdr(caller, &info) && info.dli_fname
			    ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD)
			    : NULL;
	void *found = library ? dlsym(library, name) : find_next(name);

	if (library)
		dlclose(library);
	atomic_store(&papi_check_overflow, (check_overflow *)found);
	return found != NULL;
}

/* Finds the event of the file descriptor in the signal's siginfo. */
static struct reader *reader_of_signal(struct reader *readers, int fd)
{
	for (unsigned i = 0; readers && i < atomic_load(&n_events); i++)
		if (readers[i].delivers && vperf_counters_descriptor(readers[i].counters) == fd)
			return &readers[i];
	return NULL;
}

static _Unwind_Reason_Code find_sprofil(struct _Unwind_Context *context, void *found)
{
	Dl_info info = {0};

	if (!dladdr((void *)(_Unwind_GetIP(context) - 1), &info) || !info.dli_sname)
		return _URC_NO_REASON;
	*(bool *)found = !strcmp(info.dli_sname, "PAPI_sprofil");
	return *(bool *)found ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* PAPI_profil() requests overflows like PAPI_overflow(), with a handler that does nothing: the
 * component for software-defined events fills no profile. The caller's address distinguishes the
 * two. */
static bool called_for_profile(void)
{
	bool found = false;

	_Unwind_Backtrace(find_sprofil, &found);
	return found;
}

/* PAPI calls the program's handler if the value has passed the next multiple of the threshold
 * since PAPI_overflow(). A signal represents one period: the value passed to PAPI is that many
 * periods plus one event, not the present count. */
static void on_overflow(int signal, siginfo_t *info, void *context)
{
	check_overflow *check = atomic_load(&papi_check_overflow);
	struct reader *readers = pthread_getspecific(readers_key);
	struct reader *reader = reader_of_signal(readers, info->si_fd);
	int errnum = errno;

	if (reader) {
		reader->overflows++;
		interrupted = context;
		check((uint32_t)(reader - readers),
		      (long long)(reader->overflows * reader->period + 1));
		interrupted = NULL;
	}
	errno = errnum;
}

/* PAPI reports its own location as the interrupted one: the first thing it calls is
 * getcontext(). That call returns the interrupted context; all other calls are forwarded. libc's
 * function stores its caller's frame, so there must be no frame in between. */
static int give_interrupted(ucontext_t *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->uc_mcontext = interrupted->uc_mcontext;
	interrupted = NULL;
	return 0;
}

typedef int give_context(ucontext_t *ret);
give_context *vp_papi_context_giver(void);
give_context *vp_papi_context_giver(void)
{
	return interrupted ? give_interrupted : (give_context *)find_next("getcontext");
}

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl getcontext\n"
	".type getcontext, @function\n"
	"getcontext:\n"
	"	push %rdi\n"
	"	call vp_papi_context_giver\n"
	"	pop %rdi\n"
	"	jmp *%rax\n"
	".size getcontext, . - getcontext\n"
	".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
	".globl getcontext\n"
	".type getcontext, %function\n"
	"getcontext:\n"
	"	stp x30, x0, [sp, #-16]!\n"
	"	bl vp_papi_context_giver\n"
	"	mov x16, x0\n"
	"	ldp x30, x0, [sp], #16\n"
	"	br x16\n"
	".size getcontext, . - getcontext\n"
	".popsection\n");
#endif

/* Signal for overflows: the highest real-time signal without a handler, or the one already in
 * use, or 0. */
static int overflow_signal(void)
{
	struct sigaction action = {.sa_sigaction = on_overflow,
				   .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction before;

	for (int number = SIGRTMAX; number > SIGRTMIN; number--) {
		if (sigaction(number, NULL, &before))
			continue;
		if (before.sa_flags & SA_SIGINFO && before.sa_sigaction == on_overflow)
			return number;
		if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL &&
		    !sigaction(number, &action, NULL))
			return number;
	}
	return 0;
}

/* With a signal each `period` unless that is 0. */
static int papi_open_counters(const char *name, uint64_t period, struct vperf_counters **ret)
{
	const struct vperf_options options = {.size = sizeof(options),
					      .flags = VPERF_EXACT,
					      .signal = period ? overflow_signal() : 0,
					      .period = period};

	if (period && !options.signal)
		return VPERF_E_SYSTEM;
	return vperf_counters_open(&name, 1, &options, ret, NULL);
}

/* Whether this thread can count the event, and in which way. */
static bool try_event(const char *name, char *description, size_t size)
{
	static const char *const ways[] = {
	    [VPERF_WAY_USER] = "this machine's counter",
	    [VPERF_WAY_CALL] = "this machine's counter",
	    [VPERF_WAY_LENT] = "host-provided",
	};
	struct vperf_counters *counters;

	if (papi_open_counters(name, 0, &counters))
		return false;
	snprintf(description, size, "%s of the calling thread (%s)", name,
		 ways[vperf_counters_way(counters)]);
	vperf_counters_close(counters);
	return true;
}

/* Index of the event, which is added if missing; or a negative error code. */
static int papi_add_event(const char *name)
{
	unsigned n = atomic_load(&n_events);

	for (unsigned i = 0; i < n; i++)
		if (!strcmp(events[i].name + strlen(prefix), name))
			return (int)i;
	if (strlen(name) >= VP_COUNTERS_NAME_SIZE || n == MAX_EVENTS)
		return SDE_ENOMEM;
	if (!try_event(name, events[n].description, sizeof(events[n].description)))
		return SDE_ENOEVNT;
	snprintf(events[n].name, sizeof(events[n].name), "%s%s", prefix, name);
	atomic_store(&n_events, n + 1);
	return (int)n;
}

/* Lists perf events that can be counted here, with and without the kernel's part. */
static void papi_list_events(void)
{
	char user[VP_COUNTERS_NAME_SIZE];
	const char *name;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; (name = vp_counters_event_name(i)); i++) {
		snprintf(user, sizeof(user), "%s:u", name);
		papi_add_event(name);
		papi_add_event(user);
	}
	/* PAPI requires an event number 0. */
	n_reserved = atomic_load(&n_events) ? MAX_EVENTS : 0;
	pthread_mutex_unlock(&lock);
}

/* Offset from libsde's numbers to PAPI's. */
static uint32_t sde_numbers(void)
{
	pthread_once(&list_once, papi_list_events);
	return n_reserved;
}

PUBLIC int sde_ti_read_counter(uint32_t number, long long *ret);
PUBLIC int sde_ti_read_counter(uint32_t number, long long *ret)
{
	int (*next)(uint32_t, long long *) = find_next(__func__);
	const struct event *event = papi_event_of(number);
	uint64_t value;

	if (!event)
		return next ? next(number - sde_numbers(), ret) : SDE_EINVAL;
	const struct reader *reader = reader_of(event);
	if (!reader || !reader->counters || vperf_counters_read(reader->counters, &value))
		return SDE_EINVAL; /* a number in use by another event */
	*ret = (long long)(value - reader->base);
	return SDE_OK;
}

/* Restarts at 0, so that periods match PAPI's count. */
static int restart(struct reader *reader)
{
	reader->delivers = false; /* drops overflows of the previous run */
	vperf_counters_stop(reader->counters, NULL);
	reader->base = 0;
	reader->delivers = true;
	return vperf_counters_start(reader->counters) ? SDE_EINVAL : SDE_OK;
}

static void close_reader(struct reader *reader)
{
	reader->delivers = false;
	vperf_counters_close(reader->counters);
	reader->counters = NULL;
}

/* Called by PAPI when it starts counting. */
static int reset(struct reader *reader, const char *name)
{
	if (reader->counters && reader->period && !restart(reader))
		return SDE_OK;
	/* The counters of an exited thread or a parent process cannot be read again. */
	if (reader->counters && vperf_counters_read(reader->counters, &reader->base))
		close_reader(reader);
	if (reader->counters)
		return SDE_OK;
	if (papi_open_counters(name, reader->period, &reader->counters))
		return SDE_ENOEVNT;
	if (reader->period && !restart(reader))
		return SDE_OK;
	if (!reader->period && !vperf_counters_start(reader->counters) &&
	    !vperf_counters_read(reader->counters, &reader->base))
		return SDE_OK;
	close_reader(reader);
	return SDE_EINVAL;
}

PUBLIC int sde_ti_reset_counter(uint32_t number);
PUBLIC int sde_ti_reset_counter(uint32_t number)
{
	int (*next)(uint32_t) = find_next(__func__);
	const struct event *event = papi_event_of(number);

	if (!event)
		return next ? next(number - sde_numbers()) : SDE_EINVAL;
	struct reader *reader = reader_of(event);
	return reader ? reset(reader, event->name + strlen(prefix)) : SDE_ENOMEM;
}

PUBLIC int sde_ti_write_counter(uint32_t number, long long value);
PUBLIC int sde_ti_write_counter(uint32_t number, long long value)
{
	int (*next)(uint32_t, long long) = find_next(__func__);

	return papi_event_of(number) || !next ? SDE_EINVAL : next(number - sde_numbers(), value);
}

static int pass_name_on(int (*next)(const char *, uint32_t *), const char *name, uint32_t *ret)
{
	int status = next(name, ret);

	if (status == SDE_OK)
		*ret += sde_numbers();
	return status;
}

PUBLIC int sde_ti_name_to_code(const char *name, uint32_t *ret);
PUBLIC int sde_ti_name_to_code(const char *name, uint32_t *ret)
{
	int (*next)(const char *, uint32_t *) = find_next(__func__);

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return next ? pass_name_on(next, name, ret) : SDE_ENOEVNT;
	/* libsde's numbers must be known first. */
	if (next)
		sde_numbers();
	pthread_mutex_lock(&lock);
	int index = papi_add_event(name + strlen(prefix));
	pthread_mutex_unlock(&lock);
	if (index < 0)
		return index;
	*ret = (uint32_t)index;
	return SDE_OK;
}

/* PAPI reads libsde's simple counters in memory. */
PUBLIC int sde_ti_is_simple_counter(uint32_t number);
PUBLIC int sde_ti_is_simple_counter(uint32_t number)
{
	int (*next)(uint32_t) = find_next(__func__);

	return papi_event_of(number) || !next ? 0 : next(number - sde_numbers());
}

PUBLIC int sde_ti_is_counter_set_to_overflow(uint32_t number);
PUBLIC int sde_ti_is_counter_set_to_overflow(uint32_t number)
{
	int (*next)(uint32_t) = find_next(__func__);

	return papi_event_of(number) || !next ? 0 : next(number - sde_numbers());
}

/* Opens the set at once, so that PAPI_overflow() returns its errors. */
static int set_overflow(struct reader *reader, const char *name, uint64_t period)
{
	struct vperf_counters *counters = NULL;
	int status = period ? papi_open_counters(name, period, &counters) : VPERF_OK;

	if (status)
		return status == VPERF_E_RIGHTS ? PAPI_EPERM : PAPI_ECMP;
	close_reader(reader);
	reader->counters = counters;
	reader->period = period;
	reader->overflows = 0;
	return SDE_OK;
}

/* Called in the thread that uses the event set, as PAPI requires. */
PUBLIC int sde_ti_set_counter_overflow(uint32_t number, int threshold);
PUBLIC int sde_ti_set_counter_overflow(uint32_t number, int threshold)
{
	int (*next)(uint32_t, int) = find_next(__func__);
	const struct event *event = papi_event_of(number);

	if (!event)
		return next ? next(number - sde_numbers(), threshold) : SDE_EINVAL;
	struct reader *reader = reader_of(event);
	if (!reader || threshold < 0)
		return reader ? SDE_EINVAL : SDE_ENOMEM;
	if (threshold && (!find_papi(__builtin_return_address(0)) || called_for_profile()))
		return PAPI_ECMP;
	return set_overflow(reader, event->name + strlen(prefix), (uint64_t)threshold);
}

PUBLIC char *sde_ti_get_event_name(int number);
PUBLIC char *sde_ti_get_event_name(int number)
{
	char *(*next)(int) = find_next(__func__);
	struct event *event = papi_event_of((uint32_t)number);

	if (event)
		return event->name;
	return next ? next(number - (int)sde_numbers()) : NULL;
}

PUBLIC char *sde_ti_get_event_description(int number);
PUBLIC char *sde_ti_get_event_description(int number)
{
	char *(*next)(int) = find_next(__func__);
	struct event *event = papi_event_of((uint32_t)number);

	if (event)
		return event->description;
	return next ? next(number - (int)sde_numbers()) : NULL;
}

/* PAPI queries all numbers below this; some may have no event. */
PUBLIC int sde_ti_get_num_reg_events(void);
PUBLIC int sde_ti_get_num_reg_events(void)
{
	int (*next)(void) = find_next(__func__);
	uint32_t numbers = sde_numbers();

	return next ? (int)numbers + next() : (int)atomic_load(&n_events);
}

/* libsde calls this in PAPI to report a new value of one of its counters. */
PUBLIC void papi_sde_check_overflow_status(uint32_t number, long long value);
PUBLIC void papi_sde_check_overflow_status(uint32_t number, long long value)
{
	void (*next)(uint32_t, long long) = find_next(__func__);

	if (next)
		next(number + sde_numbers(), value);
}

PUBLIC int sde_ti_shutdown(void);
PUBLIC int sde_ti_shutdown(void)
{
	int (*next)(void) = find_next(__func__);

	return next ? next() : SDE_OK;
}
