/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rings of a vchan and the process that passes bytes on, between two processes that share
 * memory; and what a hostile peer can do. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/io.h"
#include "vchan/vchan.h"
#include "vchan/vchan_device.h"
#include "vchan/vchan_pump.h"
#include "vchan/vchan_ring.h"

enum { IN_ORDER = VP_VCHAN_SMALL_ORDER, OUT_ORDER = VP_VCHAN_PAGE_ORDER + 1 };

/* Both sides of a vchan whose pages are memory of this machine. */
struct vchan {
	struct vp_vchan_page *page;
	char *pages; /* of the ring to the client */
	int to_server, to_client;
	struct vp_vchan_ring server, client;
	struct vp_vchan_bell server_bell, client_bell;
};

/* A bell's port is the descriptor of the peer's. */
static bool ring_eventfd(const struct vp_vchan_bell *bell)
{
	uint64_t one = 1;

	return write((int)bell->port, &one, sizeof(one)) == sizeof(one);
}

static bool hear_eventfd(const struct vp_vchan_bell *bell)
{
	uint64_t count;

	return read(bell->fd, &count, sizeof(count)) == sizeof(count);
}

static bool ring_nobody(const struct vp_vchan_bell *bell)
{
	return true;
}

static struct vp_vchan_ring view_of(struct vchan *vchan, bool is_server)
{
	char *left = vp_vchan_bytes_of(vchan->page, NULL, IN_ORDER);

	return (struct vp_vchan_ring){.page = vchan->page,
				      .is_server = is_server,
				      .in = is_server ? left : vchan->pages,
				      .out = is_server ? vchan->pages : left,
				      .in_size = 1U << (is_server ? IN_ORDER : OUT_ORDER),
				      .out_size = 1U << (is_server ? OUT_ORDER : IN_ORDER)};
}

static void open_vchan(struct vchan *vchan)
{
	vchan->page =
	    mmap(NULL, VP_VCHAN_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	vchan->pages =
	    mmap(NULL, 1 << OUT_ORDER, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(vchan->page != MAP_FAILED && vchan->pages != MAP_FAILED);
	vchan->to_server = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	vchan->to_client = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	vchan->server = view_of(vchan, true);
	vchan->client = view_of(vchan, false);
	vchan->server_bell = (struct vp_vchan_bell){vchan->to_server, (uint32_t)vchan->to_client,
						    ring_eventfd, hear_eventfd};
	vchan->client_bell = (struct vp_vchan_bell){vchan->to_client, (uint32_t)vchan->to_server,
						    ring_eventfd, hear_eventfd};
	vchan->page->left_order = IN_ORDER;
	vchan->page->right_order = OUT_ORDER;
	vchan->page->client_live = vchan->page->server_live = VP_VCHAN_LIVE;
}

static void close_vchan(struct vchan *vchan)
{
	munmap(vchan->page, VP_VCHAN_PAGE);
	munmap(vchan->pages, 1 << OUT_ORDER);
	close(vchan->to_server);
	close(vchan->to_client);
}

/* A process that passes on between a side and a socket, the other end of which is *socket. It does
 * not keep `other` open. */
static pid_t start_pump(struct vp_vchan_ring *ring, const struct vp_vchan_bell *bell, int other,
			int *socket)
{
	const int few = 2048;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &few, sizeof(few)), 0);
	pid_t child = fork();
	if (child == 0) {
		signal(SIGPIPE, SIG_IGN);
		close(ends[0]);
		close(other);
		fcntl(ends[1], F_SETFL, O_NONBLOCK);
		_exit(vp_vchan_pump(ring, bell, ends[1]) == VP_VCHAN_CLOSED ? 0 : 3);
	}
	close(ends[1]);
	*socket = ends[0];
	return child;
}

