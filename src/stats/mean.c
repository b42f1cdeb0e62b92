/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stats/mean.h"

#include <math.h>

#include "base/macros.h"

struct vp_mean vp_mean_of(const vp_observations *all, double scale)
{
	double amount = 0, whole = 0, largest = 0, squares = 0;
	struct vp_mean ret = {0};

	vp_vec_each (all, one) {
		amount += one->amount;
		whole += one->whole;
		largest = fmax(largest, one->whole);
	}
	ret.value = whole > 0 ? scale * amount / whole : 0;
	vp_vec_each (all, one) {
		if (one->whole < largest / 2)
			continue;
		double off = scale * one->amount / one->whole - ret.value;
		squares += off * off;
		ret.count++;
	}
	if (ret.count > 1)
		ret.error_squared = squares / (double)(ret.count - 1) / (double)ret.count;
	return ret;
}

double vp_student(double degrees)
{
	static const double values[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
					2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
					2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
	size_t below = degrees < 1 ? 1 : (size_t)degrees;

	if (below <= VP_ARRAY_SIZE(values))
		return values[below - 1];
	return 1.960 + 2.5 / degrees;
}

double vp_mean_margin(const struct vp_mean *mean)
{
	return vp_student((double)(mean->count - 1)) * sqrt(mean->error_squared);
}
