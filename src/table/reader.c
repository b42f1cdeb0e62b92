/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table/reader.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/intern.h"
#include "base/vec.h"
#include "table/reader_private.h"

struct vp_error *vp_dataset_line(struct vp_dataset_reader *reader, bool *line)
{
	ssize_t size = getline(&reader->line, &reader->line_room, reader->file);

	*line = size >= 0;
	if (size < 0 && ferror(reader->file))
		return vp_error_errno(errno, "cannot read '%s'", reader->path);
	if (size < 0)
		return NULL;
	reader->number++;
	if (strlen(reader->line) != (size_t)size)
		return vp_error_new("%s:%zu: a zero byte: expected text", reader->path,
				    reader->number);
	while (size && (reader->line[size - 1] == '\n' || reader->line[size - 1] == '\r'))
		reader->line[--size] = 0;
	reader->line_size = (size_t)size;
	return NULL;
}

void vp_dataset_column(struct vp_dataset_reader *reader, char *name, enum vp_data_type type)
{
	vp_data_column_add(reader->data, name, type);
	vp_vec_push(&reader->labels, (struct vp_intern){0});
	vp_vec_push(&reader->dates, NULL);
}

struct vp_error *vp_dataset_row(struct vp_dataset_reader *reader)
{
	struct vp_data *data = reader->data;

	if (data->rows == VP_TABLE_MAX_ROWS)
		return vp_error_new("%s:%zu: expected at most %u rows", reader->path,
				    reader->number, VP_TABLE_MAX_ROWS);
	if (data->rows == reader->room) {
		reader->room = reader->room ? reader->room + reader->room / 2 : 64;
		vp_vec_each (&data->columns, column)
			column->values =
			    vp_realloc_array(column->values, reader->room, sizeof(double));
	}
	data->rows++;
	return NULL;
}

struct vp_error *vp_dataset_not_row(const struct vp_dataset_reader *reader, size_t found)
{
	size_t columns = reader->data->columns.count;

	if (found < columns)
		return vp_error_new("%s:%zu: column %zu ('%s'): expected a value, found the end of "
				    "the row (%zu of %zu values)",
				    reader->path, reader->number, found + 1,
				    reader->data->columns.at[found].name, found, columns);
	return vp_error_new("%s:%zu: column %zu: expected %zu values, found more", reader->path,
			    reader->number, columns + 1, columns);
}

struct vp_error *vp_dataset_not_number(const struct vp_dataset_reader *reader, size_t column,
				       const char *text)
{
	return vp_error_new("%s:%zu: column %zu ('%s'): expected a finite number, not '%.80s'",
			    reader->path, reader->number, column + 1,
			    reader->data->columns.at[column].name, text);
}

struct vp_error *vp_dataset_label(struct vp_dataset_reader *reader, size_t column, const char *text,
				  bool add, double *value)
{
	struct vp_intern *intern = &reader->labels.at[column];
	struct vp_labels *labels = &reader->data->columns.at[column].labels;
	uint32_t id = vp_intern_string(intern, text);

	*value = id;
	if (id < labels->count)
		return NULL;
	if (!add)
		return vp_error_new("%s:%zu: column %zu ('%s'): expected one of its labels, not "
				    "'%.80s'",
				    reader->path, reader->number, column + 1,
				    reader->data->columns.at[column].name, text);
	if (id >= VP_TABLE_MAX_LABELS)
		return vp_error_new(
		    "%s:%zu: column %zu ('%s'): expected at most %d different words", reader->path,
		    reader->number, column + 1, reader->data->columns.at[column].name,
		    VP_TABLE_MAX_LABELS);
	vp_vec_push(labels, vp_strdup(text));
	return NULL;
}

/* Whether the first line that is not a comment begins with '@'. */
static struct vp_error *looks_like_arff(struct vp_dataset_reader *reader, bool *arff)
{
	bool more;

	*arff = false;
	for (;;) {
		VP_TRY(vp_dataset_line(reader, &more));
		if (!more)
			break;
		const char *text = reader->line + strspn(reader->line, " \t");
		if (!strncmp(text, "\xef\xbb\xbf", 3))
			text += 3;
		if (*text && *text != '%') {
			*arff = *text == '@';
			break;
		}
	}
	rewind(reader->file);
	reader->number = 0;
	return NULL;
}

static struct vp_error *reader_read_all(struct vp_dataset_reader *reader)
{
	bool arff;

	VP_TRY(looks_like_arff(reader, &arff));
	VP_TRY(arff ? vp_dataset_read_arff(reader) : vp_dataset_read_csv(reader));
	if (!reader->data->columns.count)
		return vp_error_new("%s: expected columns, found none", reader->path);
	if (!reader->data->rows)
		return vp_error_new("%s:%zu: expected rows of data, found none", reader->path,
				    reader->number);
	vp_vec_each (&reader->data->columns, column)
		column->values =
		    vp_realloc_array(column->values, reader->data->rows, sizeof(double));
	reader->data->target = reader->data->columns.count - 1;
	return NULL;
}

