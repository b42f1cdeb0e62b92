/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue of sampled addresses in generated code of guest processes, for the guest's reader, which
 * must read the names before the code is replaced. Repeated hits of an address within a short time
 * are sent once.
 */
#ifndef VP_COLLECT_GUESTS_GUEST_HITS_H
#define VP_COLLECT_GUESTS_GUEST_HITS_H

#include "base/buffer.h"
#include "collect/guests/guest_answer.h"

enum { VP_GUEST_HITS_RECENT = 1024, VP_GUEST_HITS_BYTES = 2048 };

struct vp_guest_hits {
	vp_guest_runtime_list runtimes;
	struct vp_buffer requests; /* at most VP_GUEST_HITS_BYTES; sent completely or not at all */
	uint64_t recent[VP_GUEST_HITS_RECENT][2]; /* hash of process and address, and time */
	uint64_t second, in_second, dropped;
};

void vp_guest_hits_deinit(struct vp_guest_hits *hits);
/* Whether the address is in generated code of the process. */
bool vp_guest_hits_has_code(const struct vp_guest_hits *hits, uint32_t tgid, uint64_t addr);
/* Adds a request for a sample at `time`; `method`: the address is a method in an interpreter.
 * Returns true if the requests should be sent now. */
bool vp_guest_hits_add(struct vp_guest_hits *hits, uint32_t tgid, uint64_t addr, bool method,
		       uint64_t time);

#endif
