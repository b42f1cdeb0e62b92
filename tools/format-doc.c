/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints docs/format.md: the text of docs/format.md.in with the record table in its place, and the
 * events at the end. */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "schema/schema.h"
#include "schema/trace_event.h"

int main(int argc, char **argv)
{
	static const char mark[] = "@RECORDS@\n";
	struct vp_buffer text = {0}, records = {0}, events = {0};

	if (argc != 2) {
		fprintf(stderr, "usage: format-doc TEMPLATE\n");
		return 2;
	}
	struct vp_error *error = vp_file_read(argv[1], 1 << 20, &text);
	const char *place = error ? NULL : strstr(vp_buffer_text(&text), mark);
	if (!error && !place)
		error = vp_error_new("'%s' has no line %s", argv[1], mark);
	if (error) {
		fprintf(stderr, "format-doc: %s\n", vp_error_message(error));
		return 1;
	}
	vp_schema_document(&records);
	printf("%.*s%s%s", (int)(place - text.bytes), text.bytes, vp_buffer_text(&records),
	       place + strlen(mark));
	vp_trace_event_document(&events);
	printf("%s", vp_buffer_text(&events));
	vp_buffer_deinit(&events);
	vp_buffer_deinit(&text);
	vp_buffer_deinit(&records);
	return 0;
}
