/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/report/report_joined.h"

#include <string.h>

#include "analyze/common/health.h"
#include "analyze/common/naming.h"
#include "analyze/profile/pass.h"
#include "analyze/profile/profile_sum.h"
#include "analyze/report/report_make.h"
#include "analyze/report/report_notes.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "base/vec.h"
#include "schema/weighting.h"
#include "store/recording.h"

struct joined {
	const struct vp_naming_options *naming;
	struct vp_profile_options options;
	struct vp_profile_sum sum;
	struct vp_report *report;
	struct vp_part_notes notes;
};

/* Whether a sample of one has the same weight in the other. */
static bool has_same_unit(const struct vp_recording *a, const struct vp_recording *b)
{
	if (a->weighting != b->weighting)
		return false;
	if (a->weighting == VP_WEIGHTING_TIME)
		return true;
	return a->period_ns == b->period_ns && !strcmp(a->trigger, b->trigger);
}

/* Stacks are counted if all recordings have them. Errors: samples that cannot be added. */
static struct vp_error *check_parts(struct joined *joined, const vp_recording_parts *parts)
{
	struct vp_recording first = {0}, other;
	struct vp_error *error = NULL;

	for (size_t i = 0; i < parts->count && !error; i++) {
		VP_AUTO_ERROR struct vp_error *unread =
		    vp_recording_read(parts->at[i].path, &other);
		if (unread)
			continue; /* becomes a note later */
		joined->options.chains &= other.chains || joined->options.needs_chains;
		if (first.tool && !has_same_unit(&first, &other))
			error = vp_error_new("the recordings of that time were sampled by "
					     "different events or rates: choose a part of it by "
					     "--time (from '%s' on it is another one)",
					     parts->at[i].path);
		if (first.tool) {
			vp_recording_deinit(&other);
			continue;
		}
		first = other;
	}
	vp_recording_deinit(&first);
	joined->options.by_callees &= joined->options.chains;
	return error;
}

/* Properties of the recording are those of the first part. */
static void take_part(struct joined *joined, struct vp_report *part, const char *path)
{
	struct vp_report *report = joined->report;
	bool complete = part->recording.end;

	report->lost += part->lost;
	report->duration += part->duration;
	vp_report_note_sources(part);
	vp_part_notes_add(&joined->notes, path, &part->notes);
	if (joined->notes.parts == 1) {
		report->begin = part->begin;
		report->recording = part->recording;
		report->recording.start = part->begin;
		part->recording = (struct vp_recording){0};
	}
	if (!complete)
		report->recording.end = 0;
}

/* `before`: the previous part, or NULL. */
static struct vp_error *joined_add(struct joined *joined, const struct vp_recording_part *part,
				   const struct vp_recording_part *before)
{
	struct vp_naming_options naming = *joined->naming;
	struct vp_profile_options options = joined->options;
	struct vp_report report;

	naming.directory = part->path;
	/* The end of a window is within it: a sample at that time counts once. */
	options.from = part->window.from + (before && before->window.to == part->window.from);
	options.to = part->window.to;
	struct vp_error *error = vp_report_read(&naming, &options, &joined->sum, &report);
	if (error && vp_error_kind(error) == VP_ERROR_USAGE)
		return error;
	if (error) {
		vp_part_notes_take(&joined->notes, vp_format("'%s' is left out: %s", part->path,
							     vp_error_message(error)));
		vp_error_free(error);
		return NULL;
	}
	take_part(joined, &report, part->path);
	vp_report_deinit(&report);
	return NULL;
}

static struct vp_error *joined_finish(struct joined *joined, const vp_recording_parts *parts)
{
	struct vp_report *report = joined->report;

	if (!joined->notes.parts)
		return vp_error_new("none of %zu recordings can be used: %s", parts->count,
				    joined->notes.notes.count ? joined->notes.notes.at[0].text
							      : "");
	VP_TRY(vp_profile_sum_finish(&joined->sum, &report->profile));
	vp_recording_parts_note(parts, &report->notes);
	vp_part_notes_finish(&joined->notes, &report->notes);
	vp_report_note_counts(report);
	return NULL;
}

struct vp_error *vp_report_joined_make(const char *name, const vp_recording_parts *parts,
				       const struct vp_naming_options *naming,
				       const struct vp_profile_options *options,
				       struct vp_report *ret)
{
	struct joined joined = {.naming = naming, .options = *options, .report = ret};

	*ret = (struct vp_report){.path = name};
	struct vp_error *error = check_parts(&joined, parts);
	ret->options = joined.options;
	vp_profile_sum_init(&joined.sum, &joined.options, &ret->vms);
	for (size_t i = 0; i < parts->count && !error; i++)
		error = joined_add(&joined, &parts->at[i], i ? &parts->at[i - 1] : NULL);
	if (!error)
		error = joined_finish(&joined, parts);
	vp_profile_sum_deinit(&joined.sum);
	vp_part_notes_finish(&joined.notes, &ret->notes);
	if (error)
		vp_report_deinit(ret);
	return error;
}
