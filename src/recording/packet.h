/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the trace's writer and reader agree on beyond the schema. */
#ifndef VP_RECORDING_PACKET_H
#define VP_RECORDING_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include "schema/schema.h"

/* The stream that is no pCPU's: vcpu_span records, by a name and a number of its own. */
#define VP_STREAM_STATES UINT32_MAX
#define VP_STREAM_STATES_NAME "vcpus"

/* No packet is larger: what a reader must hold in memory per stream. */
#define VP_PACKET_MAX (256 * 1024)

/* Of a packet: the header with its checksum field taken as 0, and `size` bytes of records. */
uint32_t vp_packet_checksum(const struct vp_packet_header *header, const void *records,
			    size_t size);

#endif
