/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/memory/lines.h"

#include <string.h>

/* Returns the cached line at that host address; reads it if necessary. NULL: unreadable. Lines do
 * not cross pages. */
static const char *line_at(struct vp_guest_lines *lines, uint64_t address)
{
	size_t index = address / VP_GUEST_LINE % VP_GUEST_LINES;
	char *line = lines->bytes[index];

	if (lines->addresses[index] == address + 1)
		return line;
	lines->addresses[index] = 0;
	if (!lines->below->read(lines->below->context, address, line, VP_GUEST_LINE))
		return NULL;
	lines->addresses[index] = address + 1;
	return line;
}

static bool lines_read_lines(void *context, uint64_t hva, void *bytes, size_t size)
{
	struct vp_guest_lines *lines = context;
	uint64_t inside = hva % VP_GUEST_LINE;
	const char *line = size <= VP_GUEST_LINE - inside ? line_at(lines, hva - inside) : NULL;

	if (!line)
		return lines->below->read(lines->below->context, hva, bytes, size);
	memcpy(bytes, line + inside, size);
	return true;
}

static void ask_below(void *context, uint64_t hva, size_t pages, unsigned char *ret)
{
	const struct vp_guest_lines *lines = context;

	lines->below->backed(lines->below->context, hva, pages, ret);
}

void vp_guest_lines_begin(struct vp_guest_lines *lines, const struct vp_guest_memory *below)
{
	lines->below = below;
	lines->memory = *below;
	lines->memory.read = lines_read_lines;
	lines->memory.backed = below->backed ? ask_below : NULL;
	lines->memory.context = lines;
	memset(lines->addresses, 0, sizeof(lines->addresses));
}
