/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of a perf.data file, and single records. */
#ifndef VP_IMPORT_PERF_PERFDATA_RECORD_H
#define VP_IMPORT_PERF_PERFDATA_RECORD_H

#include "base/cursor.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"

/* The used fields of an event (struct perf_event_attr). */
struct vp_perfdata_attr {
	uint32_t type;
	uint64_t config, period; /* period: or a frequency in Hz, if is_rate */
	uint64_t sample_type, read_format;
	bool is_rate, all_have_ids;
	struct vp_slice name; /* name given to perf; or empty */
	uint64_t samples;     /* number of samples in the file */
};

/* A vCPU with its own event ids for samples (PERF_RECORD_ID_INDEX). */
struct vp_perfdata_vcpu {
	uint32_t machine, number; /* pid of the VMM; number of the vCPU */
	uint32_t tid;             /* tid of its thread, or UINT32_MAX */
};

/* Properties needed for parsing records. */
struct vp_perfdata_events {
	bool swaps; /* the file has the other byte order */
	VP_VEC(struct vp_perfdata_attr) attrs;
	struct vp_map attr_of_id;
	VP_VEC(struct vp_perfdata_vcpu) vcpus;
	struct vp_map vcpu_of_id;
};
void vp_perfdata_events_deinit(struct vp_perfdata_events *events);

enum {
	VP_PERFDATA_NO_CPU = UINT32_MAX,
	/* Record types from here on are from perf's tools, not from the kernel. */
	VP_PERFDATA_FIRST_OF_PERF = 64,
	VP_PERFDATA_HEADER_TRACING = 66,
	VP_PERFDATA_FINISHED_ROUND = 68,
	VP_PERFDATA_AUXTRACE = 71
};

struct vp_perfdata_record {
	uint32_t type; /* enum perf_event_type */
	uint16_t misc;
	bool has_time;
	uint64_t time;
	uint32_t pid, tid, cpu;
	const struct vp_perfdata_vcpu *vcpu; /* pid and tid are those of its guest; or NULL */
	struct vp_slice body;                /* data after the header; not for samples */
	bool swaps;                          /* slices have the other byte order */
	/* Members of samples. */
	const struct vp_perfdata_attr *attr;
	uint64_t ip, id, period;
	struct vp_slice chain, raw; /* chain: u64 each; raw: as the tracepoint wrote it */
	struct vp_slice values;     /* PERF_SAMPLE_READ: `value_size` bytes per event */
	size_t value_size;          /* value, optional id, further fields */
};

/* A cursor over one of the record's slices. */
static inline struct vp_cursor vp_perfdata_cursor(const struct vp_perfdata_record *record,
						  struct vp_slice slice)
{
	struct vp_cursor cursor = vp_cursor_of(slice.bytes, slice.size);

	cursor.swaps = record->swaps;
	return cursor;
}

/* Parses the record at the start of `bytes`. False: malformed, or of an unknown event. */
bool vp_perfdata_record_read(const struct vp_perfdata_events *events, struct vp_slice bytes,
			     struct vp_perfdata_record *ret);
/* Its size, including data after it that is not a record; 0: `bytes` is too short. */
uint64_t vp_perfdata_record_size(const struct vp_perfdata_events *events, struct vp_slice bytes);
/* The name in a record that has one (PERF_RECORD_COMM), with its thread. */
struct vp_slice vp_perfdata_comm(const struct vp_perfdata_record *record, uint32_t *tid);

#endif
