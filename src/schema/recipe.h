/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A recipe: which events are counted over which intervals. A text of statements, one a line, words
 * separated by blanks, `#` begins a comment:
 *
 *   interval UNIT WIDTH     what closes an interval: `time` (with ns, us, ms or s), `exits`, or one
 *                           of perf's events (with k, M or G)
 *   per vcpu|task|pcpu      whose intervals
 *   native                  without a hypervisor, see vp_recipe_make_native()
 *   duration SECONDS
 *   sub-intervals N         number of equal parts of an interval, for multiplexing sets
 *   set EVENT...            a group of counters; sets are multiplexed if they do not all fit
 *   count EVENT...          events that are counted over the whole interval
 */
#ifndef VP_SCHEMA_RECIPE_H
#define VP_SCHEMA_RECIPE_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/event.h"
#include "schema/interval.h"

/* Position in the recipe's text, counted from 1; line 0: none. */
struct vp_recipe_position {
	size_t line, column;
};

struct vp_recipe_event {
	char *name;
	struct vp_recipe_position position;
	struct vp_event event;
	uint32_t set; /* set number from 1; 0: counted over the whole interval */
};

struct vp_recipe {
	enum vp_interval_unit unit;
	char *unit_name;
	struct vp_recipe_position unit_position;
	struct vp_event trigger; /* with VP_UNIT_EVENT */
	uint64_t width;          /* events, exits or ns */
	enum vp_interval_per per;
	bool native;
	uint64_t duration;      /* s; 0: unlimited */
	uint32_t sub_intervals; /* at least n_sets; 0 without sets */
	uint32_t n_sets, n_counters;
	VP_VEC(struct vp_recipe_event) events; /* indexed by the number in interval_value records */
};

/* Parses a recipe; `label` (the file's name) is in errors, with line and column. Errors: the first
 * malformed statement. */
struct vp_error *vp_recipe_parse(const char *label, const void *text, size_t size,
				 struct vp_recipe *ret) VP_MUST_CHECK;
/* The same for the file at `path`. */
struct vp_error *vp_recipe_read(const char *path, struct vp_recipe *ret) VP_MUST_CHECK;
/* An error with `label`, the position and the sentence, which is freed. */
struct vp_error *vp_recipe_fail(const char *label, struct vp_recipe_position position,
				char *sentence) VP_MUST_CHECK;
/* Appends the recipe as text. */
void vp_recipe_write(const struct vp_recipe *recipe, struct vp_buffer *text);
void vp_recipe_deinit(struct vp_recipe *recipe);

/*
 * Converts the recipe for use without a hypervisor, per task or (with `per pcpu`) per pCPU: guest
 * events are replaced by perf events with the same meaning, if any. Errors: intervals of VM exits.
 * `label` as for vp_recipe_parse(), here and below.
 */
struct vp_error *vp_recipe_make_native(const char *label, struct vp_recipe *recipe) VP_MUST_CHECK;
/* Sets the subject of the intervals: "vcpu", "task" or "pcpu". */
struct vp_error *vp_recipe_set_per(const char *label, struct vp_recipe *recipe,
				   const char *per) VP_MUST_CHECK;
/* The number of the event with that name, or VP_EVENTS_MAX. */
uint32_t vp_recipe_find(const struct vp_recipe *recipe, const char *name);

#endif
