/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Conventions of the trace's writer and reader beyond the schema. */
#ifndef VP_STORE_PACKET_H
#define VP_STORE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "schema/schema.h"

/* Contents of a stream: each class of records has its own streams, so that each is in order. */
enum vp_stream_class {
	VP_STREAM_PCPU,        /* samples and switches of a pCPU; the first one's also the clocks */
	VP_STREAM_ACCOUNT,     /* the account of the vCPUs' time */
	VP_STREAM_STATES,      /* the vCPUs' states, one after another: vcpu_span records */
	VP_STREAM_INTERVALS,   /* intervals that ended on a pCPU */
	VP_STREAM_TRACE,       /* events of a CPU, of classes that are defined for the trace */
	VP_STREAM_TRACEPOINTS, /* the same by the kernel's own formats: another source, in its order
				*/
	VP_STREAM_GUESTS,      /* samples of vCPUs by their own CPU time, where pCPUs' hit none */
	VP_STREAM_HYPERVISOR,  /* events that the hypervisor traces of itself, of all its pCPUs */
	VP_STREAM_CLASSES
};
#define VP_STREAMS(kind) (1U << (kind))
/* All that have samples. */
#define VP_STREAMS_SAMPLES (VP_STREAMS(VP_STREAM_PCPU) | VP_STREAMS(VP_STREAM_GUESTS))
#define VP_STREAMS_ALL ((1U << VP_STREAM_CLASSES) - 1)

/* A stream of a machine: its class and, if each pCPU has one, whose it is; else VP_NO_PCPU. */
#define VP_NO_PCPU UINT32_MAX
struct vp_stream_id {
	enum vp_stream_class kind;
	uint32_t pcpu;
};

/* The pCPU's stream of samples and switches. */
static inline struct vp_stream_id vp_stream_of_pcpu(uint32_t pcpu)
{
	return (struct vp_stream_id){VP_STREAM_PCPU, pcpu};
}

/* Whether the class has one stream per pCPU. */
bool vp_stream_class_is_per_pcpu(enum vp_stream_class kind);
/* Whether its records may be of classes that are defined for the trace. */
bool vp_stream_class_has_defined(enum vp_stream_class kind);
/* Name of the class in `recording`: "pcpus". */
const char *vp_stream_class_name(enum vp_stream_class kind);
/* A stream's file in the machine's directory is "cpu3", or "cpu3.zst" if it is compressed
 * (packet_zstd.h). */
#define VP_ZSTD_SUFFIX ".zst"
/* The stream of a file of that name; false: not a stream's. */
bool vp_stream_of_file(const char *name, struct vp_stream_id *ret);
/* Whether a file of that name or path is compressed. */
bool vp_stream_is_compressed(const char *name);
/* Path of the stream's file in the machine's directory `path`, to be freed, or NULL. */
char *vp_stream_find(const char *path, struct vp_stream_id id) VP_MUST_CHECK;
/* Creates the stream's file in the machine's directory; -1 and errno if that cannot be. */
int vp_stream_create(const char *path, struct vp_stream_id id, bool compressed) VP_MUST_CHECK;

/* No packet is larger: what a reader must hold in memory per stream. */
#define VP_PACKET_MAX (256 * 1024)

/* Padding after a packet's records: any position can be read as a record's header, or as a
 * sample. */
enum { VP_RECORD_ROOM = 64 };

/* Bytes of the packet that this is the header of, itself included, or 0: it is no header. */
uint64_t vp_packet_header_size(const struct vp_packet_header *header);

/* Checksum of a packet: over the header with its checksum field taken as 0, and `size` bytes of
 * records. */
uint32_t vp_packet_checksum(const struct vp_packet_header *header, const void *records,
			    size_t size);

/* Completes a packet's header, whose other fields are set, for `size` bytes of records. */
void vp_packet_finish(struct vp_packet_header *header, const uint8_t uuid[16], const void *records,
		      size_t size);

#endif
