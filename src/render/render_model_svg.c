/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <math.h>

#include "analyze/model/model_compare.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "base/vec.h"
#include "render/render_model_compare.h"

/* In pixels. Negative parts extend below the base line. */
enum { WIDTH = 720, HEIGHT = 420, TOP = 30, PLOT = 340, LEFT = 70, BAR = 110, GAP = 60, KEY = 440 };

/* The palette of Okabe and Ito, which is safe for colour-blind readers. */
static const char *const colours[] = {"#0072B2", "#E69F00", "#009E73", "#CC79A7",
				      "#56B4E9", "#D55E00", "#F0E442", "#999999"};

struct scale {
	double low, high;
};

static double y_of(const struct scale *scale, double value)
{
	return TOP + PLOT * (scale->high - value) / (scale->high - scale->low);
}

static void render_model_svg_put_escaped(const char *text, struct vp_buffer *out)
{
	for (; *text; text++)
		if (*text == '<' || *text == '&' || *text == '"')
			vp_buffer_printf(out, "&#%d;", *text);
		else if ((unsigned char)*text >= ' ')
			vp_buffer_append(out, text, 1);
}

static struct scale scale_of(const struct vp_comparison *c)
{
	struct scale scale = {0, 0};

	for (size_t side = 0; side < VP_SIDES; side++) {
		double above = 0, below = 0;
		vp_vec_each (&c->groups, group) {
			above += fmax(group->part[side], 0);
			below += fmin(group->part[side], 0);
		}
		scale.high = fmax(scale.high, above);
		scale.low = fmin(scale.low, below);
	}
	if (!(scale.high > scale.low))
		scale.high = scale.low + 1;
	return scale;
}

static void put_bar(const struct vp_comparison *c, size_t side, const struct scale *scale,
		    struct vp_buffer *out)
{
	double above = 0, below = 0;
	int x = LEFT + GAP + (int)side * (BAR + GAP);

	for (size_t i = 0; i < c->groups.count; i++) {
		double part = c->groups.at[i].part[side];
		double *from = part < 0 ? &below : &above;
		double top = y_of(scale, fmax(*from, *from + part));
		vp_buffer_printf(out,
				 "<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" "
				 "fill=\"%s\"><title>",
				 x, top, BAR, y_of(scale, fmin(*from, *from + part)) - top,
				 colours[i % VP_ARRAY_SIZE(colours)]);
		render_model_svg_put_escaped(c->groups.at[i].name, out);
		vp_buffer_printf(out, ": %.6g</title></rect>\n", part);
		*from += part;
	}
	vp_buffer_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s %.4g</text>\n",
			 x + BAR / 2, TOP + PLOT + 30, side ? "virtualized" : "native",
			 c->mean[side]);
}

static void render_model_svg_put_key(const struct vp_comparison *c, struct vp_buffer *out)
{
	for (size_t i = 0; i < c->groups.count; i++) {
		size_t y = TOP + 18 * i;
		vp_buffer_printf(out,
				 "<rect x=\"%d\" y=\"%zu\" width=\"12\" height=\"12\" "
				 "fill=\"%s\"/><text x=\"%d\" y=\"%zu\">",
				 KEY, y, colours[i % VP_ARRAY_SIZE(colours)], KEY + 18, y + 11);
		render_model_svg_put_escaped(c->groups.at[i].name, out);
		vp_buffer_string(out, "</text>\n");
	}
}

void vp_render_comparison_svg(const struct vp_comparison *c, struct vp_buffer *out)
{
	struct scale scale = scale_of(c);
	size_t keys = TOP + 18 * (c->groups.count + 1);

	vp_buffer_printf(out,
			 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" "
			 "font-family=\"sans-serif\" font-size=\"13\">\n<text x=\"10\" y=\"20\">",
			 WIDTH, keys > HEIGHT ? keys : (size_t)HEIGHT);
	render_model_svg_put_escaped(c->target, out);
	vp_buffer_string(out, "</text>\n");
	for (size_t side = 0; side < VP_SIDES; side++)
		put_bar(c, side, &scale, out);
	vp_buffer_printf(out,
			 "<path d=\"M%d %.2fH%d\" stroke=\"black\"/>\n"
			 "<text x=\"%d\" y=\"%.2f\" text-anchor=\"end\">0</text>\n"
			 "<text x=\"%d\" y=\"%.2f\" text-anchor=\"end\">%.4g</text>\n",
			 LEFT, y_of(&scale, 0), KEY - GAP, LEFT - 6, y_of(&scale, 0) + 4, LEFT - 6,
			 y_of(&scale, scale.high) + 4, scale.high);
	render_model_svg_put_key(c, out);
	vp_buffer_string(out, "</svg>\n");
}
