/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of the program. Each has a companion: a kernel event that counts nothing, of the same
 * thread and with the same flags. The kernel thus checks permissions, measures times and formats
 * data; the shim replaces only the counts. The companion's file descriptor is private. The
 * program's descriptor does nothing by itself, so unsupported calls fail instead of returning wrong
 * numbers.
 *
 * The companions of a group are a kernel group, which may also contain or be led by kernel
 * events. The companion of a kernel event is the event itself, through another descriptor. */
#include "preload/shim_events.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "counters/counters_event.h"
#include "counters/counters_lent.h"
#include "preload/sampling.h"
#include "preload/shim_counts.h"

enum { MAX_DESCRIPTORS = 65536 };
/* First size of struct perf_event_attr (PERF_ATTR_SIZE_VER0). */
enum { ATTR_MIN = 64 };

/* By file descriptor, looked up without the lock. Global, like the process's descriptors. */
static _Atomic(struct vp_shim_event *) events[MAX_DESCRIPTORS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Whether this thread holds the lock: events that it opens then are companions, not the
 * program's. */
static __thread bool has_lock;

/* Process of these events; 0: none yet. A child of vfork() shares its parent's memory. */
static _Atomic pid_t owner;
static __thread sigset_t signals_at_fork;

/* Takes the lock with signals blocked: a signal handler may read counters, and must not wait for
 * its own thread. */
static void shim_events_enter(sigset_t *signals)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, signals);
	pthread_mutex_lock(&lock);
	has_lock = true;
}

static void shim_events_leave(const sigset_t *signals)
{
	has_lock = false;
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, signals, NULL);
}

void vp_shim_lock(void)
{
	shim_events_enter(&signals_at_fork);
}

void vp_shim_unlock(void)
{
	if (atomic_load(&owner))
		atomic_store(&owner, getpid());
	shim_events_leave(&signals_at_fork);
}

/* False in a child of vfork(): descriptors are its own, but events are its parent's. */
static bool is_owner(void)
{
	pid_t nobody = 0, own = getpid();

	return atomic_compare_exchange_strong(&owner, &nobody, own) || nobody == own;
}

static struct vp_shim_event *shim_events_event_of(int fd)
{
	return fd >= 0 && fd < MAX_DESCRIPTORS ? atomic_load(&events[fd]) : NULL;
}

static bool is_perf_event(int fd)
{
	static const char expected[] = "anon_inode:[perf_event]";
	char path[32], text[sizeof(expected)];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, text, sizeof(text)) == sizeof(expected) - 1 &&
	       !memcmp(text, expected, sizeof(expected) - 1);
}

/* dup2() or the like may have replaced the file. */
bool vp_shim_has(int fd)
{
	const struct vp_shim_event *event = shim_events_event_of(fd);

	if (!event || !event->is_answered)
		return false;
	if (vp_shim_is_kernels(event))
		return is_perf_event(fd);
	/* By system call, as fcntl() is intercepted here. */
	long flags = syscall(SYS_fcntl, fd, F_GETFL);
	return flags >= 0 && flags & O_PATH;
}

bool vp_shim_is_joinable(int fd)
{
	const struct vp_shim_event *event = shim_events_event_of(fd);

	return event && (vp_shim_is_kernels(event) ? is_perf_event(fd) : vp_shim_has(fd));
}

int vp_shim_kernels_group(int group_fd)
{
	const struct vp_shim_event *leader =
	    vp_shim_has(group_fd) ? shim_events_event_of(group_fd) : NULL;

	return leader ? leader->companion : group_fd;
}

