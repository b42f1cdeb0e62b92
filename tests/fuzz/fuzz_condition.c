/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A flight recorder's condition from anybody: what is read is the same when written again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/condition.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(const struct vp_conditions *conditions)
{
	size_t wanted = 0;

	for (int i = 0; i < VP_CONDITIONS; i++) {
		struct vp_conditions again = {0};
		if (!conditions->wanted[i])
			continue;
		wanted++;
		VP_AUTO_FREE char *text = vp_condition_text(conditions, (enum vp_condition)i);
		if (vp_conditions_add(&again, text, strlen(text)) || !again.wanted[i] ||
		    again.ns[i] != conditions->ns[i])
			abort();
		if ((conditions->ns[i] == 0) != (i == VP_CONDITION_THROTTLED))
			abort();
	}
	if (wanted != 1)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct vp_conditions conditions = {0};
	struct vp_error *error = vp_conditions_add(&conditions, (const char *)bytes, size);
	uint64_t ns;

	if (!error)
		check(&conditions);
	vp_error_free(error);
	error = vp_duration_parse("snapshot-after", (const char *)bytes, size, true, &ns);
	if (!error && ns > 3600000000000)
		abort();
	vp_error_free(error);
	return 0;
}
