/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline/clock_map.h"

#include <sys/types.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/vec.h"
#include "schema/records.h"
#include "schema/vm.h"

enum {
	HEAD_RECORDS = 4096,          /* clock_sync is near the start of its stream */
	TAIL_BYTES = 4 * 1024 * 1024, /* and written every second */
	MAX_DRIFT_PPM = 500,   /* maximum rate at which the kernel slews a clock: adjtimex(2) */
	STEADY_PPM = 1,        /* assumed unobserved change of a clock's rate */
	GUEST_PAIR_NS = 10000, /* assumed for a pair of unknown accuracy */
	DUMP_NS = 2000000000,  /* maximum delay of a dump after the recording's end */
};
#define MIN_BASELINE_NS 1000000000ULL /* two instants closer than this give no slope */

static uint64_t clock_map_distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static struct vp_clock_pair pair_of(const struct vp_clock_sync *sync)
{
	return (struct vp_clock_pair){sync->time, sync->tsc, sync->error_ns};
}

/* The last clock_sync in the next `limit` records of the reader; false: not found. */
static bool find_sync(struct vp_stream_reader *reader, uint64_t limit, bool stop_at_first,
		      struct vp_clock_sync *ret)
{
	const struct vp_record_header *record;
	bool found = false;

	for (; limit && (record = vp_stream_next(reader)); limit--) {
		if (record->id != VP_ID_clock_sync)
			continue;
		*ret = *(const struct vp_clock_sync *)record;
		found = true;
		if (stop_at_first)
			break;
	}
	return found;
}

static bool read_stream(const char *path, struct vp_host_clock *clock)
{
	struct vp_stream_reader *reader = NULL;
	struct vp_error *error = vp_stream_open(path, &reader);

	if (error) {
		vp_error_free(error);
		return false;
	}
	struct vp_clock_sync first, last;
	bool found = find_sync(reader, HEAD_RECORDS, true, &first);
	if (found)
		clock->realtime_offset_ns = (int64_t)(first.realtime - first.time);
	if (found && first.tsc) {
		clock->pair[0] = pair_of(&first);
		clock->count = 1;
		vp_stream_seek_tail(reader, TAIL_BYTES);
		if (find_sync(reader, UINT64_MAX, false, &last) && last.time > first.time &&
		    last.tsc > first.tsc) {
			clock->pair[1] = pair_of(&last);
			clock->count = 2;
		}
	}
	vp_stream_free(reader);
	return clock->count;
}

void vp_host_clock_read(const vp_stream_readers *streams, struct vp_host_clock *clock)
{
	*clock = (struct vp_host_clock){0};
	for (size_t i = 0; i < streams->count; i++)
		if (read_stream(vp_stream_path(streams->at[i]), clock))
			return;
}

