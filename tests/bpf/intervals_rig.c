/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "intervals_rig.h"

#include "unit.h"

#include <unistd.h>

#include <bpf/bpf.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/macros.h"

static int take_interval(struct rig *rig, const char *bytes, size_t size)
{
	struct interval interval = {0};
	struct vp_interval_value value;

	const uint32_t n_events = rig->programs->rodata->n_events;

	memcpy(&interval.head, bytes, sizeof(interval.head));
	assert_int_equal(interval.head.values, n_events);
	assert_int_equal(size, sizeof(interval.head) + n_events * sizeof(value));
	for (size_t i = 0; i < n_events; i++) {
		memcpy(&value, bytes + sizeof(interval.head) + i * sizeof(value), sizeof(value));
		assert_int_equal(value.id, VP_ID_interval_value);
		assert_int_equal(value.place, i);
		assert_int_equal(value.time, interval.head.time);
		if (i < VP_COUNTS) {
			assert_int_equal(value.live, VP_LIVE_ALL);
			interval.values[i] = value.value;
		} else {
			assert_true(value.live == VP_LIVE_ALL || (!value.live && !value.value));
			interval.guest[i - VP_COUNTS] = value.value;
			interval.guest_known |= (value.live ? 1U : 0) << (i - VP_COUNTS);
		}
	}
	vp_vec_push(&rig->found, interval);
	return 0;
}

static int take(void *context, void *bytes, size_t size)
{
	struct rig *rig = context;
	struct vp_task task;

	if (size != sizeof(task))
		return take_interval(rig, bytes, size);
	memcpy(&task, bytes, sizeof(task));
	assert_int_equal(task.id, VP_ID_task);
	assert_int_equal(task.pid, getpid());
	rig->tasks++;
	return 0;
}

static void plan(struct rig *rig, const struct rig_options *options)
{
	struct intervals_bpf__rodata *rodata = rig->programs->rodata;

#if defined(__x86_64__)
	rodata->vendor = VP_VENDOR_AMD;
#else
	rodata->vendor = VP_VENDOR_ARM;
#endif
	rodata->unit = options->unit;
	rodata->per = VP_PER_VCPU;
	rodata->width = rodata->part_width = options->width;
	rodata->n_events = VP_COUNTS + (options->guest ? VP_GUEST_COUNT : 0);
	rodata->wants_guest = options->guest ? (1U << VP_GUEST_COUNT) - 1 : 0;
	rodata->n_cpus = (uint32_t)libbpf_num_possible_cpus();
	rodata->ring_half = options->ring_bytes / 2;
	rodata->record_size =
	    sizeof(struct vp_interval) + rodata->n_events * sizeof(struct vp_interval_value);
	for (size_t i = 0; i < rodata->n_events; i++) {
		rodata->events[i].source = i < VP_COUNTS ? VP_FROM_COUNT : VP_FROM_GUEST;
		rodata->events[i].index = (uint8_t)(i < VP_COUNTS ? i : i - VP_COUNTS);
	}
}

static void size_maps(struct rig *rig, uint32_t subjects)
{
	uint32_t pcpus = (uint32_t)libbpf_num_possible_cpus();
	struct bpf_map *by_subject[] = {rig->programs->maps.subjects, rig->programs->maps.slots,
					rig->programs->maps.free_slots};

	for (size_t i = 0; i < VP_ARRAY_SIZE(by_subject); i++)
		assert_int_equal(bpf_map__set_max_entries(by_subject[i], subjects), 0);
	assert_int_equal(bpf_map__set_max_entries(rig->programs->maps.rings, pcpus), 0);
	assert_int_equal(bpf_map__set_max_entries(rig->programs->maps.requests, pcpus), 0);
}

static void make_rings(struct rig *rig, uint32_t bytes)
{
	for (uint32_t i = 0; i < (uint32_t)libbpf_num_possible_cpus(); i++) {
		int map = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, bytes, NULL);
		assert_true(map >= 0);
		vp_vec_push(&rig->maps, map);
		assert_int_equal(
		    bpf_map_update_elem(bpf_map__fd(rig->programs->maps.rings), &i, &map, BPF_ANY),
		    0);
		if (rig->rings)
			assert_int_equal(ring_buffer__add(rig->rings, map, take, rig), 0);
		else
			rig->rings = ring_buffer__new(map, take, rig, NULL);
		assert_non_null(rig->rings);
	}
}

