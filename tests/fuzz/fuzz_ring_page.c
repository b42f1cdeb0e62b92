/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A page of ftrace's ring buffer whose entries are records of a tracepoint. */
#include "schema/ring_page.h"
#include "schema/tracepoint_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char format[] = "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
			     "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
			     "\tfield:__data_loc char[] name;\toffset:24;\tsize:4;\tsigned:0;\n";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	vp_tracepoint_layout places = {0};
	vp_event_classes classes = {0};
	struct vp_event_class *event;
	struct vp_buffer out = {0};
	struct vp_ring_page page;
	struct vp_slice entry;
	uint64_t time;
	struct vp_error *error = vp_event_classes_add(&classes, "a:b", &event);

	if (!error)
		error =
		    vp_tracepoint_format_parse("fuzz", format, sizeof(format) - 1, event, &places);
	if (!error && vp_ring_page_open((struct vp_slice){(const char *)bytes, size}, &page))
		while (vp_ring_page_next(&page, &time, &entry)) {
			out.size = 0;
			vp_tracepoint_convert(event, &places, time, entry, &out);
		}
	vp_error_free(error);
	vp_buffer_deinit(&out);
	vp_vec_deinit(&places);
	vp_event_classes_deinit(&classes);
	return 0;
}
