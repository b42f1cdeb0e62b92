/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libvperf-papi.so, for LD_PRELOAD: libvperf's counters as software-defined events of PAPI's
 * (sde:::vperf::NAME). PAPI's component for these looks in the program for the functions sde_ti_*
 * of its library libsde, and these are they. Where the program has libsde too, as papi_native_avail
 * has, what is not vperf's is passed on to it, with numbers behind vperf's.
 *
 * libsde has one value per event for all threads. Here each thread has its own: PAPI starts, reads
 * and stops in the thread that it counts.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters/event.h"
#include "vperf/counters.h"

#define PUBLIC __attribute__((visibility("default")))

/* As sde_lib.h of PAPI 7.0 has them. */
enum { SDE_OK = 0, SDE_EINVAL = -1, SDE_ENOMEM = -2, SDE_ENOEVNT = -7 };
enum { MOST_EVENTS = 128, NAME_SIZE = VP_COUNTERS_NAME_SIZE + 8 };
static const char prefix[] = "vperf::";

/* Of an event in one thread. */
struct reader {
	struct vperf_counters *counters;
	uint64_t base;
};

struct event {
	char name[NAME_SIZE]; /* with the prefix */
	char description[160];
};

static struct event events[MOST_EVENTS];
static _Atomic unsigned n_events;
static uint32_t n_reserved; /* numbers, for vperf's events, in front of libsde's */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t readers_key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT, list_once = PTHREAD_ONCE_INIT;

/* libsde's function of that name; NULL: the program has no libsde. */
static void *find_next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* NULL: it is none of vperf's. */
static struct event *event_of(uint32_t number)
{
	return number < atomic_load(&n_events) ? &events[number] : NULL;
}

static void close_readers(void *readers)
{
	for (unsigned i = 0; i < MOST_EVENTS; i++)
		vperf_counters_close(((struct reader *)readers)[i].counters);
	free(readers);
}

static void make_key(void)
{
	pthread_key_create(&readers_key, close_readers);
}

/* Of the calling thread; NULL: no memory. */
static struct reader *reader_of(const struct event *event)
{
	pthread_once(&key_once, make_key);
	struct reader *readers = pthread_getspecific(readers_key);
	if (!readers) {
		readers = calloc(MOST_EVENTS, sizeof(*readers));
		if (!readers || pthread_setspecific(readers_key, readers)) {
			free(readers);
			return NULL;
		}
	}
	return &readers[event - events];
}

static int open_counters(const char *name, struct vperf_counters **ret)
{
	const struct vperf_options options = {.size = sizeof(options), .flags = VPERF_EXACT};

	return vperf_counters_open(&name, 1, &options, ret, NULL);
}

/* Whether it can be counted here, by this thread; how, if so. */
static bool try_event(const char *name, char *description, size_t size)
{
	static const char *const ways[] = {
	    [VPERF_WAY_USER] = "this machine's counter",
	    [VPERF_WAY_CALL] = "this machine's counter",
	    [VPERF_WAY_LENT] = "lent by the host",
	};
	struct vperf_counters *counters;

	if (open_counters(name, &counters))
		return false;
	snprintf(description, size, "%s of the calling thread (%s)", name,
		 ways[vperf_counters_way(counters)]);
	vperf_counters_close(counters);
	return true;
}

/* Its place among the events, where it is put if it was not there; or a negative code. */
static int add_event(const char *name)
{
	unsigned n = atomic_load(&n_events);

	for (unsigned i = 0; i < n; i++)
		if (!strcmp(events[i].name + strlen(prefix), name))
			return (int)i;
	if (strlen(name) >= VP_COUNTERS_NAME_SIZE || n == MOST_EVENTS)
		return SDE_ENOMEM;
	if (!try_event(name, events[n].description, sizeof(events[n].description)))
		return SDE_ENOEVNT;
	snprintf(events[n].name, sizeof(events[n].name), "%s%s", prefix, name);
	atomic_store(&n_events, n + 1);
	return (int)n;
}

/* Those of perf's events that can be counted here, with the kernel's part, and without. */
static void list_events(void)
{
	char user[VP_COUNTERS_NAME_SIZE];
	const char *name;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; (name = vp_counters_event_name(i)); i++) {
		snprintf(user, sizeof(user), "%s:u", name);
		add_event(name);
		add_event(user);
	}
	/* PAPI begins with number 0, which has to be an event. */
	n_reserved = atomic_load(&n_events) ? MOST_EVENTS : 0;
	pthread_mutex_unlock(&lock);
}

/* A number of libsde's as PAPI knows it, less that of libsde. */
static uint32_t sde_numbers(void)
{
	pthread_once(&list_once, list_events);
	return n_reserved;
}

