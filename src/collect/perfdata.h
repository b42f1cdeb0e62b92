/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file of perf record (perf.data; tools/perf/Documentation/perf.data-file-format.txt): what was
 * counted, samples and what else the kernel told, in order of time. Own code, within bounds: perf
 * has no library for it.
 */
#ifndef VP_COLLECT_PERFDATA_H
#define VP_COLLECT_PERFDATA_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "maps/format.h"

#define VP_PERFDATA_MAGIC "PERFILE2"

/* An event that perf recorded, as far as it matters (struct perf_event_attr). */
struct vp_perfdata_attr {
	uint32_t type;
	uint64_t config, period; /* period: or how many a second, with is_rate */
	uint64_t sample_type, read_format;
	bool is_rate, all_have_ids;
};

/* A vCPU whose samples have an event id of their own (PERF_RECORD_ID_INDEX). */
struct vp_perfdata_vcpu {
	uint32_t machine, number; /* its VMM's process; the vCPU */
	uint32_t tid;             /* its thread, or UINT32_MAX */
};

/* Where a record is: in the file, or behind its size, in what was compressed there. */
struct vp_perfdata_place {
	uint64_t time, offset;
};

struct vp_perfdata {
	const char *source; /* for errors */
	struct vp_slice bytes;
	VP_VEC(struct vp_perfdata_attr) attrs;
	struct vp_map attr_of_id;
	VP_VEC(struct vp_perfdata_vcpu) vcpus;
	struct vp_map vcpu_of_id;
	VP_VEC(struct vp_perfdata_place) records;   /* by time */
	struct vp_slice tracing, hostname, release; /* or empty */
	struct vp_slice build_ids;                  /* of files that samples hit; or empty */
	struct vp_buffer unpacked;                  /* what was compressed */
	struct vp_buffer gathered; /* of a file in the form for pipes: the build-ids */
	uint64_t lost, malformed;
};

/* Slices are of `bytes`, which stay the caller's, as `source` does, and of the file. Errors: it is
 * no such file, or damaged where nothing can be read behind it. */
struct vp_error *vp_perfdata_open(const char *source, struct vp_slice bytes,
				  struct vp_perfdata *ret) VP_MUST_CHECK;
void vp_perfdata_close(struct vp_perfdata *file);

enum { VP_PERFDATA_NO_CPU = UINT32_MAX };

struct vp_perfdata_record {
	uint32_t type; /* enum perf_event_type */
	uint16_t misc;
	uint64_t time;
	uint32_t pid, tid, cpu;
	const struct vp_perfdata_vcpu *vcpu; /* pid and tid are its guest's; or NULL */
	struct vp_slice body;                /* of all but samples: behind the header */
	/* Of samples. */
	const struct vp_perfdata_attr *attr;
	uint64_t ip, id;
	struct vp_slice chain, raw; /* u64 each; as the tracepoint wrote it */
};

/* The record of that place in `records`. False: it is malformed. */
bool vp_perfdata_at(const struct vp_perfdata *file, size_t place, struct vp_perfdata_record *ret);
/* The name in a record that tells one (PERF_RECORD_COMM), with its thread. */
struct vp_slice vp_perfdata_comm(const struct vp_perfdata_record *record, uint32_t *tid);

/* The build-id of the file, or of "[kernel.kallsyms]"; unknown if it does not say. */
struct vp_build_id vp_perfdata_build_id(const struct vp_perfdata *file, const char *path);

#endif
