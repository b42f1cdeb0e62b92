/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by agent_lend.c, which communicates with the host, lend_clients.c and lend_kernel.c. */
#ifndef VP_GUEST_LEND_PRIVATE_H
#define VP_GUEST_LEND_PRIVATE_H

#include "base/macros.h"
#include "base/vec.h"
#include "guest/cpus.h"
#include "guest/lend_command.h"
#include "guest/physical.h"
#include "protocol/lend_protocol.h"

struct bpf_link;
struct vp_lend_bpf;

struct vp_lend_client {
	int fd, force; /* the client's connection; our end of the socket that forces VM exits */
	uint32_t uid, tid, slot;
	uint64_t since;   /* time of the connection, ms */
	bool is_attached; /* it has requested and received its counters */
};

/* Programs that are attached only while there are clients. */
enum { VP_LEND_LINKS = 3 };

/* State; the programs are not loaded at first. */
struct vp_lend {
	const struct vp_lend_request *request;
	struct vp_lend_bpf *programs;
	struct bpf_link *links[VP_LEND_LINKS]; /* NULL: no clients */
	const volatile struct vp_lent_cell *cells;
	uint32_t n_cells;
	int host, listener;
	int64_t last_contact;  /* last message of the host, s */
	uint64_t accept_after; /* ms: no new client is accepted before that */
	VP_VEC(struct vp_lend_client) clients;
};

/* Loads the programs, and attaches those that run also without clients. Links and maps live as long
 * as this process. */
struct vp_error *vp_lend_load(struct vp_lend *lend) VP_MUST_CHECK;
/* Runs the command in the kernel; 0 or -errno. */
int vp_lend_command(const struct vp_lend *lend, enum vp_lend_command command,
		    uint64_t argument) VP_MUST_CHECK;

/* Accepts a client; times are of a monotonic clock. */
void vp_lend_client_accept(struct vp_lend *lend, uint64_t now_ms);
/* Removes clients that have sent nothing for too long. */
void vp_lend_clients_expire(struct vp_lend *lend, uint64_t now_ms);
/* Handles a message or the end of client number `i`. */
void vp_lend_client_receive(struct vp_lend *lend, size_t i);

#endif
