/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/model_compare.h"

#include <math.h>
#include <string.h>

#include "render/decimal.h"
#include "render/table.h"

/* How much more the group is when virtualized. */
static double more(const struct vp_compared_group *group)
{
	return group->part[VP_VIRTUAL] - group->part[VP_NATIVE];
}

/* In percent of what the mean is more; NaN if it is the same. */
static double share(const struct vp_comparison *c, double part)
{
	double all = c->mean[VP_VIRTUAL] - c->mean[VP_NATIVE];

	return all != 0 ? 100 * part / all : NAN;
}

static double inflation(const double *sides)
{
	return sides[VP_VIRTUAL] / sides[VP_NATIVE];
}

static int name_width(const struct vp_comparison *c)
{
	size_t width = strlen("(constant)");

	vp_vec_each (&c->groups, group)
		width = strlen(group->name) > width ? strlen(group->name) : width;
	return width > 48 ? 48 : (int)width;
}

static void put_line(const struct vp_comparison *c, const char *name, int width,
		     const double *sides, struct vp_buffer *out)
{
	double all = sides[VP_VIRTUAL] - sides[VP_NATIVE], percent = share(c, all);

	vp_buffer_printf(out, "%-*s  %12.6g  %12.6g  %12.6g", width, name, sides[VP_NATIVE],
			 sides[VP_VIRTUAL], all);
	if (isnan(percent))
		vp_buffer_printf(out, "  %12s\n", "-");
	else
		vp_buffer_printf(out, "  %12.2f\n", percent);
}

void vp_render_comparison_text(const struct vp_comparison *c, struct vp_buffer *out)
{
	int width = name_width(c);

	vp_buffer_printf(out, "%s: native %.6g, virtualized %.6g: %.4f times\n", c->target,
			 c->mean[VP_NATIVE], c->mean[VP_VIRTUAL], inflation(c->mean));
	vp_buffer_printf(out, "Path length: native %.6g, virtualized %.6g: %.4f times\n",
			 c->path[VP_NATIVE], c->path[VP_VIRTUAL], inflation(c->path));
	vp_buffer_printf(out, "Both together: %.4f times\n\n",
			 inflation(c->mean) * inflation(c->path));
	vp_buffer_printf(out, "%-*s  %12s  %12s  %12s  %12s\n", width, "Group", "Native",
			 "Virtualized", "More", "% of more");
	vp_vec_each (&c->groups, group)
		put_line(c, group->name, width, group->part, out);
	put_line(c, "Sum", width, c->mean, out);
	vp_buffer_printf(out, "\nCorrelation of each side's model: native %.4f, virtualized %.4f\n",
			 c->correlation[VP_NATIVE], c->correlation[VP_VIRTUAL]);
}

void vp_render_comparison_csv(const struct vp_comparison *c, struct vp_buffer *out)
{
	vp_buffer_string(out, "group,native,virtualized,more,share_percent\n");
	vp_vec_each (&c->groups, group) {
		const double values[] = {group->part[VP_NATIVE], group->part[VP_VIRTUAL],
					 more(group), share(c, more(group))};
		vp_render_csv_field(group->name, out);
		for (size_t i = 0; i < VP_ARRAY_SIZE(values); i++) {
			vp_buffer_string(out, ",");
			if (isfinite(values[i]))
				vp_render_json_number(values[i], out);
		}
		vp_buffer_string(out, "\n");
	}
}

static void put_pair(const char *key, double value, struct vp_buffer *out)
{
	vp_buffer_printf(out, ", \"%s\": ", key);
	vp_render_json_number(value, out);
}

void vp_render_comparison_json(const struct vp_comparison *c, struct vp_buffer *out)
{
	static const char *const names[] = {"native", "virtualized"};

	vp_buffer_string(out, "{\"target\": ");
	vp_render_json_text(c->target, out);
	for (size_t side = 0; side < VP_SIDES; side++) {
		vp_buffer_printf(out, ",\n\"%s\": {\"rows\": %zu", names[side], c->rows[side]);
		put_pair("mean", c->mean[side], out);
		put_pair("path", c->path[side], out);
		put_pair("correlation", c->correlation[side], out);
		vp_buffer_string(out, "}");
	}
	put_pair("inflation", inflation(c->mean), out);
	put_pair("path_inflation", inflation(c->path), out);
	vp_buffer_string(out, ",\n\"groups\": [");
	for (size_t i = 0; i < c->groups.count; i++) {
		const struct vp_compared_group *group = &c->groups.at[i];
		vp_buffer_string(out, i ? ",\n{\"name\": " : "{\"name\": ");
		vp_render_json_text(group->name, out);
		put_pair("native", group->part[VP_NATIVE], out);
		put_pair("virtualized", group->part[VP_VIRTUAL], out);
		put_pair("more", more(group), out);
		put_pair("share_percent", share(c, more(group)), out);
		vp_buffer_string(out, "}");
	}
	vp_buffer_string(out, "]}");
}