/* Supported attributes of host-provided counters. */
static bool is_answerable(const struct perf_event_attr *attr, pid_t pid, int cpu,
			  unsigned long flags)
{
	uint64_t ignored = 0;

#ifdef __aarch64__
	ignored = 3; /* 64 bits wide; readable in user space, but not through its page */
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
	    .read_format = attr->read_format,
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

static int shim_events_choose_index(struct vp_shim_event *event, const struct perf_event_attr *attr,
				    const struct vp_shim_event *leader, int refusal)
{
	const struct vp_counters_event asked = {.type = attr->type,
						.config = attr->config,
						.exclude_user = attr->exclude_user,
						.exclude_kernel = attr->exclude_kernel};
	int index = vp_counters_lent_index(event->source->lent, &asked);
	bool waits = event->waits_for_exec || (leader && leader->waits_for_exec);
	struct vp_shim_reading reading;

	if (index < 0)
		return -refusal;
	vp_shim_reading_take(event->source, &reading);
	/* The thread has already called execve(): the next one's counts would not be separate.
	 * Existing children cannot be inherited. */
	if (!reading.is_good || (waits && reading.state.executed) ||
	    (event->inherits && reading.live))
		return -refusal;
	event->index = (unsigned)index;
	join_source(event);
	event->n_children = reading.state.n_children;
	event->children = reading.children[index];
	event->since = vp_shim_reading_value(&reading, event);
	return 0;
}

static void leave_source(struct vp_shim_event *event)
{
	struct vp_shim_event **at = &event->source->events;

	while (*at && *at != event)
		at = &(*at)->next_of_source;
	if (*at)
		*at = event->next_of_source;
	vp_shim_source_put(event->source);
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

/* Its members become independent. */
static void dissolve(struct vp_shim_event *leader)
{
	struct vp_shim_event *next;

	for (struct vp_shim_event *event = leader; event; event = next) {
		next = event->next;
		event->next = NULL;
		event->leader = event;
		event->is_answered = !vp_shim_is_kernels(event);
	}
}

static void remove_from_group(struct vp_shim_event *event)
{
	vp_shim_update_counts(event->leader);
	if (event->leader == event) {
		dissolve(event);
		return;
	}
	struct vp_shim_event *before = event->leader;
	while (before->next != event)
		before = before->next;
	before->next = event->next;
}

/* All members: with a host-provided one, the kernel's values of the others are incomplete. */
static void answer_group(struct vp_shim_event *leader)
{
	bool is_lent = false;

	for (struct vp_shim_event *event = leader; event; event = event->next)
		is_lent |= !vp_shim_is_kernels(event);
	for (struct vp_shim_event *event = leader; event; event = event->next)
		event->is_answered = is_lent;
}

static void shim_events_forget(struct vp_shim_event *event)
{
	struct vp_shim_event *leader = event->leader;

	remove_from_group(event);
	atomic_store(&events[event->fd], NULL);
	free_event(event);
	if (leader != event)
		answer_group(leader);
}

/* Adds it to its group and to the table of descriptors. */
static void publish_event(struct vp_shim_event *event, struct vp_shim_event *leader, int fd)
{
	/* An event whose descriptor was closed without the shim. */
	if (shim_events_event_of(fd))
		shim_events_forget(shim_events_event_of(fd));
	event->fd = fd;
	if (ioctl(event->companion, PERF_EVENT_IOC_ID, &event->id))
		event->id = 0;
	event->leader = leader ? leader : event;
	if (leader) {
		vp_shim_update_counts(leader);
		while (leader->next)
			leader = leader->next;
		leader->next = event;
	}
	answer_group(event->leader);
	atomic_store(&events[fd], event);
}

static int open_descriptor(unsigned long flags)
{
	int fd = open("/", O_PATH | (flags & PERF_FLAG_FD_CLOEXEC ? O_CLOEXEC : 0));

	if (fd < MAX_DESCRIPTORS)
		return fd < 0 ? -errno : fd;
	close(fd);
	return -EMFILE;
}

static struct vp_shim_event *new_event(const struct perf_event_attr *attr, pid_t tid)
{
	struct vp_shim_event *event = calloc(1, sizeof(*event));

	if (!event)
		return NULL;
	event->tid = tid;
	event->read_format = attr->read_format;
	event->inherits = attr->inherit;
	event->waits_for_exec = attr->enable_on_exec;
	event->is_on = !attr->disabled;
	event->companion = -1;
	return event;
}

static int open_locked(const struct perf_event_attr *attr, pid_t pid, struct vp_shim_event *leader,
		       unsigned long flags, int refusal)
{
	/* The program sets the signal's target later. */
	if (attr->sample_period && !attr->disabled && (!leader || leader->is_on))
		return -refusal;
	struct vp_shim_event *event = new_event(attr, pid ? pid : gettid());
	if (!event)
		return -ENOMEM;
	event->sampling.period = attr->sample_period;
	event->sampling.has_ip = attr->sample_type & PERF_SAMPLE_IP;
	event->companion = open_companion(attr, pid, leader);
	int result = event->companion < 0 ? event->companion : 0;
	if (!result && vp_shim_source_get(event->tid, event->inherits, &event->source))
		result = -refusal;
	if (!result)
		result = shim_events_choose_index(event, attr, leader, refusal);
	if (!result)
		result = open_descriptor(flags);
	if (result < 0)
		free_event(event);
	else
		publish_event(event, leader, result);
	return result;
}

/* Copies perf_event_attr of any version; false: shorter than the first version. */
static bool copy_attr(const struct perf_event_attr *given, struct perf_event_attr *ret)
{
	size_t size = given->size ? given->size : ATTR_MIN;

	*ret = (struct perf_event_attr){0};
	if (size < ATTR_MIN)
		return false;
	memcpy(ret, given, size < sizeof(*ret) ? size : sizeof(*ret));
	return true;
}

bool vp_shim_may_join(const struct perf_event_attr *given, int group_fd)
{
	struct perf_event_attr attr;

	/* The kernel would write the companions' counts to the samples. */
	return !vp_shim_has(group_fd) || !copy_attr(given, &attr) || !attr.sample_period ||
	       !(attr.sample_type & PERF_SAMPLE_READ);
}

static void note_locked(int fd, const struct perf_event_attr *attr, pid_t tid,
			struct vp_shim_event *leader)
{
	struct vp_shim_event *event = new_event(attr, tid);

	if (!event)
		return;
	event->companion = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (event->companion < 0)
		free_event(event);
	else
		publish_event(event, leader, fd);
}

void vp_shim_note(int fd, const struct perf_event_attr *given, pid_t pid, int cpu, int group_fd)
{
	struct perf_event_attr attr;
	pid_t tid = pid ? pid : gettid();
	sigset_t signals;

	if (has_lock || !is_owner() || fd >= MAX_DESCRIPTORS || pid < 0 || cpu != -1 ||
	    !copy_attr(given, &attr))
		return;
	shim_events_enter(&signals);
	struct vp_shim_event *leader = shim_events_event_of(group_fd);
	/* Host-provided events cannot join a group with unsupported members, nor one whose
	 * leader samples. */
	if (group_fd < 0 ? !attr.sample_period : leader && leader->tid == tid)
		note_locked(fd, &attr, tid, leader);
	shim_events_leave(&signals);
}

int vp_shim_open(const struct perf_event_attr *given, pid_t pid, int cpu, int group_fd,
		 unsigned long flags, int refusal)
{
	struct perf_event_attr attr;
	struct vp_shim_event *leader = NULL;
	sigset_t signals;

	if (!is_owner() || !copy_attr(given, &attr) || !is_answerable(&attr, pid, cpu, flags))
		return -refusal;
	shim_events_enter(&signals);
	if (group_fd >= 0)
		leader = shim_events_event_of(group_fd);
	int result = -refusal;
	if (leader && (leader->leader != leader || leader->tid != (pid ? pid : gettid())))
		result = -EINVAL;
	else if (group_fd < 0 || leader)
		result = open_locked(&attr, pid, leader, flags, refusal);
	shim_events_leave(&signals);
	return result;
}

/* perf_event_open(2), "Reading results": for a group, the number of members and the times
 * precede the values. */
static void put_counts(const struct vp_shim_event *event, char *bytes, size_t size)
{
	uint64_t format = event->read_format;
	size_t at = 1 + !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
		    !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	size_t each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);

	if (!(format & PERF_FORMAT_GROUP)) {
		if (!vp_shim_is_kernels(event))
			memcpy(bytes, &event->count, sizeof(event->count));
		return;
	}
	for (event = event->leader; event; event = event->next, at += each)
		if (!vp_shim_is_kernels(event) && (at + 1) * sizeof(event->count) <= size)
			memcpy(bytes + at * sizeof(event->count), &event->count,
			       sizeof(event->count));
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
	vp_shim_update_counts(event->leader);
	/* The kernel's result for an event that can no longer be counted. */
	if (is_any_lost(event))
		return 0;
	ssize_t got = read(event->companion, buffer, size);
	if (got > 0)
		put_counts(event, buffer, (size_t)got);
	return got < 0 ? -errno : got;
}

ssize_t vp_shim_read(int fd, void *buffer, size_t size)
{
	sigset_t signals;

	shim_events_enter(&signals);
	const struct vp_shim_event *event = shim_events_event_of(fd);
	ssize_t result = event ? read_locked(event, buffer, size) : -EBADF;
	shim_events_leave(&signals);
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

/* Starts or stops sampling events according to their own and their leader's state. */
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

	vp_shim_update_counts(leader);
	if (ioctl(event->companion, request, argument))
		return -errno;
	if (!(argument & PERF_IOC_FLAG_GROUP))
		change(event, request);
	else
		for (event = leader; event; event = event->next)
			change(event, request);
	return follow_all(leader);
}

/* PERF_EVENT_IOC_REFRESH: disables the event after that many further overflows. */
static int shim_events_refresh(struct vp_shim_event *event, unsigned long overflows)
{
	if (!event->sampling.period || !overflows)
		return -EINVAL;
	event->sampling.limit += overflows;
	return change_all(event, PERF_EVENT_IOC_ENABLE, 0);
}

static int ioctl_locked(struct vp_shim_event *event, unsigned long request, unsigned long argument)
{
	if (request == PERF_EVENT_IOC_ENABLE || request == PERF_EVENT_IOC_DISABLE ||
	    request == PERF_EVENT_IOC_RESET)
		return change_all(event, request, argument);
	if (vp_shim_is_kernels(event)) {
		int result = ioctl(event->companion, request, argument);
		return result < 0 ? -errno : result;
	}
	switch (request) {
	case PERF_EVENT_IOC_ID:
		memcpy((void *)argument, &event->id, sizeof(event->id)); // NOLINT: an address
		return 0;
	case PERF_EVENT_IOC_REFRESH:
		return shim_events_refresh(event, argument);
	case PERF_EVENT_IOC_PERIOD:
	case PERF_EVENT_IOC_SET_OUTPUT:
	case PERF_EVENT_IOC_SET_FILTER:
	case PERF_EVENT_IOC_SET_BPF:
		return -EINVAL; /* valid for sampling events only, or not supported */
	default:
		return -ENOTTY;
	}
}

int vp_shim_ioctl(int fd, unsigned long request, unsigned long argument)
{
	sigset_t signals;

	if (!is_owner())
		return -EBADF;
	shim_events_enter(&signals);
	struct vp_shim_event *event = shim_events_event_of(fd);
	int result = event ? ioctl_locked(event, request, argument) : -EBADF;
	shim_events_leave(&signals);
	return result;
}

int vp_shim_fcntl(int fd, int command, unsigned long argument)
{
	struct vp_shim_event *event = shim_events_event_of(fd);

	return event && event->sampling.period ? vp_shim_sampling_fcntl(event, command, argument)
					       : -ENOSYS;
}

/* Its page marks the counter as not readable in user space; the sample buffer of a counting
 * event stays empty. */
int vp_shim_mmap(int fd, void *address, size_t size, int protection, int flags, off_t offset,
		 void **ret)
{
	struct vp_shim_event *event = shim_events_event_of(fd);
	size_t page = (size_t)getpagesize(), pages = size / page;

	if (event && vp_shim_is_kernels(event))
		return -ENOSYS;
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

	if (!shim_events_event_of(fd) || !is_owner())
		return;
	shim_events_enter(&signals);
	if (shim_events_event_of(fd))
		shim_events_forget(shim_events_event_of(fd));
	shim_events_leave(&signals);
}
