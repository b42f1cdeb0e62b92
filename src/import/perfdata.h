/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file of perf record (perf.data; tools/perf/Documentation/perf.data-file-format.txt): what was
 * counted, samples and the kernel's other records, in order of time. Own code, within bounds: perf
 * has no library for it.
 */
#ifndef VP_IMPORT_PERFDATA_H
#define VP_IMPORT_PERFDATA_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"
#include "base/vec.h"
#include "import/perfdata_order.h"
#include "import/perfdata_record.h"
#include "maps/format.h"

/* Magic numbers of files in this byte order, now and before 2013; and in the other. */
#define VP_PERFDATA_MAGIC "PERFILE2"
#define VP_PERFDATA_MAGIC_1 "PERFFILE"
#define VP_PERFDATA_MAGIC_SWAPPED "2ELIFREP"

struct vp_perfdata_pmu {
	uint32_t type;
	struct vp_slice name;
};

struct vp_perfdata {
	const char *source; /* for errors */
	struct vp_slice bytes;
	struct vp_perfdata_events events;
	struct vp_perfdata_order order;
	VP_VEC(struct vp_perfdata_pmu) pmus;
	struct vp_slice tracing, hostname, release; /* or empty */
	struct vp_slice build_ids;                  /* of files that samples hit; or empty */
	struct vp_buffer gathered; /* of a file in the form for pipes: the build-ids */
	uint64_t lost, aux;        /* records; bytes of hardware traces */
	bool has_times, has_cpus;  /* all samples do */
	bool is_cut;               /* the file ends before its data do */
};

/* `files`: the file, and more with records only (perf record --threads). Slices are of them; they
 * stay the caller's, as `source` does. Errors: it is no such file, or damaged where nothing after
 * it can be read, or larger than a limit. */
struct vp_error *vp_perfdata_open(const char *source, const struct vp_slice *files, size_t count,
				  struct vp_perfdata *ret) VP_MUST_CHECK;
void vp_perfdata_close(struct vp_perfdata *file);

/* From the first record on, by time. */
void vp_perfdata_rewind(struct vp_perfdata *file);
/* The next one; false at the end. Its slices are good until the next call. */
bool vp_perfdata_next(struct vp_perfdata *file, struct vp_perfdata_record *ret);
/* Entries that are no records. */
static inline uint64_t vp_perfdata_malformed(const struct vp_perfdata *file)
{
	return file->order.malformed;
}

/* The build-id of the file, or of "[kernel.kallsyms]"; unknown if the file lacks it. */
struct vp_build_id vp_perfdata_build_id(const struct vp_perfdata *file, const char *path);

/* The event's name, as perf has it. */
char *vp_perfdata_event_name(const struct vp_perfdata *file, const struct vp_perfdata_attr *attr);
/* Without the PMU, of processors with several kinds of cores: cpu_core/cycles/ and cpu_atom/cycles/
 * are both "cycles". NULL: it is of no such PMU. */
char *vp_perfdata_hybrid_name(const struct vp_perfdata *file, const struct vp_perfdata_attr *attr);

#endif
