/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/render_model_compare.h"

#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "base/macros.h"
#include "base/vec.h"
#include "render/render_table.h"

/* The increase of the group from native to virtualized. */
static double more(const struct vp_compared_group *group)
{
	return group->part[VP_VIRTUAL] - group->part[VP_NATIVE];
}

/* Percent of the increase of the mean; NaN if the mean did not change. */
static double render_model_compare_share(const struct vp_comparison *c, double part)
{
	double all = c->mean[VP_VIRTUAL] - c->mean[VP_NATIVE];

	return all != 0 ? 100 * part / all : NAN;
}

static double inflation(const double *sides)
{
	return sides[VP_VIRTUAL] / sides[VP_NATIVE];
}

static int render_model_compare_name_width(const struct vp_comparison *c)
{
	size_t width = strlen("(constant)");

	vp_vec_each (&c->groups, group)
		width = strlen(group->name) > width ? strlen(group->name) : width;
	return width > 48 ? 48 : (int)width;
}

static void put_group_line(const struct vp_comparison *c, const char *name, int width,
			   const double *sides, struct vp_buffer *out)
{
	double all = sides[VP_VIRTUAL] - sides[VP_NATIVE],
	       percent = render_model_compare_share(c, all);

	vp_buffer_printf(out, "%-*s  %12.6g  %12.6g  %12.6g", width, name, sides[VP_NATIVE],
			 sides[VP_VIRTUAL], all);
	if (isnan(percent))
		vp_buffer_printf(out, "  %12s\n", "-");
	else
		vp_buffer_printf(out, "  %12.2f\n", percent);
}

void vp_render_comparison_text(const struct vp_comparison *c, struct vp_buffer *out)
{
	int width = render_model_compare_name_width(c);

	vp_buffer_printf(out, "%s: native %.6g, virtualized %.6g: %.4f times\n", c->target,
			 c->mean[VP_NATIVE], c->mean[VP_VIRTUAL], inflation(c->mean));
	vp_buffer_printf(out, "Path length: native %.6g, virtualized %.6g: %.4f times\n",
			 c->path[VP_NATIVE], c->path[VP_VIRTUAL], inflation(c->path));
	vp_buffer_printf(out, "Combined: %.4f times\n\n", inflation(c->mean) * inflation(c->path));
	vp_buffer_printf(out, "%-*s  %12s  %12s  %12s  %12s\n", width, "Group", "Native",
			 "Virtualized", "More", "% of increase");
	vp_vec_each (&c->groups, group)
		put_group_line(c, group->name, width, group->part, out);
	put_group_line(c, "Sum", width, c->mean, out);
	vp_buffer_printf(out, "\nCorrelation of each side's model: native %.4f, virtualized %.4f\n",
			 c->correlation[VP_NATIVE], c->correlation[VP_VIRTUAL]);
}

void vp_render_comparison_csv(const struct vp_comparison *c, struct vp_buffer *out)
{
	vp_buffer_string(out, "group,native,virtualized,more,share_percent\n");
	vp_vec_each (&c->groups, group) {
		const double values[] = {group->part[VP_NATIVE], group->part[VP_VIRTUAL],
					 more(group), render_model_compare_share(c, more(group))};
		vp_render_csv_field(group->name, out);
		for (size_t i = 0; i < VP_ARRAY_SIZE(values); i++) {
			vp_buffer_string(out, ",");
			if (isfinite(values[i]))
				vp_json_put_number(values[i], out);
		}
		vp_buffer_string(out, "\n");
	}
}

void vp_render_comparison_json(const struct vp_comparison *c, const char *key, struct vp_json *json)
{
	static const char *const names[] = {"native", "virtualized"};

	vp_json_object(json, key);
	vp_json_text(json, "target", c->target);
	for (size_t side = 0; side < VP_SIDES; side++) {
		vp_json_line(json);
		vp_json_object(json, names[side]);
		vp_json_count(json, "rows", c->rows[side]);
		vp_json_number(json, "mean", c->mean[side]);
		vp_json_number(json, "path", c->path[side]);
		vp_json_number(json, "correlation", c->correlation[side]);
		vp_json_object_end(json);
	}
	vp_json_number(json, "inflation", inflation(c->mean));
	vp_json_number(json, "path_inflation", inflation(c->path));
	vp_json_line(json);
	vp_json_array(json, "groups");
	for (size_t i = 0; i < c->groups.count; i++) {
		const struct vp_compared_group *group = &c->groups.at[i];
		if (i)
			vp_json_line(json);
		vp_json_object(json, NULL);
		vp_json_text(json, "name", group->name);
		vp_json_number(json, "native", group->part[VP_NATIVE]);
		vp_json_number(json, "virtualized", group->part[VP_VIRTUAL]);
		vp_json_number(json, "more", more(group));
		vp_json_number(json, "share_percent", render_model_compare_share(c, more(group)));
		vp_json_object_end(json);
	}
	vp_json_array_end(json);
	vp_json_object_end(json);
}
