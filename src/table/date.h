/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Dates in ARFF files, with formats of Java's SimpleDateFormat and English names. */
#ifndef VP_TABLE_DATE_H
#define VP_TABLE_DATE_H

#include <stdbool.h>

/* Format of date attributes that give none (WEKA's default). */
#define VP_DATE_USUAL "yyyy-MM-dd'T'HH:mm:ss"
/* Format letters that may occur. */
#define VP_DATE_LETTERS "yMdHkKhmsSaEZ"

/* The first unsupported character of the format (a letter, or an unterminated quote), or 0. */
char vp_date_format_unknown(const char *format);
/*
 * Parses a date as a non-lenient SimpleDateFormat.parse(): blanks before numbers and text after the
 * date are skipped, years before 1582-10-15 are Julian. Result: milliseconds since 1970 UTC; a date
 * without a zone is local time. False: `text` does not match.
 */
bool vp_date_parse(const char *format, const char *text, double *ms);

#endif
