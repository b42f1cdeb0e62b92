/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/http_process.h"

#include <microhttpd.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/macros.h"

enum { ROUND_MS = 1000, MEMORY_PER_CONNECTION = 16384 };

#define SECOND 1000000000ULL

/* A connection, and the start time of its request. */
struct client {
	int fd; /* -1: unused slot */
	uint64_t since;
};

struct vp_http_serving {
	const struct vp_http_document *documents;
	const struct vp_http_pages *pages;
	struct vp_http_limits limits;
	struct MHD_Daemon *daemon;
	struct client clients[VP_HTTP_CONNECTIONS];
};

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
			      const void *bytes, size_t size)
{
	struct MHD_Response *response =
	    MHD_create_response_from_buffer(size, (void *)bytes, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result ret = MHD_NO;

	if (!response)
		return MHD_NO;
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
	    (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
	     MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") == MHD_YES))
		ret = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return ret;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
				   const char *text)
{
	return answer(connection, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* The document of the path: one that the client's Accept header names, otherwise the default
 * one. */
static size_t choose_document(const struct vp_http_serving *serving, const char *path,
			      const char *accept)
{
	size_t count = vp_http_pages_count(serving->pages), chosen = count;

	for (size_t i = 0; i < count; i++) {
		const struct vp_http_document *document = &serving->documents[i];
		if (strcmp(document->path, path) != 0)
			continue;
		if (document->accept && accept && strstr(accept, document->accept))
			return i;
		if (!document->accept)
			chosen = i;
	}
	return chosen;
}

static enum MHD_Result handle_request(void *context, struct MHD_Connection *connection,
				      const char *url, const char *method, const char *version,
				      const char *upload, size_t *upload_size, void **own)
{
	const struct vp_http_serving *serving = context;
	struct vp_buffer bytes = {0};

	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				   "expected GET or HEAD\n");
	const char *accept =
	    MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	size_t number = choose_document(serving, url, accept);
	if (number == vp_http_pages_count(serving->pages))
		return answer_text(connection, MHD_HTTP_NOT_FOUND, "not found\n");
	if (!vp_http_page_read(serving->pages, number, &bytes))
		return answer_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				   "not yet: the first interval has not ended\n");
	enum MHD_Result ret = answer(connection, MHD_HTTP_OK, serving->documents[number].type,
				     bytes.bytes, bytes.size);
	vp_buffer_deinit(&bytes);
	return ret;
}

static void note_connection(void *context, struct MHD_Connection *connection, void **own,
			    enum MHD_ConnectionNotificationCode code)
{
	struct vp_http_serving *serving = context;
	const union MHD_ConnectionInfo *fd =
	    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct client *client = *own;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED && client)
		client->fd = -1;
	for (size_t i = 0; code == MHD_CONNECTION_NOTIFY_STARTED && fd && !*own &&
			   i < VP_ARRAY_SIZE(serving->clients);
	     i++)
		if (serving->clients[i].fd < 0) {
			serving->clients[i] = (struct client){fd->connect_fd, vp_clock_monotonic()};
			*own = &serving->clients[i];
		}
}

/* The time limit starts again with the connection's next request. */
static void note_answered(void *context, struct MHD_Connection *connection, void **request,
			  enum MHD_RequestTerminationCode code)
{
	const union MHD_ConnectionInfo *own =
	    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	if (own && own->socket_context)
		((struct client *)own->socket_context)->since = vp_clock_monotonic();
}

/* Closes connections that exceed the time limit of a request: a client that reads or sends a byte
 * now and then is never idle. */
static void close_slow(struct vp_http_serving *serving)
{
	uint64_t now = vp_clock_monotonic();

	for (size_t i = 0; i < VP_ARRAY_SIZE(serving->clients); i++) {
		struct client *client = &serving->clients[i];
		if (client->fd >= 0 && now - client->since > serving->limits.request * SECOND)
			shutdown(client->fd, SHUT_RDWR);
	}
}

struct vp_http_serving *vp_http_serving_start(int fd, const struct vp_http_document *documents,
					      const struct vp_http_pages *pages,
					      const struct vp_http_limits *limits)
{
	struct vp_http_serving *serving = vp_alloc(sizeof(*serving));
	const struct MHD_OptionItem socket[] = {
	    {fd < 0 ? MHD_OPTION_END : MHD_OPTION_LISTEN_SOCKET, fd, NULL},
	    {MHD_OPTION_END, 0, NULL}};

	serving->documents = documents;
	serving->pages = pages;
	serving->limits = *limits;
	for (size_t i = 0; i < VP_ARRAY_SIZE(serving->clients); i++)
		serving->clients[i].fd = -1;
	serving->daemon = MHD_start_daemon(
	    fd < 0 ? MHD_USE_NO_LISTEN_SOCKET : MHD_NO_FLAG, 0, NULL, NULL, handle_request, serving,
	    MHD_OPTION_ARRAY, socket, MHD_OPTION_CONNECTION_LIMIT, (unsigned)VP_HTTP_CONNECTIONS,
	    MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)VP_HTTP_PER_ADDRESS,
	    MHD_OPTION_CONNECTION_TIMEOUT, limits->idle, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)MEMORY_PER_CONNECTION, MHD_OPTION_NOTIFY_CONNECTION, note_connection, serving,
	    MHD_OPTION_NOTIFY_COMPLETED, note_answered, serving, MHD_OPTION_END);
	if (serving->daemon)
		return serving;
	free(serving);
	return NULL;
}

bool vp_http_serving_add(struct vp_http_serving *serving, int fd, const struct sockaddr *address,
			 socklen_t size)
{
	return MHD_add_connection(serving->daemon, fd, address, size) == MHD_YES;
}

bool vp_http_serving_step(struct vp_http_serving *serving, int milliseconds)
{
	bool ret = MHD_run_wait(serving->daemon, milliseconds) == MHD_YES;

	close_slow(serving);
	return ret;
}

void vp_http_process(int fd, const struct vp_http_document *documents,
		     const struct vp_http_pages *pages, const struct vp_http_limits *limits)
{
	if (vp_confine_to_serving(&fd))
		_exit(1);
	struct vp_http_serving *serving = vp_http_serving_start(fd, documents, pages, limits);
	while (serving && vp_http_serving_step(serving, ROUND_MS))
		;
	_exit(1);
}
