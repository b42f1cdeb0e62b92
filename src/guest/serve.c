/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The daemon: sleeps until a kernel buffer is half full or a request arrives. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "base/cursor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/vec.h"
#include "guest/agent.h"
#include "guest/serve_vchan.h"
#include "guest/watch.h"
#include "protocol/agent_protocol.h"
#include "protocol/counts_protocol.h"
#include "protocol/events_protocol.h"
#include "protocol/lend_protocol.h"

enum {
	MAX_ANSWERS =
	    8, /* at the same time; a request to count lasts as long as the host keeps it open */
	TIMEOUT_SECONDS = 30,
};

enum event_kind { EVENT_SIGNAL, EVENT_VSOCK, EVENT_SOCKET, EVENT_BUFFER };

struct server {
	struct vp_agent agent;
	struct vp_agent_serve_options options;
	int epoll_fd, signal_fd, vsock_fd, socket_fd;
	pid_t vchan;      /* the process that offers vchans; 0: none */
	unsigned answers; /* child processes that serve requests */
	bool stopping;
};

static struct vp_error *watch_fd(struct server *server, int fd, enum event_kind kind)
{
	/* A buffer is drained completely at each wakeup: edge triggering avoids further wakeups. */
	struct epoll_event event = {.events = EPOLLIN | (kind == EVENT_BUFFER ? EPOLLET : 0),
				    .data.u32 = kind};

	if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return vp_error_errno(errno, "cannot wait for events");
	return NULL;
}

static int listen_vsock(unsigned port)
{
	struct sockaddr_vm address = {
	    .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = port};
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, MAX_ANSWERS)) {
		int errnum = errno;
		close(fd);
		return -errnum;
	}
	return fd;
}

static int serve_open_socket(bool serve)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = VP_AGENT_SOCKET};
	/* accept() must not block if the client has disconnected. */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (serve ? SOCK_NONBLOCK : 0), 0);

	if (fd < 0)
		return -errno;
	/* Replies contain kernel addresses, so the socket is for root only. */
	mode_t mask = umask(0177);
	int result = serve ? bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
				 listen(fd, MAX_ANSWERS)
			   : vp_connect(fd, (struct sockaddr *)&address, sizeof(address));
	int errnum = errno;
	umask(mask);
	if (!result)
		return fd;
	close(fd);
	return -errnum;
}

static struct vp_error *listen_socket(struct server *server)
{
	int other = serve_open_socket(false);

	if (other >= 0) {
		close(other);
		return vp_error_new("another vperf-agent is already running on '%s'",
				    VP_AGENT_SOCKET);
	}
	unlink(VP_AGENT_SOCKET); /* left by a killed agent */
	server->socket_fd = serve_open_socket(true);
	if (server->socket_fd < 0)
		return vp_error_errno(-server->socket_fd, "cannot listen on '%s'", VP_AGENT_SOCKET);
	return watch_fd(server, server->socket_fd, EVENT_SOCKET);
}

static struct vp_error *watch_signals(struct server *server)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	server->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (server->signal_fd < 0)
		return vp_error_errno(errno, "cannot wait for signals");
	return watch_fd(server, server->signal_fd, EVENT_SIGNAL);
}

static struct vp_error *watch_buffers(struct server *server)
{
	const int *fds;
	unsigned count = server->agent.perf ? vp_perf_fds(server->agent.perf, &fds) : 0;

	for (unsigned i = 0; i < count; i++)
		VP_TRY(watch_fd(server, fds[i], EVENT_BUFFER));
	if (server->agent.task_events)
		VP_TRY(watch_fd(server, vp_task_watch_fd(server->agent.task_events), EVENT_BUFFER));
	return NULL;
}

/* vsock requests are accepted from the host only: any process of the guest can connect, too. */
static bool is_from_host(int fd)
{
	struct sockaddr_vm peer = {0};
	socklen_t size = sizeof(peer);

	return !getpeername(fd, (struct sockaddr *)&peer, &size) && peer.svm_family == AF_VSOCK &&
	       peer.svm_cid == VMADDR_CID_HOST;
}

