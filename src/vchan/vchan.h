/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams between dom0 and the agents in guests of Xen, by vchan: what vsock is elsewhere. The
 * guest offers one connection at a time in its own part of xenstore (data/vperf-agent/PORT), and
 * another one when that was taken. Only root can, on either side.
 */
#ifndef VP_VCHAN_VCHAN_H
#define VP_VCHAN_VCHAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "vchan/vchan_pump.h"
#include "vchan/vchan_ring.h"

/* An offer of this guest's. */
struct vp_vchan_offer {
	struct vp_vchan_ring ring;
	struct vp_vchan_bell bell;
	int store; /* -1: not open */
};

/* Offers a connection to dom0. Its pages stay until this process ends. */
struct vp_error *vp_vchan_offer(unsigned port, struct vp_vchan_offer *ret) VP_MUST_CHECK;
/* Waits until dom0 takes it. *taken is false if that cannot be any more: the guest was restored
 * elsewhere, or another agent offers in its place. */
struct vp_error *vp_vchan_await(struct vp_vchan_offer *offer, unsigned port,
				bool *taken) VP_MUST_CHECK;
/* Removes what is left of an offer in xenstore. */
void vp_vchan_withdraw(unsigned port);
/* Passes bytes on until one side closes; see vp_vchan_pump(). `socket` is the agent's. */
void vp_vchan_serve(struct vp_vchan_offer *offer, int socket);

/*
 * Takes the offer of that domain; *ret is a blocking stream socket, of which a process of its own
 * without any rights passes the bytes on. It ends when the socket is closed. Errors: no offer, no
 * rights, missing modules, nothing within the time limit.
 */
struct vp_error *vp_vchan_connect(uint32_t domain, unsigned port, unsigned seconds,
				  int *ret) VP_MUST_CHECK;

#endif
