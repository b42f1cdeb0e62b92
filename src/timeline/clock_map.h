/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest's CLOCK_MONOTONIC in the host's: guest ns -> guest TSC -> host TSC -> host ns.
 *
 * The first step is known from pairs that the agent read, the second from KVM (offset and ratio of
 * the vCPU), the third from the host's clock_sync records. The result is a straight line through up
 * to two instants, and a bound of its error.
 */
#ifndef VP_TIMELINE_CLOCK_MAP_H
#define VP_TIMELINE_CLOCK_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/recording.h"
#include "store/trace_reader.h"

/* Readings of a clock and the TSC, at most error_ns apart. */
struct vp_clock_pair {
	uint64_t ns, tsc, error_ns;
};

/* The first and the last clock_sync record of a trace; count is their number. */
struct vp_host_clock {
	unsigned count;
	struct vp_clock_pair pair[2];
	int64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC at the first; 0: unknown */
};

enum vp_clock_basis {
	VP_CLOCK_UNKNOWN, /* the clocks cannot be related */
	VP_CLOCK_BY_DUMP, /* the guest's dump was made at the end of the recording: within about a
			     second */
	VP_CLOCK_SAME,    /* the symbol map has the host's times */
	VP_CLOCK_BY_TSC,  /* by the time-stamp counters */
};

struct vp_clock_map {
	enum vp_clock_basis basis;
	unsigned instants; /* 0, 1 (same speed) or 2 */
	uint64_t guest_ns[2], host_ns[2];
	uint64_t error_ns; /* maximum error of a time converted during the recording */
};

/* Reads only the start and end of each stream. */
void vp_host_clock_read(const vp_stream_readers *streams, struct vp_host_clock *clock);
/* Host CLOCK_MONOTONIC at a TSC value; needs two pairs. */
uint64_t vp_host_clock_at(const struct vp_host_clock *clock, uint64_t tsc);

/* `pairs`: the guest's readings, at least one; `begin` to `end`: the time for which the error must
 * hold. If facts are missing, the map's basis is VP_CLOCK_UNKNOWN. */
void vp_clock_map_by_tsc(const struct vp_host_clock *host, const struct vp_vm *vm,
			 const struct vp_clock_pair *pairs, size_t n_pairs, uint64_t begin,
			 uint64_t end, struct vp_clock_map *map);
/* Map for a guest's dump made shortly after `end`, when its clock showed guest_ns. */
void vp_clock_map_by_dump(uint64_t guest_ns, uint64_t end, struct vp_clock_map *map);

#endif
