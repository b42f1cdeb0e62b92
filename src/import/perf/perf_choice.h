/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the event of a perf.data file whose samples are imported: a recording has samples of only
 * one. */
#ifndef VP_IMPORT_PERF_PERF_CHOICE_H
#define VP_IMPORT_PERF_PERF_CHOICE_H

#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "import/perf/perfdata.h"

struct vp_perf_choice {
	const struct vp_perfdata *file;
	char *name; /* name of the event; NULL: no samples */
	VP_VEC(uint8_t)
	chosen;        /* by attr: an event has several on CPUs with several kinds of cores */
	bool is_clock; /* its unit is ns */
	/* For groups with values in each sample: last value by id. */
	struct vp_map index_of_id;
	VP_VEC(uint64_t) values;
};

/* The event with that name; without one, the first with samples that is not a tracepoint, on all
 * kinds of cores. Errors: no samples of that event. */
struct vp_error *vp_perf_choice_make(const struct vp_perfdata *file, const char *name,
				     struct vp_perf_choice *ret) VP_MUST_CHECK;
/* Returns to the first sample. */
void vp_perf_choice_rewind(struct vp_perf_choice *choice);
/* Whether the record may contain samples of the event. */
bool vp_perf_choice_has(const struct vp_perf_choice *choice,
			const struct vp_perfdata_record *record);
/* The next sample of the event in a record, with the number of events that it represents. Start
 * with *from = 0. Records must come in order of time. */
bool vp_perf_choice_next(struct vp_perf_choice *choice, const struct vp_perfdata_record *record,
			 size_t *from, uint64_t *period);
/* A sentence about skipped samples of other events, or NULL. */
char *vp_perf_choice_others(const struct vp_perf_choice *choice);

#endif
