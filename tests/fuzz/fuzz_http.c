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

/* With users: requests have passwords, right or wrong. */
static struct vp_web_user user = {"u", "$2a$05$CCCCCCCCCCCCCCCCCCCCC."
				       "E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"};
static const struct vp_web_config with_user = {.users = {.at = &user, .count = 1}};

static struct vp_http_serving *serving(bool has_user)
{
	static struct vp_http_serving *both[2];
	struct vp_http_serving *serving = both[has_user];

	if (serving)
		return serving;
	struct vp_http_pages *pages = vp_http_pages_make(2, 4096);
	if (!pages || !vp_http_page_write(pages, 0, "plain\n", 6) ||
	    !vp_http_page_write(pages, 1, "open\n", 5))
		abort();
	both[has_user] =
	    vp_http_serving_start(-1, -1, documents, pages, &limits, has_user ? &with_user : NULL);
	if (!both[has_user])
		abort();
	return both[has_user];
}

/* Reads without waiting. */
static void take(int fd, struct vp_buffer *ret)
{
	char bytes[4096];
	ssize_t size;

	while ((size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		vp_buffer_append(ret, bytes, (size_t)size);
}

/* Sends the bytes to a server; none of its answers has a document without the right password. */
static void serve_bytes(struct vp_http_serving *to, bool has_user, const uint8_t *bytes,
			size_t size)
{
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct vp_buffer answer = {0};
	int ends[2];
	size_t sent = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
		abort();
	if (!vp_http_serving_add(to, ends[1], (struct sockaddr *)&from, sizeof(from)))
		abort();
	for (int round = 0; round < 64; round++) {
		ssize_t more =
		    sent < size ? send(ends[0], bytes + sent, size - sent, MSG_NOSIGNAL) : 0;
		if (more < 0 && errno != EAGAIN)
			break;
		sent += more > 0 ? (size_t)more : 0;
		if (!vp_http_serving_step(to, 0))
			abort();
		take(ends[0], &answer);
		if (sent == size)
			shutdown(ends[0], SHUT_WR);
	}
	/* Whatever came, the answer is one of HTTP or none. */
	if (answer.size && (answer.size < 9 || memcmp(answer.bytes, "HTTP/1.", 7) != 0))
		abort();
	const char password[] = "dTpVKl"; /* of u:U*U */
	if (has_user && size && answer.size &&
	    !memmem(bytes, size, password, sizeof(password) - 1) &&
	    memmem(answer.bytes, answer.size, " 200 ", 5))
		abort();
	vp_buffer_deinit(&answer);
	close(ends[0]);
	for (int round = 0; round < 4; round++)
		if (!vp_http_serving_step(to, 0))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	serve_bytes(serving(false), false, bytes, size);
	serve_bytes(serving(true), true, bytes, size);
	return 0;
}
