/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters over time, for the page. */
#include "analyze/model/interval_bins.h"
#include "analyze/model/intervals.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/vec.h"
#include "render/page_parts.h"
#include "render/render_intervals.h"

enum { MAX_NUMBERS = 300000 };

static void put_events(const struct vp_interval_recording *rec, struct vp_json *json)
{
	vp_json_array(json, "events");
	vp_vec_each (&rec->recipe.events, event) {
		vp_json_object(json, NULL);
		vp_json_text(json, "name", event->name);
		vp_json_text(json, "unit", event->event.unit);
		vp_json_object_end(json);
	}
	vp_json_array_end(json);
}

/* Per bin and event: the count, and the ns for which it was counted; null: not counted. */
static void put_subject(const struct vp_interval_bins *bins,
			const struct vp_interval_bins_subject *subject, struct vp_json *json)
{
	vp_json_line(json);
	vp_json_object(json, NULL);
	vp_json_text(json, "name", vp_intern_text(&bins->texts, subject->name));
	vp_json_count(json, "intervals", subject->intervals);
	vp_json_array(json, "values");
	for (size_t i = 0; i < bins->count * (bins->events + 1); i++)
		vp_json_amount(json, NULL, bins->values.at[subject->first + i]);
	vp_json_array_end(json);
	vp_json_object_end(json);
}

void vp_page_put_intervals(const struct vp_interval_recording *rec, struct vp_json *json)
{
	VP_AUTO_FREE char *plan = vp_render_intervals_plan(rec);
	struct vp_interval_bins bins;

	vp_interval_bins_make(rec, MAX_NUMBERS, &bins);
	vp_json_line(json);
	vp_json_object(json, "intervals");
	vp_json_text(json, "plan", plan);
	vp_json_count(json, "beginNs", bins.subjects.count ? bins.begin : 0);
	vp_json_count(json, "binNs", bins.width);
	vp_json_count(json, "bins", bins.count);
	vp_json_count(json, "leftOut", bins.left_out);
	put_events(rec, json);
	vp_json_array(json, "subjects");
	vp_vec_each (&bins.subjects, subject)
		put_subject(&bins, subject, json);
	vp_json_array_end(json);
	vp_json_object_end(json);
	vp_interval_bins_deinit(&bins);
}
