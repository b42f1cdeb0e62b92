/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets of vCPUs' states: what a file leaves out comes back, and what is none is told. */
#include "unit.h"

#include "schema/schema.h"
#include "store/packet_states.h"

static void add(struct vp_buffer *records, uint32_t tid, uint64_t end, uint64_t ns, uint32_t reason)
{
	const struct vp_vcpu_span span = {.time = end,
					  .id = VP_ID_vcpu_span,
					  .flags = reason ? VP_HAS_EXIT_REASON : 0,
					  .vm = tid >> 12,
					  .tid = tid,
					  .vcpu = (uint16_t)(tid & 0xfff),
					  .state = (uint8_t)(end % 7),
					  .vendor = VP_VENDOR_AMD,
					  .reason = reason,
					  .cpu = (uint32_t)(end % 3),
					  .ns = ns};

	memcpy(vp_buffer_extend(records, sizeof(span)), &span, sizeof(span));
}

/* The bytes of the packed records, which are the same ones when unpacked. */
static size_t packed_size(const struct vp_buffer *records)
{
	struct vp_buffer packed = {0}, again = {0};

	vp_states_pack(records->bytes, records->size, &packed);
	assert_int_equal(vp_states_unpack(packed.bytes, packed.size, &again), packed.size);
	assert_int_equal(again.size, records->size);
	assert_memory_equal(again.bytes, records->bytes, records->size);
	size_t size = packed.size;
	vp_buffer_deinit(&packed);
	vp_buffer_deinit(&again);
	return size;
}

static void test_states_come_back(void **state)
{
	struct vp_buffer records = {0};
	const size_t in_full = sizeof(struct vp_vcpu_span), in_short = sizeof(struct vp_vcpu_next);

	assert_int_equal(in_short, 16);
	add(&records, 0x2000, 1000, 100, 0);
	add(&records, 0x3000, 1010, 7, 0);
	assert_int_equal(packed_size(&records), 2 * in_full);
	add(&records, 0x2000, 1020, 20, 0x60);
	add(&records, 0x3000, 1030, 20, 0);
	add(&records, 0x2000, 1030, 10, 0);
	assert_int_equal(packed_size(&records), 2 * in_full + 3 * in_short);
	/* One that was lost before it, or whose numbers are too large, is told in full; the next
	 * one goes on from there. */
	add(&records, 0x2000, 1100, 60, 0);
	add(&records, 0x2000, 1110, 10, 0x10000);
	add(&records, 0x2000, 1120, 10, 0xffff);
	assert_int_equal(packed_size(&records), 4 * in_full + 4 * in_short);
	vp_buffer_deinit(&records);
}

/* Of more vCPUs than can be told in short. */
static void test_many_vcpus(void **state)
{
	struct vp_buffer records = {0};

	for (uint32_t round = 1; round <= 2; round++)
		for (uint32_t vcpu = 0; vcpu < 300; vcpu++)
			add(&records, 0x2000 + vcpu, 1000 * round + vcpu, 1000, 0);
	assert_int_equal(packed_size(&records),
			 344 * sizeof(struct vp_vcpu_span) + 256 * sizeof(struct vp_vcpu_next));
	vp_buffer_deinit(&records);
}

static void expect_good(const void *records, size_t size, size_t good)
{
	struct vp_buffer out = {0};

	assert_int_equal(vp_states_unpack(records, size, &out), good);
	vp_buffer_deinit(&out);
}

static void test_lies(void **state)
{
	struct {
		struct vp_vcpu_span span;
		struct vp_vcpu_next next;
	} __attribute__((packed)) packet = {
	    .span = {.time = 1000, .id = VP_ID_vcpu_span, .ns = 10},
	    .next = {.time = 1000, .id = VP_ID_vcpu_next},
	};

	expect_good(&packet, sizeof(packet), sizeof(packet));
	expect_good(&packet, sizeof(packet) - 1, sizeof(packet.span));
	expect_good(&packet.next, sizeof(packet.next), 0); /* of no vCPU */
	packet.next.which = 1;
	expect_good(&packet, sizeof(packet), sizeof(packet.span));
	packet.next.which = 0;
	packet.next.time = 999; /* before it began */
	expect_good(&packet, sizeof(packet), sizeof(packet.span));
	packet.next.id = 19; /* no record */
	expect_good(&packet, sizeof(packet), sizeof(packet.span));
	expect_good(&packet, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_states_come_back),
	    cmocka_unit_test(test_many_vcpus),
	    cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
