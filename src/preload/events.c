/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The events. Each has a companion: an event of the kernel's that counts nothing, of the same
 * thread and opened alike. By it the kernel says whether this user may count that thread, and keeps
 * the times. Its descriptor stays in here; the one that the program gets can do nothing of itself,
 * so that a call which is not answered here fails, and no number is wrong.
 */
#include "preload/events.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "preload/sampling.h"

enum { MOST_DESCRIPTORS = 65536 };
/* Of struct perf_event_attr, what each kernel has had. */
enum { ATTR_LEAST = 64 };

/* By descriptor; looked up without the lock. A program has one kernel, and no other place to keep
 * what it says. */
static _Atomic(struct vp_shim_event *) events[MOST_DESCRIPTORS];
static struct vp_shim_source *sources;
static uint64_t last_id;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void vp_shim_lock(void)
{
	pthread_mutex_lock(&lock);
}

void vp_shim_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* A signal's handler may read counters, too. */
static void enter(sigset_t *signals)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, signals);
	vp_shim_lock();
}

static void leave(const sigset_t *signals)
{
	vp_shim_unlock();
	pthread_sigmask(SIG_SETMASK, signals, NULL);
}

static struct vp_shim_event *event_of(int fd)
{
	return fd >= 0 && fd < MOST_DESCRIPTORS ? atomic_load(&events[fd]) : NULL;
}

/* Another file may have been put in its place, by dup2() or so. */
bool vp_shim_has(int fd)
{
	if (!event_of(fd))
		return false;
	/* Not by fcntl(), which is answered here. */
	long flags = syscall(SYS_fcntl, fd, F_GETFL);
	return flags >= 0 && flags & O_PATH;
}

static int get_source(pid_t tid, struct vp_shim_source **ret)
{
	for (*ret = sources; *ret; *ret = (*ret)->next)
		if ((*ret)->tid == tid) {
			(*ret)->users++;
			return 0;
		}
	struct vp_shim_source *source = calloc(1, sizeof(*source));
	if (!source)
		return -ENOMEM;
	if (vp_counters_lent_attach(tid, &source->lent, NULL)) {
		free(source);
		return -ENODEV;
	}
	source->tid = tid;
	source->users = 1;
	source->next = sources;
	sources = *ret = source;
	return 0;
}

static void put_source(struct vp_shim_source *source)
{
	struct vp_shim_source **at = &sources;

	if (--source->users)
		return;
	while (*at != source)
		at = &(*at)->next;
	*at = source->next;
	vp_counters_lent_close(source->lent);
	free(source);
}

/* What of these an event counted, and from when on. */
static void settle_one(struct vp_shim_event *event, const struct vp_counters_lent_state *state,
		       bool begins)
{
	uint64_t now = state->counts[event->place];

	if (event->waits_for_exec && state->executed) {
		event->waits_for_exec = false;
		event->is_on = begins = true;
	}
	if (begins)
		event->since = state->at_exec[event->place];
	if (event->is_on && event->leader->is_on)
		event->count += now - event->since;
	event->since = now;
	/* What its children do is not counted here, and the kernel would. */
	event->is_lost |= event->inherits && state->made != event->made;
}

/* Brings a group up to date; before whatever changes it, too. */
static void settle(struct vp_shim_event *leader)
{
	struct vp_counters_lent_state state;
	bool good = !vp_counters_lent_look(leader->source->lent, &state);
	bool begins = good && leader->waits_for_exec && state.executed;

	for (struct vp_shim_event *event = leader; event; event = event->next) {
		event->is_lost |= !good;
		if (good)
			settle_one(event, &state, begins);
	}
}

/* What lent counters can do; the rest they cannot. */
static bool is_answerable(const struct perf_event_attr *attr, pid_t pid, int cpu,
			  unsigned long flags)
{
	uint64_t ignored = 0;

#ifdef __aarch64__
	ignored = 3; /* 64 bits wide; readable in user space, which its page then says it is not */
#endif
	return pid >= 0 && cpu == -1 && vp_shim_can_sample(attr, pid) && !attr->precise_ip &&
	       !attr->exclude_host && !attr->config2 && !(attr->config1 & ~ignored) &&
	       !(flags & ~(unsigned long)PERF_FLAG_FD_CLOEXEC);
}

