/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The chart of a comparison: what is drawn is as high as what it stands for, one part on the other.
 */
#include "unit.h"

#include <stdio.h>

#include "analyze/model/model_compare.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "render/render_model_compare.h"

enum { TOP = 30, PLOT = 340, KEY = 440 };

struct box {
	double x, y, width, height;
	char fill[16], title[64];
};
typedef VP_VEC(struct box) boxes;

/* All rectangles with a title: of the bars, not of the key. */
static void read_boxes(const char *svg, boxes *ret)
{
	for (const char *at = svg; (at = strstr(at, "<rect ")); at++) {
		struct box box;
		if (sscanf(at,
			   "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\" "
			   "fill=\"%15[^\"]\"><title>%63[^<]",
			   &box.x, &box.y, &box.width, &box.height, box.fill, box.title) == 6)
			vp_vec_push(ret, box);
	}
}

static void expect_near(double value, double expected)
{
	if (value < expected - 0.011 || value > expected + 0.011)
		fail_msg("%.3f is not %.3f", value, expected);
}

/* 10 units above 0 and 2 below are the whole plot. */
static void test_bars(void **state)
{
	static const struct {
		const char *name;
		double part[2];
	} groups[] = {{"base", {6, 3}}, {"misses & <more>", {4, -2}}, {"constant", {-1, 5}}};
	struct vp_comparison c = {.target = (char *)"CPI \"x\"", .mean = {9, 6}};
	struct vp_buffer out = {0};
	boxes found = {0};
	double above[2] = {0}, below[2] = {0};

	for (size_t i = 0; i < VP_ARRAY_SIZE(groups); i++)
		vp_vec_push(&c.groups, ((struct vp_compared_group){
					   .name = (char *)groups[i].name,
					   .part = {groups[i].part[0], groups[i].part[1]}}));
	vp_render_comparison_svg(&c, &out);
	read_boxes(vp_buffer_text(&out), &found);
	assert_int_equal(found.count, 2 * VP_ARRAY_SIZE(groups));
	for (size_t i = 0; i < found.count; i++) {
		size_t side = i / VP_ARRAY_SIZE(groups), group = i % VP_ARRAY_SIZE(groups);
		double part = groups[group].part[side], *from = part < 0 ? below : above;
		const struct box *box = &found.at[i];
		double high = part < 0 ? from[side] : from[side] + part;
		expect_near(box->height, PLOT * (part < 0 ? -part : part) / 12);
		expect_near(box->y, TOP + PLOT * (10 - high) / 12);
		from[side] += part;
		/* A bar is one column, in sight, and not in the other one or the key. */
		assert_true(box->x == found.at[side * VP_ARRAY_SIZE(groups)].x);
		assert_true(box->x + box->width < (side ? KEY : found.at[found.count - 1].x));
		/* A group has the same colour in both, and no other has it. */
		assert_string_equal(box->fill, found.at[group].fill);
		for (size_t other = 0; other < group; other++)
			assert_string_not_equal(box->fill, found.at[other].fill);
	}
	assert_string_equal(found.at[0].title, "base: 6");
	assert_string_equal(found.at[1].title, "misses &#38; &#60;more>: 4");
	assert_string_equal(found.at[5].title, "constant: 5");
	/* The line is at 0, the label of the top at its value. */
	assert_non_null(strstr(vp_buffer_text(&out), "<path d=\"M70 313.33H"));
	assert_non_null(strstr(vp_buffer_text(&out), "y=\"34.00\" text-anchor=\"end\">10</text>"));
	assert_non_null(strstr(vp_buffer_text(&out), ">native 9</text>"));
	assert_non_null(strstr(vp_buffer_text(&out), ">virtualized 6</text>"));
	assert_non_null(strstr(vp_buffer_text(&out), ">CPI &#34;x&#34;</text>"));
	assert_non_null(strstr(vp_buffer_text(&out), ">misses &#38; &#60;more></text>"));
	vp_vec_deinit(&found);
	vp_vec_deinit(&c.groups);
	vp_buffer_deinit(&out);
}

/* Nothing to draw is no division by 0. */
static void test_nothing(void **state)
{
	struct vp_comparison c = {.target = (char *)"CPI"};
	struct vp_buffer out = {0};

	vp_vec_push(&c.groups, ((struct vp_compared_group){.name = (char *)"constant"}));
	vp_render_comparison_svg(&c, &out);
	assert_null(strstr(vp_buffer_text(&out), "nan"));
	assert_null(strstr(vp_buffer_text(&out), "inf"));
	assert_non_null(strstr(vp_buffer_text(&out), "height=\"0.00\""));
	vp_vec_deinit(&c.groups);
	vp_buffer_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_bars),
					   cmocka_unit_test(test_nothing)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
