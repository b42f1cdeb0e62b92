/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vchan/vchan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/io.h"
#include "base/worker_process.h"
#include "vchan/vchan_device.h"
#include "vchan/vchan_pump.h"
#include "vchan/vchan_ring.h"
#include "vchan/xenstore.h"

enum {
	DOM0 = 0,
	LEFT_ORDER = VP_VCHAN_SMALL_ORDER, /* of requests */
	RIGHT_ORDER = 17,                  /* of events and maps */
	NUMBER_ROOM = 16,
	STATUS_ROOM = 256,
	AGAIN_US = 50000, /* interval of checks for the next offer */
	LEAVE_MS = 5000   /* time for dom0 to read remaining data */
};

/* Path in xenstore, below the domain's own; allocated. */
static char *vchan_path(unsigned port)
{
	return vp_format("data/vperf-agent/%u", port);
}

static struct vp_error *write_number(int store, const char *path, const char *name, uint32_t number)
{
	VP_AUTO_FREE char *key = vp_format("%s/%s", path, name);
	VP_AUTO_FREE char *value = vp_format("%u", number);

	return vp_xenstore_write(store, key, value);
}

/* *ret is 0 if the number is missing. */
static struct vp_error *read_number(int store, const char *path, const char *name, uint32_t *ret)
{
	VP_AUTO_FREE char *key = vp_format("%s/%s", path, name);
	char value[NUMBER_ROOM] = "";
	bool found;

	*ret = 0;
	VP_TRY(vp_xenstore_read(store, key, value, sizeof(value), &found));
	if (!found)
		return NULL;
	struct vp_cursor cursor = vp_cursor_of(value, strlen(value));
	uint64_t number = vp_cursor_decimal(&cursor);
	if (!vp_cursor_ok(&cursor) || vp_cursor_left(&cursor) || number > INT32_MAX)
		return vp_error_new("'%s' in xenstore is not a number", key);
	*ret = (uint32_t)number;
	return NULL;
}

static struct vp_error *share_rings(struct vp_vchan_offer *offer, uint32_t *reference)
{
	struct vp_vchan_ring *ring = &offer->ring;
	VP_AUTO_CLOSE int gntalloc = -1; /* the pages keep the device open */
	char *pages;

	VP_TRY(vp_vchan_device_open(VP_VCHAN_GNTALLOC, &gntalloc));
	VP_TRY(vp_vchan_share_page(gntalloc, DOM0, offsetof(struct vp_vchan_page, server_live),
				   &offer->bell, reference, &ring->page));
	memset(ring->page, 0, VP_VCHAN_PAGE);
	VP_TRY(vp_vchan_share(gntalloc, DOM0, vp_vchan_pages_of(RIGHT_ORDER), ring->page->grants,
			      &pages));
	ring->page->left_order = LEFT_ORDER;
	ring->page->right_order = RIGHT_ORDER;
	ring->page->client_live = VP_VCHAN_AWAITED;
	ring->is_server = true;
	ring->in = vp_vchan_bytes_of(ring->page, NULL, LEFT_ORDER);
	ring->in_size = 1U << LEFT_ORDER;
	ring->out = pages;
	ring->out_size = 1U << RIGHT_ORDER;
	vp_vchan_declare(ring, VP_VCHAN_LIVE);
	vp_vchan_request(ring, VP_VCHAN_WRITTEN);
	return NULL;
}

/* Publishes the event channel last: a peer that can bind it has the matching page numbers. */
static struct vp_error *publish(const struct vp_vchan_offer *offer, unsigned port,
				uint32_t reference)
{
	VP_AUTO_FREE char *path = vchan_path(port);

	VP_TRY(write_number(offer->store, path, "ring-ref", reference));
	return write_number(offer->store, path, "event-channel", offer->bell.port);
}

struct vp_error *vp_vchan_offer(unsigned port, struct vp_vchan_offer *ret)
{
	uint32_t reference = 0;

	*ret = (struct vp_vchan_offer){.store = -1, .bell.fd = -1};
	VP_TRY(vp_vchan_bell_offer(DOM0, &ret->bell));
	VP_TRY(share_rings(ret, &reference));
	VP_TRY(vp_xenstore_open(&ret->store));
	return publish(ret, port, reference);
}

/* Whether xenstore still has this offer. */
static struct vp_error *vchan_check_offer(const struct vp_vchan_offer *offer, const char *path,
					  bool *is_there)
{
	uint32_t channel;

	VP_TRY(read_number(offer->store, path, "event-channel", &channel));
	*is_there = channel == offer->bell.port;
	return NULL;
}

struct vp_error *vp_vchan_await(struct vp_vchan_offer *offer, unsigned port, bool *taken)
{
	VP_AUTO_FREE char *path = vchan_path(port);
	bool is_there = true;

