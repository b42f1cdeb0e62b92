/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CSV as written by spreadsheets: a line of names, then rows. The separator is the first of comma,
 * semicolon, tab and blank that the first line has. A field may be in double quotes, with "" for a
 * quote, and may then contain line ends. With semicolons, numbers may have a decimal comma. Empty
 * fields, '?' and NA are missing. A column with only numbers is numeric, any other is nominal: the
 * file is read twice, first to determine the types.
 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/vec.h"
#include "stats/data.h"
#include "table/reader_private.h"

struct csv {
	struct vp_dataset_reader *reader;
	char separator; /* ' ': any number of blanks */
	struct vp_buffer record;
	VP_VEC(size_t) fields; /* offsets into the record, each NUL-terminated */
	VP_VEC(bool) quoted;
};

static bool quotes_are_open(const char *text, bool open)
{
	for (; *text; text++)
		open ^= *text == '"';
	return open;
}

/* Reads a row: usually one line; more if a quoted field contains line ends. Skips empty lines. */
static struct vp_error *csv_next_record(struct csv *csv, bool *more)
{
	struct vp_dataset_reader *reader = csv->reader;

	csv->record.size = 0;
	do {
		VP_TRY(vp_dataset_line(reader, more));
		if (!*more)
			return NULL;
	} while (!reader->line[strspn(reader->line, " \t")]);
	size_t first = reader->number;
	const char *line = reader->line;
	if (reader->number == 1 && !strncmp(line, "\xef\xbb\xbf", 3))
		line += 3;
	bool open = quotes_are_open(line, false);
	vp_buffer_string(&csv->record, line);
	while (open) {
		VP_TRY(vp_dataset_line(reader, more));
		if (!*more)
			return vp_error_new("%s:%zu: expected closing \"", reader->path, first);
		vp_buffer_string(&csv->record, "\n");
		vp_buffer_string(&csv->record, reader->line);
		open = quotes_are_open(reader->line, open);
	}
	return NULL;
}

static bool is_separator(const struct csv *csv, char c)
{
	return csv->separator == ' ' ? c == ' ' || c == '\t' : c == csv->separator;
}

/* Removes the quotes of a field in place; returns the position after the closing quote. */
static char *csv_take_quoted(char *from, char **to)
{
	for (; *from; from++) {
		if (*from == '"' && *++from != '"')
			break;
		*(*to)++ = *from;
	}
	return from;
}

static char *csv_skip_blanks(const struct csv *csv, char *at)
{
	while ((*at == ' ' || *at == '\t') && (csv->separator == ' ' || !is_separator(csv, *at)))
		at++;
	return at;
}

/* Reads one field from `at` and advances `at` to the next one; NULL after the last. */
static struct vp_error *csv_take_field(struct csv *csv, char *base, char **at)
{
	char *start = csv_skip_blanks(csv, *at), *to = start, *end = start;
	bool quoted = *start == '"';

	if (quoted) {
		end = csv_skip_blanks(csv, csv_take_quoted(start + 1, &to));
		if (csv->separator == ' ' && end > start)
			end -= *end && (end[-1] == ' ' || end[-1] == '\t');
		if (*end && !is_separator(csv, *end))
			return vp_error_new("%s:%zu: expected a separator after a quoted field",
					    csv->reader->path, csv->reader->number);
	} else {
		while (*end && !is_separator(csv, *end))
			end++;
		to = end;
		while (to > start && isspace((unsigned char)to[-1]))
			to--;
	}
	vp_vec_push(&csv->fields, (size_t)(start - base));
	vp_vec_push(&csv->quoted, quoted);
	*at = *end ? end + 1 : NULL;
	*to = 0;
	return NULL;
}

static struct vp_error *next_row(struct csv *csv, bool *more)
{
	csv->fields.count = csv->quoted.count = 0;
	VP_TRY(csv_next_record(csv, more));
	if (!*more)
		return NULL;
	vp_buffer_text(&csv->record);
	char *base = csv->record.bytes, *at = base;
	while (at) {
		if (csv->separator == ' ' && !*csv_skip_blanks(csv, at))
			break;
		VP_TRY(csv_take_field(csv, base, &at));
	}
	return NULL;
}

static const char *csv_field(const struct csv *csv, size_t index)
{
	return csv->record.bytes + csv->fields.at[index];
}

static bool csv_is_missing(const struct csv *csv, size_t index)
{
	const char *text = csv_field(csv, index);

	return !*text || (!csv->quoted.at[index] && (!strcmp(text, "?") || !strcmp(text, "NA")));
}

