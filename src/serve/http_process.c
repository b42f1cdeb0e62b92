/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/http_process.h"

#include <microhttpd.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/confine.h"
#include "base/macros.h"

enum { ROUND_MS = 1000, MEMORY_PER_CONNECTION = 16384 };

struct serving {
	const struct vp_http_document *documents;
	const struct vp_http_pages *pages;
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

/* The path's document: the one that the client accepts by name, otherwise the one for all. */
static size_t choose_document(const struct serving *serving, const char *path, const char *accept)
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
	const struct serving *serving = context;
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

void vp_http_process(int fd, const struct vp_http_document *documents,
		     const struct vp_http_pages *pages)
{
	struct serving serving = {documents, pages};

	if (vp_confine_to_serving(&fd))
		_exit(1);
	struct MHD_Daemon *daemon = MHD_start_daemon(
	    MHD_NO_FLAG, 0, NULL, NULL, handle_request, &serving, MHD_OPTION_LISTEN_SOCKET, fd,
	    MHD_OPTION_CONNECTION_LIMIT, (unsigned)VP_HTTP_CONNECTIONS,
	    MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)VP_HTTP_PER_ADDRESS,
	    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)VP_HTTP_IDLE_SECONDS,
	    MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_PER_CONNECTION, MHD_OPTION_END);
	while (daemon && MHD_run_wait(daemon, ROUND_MS) == MHD_YES)
		;
	_exit(1);
}