static uint64_t clamp_u64(__int128 value)
{
	return value < 0 ? 0 : value > (__int128)UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

/* from + (x - x0) * (y1 - y0) / (x1 - x0), in 128-bit arithmetic. */
static uint64_t on_line(uint64_t x, uint64_t x0, uint64_t x1, uint64_t y0, uint64_t y1)
{
	__int128 slope_x = (__int128)x1 - x0;
	__int128 product;

	if (!slope_x || __builtin_mul_overflow((__int128)x - x0, (__int128)y1 - y0, &product))
		return y0;
	return clamp_u64(y0 + product / slope_x);
}

uint64_t vp_host_clock_at(const struct vp_host_clock *clock, uint64_t tsc)
{
	return on_line(tsc, clock->pair[0].tsc, clock->pair[1].tsc, clock->pair[0].ns,
		       clock->pair[1].ns);
}

/* A vCPU with a known TSC offset; *spread: maximum difference of the vCPUs' TSCs, ns. */
static const struct vp_vcpu *choose_vcpu(const struct vp_host_clock *host, const struct vp_vm *vm,
					 uint64_t guest_tsc, uint64_t *spread)
{
	const struct vp_vcpu *chosen = NULL;

	*spread = 0;
	vp_vec_each (&vm->vcpus, vcpu) {
		if (!vcpu->has_tsc)
			continue;
		if (!chosen)
			chosen = vcpu;
		uint64_t far =
		    clock_map_distance(vp_host_clock_at(host, vp_vcpu_host_tsc(vcpu, guest_tsc)),
				       vp_host_clock_at(host, vp_vcpu_host_tsc(chosen, guest_tsc)));
		*spread = far > *spread ? far : *spread;
	}
	return chosen;
}

/* A reading of the guest's clock, and the host's time of the reading. */
struct instant {
	uint64_t guest_ns, host_ns, error_ns;
};

static struct instant instant_of(const struct vp_host_clock *host, const struct vp_vcpu *vcpu,
				 const struct vp_clock_pair *pair)
{
	return (struct instant){pair->ns, vp_host_clock_at(host, vp_vcpu_host_tsc(vcpu, pair->tsc)),
				pair->error_ns ? pair->error_ns : GUEST_PAIR_NS};
}

static uint64_t drift(uint64_t ns, uint64_t parts_per_million)
{
	return clamp_u64((__int128)ns * parts_per_million / 1000000);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return clamp_u64((__int128)a + b);
}

/* Whether the two are far enough apart to determine a rate, and the rate is plausible. */
static bool is_baseline(const struct instant *first, const struct instant *last)
{
	if (last->guest_ns <= first->guest_ns || last->host_ns <= first->host_ns ||
	    last->guest_ns - first->guest_ns < MIN_BASELINE_NS)
		return false;
	uint64_t guest = last->guest_ns - first->guest_ns, by_host = last->host_ns - first->host_ns;
	return clock_map_distance(guest, by_host) <= drift(guest, 2 * MAX_DRIFT_PPM);
}

/*
 * First point of the line: the last pair before the recording started, because a slewed clock
 * changes its rate over time; otherwise the very first pair. -1: no pair is suitable.
 */
static ssize_t clock_map_choose_first(const struct instant *instants, size_t count, uint64_t begin)
{
	for (size_t i = count - 1; i-- > 0;)
		if (instants[i].host_ns <= begin && is_baseline(&instants[i], &instants[count - 1]))
			return (ssize_t)i;
	return is_baseline(&instants[0], &instants[count - 1]) ? 0 : -1;
}

/* Maximum distance of a time in [begin, end] from the nearer of the two instants. */
static uint64_t reach_between(uint64_t first, uint64_t last, uint64_t begin, uint64_t end)
{
	uint64_t from = begin > first ? begin : first, to = end < last ? end : last;
	uint64_t middle = first + (last - first) / 2;

	if (from >= to)
		return 0;
	if (to <= middle)
		return to - first;
	return last - (from > middle ? from : middle);
}

/*
 * Error bound of the line. Between its ends: the residual of the pairs in between, plus the drift
 * if both rates vary by as much as they differ, plus STEADY_PPM. Outside: the maximum slew.
 */
static uint64_t error_of_line(const struct instant *first, const struct instant *last,
			      uint64_t begin, uint64_t end)
{
	uint64_t guest = last->guest_ns - first->guest_ns, by_host = last->host_ns - first->host_ns;
	uint64_t reach = reach_between(first->host_ns, last->host_ns, begin, end);
	uint64_t wander = clamp_u64((__int128)clock_map_distance(guest, by_host) * reach / guest);
	uint64_t off = 0;

	for (const struct instant *between = first + 1; between < last; between++) {
		uint64_t expected = on_line(between->guest_ns, first->guest_ns, last->guest_ns,
					    first->host_ns, last->host_ns);
		uint64_t far = clock_map_distance(expected, between->host_ns);
		off = far > off ? far : off;
	}
	uint64_t error = sum(sum(off, wander), drift(reach, STEADY_PPM));
	if (begin < first->host_ns)
		error = sum(error, drift(first->host_ns - begin, MAX_DRIFT_PPM));
	if (end > last->host_ns)
		error = sum(error, drift(end - last->host_ns, MAX_DRIFT_PPM));
	return error;
}

/* Error bound of a single pair: both clocks have the same rate, except for slewing. */
static uint64_t error_of_point(const struct instant *only, uint64_t begin, uint64_t end)
{
	uint64_t to_begin = clock_map_distance(only->host_ns, begin),
		 to_end = clock_map_distance(only->host_ns, end);

	return drift(to_begin > to_end ? to_begin : to_end, MAX_DRIFT_PPM);
}

void vp_clock_map_by_tsc(const struct vp_host_clock *host, const struct vp_vm *vm,
			 const struct vp_clock_pair *pairs, size_t n_pairs, uint64_t begin,
			 uint64_t end, struct vp_clock_map *map)
{
	uint64_t spread;

	*map = (struct vp_clock_map){0};
	if (host->count < 2 || !n_pairs)
		return;
	const struct vp_vcpu *vcpu = choose_vcpu(host, vm, pairs[0].tsc, &spread);
	if (!vcpu)
		return;

	struct instant *instants = vp_realloc_array(NULL, n_pairs, sizeof(*instants));
	for (size_t i = 0; i < n_pairs; i++)
		instants[i] = instant_of(host, vcpu, &pairs[i]);
	const struct instant *last = &instants[n_pairs - 1];
	ssize_t from = clock_map_choose_first(instants, n_pairs, begin);
	const struct instant *first = from < 0 ? last : &instants[from];

	map->basis = VP_CLOCK_BY_TSC;
	map->instants = first < last ? 2 : 1;
	map->guest_ns[0] = first->guest_ns;
	map->host_ns[0] = first->host_ns;
	map->guest_ns[1] = first < last ? last->guest_ns : 0;
	map->host_ns[1] = first < last ? last->host_ns : 0;
	uint64_t reads = sum(sum(host->pair[0].error_ns, host->pair[1].error_ns), last->error_ns);
	if (first < last)
		reads = sum(reads, first->error_ns);
	map->error_ns =
	    sum(sum(reads, spread), first < last ? error_of_line(first, last, begin, end)
						 : error_of_point(last, begin, end));
	free(instants);
}

void vp_clock_map_by_dump(uint64_t guest_ns, uint64_t end, struct vp_clock_map *map)
{
	*map = (struct vp_clock_map){
	    .basis = VP_CLOCK_BY_DUMP,
	    .instants = 1,
	    .guest_ns = {guest_ns},
	    .host_ns = {end + DUMP_NS / 2},
	    .error_ns = DUMP_NS / 2,
	};
}
