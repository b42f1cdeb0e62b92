/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vchan/vchan_pump.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/io.h"

enum {
	LOOK_MS = 1000,    /* poll interval: a peer may omit an event */
	FEW_EVENTS = 64,   /* successive events without data … */
	PAUSE_US = 1000,   /* … after which events are rate limited: a peer may flood them */
	CLOSING_MS = 30000 /* for a peer that does not read the remaining data */
};

struct pump {
	struct vp_vchan_ring *ring;
	const struct vp_vchan_bell *bell;
	int socket;
	uint8_t peer; /* peer's state, read before its index */
	bool has_in, has_room;
	bool is_ended;     /* the socket has reached its end … */
	bool is_hung_up;   /* … and accepts no data */
	bool is_passed_on; /* the peer's end was forwarded to the socket */
	bool is_broken;    /* the event channel failed */
	unsigned idle_events, idle_ms;
};

static void notify(struct pump *pump, bool is_asked)
{
	if (is_asked && !pump->bell->ring(pump->bell))
		pump->is_broken = true;
}

/* Copies from the ring to the socket. False: the peer's index is invalid. */
static bool take_in(struct pump *pump, bool *moved)
{
	struct vp_vchan_piece piece;

	pump->peer = vp_vchan_peer(pump->ring);
	if (!vp_vchan_readable(pump->ring, &piece))
		return false;
	pump->has_in = piece.size && !pump->is_hung_up;
	if (!pump->has_in)
		return true;
	ssize_t size = vp_write(pump->socket, piece.at, piece.size);
	if (size < 0 && errno != EAGAIN)
		pump->is_hung_up = true;
	if (size <= 0)
		return true;
	notify(pump, vp_vchan_consume(pump->ring, (uint32_t)size));
	*moved = true;
	return true;
}

/* The server closes: all data of its socket is in the ring. */
static void end_out(struct pump *pump)
{
	pump->is_ended = true;
	if (pump->ring->is_server)
		return;
	vp_vchan_declare(pump->ring, VP_VCHAN_HALF);
	notify(pump, true);
}

/* Copies from the socket to the ring. */
static bool put_out(struct pump *pump, bool *moved)
{
	struct vp_vchan_piece piece;

	if (!vp_vchan_writable(pump->ring, &piece))
		return false;
	pump->has_room = piece.size && !pump->is_ended;
	if (!pump->has_room)
		return true;
	ssize_t size = vp_read(pump->socket, piece.at, piece.size);
	if (size == 0 || (size < 0 && errno != EAGAIN))
		end_out(pump);
	if (size <= 0)
		return true;
	notify(pump, vp_vchan_produce(pump->ring, (uint32_t)size));
	*moved = true;
	return true;
}

/* A client that has shut down its direction still receives the other one. */
static void pass_on_end(struct pump *pump)
{
	if (pump->ring->is_server && pump->peer == VP_VCHAN_HALF && !pump->has_in &&
	    !pump->is_passed_on) {
		pump->is_passed_on = true;
		shutdown(pump->socket, SHUT_WR);
	}
}

static bool is_over(const struct pump *pump)
{
	if (pump->is_broken || (pump->peer == VP_VCHAN_GONE && !pump->has_in))
		return true;
	/* A closed client needs no more data. A server waits until its last data are read: Xen's
	 * own clients discard what is in the ring when the server is gone. */
	return pump->ring->is_server ? pump->is_ended && vp_vchan_is_read(pump->ring)
				     : pump->is_hung_up;
}

static void heed(struct pump *pump, const struct pollfd *fds)
{
	pump->idle_events = fds[0].revents ? pump->idle_events + 1 : 0;
	if (fds[0].revents && !pump->bell->receive(pump->bell))
		pump->is_broken = true;
	if (pump->idle_events > FEW_EVENTS)
		vp_sleep_us(PAUSE_US);
	/* A server's socket may still have data. */
	if (fds[1].revents & (POLLHUP | POLLERR) && (!pump->ring->is_server || pump->has_in))
		pump->is_hung_up = true;
}

/* A server's socket that was closed while the ring is full is always ready, so it is not polled. */
static void await(struct pump *pump)
{
	short wanted = (short)((pump->has_in ? POLLOUT : 0) | (pump->has_room ? POLLIN : 0));
	bool is_server = pump->ring->is_server;
	struct pollfd fds[] = {{.fd = pump->bell->fd, .events = POLLIN},
			       {.fd = wanted || !is_server ? pump->socket : -1, .events = wanted}};

	int ready = vp_poll(fds, VP_ARRAY_SIZE(fds), LOOK_MS);
	if (ready > 0) {
		heed(pump, fds);
		return;
	}
	pump->idle_ms += LOOK_MS;
	if (is_server && !wanted && pump->idle_ms >= CLOSING_MS)
		pump->is_broken = true;
}

/* Copies in both directions once; false: the peer's indices are invalid. */
static bool step(struct pump *pump, bool *moved)
{
	*moved = false;
	if (!take_in(pump, moved) || !put_out(pump, moved))
		return false;
	if (*moved)
		pump->idle_ms = 0;
	return true;
}

enum vp_vchan_result vp_vchan_pump(struct vp_vchan_ring *ring, const struct vp_vchan_bell *bell,
				   int socket)
{
	struct pump pump = {.ring = ring, .bell = bell, .socket = socket};
	bool possible, moved, has_asked = false;

	while ((possible = step(&pump, &moved))) {
		pass_on_end(&pump);
		if (moved) {
			pump.idle_events = 0;
			has_asked = false;
			continue;
		}
		if (is_over(&pump))
			break;
		if (!has_asked) { /* check again: data may have arrived just before */
			vp_vchan_request(ring, VP_VCHAN_WRITTEN | VP_VCHAN_READ);
			has_asked = true;
			continue;
		}
		await(&pump);
		has_asked = false;
	}
	vp_vchan_declare(ring, VP_VCHAN_GONE);
	bell->ring(bell);
	return possible && !pump.is_broken ? VP_VCHAN_CLOSED : VP_VCHAN_IMPOSSIBLE;
}
