/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ARFF as read by WEKA 3.6's ArffLoader: a comma is a blank, '%' starts a comment anywhere outside
 * quotes, both quotes work, with backslash escapes; an unquoted '?' is a missing value.
 */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/error.h"
#include "stats/data.h"
#include "table/date.h"
#include "table/reader_private.h"

enum kind { END, WORD, QUOTED, OPEN, CLOSE };

struct scanner {
	struct vp_dataset_reader *reader;
	char *next;
	size_t column; /* of the word, from 1, in bytes */
	enum kind kind;
	char *word; /* within the line, which is modified */
};

static char unescape(char **from)
{
	static const char names[] = "ntrbfa", means[] = "\n\t\r\b\f\a";
	char *at = *from;

	if (*at >= '0' && *at <= '7') {
		unsigned value = 0;
		for (int i = 0; i < 3 && *at >= '0' && *at <= '7'; i++)
			value = value * 8 + (unsigned)(*at++ - '0');
		*from = at;
		return (char)(value ? value : '?');
	}
	*from = at + 1;
	const char *name = strchr(names, *at);
	return name && *name ? means[name - names] : *at;
}

static struct vp_error *scan_quoted(struct scanner *scanner, char quote)
{
	char *from = scanner->next + 1, *to = scanner->next;

	scanner->word = to;
	while (*from && *from != quote) {
		char letter = *from++;
		*to++ = letter == '\\' && *from ? unescape(&from) : letter;
	}
	if (*from != quote)
		return vp_error_new("%s:%zu:%zu: expected closing %c", scanner->reader->path,
				    scanner->reader->number, scanner->column, quote);
	*to = 0;
	scanner->next = from + 1;
	scanner->kind = QUOTED;
	return NULL;
}

static bool arff_is_blank(char c)
{
	return c == ',' || (c > 0 && c <= ' ');
}

/* Terminates the word by moving it one byte to the front, so that the next byte stays intact. */
static void scan_word(struct scanner *scanner)
{
	char *start = scanner->next, *end = start;

	while (*end && !arff_is_blank(*end) && !strchr("%'\"{}", *end))
		end++;
	memmove(start - 1, start, (size_t)(end - start));
	end[-1] = 0;
	scanner->word = start - 1;
	scanner->next = end;
	scanner->kind = WORD;
}

static struct vp_error *arff_scan(struct scanner *scanner)
{
	while (arff_is_blank(*scanner->next))
		scanner->next++;
	scanner->column = (size_t)(scanner->next - scanner->reader->line);
	switch (*scanner->next) {
	case 0:
	case '%':
		scanner->kind = END;
		return NULL;
	case '\'':
	case '"':
		return scan_quoted(scanner, *scanner->next);
	case '{':
	case '}':
		scanner->kind = *scanner->next++ == '{' ? OPEN : CLOSE;
		return NULL;
	default:
		scan_word(scanner);
		return NULL;
	}
}

/* Reads the next line, with a spare byte before it for scan_word(). */
static struct vp_error *next_line(struct scanner *scanner, bool *more)
{
	struct vp_dataset_reader *reader = scanner->reader;

	VP_TRY(vp_dataset_line(reader, more));
	if (!*more)
		return NULL;
	if (reader->line_room < reader->line_size + 2) {
		reader->line_room = reader->line_size + 2;
		reader->line = vp_realloc_array(reader->line, reader->line_room, 1);
	}
	memmove(reader->line + 1, reader->line, reader->line_size + 1);
	reader->line[0] = ' ';
	scanner->next = reader->line + 1;
	if (reader->number == 1 && !strncmp(scanner->next, "\xef\xbb\xbf", 3))
		scanner->next += 3;
	return NULL;
}

static struct vp_error *arff_expected(const struct scanner *scanner, const char *what)
{
	return vp_error_new("%s:%zu:%zu: expected %s", scanner->reader->path,
			    scanner->reader->number, scanner->column, what);
}

static bool is_word(const struct scanner *scanner, const char *text)
{
	return scanner->kind == WORD && !strcasecmp(scanner->word, text);
}

static struct vp_error *read_labels(struct scanner *scanner, size_t column)
{
	double value;

	for (;;) {
		VP_TRY(arff_scan(scanner));
		if (scanner->kind == CLOSE)
			break;
		if (scanner->kind == END || scanner->kind == OPEN)
			return arff_expected(scanner, "'}' at the end of the labels");
		size_t before = scanner->reader->data->columns.at[column].labels.count;
		VP_TRY(vp_dataset_label(scanner->reader, column, scanner->word, true, &value));
		if (scanner->reader->data->columns.at[column].labels.count == before)
			return vp_error_new("%s:%zu:%zu: duplicate label '%.80s'",
					    scanner->reader->path, scanner->reader->number,
					    scanner->column, scanner->word);
	}
	return NULL;
}

/* A date becomes a number: milliseconds since 1970. */
static struct vp_error *read_date_format(struct scanner *scanner, size_t column)
{
	struct vp_dataset_reader *reader = scanner->reader;

	VP_TRY(arff_scan(scanner));
	if (scanner->kind == OPEN || scanner->kind == CLOSE)
		return arff_expected(scanner, "the date format after 'date'");
	const char *format = scanner->kind == END ? VP_DATE_USUAL : scanner->word;
	char unknown = vp_date_format_unknown(format);
	if (unknown)
		return vp_error_new("%s:%zu:%zu: attribute '%s': its date format has '%c', which "
				    "is not one of " VP_DATE_LETTERS,
				    reader->path, reader->number, scanner->column,
				    reader->data->columns.at[column].name, unknown);
	reader->dates.at[column] = vp_strdup(format);
	return NULL;
}

