/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Passes bytes between a vchan and a connected stream socket, so that everything else knows sockets
 * only. A peer can close, send what it likes, or nothing: as with a socket.
 */
#ifndef VP_VCHAN_VCHAN_PUMP_H
#define VP_VCHAN_VCHAN_PUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "vchan/vchan_ring.h"

/* An event channel: a descriptor that is readable after an event. */
struct vp_vchan_bell {
	int fd;
	uint32_t port;
	/* Sends an event to the peer; takes those that came. False: it broke. */
	bool (*ring)(const struct vp_vchan_bell *bell);
	bool (*receive)(const struct vp_vchan_bell *bell);
};

enum vp_vchan_result {
	VP_VCHAN_CLOSED,    /* by either side */
	VP_VCHAN_IMPOSSIBLE /* the peer's indices were, or the event channel failed */
};

/*
 * Until either side has closed and its last bytes are passed on. `socket` does not block. A client
 * whose socket is half closed declares that (VP_VCHAN_HALF); a server's socket is then
 * half closed, too. Afterwards this side is declared gone.
 */
enum vp_vchan_result vp_vchan_pump(struct vp_vchan_ring *ring, const struct vp_vchan_bell *bell,
				   int socket);

#endif
