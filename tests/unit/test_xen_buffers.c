/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Xen's trace buffers: what is asked of Xen and when, what counts as lost. Xen is a page here. */
#include "unit.h"

#include <sched.h>

#include "base/clock.h"
#include "base/io.h"
#include "xen/buffers.h"

enum { PAGE = 4096, INFO_FRAME = 3, RING_FRAME = 7, MASKS = 8, LOST = 0x0001f001 };

static _Alignas(8) unsigned char info[PAGE], ring[PAGE];
static uint32_t masks[MASKS];
static unsigned n_masks;
static bool enabled;

static int enable(void *xen, unsigned long pages, unsigned long *frame, unsigned long *size)
{
	enabled = true;
	*frame = INFO_FRAME;
	*size = PAGE;
	return 0;
}

static int disable(void *xen)
{
	enabled = false;
	return 0;
}

static int set_mask(void *xen, uint32_t mask)
{
	assert_in_range(n_masks, 0, MASKS - 1);
	masks[n_masks++] = mask;
	return 0;
}

static void *map(void *memory, uint32_t domain, int protection, size_t pages,
		 const uint64_t *frames, int *errors)
{
	assert_int_equal(domain, VP_XEN_DOMID_XEN);
	assert_int_equal(pages, 1);
	assert_true(frames[0] == INFO_FRAME || frames[0] == RING_FRAME);
	return frames[0] == INFO_FRAME ? info : ring;
}

static int unmap(void *memory, void *address, size_t pages)
{
	return 0;
}

/* Writes a record as Xen does: behind the others, and from the ring's end on at its begin; its
 * counts go to twice the ring's size. */
static void produce_at(uint64_t tsc, uint32_t event, const uint32_t *words, uint32_t count)
{
	enum { SIZE = PAGE - 8 };
	uint32_t head = 1U << 31 | count << 28 | event, produced;
	unsigned char record[12 + 4 * 7];

	memcpy(&produced, ring + 4, sizeof(produced));
	memcpy(record, &head, 4);
	memcpy(record + 4, &tsc, 8);
	memcpy(record + 12, words, 4 * count);
	for (size_t i = 0; i < 12 + 4 * count; i++) {
		ring[8 + produced % SIZE] = record[i];
		produced = (produced + 1) % (2 * SIZE);
	}
	memcpy(ring + 4, &produced, sizeof(produced));
}

static void produce(uint32_t event, const uint32_t *words, uint32_t count)
{
	produce_at(vp_clock_read().tsc, event, words, count);
}

static void produce_switch(void)
{
	produce(0x00021021, (const uint32_t[]){1 << 16}, 1);
}

static void produce_lost(uint32_t count, uint64_t since)
{
	produce(LOST, (const uint32_t[]){count, 0, (uint32_t)since, (uint32_t)(since >> 32)}, 4);
}

static struct vp_xen *new_xen(void)
{
	/* One page for each buffer, one buffer, where its frame is, the frame. */
	static const uint16_t first[] = {1, 2, 0, 0, RING_FRAME};
	struct vp_xen *xen = calloc(1, sizeof(*xen));

	memset(info, 0, sizeof(info));
	memset(ring, 0, sizeof(ring));
	memcpy(info, first, sizeof(first));
	n_masks = 0;
	xen->call.tbuf_enable = enable;
	xen->call.tbuf_disable = disable;
	xen->call.tbuf_set_evt_mask = set_mask;
	xen->call.memory_map = map;
	xen->call.memory_unmap = unmap;
	return xen;
}

static void count(void *context, const struct vp_xen_traced *traced)
{
	unsigned *switches = context;

	*switches += traced->record.event == VP_XEN_RUNSTATE;
}

/* Between opening and starting may be seconds, in which nobody takes anything. */
static void test_start(void **state)
{
	struct vp_xen *xen = new_xen();
	struct vp_xen_buffers *buffers;
	unsigned switches = 0;

	expect_no_error(vp_xen_buffers_open(xen, &buffers));
	assert_true(enabled);
	assert_int_equal(masks[n_masks - 1], 0);
	produce_switch(); /* of before */
	uint64_t before = vp_clock_read().tsc;
	expect_no_error(vp_xen_buffers_start(buffers, VP_XEN_TRACE_SCHED));
	assert_int_equal(masks[n_masks - 1], VP_XEN_TRACE_SCHED);
	produce_lost(1000, before - 1);
	produce_switch();
	produce_switch();
	vp_xen_buffers_stop(buffers);
	vp_xen_buffers_drain(buffers, count, &switches);
	assert_int_equal(switches, 2);
	assert_int_equal(vp_xen_buffers_lost(buffers), 0);
	produce_lost(7, vp_clock_read().tsc);
	vp_xen_buffers_drain(buffers, count, &switches);
	assert_int_equal(vp_xen_buffers_lost(buffers), 7);
	vp_xen_buffers_close(buffers);
	free(xen);
}