static int open_companion(const struct perf_event_attr *attr, pid_t pid,
			  const struct vp_shim_event *leader)
{
	struct perf_event_attr companion = {
	    .size = sizeof(companion),
	    .type = PERF_TYPE_SOFTWARE,
	    .config = PERF_COUNT_SW_DUMMY,
	    .disabled = attr->disabled,
	    .inherit = attr->inherit,
	    .enable_on_exec = attr->enable_on_exec,
	    .exclude_user = attr->exclude_user,
	    .exclude_kernel = attr->exclude_kernel,
	    .exclude_hv = attr->exclude_hv,
	    .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	int fd = (int)syscall(SYS_perf_event_open, &companion, pid, -1,
			      leader ? leader->companion : -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void join_source(struct vp_shim_event *event)
{
	event->next_of_source = event->source->events;
	event->source->events = event;
}

static int take_place(struct vp_shim_event *event, const struct perf_event_attr *attr, int refusal)
{
	const struct vp_counters_event asked = {.type = attr->type,
						.config = attr->config,
						.exclude_user = attr->exclude_user,
						.exclude_kernel = attr->exclude_kernel};
	int place = vp_counters_lent_place(event->source->lent, &asked);
	struct vp_counters_lent_state state;

	if (place < 0 || vp_counters_lent_look(event->source->lent, &state))
		return -refusal;
	/* It has executed one already: where it will the next time is not kept. */
	if (event->waits_for_exec && state.executed)
		return -refusal;
	event->place = (unsigned)place;
	join_source(event);
	event->made = state.made;
	event->since = state.counts[place];
	return 0;
}

static void leave_source(struct vp_shim_event *event)
{
	struct vp_shim_event **at = &event->source->events;

	while (*at && *at != event)
		at = &(*at)->next_of_source;
	if (*at)
		*at = event->next_of_source;
	put_source(event->source);
}

static void free_event(struct vp_shim_event *event)
{
	vp_shim_sampling_close(&event->sampling);
	if (event->source)
		leave_source(event);
	if (event->companion >= 0)
		close(event->companion);
	free(event);
}

/* Its members are on their own then. */
static void dissolve(struct vp_shim_event *leader)
{
	struct vp_shim_event *next;

	for (struct vp_shim_event *event = leader; event; event = next) {
		next = event->next;
		event->next = NULL;
		event->leader = event;
	}
}

static void remove_from_group(struct vp_shim_event *event)
{
	settle(event->leader);
	if (event->leader == event) {
		dissolve(event);
		return;
	}
	struct vp_shim_event *before = event->leader;
	while (before->next != event)
		before = before->next;
	before->next = event->next;
}

static void forget(struct vp_shim_event *event)
{
	remove_from_group(event);
	atomic_store(&events[event->fd], NULL);
	free_event(event);
}

/* Into its group, and to where its descriptor leads. */
static int publish_event(struct vp_shim_event *event, struct vp_shim_event *leader,
			 unsigned long flags)
{
	int fd = open("/", O_PATH | (flags & PERF_FLAG_FD_CLOEXEC ? O_CLOEXEC : 0));

	if (fd < 0 || fd >= MOST_DESCRIPTORS) {
		if (fd >= 0)
			close(fd);
		return fd < 0 ? -errno : -EMFILE;
	}
	/* One that was closed behind the shim's back. */
	if (event_of(fd))
		forget(event_of(fd));
	event->fd = fd;
	event->id = ++last_id;
	event->leader = leader ? leader : event;
	if (leader) {
		settle(leader);
		while (leader->next)
			leader = leader->next;
		leader->next = event;
	}
	atomic_store(&events[fd], event);
	return fd;
}

static int open_locked(const struct perf_event_attr *attr, pid_t pid, struct vp_shim_event *leader,
		       unsigned long flags, int refusal)
{
	struct vp_shim_event *event = calloc(1, sizeof(*event));
	pid_t tid = pid ? pid : gettid();

	if (!event)
		return -ENOMEM;
	/* Whom to signal is said later. */
	if (attr->sample_period && !attr->disabled && (!leader || leader->is_on)) {
		free(event);
		return -refusal;
	}
	event->read_format = attr->read_format;
	event->inherits = attr->inherit;
	event->waits_for_exec = attr->enable_on_exec;
	event->is_on = !attr->disabled;
	event->sampling.period = attr->sample_period;
	event->sampling.has_ip = attr->sample_type & PERF_SAMPLE_IP;
	event->companion = open_companion(attr, pid, leader);
	int result = event->companion < 0 ? event->companion : 0;
	if (!result && get_source(tid, &event->source))
		result = -refusal;
	if (!result)
		result = take_place(event, attr, refusal);
	if (!result)
		result = publish_event(event, leader, flags);
	if (result < 0)
		free_event(event);
	return result;
}

int vp_shim_open(const struct perf_event_attr *given, pid_t pid, int cpu, int group_fd,
		 unsigned long flags, int refusal)
{
	struct perf_event_attr attr = {0};
	struct vp_shim_event *leader = NULL;
	sigset_t signals;

	if (given->size && given->size < ATTR_LEAST)
		return -refusal;
	size_t size = given->size ? given->size : ATTR_LEAST;
	memcpy(&attr, given, size < sizeof(attr) ? size : sizeof(attr));
	if (!is_answerable(&attr, pid, cpu, flags))
		return -refusal;
	enter(&signals);
	if (group_fd >= 0)
		leader = event_of(group_fd);
	bool fits = group_fd < 0 || (leader && leader->leader == leader &&
				     leader->source->tid == (pid ? pid : gettid()));
	int result = fits ? open_locked(&attr, pid, leader, flags, refusal) : -EINVAL;
	leave(&signals);
	return result;
}

/* Enabled and running. */
static bool read_times(const struct vp_shim_event *event, uint64_t times[2])
{
	uint64_t reading[3];

	if (read(event->companion, reading, sizeof(reading)) != sizeof(reading))
		return false;
	times[0] = reading[1];
	times[1] = reading[2];
	return true;
}

static size_t put_value(const struct vp_shim_event *event, uint64_t format, uint64_t *words)
{
	size_t n = 0;

	words[n++] = event->count;
	if (format & PERF_FORMAT_ID)
		words[n++] = event->id;
	if (format & PERF_FORMAT_LOST)
		words[n++] = 0;
	return n;
}

/* perf_event_open(2), "Reading results": the times come before a group's values, and between an
 * event's value and its number. */
static size_t put_reading(const struct vp_shim_event *event, const uint64_t times[2],
			  uint64_t *words)
{
	uint64_t format = event->read_format, value[3];
	bool is_group = format & PERF_FORMAT_GROUP;
	size_t n = 0, of_value = put_value(event, format, value), members = 0;

	words[n++] = value[0]; /* of a group, the number of its members goes here */
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		words[n++] = times[0];
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		words[n++] = times[1];
	if (!is_group) {
		memcpy(&words[n], &value[1], (of_value - 1) * sizeof(*words));
		return n + of_value - 1;
	}
	for (event = event->leader; event; event = event->next, members++)
		n += put_value(event, format, &words[n]);
	words[0] = members;
	return n;
}

/* How many words put_reading() makes at most. */
static size_t most_words(const struct vp_shim_event *event)
{
	size_t members = 0;

	for (event = event->leader; event; event = event->next)
		members++;
	return 3 + 3 * members;
}

static bool is_any_lost(const struct vp_shim_event *event)
{
	bool is_lost = event->is_lost;

	if (event->read_format & PERF_FORMAT_GROUP)
		for (event = event->leader; event; event = event->next)
			is_lost |= event->is_lost;
	return is_lost;
}

static ssize_t read_locked(const struct vp_shim_event *event, void *buffer, size_t size)
{
	uint64_t times[2];

	settle(event->leader);
	/* What the kernel says of an event that it cannot count any more. */
	if (is_any_lost(event) || !read_times(event, times))
		return 0;
	uint64_t *words = calloc(most_words(event), sizeof(*words));
	if (!words)
		return -ENOMEM;
	size_t bytes = put_reading(event, times, words) * sizeof(*words);
	if (bytes <= size)
		memcpy(buffer, words, bytes);
	free(words);
	return bytes <= size ? (ssize_t)bytes : -ENOSPC;
}

ssize_t vp_shim_read(int fd, void *buffer, size_t size)
{
	sigset_t signals;

	enter(&signals);
	const struct vp_shim_event *event = event_of(fd);
	ssize_t result = event ? read_locked(event, buffer, size) : -EBADF;
	leave(&signals);
	return result;
}

static void change(struct vp_shim_event *event, unsigned long request)
{
	if (request == PERF_EVENT_IOC_RESET) {
		event->count = 0;
		return;
	}
	event->is_on = request == PERF_EVENT_IOC_ENABLE;
	event->waits_for_exec &= event->is_on;
}

/* Those that take samples go on or end with what happened to them or to their leader. */
static int follow_all(struct vp_shim_event *leader)
{
	int result = 0;

	for (struct vp_shim_event *event = leader; event && !result; event = event->next)
		result = vp_shim_sampling_follow(event);
	return result;
}

static int change_all(struct vp_shim_event *event, unsigned long request, unsigned long argument)
{
	struct vp_shim_event *leader = event->leader;

	settle(leader);
	if (ioctl(event->companion, request, argument))
		return -errno;
	if (!(argument & PERF_IOC_FLAG_GROUP))
		change(event, request);
	else
		for (event = leader; event; event = event->next)
			change(event, request);
	return follow_all(leader);
}

/* So many overflows more, and then it is disabled. */
static int refresh(struct vp_shim_event *event, unsigned long overflows)
{
	if (!event->sampling.period || !overflows)
		return -EINVAL;
	event->sampling.limit += overflows;
	return change_all(event, PERF_EVENT_IOC_ENABLE, 0);
}

static int ioctl_locked(struct vp_shim_event *event, unsigned long request, unsigned long argument)
{
	switch (request) {
	case PERF_EVENT_IOC_ENABLE:
	case PERF_EVENT_IOC_DISABLE:
	case PERF_EVENT_IOC_RESET:
		return change_all(event, request, argument);
	case PERF_EVENT_IOC_ID:
		memcpy((void *)argument, &event->id, sizeof(event->id)); // NOLINT: an address
		return 0;
	case PERF_EVENT_IOC_REFRESH:
		return refresh(event, argument);
	case PERF_EVENT_IOC_PERIOD:
	case PERF_EVENT_IOC_SET_OUTPUT:
	case PERF_EVENT_IOC_SET_FILTER:
	case PERF_EVENT_IOC_SET_BPF:
		return -EINVAL; /* which are of events that take samples, or of others */
	default:
		return -ENOTTY;
	}
}

int vp_shim_ioctl(int fd, unsigned long request, unsigned long argument)
{
	sigset_t signals;

	enter(&signals);
	struct vp_shim_event *event = event_of(fd);
	int result = event ? ioctl_locked(event, request, argument) : -EBADF;
	leave(&signals);
	return result;
}

int vp_shim_fcntl(int fd, int command, unsigned long argument)
{
	struct vp_shim_event *event = event_of(fd);

	return event && event->sampling.period ? vp_shim_sampling_fcntl(event, command, argument)
					       : -ENOSYS;
}

/* It says that the counter cannot be read in user space; where no samples are taken, a buffer for
 * them stays empty. */
int vp_shim_mmap(int fd, void *address, size_t size, int protection, int flags, off_t offset,
		 void **ret)
{
	struct vp_shim_event *event = event_of(fd);
	size_t page = (size_t)getpagesize(), pages = size / page;

	if (!size || size % page || offset || ((pages - 1) & (pages - 2) && pages > 1))
		return -EINVAL;
	flags &= MAP_FIXED;
	struct perf_event_mmap_page *mapped =
	    event && event->sampling.period
		? vp_shim_sampling_map(&event->sampling, address, size, flags)
		: mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | flags,
		       -1, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	mapped->cap_bit0_is_deprecated = 1;
	mapped->size = offsetof(struct perf_event_mmap_page, __reserved);
	mapped->data_offset = page;
	mapped->data_size = size - page;
	mprotect(mapped, size, protection);
	*ret = mapped;
	return 0;
}

void vp_shim_close(int fd)
{
	sigset_t signals;

	if (!event_of(fd))
		return;
	enter(&signals);
	if (event_of(fd))
		forget(event_of(fd));
	leave(&signals);
}
