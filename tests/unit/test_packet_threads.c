/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets that only continue the previous one are marked, and no other. */
#include "unit.h"

#include <string.h>

#include "base/buffer.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "store/packet_threads.h"

struct packet {
	struct vp_buffer records;
	uint64_t time;
};

static void add(struct packet *packet, void *record)
{
	struct vp_record_header *header = record;

	header->time = ++packet->time;
	vp_buffer_append(&packet->records, record, vp_record_length(header));
}

static void add_host(struct packet *packet, uint32_t pid, uint32_t tid)
{
	struct vp_host_sample sample = {.id = VP_ID_host_sample, .pid = pid, .tid = tid};

	add(packet, &sample);
}

static void add_guest(struct packet *packet, uint32_t vm, uint32_t tid)
{
	struct vp_guest_sample sample = {.id = VP_ID_guest_sample, .vm = vm, .tid = tid};

	add(packet, &sample);
}

/* Whether the packet continues the one before it; the next one is empty. */
static bool continues(struct vp_packet_threads *threads, struct packet *packet)
{
	bool result =
	    vp_packet_threads_continue(threads, packet->records.bytes, packet->records.size);

	packet->records.size = 0;
	return result;
}

static void test_threads(void **state)
{
	struct vp_packet_threads threads = {0};
	struct packet packet = {0};

	add_host(&packet, 1, 2);
	add_guest(&packet, 5, 6);
	assert_false(continues(&threads, &packet)); /* the first one */
	add_guest(&packet, 5, 6);
	assert_true(continues(&threads, &packet));
	add_guest(&packet, 5, 6);
	add_host(&packet, 1, 2); /* not in the previous one, but before */
	assert_false(continues(&threads, &packet));
	add_host(&packet, 1, 2);
	add_host(&packet, 1, 3);
	assert_false(continues(&threads, &packet));
	add_guest(&packet, 1, 3); /* the same thread, in a record of another type */
	assert_false(continues(&threads, &packet));
	add_guest(&packet, 2, 3);
	assert_false(continues(&threads, &packet));
	add_guest(&packet, 2, 3);
	assert_true(continues(&threads, &packet));
	assert_true(continues(&threads, &packet)); /* without records */
	add_guest(&packet, 2, 3);
	assert_false(continues(&threads, &packet));
	add_guest(&packet, 2, 1 << 24); /* no tid of Linux */
	assert_false(continues(&threads, &packet));
	add_guest(&packet, 2, 1 << 24);
	assert_false(continues(&threads, &packet));
	vp_packet_threads_deinit(&threads);
	add_guest(&packet, 2, 3);
	assert_false(continues(&threads, &packet));
	vp_packet_threads_deinit(&threads);
	vp_buffer_deinit(&packet.records);
}

static void test_other_records(void **state)
{
	struct vp_packet_threads threads = {0};
	struct packet packet = {0};
	struct vp_sample_period period = {.id = VP_ID_sample_period};
	struct vp_chain_frames chain = {.id = VP_ID_chain_frames, .tid = 9};
	struct vp_task task = {.id = VP_ID_task, .pid = 1, .tid = 2};
	struct vp_guest_task guest_task = {.id = VP_ID_guest_task};
	void *renames[] = {&task, &guest_task};

	add_host(&packet, 1, 2);
	(void)continues(&threads, &packet);
	add(&packet, &period);
	add(&packet, &chain);
	add_host(&packet, 1, 2);
	assert_true(continues(&threads, &packet));
	for (size_t i = 0; i < VP_ARRAY_SIZE(renames); i++) {
		add_host(&packet, 1, 2);
		add(&packet, renames[i]);
		assert_false(continues(&threads, &packet));
		add_host(&packet, 1, 2);
		assert_true(continues(&threads, &packet));
	}
	add_host(&packet, 1, 2);
	packet.time -= 2; /* out of order */
	add_host(&packet, 1, 2);
	assert_false(continues(&threads, &packet));
	vp_packet_threads_deinit(&threads);
	vp_buffer_deinit(&packet.records);
}

/* Threads that have ended are forgotten: memory has a limit. */
static void test_many_threads(void **state)
{
	struct vp_packet_threads threads = {0};
	struct packet packet = {0};

	for (uint32_t tid = 0; tid < 100000; tid++) {
		add_host(&packet, 1, tid);
		assert_false(continues(&threads, &packet));
		assert_true(threads.last.count <= 1 << 15);
	}
	add_host(&packet, 1, 99999);
	assert_true(continues(&threads, &packet));
	vp_packet_threads_deinit(&threads);
	vp_buffer_deinit(&packet.records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads),
					   cmocka_unit_test(test_other_records),
					   cmocka_unit_test(test_many_threads)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
