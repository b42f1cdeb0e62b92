/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attaches a set to host-provided counters. Protocol: protocol/lent.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "counters/counters_lent.h"

#include "counters/counters_event.h"

/* Restarts interrupted system calls: this library runs in programs with signals of their own. */
#define AGAIN(call)                                                                                \
	({                                                                                         \
		__typeof__(call) vperf_result;                                                     \
		do                                                                                 \
			vperf_result = (call);                                                     \
		while (vperf_result < 0 && errno == EINTR);                                        \
		vperf_result;                                                                      \
	})

static int no_agent(struct vperf_error *error, int errnum)
{
	return vp_counters_fail(error, VPERF_E_NOT_LENT,
				"the host provides no counters to this guest: '%s': %s (requires "
				"'vperf lend' on the host and vperf-agent here)",
				VP_LENT_SOCKET, strerror(errnum));
}

static int counters_lent_connect_agent(struct vp_counters_lent *lent, struct vperf_error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = VP_LENT_SOCKET};

	lent->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (lent->socket < 0)
		return vp_counters_fail(error, VPERF_E_SYSTEM, "cannot create a socket: %s",
					strerror(errno));
	if (AGAIN(connect(lent->socket, (struct sockaddr *)&address, sizeof(address))))
		return no_agent(error, errno);
	return VPERF_OK;
}

/* Receives a packet with descriptors; false: another packet, or none. */
static bool counters_lent_receive(int socket, struct vp_lent_reply *reply, int fds[VP_LENT_FDS])
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
	ssize_t got = AGAIN(recvmsg(socket, &message, MSG_CMSG_CLOEXEC));
	struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	if (header && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int[VP_LENT_FDS])))
		memcpy(fds, CMSG_DATA(header), sizeof(int[VP_LENT_FDS]));
	return got == sizeof(*reply);
}

static bool counters_lent_map(struct vp_counters_lent *lent, unsigned which, int fd, size_t size)
{
	size_t page = (size_t)getpagesize();

	lent->sizes[which] = (size + page - 1) / page * page;
	lent->maps[which] = mmap(NULL, lent->sizes[which], PROT_READ, MAP_SHARED, fd, 0);
	return lent->maps[which] != MAP_FAILED;
}

static int map_all(struct vp_counters_lent *lent, const struct vp_lent_reply *reply,
		   const int fds[VP_LENT_FDS], struct vperf_error *error)
{
	/* The number of cells is that of CPUs plus 1. */
	size_t threads = VP_LENT_THREADS + (size_t)reply->cells - 1;

	if (reply->thread >= VP_LENT_THREADS || !reply->cells ||
	    !counters_lent_map(lent, 0, fds[VP_LENT_FD_CELLS],
			       reply->cells * sizeof(struct vp_lent_cell)) ||
	    !counters_lent_map(lent, 1, fds[VP_LENT_FD_THREADS],
			       threads * sizeof(struct vp_lent_thread)))
		return vp_counters_fail(error, VPERF_E_SYSTEM,
					"cannot map the host-provided counters: %s",
					strerror(errno));
	lent->cells = lent->maps[0];
	lent->thread = (struct vp_lent_thread *)lent->maps[1] + reply->thread;
	lent->runs = (struct vp_lent_run *)lent->maps[1] + VP_LENT_THREADS;
	lent->n_cpus = reply->cells - 1;
	lent->index = reply->thread;
	lent->marker = reply->marker;
	return VPERF_OK;
}

/* Compares names; the host may use an alias. */
static bool counters_lent_is_event(const char *lent, const struct vp_counters_event *event)
{
	struct vp_counters_event named;
	char name[VP_LENT_NAME_SIZE] = {0};

	strncpy(name, lent, sizeof(name) - 1);
	return vp_counters_event_find(name, &named) && vp_counters_event_same(&named, event);
}

int vp_counters_lent_index(const struct vp_counters_lent *lent,
			   const struct vp_counters_event *event)
{
	for (unsigned index = 0; index < lent->events; index++)
		if (counters_lent_is_event(lent->names[index], event))
			return (int)index;
	return -1;
}

