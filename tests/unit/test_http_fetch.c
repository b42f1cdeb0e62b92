/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to servers of the test's own, on this machine: answers, hostile ones, none; and the
 * rights of the process that asks. */
#include "unit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/io.h"
#include "fetch/gzip.h"
#include "fetch/http_fetch.h"

enum { PATIENCE_MS = 20000 };

/* A server that takes one request and answers with those bytes. */
struct server {
	int listener;
	unsigned port;
	const char *answer;
	size_t size;
	struct vp_buffer request;
	pthread_t thread;
};

static bool is_complete(struct vp_buffer *request)
{
	const char *text = vp_buffer_text(request), *body = strstr(text, "\r\n\r\n");
	const char *length = strstr(text, "Content-Length: ");
	size_t size = length ? strtoul(length + 16, NULL, 10) : 0;

	return body && request->size >= (size_t)(body + 4 - text) + size;
}

static void *serve(void *context)
{
	struct server *server = context;
	struct pollfd ready = {.fd = server->listener, .events = POLLIN};
	char bytes[4096];
	ssize_t size;

	if (vp_poll(&ready, 1, PATIENCE_MS) <= 0)
		return NULL;
	int fd = vp_accept(server->listener, SOCK_CLOEXEC);
	while (!is_complete(&server->request) && (size = vp_read(fd, bytes, sizeof(bytes))) > 0)
		vp_buffer_append(&server->request, bytes, (size_t)size);
	(void)!vp_send(fd, server->answer, server->size, MSG_NOSIGNAL);
	close(fd);
	return NULL;
}

static void begin(struct server *server, const char *answer, size_t size)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t room = sizeof(at);

	*server = (struct server){.answer = answer, .size = size};
	server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(server->listener, 1), 0);
	assert_int_equal(getsockname(server->listener, (struct sockaddr *)&at, &room), 0);
	server->port = ntohs(at.sin_port);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void end(struct server *server)
{
	pthread_join(server->thread, NULL);
	close(server->listener);
	vp_buffer_deinit(&server->request);
}

static struct vp_error *fetch_from(const struct server *server, struct vp_fetch fetch,
				   unsigned *status, struct vp_buffer *answer)
{
	VP_AUTO_FREE char *url = vp_format("http://localhost:%u/api?x=y", server->port);

	fetch.url = url;
	fetch.seconds = 10;
	fetch.limit = 1000;
	return vp_fetch(&fetch, status, answer);
}

static void test_get(void **state)
{
	static const char said[] = "HTTP/1.1 404 no\r\nContent-Length: 5\r\n\r\nhello";
	const char *headers[] = {"X-Scope-OrgID: a"};
	struct server server;
	struct vp_buffer answer = {0};
	unsigned status = 0;

	begin(&server, said, sizeof(said) - 1);
	expect_no_error(fetch_from(&server, (struct vp_fetch){.headers = headers, .n_headers = 1},
				   &status, &answer));
	assert_int_equal(status, 404);
	assert_string_equal(vp_buffer_text(&answer), "hello");
	const char *request = vp_buffer_text(&server.request);
	assert_memory_equal(request, "GET /api?x=y HTTP/1.1\r\n", 23);
	assert_non_null(strstr(request, "\r\nX-Scope-OrgID: a\r\n"));
	vp_buffer_deinit(&answer);
	end(&server);
}

static void test_post(void **state)
{
	static const char said[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	struct server server;
	struct vp_buffer answer = {0}, packed = {0};
	unsigned status = 0;
	char unpacked[64] = "";

	vp_gzip("a profile", 9, &packed);
	begin(&server, said, sizeof(said) - 1);
	expect_no_error(fetch_from(&server,
				   (struct vp_fetch){.type = "application/x-protobuf",
						     .body = packed.bytes,
						     .size = packed.size},
				   &status, &answer));
	assert_int_equal(status, 200);
	assert_int_equal(answer.size, 0);
	pthread_join(server.thread, NULL);
	const char *request = vp_buffer_text(&server.request);
	const char *body = strstr(request, "\r\n\r\n") + 4;
	assert_memory_equal(request, "POST ", 5);
	assert_non_null(strstr(request, "\r\nContent-Type: application/x-protobuf\r\n"));
	z_stream stream = {.next_in = (Bytef *)body,
			   .avail_in = (uInt)(server.request.size - (size_t)(body - request)),
			   .next_out = (Bytef *)unpacked,
			   .avail_out = sizeof(unpacked)};
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	inflateEnd(&stream);
	assert_string_equal(unpacked, "a profile");
	vp_buffer_deinit(&answer);
	vp_buffer_deinit(&packed);
	close(server.listener);
	vp_buffer_deinit(&server.request);
}

static void expect_failure(const char *said, size_t size, const char *part)
{
	struct server server;
	struct vp_buffer answer = {0};
	unsigned status = 0;

	begin(&server, said, size);
	expect_error(fetch_from(&server, (struct vp_fetch){0}, &status, &answer), part);
	assert_int_equal(answer.size, 0);
	vp_buffer_deinit(&answer);
	end(&server);
}

/* Too large, garbage, cut off; nobody there. */
static void test_hostile(void **state)
{
	static char large[4096] = "HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n";
	struct vp_buffer answer = {0};
	unsigned status = 0;

	expect_failure(large, sizeof(large), "the answer is too large");
	expect_failure("\033]0;x\a\r\n\r\n", 10, "localhost");
	expect_failure("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nx", 41, "localhost");
	const struct vp_fetch nobody = {.url = "http://127.0.0.1:1/", .seconds = 5, .limit = 1000};
	expect_error(vp_fetch(&nobody, &status, &answer), "127.0.0.1");
	const struct vp_fetch file = {.url = "file:///etc/passwd", .seconds = 5, .limit = 10000};
	expect_error(vp_fetch(&file, &status, &answer), "rotocol");
	assert_int_equal(answer.size, 0);
	vp_buffer_deinit(&answer);
}

static void test_headers(void **state)
{
	static const char text[] = "# a comment\nAuthorization: Bearer x\r\n\nX-Scope-OrgID: 1\n";
	struct vp_buffer lines = {0};
	const char **headers = NULL;
	size_t count = 0;

	expect_no_error(vp_file_publish("test_http_fetch.headers", text, sizeof(text) - 1));
	expect_no_error(vp_fetch_headers("test_http_fetch.headers", &lines, &headers, &count));
	assert_int_equal(count, 2);
	assert_string_equal(headers[0], "Authorization: Bearer x");
	assert_string_equal(headers[1], "X-Scope-OrgID: 1");
	free(headers);
	vp_buffer_deinit(&lines);
	expect_no_error(vp_file_publish("test_http_fetch.headers", "a: b\ntoken", 10));
	expect_error(vp_fetch_headers("test_http_fetch.headers", &lines, &headers, &count),
		     "test_http_fetch.headers:2: expected a header");
	vp_buffer_deinit(&lines);
	expect_error(vp_fetch_headers("test_http_fetch.none", &lines, &headers, &count), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_get), cmocka_unit_test(test_post),
					   cmocka_unit_test(test_hostile),
					   cmocka_unit_test(test_headers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
