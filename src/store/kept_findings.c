/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "store/kept_findings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "store/history.h"

/* Limit for reading a file that another program has modified. */
enum { FILE_LIMIT = 16 << 20, FILE_MOST = 1 << 20 };

static char *findings_path(const char *path)
{
	return vp_format("%s/" VP_HISTORY_FINDINGS, path);
}

void vp_kept_finding_put(uint64_t time, uint64_t permyriad, const char *const texts[VP_KEPT_TEXTS],
			 struct vp_buffer *out)
{
	vp_buffer_printf(out, "%" PRIu64 "\t%" PRIu64, time, permyriad);
	for (size_t i = 0; i < VP_KEPT_TEXTS; i++) {
		vp_buffer_string(out, "\t");
		if (texts[i])
			vp_text_clean(texts[i], strlen(texts[i]), out);
	}
	vp_buffer_string(out, "\n");
}

static bool ends_in_line(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char last = '\n';

	return size <= 0 || vp_pread(fd, &last, 1, size - 1) != 1 || last == '\n';
}

struct vp_error *vp_kept_finding_append(const char *path, const struct vp_buffer *line)
{
	VP_AUTO_FREE char *file = findings_path(path);
	VP_AUTO_CLOSE int fd =
	    open(file, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return vp_error_errno(errno, "cannot open '%s'", file);
	int failed = ends_in_line(fd) ? 0 : vp_fd_write_all(fd, "\n", 1);
	if (!failed)
		failed = vp_fd_write_all(fd, line->bytes, line->size);
	return failed ? vp_error_errno(-failed, "cannot write to '%s'", file) : NULL;
}

/* A field up to the next tab. */
static struct vp_slice next_field(struct vp_slice *line)
{
	const char *tab = memchr(line->bytes, '\t', line->size);
	struct vp_slice field = {line->bytes, tab ? (size_t)(tab - line->bytes) : line->size};
	size_t used = field.size + (tab != NULL);

	line->bytes += used;
	line->size -= used;
	return field;
}

static bool field_number(struct vp_slice field, uint64_t *ret)
{
	struct vp_cursor cursor = vp_cursor_of(field.bytes, field.size);

	*ret = vp_cursor_decimal(&cursor);
	return vp_cursor_ok(&cursor) && !vp_cursor_left(&cursor);
}

static bool read_finding(struct vp_slice line, struct vp_kept_finding *ret)
{
	size_t tabs = 0;

	for (size_t i = 0; i < line.size; i++)
		tabs += line.bytes[i] == '\t';
	if (tabs != VP_KEPT_TEXTS + 1 || !field_number(next_field(&line), &ret->time) ||
	    !field_number(next_field(&line), &ret->permyriad))
		return false;
	for (size_t i = 0; i < VP_KEPT_TEXTS; i++) {
		struct vp_slice field = next_field(&line);
		struct vp_buffer clean = {0};
		vp_text_clean(field.bytes, field.size, &clean);
		ret->texts[i] = vp_strdup(vp_buffer_text(&clean));
		vp_buffer_deinit(&clean);
	}
	return true;
}

void vp_kept_findings_parse(const char *text, size_t size, vp_kept_findings *ret, uint64_t *bad)
{
	struct vp_cursor cursor = vp_cursor_of(text, size);
	struct vp_slice line;

	*ret = (vp_kept_findings){0};
	*bad = 0;
	while (vp_cursor_line(&cursor, &line)) {
		struct vp_kept_finding finding;
		if (read_finding(line, &finding))
			vp_vec_push(ret, finding);
		else
			++*bad;
	}
}

struct vp_error *vp_kept_findings_read(const char *path, vp_kept_findings *ret, uint64_t *bad)
{
	VP_AUTO_FREE char *file = findings_path(path);
	struct vp_buffer text = {0};

	*ret = (vp_kept_findings){0};
	*bad = 0;
	if (access(file, F_OK) && errno == ENOENT)
		return NULL;
	struct vp_error *error = vp_file_read(file, FILE_LIMIT, &text);
	if (!error)
		vp_kept_findings_parse(text.bytes, text.size, ret, bad);
	vp_buffer_deinit(&text);
	return error;
}

void vp_kept_findings_deinit(vp_kept_findings *findings)
{
	vp_vec_each (findings, finding)
		for (size_t i = 0; i < VP_KEPT_TEXTS; i++)
			free(finding->texts[i]);
	vp_vec_deinit(findings);
}

struct vp_error *vp_kept_findings_trim(const char *path, uint64_t since)
{
	VP_AUTO_FREE char *file = findings_path(path);
	vp_kept_findings findings;
	struct vp_buffer out = {0};
	uint64_t bad;
	size_t dropped = 0;
	struct stat status;

	VP_TRY(vp_kept_findings_read(path, &findings, &bad));
	vp_vec_each (&findings, finding) {
		if (finding->time < since)
			dropped++;
		else
			vp_kept_finding_put(finding->time, finding->permyriad,
					    (const char *const *)finding->texts, &out);
	}
	bool large = !stat(file, &status) && status.st_size > FILE_MOST;
	size_t skip = out.size > FILE_MOST / 2 && large ? out.size - FILE_MOST / 2 : 0;
	while (skip && skip < out.size && out.bytes[skip - 1] != '\n')
		skip++;
	struct vp_error *error = NULL;
	if (dropped || skip || bad)
		error = vp_file_publish(file, out.bytes + skip, out.size - skip);
	vp_buffer_deinit(&out);
	vp_kept_findings_deinit(&findings);
	return error;
}
