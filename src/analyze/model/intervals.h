/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a recording's intervals: one row each; also as a data set for models. */
#ifndef VP_ANALYZE_MODEL_INTERVALS_H
#define VP_ANALYZE_MODEL_INTERVALS_H

#include "analyze/common/health.h"
#include "analyze/common/window.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/recipe.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "schema/vm.h"
#include "stats/data.h"
#include "store/recording.h"

struct vp_interval_cell {
	double value; /* count while the event was live, not scaled */
	double live;  /* from 0 to 1 */
};

struct vp_interval_row {
	struct vp_interval head;
	uint32_t pcpu;
	size_t cells; /* index of its first cell in the recording's */
};

struct vp_interval_recording {
	char *path;
	struct vp_recording recording;
	struct vp_recipe recipe;
	vp_vms vms;
	VP_VEC(struct vp_interval_row) rows; /* sorted by their end */
	VP_VEC(struct vp_interval_cell) cells;
	uint64_t lost;      /* number of lost intervals */
	vp_sentences notes; /* about lost, damaged or truncated data */
};

/* Reads all intervals of the recording in directory `path`. Errors: not a recording, or without
 * intervals. */
struct vp_error *vp_interval_recording_open(const char *path,
					    struct vp_interval_recording *ret) VP_MUST_CHECK;
/* Limits intervals to the window. Those at its borders are divided in proportion to time, and are
 * then partial; a note has the amount. */
void vp_interval_recording_cut(struct vp_interval_recording *rec, const struct vp_window *window);
void vp_interval_recording_close(struct vp_interval_recording *rec);

/* The estimated count for the whole interval; NaN: the event was never live. */
double vp_interval_estimate(const struct vp_interval_cell *cell);
/* "g1/0", "make/4711", "pCPU 3"; a new string. */
char *vp_interval_subject(const struct vp_interval_recording *rec,
			  const struct vp_interval_row *row);

/* Number of intervals that ended before the interval's event. */
uint64_t vp_interval_partial(const struct vp_interval_recording *rec);

/* Totals of an event over all rows. */
struct vp_interval_total {
	double estimate, counted; /* sums: scaled, and raw */
	double min_live, live;    /* minimum over rows; over all time */
};
/* `event`: index in the recipe. */
struct vp_interval_total vp_interval_total(const struct vp_interval_recording *rec, size_t event);

struct vp_interval_choice {
	const char *base;   /* event by which the others are divided; NULL: none */
	double per;         /* multiplier */
	const char *vm;     /* only these VMs' rows (analyze/filter.h); NULL: all */
	const bool *chosen; /* without `vm`: the same, by VM index; NULL: all */
	bool partial;       /* also partial intervals */
	bool subjects;      /* add a first column with the subjects */
	bool live;          /* add a column after each event: its live share */
};

/* The default base: instructions, or NULL. */
const char *vp_interval_usual_base(const struct vp_interval_recording *rec);
/* One column per event, divided by the base, which is left out; cycles per instruction are named
 * cpi and are the last column, the default target. Errors: no such base, or no rows with it. */
struct vp_error *vp_interval_data(const struct vp_interval_recording *rec,
				  const struct vp_interval_choice *choice,
				  struct vp_data *ret) VP_MUST_CHECK;

#endif
