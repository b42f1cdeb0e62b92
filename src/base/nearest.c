/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"

void vp_nearest_init(struct vp_nearest *nearest, struct vp_slice wanted)
{
	*nearest = (struct vp_nearest){.wanted = wanted};
}

static size_t nearest_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment distance: letters to change, insert, delete, or swap with the next one.
 * Computed row by row; the two previous rows are kept, for swaps. */
static size_t distance_of(struct vp_slice wanted, const char *name, size_t size)
{
	size_t rows[3][VP_NEAREST_SIZE];

	for (size_t j = 0; j <= size; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= wanted.size; i++) {
		size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *top = rows[(i + 1) % 3];
		row[0] = i;
		for (size_t j = 1; j <= size; j++) {
			bool differs = wanted.bytes[i - 1] != name[j - 1];
			row[j] = nearest_min(above[j - 1] + differs,
					     nearest_min(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && wanted.bytes[i - 1] == name[j - 2] &&
			    wanted.bytes[i - 2] == name[j - 1])
				row[j] = nearest_min(row[j], top[j - 2] + 1);
		}
	}
	return rows[wanted.size % 3][size];
}

/* Near: distance below half of the differing letters; a substring is always near. */
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
	if (nearest->count < VP_NEAREST_MAX)
		nearest->count++;
	else if (distance >= nearest->best[VP_NEAREST_MAX - 1].distance)
		return;
	for (at = nearest->count - 1; at && distance < nearest->best[at - 1].distance; at--)
		nearest->best[at] = nearest->best[at - 1];
	memcpy(nearest->best[at].name, name, size + 1);
	nearest->best[at].distance = distance;
}

char *vp_nearest_text(const struct vp_nearest *nearest)
{
	return vp_nearest_text_with(nearest, "");
}

char *vp_nearest_text_with(const struct vp_nearest *nearest, const char *prefix)
{
	struct vp_buffer text = {0};

	for (size_t i = 0; i < nearest->count; i++)
		vp_buffer_printf(&text, "%s%s%s",
				 !i                       ? " (did you mean "
				 : i + 1 < nearest->count ? ", "
							  : " or ",
				 prefix, nearest->best[i].name);
	if (nearest->count)
		vp_buffer_string(&text, "?)");
	char *copy = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	return copy;
}

void vp_nearest_add_words(struct vp_nearest *nearest, const char *list)
{
	char word[VP_NEAREST_SIZE];

	while (*(list += strspn(list, " ,"))) {
		size_t size = strcspn(list, " ,");
		if (size < sizeof(word)) {
			memcpy(word, list, size);
			word[size] = 0;
			vp_nearest_add(nearest, word);
		}
		list += size;
	}
}
