/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by agent_lend.c, which talks to the host, lend_clients.c and lend_kernel.c. */
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
	int fd, force; /* its connection; our end of its forcing socket */
	uint32_t uid, tid, slot;
	uint64_t since;   /* when it came, ms */
	bool is_attached; /* it has asked for its counters, and got them */
};

/* Programs that run only while there are clients. */
enum { VP_LEND_LINKS = 3 };

/* With its programs not loaded. */
struct vp_lend {
	const struct vp_lend_request *request;
	struct vp_lend_bpf *programs;
	struct bpf_link *links[VP_LEND_LINKS]; /* NULL: there are no clients */
	const volatile struct vp_lent_cell *cells;
	uint32_t n_cells;
	int host, listener;
	int64_t last_contact;  /* of the host, s */
	uint64_t accept_after; /* ms: no new client is accepted before */
	VP_VEC(struct vp_lend_client) clients;
};

/* Loads the programs and attaches those that clients are not waited for with. Links and maps live
 * as long as this process. */
struct vp_error *vp_lend_load(struct vp_lend *lend) VP_MUST_CHECK;
/* Runs that command in the kernel; 0 or negative errno. */
int vp_lend_command(const struct vp_lend *lend, enum vp_lend_command command,
		    uint64_t argument) VP_MUST_CHECK;

/* A new client; times are those of a clock that only goes on. */
void vp_lend_client_accept(struct vp_lend *lend, uint64_t now_ms);
/* Those that have said nothing for too long are gone. */
void vp_lend_clients_expire(struct vp_lend *lend, uint64_t now_ms);
/* Handles a message of client number `i`, or its end. */
void vp_lend_client_receive(struct vp_lend *lend, size_t i);

#endif
