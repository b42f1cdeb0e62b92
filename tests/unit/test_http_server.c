/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Documents over HTTP, from a process that has no rights, to clients of all kinds. */
#include "unit.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/macros.h"
#include "serve/http_pages.h"
#include "serve/http_server.h"

enum { PLAIN, OPEN, EMPTY, DOCUMENTS, ROOM = 1 << 20 };

static const struct vp_http_document documents[DOCUMENTS] = {
    [PLAIN] = {"/metrics", "text/plain", NULL},
    [OPEN] = {"/metrics", "application/openmetrics-text", "application/openmetrics-text"},
    [EMPTY] = {"/later", "text/plain", NULL}};

static struct vp_http_server *start_with(const struct vp_http_limits *limits)
{
	struct vp_http_server *server;

	if (geteuid() != 0)
		skip();
	expect_no_error(
	    vp_http_server_start("127.0.0.1:0", documents, DOCUMENTS, ROOM, limits, NULL, &server));
	return server;
}

static struct vp_http_server *start(void)
{
	return start_with(NULL);
}

/* From 127.0.0.`client`. */
static int connect_from(const struct vp_http_server *server, uint32_t client)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in from = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~255U) | client)};
	const char *colon = strrchr(vp_http_server_address(server), ':');
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	to.sin_port = htons((uint16_t)atoi(colon + 1));
	assert_int_equal(vp_connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static int connect_to(const struct vp_http_server *server)
{
	return connect_from(server, 1);
}

static void read_all(int fd, struct vp_buffer *ret)
{
	char bytes[4096];
	ssize_t size;

	while ((size = vp_read(fd, bytes, sizeof(bytes))) > 0)
		vp_buffer_append(ret, bytes, (size_t)size);
	close(fd);
}

/* All that the server sends until it closes the connection. */
static void ask(const struct vp_http_server *server, const char *request, struct vp_buffer *ret)
{
	int fd = connect_to(server);

	assert_int_equal(vp_send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	read_all(fd, ret);
}

static void expect_answer(const struct vp_http_server *server, const char *request,
			  const char *status, const char *type, const char *end)
{
	struct vp_buffer answer = {0};

	ask(server, request, &answer);
	const char *text = vp_buffer_text(&answer);
	assert_memory_equal(text, status, strlen(status));
	if (type)
		assert_non_null(strstr(text, type));
	assert_string_equal(text + strlen(text) - strlen(end), end);
	vp_buffer_deinit(&answer);
}

#define CLOSE " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"

static void test_requests(void **state)
{
	struct vp_http_server *server = start();

	expect_answer(server, "GET /metrics" CLOSE "\r\n", "HTTP/1.1 503", NULL, "ended\n");
	assert_true(vp_http_server_put(server, PLAIN, "plain 1\n", 8));
	assert_true(vp_http_server_put(server, OPEN, "open 1\n", 7));
	expect_answer(server, "GET /metrics" CLOSE "\r\n", "HTTP/1.1 200",
		      "Content-Type: text/plain\r\n", "\r\n\r\nplain 1\n");
	expect_answer(server, "GET /metrics?x=y" CLOSE "Accept: text/plain, */*\r\n\r\n",
		      "HTTP/1.1 200", "text/plain", "plain 1\n");
	expect_answer(server,
		      "GET /metrics" CLOSE
		      "Accept: application/openmetrics-text;version=1.0.0,*/*;q=0.1\r\n\r\n",
		      "HTTP/1.1 200", "Content-Type: application/openmetrics-text\r\n",
		      "\r\n\r\nopen 1\n");
	/* The next document, whole, from the next request on. */
	assert_true(vp_http_server_put(server, PLAIN, "2", 1));
	expect_answer(server, "GET /metrics" CLOSE "\r\n", "HTTP/1.1 200", NULL, "\r\n\r\n2");
	expect_answer(server, "HEAD /metrics" CLOSE "\r\n", "HTTP/1.1 200", "Content-Length: 1\r\n",
		      "\r\n\r\n");
	expect_answer(server, "GET /later" CLOSE "\r\n", "HTTP/1.1 503", NULL, "ended\n");
	expect_answer(server, "GET /../metrics" CLOSE "\r\n", "HTTP/1.1 404", NULL, "not found\n");
	expect_answer(server, "POST /metrics" CLOSE "Content-Length: 0\r\n\r\n", "HTTP/1.1 405",
		      "Allow: GET, HEAD\r\n", "GET or HEAD\n");
	vp_http_server_stop(server);
}

/* Garbage, a request that never ends, one that is too long, and as many connections as it takes. */
static void test_hostile_clients(void **state)
{
	struct vp_http_server *server = start();
	int slow[VP_HTTP_PER_ADDRESS - 1];
	struct vp_buffer answer = {0};
	static char longest[1 << 16];

	assert_true(vp_http_server_put(server, PLAIN, "plain\n", 6));
	for (size_t i = 0; i < VP_ARRAY_SIZE(slow); i++) {
		slow[i] = connect_to(server);
		assert_int_equal(vp_send(slow[i], "GET /met", 8, MSG_NOSIGNAL), 8);
	}
	expect_answer(server, "GET /metrics" CLOSE "\r\n", "HTTP/1.1 200", NULL, "plain\n");
	for (size_t i = 0; i < VP_ARRAY_SIZE(slow); i++)
		close(slow[i]);
	ask(server, "\x16\x03\x01\x02 garbage\r\n\r\n", &answer);
	memset(longest, 'a', sizeof(longest) - 1);
	memcpy(longest, "GET /", 5);
	int fd = connect_to(server);
	(void)!vp_send(fd, longest, sizeof(longest), MSG_NOSIGNAL);
	close(fd);
	assert_false(vp_http_server_has_ended(server));
	expect_answer(server, "GET /metrics" CLOSE "\r\n", "HTTP/1.1 200", NULL, "plain\n");
	vp_buffer_deinit(&answer);
	vp_http_server_stop(server);
}

/* One address takes all connections that it may have: others are served, and get what is new. */
static void test_per_address(void **state)
{
	struct vp_http_server *server = start();
	int held[VP_HTTP_PER_ADDRESS];
	const char *request = "GET /metrics" CLOSE "\r\n";
	struct vp_buffer answer = {0};

	assert_true(vp_http_server_put(server, PLAIN, "old\n", 4));
	for (size_t i = 0; i < VP_ARRAY_SIZE(held); i++) {
		held[i] = connect_to(server);
		assert_int_equal(vp_send(held[i], "GET /met", 8, MSG_NOSIGNAL), 8);
	}
	int one_more = connect_to(server);
	(void)!vp_send(one_more, request, strlen(request), MSG_NOSIGNAL);
	read_all(one_more, &answer);
	assert_int_equal(answer.size, 0);
	assert_true(vp_http_server_put(server, PLAIN, "new\n", 4));
	int other = connect_from(server, 2);
	assert_int_equal(vp_send(other, request, strlen(request), MSG_NOSIGNAL), strlen(request));
	read_all(other, &answer);
	assert_non_null(strstr(vp_buffer_text(&answer), "\r\n\r\nnew\n"));
	for (size_t i = 0; i < VP_ARRAY_SIZE(held); i++)
		close(held[i]);
	vp_buffer_deinit(&answer);
	vp_http_server_stop(server);
}

/* A client that sends a byte now and then is not idle, and yet has only so long. */
static void test_slow_clients(void **state)
{
	struct vp_http_server *server = start_with(&(struct vp_http_limits){10, 1});
	int slow = connect_to(server);
	unsigned sent = 0;

	while (sent < 100 && vp_send(slow, "G", 1, MSG_NOSIGNAL) == 1) {
		vp_sleep_us(100000);
		sent++;
	}
	assert_in_range(sent, 5, 50);
	close(slow);
	vp_http_server_stop(server);
	server = start_with(&(struct vp_http_limits){1, 10});
	int idle = connect_to(server);
	struct vp_buffer answer = {0};
	assert_int_equal(vp_send(idle, "GET", 3, MSG_NOSIGNAL), 3);
	read_all(idle, &answer); /* returns */
	assert_null(strstr(vp_buffer_text(&answer), " 200 "));
	vp_buffer_deinit(&answer);
	vp_http_server_stop(server);
}

static uint64_t resident_pages(pid_t process)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%d/statm", (int)process);
	VP_AUTO_FCLOSE FILE *file = fopen(path, "re");
	unsigned long resident = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*u %lu", &resident), 1);
	return resident;
}

/* Headers without an end, a body that nobody wants: refused, and without memory for it. */
static void test_huge_requests(void **state)
{
	struct vp_http_server *server = start();
	static char line[1 << 16];
	pid_t process = vp_http_server_process(server);

	assert_true(vp_http_server_put(server, PLAIN, "plain\n", 6));
	expect_answer(server, "GET /metrics" CLOSE "\r\n", "HTTP/1.1 200", NULL, "plain\n");
	uint64_t before = resident_pages(process);
	memset(line, 'a', sizeof(line));
	memcpy(line, "X: ", 3);
	for (int client = 0; client < 4; client++) {
		struct vp_buffer answer = {0};
		int fd = connect_to(server);
		const char *begin = client % 2 ? "POST /metrics HTTP/1.1\r\nContent-Length: "
						 "99999999999\r\nHost: x\r\n\r\n"
					       : "GET /metrics HTTP/1.1\r\nHost: x\r\n";
		ssize_t sent = vp_send(fd, begin, strlen(begin), MSG_NOSIGNAL);
		for (int i = 0; sent > 0 && i < 1024; i++) /* 64 MiB, if they are taken */
			sent = vp_send(fd, line, sizeof(line), MSG_NOSIGNAL);
		assert_true(sent < 0);
		read_all(fd, &answer);
		assert_null(strstr(vp_buffer_text(&answer), "\r\n\r\nplain\n"));
		vp_buffer_deinit(&answer);
	}
	assert_in_range(resident_pages(process), 1, before + 256);
	expect_answer(server, "GET /metrics" CLOSE "\r\n", "HTTP/1.1 200", NULL, "plain\n");
	vp_http_server_stop(server);
}

static void expect_start_error(const char *address, const char *sentence)
{
	struct vp_http_server *server;
	struct vp_error *error =
	    vp_http_server_start(address, documents, DOCUMENTS, ROOM, NULL, NULL, &server);

	assert_non_null(error);
	assert_non_null(strstr(vp_error_message(error), sentence));
	vp_error_free(error);
}

static void test_addresses(void **state)
{
	struct vp_http_server *server = start();

	expect_start_error("nonsense", "expected ADDRESS:PORT");
	expect_start_error("127.0.0.1:", "expected ADDRESS:PORT");
	expect_start_error("some.host:1", "expected a numeric address and port");
	expect_start_error("127.0.0.1:http", "expected a numeric address and port");
	expect_start_error(vp_http_server_address(server), "Address already in use");
	vp_http_server_stop(server);
	vp_http_server_stop(NULL);
}

static void test_room(void **state)
{
	static const char too_much[ROOM + 1];
	struct vp_http_server *server = start();

	assert_true(vp_http_server_put(server, PLAIN, "old", 3));
	assert_false(vp_http_server_put(server, PLAIN, too_much, sizeof(too_much)));
	expect_answer(server, "GET /metrics" CLOSE "\r\n", "HTTP/1.1 200", NULL, "old");
	vp_http_server_stop(server);
}

struct writing {
	struct vp_http_pages *pages;
	bool stop;
};

/* Documents of one repeated byte, each of another length. */
static void *keep_writing(void *context)
{
	struct writing *writing = context;
	char bytes[512];

	for (unsigned i = 1; !__atomic_load_n(&writing->stop, __ATOMIC_RELAXED); i++) {
		memset(bytes, 'a' + i % 26, sizeof(bytes));
		assert_true(vp_http_page_write(writing->pages, 0, bytes, 1 + i % sizeof(bytes)));
	}
	return NULL;
}

/* A reader never sees parts of two documents, however fast they change. */
static void test_pages(void **state)
{
	struct writing writing = {.pages = vp_http_pages_make(2, 512)};
	struct vp_buffer read = {0};
	pthread_t thread;

	assert_int_equal(vp_http_pages_count(writing.pages), 2);
	assert_false(vp_http_page_read(writing.pages, 1, &read));
	assert_true(vp_http_page_write(writing.pages, 1, "x", 1));
	assert_int_equal(pthread_create(&thread, NULL, keep_writing, &writing), 0);
	for (unsigned i = 0; i < 20000; i++) {
		read.size = 0;
		if (!vp_http_page_read(writing.pages, 0, &read))
			continue;
		assert_in_range(read.size, 1, 512);
		for (size_t at = 1; at < read.size; at++)
			assert_int_equal(read.bytes[at], read.bytes[0]);
	}
	__atomic_store_n(&writing.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	read.size = 0;
	assert_true(vp_http_page_read(writing.pages, 1, &read));
	assert_int_equal(read.size, 1);
	vp_buffer_deinit(&read);
	vp_http_pages_free(writing.pages);
}

enum { FRESH_MS = 300 };

struct writer {
	struct vp_http_server *server;
	unsigned asks; /* that came */
	bool stop;
};

/* Writes documents that are asked for: "1", "2", ... */
static void *write_asked(void *context)
{
	struct writer *writer = context;
	struct pollfd asks = {.fd = vp_http_server_asks(writer->server), .events = POLLIN};
	size_t document;

	while (!__atomic_load_n(&writer->stop, __ATOMIC_RELAXED)) {
		(void)!vp_poll(&asks, 1, 10);
		while (vp_http_server_next_ask(writer->server, &document)) {
			VP_AUTO_FREE char *text = vp_format("%u\n", ++writer->asks);
			vp_http_server_put(writer->server, document, text, strlen(text));
		}
	}
	return NULL;
}

static void expect_document(const struct vp_http_server *server, const char *end)
{
	struct vp_buffer got = {0};

	ask(server, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &got);
	const char *text = vp_buffer_text(&got);
	assert_true(strlen(text) > strlen(end));
	assert_string_equal(text + strlen(text) - strlen(end), end);
	vp_buffer_deinit(&got);
}

/* A client gets a document that was written for it, unless that of another one is fresh; and the
 * last one, at most half a second later, from a writer that is stuck. */
static void test_documents_on_request(void **state)
{
	const struct vp_http_limits limits = {10, 30, FRESH_MS};
	struct writer writer = {.server = start_with(&limits)};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, write_asked, &writer), 0);
	expect_document(writer.server, "\r\n\r\n1\n");
	expect_document(writer.server, "\r\n\r\n1\n");
	usleep((FRESH_MS + 10) * 1000);
	expect_document(writer.server, "\r\n\r\n2\n");
	__atomic_store_n(&writer.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(writer.asks, 2);
	usleep((FRESH_MS + 10) * 1000);
	uint64_t before = vp_clock_monotonic();
	expect_document(writer.server, "\r\n\r\n2\n");
	uint64_t waited = vp_clock_monotonic() - before;
	assert_true(waited > 400000000);
	expect_document(writer.server, "\r\n\r\n2\n");
	assert_true(vp_clock_monotonic() - before - waited < 400000000);
	vp_http_server_stop(writer.server);
}

/* Documents without a limit of age are never asked for. */
static void test_documents_without_limit(void **state)
{
	struct vp_http_server *server = start();
	size_t document;

	assert_int_equal(vp_http_server_asks(server), -1);
	assert_false(vp_http_server_next_ask(server, &document));
	vp_http_server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_documents_on_request),
					   cmocka_unit_test(test_documents_without_limit),
					   cmocka_unit_test(test_requests),
					   cmocka_unit_test(test_hostile_clients),
					   cmocka_unit_test(test_addresses),
					   cmocka_unit_test(test_room),
					   cmocka_unit_test(test_pages),
					   cmocka_unit_test(test_per_address),
					   cmocka_unit_test(test_slow_clients),
					   cmocka_unit_test(test_huge_requests)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
