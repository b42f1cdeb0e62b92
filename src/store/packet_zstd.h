/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compressed packets. In a stream's file NAME.zst each packet's records are a frame of zstd's of
 * their own, so that they are whole or not there, split (packet_split.h). Before each is a frame
 * that zstd(1) passes over: how large the next one is, how its records are split, and the packet's
 * header, so that packets are found and told apart without decompressing them.
 */
#ifndef VP_STORE_PACKET_ZSTD_H
#define VP_STORE_PACKET_ZSTD_H

#include "base/macros.h"
#include "schema/schema.h"
#include "store/packet.h"
#include "store/packet_split.h"

/* Levels are zstd's. */
enum { VP_ZSTD_LEVEL_MIN = 1, VP_ZSTD_LEVEL_MAX = 22 };

/* In front of each compressed packet: a skippable frame of zstd's format (RFC 8878, 3.1.2). */
#define VP_ZSTD_LEAD_MAGIC 0x184D2A5Eu
struct vp_zstd_lead {
	uint32_t magic;
	uint32_t size;       /* bytes of the fields after it */
	uint32_t compressed; /* bytes of the frame after this one */
	struct vp_split split;
	struct vp_packet_header header;
} __attribute__((packed));

/* No packet takes more of a file. */
#define VP_ZSTD_PACKET_MAX (sizeof(struct vp_zstd_lead) + VP_PACKET_MAX + VP_PACKET_MAX / 128 + 512)

struct vp_packer;

struct vp_packer *vp_packer_new(int level) VP_MUST_CHECK;
void vp_packer_free(struct vp_packer *packer);

/* Writes the packet of that finished header and the records after it with one write, compressed if
 * there is a packer. *size is the number of bytes written. Returns 0 or -errno. */
int vp_packet_write(int fd, struct vp_packer *packer, const struct vp_packet_header *header,
		    const void *records, size_t *size);

/* Bytes of the file that the packet takes which `lead` begins, or 0: it begins none. */
uint64_t vp_zstd_packet_size(const struct vp_zstd_lead *lead);

struct vp_unpacker;

struct vp_unpacker *vp_unpacker_new(void) VP_MUST_CHECK;
void vp_unpacker_free(struct vp_unpacker *unpacker);
/* Decompresses the packet after its lead: header and records; valid until the next call, with room
 * (VP_RECORD_ROOM) after it. NULL: it is damaged. */
const char *vp_unpacker_unpack(struct vp_unpacker *unpacker, const struct vp_zstd_lead *lead,
			       const char *bytes);

#endif
