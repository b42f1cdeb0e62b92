/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ARFF, by the rules of WEKA 3.6's ArffLoader: a comma is a blank, '%' begins a comment anywhere
 * outside quotes, either quote works, with backslash escapes; an unquoted '?' is missing.
 */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "table/reader_private.h"

enum kind { END, WORD, QUOTED, OPEN, CLOSE };

struct scanner {
	struct vp_table_reader *reader;
	char *next;
	enum kind kind;
	char *word; /* in the line, which is changed */
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
		return vp_error_new("%s:%zu: expected %c at the end of a quoted word",
				    scanner->reader->path, scanner->reader->number, quote);
	*to = 0;
	scanner->next = from + 1;
	scanner->kind = QUOTED;
	return NULL;
}

static bool is_blank(char c)
{
	return c == ',' || (c > 0 && c <= ' ');
}

/* Ends the word by moving it one byte to the front, so that the byte behind it stays. */
static void scan_word(struct scanner *scanner)
{
	char *start = scanner->next, *end = start;

	while (*end && !is_blank(*end) && !strchr("%'\"{}", *end))
		end++;
	memmove(start - 1, start, (size_t)(end - start));
	end[-1] = 0;
	scanner->word = start - 1;
	scanner->next = end;
	scanner->kind = WORD;
}

static struct vp_error *scan(struct scanner *scanner)
{
	while (is_blank(*scanner->next))
		scanner->next++;
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

/* The next line, with a byte of room before it for scan_word(). */
static struct vp_error *next_line(struct scanner *scanner, bool *more)
{
	struct vp_table_reader *reader = scanner->reader;

	VP_TRY(vp_table_line(reader, more));
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

static struct vp_error *expected(const struct scanner *scanner, const char *what)
{
	return vp_error_new("%s:%zu: expected %s", scanner->reader->path, scanner->reader->number,
			    what);
}

static bool is_word(const struct scanner *scanner, const char *text)
{
	return scanner->kind == WORD && !strcasecmp(scanner->word, text);
}

static struct vp_error *read_labels(struct scanner *scanner, size_t column)
{
	double value;

	for (;;) {
		VP_TRY(scan(scanner));
		if (scanner->kind == CLOSE)
			break;
		if (scanner->kind == END || scanner->kind == OPEN)
			return expected(scanner, "'}' at the end of the labels");
		size_t before = scanner->reader->data->columns.at[column].labels.count;
		VP_TRY(vp_table_label(scanner->reader, column, scanner->word, true, &value));
		if (scanner->reader->data->columns.at[column].labels.count == before)
			return vp_error_new("%s:%zu: label '%.80s' is there twice",
					    scanner->reader->path, scanner->reader->number,
					    scanner->word);
	}
	return NULL;
}

static struct vp_error *read_attribute(struct scanner *scanner)
{
	struct vp_table_reader *reader = scanner->reader;
	size_t column = reader->data->columns.count;

	VP_TRY(scan(scanner));
	if (scanner->kind != WORD && scanner->kind != QUOTED)
		return expected(scanner, "an attribute's name behind @attribute");
	if (column == VP_TABLE_MOST_COLUMNS)
		return vp_error_new("%s:%zu: expected at most %d attributes", reader->path,
				    reader->number, VP_TABLE_MOST_COLUMNS);
	vp_table_column(reader, vp_strdup(scanner->word), VP_COLUMN_NUMERIC);
	VP_TRY(scan(scanner));
	if (scanner->kind == OPEN) {
		reader->data->columns.at[column].type = VP_COLUMN_NOMINAL;
		return read_labels(scanner, column);
	}
	if (is_word(scanner, "numeric") || is_word(scanner, "real") || is_word(scanner, "integer"))
		return NULL;
	if (scanner->kind == END)
		return expected(scanner,
				"the attribute's type: numeric, real, integer or {labels}");
	return vp_error_new("%s:%zu: attribute '%s' is of type '%.80s': expected numeric, real, "
			    "integer or {labels}",
			    reader->path, reader->number, reader->data->columns.at[column].name,
			    scanner->kind == CLOSE ? "}" : scanner->word);
}

static struct vp_error *read_header(struct scanner *scanner)
{
	bool more;

	for (;;) {
		VP_TRY(next_line(scanner, &more));
		if (!more)
			return expected(scanner, "a line @data");
		VP_TRY(scan(scanner));
		if (is_word(scanner, "@data"))
			return NULL;
		if (is_word(scanner, "@attribute")) {
			VP_TRY(read_attribute(scanner));
		} else if (is_word(scanner, "@relation")) {
			VP_TRY(scan(scanner));
			if (scanner->kind == WORD || scanner->kind == QUOTED) {
				free(scanner->reader->data->name);
				scanner->reader->data->name = vp_strdup(scanner->word);
			}
		} else if (scanner->kind != END) {
			return expected(scanner, "@relation, @attribute or @data");
		}
	}
}

static struct vp_error *read_value(struct scanner *scanner, size_t index)
{
	struct vp_table_reader *reader = scanner->reader;
	struct vp_column *column = &reader->data->columns.at[index];
	double *value = &column->values[reader->data->rows - 1];

	if (scanner->kind == END)
		return vp_error_new("%s:%zu: expected %zu values, found %zu", reader->path,
				    reader->number, reader->data->columns.count, index);
	if (scanner->kind == OPEN || scanner->kind == CLOSE)
		return vp_error_new("%s:%zu: a sparse row ('{'): expected a value for each "
				    "attribute",
				    reader->path, reader->number);
	if (scanner->kind == WORD && !strcmp(scanner->word, "?")) {
		*value = NAN;
		return NULL;
	}
	if (column->type == VP_COLUMN_NOMINAL)
		return vp_table_label(reader, index, scanner->word, false, value);
	return vp_table_number(scanner->word, value)
		   ? NULL
		   : vp_table_not_number(reader, index, scanner->word);
}

static struct vp_error *read_row(struct scanner *scanner)
{
	size_t columns = scanner->reader->data->columns.count;

	VP_TRY(vp_table_row(scanner->reader));
	for (size_t i = 0; i < columns; i++) {
		if (i)
			VP_TRY(scan(scanner));
		VP_TRY(read_value(scanner, i));
	}
	VP_TRY(scan(scanner));
	if (scanner->kind != END)
		return vp_error_new("%s:%zu: expected %zu values, found more",
				    scanner->reader->path, scanner->reader->number, columns);
	return NULL;
}

struct vp_error *vp_table_read_arff(struct vp_table_reader *reader)
{
	struct scanner scanner = {.reader = reader};
	bool more;

	VP_TRY(read_header(&scanner));
	if (!reader->data->columns.count)
		return expected(&scanner, "an @attribute before @data");
	for (;;) {
		VP_TRY(next_line(&scanner, &more));
		if (!more)
			return NULL;
		VP_TRY(scan(&scanner));
		if (scanner.kind != END)
			VP_TRY(read_row(&scanner));
	}
}
