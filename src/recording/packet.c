/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/packet.h"

#include <xxhash.h>

uint32_t vp_packet_checksum(const struct vp_packet_header *header, const void *records, size_t size)
{
	struct vp_packet_header unsigned_one = *header;

	unsigned_one.checksum = 0;
	XXH64_hash_t seed = XXH64(&unsigned_one, sizeof(unsigned_one), 0);
	return (uint32_t)XXH64(records, size, seed);
}
