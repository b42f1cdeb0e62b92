/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/packet_zstd.h"

#include <errno.h>
#include <string.h>

#include <zstd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "schema/records.h"

enum { LEAD_FIELDS = sizeof(struct vp_zstd_lead) - 8 };

struct vp_packer {
	ZSTD_CCtx *context;
	struct vp_splitter splitter;
	char bytes[VP_ZSTD_PACKET_MAX];
};

struct vp_unpacker {
	ZSTD_DCtx *context;
	char split[VP_PACKET_MAX];
	char bytes[VP_PACKET_MAX + VP_RECORD_ROOM];
};

_Static_assert(sizeof(struct vp_zstd_lead) + ZSTD_COMPRESSBOUND(VP_PACKET_MAX) <=
		   VP_ZSTD_PACKET_MAX,
	       "a compressed packet has room, whatever is in it");

struct vp_packer *vp_packer_new(int level)
{
	struct vp_packer *packer = vp_alloc(sizeof(*packer));

	packer->context = ZSTD_createCCtx();
	if (!packer->context)
		vp_alloc_failed();
	ZSTD_CCtx_setParameter(packer->context, ZSTD_c_compressionLevel, level);
	return packer;
}

void vp_packer_free(struct vp_packer *packer)
{
	if (!packer)
		return;
	ZSTD_freeCCtx(packer->context);
	free(packer);
}

/* Compresses into the packer's memory, after the lead; 0: there is no memory. */
static size_t compress(struct vp_packer *packer, const char *bytes, size_t size)
{
	size_t lead = sizeof(struct vp_zstd_lead);
	size_t compressed = ZSTD_compress2(packer->context, packer->bytes + lead,
					   sizeof(packer->bytes) - lead, bytes, size);

	return ZSTD_isError(compressed) ? 0 : compressed;
}

/* Makes the packet in the packer's memory; returns its size, 0 if there is no memory. */
static size_t pack(struct vp_packer *packer, const struct vp_packet_header *header,
		   const char *records)
{
	size_t size = header->packet_size / 8 - sizeof(*header);
	struct vp_zstd_lead lead = {
	    .magic = VP_ZSTD_LEAD_MAGIC, .size = LEAD_FIELDS, .header = *header};

	lead.split = vp_records_split(&packer->splitter, records, size, header->timestamp_begin);
	size_t compressed = lead.split.count
				? compress(packer, packer->splitter.bytes, packer->splitter.size)
				: compress(packer, records, size);
	if (!compressed)
		return 0;
	lead.compressed = (uint32_t)compressed;
	memcpy(packer->bytes, &lead, sizeof(lead));
	return sizeof(lead) + compressed;
}

int vp_packet_write(int fd, struct vp_packer *packer, const struct vp_packet_header *header,
		    const void *records, size_t *size)
{
	struct iovec parts[] = {{(void *)header, sizeof(*header)},
				{(void *)records, header->packet_size / 8 - sizeof(*header)}};

	*size = packer ? pack(packer, header, records) : header->packet_size / 8;
	if (!*size)
		return -ENOMEM;
	if (packer)
		return vp_fd_write_all(fd, packer->bytes, *size);
	return vp_fd_write_parts(fd, parts, parts[1].iov_len ? 2 : 1);
}

uint64_t vp_zstd_packet_size(const struct vp_zstd_lead *lead)
{
	if (lead->magic != VP_ZSTD_LEAD_MAGIC || lead->size != LEAD_FIELDS || !lead->compressed ||
	    lead->compressed > VP_ZSTD_PACKET_MAX - sizeof(*lead) ||
	    !vp_packet_header_size(&lead->header))
		return 0;
	return sizeof(*lead) + lead->compressed;
}

struct vp_unpacker *vp_unpacker_new(void)
{
	struct vp_unpacker *unpacker = vp_alloc(sizeof(*unpacker));

	unpacker->context = ZSTD_createDCtx();
	if (!unpacker->context)
		vp_alloc_failed();
	return unpacker;
}

void vp_unpacker_free(struct vp_unpacker *unpacker)
{
	if (!unpacker)
		return;
	ZSTD_freeDCtx(unpacker->context);
	free(unpacker);
}

/* Decompresses records of that size into the unpacker's memory. */
static bool packet_zstd_unpack(struct vp_unpacker *unpacker, const struct vp_zstd_lead *lead,
			       const char *bytes, size_t size)
{
	char *records = unpacker->bytes + sizeof(lead->header);
	char *to = lead->split.count ? unpacker->split : records;
	size_t split = ZSTD_decompressDCtx(unpacker->context, to, size, bytes, lead->compressed);

	if (ZSTD_isError(split))
		return false;
	if (!lead->split.count)
		return split == size;
	return vp_records_join(lead->split, unpacker->split, split, lead->header.timestamp_begin,
			       records, size);
}

const char *vp_unpacker_unpack(struct vp_unpacker *unpacker, const struct vp_zstd_lead *lead,
			       const char *bytes)
{
	uint64_t size = vp_packet_header_size(&lead->header);

	if (!packet_zstd_unpack(unpacker, lead, bytes, size - sizeof(lead->header)))
		return NULL;
	memcpy(unpacker->bytes, &lead->header, sizeof(lead->header));
	memset(unpacker->bytes + size, 0, VP_RECORD_ROOM);
	return unpacker->bytes;
}
