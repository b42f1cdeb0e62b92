/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/nearest.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"

void vp_nearest_init(struct vp_nearest *nearest, struct vp_slice wanted)
{
	*nearest = (struct vp_nearest){.wanted = wanted};
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Levenshtein's distance, row by row of its table. */
static size_t distance_of(struct vp_slice wanted, const char *name, size_t size)
{
	size_t row[VP_NEAREST_SIZE];

	for (size_t j = 0; j <= size; j++)
		row[j] = j;
	for (size_t i = 1; i <= wanted.size; i++) {
		size_t diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= size; j++) {
			size_t change = diagonal + (wanted.bytes[i - 1] != name[j - 1]);
			diagonal = row[j];
			row[j] = least(change, least(row[j], row[j - 1]) + 1);
		}
	}
	return row[size];
}

/* Nearer than a half of the letters that are different; a part of a name is near it. */
static bool is_near(const struct vp_nearest *nearest, const char *name, size_t size,
		    size_t *distance)
{
	size_t longer = nearest->wanted.size > size ? nearest->wanted.size : size;

	*distance = distance_of(nearest->wanted, name, size);
	return 2 * *distance < longer ||
	       (nearest->wanted.size > 2 &&
		memmem(name, size, nearest->wanted.bytes, nearest->wanted.size));
}

void vp_nearest_add(struct vp_nearest *nearest, const char *name)
{
	size_t size = strlen(name), distance, at;

	if (size >= VP_NEAREST_SIZE || nearest->wanted.size >= VP_NEAREST_SIZE ||
	    !is_near(nearest, name, size, &distance))
		return;
	if (nearest->count < VP_NEAREST_MOST)
		nearest->count++;
	else if (distance >= nearest->best[VP_NEAREST_MOST - 1].distance)
		return;
	for (at = nearest->count - 1; at && distance < nearest->best[at - 1].distance; at--)
		nearest->best[at] = nearest->best[at - 1];
	memcpy(nearest->best[at].name, name, size + 1);
	nearest->best[at].distance = distance;
}

char *vp_nearest_text(const struct vp_nearest *nearest)
{
	struct vp_buffer text = {0};

	for (size_t i = 0; i < nearest->count; i++)
		vp_buffer_printf(&text, "%s%s",
				 !i                       ? " (did you mean "
				 : i + 1 < nearest->count ? ", "
							  : " or ",
				 nearest->best[i].name);
	if (nearest->count)
		vp_buffer_string(&text, "?)");
	char *copy = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	return copy;
}
