/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packets of a machine in memory (packet_store.h), written as streams on request. */
#ifndef VP_STORE_FLIGHT_H
#define VP_STORE_FLIGHT_H

#include "base/macros.h"
#include "store/packet.h"
#include "store/packet_store.h"

struct vp_flight;
struct vp_packer;

/* Counts by stream class. */
struct vp_trace_counts {
	uint64_t records[VP_STREAM_CLASSES], lost[VP_STREAM_CLASSES];
};

/* Errors: those of vp_packet_store_new(). */
struct vp_error *vp_flight_new(size_t bytes, struct vp_flight **ret) VP_MUST_CHECK;
void vp_flight_free(struct vp_flight *flight);
void vp_flight_put(struct vp_flight *flight, const struct vp_stored_packet *packet);
/* Time of the last overwritten record of any stream, or 0. */
uint64_t vp_flight_reach(const struct vp_flight *flight);
/*
 * Writes all streams to files in directory `path`: records from `from` on (accounting records cover
 * the time before them: only later ones), preceded by records of the state at that time. Earlier
 * losses are not counted. `packer`: compresses them; or NULL. Errors: a file cannot be written.
 */
struct vp_error *vp_flight_write(const struct vp_flight *flight, const char *path,
				 const uint8_t uuid[16], struct vp_packer *packer, uint64_t from,
				 struct vp_trace_counts *ret) VP_MUST_CHECK;

#endif
