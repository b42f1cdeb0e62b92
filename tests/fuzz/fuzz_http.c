/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests from anybody, on one connection: the answers are answers, and none has what is private.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "serve/http_pages.h"
#include "serve/http_process.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct vp_http_document documents[] = {
    {"/metrics", "text/plain", NULL},
    {"/metrics", "application/openmetrics-text", "application/openmetrics-text"}};
static const struct vp_http_limits limits = {1, 1};

static struct vp_http_serving *serving(void)
{
	static struct vp_http_serving *serving;

	if (serving)
		return serving;
	struct vp_http_pages *pages = vp_http_pages_make(2, 4096);
	if (!pages || !vp_http_page_write(pages, 0, "plain\n", 6) ||
	    !vp_http_page_write(pages, 1, "open\n", 5))
		abort();
	serving = vp_http_serving_start(-1, documents, pages, &limits);
	if (!serving)
		abort();
	return serving;
}

/* Reads without waiting. */
static void take(int fd, struct vp_buffer *ret)
{
	char bytes[4096];
	ssize_t size;

	while ((size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		vp_buffer_append(ret, bytes, (size_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct vp_buffer answer = {0};
	int ends[2];
	size_t sent = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
		abort();
	if (!vp_http_serving_add(serving(), ends[1], (struct sockaddr *)&from, sizeof(from)))
		abort();
	for (int round = 0; round < 64; round++) {
		ssize_t more =
		    sent < size ? send(ends[0], bytes + sent, size - sent, MSG_NOSIGNAL) : 0;
		if (more < 0 && errno != EAGAIN)
			break;
		sent += more > 0 ? (size_t)more : 0;
		if (!vp_http_serving_step(serving(), 0))
			abort();
		take(ends[0], &answer);
		if (sent == size)
			shutdown(ends[0], SHUT_WR);
	}
	/* Whatever came, the answer is one of HTTP or none. */
	if (answer.size && (answer.size < 9 || memcmp(answer.bytes, "HTTP/1.", 7) != 0))
		abort();
	vp_buffer_deinit(&answer);
	close(ends[0]);
	for (int round = 0; round < 4; round++)
		if (!vp_http_serving_step(serving(), 0))
			abort();
	return 0;
}
