/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records of several streams are returned in batches, but a record that affects other streams is
 * returned after all earlier ones and before all later ones, whatever packets are marked.
 */
#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "make_recording.h"
#include "schema/schema.h"
#include "timeline/batches.h"
#include "timeline/timeline.h"

#define NAME "batches.data"
#define STREAM NAME "/host/cpu0"
enum { PCPUS = 2, PACKET = 100, PACKETS = 12, TICKS = PACKET * PACKETS };

/* A recording in which vCPU 0 runs on pCPU 0 at these ticks, and once on pCPU 1. */
struct moves {
	const uint64_t *at;
	size_t count;
	uint64_t away; /* on pCPU 1, after the samples of this tick */
};

static void make_moves(const struct moves *moves)
{
	struct made made;

	made_begin(&made, NAME, 1);
	made.pcpus = made.about.pcpus = PCPUS;
	for (uint64_t tick = 0; tick < TICKS; tick++) {
		bool here = false;
		for (size_t i = 0; i < moves->count; i++)
			here |= moves->at[i] == tick;
		for (uint32_t pcpu = 0; pcpu < PCPUS; pcpu++) {
			if (pcpu == 0 && here)
				made_guest(&made, 0, tick, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
			made.offset = pcpu;
			made_host(&made, pcpu, tick, 50, VP_MODE_USER);
			if (pcpu == 1 && tick == moves->away) {
				made.offset = 500;
				made_guest(&made, 1, tick, 0, 0, VP_MODE_GUEST_USER, MADE_INTR);
			}
			made.offset = 0;
			if (tick % PACKET == PACKET - 1)
				vp_trace_flush(made.writer, vp_stream_of_pcpu(pcpu), 0);
		}
	}
	made_end(&made, TICKS);
}

/* Order of the records so far. */
struct order {
	uint64_t last[PCPUS]; /* of each stream */
	uint64_t event;       /* the last record that affected others */
	uint64_t records, events;
};

static void take_record(struct order *order, struct vp_timeline *timeline, uint32_t stream,
			const struct vp_record_header *record)
{
	assert_true(record->time >= order->event);
	if (vp_timeline_is_of_all(timeline, stream, record)) {
		for (uint32_t other = 0; other < PCPUS; other++)
			assert_true(order->last[other] <= record->time);
		order->event = record->time;
		order->events++;
	}
	order->last[stream] = record->time;
	order->records++;
	vp_timeline_take(timeline, stream, record);
}

/* Reads the whole recording; the packets of pCPU 0 that only continue the previous one are counted.
 */
static struct order read_all(uint32_t *marked)
{
	struct vp_recording recording;
	vp_vms vms = {0};
	vp_stream_readers streams = {0};
	struct vp_timeline timeline;
	struct vp_batches batches;
	struct vp_batch *batch;
	struct order order = {0};

	expect_no_error(vp_recording_read(NAME, &recording));
	expect_no_error(vp_vms_read(NAME, &vms));
	expect_no_error(vp_trace_open(NAME "/host", VP_STREAMS_SAMPLES, &streams));
	vp_timeline_init(&timeline, &recording, &vms, &streams, NULL);
	vp_batches_init(&batches, &timeline, false);
	*marked = 0;
	while ((batch = vp_batches_next(&batches))) {
		const struct vp_packet_header *packet = vp_stream_packet(streams.at[0]);
		uint64_t records = 0, last = 0;
		*marked |= (packet->flags & VP_PACKET_CONTINUES) << packet->packet_seq_num;
		while (batch->at < batch->end) {
			const struct vp_record_header *record = (const void *)batch->at;
			if (record->time > batch->through)
				break;
			take_record(&order, &timeline, batch->stream, record);
			last = record->time;
			batch->at += vp_record_size(record->id);
			records++;
		}
		vp_batches_taken(&batches, records, last);
	}
	vp_batches_deinit(&batches);
	vp_timeline_deinit(&timeline);
	vp_trace_close(&streams);
	vp_vms_deinit(&vms);
	vp_recording_deinit(&recording);
	return order;
}

/* Packet n has the records of ticks 100 n to 100 n + 99. Records are merged for 64 ticks after one
 * that affects others, then packets are looked at again. */
static void expect_order(const struct moves *moves, uint64_t events, uint32_t expected)
{
	uint32_t marked;

	make_moves(moves);
	struct order order = read_all(&marked);
	assert_int_equal(order.events, events);
	assert_int_equal(order.records, PCPUS * TICKS + moves->count + 1);
	assert_int_equal(marked, expected);
}

static void test_marked(void **state)
{
	/* The vCPU is in all packets from 1 on; packet 5 ends while records are merged. */
	const uint64_t at_end[] = {150, 250, 350, 450, 510, 680, 750, 850, 950, 1050, 1150};
	/* The rest of packet 5 is looked at again, after the vCPU has gone. */
	const uint64_t in_packet[] = {150, 250, 350, 450, 501, 680, 750, 850, 950, 1050, 1150};

	expect_order(&(struct moves){at_end, VP_ARRAY_SIZE(at_end), 550}, 3, 0xffc);
	expect_order(&(struct moves){in_packet, VP_ARRAY_SIZE(in_packet), 510}, 3, 0xffc);
}

/* Damages the packet with that number of pCPU 0's stream. */
static void damage(uint32_t number)
{
	int fd = open(STREAM, O_RDWR | O_CLOEXEC);
	struct vp_packet_header header;
	off_t at = 0;

	assert_true(fd >= 0);
	for (uint32_t i = 0;; i++) {
		assert_int_equal(pread(fd, &header, sizeof(header), at), sizeof(header));
		if (i == number)
			break;
		at += (off_t)header.packet_size / 8;
	}
	assert_int_equal(pwrite(fd, "!", 1, at + (off_t)sizeof(header) + 30), 1);
	close(fd);
}

/* A packet that continues a damaged one is looked at. */
static void test_damaged(void **state)
{
	const uint64_t at[] = {650, 750, 850, 950, 1050, 1150};
	uint32_t marked;

	make_moves(&(struct moves){at, VP_ARRAY_SIZE(at), 20});
	damage(6);
	struct order order = read_all(&marked);
	assert_int_equal(order.events, 2);
	assert_true(marked & 1 << 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_marked),
					   cmocka_unit_test(test_damaged)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
