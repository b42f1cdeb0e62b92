/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads events of a trace.dat file: classes, times, pages. */
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "import/tracedat/tracedat.h"
#include "schema/event_class.h"
#include "schema/ring_page.h"
#include "schema/tracepoint_format.h"

#include <string.h>

#include "import/tracedat/tracedat_sections.h"

enum { NO_CLASS = VP_TRACEDAT_NO_CLASS };
#define TICK_NS 10000000ULL /* of the clock "uptime" (USER_HZ is 100) */

static uint64_t tracedat_walk_shifted(const struct vp_tracedat *file,
				      const struct vp_tracedat_shifts *shifts, uint64_t time)
{
	size_t index = 0, last = shifts->of.count - 1;

	if (!last)
		return time + (uint64_t)shifts->of.at[0].offset;
	/* The previous and the next offset; after the last one, the last two, as trace-cmd does. */
	while (index + 1 < last && shifts->of.at[index + 1].time <= time)
		index++;
	const struct vp_tracedat_shift *from = &shifts->of.at[index], *to = from + 1;
	__int128 offset = from->offset, length = (__int128)to->time - from->time;
	__int128 behind = (__int128)time - from->time, growth = (__int128)to->offset - from->offset;
	if (file->interpolates && length > 0) /* damaged offsets may be out of range: no overflow */
		offset += (__int128)((unsigned __int128)behind * (unsigned __int128)growth +
				     (unsigned __int128)length / 2) /
			  length;
	unsigned bits = from->fraction_bits < 64 ? (unsigned)from->fraction_bits : 0;
	return (uint64_t)(((unsigned __int128)time * from->scaling) >> bits) + (uint64_t)offset;
}

static uint64_t tracedat_walk_time_of(const struct vp_tracedat *file,
				      const struct vp_tracedat_walk *walk, uint64_t time)
{
	if (walk->cpu < file->shifts.count && file->shifts.at[walk->cpu].of.count)
		time = tracedat_walk_shifted(file, &file->shifts.at[walk->cpu], time);
	if (file->mult)
		return (uint64_t)(((unsigned __int128)time * file->mult) >> file->shift);
	return file->buffers.at[walk->buffer].counts == VP_TRACEDAT_TICKS ? time * TICK_NS : time;
}

/* "name: sched_switch" */
static struct vp_slice tracedat_walk_name_of(struct vp_slice text)
{
	struct vp_cursor lines = vp_cursor_of(text.bytes, text.size);
	struct vp_slice line;

	if (!vp_cursor_line(&lines, &line) || line.size < 6 || memcmp(line.bytes, "name: ", 6) != 0)
		return (struct vp_slice){"", 0};
	return (struct vp_slice){line.bytes + 6, line.size - 6};
}

static uint32_t tracedat_walk_add_class(struct vp_tracedat *file,
					const struct vp_tracedat_format *format)
{
	struct vp_slice name = tracedat_walk_name_of(format->text);
	VP_AUTO_FREE char *whole = vp_format("%.*s:%.*s", (int)format->system.size,
					     format->system.bytes, (int)name.size, name.bytes);
	vp_tracepoint_layout layouts = {0};
	struct vp_event_class *class;
	struct vp_error *error = vp_event_classes_add(&file->classes, whole, &class);

	if (error) {
		vp_error_free(error);
		return NO_CLASS;
	}
	error = vp_tracepoint_format_parse(whole, format->text.bytes, format->text.size, class,
					   &layouts);
	vp_vec_push(&file->layouts, layouts);
	bool good = !error;
	vp_error_free(error);
	return good ? (uint32_t)file->classes.count - 1 : NO_CLASS;
}

/* Formats are parsed on first use: a file has over a thousand. */
uint32_t vp_tracedat_class(struct vp_tracedat *file, uint32_t id)
{
	const uint32_t *known = vp_map_find(&file->class_of_id, id);
	uint32_t class = NO_CLASS;
	bool inserted;

	if (known)
		return *known;
	vp_vec_each (&file->formats, format)
		if (format->id == id) {
			class = tracedat_walk_add_class(file, format);
			break;
		}
	vp_map_insert(&file->class_of_id, id, class, &inserted);
	return class;
}

/* Decompresses the next chunk of pages. */
static bool open_piece(const struct vp_tracedat_cpu *cpu, struct vp_tracedat_walk *walk)
{
	if (!walk->pieces.start) {
		walk->pieces = vp_cursor_of(cpu->pages.bytes, cpu->pages.size);
		walk->pieces_left = cpu->pages.size ? vp_cursor_u32(&walk->pieces) : 0;
	}
	if (!walk->pieces_left)
		return false;
	walk->pieces_left--;
	walk->piece.size = walk->offset = 0;
	if (vp_tracedat_unpack(&walk->pieces, &walk->piece))
		return true;
	walk->malformed++;
	walk->pieces_left = 0;
	return false;
}

/* The next page, valid or not; false after the last. */
static bool next_page(struct vp_tracedat *file, struct vp_tracedat_walk *walk, struct vp_slice *ret)
{
	const struct vp_tracedat_buffer *buffer = &file->buffers.at[walk->buffer];
	if (walk->cpu >= buffer->cpus.count)
		return false;
	const struct vp_tracedat_cpu *cpu = &buffer->cpus.at[walk->cpu];
	struct vp_slice pages = cpu->pages;

	do {
		if (cpu->is_packed)
			pages = (struct vp_slice){walk->piece.bytes, walk->piece.size};
		if (pages.size - walk->offset >= buffer->page_size) {
			*ret = (struct vp_slice){pages.bytes + walk->offset, buffer->page_size};
			walk->offset += buffer->page_size;
			return true;
		}
	} while (cpu->is_packed && open_piece(cpu, walk));
	if (cpu->is_packed) {
		vp_buffer_deinit(&walk->piece);
		walk->offset = 0;
	}
	return false;
}

static bool open_page(struct vp_tracedat *file, struct vp_tracedat_walk *walk)
{
	struct vp_slice page;

	while (next_page(file, walk, &page)) {
		if (vp_ring_page_open_of(page, file->long_size, &walk->page)) {
			walk->missed += walk->page.missed;
			walk->in_page = true;
			return true;
		}
		walk->malformed++;
	}
	return false;
}

bool vp_tracedat_next(struct vp_tracedat *file, struct vp_tracedat_walk *walk, uint32_t *class,
		      uint64_t *time, struct vp_slice *raw)
{
	while (walk->in_page || open_page(file, walk)) {
		if (!vp_ring_page_next(&walk->page, time, raw)) {
			walk->malformed += walk->page.malformed;
			walk->in_page = false;
			continue;
		}
		struct vp_cursor common = vp_cursor_of(raw->bytes, raw->size);
		*class = vp_tracedat_class(file, vp_cursor_u16(&common));
		if (vp_cursor_ok(&common) && *class != NO_CLASS) {
			*time = tracedat_walk_time_of(file, walk, *time);
			return true;
		}
		walk->malformed++;
	}
	return false;
}
