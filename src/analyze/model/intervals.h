/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording's intervals, read: one row each, and as a data set for models. */
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
	double value; /* what was counted while the event was live, not scaled */
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
	VP_VEC(struct vp_interval_row) rows; /* in order of their end */
	VP_VEC(struct vp_interval_cell) cells;
	uint64_t lost;      /* intervals */
	vp_sentences notes; /* on what is lost, damaged or cut off */
};

/* Reads all intervals of the recording in directory `path`. Errors: no recording, or one without
 * intervals. */
struct vp_error *vp_interval_recording_open(const char *path,
					    struct vp_interval_recording *ret) VP_MUST_CHECK;
/* Leaves out what is not of the window. Intervals at its borders are divided in proportion to time,
 * and are from then on partial ones: a note reports how much that is. */
void vp_interval_recording_cut(struct vp_interval_recording *rec, const struct vp_window *window);
void vp_interval_recording_close(struct vp_interval_recording *rec);

/* The estimated count for the whole interval; NaN: the event was never live. */
double vp_interval_estimate(const struct vp_interval_cell *cell);
/* "g1/0", "make/4711", "pCPU 3"; a new string. */
char *vp_interval_subject(const struct vp_interval_recording *rec,
			  const struct vp_interval_row *row);

/* Intervals that ended before their trigger came. */
uint64_t vp_interval_partial(const struct vp_interval_recording *rec);

/* An event over all rows. */
struct vp_interval_total {
	double estimate, counted; /* sums: scaled, and as counted */
	double min_live, live;    /* in any row; over all time */
};
/* `event`: index in the recipe. */
struct vp_interval_total vp_interval_total(const struct vp_interval_recording *rec, size_t event);

struct vp_interval_choice {
	const char *base;   /* event by which the others are divided; NULL: none */
	double per;         /* their number */
	const char *vm;     /* only these VMs' rows (analyze/filter.h); NULL: all */
	const bool *chosen; /* without `vm`: the same, by index in the list of VMs; NULL: all */
	bool partial;       /* also intervals that ended before their trigger */
	bool subjects;      /* a first column of words: whose interval it is */
	bool live;          /* a column after each event: for how long it was live */
};

/* The default event that others are divided by: instructions, or NULL. */
const char *vp_interval_usual_base(const struct vp_interval_recording *rec);
/*
 * One column per event, each divided by the base. The base itself is left out; cycles by one
 * instruction are called cpi and are the last column, the usual target. An error: no such base, no
 * rows that have it.
 */
struct vp_error *vp_interval_data(const struct vp_interval_recording *rec,
				  const struct vp_interval_choice *choice,
				  struct vp_data *ret) VP_MUST_CHECK;

#endif
