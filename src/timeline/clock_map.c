/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline/clock_map.h"

enum {
	HEAD_RECORDS = 4096,          /* clock_sync is the first record of its stream */
	TAIL_BYTES = 4 * 1024 * 1024, /* and written every second */
	MAX_DRIFT_PPM = 500,   /* what the kernel lets a clock be slewed at most: adjtimex(2) */
	GUEST_PAIR_NS = 10000, /* assumed for a pair that does not say how close it is */
	DUMP_NS = 2000000000,  /* how long after the end a dump may be made */
};
#define MIN_BASELINE_NS 1000000000ULL /* two instants closer than this give no slope */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static struct vp_clock_pair pair_of(const struct vp_clock_sync *sync)
{
	return (struct vp_clock_pair){sync->header.time, sync->tsc, sync->error_ns};
}

/* The last clock_sync within the reader's next `limit` records; false if there is none. */
static bool find_sync(struct vp_stream_reader *reader, uint64_t limit, bool stop_at_first,
		      struct vp_clock_pair *ret)
{
	const struct vp_record_header *record;
	bool found = false;

	for (; limit && (record = vp_stream_next(reader)); limit--) {
		if (record->id != VP_ID_clock_sync)
			continue;
		*ret = pair_of((const struct vp_clock_sync *)record);
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
	struct vp_clock_pair first, last;
	bool found = find_sync(reader, HEAD_RECORDS, true, &first);
	if (found && first.tsc) {
		clock->pair[0] = first;
		clock->count = 1;
		vp_stream_seek_tail(reader, TAIL_BYTES);
		if (find_sync(reader, UINT64_MAX, false, &last) && last.ns > first.ns &&
		    last.tsc > first.tsc) {
			clock->pair[1] = last;
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

/* from + (x - x0) * (y1 - y0) / (x1 - x0), all of it in 128 bits. */
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

static uint64_t host_tsc(const struct vp_vcpu *vcpu, uint64_t guest_tsc)
{
	uint64_t scaled = guest_tsc - (uint64_t)vcpu->tsc_offset;

	if (!vcpu->tsc_frac_bits || !vcpu->tsc_ratio)
		return scaled;
	return clamp_u64(
	    (__int128)(((unsigned __int128)scaled << vcpu->tsc_frac_bits) / vcpu->tsc_ratio));
}

/* A vCPU whose offset is known, and how far (in ns) the vCPUs' counters are from each other. */
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
		uint64_t far = distance(vp_host_clock_at(host, host_tsc(vcpu, guest_tsc)),
					vp_host_clock_at(host, host_tsc(chosen, guest_tsc)));
		*spread = far > *spread ? far : *spread;
	}
	return chosen;
}

static uint64_t farther(uint64_t from, uint64_t a, uint64_t b)
{
	uint64_t to_a = distance(from, a), to_b = distance(from, b);

	return to_a > to_b ? to_a : to_b;
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

	const struct vp_clock_pair *first = &pairs[0], *last = &pairs[n_pairs - 1];
	map->basis = VP_CLOCK_BY_TSC;
	map->guest_ns[0] = last->ns;
	map->host_ns[0] = vp_host_clock_at(host, host_tsc(vcpu, last->tsc));
	map->instants = 1;
	uint64_t read_error = last->error_ns ? last->error_ns : GUEST_PAIR_NS;
	map->error_ns = host->pair[0].error_ns + host->pair[1].error_ns + read_error + spread;
	if (last->ns > first->ns && last->ns - first->ns >= MIN_BASELINE_NS) {
		map->instants = 2;
		map->guest_ns[1] = map->guest_ns[0];
		map->host_ns[1] = map->host_ns[0];
		map->guest_ns[0] = first->ns;
		map->host_ns[0] = vp_host_clock_at(host, host_tsc(vcpu, first->tsc));
		map->error_ns += first->error_ns ? first->error_ns : GUEST_PAIR_NS;
	}
	/* Outside of the known instants, and between them too, either clock may be slewed. */
	uint64_t reach = farther(map->host_ns[0], begin, end);
	if (map->instants == 2) {
		uint64_t reach_last = farther(map->host_ns[1], begin, end);
		reach = reach_last < reach ? reach_last : reach;
	}
	map->error_ns += clamp_u64((__int128)reach * MAX_DRIFT_PPM / 1000000);
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
