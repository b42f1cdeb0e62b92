/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Dates as ARFF has them: by a format of Java's SimpleDateFormat, with English names. */
#ifndef VP_TABLE_DATE_H
#define VP_TABLE_DATE_H

#include <stdbool.h>

/* The format of a date attribute that does not give one (WEKA's). */
#define VP_DATE_USUAL "yyyy-MM-dd'T'HH:mm:ss"
/* The letters of fields that a format may have. */
#define VP_DATE_LETTERS "yMdHkKhmsSaEZ"

/* The first unsupported character of the format (a letter, or an open quote), or 0. */
char vp_date_format_unknown(const char *format);
/*
 * Milliseconds since 1970 UTC; a date without a zone is local time. As SimpleDateFormat.parse() of
 * one that is not lenient: blanks before numbers and what follows the date are skipped, years
 * before 1582-10-15 are Julian. False: the text is no such date.
 */
bool vp_date_parse(const char *format, const char *text, double *ms);

#endif
