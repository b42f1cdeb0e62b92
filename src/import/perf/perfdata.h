/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parser for files of perf record (perf.data; tools/perf/Documentation/perf.data-file-format.txt):
 * events, samples and other kernel records, in order of time. Own code with bounds checks: perf has
 * no library for it.
 */
#ifndef VP_IMPORT_PERF_PERFDATA_H
#define VP_IMPORT_PERF_PERFDATA_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"
#include "base/vec.h"
#include "import/perf/perfdata_order.h"
#include "import/perf/perfdata_record.h"
#include "maps/format.h"

/* Magic numbers of files in this byte order, today's and before 2013; and in the other byte
 * order. */
#define VP_PERFDATA_MAGIC "PERFILE2"
#define VP_PERFDATA_MAGIC_1 "PERFFILE"
#define VP_PERFDATA_MAGIC_SWAPPED "2ELIFREP"

struct vp_perfdata_pmu {
	uint32_t type;
	struct vp_slice name;
};

struct vp_perfdata {
	const char *source; /* for error messages */
	struct vp_slice bytes;
	struct vp_perfdata_events events;
	struct vp_perfdata_order order;
	VP_VEC(struct vp_perfdata_pmu) pmus;
	struct vp_slice tracing, hostname, release; /* may be empty */
	struct vp_slice build_ids;                  /* of files with samples; may be empty */
	struct vp_buffer gathered;                  /* build-ids of a file in pipe format */
	uint64_t lost, aux;                         /* lost records; bytes of hardware traces */
	bool has_times, has_cpus;                   /* all samples have them */
	bool is_cut;                                /* the file is truncated */
};

/*
 * `files`: the file, and for perf record --threads further ones with records only. Slices point
 * into them; they stay the caller's, like `source`. Errors: not a perf.data file, damaged beyond
 * recovery, or larger than a limit.
 */
struct vp_error *vp_perfdata_open(const char *source, const struct vp_slice *files, size_t count,
				  struct vp_perfdata *ret) VP_MUST_CHECK;
void vp_perfdata_close(struct vp_perfdata *file);

/* Returns to the first record by time. */
void vp_perfdata_rewind(struct vp_perfdata *file);
/* The next record; false at the end. Its slices are valid until the next call. */
bool vp_perfdata_next(struct vp_perfdata *file, struct vp_perfdata_record *ret);
/* Number of malformed entries. */
static inline uint64_t vp_perfdata_malformed(const struct vp_perfdata *file)
{
	return file->order.malformed;
}

/* The build-id of the file, or of "[kernel.kallsyms]"; unknown if missing. */
struct vp_build_id vp_perfdata_build_id(const struct vp_perfdata *file, const char *path);

/* perf's name of the event. */
char *vp_perfdata_event_name(const struct vp_perfdata *file, const struct vp_perfdata_attr *attr);
/* The name without the PMU of one kind of cores: cpu_core/cycles/ and cpu_atom/cycles/ are both
 * "cycles". NULL: not an event of such a PMU. */
char *vp_perfdata_hybrid_name(const struct vp_perfdata *file, const struct vp_perfdata_attr *attr);

#endif
