/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/packet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "base/alloc.h"

static const struct {
	const char *name, *file;
	bool per_pcpu; /* the pCPU's number is behind the file's name */
} classes[VP_STREAM_CLASSES] = {
    [VP_STREAM_PCPU] = {"pcpus", "cpu", true},
    [VP_STREAM_ACCOUNT] = {"account", "account", false},
    [VP_STREAM_STATES] = {"states", "vcpus", false},
    [VP_STREAM_INTERVALS] = {"intervals", "intervals-cpu", true},
};

bool vp_stream_class_is_per_pcpu(enum vp_stream_class class)
{
	return classes[class].per_pcpu;
}

const char *vp_stream_class_name(enum vp_stream_class class)
{
	return classes[class].name;
}

char *vp_stream_file(struct vp_stream_id id)
{
	return classes[id.class].per_pcpu ? vp_format("%s%" PRIu32, classes[id.class].file, id.pcpu)
					  : vp_strdup(classes[id.class].file);
}

bool vp_stream_of_file(const char *name, struct vp_stream_id *ret)
{
	for (int class = 0; class < VP_STREAM_CLASSES; class ++) {
		size_t size = strlen(classes[class].file);
		int end = 0;
		*ret = (struct vp_stream_id){class, VP_NO_PCPU};
		if (strncmp(name, classes[class].file, size) != 0)
			continue;
		if (!classes[class].per_pcpu && !name[size])
			return true;
		if (classes[class].per_pcpu &&
		    sscanf(name + size, "%" SCNu32 "%n", &ret->pcpu, &end) == 1 &&
		    !name[size + (size_t)end])
			return true;
	}
	return false;
}

uint32_t vp_packet_checksum(const struct vp_packet_header *header, const void *records, size_t size)
{
	struct vp_packet_header unsigned_one = *header;

	unsigned_one.checksum = 0;
	XXH64_hash_t seed = XXH64(&unsigned_one, sizeof(unsigned_one), 0);
	return (uint32_t)XXH64(records, size, seed);
}
