/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/packet.h"

#include <string.h>

#include <xxhash.h>

#include "schema/schema.h"

uint32_t vp_packet_checksum(const void *packet, size_t size)
{
	struct vp_packet_header header;

	memcpy(&header, packet, sizeof(header));
	header.checksum = 0;
	XXH64_hash_t seed = XXH3_64bits(&header, sizeof(header));
	return (uint32_t)XXH3_64bits_withSeed((const char *)packet + sizeof(header),
					      size - sizeof(header), seed);
}
