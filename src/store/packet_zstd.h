/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compressed packets. In a file NAME.zst the records of each packet are a zstd frame, split
 * (packet_split.h). Before each is a frame that zstd(1) skips, with the size of the compressed
 * frame, the split parameters and the packet's header, so that packets can be found and identified
 * without decompression.
 */
#ifndef VP_STORE_PACKET_ZSTD_H
#define VP_STORE_PACKET_ZSTD_H

#include "base/macros.h"
#include "schema/schema.h"
#include "store/packet.h"
#include "store/packet_split.h"

/* Compression levels of zstd. */
enum { VP_ZSTD_LEVEL_MIN = 1, VP_ZSTD_LEVEL_MAX = 22 };

/* Precedes each compressed packet: a skippable frame of zstd (RFC 8878, 3.1.2). */
#define VP_ZSTD_LEAD_MAGIC 0x184D2A5Eu
struct vp_zstd_lead {
	uint32_t magic;
	uint32_t size;       /* size of the fields after it, bytes */
	uint32_t compressed; /* size of the frame after this one, bytes */
	struct vp_split split;
	struct vp_packet_header header;
} __attribute__((packed));

/* Maximum size of a packet in a file. */
#define VP_ZSTD_PACKET_MAX (sizeof(struct vp_zstd_lead) + VP_PACKET_MAX + VP_PACKET_MAX / 128 + 512)

struct vp_packer;

struct vp_packer *vp_packer_new(int level) VP_MUST_CHECK;
void vp_packer_free(struct vp_packer *packer);

/* Writes a packet (finished header, then its records) with one write, compressed unless `packer` is
 * NULL. *size: number of bytes written. Returns 0 or -errno. */
int vp_packet_write(int fd, struct vp_packer *packer, const struct vp_packet_header *header,
		    const void *records, size_t *size);

/* Size in the file of the packet that starts with `lead`, in bytes; 0: not a packet. */
uint64_t vp_zstd_packet_size(const struct vp_zstd_lead *lead);

struct vp_unpacker;

struct vp_unpacker *vp_unpacker_new(void) VP_MUST_CHECK;
void vp_unpacker_free(struct vp_unpacker *unpacker);
/* Decompresses the packet after its lead: header and records, followed by VP_RECORD_ROOM bytes of
 * padding; valid until the next call. NULL: damaged. */
const char *vp_unpacker_unpack(struct vp_unpacker *unpacker, const struct vp_zstd_lead *lead,
			       const char *bytes);

#endif
