/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Connects BPF programs that read guests' current tasks with the guest watch, as one of its
 * clients. */
#ifndef VP_SESSION_IDENTITY_USER_H
#define VP_SESSION_IDENTITY_USER_H

#include "collect/guests/guest_watch.h"
#include "collect/programs/identity.h"

/* `identity` must outlive the client; `name`: for sentences, such as "samples"; `outcome`: as in
 * struct vp_guest_watch_client, with `identity` as its context. */
struct vp_guest_watch_client vp_identity_client(
    struct vp_identity *identity, const char *name,
    void (*outcome)(void *context, uint32_t pid, const struct vp_guest_finding *finding,
		    struct vp_memory_outcome *ret));

#endif
