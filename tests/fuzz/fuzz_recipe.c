/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recipe from anybody: read it; what is read is in bounds, and is the same when written again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(const struct vp_recipe *recipe)
{
	if (!recipe->width || recipe->n_sets > recipe->sub_intervals || !recipe->events.count ||
	    recipe->events.count > VP_EVENTS_MAX || recipe->n_counters > VP_COUNTERS_MAX)
		abort();
	vp_vec_each (&recipe->events, event) {
		const uint32_t most[] = {[VP_FROM_COUNTER] = recipe->n_counters,
					 [VP_FROM_COUNT] = VP_COUNTS,
					 [VP_FROM_GUEST] = VP_GUEST_COUNT};
		if (event->event.index >= most[event->event.source] || event->set > recipe->n_sets)
			abort();
	}
}

static void check_written(const struct vp_recipe *recipe)
{
	struct vp_buffer first = {0}, second = {0};
	struct vp_recipe again;

	vp_recipe_write(recipe, &first);
	if (vp_recipe_parse("again", first.bytes, first.size, &again))
		abort();
	vp_recipe_write(&again, &second);
	if (first.size != second.size || memcmp(first.bytes, second.bytes, first.size))
		abort();
	vp_recipe_deinit(&again);
	vp_buffer_deinit(&first);
	vp_buffer_deinit(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct vp_recipe recipe;
	struct vp_error *error = vp_recipe_parse("recipe", bytes, size, &recipe);

	if (!error) {
		check(&recipe);
		check_written(&recipe);
		error = vp_recipe_make_native("recipe", &recipe);
		if (!error)
			check(&recipe);
		vp_recipe_deinit(&recipe);
	}
	vp_error_free(error);
	return 0;
}
