/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/kernel_function.h"

#include <string.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/file.h"

enum { KALLSYMS_MAX = 256 << 20 };

/* A line of kallsyms: "ffffffff81000000 T name\t[module]". */
static bool kernel_function_parse(struct vp_slice line, uint64_t *address, struct vp_slice *name)
{
	struct vp_cursor cursor = vp_cursor_of(line.bytes, line.size);

	*address = vp_cursor_hex(&cursor);
	vp_cursor_word(&cursor);
	*name = vp_cursor_word(&cursor);
	return vp_cursor_ok(&cursor);
}

static void find_in(const struct vp_buffer *symbols, const char *name,
		    struct vp_kernel_function *ret)
{
	for (unsigned pass = 0; pass < 2; pass++) {
		struct vp_cursor lines = vp_cursor_of(symbols->bytes, symbols->size);
		struct vp_slice line, found;
		uint64_t address;
		while (vp_cursor_line(&lines, &line)) {
			if (!kernel_function_parse(line, &address, &found))
				continue;
			if (!pass && vp_slice_is(found, name))
				ret->begin = address;
			if (pass && address > ret->begin && address < ret->end)
				ret->end = address;
		}
	}
}

bool vp_kernel_function_find(const char *kallsyms, const char *name, struct vp_kernel_function *ret)
{
	struct vp_buffer symbols = {0};
	struct vp_error *error = vp_file_read(kallsyms, KALLSYMS_MAX, &symbols);

	*ret = (struct vp_kernel_function){.end = UINT64_MAX};
	if (!error)
		find_in(&symbols, name, ret);
	vp_error_free(error);
	vp_buffer_deinit(&symbols);
	return ret->begin && ret->end != UINT64_MAX;
}