PUBLIC int sde_ti_read_counter(uint32_t number, long long *ret);
PUBLIC int sde_ti_read_counter(uint32_t number, long long *ret)
{
	int (*next)(uint32_t, long long *) = find_next(__func__);
	const struct event *event = event_of(number);
	uint64_t value;

	if (!event)
		return next ? next(number - sde_numbers(), ret) : SDE_EINVAL;
	const struct reader *reader = reader_of(event);
	if (!reader || !reader->counters || vperf_counters_read(reader->counters, &value))
		return SDE_EINVAL; /* not a number that means something else */
	*ret = (long long)(value - reader->base);
	return SDE_OK;
}

/* Which PAPI does when it starts to count. */
static int reset(struct reader *reader, const char *name)
{
	/* A set that has ended, or a parent's, cannot be read again. */
	if (reader->counters && vperf_counters_read(reader->counters, &reader->base)) {
		vperf_counters_close(reader->counters);
		reader->counters = NULL;
	}
	if (reader->counters)
		return SDE_OK;
	if (open_counters(name, &reader->counters))
		return SDE_ENOEVNT;
	if (!vperf_counters_start(reader->counters) &&
	    !vperf_counters_read(reader->counters, &reader->base))
		return SDE_OK;
	vperf_counters_close(reader->counters);
	reader->counters = NULL;
	return SDE_EINVAL;
}

PUBLIC int sde_ti_reset_counter(uint32_t number);
PUBLIC int sde_ti_reset_counter(uint32_t number)
{
	int (*next)(uint32_t) = find_next(__func__);
	const struct event *event = event_of(number);

	if (!event)
		return next ? next(number - sde_numbers()) : SDE_EINVAL;
	struct reader *reader = reader_of(event);
	return reader ? reset(reader, event->name + strlen(prefix)) : SDE_ENOMEM;
}

PUBLIC int sde_ti_write_counter(uint32_t number, long long value);
PUBLIC int sde_ti_write_counter(uint32_t number, long long value)
{
	int (*next)(uint32_t, long long) = find_next(__func__);

	return event_of(number) || !next ? SDE_EINVAL : next(number - sde_numbers(), value);
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
	/* Which its own would be afterwards is settled first. */
	if (next)
		sde_numbers();
	pthread_mutex_lock(&lock);
	int place = add_event(name + strlen(prefix));
	pthread_mutex_unlock(&lock);
	if (place < 0)
		return place;
	*ret = (uint32_t)place;
	return SDE_OK;
}

/* Of libsde's simple counters PAPI reads the memory itself. */
PUBLIC int sde_ti_is_simple_counter(uint32_t number);
PUBLIC int sde_ti_is_simple_counter(uint32_t number)
{
	int (*next)(uint32_t) = find_next(__func__);

	return event_of(number) || !next ? 0 : next(number - sde_numbers());
}

PUBLIC int sde_ti_is_counter_set_to_overflow(uint32_t number);
PUBLIC int sde_ti_is_counter_set_to_overflow(uint32_t number)
{
	int (*next)(uint32_t) = find_next(__func__);

	return event_of(number) || !next ? 0 : next(number - sde_numbers());
}

/* PAPI would look at the counter by a timer, in whatever thread that interrupts. */
PUBLIC int sde_ti_set_counter_overflow(uint32_t number, int threshold);
PUBLIC int sde_ti_set_counter_overflow(uint32_t number, int threshold)
{
	int (*next)(uint32_t, int) = find_next(__func__);

	if (event_of(number))
		return threshold ? SDE_EINVAL : SDE_OK;
	return next ? next(number - sde_numbers(), threshold) : SDE_EINVAL;
}

PUBLIC char *sde_ti_get_event_name(int number);
PUBLIC char *sde_ti_get_event_name(int number)
{
	char *(*next)(int) = find_next(__func__);
	struct event *event = event_of((uint32_t)number);

	if (event)
		return event->name;
	return next ? next(number - (int)sde_numbers()) : NULL;
}

PUBLIC char *sde_ti_get_event_description(int number);
PUBLIC char *sde_ti_get_event_description(int number)
{
	char *(*next)(int) = find_next(__func__);
	struct event *event = event_of((uint32_t)number);

	if (event)
		return event->description;
	return next ? next(number - (int)sde_numbers()) : NULL;
}

/* PAPI asks for the events of all numbers below that; some may have none. */
PUBLIC int sde_ti_get_num_reg_events(void);
PUBLIC int sde_ti_get_num_reg_events(void)
{
	int (*next)(void) = find_next(__func__);
	uint32_t numbers = sde_numbers();

	return next ? (int)numbers + next() : (int)atomic_load(&n_events);
}

/* By which libsde tells PAPI that a counter of its own has a new value. */
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
