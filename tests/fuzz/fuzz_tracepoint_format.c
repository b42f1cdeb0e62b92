/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A tracepoint's format, up to the first zero byte, and a raw record of it behind that. */
#include <string.h>

#include "schema/tracepoint_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const uint8_t *end = size ? memchr(bytes, 0, size) : NULL;
	size_t length = end ? (size_t)(end - bytes) : size;
	vp_tracepoint_layout places = {0};
	vp_event_classes classes = {0};
	struct vp_event_class *event;
	struct vp_buffer out = {0};
	struct vp_error *error = vp_event_classes_add(&classes, "a:b", &event);

	if (!error)
		error =
		    vp_tracepoint_format_parse("fuzz", (const char *)bytes, length, event, &places);
	if (!error && end)
		vp_tracepoint_convert(event, &places, 1,
				      (struct vp_slice){(const char *)end + 1, size - length - 1},
				      &out);
	vp_error_free(error);
	vp_buffer_deinit(&out);
	vp_vec_deinit(&places);
	vp_event_classes_deinit(&classes);
	return 0;
}
