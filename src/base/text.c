/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"

/*
 * Characters that are invisible or change how others are displayed, so that a text can look like
 * another one: Unicode's Default_Ignorable_Code_Point, Bidi_Control, line and paragraph separators,
 * annotations, and noncharacters. Sorted.
 */
static const struct {
	uint32_t first, last;
} hidden[] =
    {
	{0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x061c, 0x061c},    {0x115f, 0x1160},
	{0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},    {0x2028, 0x202e},
	{0x2060, 0x206f},   {0x3164, 0x3164},   {0xfdd0, 0xfdef},    {0xfe00, 0xfe0f},
	{0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},    {0xfffe, 0xffff},
	{0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0x10ffff}, /* and private use beyond */
};

static bool text_is_hidden(uint32_t character)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(hidden) && hidden[i].first <= character; i++)
		if (character <= hidden[i].last)
			return true;
	return false;
}

/* The code point of a well-formed character of two bytes or more. */
static uint32_t decode(const unsigned char *text, size_t size)
{
	uint32_t character = text[0] & (0x7fU >> size);

	for (size_t i = 1; i < size; i++)
		character = character << 6 | (text[i] & 0x3f);
	return character;
}

/* Length of the well-formed UTF-8 character at `text`; 0: malformed, or a control character. */
static size_t encoded_size(const unsigned char *text, size_t left)
{
	unsigned char first = text[0];
	size_t size;
	unsigned low = 0x80, high = 0xbf; /* valid range of the second byte */

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

/* The same; 0 also for characters that are not displayed as themselves. */
static size_t character_size(const unsigned char *text, size_t left)
{
	size_t size = encoded_size(text, left);

	return size > 1 && text_is_hidden(decode(text, size)) ? 0 : size;
}

size_t vp_text_unclean_size(const char *text, size_t size)
{
	size_t hidden_size = encoded_size((const unsigned char *)text, size);

	return hidden_size ? hidden_size : 1;
}

/* Whether the next eight bytes are all printable ASCII. */
static bool are_ascii(const unsigned char *bytes, size_t left)
{
	const uint64_t each = 0x0101010101010101;
	uint64_t eight;

	if (left < sizeof(eight))
		return false;
	memcpy(&eight, bytes, sizeof(eight));
	/* High bit per byte: set in it; it is below ' '; it is 0x7f. */
	uint64_t low = (eight & each * 0x7f) + each * (0x80 - ' ');
	uint64_t delete = (eight & each * 0x7f) + each;
	return !((eight | ~low | delete) & each << 7);
}

size_t vp_text_clean_size(const char *text, size_t size)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t at = 0;

	while (at < size && are_ascii(bytes + at, size - at))
		at += sizeof(uint64_t);
	while (at < size && bytes[at] >= ' ' && bytes[at] < 0x7f)
		at++;
	for (size_t length; at < size && (length = character_size(bytes + at, size - at));)
		at += length;
	return at;
}

void vp_text_clean(const char *text, size_t size, struct vp_buffer *buffer)
{
	for (size_t at = 0; at < size;) {
		size_t clean = vp_text_clean_size(text + at, size - at);
		vp_buffer_append(buffer, text + at, clean);
		at += clean;
		if (at == size)
			return;
		vp_buffer_append(buffer, "?", 1);
		at += vp_text_unclean_size(text + at, size - at);
	}
}

void vp_text_clean_lines(const char *text, size_t size, struct vp_buffer *buffer)
{
	for (size_t at = 0; at < size; at++) {
		size_t from = at;
		while (at < size && text[at] != '\n' && text[at] != '\t')
			at++;
		vp_text_clean(text + from, at - from, buffer);
		if (at < size)
			vp_buffer_append(buffer, text + at, 1);
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

const char *vp_text_long_duration(uint64_t ns, char text[VP_DURATION_SIZE])
{
	enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR };
	uint64_t s = ns / 1000000000 + (ns % 1000000000 >= 500000000);

	if (s < 2 * MINUTE)
		return vp_text_duration(ns, text);
	if (s < HOUR)
		snprintf(text, VP_DURATION_SIZE, "%" PRIu64 " min %" PRIu64 " s", s / MINUTE,
			 s % MINUTE);
	else if (s < DAY)
		snprintf(text, VP_DURATION_SIZE, "%" PRIu64 " h %" PRIu64 " min", s / HOUR,
			 s % HOUR / MINUTE);
	else
		snprintf(text, VP_DURATION_SIZE, "%" PRIu64 " d %" PRIu64 " h", s / DAY,
			 s % DAY / HOUR);
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

const char *vp_text_date(uint64_t realtime_ns, char text[VP_TEXT_DATE_SIZE])
{
	time_t seconds = (time_t)(realtime_ns / 1000000000);
	struct tm parts;

	if (!localtime_r(&seconds, &parts) ||
	    !strftime(text, VP_TEXT_DATE_SIZE, "%Y-%m-%d %H:%M:%S %z", &parts))
		snprintf(text, VP_TEXT_DATE_SIZE, "?");
	return text;
}

void vp_text_put_word(const char *word, struct vp_buffer *out)
{
	static const char plain[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-+:";
	VP_AUTO_FREE char *clean = vp_text_cleaned(word);

	vp_buffer_string(out, " ");
	if (*clean && !clean[strspn(clean, plain)]) {
		vp_buffer_string(out, clean);
		return;
	}
	vp_buffer_string(out, "'");
	for (const char *at = clean; *at; at++)
		vp_buffer_append(out, *at == '\'' ? "'\\''" : at, *at == '\'' ? 4 : 1);
	vp_buffer_string(out, "'");
}
