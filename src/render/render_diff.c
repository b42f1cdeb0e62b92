/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/render_diff.h"

#include <stdio.h>
#include <string.h>

#include "analyze/common/health.h"
#include "analyze/common/table.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "render/render_table.h"

static void put_number(double value, const char *unit, const char *sign, char text[32])
{
	const char *const formats[] = {"%.0f%s", "%.2f%s", "%+.0f%s", "%+.2f%s"};
	bool percent = !strcmp(unit, "%");

	/* Avoids -0. A number that merely rounds to 0 keeps its sign, which determines the
	 * verdict. */
	value = value == 0 ? 0 : value;
	if (sign)
		snprintf(text, 32, formats[2 + percent], value, unit);
	else
		snprintf(text, 32, formats[percent], value, unit);
}

void vp_render_diff_text(const struct vp_diff *diff, const char *before, const char *after,
			 size_t width, struct vp_buffer *out)
{
	static const char *const least[] = {"95% from", "to", "After", "Before", NULL};
	struct vp_table table = {0};
	vp_sentences kept = {0};
	static const char *const headers[] = {"VM",     "Measure",  "Before", "After",
					      "Change", "95% from", "to",     "Verdict"};

	vp_buffer_printf(out, "# vperf diff of '%s' and '%s': shares of the vCPUs' time\n", before,
			 after);
	vp_vec_each (&diff->notes, note)
		vp_buffer_printf(out, "# %s\n", *note);
	vp_buffer_string(out, "\n");
	for (size_t i = 0; i < VP_ARRAY_SIZE(headers); i++)
		vp_table_column_add(&table, headers[i], headers[i], "", VP_CELL_TEXT);
	vp_vec_each (&diff->rows, row) {
		const char *unit = vp_diff_measure_unit(row->measure);
		const double values[] = {row->before, row->after, row->after - row->before,
					 row->low, row->high};
		vp_table_text(&table, row->vm);
		vp_table_text(&table, vp_diff_measure_name(row->measure));
		for (size_t i = 0; i < VP_ARRAY_SIZE(values); i++) {
			char text[32];
			put_number(values[i], unit, i >= 2 ? "+" : NULL, text);
			vp_vec_push(&kept, vp_strdup(text));
			vp_table_text(&table, i >= 3 && row->verdict == VP_DIFF_UNKNOWN
						  ? NULL
						  : kept.at[kept.count - 1]);
		}
		vp_table_text(&table, vp_diff_verdict_name(row->verdict));
	}
	table.least = least;
	table.whole = "--csv has all";
	vp_render_table_fitted(&table, width, false, out);
	vp_table_deinit(&table);
	vp_vec_each (&kept, text)
		free(*text);
	vp_vec_deinit(&kept);
}

void vp_render_diff_json(const struct vp_diff *diff, const char *before, const char *after,
			 struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_answer(&json);
	vp_json_line(&json);
	vp_json_text(&json, "before", before);
	vp_json_text(&json, "after", after);
	vp_json_line(&json);
	vp_json_array(&json, "notes");
	vp_vec_each (&diff->notes, note)
		vp_json_text(&json, NULL, *note);
	vp_json_array_end(&json);
	vp_json_line(&json);
	vp_json_array(&json, "differences");
	vp_vec_each (&diff->rows, row) {
		vp_json_line(&json);
		vp_json_object(&json, NULL);
		vp_json_text(&json, "vm", row->vm);
		vp_json_text(&json, "measure", vp_diff_measure_name(row->measure));
		vp_json_text(&json, "unit", vp_diff_measure_unit(row->measure));
		vp_json_double(&json, "before", row->before);
		vp_json_double(&json, "after", row->after);
		vp_json_double(&json, "change", row->after - row->before);
		if (row->verdict == VP_DIFF_UNKNOWN) {
			vp_json_null(&json, "low");
			vp_json_null(&json, "high");
		} else {
			vp_json_double(&json, "low", row->low);
			vp_json_double(&json, "high", row->high);
		}
		vp_json_text(&json, "verdict", vp_diff_verdict_name(row->verdict));
		vp_json_object_end(&json);
	}
	vp_json_array_end(&json);
	vp_json_line(&json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

void vp_render_diff_csv(const struct vp_diff *diff, struct vp_buffer *out)
{
	vp_buffer_string(out, "vm,measure,unit,before,after,change,low,high,verdict\n");
	vp_vec_each (&diff->rows, row) {
		vp_render_csv_field(row->vm, out);
		vp_buffer_printf(out, ",%s,%s,%.9g,%.9g,%.9g,", vp_diff_measure_name(row->measure),
				 vp_diff_measure_unit(row->measure), row->before, row->after,
				 row->after - row->before);
		if (row->verdict == VP_DIFF_UNKNOWN)
			vp_buffer_string(out, ",");
		else
			vp_buffer_printf(out, "%.9g,%.9g", row->low, row->high);
		vp_buffer_printf(out, ",%s\n", vp_diff_verdict_name(row->verdict));
	}
}
