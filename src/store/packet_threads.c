/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/packet_threads.h"

#include "schema/records.h"
#include "schema/schema.h"

/* More threads are forgotten: memory does not grow with those that have ended. */
enum { MAX_THREADS = 1 << 14, TID_BITS = 24 };

void vp_packet_threads_deinit(struct vp_packet_threads *threads)
{
	vp_map_deinit(&threads->last);
	threads->packet = 0;
}

/* Owner and thread have the same offset in samples and switches. */
static bool is_of_thread(uint32_t id)
{
	return id == VP_ID_host_sample || id == VP_ID_vcpu_sample || id == VP_ID_guest_sample ||
	       id == VP_ID_vcpu_in || id == VP_ID_vcpu_out;
}

/* Whether the order of the record and records of other streams never matters. */
static bool is_of_stream(uint32_t id)
{
	return id == VP_ID_sample_period || id == VP_ID_guest_regs || id == VP_ID_chain_frames ||
	       id == VP_ID_chain_stack || id == VP_ID_clock_sync;
}

/* Notes a thread in the present packet. False: it is not in the previous one. */
static bool see_thread(struct vp_packet_threads *threads, const struct vp_vcpu_in *record)
{
	uint64_t key = (uint64_t)record->vm << 32 | (uint32_t)record->id << TID_BITS | record->tid;
	bool inserted;

	if (record->tid >> TID_BITS)
		return false;
	uint32_t *last = vp_map_insert(&threads->last, key, threads->packet, &inserted);
	bool known = !inserted && threads->packet - *last <= 1;
	*last = threads->packet;
	return known;
}

bool vp_packet_threads_continue(struct vp_packet_threads *threads, const void *records, size_t size)
{
	bool continues = threads->packet != 0;
	uint64_t time = 0;

	if (threads->last.count > MAX_THREADS) {
		vp_map_deinit(&threads->last);
		continues = false;
	}
	threads->packet++;
	for (size_t at = 0; at < size;) {
		const struct vp_record_header *record = (const void *)((const char *)records + at);
		if (is_of_thread(record->id))
			continues &= see_thread(threads, (const void *)record);
		else
			continues &= is_of_stream(record->id);
		continues &= record->time >= time;
		time = record->time;
		size_t length = vp_record_length(record);
		if (!length)
			return false;
		at += length;
	}
	return continues;
}