	VP_TRY(vp_xenstore_watch(offer->store, path));
	while (is_there && vp_vchan_peer(&offer->ring) == VP_VCHAN_AWAITED) {
		struct pollfd fds[] = {{.fd = offer->bell.fd, .events = POLLIN},
				       {.fd = offer->store, .events = POLLIN}};
		if (vp_poll(fds, VP_ARRAY_SIZE(fds), -1) < 0)
			return vp_error_errno(errno, "cannot wait for dom0");
		if (fds[0].revents && !offer->bell.receive(&offer->bell))
			return vp_error_errno(errno, "the event channel failed");
		if (!fds[1].revents)
			continue;
		VP_TRY(vp_xenstore_take_change(offer->store));
		VP_TRY(vchan_check_offer(offer, path, &is_there));
	}
	*taken = vp_vchan_peer(&offer->ring) == VP_VCHAN_LIVE;
	close(offer->store);
	offer->store = -1;
	return NULL;
}

void vp_vchan_withdraw(unsigned port)
{
	VP_AUTO_FREE char *path = vchan_path(port);
	int store;
	struct vp_error *error = vp_xenstore_open(&store);

	if (!error) {
		error = vp_xenstore_remove(store, path);
		close(store);
	}
	vp_error_free(error);
}

static void set_blocking(int fd, bool blocks)
{
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, blocks ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

/* The pages exist as long as dom0 maps them, but the kernel then retries freeing them again and
 * again. */
void vp_vchan_serve(struct vp_vchan_offer *offer, int socket)
{
	struct pollfd event = {.fd = offer->bell.fd, .events = POLLIN};

	set_blocking(socket, false);
	if (vp_vchan_pump(&offer->ring, &offer->bell, socket) != VP_VCHAN_CLOSED)
		return;
	uint64_t until = vp_clock_monotonic() + LEAVE_MS * 1000000ULL;
	while (vp_vchan_peer(&offer->ring) != VP_VCHAN_GONE && vp_clock_monotonic() < until)
		if (vp_poll(&event, 1, LEAVE_MS / 10) > 0 && !offer->bell.receive(&offer->bell))
			return;
}

/* dom0's side, in a process of its own. */
struct connection {
	uint32_t domain;
	unsigned port;
	uint64_t deadline; /* for connecting, CLOCK_MONOTONIC */
	struct vp_vchan_ring ring;
	struct vp_vchan_bell bell;
};

/* Reads the entries in the reverse order of publish(). */
static struct vp_error *bind_offer(struct connection *connection, int store, uint32_t *reference,
				   bool *again)
{
	VP_AUTO_FREE char *own = vchan_path(connection->port);
	VP_AUTO_FREE char *path = vp_format("/local/domain/%u/%s", connection->domain, own);
	uint32_t channel, after;

	*again = true;
	VP_TRY(read_number(store, path, "event-channel", &channel));
	VP_TRY(read_number(store, path, "ring-ref", reference));
	if (!channel || !*reference) {
		*again = false;
		return vp_error_new("it offers no vchan at '%s' in xenstore", path);
	}
	VP_TRY(vp_vchan_bell_bind((uint16_t)connection->domain, channel, &connection->bell, again));
	*again = true;
	VP_TRY(read_number(store, path, "ring-ref", &after));
	return after == *reference ? NULL : vp_error_new("its offer keeps changing");
}

/* Another process of this host may be connecting to the present offer: the next one follows
 * soon. */
static struct vp_error *find_offer(struct connection *connection, uint32_t *reference)
{
	VP_AUTO_CLOSE int store = -1;
	bool again;

	VP_TRY(vp_xenstore_open(&store));
	for (;;) {
		struct vp_error *error = bind_offer(connection, store, reference, &again);
		if (!error || !again || vp_clock_monotonic() >= connection->deadline)
			return error;
		vp_error_free(error);
		if (connection->bell.fd >= 0)
			close(connection->bell.fd);
		connection->bell.fd = -1;
		vp_sleep_us(AGAIN_US);
	}
}

/* Maps a ring's pages; the peer's grant references were copied before. */
static struct vp_error *map_ring(const struct connection *connection, int gntdev, uint16_t order,
				 const uint32_t *grants, bool may_write, char **ret)
{
	char *pages = NULL;
	uint32_t count = vp_vchan_pages_of(order);

	if (count)
		VP_TRY(vp_vchan_map(gntdev, (uint16_t)connection->domain, count, grants, may_write,
				    &pages));
	*ret = vp_vchan_bytes_of(connection->ring.page, pages, order);
	return NULL;
}

static struct vp_error *map_rings(struct connection *connection, uint32_t reference)
{
	struct vp_vchan_ring *ring = &connection->ring;
	uint32_t grants[1 << (VP_VCHAN_SMALL_ORDER - 2)];
	VP_AUTO_CLOSE int gntdev = -1; /* the pages keep the device open */
	uint16_t left, right;

	VP_TRY(vp_vchan_device_open(VP_VCHAN_GNTDEV, &gntdev));
	VP_TRY(vp_vchan_map_page(gntdev, (uint16_t)connection->domain, reference,
				 offsetof(struct vp_vchan_page, client_live), &connection->bell,
				 &ring->page));
	if (!vp_vchan_orders_read(ring->page, &left, &right))
		return vp_error_new("its rings have invalid sizes");
	uint32_t n_left = vp_vchan_pages_of(left), n_right = vp_vchan_pages_of(right);
	for (uint32_t i = 0; i < n_left + n_right; i++)
		grants[i] = __atomic_load_n(&ring->page->grants[i], __ATOMIC_RELAXED);
	VP_TRY(map_ring(connection, gntdev, left, grants, true, &ring->out));
	VP_TRY(map_ring(connection, gntdev, right, grants + n_left, false, &ring->in));
	ring->out_size = 1U << left;
	ring->in_size = 1U << right;
	vp_vchan_declare(ring, VP_VCHAN_LIVE);
	vp_vchan_request(ring, VP_VCHAN_WRITTEN);
	if (!connection->bell.ring(&connection->bell))
		return vp_error_errno(errno, "its event channel failed");
	return NULL;
}

static struct vp_error *establish(struct connection *connection)
{
	uint32_t reference = 0;

	connection->bell.fd = -1;
	VP_TRY(find_offer(connection, &reference));
	return map_rings(connection, reference);
}

/* Sends a line: empty, or the reason why there is no connection. */
static bool send_status(int channel, const struct vp_error *error)
{
	char line[STATUS_ROOM];
	const char *text = error ? vp_error_message(error) : "";
	size_t size = strnlen(text, sizeof(line) - 1);

	memcpy(line, text, size);
	line[size] = '\n';
	return !vp_fd_write_all(channel, line, size + 1);
}

/* Process that forwards the bytes. It is a child of init, so that this program need not wait for
 * it. It starts when its first parent has exited, whose exit would otherwise kill it. */
static VP_NORETURN void pass_on(struct connection *connection, int channel)
{
	char go;

	if (vp_read(channel, &go, 1) != 1)
		_exit(0);
	struct vp_error *error = establish(connection);
	int keep[] = {connection->bell.fd, channel};

	if (!error) {
		set_blocking(channel, false);
		error = vp_confine_to_passing(keep, VP_ARRAY_SIZE(keep), VP_VCHAN_NOTIFY_REQUEST);
		connection->bell.fd = keep[0];
		channel = keep[1];
	}
	if (send_status(channel, error) && !error)
		vp_vchan_pump(&connection->ring, &connection->bell, channel);
	_exit(0);
}

static void vchan_work(void *context, int channel)
{
	if (fork() == 0)
		pass_on(context, channel);
}

/* Reads the line of send_status(). */
static struct vp_error *read_status(int channel, uint64_t deadline)
{
	char line[STATUS_ROOM];
	size_t size = 0;

	while (size < sizeof(line)) {
		struct pollfd ready = {.fd = channel, .events = POLLIN};
		uint64_t now = vp_clock_monotonic();
		int left = now < deadline ? (int)((deadline - now) / 1000000) : 0;
		int result = vp_poll(&ready, 1, left);
		ssize_t got = result > 0 ? vp_recv(channel, line + size, 1, MSG_DONTWAIT) : 0;
		if (result <= 0 || got < 0)
			return vp_error_errno(result ? errno : ETIMEDOUT, "it does not reply");
		if (!got)
			return vp_error_new("the process that forwards it has died");
		if (line[size++] != '\n')
			continue;
		line[size - 1] = 0;
		return size > 1 ? vp_error_new("%s", line) : NULL;
	}
	return vp_error_new("its reply is too long");
}

struct vp_error *vp_vchan_connect(uint32_t domain, unsigned port, unsigned seconds, int *ret)
{
	struct connection connection = {.domain = domain, .port = port};
	struct vp_worker_process process;

	connection.deadline = vp_clock_monotonic() + seconds * 1000000000ULL;
	VP_TRY(vp_worker_process_start(SOCK_STREAM, vchan_work, &connection, &process));
	vp_waitpid(process.process, NULL, 0);
	struct vp_error *error =
	    vp_send(process.channel, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1
		? read_status(process.channel, connection.deadline + 1000000000ULL)
		: vp_error_errno(errno, "cannot start a process");
	if (error)
		close(process.channel);
	else
		*ret = process.channel;
	return error;
}
