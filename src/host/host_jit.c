/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/host_jit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/io.h"
#include "guestmem/symbols/jit.h"
#include "host/confined_text.h"
#include "maps/proc.h"

enum {
	LARGEST_MAP = 64 << 20,
	MAX_LINES = 4 << 20, /* of all processes */
};

struct reading {
	const struct vp_host_jit *jits;
	size_t count;
	unsigned lines;
};

static char *host_jit_path_of(const struct vp_host_jit *jit)
{
	return jit->is_alive ? vp_format("/proc/%u/root/tmp/perf-%u.map", jit->pid,
					 vp_proc_inner_pid(jit->pid))
			     : vp_format("/tmp/perf-%u.map", jit->pid);
}

static void host_jit_write_lines(struct reading *reading, uint64_t space,
				 const struct vp_buffer *text, struct vp_maps_writer *writer)
{
	struct vp_cursor lines = vp_cursor_of(text->bytes, text->size);
	struct vp_slice line = {0};

	while (reading->lines < MAX_LINES && vp_cursor_line(&lines, &line)) {
		struct vp_jit_symbol symbol;
		if (!vp_jit_line_parse(line, &symbol))
			continue;
		VP_AUTO_FREE char *name = vp_strndup(symbol.name.bytes, symbol.name.size);
		vp_maps_write_jit(writer, space, symbol.addr, symbol.size, name);
		reading->lines++;
	}
}

/* Reads as much as possible: a part may be unreadable, or the file may grow. */
static void host_jit_read_text(int fd, struct vp_buffer *text)
{
	enum { PIECE = 1 << 16 };
	ssize_t got;

	do {
		char *room = vp_buffer_extend(text, PIECE);
		got = vp_read(fd, room, PIECE);
		text->size -= PIECE - (got > 0 ? (size_t)got : 0);
	} while (got > 0 && text->size < LARGEST_MAP);
}

/* Any user may create a file, link or pipe of that name in /tmp. */
static void host_jit_write_map(struct reading *reading, const struct vp_host_jit *jit,
			       struct vp_maps_writer *writer)
{
	VP_AUTO_FREE char *path = host_jit_path_of(jit);
	VP_AUTO_CLOSE int fd = vp_file_open_regular(path, LARGEST_MAP, O_NOFOLLOW);
	struct vp_buffer text = {0};
	struct stat status;

	if (fd < 0 || fstat(fd, &status) || (status.st_uid != jit->uid && status.st_uid != 0))
		return;
	host_jit_read_text(fd, &text);
	host_jit_write_lines(reading, jit->space, &text, writer);
	vp_buffer_deinit(&text);
}

/* In the confined process. */
static void write_maps(struct vp_maps_writer *writer, void *context)
{
	struct reading *reading = context;

	for (size_t i = 0; i < reading->count; i++)
		host_jit_write_map(reading, &reading->jits[i], writer);
}

struct vp_error *vp_host_jit_write(struct vp_maps_writer *writer, const struct vp_host_jit *jits,
				   size_t count, const struct vp_meanwhile *meanwhile)
{
	struct reading reading = {.jits = jits, .count = count};
	const struct vp_confined_text text = {
	    .write = write_maps, .context = &reading, .keywords = "j", .meanwhile = meanwhile};

	return count ? vp_confined_text_write(writer, &text) : NULL;
}
