/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/io.h"
#include "serve/http_pages.h"
#include "serve/http_process.h"

enum { BACKLOG = 64, ADDRESS_SIZE = INET6_ADDRSTRLEN + 16 };

struct vp_http_server {
	pid_t process;
	bool ended;
	int fd; /* listening socket */
	struct vp_http_document *documents;
	struct vp_http_limits limits;
	struct vp_http_pages *pages;
	size_t count;      /* documents */
	uint64_t *written; /* times of their latest versions */
	int asks[2];       /* ends of this process and of the other one; -1: none */
	char address[ADDRESS_SIZE];
};

/* Splits "HOST:PORT" at the last colon; a host in brackets is an IPv6 address. */
static struct vp_error *split_address(const char *address, char **host, const char **port)
{
	const char *colon = strrchr(address, ':');
	size_t size = colon ? (size_t)(colon - address) : 0;

	if (!colon || !colon[1])
		return vp_error_usage("'%s': expected ADDRESS:PORT, such as 127.0.0.1:9177 or "
				      "[::1]:9177",
				      address);
	if (size >= 2 && address[0] == '[' && address[size - 1] == ']')
		*host = vp_strndup(address + 1, size - 2);
	else
		*host = size ? vp_strndup(address, size) : NULL;
	*port = colon + 1;
	return NULL;
}

static struct vp_error *http_listen(const char *address, int *ret)
{
	const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
				       .ai_family = AF_UNSPEC,
				       .ai_socktype = SOCK_STREAM};
	VP_AUTO_FREE char *host = NULL;
	const char *port = NULL;
	struct addrinfo *found;
	int yes = 1;

	VP_TRY(split_address(address, &host, &port));
	int failed = getaddrinfo(host, port, &hints, &found);
	if (failed)
		return vp_error_usage("'%s': %s: expected a numeric address and port", address,
				      gai_strerror(failed));
	int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool ok = fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) &&
		  !bind(fd, found->ai_addr, found->ai_addrlen) && !listen(fd, BACKLOG);
	int saved = errno;
	freeaddrinfo(found);
	if (ok) {
		*ret = fd;
		return NULL;
	}
	if (fd >= 0)
		close(fd);
	return vp_error_errno(saved, "cannot listen at %s", address);
}

static void name_address(int fd, char text[ADDRESS_SIZE])
{
	struct sockaddr_storage at;
	socklen_t size = sizeof(at);
	char host[INET6_ADDRSTRLEN] = "?", port[16] = "?";

	if (!getsockname(fd, (struct sockaddr *)&at, &size))
		getnameinfo((struct sockaddr *)&at, size, host, sizeof(host), port, sizeof(port),
			    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, ADDRESS_SIZE, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

static const char cannot_start[] = "cannot start the process that serves HTTP";

static struct vp_error *start_process(struct vp_http_server *server,
				      const struct vp_web_config *web)
{
	server->process = fork();
	if (!server->process)
		vp_http_process(server->fd, server->asks[1], server->documents, server->pages,
				&server->limits, web);
	return server->process > 0 ? NULL : vp_error_errno(errno, cannot_start);
}

static void stop_process(struct vp_http_server *server)
{
	if (server->process > 0 && !vp_http_server_has_ended(server)) {
		kill(server->process, SIGKILL);
		vp_waitpid(server->process, NULL, 0);
	}
	server->process = 0;
}

static bool open_asks(struct vp_http_server *server)
{
	return !server->limits.fresh_ms ||
	       !socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, server->asks);
}

struct vp_error *vp_http_server_start(const char *address, const struct vp_http_document *documents,
				      size_t count, size_t room,
				      const struct vp_http_limits *limits,
				      const struct vp_web_config *web, struct vp_http_server **ret)
{
	static const struct vp_http_limits usual = {VP_HTTP_IDLE_SECONDS, VP_HTTP_REQUEST_SECONDS,
						    0};
	int fd = -1;

	VP_TRY(http_listen(address, &fd));
	struct vp_http_server *server = vp_alloc(sizeof(*server));
	server->fd = fd;
	server->documents = vp_realloc_array(NULL, count, sizeof(*documents));
	memcpy(server->documents, documents, count * sizeof(*documents));
	server->limits = limits ? *limits : usual;
	server->count = count;
	server->written = vp_realloc_array(NULL, count, sizeof(*server->written));
	memset(server->written, 0, count * sizeof(*server->written));
	server->asks[0] = server->asks[1] = -1;
	server->pages = vp_http_pages_make(count, room);
	name_address(fd, server->address);
	struct vp_error *error = server->pages && open_asks(server)
				     ? start_process(server, web)
				     : vp_error_errno(errno, cannot_start);
	if (error)
		vp_http_server_stop(server);
	else
		*ret = server;
	return error;
}

struct vp_error *vp_http_server_restart(struct vp_http_server *server,
					const struct vp_web_config *web)
{
	stop_process(server);
	server->ended = false;
	return start_process(server, web);
}

const char *vp_http_server_address(const struct vp_http_server *server)
{
	return server->address;
}

pid_t vp_http_server_process(const struct vp_http_server *server)
{
	return server->process;
}

bool vp_http_server_put(struct vp_http_server *server, size_t document, const void *bytes,
			size_t size)
{
	server->written[document] = vp_clock_monotonic();
	return vp_http_page_write(server->pages, document, bytes, size);
}

int vp_http_server_asks(const struct vp_http_server *server)
{
	return server->asks[0];
}

/* The process that asks has clients: what it asks for more often than the limit is ignored. */
bool vp_http_server_next_ask(struct vp_http_server *server, size_t *document)
{
	unsigned char ask;

	while (server->asks[0] >= 0 &&
	       recv(server->asks[0], &ask, sizeof(ask), MSG_DONTWAIT) == sizeof(ask)) {
		if (ask >= server->count ||
		    vp_clock_monotonic() <
			server->written[ask] + server->limits.fresh_ms * 1000000ULL)
			continue;
		*document = ask;
		return true;
	}
	return false;
}

bool vp_http_server_has_ended(struct vp_http_server *server)
{
	server->ended = server->ended || vp_waitpid(server->process, NULL, WNOHANG) != 0;
	return server->ended;
}

void vp_http_server_stop(struct vp_http_server *server)
{
	if (!server)
		return;
	stop_process(server);
	close(server->fd);
	for (int i = 0; i < 2; i++)
		if (server->asks[i] >= 0)
			close(server->asks[i]);
	free(server->written);
	free(server->documents);
	vp_http_pages_free(server->pages);
	free(server);
}
