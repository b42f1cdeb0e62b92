/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/decimal.h"

#include <math.h>
#include <string.h>

/* Large numbers in the format of Java's Double.toString(). */
static void put_large(double value, struct vp_buffer *out)
{
	char text[40];

	if (isnan(value) || isinf(value)) {
		vp_buffer_string(out, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
		return;
	}
	for (int digits = 0; digits <= 16; digits++) {
		snprintf(text, sizeof(text), "%.*e", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	char *mark = strchr(text, 'e');
	vp_buffer_append(out, text, (size_t)(mark - text));
	vp_buffer_printf(out, "%sE%ld", strchr(text, '.') ? "" : ".0", strtol(mark + 1, NULL, 10));
}

void vp_render_decimal(double value, int digits, struct vp_buffer *out)
{
	double scaled = value * pow(10.0, digits);
	char text[64];

	if (!(fabs(scaled) < 9.223372036854775807e18)) {
		put_large(value, out);
		return;
	}
	/* Rounds the scaled number half away from zero; printf() would round the exact value. */
	long long whole = (long long)(fabs(scaled) + 0.5);
	if (digits == 0) {
		vp_buffer_printf(out, "%s%lld", scaled < 0 && whole ? "-" : "", whole);
		return;
	}
	int length = snprintf(text, sizeof(text), "%0*lld", digits + 1, whole);
	vp_buffer_string(out, value < 0 && whole ? "-" : "");
	vp_buffer_append(out, text, (size_t)(length - digits));
	int last = length;
	while (last > length - digits && text[last - 1] == '0')
		last--;
	if (last > length - digits) {
		vp_buffer_string(out, ".");
		vp_buffer_append(out, text + length - digits, (size_t)(last - (length - digits)));
	}
}

void vp_render_decimal_field(double value, int width, int digits, struct vp_buffer *out)
{
	struct vp_buffer text = {0};

	vp_render_decimal(value, digits, &text);
	const char *plain = vp_buffer_text(&text);
	const char *point = strchr(plain, '.');
	int before = point ? (int)(point - plain) : (int)strlen(plain);
	int pad = width - digits - 1 - before;
	if (digits >= width || strchr(plain, 'E') || pad < 0)
		vp_buffer_string(out, plain);
	else
		vp_buffer_printf(out, "%*s%-*s", pad, "", width - pad, plain);
	vp_buffer_deinit(&text);
}