/* With semicolons, a number may have a decimal comma. */
static bool csv_is_number(const struct csv *csv, size_t index, double *value)
{
	const char *text = csv_field(csv, index);

	return vp_dataset_number(text, '.', value) ||
	       (csv->separator == ';' && vp_dataset_number(text, ',', value));
}

static char find_separator(const char *line)
{
	static const char separators[] = ",;\t";

	for (const char *at = separators; *at; at++) {
		bool open = false;
		for (const char *c = line; *c; c++) {
			open ^= *c == '"';
			if (!open && *c == *at)
				return *at;
		}
	}
	return ' ';
}

static struct vp_error *read_names(struct csv *csv)
{
	struct vp_dataset_reader *reader = csv->reader;
	double number;
	bool more;

	VP_TRY(csv_next_record(csv, &more));
	if (!more)
		return vp_error_new("%s: expected a line of column names, found nothing",
				    reader->path);
	csv->separator = find_separator(vp_buffer_text(&csv->record));
	rewind(reader->file);
	reader->number = 0;
	VP_TRY(next_row(csv, &more));
	if (csv->fields.count > VP_TABLE_MAX_COLUMNS)
		return vp_error_new("%s:%zu: expected at most %d columns", reader->path,
				    reader->number, VP_TABLE_MAX_COLUMNS);
	for (size_t i = 0; i < csv->fields.count; i++) {
		const char *name = csv_field(csv, i);
		if (!*name || (!csv->quoted.at[i] && csv_is_number(csv, i, &number)))
			return vp_error_new("%s:%zu: column %zu: expected a name, not '%s'",
					    reader->path, reader->number, i + 1, name);
		vp_dataset_column(reader, vp_strdup(name), VP_DATA_NUMERIC);
	}
	return NULL;
}

static struct vp_error *check_count(const struct csv *csv)
{
	return csv->fields.count == csv->reader->data->columns.count
		   ? NULL
		   : vp_dataset_not_row(csv->reader, csv->fields.count);
}

/* A word such as "inf" that strtod() accepts is an error, not a label. */
static struct vp_error *check_word(const struct csv *csv, size_t column)
{
	const char *text = csv_field(csv, column);
	char *end;
	double value = strtod(text, &end);

	if (end != text && !*end && !isfinite(value))
		return vp_dataset_not_number(csv->reader, column, text);
	return NULL;
}

static struct vp_error *csv_find_types(struct csv *csv)
{
	double number;
	bool more;

	for (;;) {
		VP_TRY(next_row(csv, &more));
		if (!more)
			return NULL;
		VP_TRY(check_count(csv));
		for (size_t i = 0; i < csv->fields.count; i++) {
			struct vp_column *column = &csv->reader->data->columns.at[i];
			if (csv_is_missing(csv, i) || csv_is_number(csv, i, &number))
				continue;
			VP_TRY(check_word(csv, i));
			column->type = VP_DATA_NOMINAL;
			column->line = column->line ? column->line : csv->reader->number;
		}
	}
}

static struct vp_error *read_rows(struct csv *csv)
{
	struct vp_data *data = csv->reader->data;
	bool more;

	for (;;) {
		VP_TRY(next_row(csv, &more));
		if (!more)
			return NULL;
		VP_TRY(check_count(csv));
		VP_TRY(vp_dataset_row(csv->reader));
		for (size_t i = 0; i < csv->fields.count; i++) {
			double *value = &data->columns.at[i].values[data->rows - 1];
			if (csv_is_missing(csv, i))
				*value = NAN;
			else if (data->columns.at[i].type == VP_DATA_NOMINAL)
				VP_TRY(vp_dataset_label(csv->reader, i, csv_field(csv, i), true,
							value));
			else if (!csv_is_number(csv, i, value))
				return vp_dataset_not_number(csv->reader, i, csv_field(csv, i));
		}
	}
}

static struct vp_error *read_twice(struct csv *csv)
{
	bool more;

	VP_TRY(read_names(csv));
	VP_TRY(csv_find_types(csv));
	rewind(csv->reader->file);
	csv->reader->number = 0;
	VP_TRY(next_row(csv, &more));
	return read_rows(csv);
}

struct vp_error *vp_dataset_read_csv(struct vp_dataset_reader *reader)
{
	struct csv csv = {.reader = reader, .separator = ','};
	struct vp_error *error = read_twice(&csv);

	vp_buffer_deinit(&csv.record);
	vp_vec_deinit(&csv.fields);
	vp_vec_deinit(&csv.quoted);
	return error;
}
