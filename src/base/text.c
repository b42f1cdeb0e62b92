/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* Length of the well-formed, printable UTF-8 character at `text`, or 0. */
static size_t character_size(const unsigned char *text, size_t left)
{
	unsigned char first = text[0];
	size_t size;
	unsigned low = 0x80, high = 0xbf; /* what the second byte may be */

	if (first < 0x80)
		return first >= ' ' && first != 0x7f;
	if (first >= 0xc2 && first <= 0xdf)
		size = 2;
	else if (first >= 0xe0 && first <= 0xef)
		size = 3;
	else if (first >= 0xf0 && first <= 0xf4)
		size = 4;
	else
		return 0;
	if (first == 0xc2 || first == 0xe0) /* C1 controls; overlong forms */
		low = 0xa0;
	else if (first == 0xed) /* surrogates */
		high = 0x9f;
	else if (first == 0xf0) /* overlong forms */
		low = 0x90;
	else if (first == 0xf4) /* beyond U+10FFFF */
		high = 0x8f;
	if (left < size || text[1] < low || text[1] > high)
		return 0;
	for (size_t i = 2; i < size; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return size;
}

size_t vp_text_clean_size(const char *text, size_t size)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t at = 0;

	while (at < size && bytes[at] >= ' ' && bytes[at] < 0x7f)
		at++;
	for (size_t length; at < size && (length = character_size(bytes + at, size - at));)
		at += length;
	return at;
}

void vp_text_clean(const char *text, size_t size, struct vp_buffer *buffer)
{
	for (size_t at = 0; at < size; at++) {
		size_t clean = vp_text_clean_size(text + at, size - at);
		vp_buffer_append(buffer, text + at, clean);
		at += clean;
		if (at < size)
			vp_buffer_append(buffer, "?", 1);
	}
}

bool vp_text_is_clean(const char *text)
{
	size_t size = strlen(text);

	return vp_text_clean_size(text, size) == size;
}

const char *vp_text_duration(uint64_t ns, char text[VP_DURATION_SIZE])
{
	static const struct {
		uint64_t ns;
		const char *unit;
	} units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}};
	size_t i = 0;

	/* 999.5 us and more are rounded to 1.00 ms. */
	while (i < VP_ARRAY_SIZE(units) && ns < units[i].ns - units[i].ns / 2000)
		i++;
	if (i == VP_ARRAY_SIZE(units)) {
		snprintf(text, VP_DURATION_SIZE, ns ? "%" PRIu64 " ns" : "%" PRIu64, ns);
		return text;
	}
	double value = (double)ns / (double)units[i].ns;
	int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
	snprintf(text, VP_DURATION_SIZE, "%.*f %s", digits, value, units[i].unit);
	return text;
}

char *vp_text_cleaned(const char *text)
{
	struct vp_buffer clean = {0};

	vp_text_clean(text, strlen(text), &clean);
	char *result = vp_strdup(vp_buffer_text(&clean));
	vp_buffer_deinit(&clean);
	return result;
}
