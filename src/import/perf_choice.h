/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The event of a perf.data file whose samples are imported: a recording has samples of one. */
#ifndef VP_IMPORT_PERF_CHOICE_H
#define VP_IMPORT_PERF_CHOICE_H

#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "import/perfdata.h"

struct vp_perf_choice {
	const struct vp_perfdata *file;
	char *name; /* of the event, or NULL: there are no samples */
	VP_VEC(uint8_t)
	chosen;        /* by attr: of one event on several kinds of cores they are several */
	bool is_clock; /* it counts ns */
	/* For groups whose values are in each sample: the last value, by id. */
	struct vp_map index_of_id;
	VP_VEC(uint64_t) values;
};

/* The event of that name; without one, the first with samples that is no tracepoint, on all kinds
 * of cores. Errors: there are no samples of that event. */
struct vp_error *vp_perf_choice_make(const struct vp_perfdata *file, const char *name,
				     struct vp_perf_choice *ret) VP_MUST_CHECK;
/* Back to the first sample. */
void vp_perf_choice_rewind(struct vp_perf_choice *choice);
/* Whether the record may be, or have, a sample of the event. */
bool vp_perf_choice_has(const struct vp_perf_choice *choice,
			const struct vp_perfdata_record *record);
/* The samples of the event in a record, in turn: of each the number of events that it stands for.
 * *from is 0 first. Records come in order of time. */
bool vp_perf_choice_next(struct vp_perf_choice *choice, const struct vp_perfdata_record *record,
			 size_t *from, uint64_t *period);
/* A sentence on samples of other events that are left out, or NULL. */
char *vp_perf_choice_others(const struct vp_perf_choice *choice);

#endif
