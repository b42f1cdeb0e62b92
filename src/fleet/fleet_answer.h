/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of a Prometheus-compatible query API (/api/v1/query): a vector of series. */
#ifndef VP_FLEET_FLEET_ANSWER_H
#define VP_FLEET_FLEET_ANSWER_H

#include <stddef.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

/* Labels that are kept; others are ignored. */
enum vp_fleet_label {
	VP_FLEET_INSTANCE,
	VP_FLEET_VM,
	VP_FLEET_VCPU,
	VP_FLEET_THIEF,
	VP_FLEET_UUID,
	VP_FLEET_NAMESPACE,
	VP_FLEET_RECORDING,
	VP_FLEET_LABELS
};

struct vp_fleet_series {
	char *labels[VP_FLEET_LABELS]; /* "": not present */
	double value;
};

typedef VP_VEC(char *) vp_fleet_texts;

struct vp_fleet_answer {
	VP_VEC(struct vp_fleet_series) series; /* without series whose values are not numbers */
	vp_fleet_texts warnings;
};

/* Parses a reply. Unknown members and labels are ignored. Errors: malformed, or the error message
 * of the server. */
struct vp_error *vp_fleet_answer_parse(const char *text, size_t size,
				       struct vp_fleet_answer *ret) VP_MUST_CHECK;
void vp_fleet_answer_deinit(struct vp_fleet_answer *answer);

#endif
