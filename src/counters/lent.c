/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters that the host lends; schema/lent.h says how they come here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

#include "counters/set.h"
#include "counters/user_read.h"
#include "schema/lent.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { MOST_WAITS = 1000, WAIT_NS = 100000 };

struct vp_counters_lent {
	const volatile struct vp_lent_cell *cells;
	const volatile struct vp_lent_thread *thread;
	uint64_t marker;
	unsigned n, places[VPERF_MOST_EVENTS]; /* of the set's events among those lent */
	bool exact;
	int force, socket; /* the agent forgets the thread when the latter is closed */
	void *maps[2];
	size_t sizes[2];
};

static int no_agent(struct vperf_error *error, int errnum)
{
	return vp_counters_fail(error, VPERF_E_NOT_LENT,
				"no host lends counters to this guest: '%s': %s (it takes 'vperf "
				"lend' on the host and vperf-agent here)",
				VP_LENT_SOCKET, strerror(errnum));
}

static int connect_agent(struct vp_counters_lent *lent, struct vperf_error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = VP_LENT_SOCKET};

	lent->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (lent->socket < 0)
		return vp_counters_fail(error, VPERF_E_SYSTEM, "cannot make a socket: %s",
					strerror(errno));
	if (connect(lent->socket, (struct sockaddr *)&address, sizeof(address)))
		return no_agent(error, errno);
	return VPERF_OK;
}

/* One packet with descriptors; false: there is none such. */
static bool receive(int socket, struct vp_lent_reply *reply, int fds[VP_LENT_FDS])
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int[VP_LENT_FDS]))];
	} control;
	struct iovec part = {reply, sizeof(*reply)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	if (header && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int[VP_LENT_FDS])))
		memcpy(fds, CMSG_DATA(header), sizeof(int[VP_LENT_FDS]));
	return got == sizeof(*reply);
}

static bool map(struct vp_counters_lent *lent, unsigned which, int fd, size_t size)
{
	size_t page = (size_t)getpagesize();

	lent->sizes[which] = (size + page - 1) / page * page;
	lent->maps[which] = mmap(NULL, lent->sizes[which], PROT_READ, MAP_SHARED, fd, 0);
	return lent->maps[which] != MAP_FAILED;
}

static int map_all(struct vp_counters_lent *lent, const struct vp_lent_reply *reply,
		   const int fds[VP_LENT_FDS], struct vperf_error *error)
{
	if (reply->thread >= VP_LENT_THREADS ||
	    !map(lent, 0, fds[VP_LENT_FD_CELLS], reply->cells * sizeof(struct vp_lent_cell)) ||
	    !map(lent, 1, fds[VP_LENT_FD_THREADS], VP_LENT_THREADS * sizeof(struct vp_lent_thread)))
		return vp_counters_fail(error, VPERF_E_SYSTEM, "cannot map the lent counters: %s",
					strerror(errno));
	lent->cells = lent->maps[0];
	lent->thread = (struct vp_lent_thread *)lent->maps[1] + reply->thread;
	lent->marker = reply->marker;
	return VPERF_OK;
}

/* The host may call it something else. */
static bool is_event(const char *lent, const struct vp_counters_event *event)
{
	struct vp_counters_event named;
	char name[VP_LENT_NAME_SIZE] = {0};

	strncpy(name, lent, sizeof(name) - 1);
	return vp_counters_event_find(name, &named) && !strcmp(named.name, event->name);
}

static int find_places(struct vp_counters_lent *lent, const struct vp_counters_event *events,
		       const struct vp_lent_reply *reply, struct vperf_error *error)
{
	unsigned events_lent = reply->events < VP_LENT_EVENTS ? reply->events : VP_LENT_EVENTS;

	for (unsigned i = 0; i < lent->n; i++) {
		unsigned place = 0;
		while (place < events_lent && !is_event(reply->names[place], &events[i]))
			place++;
		if (place == events_lent)
			return vp_counters_fail(error, VPERF_E_NOT_LENT,
						"the host does not lend '%s': 'vperf lend "
						"--events' there says what it does",
						events[i].name);
		lent->places[i] = place;
	}
	return VPERF_OK;
}

static int take_reply(struct vp_counters_lent *lent, const struct vp_counters_event *events,
		      const struct vp_lent_reply *reply, const int fds[VP_LENT_FDS],
		      struct vperf_error *error)
{
	if (reply->version != VP_LENT_VERSION)
		return vp_counters_fail(error, VPERF_E_VERSION,
					"the agent lends counters in version %u, expected %u",
					reply->version, VP_LENT_VERSION);
	if (reply->status)
		return vp_counters_fail(
		    error, reply->status == ENOSPC ? VPERF_E_TOO_MANY : VPERF_E_NOT_LENT,
		    "the agent lends no counters to this thread: %.*s", (int)sizeof(reply->text),
		    reply->text);
	if (fds[VP_LENT_FD_FORCE] < 0)
		return vp_counters_fail(error, VPERF_E_NOT_LENT,
					"the agent's answer has no descriptors");
	int status = find_places(lent, events, reply, error);
	return status ? status : map_all(lent, reply, fds, error);
}