static bool read_request(int fd, char *request, size_t room)
{
	size_t size = 0;

	while (size + 1 < room) {
		ssize_t got = vp_read(fd, request + size, room - 1 - size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		size += (size_t)got;
		request[size] = 0;
		if (strchr(request, '\n'))
			return true;
	}
	return false;
}

static int serve_refuse(int fd, const char *line)
{
	return vp_fd_write_all(fd, line, strlen(line));
}

/* In a child process: a malformed file, or a client that does not read, affects no other client. */
static int serve_answer(struct server *server, int fd)
{
	struct timeval timeout = {.tv_sec = TIMEOUT_SECONDS};
	char request[VP_AGENT_MAX_REQUEST];

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (!read_request(fd, request, sizeof(request)))
		return serve_refuse(fd, "error expected a request line\n");
	struct vp_slice line = {request, strcspn(request, "\n")};
	struct vp_counts_request counts;
	if (vp_counts_request_parse(line, &counts))
		return vp_counts_serve(fd, &counts);
	struct vp_lend_request lend;
	if (vp_lend_request_parse(line, &lend))
		return vp_lend_serve(fd, &lend);
	unsigned sets;
	if (vp_events_request_parse(line, &sets))
		return vp_events_serve(fd, sets, server->options.ring_kib);
	if (!strcmp(request, VP_AGENT_REQUEST))
		return vp_agent_dump(&server->agent, fd, server->options.symbols);
	if (!strcmp(request, VP_AGENT_REQUEST_NO_SYMBOLS))
		return vp_agent_dump(&server->agent, fd, false);
	return serve_refuse(fd, "error expected 'vperf-request 1 dump [no-symbols]', "
				"'vperf-request 1 counts MARKER EVENT...', "
				"'vperf-request 1 lend MARKER EVENT...' or "
				"'vperf-request 1 events SET...'\n");
}

static void on_connection(struct server *server, int listener, bool vsock)
{
	VP_AUTO_CLOSE int fd = vp_accept(listener, SOCK_CLOEXEC);

	if (fd < 0 || (vsock && !is_from_host(fd)))
		return;
	if (server->answers >= MAX_ANSWERS) {
		int ignored = serve_refuse(fd, "error " VP_AGENT_TOO_MANY "\n");
		(void)ignored;
		return;
	}
	vp_agent_catch_up(&server->agent);
	pid_t child = fork();
	if (child == 0)
		_exit(serve_answer(server, fd) ? 1 : 0);
	if (child > 0)
		server->answers++;
}

static void on_signals(struct server *server)
{
	struct signalfd_siginfo info;

	while (vp_read(server->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			server->stopping = true;
	for (pid_t child; (child = vp_waitpid(-1, NULL, WNOHANG)) > 0;) {
		if (child == server->vchan)
			server->vchan = 0;
		else
			server->answers--;
	}
}

static void on_event(struct server *server, enum event_kind kind)
{
	switch (kind) {
	case EVENT_SIGNAL:
		on_signals(server);
		break;
	case EVENT_VSOCK:
		on_connection(server, server->vsock_fd, true);
		break;
	case EVENT_SOCKET:
		on_connection(server, server->socket_fd, false);
		break;
	case EVENT_BUFFER:
		vp_agent_note_clock(&server->agent);
		vp_agent_drain(&server->agent);
		break;
	}
}

static struct vp_error *server_start(struct server *server, unsigned port)
{
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll_fd < 0)
		return vp_error_errno(errno, "cannot wait for events");
	VP_TRY(watch_signals(server));
	VP_TRY(listen_socket(server));
	server->vsock_fd = listen_vsock(port);
	if (server->vsock_fd >= 0)
		VP_TRY(watch_fd(server, server->vsock_fd, EVENT_VSOCK));
	else if (!server->vchan)
		fprintf(stderr,
			"vperf-agent: cannot listen on vsock port %u: %s; serving only '%s'\n",
			port, strerror(-server->vsock_fd), VP_AGENT_SOCKET);
	return watch_buffers(server);
}

static struct vp_error *server_loop(struct server *server)
{
	struct epoll_event events[16];

	while (!server->stopping) {
		int count = vp_epoll_wait(server->epoll_fd, events, VP_ARRAY_SIZE(events));
		if (count < 0)
			return vp_error_errno(errno, "cannot wait for events");
		for (int i = 0; i < count; i++)
			on_event(server, (enum event_kind)events[i].data.u32);
	}
	return NULL;
}

struct vp_error *vp_agent_serve(const struct vp_agent_serve_options *options)
{
	struct server server = {
	    .options = *options, .epoll_fd = -1, .signal_fd = -1, .vsock_fd = -1, .socket_fd = -1};

	server.vchan =
	    vp_vchan_server_start(options->port); /* started before anything it does not need */
	vp_agent_start(&server.agent);
	vp_vec_each (&server.agent.notes, note)
		fprintf(stderr, "vperf-agent: %s\n", *note);
	struct vp_error *error = server_start(&server, options->port);
	if (!error) {
		fprintf(stderr, "vperf-agent: watching\n");
		error = server_loop(&server);
	}
	vp_vchan_server_end(server.vchan, options->port);
	if (server.socket_fd >= 0)
		unlink(VP_AGENT_SOCKET);
	int fds[] = {server.epoll_fd, server.signal_fd, server.vsock_fd, server.socket_fd};
	for (unsigned i = 0; i < VP_ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	vp_agent_stop(&server.agent);
	return error;
}

struct vp_error *vp_agent_fetch_running(int fd, bool symbols, bool *served)
{
	const char *request = symbols ? VP_AGENT_REQUEST : VP_AGENT_REQUEST_NO_SYMBOLS;
	VP_AUTO_CLOSE int agent = serve_open_socket(false);
	char piece[64 * 1024];
	ssize_t got = 0;

	*served = agent >= 0;
	if (!*served)
		return NULL;
	int result = vp_fd_write_all(agent, request, strlen(request));
	while (!result && (got = vp_read(agent, piece, sizeof(piece))) > 0)
		result = vp_fd_write_all(fd, piece, (size_t)got);
	if (!result && got < 0)
		result = -errno;
	return result ? vp_error_errno(-result, "cannot copy the reply of the running vperf-agent")
		      : NULL;
}