static int result_of(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static uint8_t pattern(uint64_t at)
{
	return (uint8_t)(at * 2654435761U >> 11);
}

/* The agent of a guest: echoes how many bytes came, and sends so many of its own when the host has
 * ended its direction. */
static void play_agent(int socket, uint64_t size)
{
	char bytes[5000];
	uint64_t heard = 0;
	ssize_t got;

	while ((got = vp_read(socket, bytes, sizeof(bytes))) > 0)
		for (ssize_t i = 0; i < got; i++)
			if ((uint8_t)bytes[i] != pattern(heard++))
				_exit(1);
	if (vp_fd_write_all(socket, &heard, sizeof(heard)))
		_exit(1);
	for (uint64_t at = 0; at < size;) {
		size_t piece = 1 + at % sizeof(bytes);
		piece = piece < size - at ? piece : size - at;
		for (size_t i = 0; i < piece; i++)
			bytes[i] = (char)pattern(at + i);
		if (vp_fd_write_all(socket, bytes, piece))
			_exit(1);
		at += piece;
	}
	_exit(0);
}

static void send_pattern(int socket, uint64_t size)
{
	char bytes[3000];

	for (uint64_t at = 0; at < size;) {
		size_t piece = sizeof(bytes) < size - at ? sizeof(bytes) : size - at;
		for (size_t i = 0; i < piece; i++)
			bytes[i] = (char)pattern(at + i);
		assert_int_equal(vp_fd_write_all(socket, bytes, piece), 0);
		at += piece;
	}
}

static void expect_pattern(int socket, uint64_t size)
{
	char bytes[4096];
	uint64_t heard = 0;
	ssize_t got;

	while ((got = vp_read(socket, bytes, sizeof(bytes))) > 0)
		for (ssize_t i = 0; i < got; i++)
			assert_int_equal((uint8_t)bytes[i], pattern(heard++));
	assert_int_equal(got, 0);
	assert_int_equal(heard, size);
}

/* The indices begin where they soon pass 2^32. */
static void test_streams(void **state)
{
	enum { REQUEST = 100000, REPLY = 3000001 };
	struct vchan vchan;
	uint64_t heard;
	int host, guest;

	open_vchan(&vchan);
	vchan.page->left = (struct vp_vchan_half){0xffffff00, 0xffffff00};
	vchan.page->right = (struct vp_vchan_half){0xfffffff7, 0xfffffff7};
	vchan.client.produced = vchan.server.consumed = 0xffffff00;
	vchan.client.consumed = vchan.server.produced = 0xfffffff7;
	pid_t server = start_pump(&vchan.server, &vchan.server_bell, -1, &guest);
	pid_t client = start_pump(&vchan.client, &vchan.client_bell, guest, &host);
	pid_t agent = fork();
	if (agent == 0) {
		close(host);
		play_agent(guest, REPLY);
	}
	close(guest);
	send_pattern(host, REQUEST);
	assert_int_equal(shutdown(host, SHUT_WR), 0);
	assert_int_equal(vp_read(host, &heard, sizeof(heard)), sizeof(heard));
	assert_int_equal(heard, REQUEST);
	expect_pattern(host, REPLY);
	assert_int_equal(result_of(agent), 0);
	assert_int_equal(result_of(server), 0);
	assert_int_equal(result_of(client), 0);
	assert_int_equal(vchan.page->server_live, VP_VCHAN_GONE);
	assert_int_equal(vchan.page->client_live, VP_VCHAN_GONE);
	close(host);
	close_vchan(&vchan);
}

/* A host that goes ends the guest's side, too. */
static void test_host_goes(void **state)
{
	struct vchan vchan;
	char byte;
	int host, guest;

	open_vchan(&vchan);
	pid_t server = start_pump(&vchan.server, &vchan.server_bell, -1, &guest);
	pid_t client = start_pump(&vchan.client, &vchan.client_bell, guest, &host);
	close(host);
	assert_int_equal(result_of(client), 0);
	assert_int_equal(vp_read(guest, &byte, 1), 0);
	assert_int_equal(result_of(server), 0);
	close(guest);
	close_vchan(&vchan);
}

/* All that the guest sent before it went arrives, though the socket takes it in pieces. */
static void test_last_words(void **state)
{
	struct vchan vchan;
	struct vp_vchan_piece piece;
	int host;

	open_vchan(&vchan);
	assert_true(vp_vchan_writable(&vchan.server, &piece));
	assert_int_equal(piece.size, 1 << OUT_ORDER);
	for (uint32_t i = 0; i < piece.size; i++)
		piece.at[i] = (char)pattern(i);
	assert_false(vp_vchan_produce(&vchan.server, piece.size));
	vp_vchan_declare(&vchan.server, VP_VCHAN_GONE);
	pid_t client = start_pump(&vchan.client, &vchan.client_bell, -1, &host);
	vp_sleep_us(100000);
	expect_pattern(host, piece.size);
	assert_int_equal(result_of(client), 0);
	close(host);
	close_vchan(&vchan);
}

/* Xen's own clients discard what they have not read when the guest is gone: it stays until then. */
static void test_stays_until_read(void **state)
{
	enum { SIZE = 5000 };
	struct vchan vchan;
	struct vp_vchan_piece piece = {0};
	int guest;

	open_vchan(&vchan);
	pid_t server = start_pump(&vchan.server, &vchan.server_bell, -1, &guest);
	send_pattern(guest, SIZE);
	close(guest);
	for (unsigned ms = 0; ms < 300 && vchan.page->server_live != VP_VCHAN_GONE; ms++)
		vp_sleep_us(1000);
	assert_int_equal(vchan.page->server_live, VP_VCHAN_LIVE);
	while (vchan.client.consumed < SIZE) {
		assert_true(vp_vchan_readable(&vchan.client, &piece));
		for (uint32_t i = 0; i < piece.size; i++)
			assert_int_equal((uint8_t)piece.at[i], pattern(vchan.client.consumed + i));
		if (piece.size && vp_vchan_consume(&vchan.client, piece.size))
			vchan.client_bell.ring(&vchan.client_bell);
	}
	assert_int_equal(result_of(server), 0);
	assert_int_equal(vchan.page->server_live, VP_VCHAN_GONE);
	close_vchan(&vchan);
}

/* What can be read or written is never more than the ring has, whatever the peer's indices are. */
static void test_impossible_indices(void **state)
{
	static const uint32_t indices[] = {0,    1,    1023,       1024,      1025,
					   8192, 8193, 0x7fffffff, UINT32_MAX};
	struct vp_vchan_piece piece;
	struct vchan vchan;

	open_vchan(&vchan);
	for (size_t i = 0; i < VP_ARRAY_SIZE(indices); i++) {
		vchan.page->right.produced = vchan.page->left.consumed = indices[i];
		bool is_possible = indices[i] <= vchan.client.in_size;
		assert_int_equal(vp_vchan_readable(&vchan.client, &piece), is_possible);
		if (is_possible)
			assert_true(piece.at + piece.size <=
				    vchan.client.in + vchan.client.in_size);
		/* What was never written cannot have been read. */
		assert_int_equal(vp_vchan_writable(&vchan.client, &piece),
				 indices[i] == 0 || (uint32_t)-indices[i] <= vchan.client.out_size);
		if (indices[i] == 0)
			assert_int_equal(piece.size, vchan.client.out_size);
	}
	close_vchan(&vchan);
}

/* This side's own indices are its own. */
static void test_rewritten_indices(void **state)
{
	struct vp_vchan_piece piece;
	struct vchan vchan;

	open_vchan(&vchan);
	vchan.page->right.produced = 100;
	assert_false(vp_vchan_consume(&vchan.client, 60));
	assert_int_equal(vchan.page->right.consumed, 60);
	vchan.page->right.consumed = 0x80000000;
	vchan.page->left.produced = 77;
	assert_true(vp_vchan_readable(&vchan.client, &piece));
	assert_ptr_equal(piece.at, vchan.client.in + 60);
	assert_int_equal(piece.size, 40);
	assert_true(vp_vchan_writable(&vchan.client, &piece));
	assert_ptr_equal(piece.at, vchan.client.out);
	close_vchan(&vchan);
}

/* With them the connection ends at once, and nobody waits. */
static void test_impossible_ends(void **state)
{
	struct vchan vchan;
	char byte;
	int host;

	open_vchan(&vchan);
	pid_t client = start_pump(&vchan.client, &vchan.client_bell, -1, &host);
	vchan.page->right.produced = 1 << 30;
	assert_true(ring_eventfd(&vchan.server_bell));
	assert_int_equal(vp_read(host, &byte, 1), 0);
	assert_int_equal(result_of(client), 3);
	close(host);
	close_vchan(&vchan);
}

/* Orders of rings that have no room, lie at one place, or have more grants than the page. */
static void test_impossible_orders(void **state)
{
	static const struct {
		uint16_t left, right;
		bool is_possible;
	} orders[] = {{10, 11, true},  {11, 10, true},  {10, 10, false},    {11, 11, false},
		      {12, 12, true},  {9, 12, false},  {10, 17, true},     {10, 19, true},
		      {10, 20, false}, {20, 10, false}, {19, 19, false},    {10, 21, false},
		      {0, 0, false},   {12, 0, false},  {65535, 10, false}, {10, 65535, false}};
	struct vp_vchan_page *page = vp_alloc(VP_VCHAN_PAGE);
	uint16_t left, right;

	for (size_t i = 0; i < VP_ARRAY_SIZE(orders); i++) {
		page->left_order = orders[i].left;
		page->right_order = orders[i].right;
		assert_int_equal(vp_vchan_orders_read(page, &left, &right), orders[i].is_possible);
		assert_int_equal(left, orders[i].left);
		assert_int_equal(right, orders[i].right);
	}
	free(page);
}

/* A host that does not read stops a guest that floods, at what fits into the ring and the socket.
 */
static void test_flood_stops(void **state)
{
	struct vchan vchan;
	struct vp_vchan_piece piece;
	uint64_t sent = 0, until = vp_clock_monotonic() + 2000000000ULL;
	int host;

	open_vchan(&vchan);
	pid_t client = start_pump(&vchan.client, &vchan.client_bell, -1, &host);
	while (vp_clock_monotonic() < until) {
		assert_true(vp_vchan_writable(&vchan.server, &piece));
		sent += piece.size;
		if (vp_vchan_produce(&vchan.server, piece.size) || piece.size)
			assert_true(ring_eventfd(&vchan.server_bell));
	}
	assert_true(sent >= vchan.client.in_size && sent < 4 << 20);
	close(host);
	assert_int_equal(result_of(client), 0);
	close_vchan(&vchan);
}

static long waits_of_children(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
	return usage.ru_nvcsw;
}

/* A guest that sends nothing but events wakes dom0's process a thousand times per second at most,
 * but for the first ones. */
static void test_storm_of_events(void **state)
{
	enum { EVENTS = 10000 };
	uint64_t begin = vp_clock_monotonic();
	long before = waits_of_children();
	struct vchan vchan;
	int host;

	open_vchan(&vchan);
	pid_t client = start_pump(&vchan.client, &vchan.client_bell, -1, &host);
	for (int i = 0; i < EVENTS; i++) {
		assert_true(ring_eventfd(&vchan.server_bell));
		vp_sleep_us(10);
	}
	uint64_t ms = (vp_clock_monotonic() - begin) / 1000000;
	close(host);
	assert_int_equal(result_of(client), 0);
	assert_true((uint64_t)(waits_of_children() - before) < 2 * ms + 500);
	close_vchan(&vchan);
}

/* A guest that stalls in the midst costs nobody more than the connection. */
static void test_stall_is_left(void **state)
{
	struct vchan vchan;
	struct pollfd ready = {.events = POLLIN};
	int host;

	open_vchan(&vchan);
	vchan.client_bell.ring = ring_nobody;
	pid_t client = start_pump(&vchan.client, &vchan.client_bell, -1, &host);
	ready.fd = host;
	send_pattern(host, 1 << IN_ORDER); /* all that the ring holds, and nobody reads it */
	assert_int_equal(vp_poll(&ready, 1, 200), 0);
	close(host);
	assert_int_equal(result_of(client), 0);
	close_vchan(&vchan);
}

/* A module that is missing is named with what to do. */
static void test_missing_module(void **state)
{
	int fd;

	if (!access(VP_VCHAN_GNTALLOC, F_OK))
		skip();
	expect_error(vp_vchan_device_open(VP_VCHAN_GNTALLOC, &fd),
		     "'/dev/xen/gntalloc' is missing: load the kernel's module (modprobe "
		     "xen-gntalloc)");
	assert_int_equal(fd, -1);
}

/* Where there is no Xen, dom0's side gives a reason, and leaves no process that has to be waited
 * for. */
static void test_no_xen(void **state)
{
	int fd;

	if (!access(VP_VCHAN_GNTDEV, F_OK))
		skip();
	expect_error(vp_vchan_connect(7, 733, 5, &fd), "cannot open '/dev/xen/xenbus'");
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_streams),
	    cmocka_unit_test(test_host_goes),
	    cmocka_unit_test(test_last_words),
	    cmocka_unit_test(test_stays_until_read),
	    cmocka_unit_test(test_impossible_indices),
	    cmocka_unit_test(test_rewritten_indices),
	    cmocka_unit_test(test_impossible_ends),
	    cmocka_unit_test(test_impossible_orders),
	    cmocka_unit_test(test_flood_stops),
	    cmocka_unit_test(test_storm_of_events),
	    cmocka_unit_test(test_stall_is_left),
	    cmocka_unit_test(test_missing_module),
	    cmocka_unit_test(test_no_xen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
