/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marks packets of samples that only continue the previous one (VP_PACKET_CONTINUES): a reader that
 * has checked the threads of that one need not look through the records of this one.
 */
#ifndef VP_STORE_PACKET_THREADS_H
#define VP_STORE_PACKET_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

/* Threads of the last packets of one stream. Empty at first. */
struct vp_packet_threads {
	struct vp_map last; /* thread and record type → number of the last packet with it */
	uint32_t packet;    /* number of the last packet; 0: none */
};

void vp_packet_threads_deinit(struct vp_packet_threads *threads);
/* Whether the stream's next packet, with these records, continues the previous one: its records are
 * samples, switches of vCPUs, periods and call chains, in order of time, and each of its threads
 * has a record of the same type in the previous packet. */
bool vp_packet_threads_continue(struct vp_packet_threads *threads, const void *records,
				size_t size);

#endif
