/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lets dom0 ask the agent in a guest of Xen, where there is no vsock. */
#ifndef VP_GUEST_SERVE_VCHAN_H
#define VP_GUEST_SERVE_VCHAN_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether this is a guest of Xen. */
bool vp_vchan_is_here(void);
/*
 * Starts a process that offers vchans, and passes what comes by each on to the agent's socket on
 * this machine. 0: this is no guest of Xen, or there can be no process.
 */
pid_t vp_vchan_server_start(unsigned port);
/* Ends it. Connections end when the agent ends them. */
void vp_vchan_server_end(pid_t server, unsigned port);

#endif