/* A thread has its share from the next time on that it gets its CPU. */
static int wait_for_switch(const struct vp_counters_lent *lent, struct vperf_error *error)
{
	const struct timespec moment = {.tv_nsec = WAIT_NS};

	for (int i = 0; lent->thread->state != VP_LENT_RUNNING; i++) {
		if (i == MOST_WAITS)
			return vp_counters_fail(error, VPERF_E_LOST,
						"the agent's program does not see this thread");
		nanosleep(&moment, NULL);
	}
	return VPERF_OK;
}

static int open_with(struct vp_counters_lent *lent, const struct vp_counters_event *events,
		     struct vperf_error *error)
{
	struct vp_lent_request request = {.version = VP_LENT_VERSION,
					  .tid = (unsigned)syscall(SYS_gettid)};
	struct vp_lent_reply reply;
	int fds[VP_LENT_FDS] = {-1, -1, -1};
	int status = connect_agent(lent, error);

	if (status)
		return status;
	if (send(lent->socket, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request) ||
	    !receive(lent->socket, &reply, fds))
		status = no_agent(error, errno ? errno : EPROTO);
	else
		status = take_reply(lent, events, &reply, fds, error);
	lent->force = fds[VP_LENT_FD_FORCE];
	for (int i = 0; i < VP_LENT_FD_FORCE; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return status ? status : wait_for_switch(lent, error);
}

int vp_counters_lent_open(const struct vp_counters_event *events, unsigned n, bool exact,
			  struct vp_counters_lent **ret, struct vperf_error *error)
{
	struct vp_counters_lent *lent = calloc(1, sizeof(*lent));

	if (!lent)
		return vp_counters_fail(error, VPERF_E_SYSTEM, "out of memory");
	lent->n = n;
	lent->exact = exact;
	lent->socket = lent->force = -1;
	int status = open_with(lent, events, error);
	if (status)
		vp_counters_lent_close(lent);
	else
		*ret = lent;
	return status;
}

void vp_counters_lent_close(struct vp_counters_lent *lent)
{
	if (!lent)
		return;
	for (int i = 0; i < 2; i++)
		if (lent->maps[i] && lent->maps[i] != MAP_FAILED)
			munmap(lent->maps[i], lent->sizes[i]);
	if (lent->socket >= 0)
		close(lent->socket);
	if (lent->force >= 0)
		close(lent->force);
	free(lent);
}

/* Makes the vCPU leave the guest and enter it again, so that the host publishes. */
static void force_exit(const struct vp_counters_lent *lent)
{
#if defined(__x86_64__)
	uint32_t a, b, c, d;

	__cpuid(0, a, b, c, d); /* which every hypervisor intercepts */
#else
	ssize_t ignored = send(lent->force, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)ignored;
#endif
}

/* False: though it was forced to, the host has published nothing. */
static bool publish(const struct vp_counters_lent *lent)
{
	uint64_t switches = lent->thread->sequence;
	uint64_t before = lent->cells[lent->thread->cpu].sequence;

	force_exit(lent);
	return lent->cells[lent->thread->cpu].sequence != before ||
	       lent->thread->sequence != switches;
}

/*
 * The writers of cell and thread run only while this thread does not: the cell's at an entry of its
 * vCPU, the thread's at a switch. If neither came between, all of this is of one moment.
 */
static inline int read_all(const struct vp_counters_lent *lent, uint64_t *values, uint64_t *stolen)
{
	const volatile struct vp_lent_thread *thread = lent->thread;
	const volatile struct vp_lent_cell *cell;
	uint64_t switches, sequence;

	do {
		switches = thread->sequence;
		cell = &lent->cells[thread->cpu];
		sequence = cell->sequence;
		VP_COUNTERS_BARRIER();
		for (unsigned i = 0; values && i < lent->n; i++) {
			unsigned place = lent->places[i];
			values[i] = thread->sum[place] + cell->counts[place] - thread->start[place];
		}
		if (stolen)
			*stolen = thread->stolen_sum + cell->stolen - thread->stolen_start;
		VP_COUNTERS_BARRIER();
	} while (cell->sequence != sequence || thread->sequence != switches);
	return cell->marker == lent->marker && !cell->failed && !thread->stale ? VPERF_OK
									       : VPERF_E_LOST;
}

int vp_counters_lent_read(struct vp_counters_lent *lent, bool exact, uint64_t *values)
{
	if ((exact || lent->exact) && !publish(lent))
		return VPERF_E_LOST;
	return read_all(lent, values, NULL);
}

int vp_counters_lent_stolen(struct vp_counters_lent *lent, uint64_t *ret)
{
	return read_all(lent, NULL, ret);
}
