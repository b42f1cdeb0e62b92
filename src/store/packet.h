/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Streams and packets: conventions of the trace writer and reader beyond the schema. */
#ifndef VP_STORE_PACKET_H
#define VP_STORE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "schema/schema.h"

/* Classes of streams. Each class of records has its own streams, so that each stream is in order of
 * time. */
enum vp_stream_class {
	VP_STREAM_PCPU,      /* samples and switches of a pCPU; the first one also has the clocks */
	VP_STREAM_ACCOUNT,   /* vCPU accounting */
	VP_STREAM_STATES,    /* vCPU states, in order: vcpu_span records */
	VP_STREAM_INTERVALS, /* intervals that ended on a pCPU */
	VP_STREAM_TRACE,     /* events of a CPU, of classes defined for the trace */
	VP_STREAM_TRACEPOINTS, /* the same with the kernel's own formats: a separate source with its
				  own order */
	VP_STREAM_GUESTS, /* samples of vCPUs by their own CPU time, where the pCPUs' samples hit no
			     guest */
	VP_STREAM_HYPERVISOR, /* events that the hypervisor traces of itself, of all pCPUs */
	VP_STREAM_CLASSES
};
#define VP_STREAMS(kind) (1U << (kind))
/* All classes with samples. */
#define VP_STREAMS_SAMPLES (VP_STREAMS(VP_STREAM_PCPU) | VP_STREAMS(VP_STREAM_GUESTS))
#define VP_STREAMS_ALL ((1U << VP_STREAM_CLASSES) - 1)

/* A stream of a machine: its class and pCPU; VP_NO_PCPU if the class has one stream for all. */
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
/* Whether its records may be of classes defined for the trace. */
bool vp_stream_class_has_defined(enum vp_stream_class kind);
/* Name of the class in the file `recording`: "pcpus". */
const char *vp_stream_class_name(enum vp_stream_class kind);
/* The file of a stream in the machine's directory is "cpu3", or "cpu3.zst" if compressed
 * (packet_zstd.h). */
#define VP_ZSTD_SUFFIX ".zst"
/* The stream of a file by its name; false: not a stream. */
bool vp_stream_of_file(const char *name, struct vp_stream_id *ret);
/* Whether a file of that name or path is compressed. */
bool vp_stream_is_compressed(const char *name);
/* Path of the stream's file in the machine's directory `path`, to be freed, or NULL. */
char *vp_stream_find(const char *path, struct vp_stream_id id) VP_MUST_CHECK;
/* Creates the stream's file in the machine's directory; -1 and errno on failure. */
int vp_stream_create(const char *path, struct vp_stream_id id, bool compressed) VP_MUST_CHECK;

/* Maximum size of a packet: memory that a reader needs per stream. */
#define VP_PACKET_MAX (256 * 1024)

/* Padding after the records of a packet in memory, so that a record header or a sample can be read
 * at any position. */
enum { VP_RECORD_ROOM = 64 };

/* Size of the packet with this header, in bytes, header included; 0: not a valid header. */
uint64_t vp_packet_header_size(const struct vp_packet_header *header);

/* Checksum of the header, with its checksum field as 0, and `size` bytes of records. */
uint32_t vp_packet_checksum(const struct vp_packet_header *header, const void *records,
			    size_t size);

/* Completes the header of a packet with `size` bytes of records; the other fields must be set. */
void vp_packet_finish(struct vp_packet_header *header, const uint8_t uuid[16], const void *records,
		      size_t size);

#endif
