/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table/date.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* MAX_DIGITS: more than any year has. */
enum { MAX_DIGITS = 9, UNSET = -1 };

/* Values by VP_DATE_LETTERS; UNSET: not in the format. */
struct date {
	const char *at; /* current position in the text */
	long year, month, day, hour, hour12, minute, second, ms, pm, weekday, zone;
	bool zoned, two_digits;
};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The position after a quoted part of a format; NULL: the quote is not closed. */
static const char *behind_quote(const char *format)
{
	const char *end = strchr(format + 1, '\'');

	return end ? end + 1 : NULL;
}

char vp_date_format_unknown(const char *format)
{
	while (format && *format)
		if (*format == '\'')
			format = behind_quote(format);
		else if (is_letter(*format) && !strchr(VP_DATE_LETTERS, *format))
			return *format;
		else
			format++;
	return format ? 0 : '\'';
}

/* Parses a number of at most `most` characters, including leading blanks. */
static bool date_take_number(struct date *date, long most, long *value)
{
	const char *at = date->at;
	long digits = 0;

	while (*at == ' ' || *at == '\t')
		at++;
	for (*value = 0; isdigit((unsigned char)*at) && at - date->at < most; digits++)
		*value = *value * 10 + (*at++ - '0');
	date->at = at;
	date->two_digits = digits == 2;
	return digits > 0;
}

/* Parses a name, or its first three letters; *value is its index. */
static bool take_date_name(struct date *date, const char *const *names, long n, long *value)
{
	for (size_t whole = 2; whole--;)
		for (long i = 0; i < n; i++) {
			size_t size = whole || n == 2 ? strlen(names[i]) : 3;
			if (strncasecmp(date->at, names[i], size))
				continue;
			date->at += size;
			*value = i;
			return true;
		}
	return false;
}

/* Parses +hhmm or -hhmm as seconds. */
static bool take_zone(struct date *date)
{
	bool minus = *date->at == '-';
	long value;

	if (*date->at != '+' && !minus)
		return false;
	const char *digits = ++date->at;
	if (!date_take_number(date, 4, &value) || date->at - digits != 4 || value % 100 > 59)
		return false;
	date->zone = (value / 100 * 60 + value % 100) * (minus ? -60 : 60);
	date->zoned = true;
	return true;
}

/* A two-digit year is from 80 years ago to 20 years ahead. */
static long whole_year(long year)
{
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	long first = tm.tm_year + 1900 - 80;
	return first / 100 * 100 + year + (year < first % 100 ? 100 : 0);
}

static bool date_between(long value, long least, long most)
{
	return value >= least && value <= most;
}

static bool take_half(struct date *date)
{
	static const char *const halves[] = {"AM", "PM"};

	return take_date_name(date, halves, 2, &date->pm);
}

static bool take_month(struct date *date, long count, long most)
{
	static const char *const names[] = {"January",   "February", "March",    "April",
					    "May",       "June",     "July",     "August",
					    "September", "October",  "November", "December"};

	if (count < 3)
		return date_take_number(date, most, &date->month) &&
		       date_between(date->month, 1, 12);
	bool found = take_date_name(date, names, 12, &date->month);
	date->month++;
	return found;
}

static bool take_weekday(struct date *date)
{
	static const char *const names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
					    "Thursday", "Friday", "Saturday"};

	return take_date_name(date, names, 7, &date->weekday);
}

static bool take_year(struct date *date, long count, long most)
{
	if (!date_take_number(date, most, &date->year))
		return false;
	if (count < 3 && date->two_digits)
		date->year = whole_year(date->year);
	return date->year > 0;
}