struct vp_error *vp_dataset_read_stream(FILE *file, const char *path, struct vp_data *data)
{
	struct vp_dataset_reader reader = {.file = file, .path = path, .data = data};
	const char *slash = strrchr(path, '/');

	*data = (struct vp_data){.name = vp_strdup(slash ? slash + 1 : path)};
	struct vp_error *error = reader_read_all(&reader);
	vp_vec_each (&reader.labels, labels)
		vp_intern_deinit(labels);
	vp_vec_deinit(&reader.labels);
	vp_vec_each (&reader.dates, format)
		free(*format);
	vp_vec_deinit(&reader.dates);
	free(reader.line);
	if (error)
		vp_data_deinit(data);
	return error;
}

/* Copies a pipe to a temporary file: detecting the format and column types needs two passes. */
static struct vp_error *reader_copy_of(FILE *pipe, const char *path, FILE **copy)
{
	char bytes[65536];
	size_t size;

	*copy = tmpfile();
	if (!*copy)
		return vp_error_errno(errno, "cannot create a copy of '%s'", path);
	while ((size = fread(bytes, 1, sizeof(bytes), pipe)))
		if (fwrite(bytes, 1, size, *copy) != size)
			return vp_error_errno(errno, "cannot write a copy of '%s'", path);
	if (ferror(pipe))
		return vp_error_errno(errno, "cannot read '%s'", path);
	rewind(*copy);
	return NULL;
}

struct vp_error *vp_dataset_read(const char *path, struct vp_data *data)
{
	VP_AUTO_FCLOSE FILE *file = fopen(path, "re");
	VP_AUTO_FCLOSE FILE *copy = NULL;
	struct stat stat;

	*data = (struct vp_data){0};
	if (!file || fstat(fileno(file), &stat))
		return vp_error_errno(errno, "cannot open '%s'", path);
	if (S_ISDIR(stat.st_mode))
		return vp_error_new("'%s' is a directory: expected an ARFF or CSV file", path);
	if (!S_ISREG(stat.st_mode))
		VP_TRY(reader_copy_of(file, path, &copy));
	return vp_dataset_read_stream(copy ? copy : file, path, data);
}

static void reader_put_quoted(const char *text, struct vp_buffer *out)
{
	vp_buffer_string(out, "\"");
	for (; *text; text++)
		vp_buffer_append(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
	vp_buffer_string(out, "\"");
}

/* Appends the shortest text that is parsed as the same number. */
static void put_csv_number(double value, struct vp_buffer *out)
{
	char text[40];

	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	vp_buffer_string(out, text);
}

void vp_dataset_write_csv(const struct vp_data *data, struct vp_buffer *out)
{
	size_t columns = data->columns.count;

	for (size_t i = 0; i < columns; i++) {
		reader_put_quoted(data->columns.at[i].name, out);
		vp_buffer_string(out, i + 1 < columns ? "," : "\n");
	}
	for (size_t row = 0; row < data->rows; row++)
		for (size_t i = 0; i < columns; i++) {
			const struct vp_column *column = &data->columns.at[i];
			double value = column->values[row];
			if (!isnan(value) && column->type == VP_DATA_NOMINAL)
				reader_put_quoted(column->labels.at[(size_t)value], out);
			else if (!isnan(value))
				put_csv_number(value, out);
			vp_buffer_string(out, i + 1 < columns ? "," : "\n");
		}
}

/* Appends a word of ARFF, always quoted. */
static void reader_put_word(const char *text, struct vp_buffer *out)
{
	vp_buffer_string(out, "'");
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			vp_buffer_string(out, "\\");
		vp_buffer_append(out, *text == '\n' ? " " : text, 1);
	}
	vp_buffer_string(out, "'");
}

static void put_attribute(const struct vp_column *column, struct vp_buffer *out)
{
	vp_buffer_string(out, "@attribute ");
	reader_put_word(column->name, out);
	vp_buffer_string(out, column->type == VP_DATA_NOMINAL ? " {" : " numeric\n");
	if (column->type != VP_DATA_NOMINAL)
		return;
	for (size_t i = 0; i < column->labels.count; i++) {
		reader_put_word(column->labels.at[i], out);
		vp_buffer_string(out, i + 1 < column->labels.count ? "," : "");
	}
	vp_buffer_string(out, "}\n");
}

void vp_dataset_write_arff(const struct vp_data *data, struct vp_buffer *out)
{
	vp_buffer_string(out, "@relation ");
	reader_put_word(data->name, out);
	vp_buffer_string(out, "\n\n");
	vp_vec_each (&data->columns, column)
		put_attribute(column, out);
	vp_buffer_string(out, "\n@data\n");
	for (size_t row = 0; row < data->rows; row++)
		vp_vec_each (&data->columns, column) {
			double value = column->values[row];
			if (isnan(value))
				vp_buffer_string(out, "?");
			else if (column->type == VP_DATA_NOMINAL)
				reader_put_word(column->labels.at[(size_t)value], out);
			else
				put_csv_number(value, out);
			vp_buffer_string(
			    out, column + 1 < data->columns.at + data->columns.count ? "," : "\n");
		}
}
