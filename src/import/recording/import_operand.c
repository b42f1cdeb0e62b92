/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/recording/import_operand.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "schema/vm.h"

struct vp_error *vp_import_operand_parse(const char *text, struct vp_import_operand *ret)
{
	const char *colon = strchr(text, ':');

	*ret = (struct vp_import_operand){.path = vp_strdup(text)};
	if (!colon || !access(text, F_OK))
		return NULL;
	const char *at = memchr(text, '@', (size_t)(colon - text));
	const char *end = at ? at : colon;
	struct vp_cursor number = vp_cursor_of(end + 1, at ? (size_t)(colon - at - 1) : 0);
	uint64_t pid = at ? vp_cursor_decimal(&number) : 0;
	if (end == text || !vp_cursor_ok(&number) || pid > VP_PID_MASK || (at && !pid)) {
		vp_import_operand_deinit(ret);
		return vp_error_usage("'%s': expected a path, NAME:PATH or NAME@PID:PATH", text);
	}
	free(ret->path);
	*ret = (struct vp_import_operand){.path = vp_strdup(colon + 1),
					  .name = vp_format("%.*s", (int)(end - text), text),
					  .pid = (uint32_t)pid};
	return NULL;
}

void vp_import_operand_deinit(struct vp_import_operand *operand)
{
	free(operand->path);
	free(operand->name);
	*operand = (struct vp_import_operand){0};
}
