/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/http_process.h"

#include <microhttpd.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/io.h"
#include "base/macros.h"
#include "serve/http_access.h"

enum {
	FRESH_WAIT_MS = 500, /* longest wait for a document that was asked for … */
	IMPATIENT_S = 5,     /* … and time without such waits after one was in vain */
	FRESH_STEP_US = 500,
};
enum { ROUND_MS = 1000, MEMORY_PER_CONNECTION = 16384, TLS_OPTIONS = 5 };

#define SECOND 1000000000ULL
#define MS 1000000ULL

/* A connection, and the start time of its request. */
struct client {
	int fd; /* -1: unused slot */
	uint64_t since;
};

struct vp_http_serving {
	const struct vp_http_document *documents;
	const struct vp_http_pages *pages;
	struct vp_http_limits limits;
	int asks;                 /* where to ask for documents; -1: nowhere */
	uint64_t impatient_until; /* the writer did not answer in time */
	struct vp_http_access access;
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
	     MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") == MHD_YES) &&
	    (status != MHD_HTTP_UNAUTHORIZED ||
	     MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
				     "Basic realm=\"vperf\", charset=\"UTF-8\"") == MHD_YES))
		ret = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return ret;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
				   const char *text)
{
	return answer(connection, status, "text/plain; charset=utf-8", text, strlen(text));
}

static enum MHD_Result answer_denied(struct MHD_Connection *connection, enum vp_http_grant grant)
{
	if (grant == VP_HTTP_NO_CERTIFICATE)
		return answer_text(connection, MHD_HTTP_FORBIDDEN,
				   "expected a valid client certificate\n");
	if (grant == VP_HTTP_TOO_MANY_WRONG)
		return answer_text(connection, MHD_HTTP_TOO_MANY_REQUESTS,
				   "too many wrong passwords: try again in a second\n");
	return answer_text(connection, MHD_HTTP_UNAUTHORIZED, "expected a user and a password\n");
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

/* Asks for a document that is too old, and waits for it. Other clients wait meanwhile: that is once
 * in a while, since a document is then fresh. */
static void refresh(struct vp_http_serving *serving, size_t number)
{
	uint64_t now = vp_clock_monotonic(), end = now + FRESH_WAIT_MS * MS;
	uint64_t written = vp_http_page_written(serving->pages, number);
	unsigned char ask = (unsigned char)number;

	if (serving->asks < 0 || !serving->limits.fresh_ms || now < serving->impatient_until ||
	    now < written + serving->limits.fresh_ms * MS ||
	    vp_send(serving->asks, &ask, sizeof(ask), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(ask))
		return;
	while (vp_http_page_written(serving->pages, number) == written) {
		if (vp_clock_monotonic() > end) {
			serving->impatient_until = end + IMPATIENT_S * SECOND;
			return;
		}
		vp_sleep_us(FRESH_STEP_US);
	}
}

static enum MHD_Result handle_request(void *context, struct MHD_Connection *connection,
				      const char *url, const char *method, const char *version,
				      const char *upload, size_t *upload_size, void **own)
{
	struct vp_http_serving *serving = context;
	struct vp_buffer bytes = {0};

	enum vp_http_grant grant =
	    vp_http_access_check(&serving->access, connection, vp_clock_monotonic());
	if (grant != VP_HTTP_GRANTED)
		return answer_denied(connection, grant);
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				   "expected GET or HEAD\n");
	const char *accept =
	    MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	size_t number = choose_document(serving, url, accept);
	if (number == vp_http_pages_count(serving->pages))
		return answer_text(connection, MHD_HTTP_NOT_FOUND, "not found\n");
	refresh(serving, number);
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

/* Options of TLS; none without a certificate. */
static void set_tls(const struct vp_web_config *web, struct MHD_OptionItem options[TLS_OPTIONS])
{
	size_t count = 0;

	if (web && web->certificate.text) {
		options[count++] =
		    (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, web->certificate.text};
		options[count++] =
		    (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, web->key.text};
		options[count++] = (struct MHD_OptionItem){
		    MHD_OPTION_HTTPS_PRIORITIES, 0,
		    web->only_tls13 ? "NORMAL:-VERS-ALL:+VERS-TLS1.3"
				    : "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"};
	}
	if (count && web->client_ca.text)
		options[count++] =
		    (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, web->client_ca.text};
	options[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}

struct vp_http_serving *vp_http_serving_start(int fd, int asks,
					      const struct vp_http_document *documents,
					      const struct vp_http_pages *pages,
					      const struct vp_http_limits *limits,
					      const struct vp_web_config *web)
{
	struct vp_http_serving *serving = vp_alloc(sizeof(*serving));
	const struct MHD_OptionItem socket[] = {
	    {fd < 0 ? MHD_OPTION_END : MHD_OPTION_LISTEN_SOCKET, fd, NULL},
	    {MHD_OPTION_END, 0, NULL}};
	struct MHD_OptionItem tls[TLS_OPTIONS];
	unsigned flags = fd < 0 ? MHD_USE_NO_LISTEN_SOCKET : MHD_NO_FLAG;

	set_tls(web, tls);
	if (tls[0].option != MHD_OPTION_END)
		flags |= MHD_USE_TLS;
	serving->access = (struct vp_http_access){.config = web};

	serving->asks = asks;
	serving->documents = documents;
	serving->pages = pages;
	serving->limits = *limits;
	for (size_t i = 0; i < VP_ARRAY_SIZE(serving->clients); i++)
		serving->clients[i].fd = -1;
	serving->daemon = MHD_start_daemon(
	    flags, 0, NULL, NULL, handle_request, serving, MHD_OPTION_ARRAY, socket,
	    MHD_OPTION_ARRAY, tls, MHD_OPTION_CONNECTION_LIMIT, (unsigned)VP_HTTP_CONNECTIONS,
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

void vp_http_process(int fd, int asks, const struct vp_http_document *documents,
		     const struct vp_http_pages *pages, const struct vp_http_limits *limits,
		     const struct vp_web_config *web)
{
	static const int caught[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};

	int fds[] = {fd, asks};

	/* Handlers of the process that started this one. */
	for (size_t i = 0; i < VP_ARRAY_SIZE(caught); i++)
		signal(caught[i], SIG_DFL);
	if (vp_confine_to_serving(fds, VP_ARRAY_SIZE(fds)))
		_exit(1);
	struct vp_http_serving *serving =
	    vp_http_serving_start(fds[0], fds[1], documents, pages, limits, web);
	while (serving && vp_http_serving_step(serving, ROUND_MS))
		;
	_exit(1);
}