#define TYPES "numeric, real, integer, date or {labels}"

static struct vp_error *refuse_type(const struct scanner *scanner, size_t column)
{
	const struct vp_dataset_reader *reader = scanner->reader;
	bool known = is_word(scanner, "string") || is_word(scanner, "relational");

	return vp_error_new(
	    "%s:%zu:%zu: attribute '%s' is of type '%.80s'%s: expected " TYPES, reader->path,
	    reader->number, scanner->column, reader->data->columns.at[column].name,
	    scanner->kind == CLOSE ? "}" : scanner->word, known ? ", which is not supported" : "");
}

static struct vp_error *read_attribute(struct scanner *scanner)
{
	struct vp_dataset_reader *reader = scanner->reader;
	size_t column = reader->data->columns.count;

	VP_TRY(arff_scan(scanner));
	if (scanner->kind != WORD && scanner->kind != QUOTED)
		return arff_expected(scanner, "an attribute name after @attribute");
	if (column == VP_TABLE_MAX_COLUMNS)
		return vp_error_new("%s:%zu:%zu: expected at most %d attributes", reader->path,
				    reader->number, scanner->column, VP_TABLE_MAX_COLUMNS);
	vp_dataset_column(reader, vp_strdup(scanner->word), VP_DATA_NUMERIC);
	VP_TRY(arff_scan(scanner));
	if (scanner->kind == OPEN) {
		reader->data->columns.at[column].type = VP_DATA_NOMINAL;
		reader->data->columns.at[column].line = reader->number;
		return read_labels(scanner, column);
	}
	if (is_word(scanner, "numeric") || is_word(scanner, "real") || is_word(scanner, "integer"))
		return NULL;
	if (is_word(scanner, "date"))
		return read_date_format(scanner, column);
	return scanner->kind == END ? arff_expected(scanner, "the attribute's type: " TYPES)
				    : refuse_type(scanner, column);
}

static struct vp_error *arff_read_header(struct scanner *scanner)
{
	bool more;

	for (;;) {
		VP_TRY(next_line(scanner, &more));
		if (!more)
			return vp_error_new("%s:%zu: expected a line @data, found the end",
					    scanner->reader->path, scanner->reader->number);
		VP_TRY(arff_scan(scanner));
		if (is_word(scanner, "@data"))
			return NULL;
		if (is_word(scanner, "@attribute")) {
			VP_TRY(read_attribute(scanner));
		} else if (is_word(scanner, "@relation")) {
			VP_TRY(arff_scan(scanner));
			if (scanner->kind == WORD || scanner->kind == QUOTED) {
				free(scanner->reader->data->name);
				scanner->reader->data->name = vp_strdup(scanner->word);
			}
		} else if (scanner->kind != END) {
			return arff_expected(scanner, "@relation, @attribute or @data");
		}
	}
}

static struct vp_error *arff_read_date(const struct scanner *scanner, size_t index, double *value)
{
	const struct vp_dataset_reader *reader = scanner->reader;
	const char *format = reader->dates.at[index];

	if (vp_date_parse(format, scanner->word, value))
		return NULL;
	return vp_error_new("%s:%zu: column %zu ('%s'): expected a date as %s, not '%.80s'",
			    reader->path, reader->number, index + 1,
			    reader->data->columns.at[index].name, format, scanner->word);
}

static struct vp_error *read_value(struct scanner *scanner, size_t index)
{
	struct vp_dataset_reader *reader = scanner->reader;
	struct vp_column *column = &reader->data->columns.at[index];
	double *value = &column->values[reader->data->rows - 1];

	if (scanner->kind == END)
		return vp_dataset_not_row(reader, index);
	if (scanner->kind == OPEN && !index)
		return arff_expected(scanner,
				     "a value for each attribute (sparse rows are not supported)");
	if (scanner->kind == OPEN || scanner->kind == CLOSE)
		return arff_expected(scanner, "a value, not '{' or '}'");
	if (scanner->kind == WORD && !strcmp(scanner->word, "?")) {
		*value = NAN;
		return NULL;
	}
	if (column->type == VP_DATA_NOMINAL)
		return vp_dataset_label(reader, index, scanner->word, false, value);
	if (reader->dates.at[index])
		return arff_read_date(scanner, index, value);
	return vp_dataset_number(scanner->word, '.', value)
		   ? NULL
		   : vp_dataset_not_number(reader, index, scanner->word);
}

static struct vp_error *read_row(struct scanner *scanner)
{
	size_t columns = scanner->reader->data->columns.count;

	VP_TRY(vp_dataset_row(scanner->reader));
	for (size_t i = 0; i < columns; i++) {
		if (i)
			VP_TRY(arff_scan(scanner));
		VP_TRY(read_value(scanner, i));
	}
	VP_TRY(arff_scan(scanner));
	if (scanner->kind == OPEN)
		return arff_expected(scanner, "the end of the row (weights are not supported)");
	return scanner->kind == END ? NULL : vp_dataset_not_row(scanner->reader, columns + 1);
}

struct vp_error *vp_dataset_read_arff(struct vp_dataset_reader *reader)
{
	struct scanner scanner = {.reader = reader};
	bool more;

	VP_TRY(arff_read_header(&scanner));
	if (!reader->data->columns.count)
		return arff_expected(&scanner, "an @attribute before @data");
	for (;;) {
		VP_TRY(next_line(&scanner, &more));
		if (!more)
			return NULL;
		VP_TRY(arff_scan(&scanner));
		if (scanner.kind != END)
			VP_TRY(read_row(&scanner));
	}
}