static int counters_lent_find_indices(struct vp_counters_lent *lent,
				      const struct vp_counters_event *events,
				      struct vperf_error *error)
{
	for (unsigned i = 0; i < lent->n; i++) {
		int index = vp_counters_lent_index(lent, &events[i]);
		if (index < 0)
			return vp_counters_fail(error, VPERF_E_NOT_LENT,
						"the host does not provide '%s': add it to "
						"--events of 'vperf lend' there",
						events[i].name);
		lent->indices[i] = (unsigned)index;
	}
	return VPERF_OK;
}

static int take_reply(struct vp_counters_lent *lent, const struct vp_lent_reply *reply,
		      const int fds[VP_LENT_FDS], struct vperf_error *error)
{
	if (reply->version != VP_LENT_VERSION)
		return vp_counters_fail(error, VPERF_E_VERSION,
					"the agent has protocol version %u, expected %u",
					reply->version, VP_LENT_VERSION);
	if (reply->status)
		return vp_counters_fail(
		    error, reply->status == ENOSPC ? VPERF_E_TOO_MANY : VPERF_E_NOT_LENT,
		    "the agent refused this thread: %.*s", (int)sizeof(reply->text), reply->text);
	if (fds[VP_LENT_FD_FORCE] < 0)
		return vp_counters_fail(error, VPERF_E_NOT_LENT,
					"the agent's reply has no descriptors");
	lent->events = reply->events < VP_LENT_EVENTS ? reply->events : VP_LENT_EVENTS;
	memcpy(lent->names, reply->names, sizeof(lent->names));
	return map_all(lent, reply, fds, error);
}

/* A sleeping thread has no counts until it is switched in. */
static bool sleeps(pid_t tid)
{
	char path[32], text[256], *end;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = 0;
	end = strrchr(text, ')'); /* end of the thread's name; its state follows */
	return end && end[1] == ' ' && end[2] && end[2] != 'R';
}

/* Waits until the thread has counts: from its next switch-in. */
static int wait_for_switch(const struct vp_counters_lent *lent, struct vperf_error *error)
{
	const struct timespec moment = {.tv_nsec = VP_COUNTERS_WAIT_NS};
	bool own = lent->tid == gettid();

	for (int i = 0; lent->thread->state == VP_LENT_NEW; i++) {
		if (!own && sleeps(lent->tid))
			break;
		if (i == VP_COUNTERS_MAX_WAITS)
			return vp_counters_fail(
			    error, VPERF_E_LOST,
			    "the agent's BPF program does not receive switches of this thread");
		nanosleep(&moment, NULL);
	}
	return VPERF_OK;
}

static int counters_lent_attach(struct vp_counters_lent *lent, bool inherits,
				struct vperf_error *error)
{
	struct vp_lent_request request = {.version = VP_LENT_VERSION,
					  .tid = (unsigned)lent->tid,
					  .flags = inherits ? VP_LENT_INHERIT : 0};
	struct vp_lent_reply reply;
	int fds[VP_LENT_FDS] = {-1, -1, -1};
	int status = counters_lent_connect_agent(lent, error);

	if (status)
		return status;
	if (AGAIN(send(lent->socket, &request, sizeof(request), MSG_NOSIGNAL)) != sizeof(request) ||
	    !counters_lent_receive(lent->socket, &reply, fds))
		status = no_agent(error, errno ? errno : EPROTO);
	else
		status = take_reply(lent, &reply, fds, error);
	lent->force = fds[VP_LENT_FD_FORCE];
	for (int i = 0; i < VP_LENT_FD_FORCE; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return status;
}

int vp_counters_lent_attach(pid_t tid, bool inherits, struct vp_counters_lent **ret,
			    struct vperf_error *error)
{
	struct vp_counters_lent *lent = calloc(1, sizeof(*lent));

	if (!lent)
		return vp_counters_fail(error, VPERF_E_SYSTEM, "out of memory");
	lent->tid = tid;
	lent->socket = lent->force = -1;
	int status = counters_lent_attach(lent, inherits, error);
	if (!status)
		status = wait_for_switch(lent, error);
	if (status)
		vp_counters_lent_close(lent);
	else
		*ret = lent;
	return status;
}

int vp_counters_lent_open(const struct vp_counters_event *events, unsigned n, bool exact,
			  struct vp_counters_lent **ret, struct vperf_error *error)
{
	struct vp_counters_lent *lent = NULL;
	int status = vp_counters_lent_attach(gettid(), false, &lent, error);

	if (status)
		return status;
	lent->n = n;
	lent->exact = exact;
	status = counters_lent_find_indices(lent, events, error);
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
