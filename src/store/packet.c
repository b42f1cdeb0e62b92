/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/packet.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "base/alloc.h"

static const struct {
	const char *name, *file;
	bool per_pcpu; /* the pCPU's number is part of the file's name */
} classes[VP_STREAM_CLASSES] = {
    [VP_STREAM_PCPU] = {"pcpus", "cpu", true},
    [VP_STREAM_ACCOUNT] = {"account", "account", false},
    [VP_STREAM_STATES] = {"states", "vcpus", false},
    [VP_STREAM_INTERVALS] = {"intervals", "intervals-cpu", true},
    [VP_STREAM_TRACE] = {"trace", "trace-cpu", true},
    [VP_STREAM_TRACEPOINTS] = {"tracepoints", "tracepoints-cpu", true},
    [VP_STREAM_GUESTS] = {"guests", "guest-samples", false},
    [VP_STREAM_HYPERVISOR] = {"hypervisor", "hypervisor", false},
};

bool vp_stream_class_is_per_pcpu(enum vp_stream_class kind)
{
	return classes[kind].per_pcpu;
}

bool vp_stream_class_has_defined(enum vp_stream_class kind)
{
	return kind == VP_STREAM_TRACE || kind == VP_STREAM_TRACEPOINTS ||
	       kind == VP_STREAM_HYPERVISOR;
}

const char *vp_stream_class_name(enum vp_stream_class kind)
{
	return classes[kind].name;
}

static char *packet_path_of(const char *path, struct vp_stream_id id, bool compressed)
{
	const char *suffix = compressed ? VP_ZSTD_SUFFIX : "";

	return classes[id.kind].per_pcpu
		   ? vp_format("%s/%s%" PRIu32 "%s", path, classes[id.kind].file, id.pcpu, suffix)
		   : vp_format("%s/%s%s", path, classes[id.kind].file, suffix);
}

char *vp_stream_find(const char *path, struct vp_stream_id id)
{
	for (int compressed = 0; compressed < 2; compressed++) {
		char *file = packet_path_of(path, id, compressed);
		if (!access(file, F_OK))
			return file;
		free(file);
	}
	return NULL;
}

int vp_stream_create(const char *path, struct vp_stream_id id, bool compressed)
{
	VP_AUTO_FREE char *file = packet_path_of(path, id, compressed);

	return open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND | O_CLOEXEC, 0644);
}

bool vp_stream_is_compressed(const char *name)
{
	size_t size = strlen(name), suffix = strlen(VP_ZSTD_SUFFIX);

	return size > suffix && !strcmp(name + size - suffix, VP_ZSTD_SUFFIX);
}

bool vp_stream_of_file(const char *file, struct vp_stream_id *ret)
{
	size_t bare = strlen(file) - (vp_stream_is_compressed(file) ? strlen(VP_ZSTD_SUFFIX) : 0);
	VP_AUTO_FREE char *name = vp_strndup(file, bare);

	for (int kind = 0; kind < VP_STREAM_CLASSES; kind++) {
		size_t size = strlen(classes[kind].file);
		int end = 0;
		*ret = (struct vp_stream_id){kind, VP_NO_PCPU};
		if (strncmp(name, classes[kind].file, size) != 0)
			continue;
		if (!classes[kind].per_pcpu && !name[size])
			return true;
		if (classes[kind].per_pcpu &&
		    sscanf(name + size, "%" SCNu32 "%n", &ret->pcpu, &end) == 1 &&
		    !name[size + (size_t)end])
			return true;
	}
	return false;
}

uint64_t vp_packet_header_size(const struct vp_packet_header *header)
{
	uint64_t size = header->packet_size / 8;

	if (header->magic != VP_PACKET_MAGIC || header->content_size != header->packet_size ||
	    header->packet_size % 8 || size < sizeof(*header) || size > VP_PACKET_MAX)
		return 0;
	return size;
}

uint32_t vp_packet_checksum(const struct vp_packet_header *header, const void *records, size_t size)
{
	struct vp_packet_header unsigned_one = *header;

	unsigned_one.checksum = 0;
	XXH64_hash_t seed = XXH64(&unsigned_one, sizeof(unsigned_one), 0);
	return (uint32_t)XXH64(records, size, seed);
}

void vp_packet_finish(struct vp_packet_header *header, const uint8_t uuid[16], const void *records,
		      size_t size)
{
	header->magic = VP_PACKET_MAGIC;
	header->content_size = header->packet_size = 8 * (sizeof(*header) + size);
	memcpy(header->uuid, uuid, sizeof(header->uuid));
	header->checksum = vp_packet_checksum(header, records, size);
}