static bool date_take_field(struct date *date, char letter, long count, long most)
{
	switch (letter) {
	case 'y':
		return take_year(date, count, most);
	case 'M':
		return take_month(date, count, most);
	case 'd':
		return date_take_number(date, most, &date->day);
	case 'H':
		return date_take_number(date, most, &date->hour) && date->hour < 24;
	case 'k':
		return date_take_number(date, most, &date->hour) && date_between(date->hour, 1, 24);
	case 'K':
		return date_take_number(date, most, &date->hour12) && date->hour12 < 12;
	case 'h':
		return date_take_number(date, most, &date->hour12) &&
		       date_between(date->hour12, 1, 12);
	case 'm':
		return date_take_number(date, most, &date->minute) && date->minute < 60;
	case 's':
		return date_take_number(date, most, &date->second) && date->second < 60;
	case 'S':
		return date_take_number(date, most, &date->ms) && date->ms < 1000;
	case 'a':
		return take_half(date);
	case 'E':
		return take_weekday(date);
	default:
		return take_zone(date);
	}
}

static bool date_take_letters(struct date *date, const char **format)
{
	const char *letters = *format;
	long count = 0;

	while (letters[count] == letters[0])
		count++;
	*format += count;
	/* A number directly followed by another field has as many digits as letters in the
	 * format. */
	return date_take_field(date, letters[0], count, is_letter(**format) ? count : MAX_DIGITS);
}

/* Matches a quoted text; two quotes match one quote. */
static bool date_take_quoted(struct date *date, const char **format)
{
	const char *at = *format + 1;

	if (*at == '\'') {
		*format = at + 1;
		return *date->at++ == '\'';
	}
	for (; *at != '\'' || at[1] == '\''; at++) {
		at += *at == '\'';
		if (*date->at++ != *at)
			return false;
	}
	*format = at + 1;
	return true;
}

/* Days since 1970, by the Julian or the Gregorian calendar. */
static int64_t days_of(long year, long month, long day)
{
	bool gregorian =
	    year > 1582 || (year == 1582 && (month > 10 || (month == 10 && day >= 15)));
	int64_t early = (14 - month) / 12, y = year + 4800 - early, m = month + 12 * early - 3;
	int64_t number = day + (153 * m + 2) / 5 + 365 * y + y / 4;

	return number - (gregorian ? y / 100 - y / 400 + 32045 : 32083) - 2440588;
}

static bool day_exists(const struct date *date)
{
	long next = date->month % 12 + 1, year = date->year + (next == 1);
	bool skipped = date->year == 1582 && date->month == 10 && date_between(date->day, 5, 14);

	return date->day > 0 && !skipped &&
	       days_of(date->year, date->month, date->day) < days_of(year, next, 1);
}

static bool date_seconds_of(const struct date *date, int64_t *seconds)
{
	long hour = date->hour != UNSET     ? date->hour % 24
		    : date->hour12 != UNSET ? date->hour12 % 12 + 12 * (date->pm == 1)
					    : 12 * (date->pm == 1);
	int64_t days = days_of(date->year, date->month, date->day);

	if (!day_exists(date) ||
	    (date->weekday != UNSET && ((days + 4) % 7 + 7) % 7 != date->weekday))
		return false;
	*seconds = days * 86400 + hour * 3600 + date->minute * 60 + date->second - date->zone;
	if (date->zoned)
		return true;
	time_t local = *seconds;
	struct tm tm;
	gmtime_r(&local, &tm);
	tm.tm_isdst = -1;
	*seconds = mktime(&tm);
	return true;
}

bool vp_date_parse(const char *format, const char *text, double *ms)
{
	struct date date = {.at = text,
			    .year = 1970,
			    .month = 1,
			    .day = 1,
			    .hour = UNSET,
			    .hour12 = UNSET,
			    .pm = UNSET,
			    .weekday = UNSET};
	int64_t seconds;

	while (*format) {
		bool taken = is_letter(*format) ? date_take_letters(&date, &format)
			     : *format == '\''  ? date_take_quoted(&date, &format)
						: *date.at++ == *format++;
		if (!taken)
			return false;
	}
	if (!date_seconds_of(&date, &seconds))
		return false;
	*ms = (double)(seconds * 1000 + date.ms);
	return true;
}
