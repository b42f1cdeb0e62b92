/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/guests/kernel_addresses.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/file.h"
#include "collect/guests/pack_cache.h"
#include "maps/format.h"

enum { MAX_BYTES = 64 << 10 };

/* Parses a line; false: malformed. */
static bool kernel_addresses_parse(struct vp_slice line, uint64_t *gpa, struct vp_slice *name)
{
	struct vp_cursor words = vp_cursor_of(line.bytes, line.size);

	*gpa = vp_cursor_hex(&words);
	*name = vp_cursor_rest(&words);
	return vp_cursor_ok(&words) && name->size;
}

/* The contents of the file; empty if unreadable. */
static void kernel_addresses_load(const char *path, struct vp_buffer *text)
{
	VP_AUTO_ERROR struct vp_error *error = vp_file_read(path, MAX_BYTES, text);

	if (error)
		text->size = 0;
}

uint64_t vp_kernel_address_recall(const char *folder, const char *vm)
{
	VP_AUTO_FREE char *path = vp_format("%s/places", folder);
	struct vp_buffer text = {0}, escaped = {0};
	struct vp_slice line, name;
	uint64_t address, found = 0;

	kernel_addresses_load(path, &text);
	vp_maps_escape(vm, &escaped);
	struct vp_cursor cursor = vp_cursor_of(text.bytes, text.size);
	while (vp_cursor_line(&cursor, &line))
		if (kernel_addresses_parse(line, &address, &name) &&
		    vp_slice_is(name, vp_buffer_text(&escaped)))
			found = address;
	vp_buffer_deinit(&escaped);
	vp_buffer_deinit(&text);
	return found;
}

/* The lines of other VMs, limited to the most recent ones. */
static void keep_others(const struct vp_buffer *text, const char *vm, size_t room,
			struct vp_buffer *ret)
{
	struct vp_cursor cursor = vp_cursor_of(text->bytes, text->size);
	struct vp_slice line, name;
	uint64_t address;

	while (vp_cursor_line(&cursor, &line)) {
		if (vp_cursor_left(&cursor) + line.size + 1 > room ||
		    !kernel_addresses_parse(line, &address, &name) || vp_slice_is(name, vm))
			continue;
		vp_buffer_append(ret, line.bytes, line.size);
		vp_buffer_string(ret, "\n");
	}
}

struct vp_error *vp_kernel_address_store(const char *folder, const char *vm, uint64_t gpa)
{
	VP_AUTO_FREE char *path = vp_format("%s/places", folder);
	struct vp_buffer text = {0}, escaped = {0}, line = {0}, ret = {0};

	VP_TRY(vp_pack_cache_make(folder));
	kernel_addresses_load(path, &text);
	vp_maps_escape(vm, &escaped);
	vp_buffer_printf(&line, "%" PRIx64 " %s\n", gpa, vp_buffer_text(&escaped));
	if (line.size < MAX_BYTES)
		keep_others(&text, vp_buffer_text(&escaped), MAX_BYTES - line.size, &ret);
	vp_buffer_append(&ret, line.bytes, line.size);
	struct vp_error *error = vp_file_publish(path, ret.bytes, ret.size);
	vp_buffer_deinit(&text);
	vp_buffer_deinit(&escaped);
	vp_buffer_deinit(&line);
	vp_buffer_deinit(&ret);
	return error;
}