struct rig *rig_open(const struct rig_options *options)
{
	struct rig *rig = vp_alloc(sizeof(*rig));

	libbpf_set_print(NULL);
	rig->programs = intervals_bpf__open();
	assert_non_null(rig->programs);
	plan(rig, options);
	size_maps(rig, options->subjects);
	assert_int_equal(intervals_bpf__load(rig->programs), 0);
	for (uint32_t place = 1; place <= options->subjects; place++)
		assert_int_equal(bpf_map_update_elem(bpf_map__fd(rig->programs->maps.free_slots),
						     NULL, &place, BPF_ANY),
				 0);
	make_rings(rig, options->ring_bytes);
	const uint64_t vcpu = (uint64_t)getpid() << 32 | VP_VCPU_UNKNOWN;
	if (options->guest)
		assert_int_equal(
		    bpf_map_update_elem(bpf_map__fd(rig->programs->maps.guest_counters), &vcpu,
					options->guest, BPF_ANY),
		    0);
	rig->programs->bss->origin = vp_clock_monotonic();
	rig->programs->bss->enabled = 1;
	return rig;
}

void rig_close(struct rig *rig)
{
	ring_buffer__free(rig->rings);
	vp_vec_each (&rig->maps, map)
		close(*map);
	vp_vec_deinit(&rig->maps);
	vp_vec_deinit(&rig->found);
	intervals_bpf__destroy(rig->programs);
	free(rig);
}

void rig_drain(struct rig *rig)
{
	assert_true(ring_buffer__consume(rig->rings) >= 0);
}

void rig_end(struct rig *rig)
{
	assert_int_equal(vp_run_for_result(rig->programs->progs.do_here, VP_END_HERE, 0), 0);
}

void rig_forget_pcpus(struct rig *rig)
{
	const struct bpf_map *cpus = rig->programs->maps.cpus;
	size_t size = (bpf_map__value_size(cpus) + 7) / 8 * 8;
	VP_AUTO_FREE char *nobody = vp_alloc(size * (size_t)libbpf_num_possible_cpus());
	uint32_t zero = 0;

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(cpus), &zero, nobody, BPF_ANY), 0);
}

void rig_exit(const struct rig *rig, enum rig_exit why)
{
#if defined(__x86_64__) /* the reason */
	static const uint64_t words[][2] = {
	    [RIG_HYPERCALL] = {0x81}, [RIG_HALT] = {0x78}, [RIG_PAGE_FAULT] = {0x400}};
#else /* a trap, and its class */
	static const uint64_t words[][2] = {
	    [RIG_HYPERCALL] = {2, 0x16}, [RIG_HALT] = {2, 0x01}, [RIG_PAGE_FAULT] = {2, 0x24}};
#endif

	vp_run(rig->programs->progs.note_exit, words[why][0], words[why][1], 0);
}

void rig_entry(const struct rig *rig)
{
	vp_run(rig->programs->progs.note_entry, 0, 0, 0);
}

uint64_t rig_sum(const intervals *found, uint32_t count)
{
	uint64_t sum = 0;

	vp_vec_each (found, interval)
		sum += interval->values[count];
	return sum;
}

void rig_expect_gapless(const intervals *found)
{
	const struct interval *before = NULL;

	vp_vec_each (found, interval) {
		const uint64_t *values = interval->values;
		assert_int_equal(interval->head.number, before ? before->head.number + 1 : 0);
		assert_true(!before || interval->head.begin == before->head.time);
		assert_int_equal(values[VP_COUNT_time], interval->head.time - interval->head.begin);
		assert_int_equal(values[VP_COUNT_time_running] + values[VP_COUNT_time_waiting] +
				     values[VP_COUNT_time_blocked],
				 values[VP_COUNT_time]);
		before = interval;
	}
}
