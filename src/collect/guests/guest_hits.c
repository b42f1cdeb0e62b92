/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/guests/guest_hits.h"

#include <inttypes.h>

#include "base/map.h"
#include "base/vec.h"

enum {
	LONGEST_REQUEST = 64,
	MOST_PER_SECOND = 2000, /* the reader needs about 20 us per hit, 100 us for a forged one */
};
#define SECOND 1000000000ULL
/* Interval after which an address is sent again: its code may have been replaced. */
#define AGAIN_NS 100000000ULL

void vp_guest_hits_deinit(struct vp_guest_hits *hits)
{
	vp_vec_deinit(&hits->runtimes);
	vp_buffer_deinit(&hits->requests);
}

bool vp_guest_hits_has_code(const struct vp_guest_hits *hits, uint32_t tgid, uint64_t addr)
{
	vp_vec_each (&hits->runtimes, runtime)
		if (runtime->kind == VP_RUNTIME_JAVA && runtime->tgid == tgid &&
		    addr >= runtime->low && addr < runtime->high)
			return true;
	return false;
}

/* Whether the address was sent recently; notes that it is sent. */
static bool is_recent(struct vp_guest_hits *hits, uint64_t hash, uint64_t time)
{
	uint64_t *slot = hits->recent[hash % VP_GUEST_HITS_RECENT];

	/* Samples of different pCPUs are not sorted by time. */
	if (slot[0] == hash && time < slot[1] + AGAIN_NS && time + AGAIN_NS > slot[1])
		return true;
	slot[0] = hash;
	slot[1] = time;
	return false;
}

static bool guest_hits_may_send(struct vp_guest_hits *hits, uint64_t time)
{
	if (time / SECOND != hits->second) {
		hits->second = time / SECOND;
		hits->in_second = 0;
	}
	return hits->in_second++ < MOST_PER_SECOND;
}

bool vp_guest_hits_add(struct vp_guest_hits *hits, uint32_t tgid, uint64_t addr, bool method,
		       uint64_t time)
{
	if (is_recent(hits, vp_hash64(addr ^ vp_hash64(tgid)) | 1, time))
		return false;
	if (!guest_hits_may_send(hits, time)) {
		hits->dropped++;
		return false;
	}
	vp_buffer_printf(&hits->requests, "%s %x %" PRIx64 " %" PRIx64 "\n",
			 method ? "method" : "hit", tgid, addr, time);
	return hits->requests.size > VP_GUEST_HITS_BYTES - LONGEST_REQUEST;
}
