/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/writer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

enum { FLUSH_SIZE = 256 * 1024 };

static void writer_flush(struct vp_maps_writer *writer)
{
	if (writer->fd < 0)
		return;
	if (!writer->error)
		writer->error =
		    vp_fd_write_all(writer->fd, writer->buffer.bytes, writer->buffer.size);
	writer->buffer.size = 0;
}

/* Truncates a name that would exceed a line: the reader would reject the line. */
static void writer_put_escaped(struct vp_maps_writer *writer, const char *text)
{
	enum { LONGEST = 2048 }; /* escaped: at most three times as long, which still fits a line */

	if (strnlen(text, LONGEST + 1) <= LONGEST) {
		vp_maps_escape(text, &writer->buffer);
	} else {
		VP_AUTO_FREE char *cut = vp_strndup(text, LONGEST);
		vp_maps_escape(cut, &writer->buffer);
	}
}

static void put_blank(struct vp_maps_writer *writer)
{
	vp_buffer_append(&writer->buffer, " ", 1);
}

/* Faster than printf, which would dominate the time of a dump. */
static void put_number_word(struct vp_maps_writer *writer, uint64_t value, unsigned base)
{
	char digits[20], *first = digits + sizeof(digits);

	do {
		*--first = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	put_blank(writer);
	vp_buffer_append(&writer->buffer, first, (size_t)(digits + sizeof(digits) - first));
}

static void put_hex(struct vp_maps_writer *writer, uint64_t value)
{
	put_number_word(writer, value, 16);
}

static void put_decimal(struct vp_maps_writer *writer, uint64_t value)
{
	put_number_word(writer, value, 10);
}

static void writer_put_word(struct vp_maps_writer *writer, const char *text)
{
	put_blank(writer);
	writer_put_escaped(writer, text);
}

static void put_build_id(struct vp_maps_writer *writer, const struct vp_build_id *id)
{
	put_blank(writer);
	vp_build_id_put(id, &writer->buffer);
}

static void line_begin(struct vp_maps_writer *writer, const char *keyword)
{
	vp_buffer_string(&writer->buffer, keyword);
}

static void line_end(struct vp_maps_writer *writer)
{
	vp_buffer_append(&writer->buffer, "\n", 1);
	writer->lines++;
	if (writer->buffer.size >= FLUSH_SIZE)
		writer_flush(writer);
}

void vp_maps_writer_init(struct vp_maps_writer *writer, int fd)
{
	*writer = (struct vp_maps_writer){.fd = fd};
	line_begin(writer, "vperf-maps");
	put_decimal(writer, VP_MAPS_VERSION);
	line_end(writer);
}

int vp_maps_writer_finish(struct vp_maps_writer *writer)
{
	line_begin(writer, "end");
	put_decimal(writer, writer->lines);
	line_end(writer);
	writer_flush(writer);
	return writer->error;
}

void vp_maps_writer_deinit(struct vp_maps_writer *writer)
{
	vp_buffer_deinit(&writer->buffer);
}

int vp_maps_writer_flush(struct vp_maps_writer *writer)
{
	writer_flush(writer);
	return writer->error;
}

void vp_maps_writer_adopt(struct vp_maps_writer *writer, struct vp_slice text, const char *keywords)
{
	const char *last = text.size ? memrchr(text.bytes, '\n', text.size) : NULL;
	struct vp_cursor lines = vp_cursor_of(text.bytes, last ? (size_t)(last - text.bytes) : 0);
	struct vp_slice line;

	while (vp_cursor_line(&lines, &line)) {
		if (line.size < 2 || line.size > VP_MAPS_MAX_LINE || line.bytes[1] != ' ' ||
		    !memchr(keywords, line.bytes[0], strlen(keywords)))
			continue;
		vp_buffer_append(&writer->buffer, line.bytes, line.size);
		line_end(writer);
	}
}

void vp_maps_write_machine(struct vp_maps_writer *writer, bool guest, const char *name)
{
	line_begin(writer, guest ? "machine guest" : "machine host");
	writer_put_word(writer, name);
	line_end(writer);
}

void vp_maps_write_source(struct vp_maps_writer *writer, const char *source)
{
	line_begin(writer, "source");
	writer_put_word(writer, source);
	line_end(writer);
}

void vp_maps_write_kernel(struct vp_maps_writer *writer, const char *release,
			  const struct vp_build_id *id)
{
	line_begin(writer, "kernel");
	writer_put_word(writer, release);
	put_build_id(writer, id);
	line_end(writer);
}

void vp_maps_write_paging(struct vp_maps_writer *writer, unsigned levels, bool kpti)
{
	vp_buffer_printf(&writer->buffer, "address-bits %u kpti %d", levels, kpti);
	line_end(writer);
}

void vp_maps_write_clock(struct vp_maps_writer *writer, uint64_t mono_ns, uint64_t tsc,
			 uint64_t error_ns)
{
	line_begin(writer, "clock");
	put_decimal(writer, mono_ns);
	put_decimal(writer, tsc);
	put_decimal(writer, error_ns);
	line_end(writer);
}

void vp_maps_write_kernel_symbol(struct vp_maps_writer *writer, uint64_t addr, uint64_t size,
				 char type, const char *name, const char *module)
{
	char type_text[2] = {type, 0};

	line_begin(writer, "k");
	put_hex(writer, addr);
	put_hex(writer, size);
	writer_put_word(writer, type_text);
	writer_put_word(writer, name);
	if (module)
		writer_put_word(writer, module);
	line_end(writer);
}

void vp_maps_write_space(struct vp_maps_writer *writer, uint64_t id, uint32_t tgid, uint64_t root,
			 uint64_t start_ns, uint64_t end_ns, const char *comm)
{
	line_begin(writer, "a");
	put_decimal(writer, id);
	put_decimal(writer, tgid);
	put_hex(writer, root);
	put_decimal(writer, start_ns);
	put_decimal(writer, end_ns);
	writer_put_word(writer, comm);
	line_end(writer);
}

void vp_maps_write_fork(struct vp_maps_writer *writer, uint64_t id, uint64_t parent)
{
	line_begin(writer, "f");
	put_decimal(writer, id);
	put_decimal(writer, parent);
	line_end(writer);
}

void vp_maps_write_mapping(struct vp_maps_writer *writer, uint64_t id, uint64_t start, uint64_t end,
			   uint64_t pgoff, uint64_t from_ns, const struct vp_build_id *build_id,
			   const char *path)
{
	line_begin(writer, "m");
	put_decimal(writer, id);
	put_hex(writer, start);
	put_hex(writer, end);
	put_hex(writer, pgoff);
	put_decimal(writer, from_ns);
	put_build_id(writer, build_id);
	writer_put_word(writer, path);
	line_end(writer);
}

void vp_maps_write_image(struct vp_maps_writer *writer, const struct vp_build_id *id,
			 const char *path)
{
	line_begin(writer, "i");
	put_build_id(writer, id);
	writer_put_word(writer, path);
	line_end(writer);
}

void vp_maps_write_symbol(struct vp_maps_writer *writer, uint64_t offset, uint64_t size,
			  const char *name)
{
	line_begin(writer, "s");
	put_hex(writer, offset);
	put_hex(writer, size);
	writer_put_word(writer, name);
	line_end(writer);
}

void vp_maps_write_jit(struct vp_maps_writer *writer, uint64_t id, uint64_t addr, uint64_t size,
		       const char *name)
{
	line_begin(writer, "j");
	put_decimal(writer, id);
	put_hex(writer, addr);
	put_hex(writer, size);
	writer_put_word(writer, name);
	line_end(writer);
}

void vp_maps_write_jit_from(struct vp_maps_writer *writer, uint64_t id, uint64_t addr,
			    uint64_t size, const char *name, uint64_t from_ns)
{
	line_begin(writer, "j");
	put_decimal(writer, id);
	put_hex(writer, addr);
	put_hex(writer, size);
	writer_put_word(writer, name);
	put_decimal(writer, from_ns);
	line_end(writer);
}

void vp_maps_write_note(struct vp_maps_writer *writer, const char *format, ...)
{
	va_list args;
	char text[1024];

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	line_begin(writer, "n");
	writer_put_word(writer, text);
	line_end(writer);
}