/* Records that go over the ring's end are whole, lap after lap. */
static void test_laps(void **state)
{
	struct vp_xen *xen = new_xen();
	struct vp_xen_buffers *buffers;
	unsigned switches = 0;

	expect_no_error(vp_xen_buffers_open(xen, &buffers));
	expect_no_error(vp_xen_buffers_start(buffers, VP_XEN_TRACE_SCHED));
	vp_xen_buffers_stop(buffers);
	for (unsigned i = 0; i < 100; i++) {
		for (unsigned n = 0; n < 10; n++)
			produce(0x00021021, (const uint32_t[]){1 << 16, i, n}, 3);
		vp_xen_buffers_drain(buffers, count, &switches);
		assert_int_equal(switches, 10 * (i + 1));
	}
	assert_int_equal(vp_xen_buffers_lost(buffers), 0);
	/* Another program read some: what those were, nobody knows here. */
	produce_switch();
	memcpy(ring, ring + 4, 4);
	produce_switch();
	vp_xen_buffers_drain(buffers, count, &switches);
	assert_int_equal(switches, 1001);
	assert_int_equal(vp_xen_buffers_lost(buffers), 1);
	vp_xen_buffers_close(buffers);
	free(xen);
}

/* While Xen traces, what is so new that another pCPU's may still come before it waits. */
static void test_new_records_wait(void **state)
{
	struct vp_xen *xen = new_xen();
	struct vp_xen_buffers *buffers;
	unsigned switches = 0;

	expect_no_error(vp_xen_buffers_open(xen, &buffers));
	expect_no_error(vp_xen_buffers_start(buffers, VP_XEN_TRACE_SCHED));
	struct vp_clock_reading before = vp_clock_read();
	produce_at(before.tsc, 0x00021021, (const uint32_t[]){1 << 16}, 1);
	vp_sleep_us(50000);
	struct vp_clock_reading now = vp_clock_read();
	/* As far ahead as the clock went since. */
	produce_at(now.tsc + (now.tsc - before.tsc) * 1000, 0x00021021, (const uint32_t[]){1 << 16},
		   1);
	for (unsigned i = 0; i < 100 && !switches; i++)
		vp_xen_buffers_drain(buffers, count, &switches);
	assert_int_equal(switches, 1);
	vp_xen_buffers_drain(buffers, count, &switches);
	assert_int_equal(switches, 1);
	vp_xen_buffers_stop(buffers); /* now nothing comes any more */
	vp_xen_buffers_drain(buffers, count, &switches);
	assert_int_equal(switches, 2);
	vp_xen_buffers_close(buffers);
	free(xen);
}

/* Xen is left as it began: off, and with all events for who switches it on next. */
static void test_stop(void **state)
{
	struct vp_xen *xen = new_xen();
	struct vp_xen_buffers *buffers;

	expect_no_error(vp_xen_buffers_open(xen, &buffers));
	vp_xen_buffers_close(buffers);
	assert_false(enabled);
	assert_int_equal(masks[n_masks - 1], VP_XEN_TRACE_ALL);
	free(xen);
}

/* Lists that lead elsewhere: nothing is chosen then. */
static void test_lists_are_not_believed(void **state)
{
	struct vp_xen *xen = new_xen();
	struct vp_xen_buffers *buffers;
	const uint16_t beyond = 1024;

	memcpy(info + 2, &beyond, sizeof(beyond));
	expect_error(vp_xen_buffers_open(xen, &buffers), "ends beyond its pages");
	memset(info, 0, sizeof(info));
	expect_error(vp_xen_buffers_open(xen, &buffers), "have no pages");
	assert_int_equal(n_masks, 0);
	free(xen);
}

/* Times of records are this pCPU's time stamp counter: another's may be seconds ahead of it. */
static int stay_on_this_pcpu(void **state)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET((size_t)sched_getcpu(), &here);
	return sched_setaffinity(0, sizeof(here), &here);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_start),
	    cmocka_unit_test(test_laps),
	    cmocka_unit_test(test_new_records_wait),
	    cmocka_unit_test(test_stop),
	    cmocka_unit_test(test_lists_are_not_believed),
	};

	return cmocka_run_group_tests(tests, stay_on_this_pcpu, NULL);
}
