/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event classes that a recording from anywhere defines, and a record of theirs: the text ends at
 * the first zero byte, the record is what follows. What is taken is written and taken again.
 */
#include <stdlib.h>
#include <string.h>

#include "schema/event_class.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_record(const vp_event_classes *classes, const void *bytes, size_t size)
{
	vp_vec_each (classes, event) {
		struct vp_cursor values = vp_cursor_of(bytes, size);
		struct vp_event_value value;
		volatile uint64_t sum = 0;
		(void)sum;
		vp_vec_each (&event->fields, field) {
			if (!vp_event_next_value(&values, field, &value))
				break;
			for (size_t i = 0; i < value.bytes.size; i++)
				sum += (unsigned char)value.bytes.bytes[i];
			sum += value.number;
		}
	}
}

static void expect_same(const vp_event_classes *classes)
{
	struct vp_buffer text = {0}, metadata = {0};
	vp_event_classes again;

	vp_event_classes_write(classes, &text);
	vp_event_classes_ctf(classes, &metadata);
	if (vp_event_classes_parse("again", text.bytes, text.size, &again))
		abort();
	if (again.count != classes->count)
		abort();
	vp_event_classes_deinit(&again);
	vp_buffer_deinit(&text);
	vp_buffer_deinit(&metadata);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const uint8_t *end = size ? memchr(bytes, 0, size) : NULL;
	size_t length = end ? (size_t)(end - bytes) : size;
	vp_event_classes classes;
	struct vp_error *error =
	    vp_event_classes_parse("fuzz", (const char *)bytes, length, &classes);

	if (error) {
		vp_error_free(error);
		return 0;
	}
	expect_same(&classes);
	if (end)
		read_record(&classes, end + 1, size - length - 1);
	vp_event_classes_deinit(&classes);
	return 0;
}
