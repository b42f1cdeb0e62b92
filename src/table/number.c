/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses numbers: the nearest double, like strtod(), but mostly with a single division. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "table/reader_private.h"

/* Integers up to 2^53 and powers of ten up to 10^22 are exact as double. */
#define EXACT_NUMBER (UINT64_C(1) << 53)
enum { EXACT_POWER = 22, MAX_DIGITS = 19, MAX_EXPONENT = 100000 };

static const double powers[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
					       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
					       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

struct number {
	const char *at;
	uint64_t digits; /* all digits as an integer; exact if there are not too many */
	unsigned n_digits;
	int exponent; /* power of ten */
	bool any;
};

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline void take_digits(struct number *number, bool behind_point)
{
	const char *start = number->at;

	for (; is_digit(*number->at); number->at++) {
		number->digits = number->digits * 10 + (uint64_t)(*number->at - '0');
		number->n_digits += number->digits != 0;
	}
	number->any |= number->at > start;
	if (behind_point)
		number->exponent = -(int)(number->at - start);
}

/* False: an 'e' without digits. */
static bool take_exponent(struct number *number)
{
	bool minus = number->at[1] == '-';
	int value = 0;

	number->at += 1 + (minus || number->at[1] == '+');
	if (!is_digit(*number->at))
		return false;
	for (; is_digit(*number->at); number->at++)
		if (value < MAX_EXPONENT)
			value = value * 10 + (*number->at - '0');
	number->exponent += minus ? -value : value;
	return true;
}

static double by_library(const char *text, char point)
{
	VP_AUTO_FREE char *copy = point == '.' ? NULL : vp_strdup(text);
	char *comma = copy ? strchr(copy, point) : NULL;

	if (comma)
		*comma = '.';
	return strtod(copy ? copy : text, NULL);
}

bool vp_dataset_number(const char *text, char point, double *value)
{
	bool minus = *text == '-';
	struct number number = {.at = text + (minus || *text == '+')};

	take_digits(&number, false);
	if (*number.at == point) {
		number.at++;
		take_digits(&number, true);
	}
	if (!number.any || ((*number.at | 0x20) == 'e' && !take_exponent(&number)) || *number.at)
		return false;
	if (number.n_digits <= MAX_DIGITS && number.digits <= EXACT_NUMBER &&
	    abs(number.exponent) <= EXACT_POWER) {
		double digits = minus ? -(double)number.digits : (double)number.digits;
		*value = number.exponent < 0 ? digits / powers[-number.exponent]
					     : digits * powers[number.exponent];
		return true;
	}
	*value = by_library(text, point);
	return isfinite(*value);
}
