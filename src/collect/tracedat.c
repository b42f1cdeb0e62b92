/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/tracedat.h"

#include <string.h>

#include "collect/tracedat_sections.h"

enum {
	OPTION_DONE = 0,
	OPTION_BUFFER = 3, /* it, and those from 16 on: version 7 only */
	OPTION_CPUS = 8,
	OPTION_VERSION = 9, /* of trace-cmd */
	OPTION_ID = 11,
	OPTION_TIME_SHIFT = 12,
	OPTION_GUEST = 13,
	OPTION_CLOCK_RATE = 14,
	OPTION_FTRACE_FORMATS = 17,
	OPTION_FORMATS = 18,
	OPTION_COMMANDS = 21,
	OPTION_TEXT = 22,
	MOST_OPTION_SECTIONS = 4096,
	MOST_CPUS = 65535,
	MOST_SYSTEMS = 65536,
	NO_CLASS = VP_TRACEDAT_NO_CLASS
};
enum { SHIFT_INTERPOLATES = 1 };

static struct vp_error *malformed(const struct vp_tracedat *file, const char *what)
{
	return vp_error_new("'%s' is damaged: %s", file->source, what);
}

static struct vp_slice take_sized(struct vp_cursor *cursor)
{
	uint64_t size = vp_cursor_u64(cursor);

	if (size > vp_cursor_left(cursor)) {
		cursor->failed = true;
		size = 0;
	}
	return vp_cursor_bytes(cursor, (size_t)size);
}

static bool takes_text(struct vp_cursor *cursor, const char *text, size_t size)
{
	struct vp_slice have = vp_cursor_bytes(cursor, size);

	return have.size == size && !memcmp(have.bytes, text, size);
}

static struct vp_error *take_page_size(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	file->page_size = vp_cursor_u32(cursor);
	if (!vp_cursor_ok(cursor) || file->page_size < 64 || file->page_size > 1 << 24)
		return malformed(file, "the size of a page");
	return NULL;
}

/* What follows the version. */
static struct vp_error *take_kind(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	struct vp_slice kind = vp_cursor_bytes(cursor, 2);

	if (!vp_cursor_ok(cursor) || kind.bytes[0] != 0 || kind.bytes[1] != 8)
		return vp_error_new("'%s' is from a big-endian or 32-bit machine", file->source);
	return take_page_size(file, cursor);
}

static struct vp_error *take_version(struct vp_tracedat *file, struct vp_cursor *cursor,
				     bool *in_sections)
{
	static const char magic[] = VP_TRACEDAT_MAGIC;

	if (!takes_text(cursor, magic, sizeof(magic) - 1))
		return vp_error_new("'%s' is no file of trace-cmd", file->source);
	struct vp_slice version = vp_cursor_string(cursor);
	*in_sections = vp_slice_is(version, "7");
	if (!*in_sections && !vp_slice_is(version, "6"))
		return vp_error_new("'%s' is of another version than 6 or 7: 'trace-cmd convert "
				    "--file-version 7 -i FILE -o NEW' makes one of it",
				    file->source);
	return take_kind(file, cursor);
}

static struct vp_error *take_events(struct vp_tracedat *file, struct vp_cursor *cursor,
				    struct vp_slice system)
{
	uint32_t count = vp_cursor_u32(cursor);

	for (uint32_t i = 0; i < count && vp_cursor_ok(cursor); i++) {
		struct vp_tracedat_format format = {.system = system, .text = take_sized(cursor)};
		if (vp_cursor_ok(cursor) && vp_tracepoint_format_id(format.text, &format.id))
			vp_vec_push(&file->formats, format);
	}
	return vp_cursor_ok(cursor) ? NULL : malformed(file, "the formats of its events");
}

static struct vp_error *take_systems(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	uint32_t systems = vp_cursor_u32(cursor);

	if (systems > MOST_SYSTEMS)
		return malformed(file, "the number of its event systems");
	for (uint32_t i = 0; i < systems; i++) {
		struct vp_slice system = vp_cursor_string(cursor);
		VP_TRY(take_events(file, cursor, system));
	}
	return NULL;
}

/* Up to the names of threads, which older ones of perf do not have. */
static struct vp_error *take_formats(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	if (!takes_text(cursor, "header_page", sizeof("header_page")))
		return malformed(file, "no description of a page");
	take_sized(cursor);
	if (!takes_text(cursor, "header_event", sizeof("header_event")))
		return malformed(file, "no description of an event's header");
	take_sized(cursor);
	VP_TRY(take_events(file, cursor, (struct vp_slice){"ftrace", 6}));
	VP_TRY(take_systems(file, cursor));
	vp_cursor_bytes(cursor, vp_cursor_u32(cursor)); /* the kernel's symbols */
	vp_cursor_bytes(cursor, vp_cursor_u32(cursor)); /* formats of trace_printk() */
	return vp_cursor_ok(cursor) ? NULL : malformed(file, "the formats of its events");
}

static struct vp_error *take_commands(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	file->commands = take_sized(cursor);
	return vp_cursor_ok(cursor) ? NULL : malformed(file, "the names of its threads");
}

static struct vp_error *take_guest(struct vp_tracedat *file, struct vp_slice option)
{
	struct vp_cursor cursor = vp_cursor_of(option.bytes, option.size);
	struct vp_tracedat_guest guest = {.name = vp_cursor_string(&cursor)};

	guest.id = vp_cursor_u64(&cursor);
	uint32_t count = vp_cursor_u32(&cursor);
	if (vp_cursor_ok(&cursor) && count <= vp_cursor_left(&cursor) / 8) {
		for (uint32_t i = 0; i < count; i++) {
			uint32_t cpu = vp_cursor_u32(&cursor);
			uint32_t tid = vp_cursor_u32(&cursor);
			if ((int32_t)tid > 0 && cpu < MOST_CPUS)
				vp_vec_push(&guest.threads,
					    ((struct vp_tracedat_thread){cpu, tid}));
		}
		vp_vec_push(&file->guests, guest);
		return NULL;
	}
	return malformed(file, "what it says of a guest");
}

static struct vp_error *take_shifts(struct vp_tracedat *file, struct vp_slice option)
{
	struct vp_cursor cursor = vp_cursor_of(option.bytes, option.size);

	vp_cursor_u64(&cursor); /* the host's id */
	file->interpolates = vp_cursor_u32(&cursor) & SHIFT_INTERPOLATES;
	uint32_t cpus = vp_cursor_u32(&cursor);
	if (cpus > file->cpus.count)
		return malformed(file, "the CPUs that it has offsets for");
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		uint32_t count = vp_cursor_u32(&cursor);
		struct vp_slice all = vp_cursor_bytes(&cursor, (size_t)count * 24);
		struct vp_cursor times = vp_cursor_of(all.bytes, all.size / 3);
		struct vp_cursor offsets = vp_cursor_of(all.bytes + all.size / 3, all.size / 3);
		struct vp_cursor scalings =
		    vp_cursor_of(all.bytes + all.size / 3 * 2, all.size / 3);
		for (uint32_t i = 0; vp_cursor_ok(&cursor) && i < count; i++) {
			struct vp_tracedat_shift shift = {vp_cursor_u64(&times),
							  (int64_t)vp_cursor_u64(&offsets),
							  vp_cursor_u64(&scalings), 0};
			vp_vec_push(&file->cpus.at[cpu].shifts, shift);
		}
	}
	if (!vp_cursor_ok(&cursor))
		return malformed(file, "its offsets from the host's clock");
	/* Older files have no fractions. */
	for (uint32_t cpu = 0; cpu < cpus && vp_cursor_left(&cursor); cpu++)
		vp_vec_each (&file->cpus.at[cpu].shifts, shift)
			shift->fraction_bits = vp_cursor_u64(&cursor);
	return vp_cursor_ok(&cursor) ? NULL : malformed(file, "the fractions of its clock's rate");
}

static struct vp_error *take_option(struct vp_tracedat *file, uint16_t id, struct vp_slice option)
{
	struct vp_cursor cursor = vp_cursor_of(option.bytes, option.size);

	switch (id) {
	case OPTION_ID:
		file->id = vp_cursor_u64(&cursor);
		return NULL;
	case OPTION_VERSION:
		file->by_trace_cmd = true;
		return NULL;
	case OPTION_GUEST:
		return take_guest(file, option);
	case OPTION_TIME_SHIFT:
		return take_shifts(file, option);
	case OPTION_CLOCK_RATE:
		file->mult = vp_cursor_u32(&cursor);
		file->shift = vp_cursor_u32(&cursor);
		return file->shift < 64 ? NULL : malformed(file, "the rate of its clock");
	default:
		return NULL;
	}
}

static struct vp_error *take_options(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	for (;;) {
		uint16_t id = vp_cursor_u16(cursor);
		if (!vp_cursor_ok(cursor))
			return malformed(file, "its options");
		if (!id)
			return NULL;
		struct vp_slice option = vp_cursor_bytes(cursor, vp_cursor_u32(cursor));
		VP_TRY(take_option(file, id, option));
	}
}

static struct vp_error *take_cpus(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	struct vp_cursor whole = vp_cursor_of(cursor->start, (size_t)(cursor->end - cursor->start));

	vp_vec_each (&file->cpus, cpu) {
		uint64_t offset = vp_cursor_u64(cursor), size = vp_cursor_u64(cursor);
		struct vp_cursor at = whole;
		if (offset > vp_cursor_left(&whole) || size > vp_cursor_left(&whole) - offset)
			return malformed(file, "it ends before the events of its CPUs do");
		vp_cursor_bytes(&at, (size_t)offset);
		cpu->pages = vp_cursor_bytes(&at, (size_t)size);
	}
	return vp_cursor_ok(cursor) ? NULL : malformed(file, "the places of its CPUs' events");
}

struct option {
	uint16_t id;
	struct vp_slice bytes;
};
typedef VP_VEC(struct option) option_list;

/* The section's bytes, as they were before they were compressed. */
static struct vp_error *open_section(struct vp_tracedat *file,
				     const struct vp_tracedat_sections *sections, uint64_t offset,
				     struct vp_cursor *ret)
{
	struct vp_tracedat_section section;

	VP_TRY(vp_tracedat_sections_at(sections, offset, &section));
	*ret = vp_cursor_of(section.bytes.bytes, section.bytes.size);
	if (!section.is_packed)
		return NULL;
	struct vp_buffer bytes = {0};
	bool good = vp_tracedat_unpack(ret, &bytes);
	vp_vec_push(&file->unpacked, bytes);
	*ret = vp_cursor_of(bytes.size ? bytes.bytes : "", bytes.size);
	return good ? NULL : malformed(file, "a compressed section");
}

/* Of all its sections: the last option of each says where the next one is. */
static struct vp_error *gather_options(struct vp_tracedat *file,
				       const struct vp_tracedat_sections *sections,
				       option_list *ret)
{
	uint64_t next = sections->options;

	for (size_t i = 0; next; i++) {
		struct vp_cursor cursor;
		struct option option;
		if (i == MOST_OPTION_SECTIONS)
			return malformed(file, "the sections of its options");
		VP_TRY(open_section(file, sections, next, &cursor));
		do {
			option.id = vp_cursor_u16(&cursor);
			option.bytes = vp_cursor_bytes(&cursor, vp_cursor_u32(&cursor));
			if (!vp_cursor_ok(&cursor))
				return malformed(file, "its options");
			vp_vec_push(ret, option);
		} while (option.id != OPTION_DONE);
		struct vp_cursor done = vp_cursor_of(option.bytes.bytes, option.bytes.size);
		next = vp_cursor_u64(&done);
	}
	return NULL;
}

static struct vp_error *add_cpus(struct vp_tracedat *file, uint32_t count)
{
	if (count > MOST_CPUS)
		return malformed(file, "the number of its CPUs");
	while (file->cpus.count < count)
		vp_vec_push(&file->cpus, (struct vp_tracedat_cpu){0});
	return NULL;
}

/* That of the trace itself, which has no name; those of other instances are left out, as trace-cmd
 * does of files of version 6. */
static const struct option *find_buffer(const option_list *all)
{
	vp_vec_each (all, option)
		if (option->id == OPTION_BUFFER && option->bytes.size > 8 &&
		    !option->bytes.bytes[8])
			return option;
	return NULL;
}

static struct vp_error *take_buffer(struct vp_tracedat *file,
				    const struct vp_tracedat_sections *sections,
				    struct vp_slice option)
{
	struct vp_cursor cursor = vp_cursor_of(option.bytes, option.size);
	struct vp_tracedat_section section;

	VP_TRY(vp_tracedat_sections_at(sections, vp_cursor_u64(&cursor), &section));
	vp_cursor_string(&cursor); /* the instance */
	vp_cursor_string(&cursor); /* its clock */
	VP_TRY(take_page_size(file, &cursor));
	uint32_t count = vp_cursor_u32(&cursor);
	for (uint32_t i = 0; i < count && vp_cursor_ok(&cursor); i++) {
		uint32_t number = vp_cursor_u32(&cursor);
		uint64_t offset = vp_cursor_u64(&cursor), size = vp_cursor_u64(&cursor);
		if (!vp_cursor_ok(&cursor) || number >= MOST_CPUS)
			break;
		VP_TRY(add_cpus(file, number + 1));
		struct vp_tracedat_cpu *cpu = &file->cpus.at[number];
		/* The number of compressed pieces is not in their size. */
		if (section.is_packed && size)
			size += sizeof(uint32_t);
		VP_TRY(vp_tracedat_sections_range(sections, offset, size, &cpu->pages));
		cpu->is_packed = section.is_packed;
	}
	return vp_cursor_ok(&cursor) ? NULL : malformed(file, "the places of its CPUs' events");
}

/* One that says where a section is, which is taken. */
static struct vp_error *take_section(struct vp_tracedat *file,
				     const struct vp_tracedat_sections *sections,
				     const struct option *option)
{
	struct vp_cursor place = vp_cursor_of(option->bytes.bytes, option->bytes.size), cursor;

	VP_TRY(open_section(file, sections, vp_cursor_u64(&place), &cursor));
	switch (option->id) {
	case OPTION_FTRACE_FORMATS:
		return take_events(file, &cursor, (struct vp_slice){"ftrace", 6});
	case OPTION_FORMATS:
		return take_systems(file, &cursor);
	default:
		return take_commands(file, &cursor);
	}
}

static struct vp_error *take_sections(struct vp_tracedat *file,
				      const struct vp_tracedat_sections *sections,
				      const option_list *all)
{
	const struct option *buffer = find_buffer(all);

	vp_vec_each (all, option) {
		struct vp_cursor cursor = vp_cursor_of(option->bytes.bytes, option->bytes.size);
		if (option->id == OPTION_TEXT && !buffer)
			return vp_error_new(
			    "'%s' has text (trace-cmd's latency format) and no events",
			    file->source);
		if (option->id == OPTION_CPUS)
			VP_TRY(add_cpus(file, vp_cursor_u32(&cursor)));
	}
	if (!buffer)
		return malformed(file, "no places of its CPUs' events");
	VP_TRY(take_buffer(file, sections, buffer->bytes));
	vp_vec_each (all, option)
		if (option->id == OPTION_FTRACE_FORMATS || option->id == OPTION_FORMATS ||
		    option->id == OPTION_COMMANDS)
			VP_TRY(take_section(file, sections, option));
		else
			VP_TRY(take_option(file, option->id, option->bytes));
	return NULL;
}

static struct vp_error *parse_sections(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	struct vp_tracedat_sections sections;
	option_list all = {0};

	VP_TRY(vp_tracedat_sections_open(file->source, cursor, &sections));
	struct vp_error *error = gather_options(file, &sections, &all);
	if (!error)
		error = take_sections(file, &sections, &all);
	vp_vec_deinit(&all);
	return error;
}

static struct vp_error *parse(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	bool in_sections = false;

	VP_TRY(take_version(file, cursor, &in_sections));
	if (in_sections)
		return parse_sections(file, cursor);
	VP_TRY(take_formats(file, cursor));
	VP_TRY(take_commands(file, cursor));
	uint32_t cpus = vp_cursor_u32(cursor);
	if (cpus > MOST_CPUS || !vp_cursor_ok(cursor))
		return malformed(file, "the number of its CPUs");
	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		vp_vec_push(&file->cpus, (struct vp_tracedat_cpu){0});
	static const char options[10] = "options  ", pages[10] = "flyrecord";
	if (!takes_text(cursor, options, sizeof(options)))
		return malformed(file, "no options");
	VP_TRY(take_options(file, cursor));
	bool has_pages = takes_text(cursor, pages, sizeof(pages));
	if (!vp_cursor_ok(cursor))
		return malformed(file, "it ends before the places of its CPUs' events");
	if (!has_pages)
		return vp_error_new("'%s' has text (trace-cmd's latency format) and no events",
				    file->source);
	return take_cpus(file, cursor);
}

struct vp_error *vp_tracedat_open(const char *source, struct vp_slice bytes,
				  struct vp_tracedat *ret)
{
	struct vp_cursor cursor = vp_cursor_of(bytes.bytes, bytes.size);

	*ret = (struct vp_tracedat){.source = source};
	struct vp_error *error = parse(ret, &cursor);
	if (error)
		vp_tracedat_close(ret);
	return error;
}

static struct vp_error *parse_formats(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	static const char magic[] = VP_TRACEDAT_MAGIC;

	if (!takes_text(cursor, magic, sizeof(magic) - 1))
		return malformed(file, "the formats of its tracepoints");
	vp_cursor_string(cursor); /* perf's version */
	VP_TRY(take_kind(file, cursor));
	return take_formats(file, cursor);
}

struct vp_error *vp_tracedat_open_formats(const char *source, struct vp_slice bytes,
					  struct vp_tracedat *ret)
{
	struct vp_cursor cursor = vp_cursor_of(bytes.bytes, bytes.size);

	*ret = (struct vp_tracedat){.source = source};
	struct vp_error *error = parse_formats(ret, &cursor);
	if (error)
		vp_tracedat_close(ret);
	return error;
}

bool vp_tracedat_is_unshifted(const struct vp_tracedat *file)
{
	bool shifted = false;

	vp_vec_each (&file->cpus, cpu)
		shifted |= cpu->shifts.count != 0;
	return file->by_trace_cmd && !shifted;
}

void vp_tracedat_close(struct vp_tracedat *file)
{
	vp_vec_each (&file->cpus, cpu)
		vp_vec_deinit(&cpu->shifts);
	vp_vec_deinit(&file->cpus);
	vp_vec_each (&file->guests, guest)
		vp_vec_deinit(&guest->threads);
	vp_vec_deinit(&file->guests);
	vp_vec_deinit(&file->formats);
	vp_map_deinit(&file->class_of_id);
	vp_event_classes_deinit(&file->classes);
	vp_vec_each (&file->places, places)
		vp_vec_deinit(places);
	vp_vec_deinit(&file->places);
	vp_vec_each (&file->unpacked, unpacked)
		vp_buffer_deinit(unpacked);
	vp_vec_deinit(&file->unpacked);
}

static uint64_t shifted(const struct vp_tracedat *file, const struct vp_tracedat_cpu *cpu,
			uint64_t time)
{
	size_t place = 0, last = cpu->shifts.count - 1;

	if (!last)
		return time + (uint64_t)cpu->shifts.at[0].offset;
	/* The one before, and the next; behind the last, the last two: as trace-cmd does. */
	while (place + 1 < last && cpu->shifts.at[place + 1].time <= time)
		place++;
	const struct vp_tracedat_shift *from = &cpu->shifts.at[place], *to = from + 1;
	__int128 offset = from->offset, length = (__int128)to->time - from->time;
	__int128 behind = (__int128)time - from->time, growth = (__int128)to->offset - from->offset;
	if (file->interpolates &&
	    length > 0) /* damaged offsets may be beyond what fits: no overflow */
		offset += (__int128)((unsigned __int128)behind * (unsigned __int128)growth +
				     (unsigned __int128)length / 2) /
			  length;
	unsigned bits = from->fraction_bits < 64 ? (unsigned)from->fraction_bits : 0;
	return (uint64_t)(((unsigned __int128)time * from->scaling) >> bits) + (uint64_t)offset;
}

static uint64_t time_of(const struct vp_tracedat *file, uint32_t cpu, uint64_t time)
{
	if (file->cpus.at[cpu].shifts.count)
		time = shifted(file, &file->cpus.at[cpu], time);
	return file->mult ? (uint64_t)(((unsigned __int128)time * file->mult) >> file->shift)
			  : time;
}

/* "name: sched_switch" */
static struct vp_slice name_of(struct vp_slice text)
{
	struct vp_cursor lines = vp_cursor_of(text.bytes, text.size);
	struct vp_slice line;

	if (!vp_cursor_line(&lines, &line) || line.size < 6 || memcmp(line.bytes, "name: ", 6) != 0)
		return (struct vp_slice){"", 0};
	return (struct vp_slice){line.bytes + 6, line.size - 6};
}

static uint32_t add_class(struct vp_tracedat *file, const struct vp_tracedat_format *format)
{
	struct vp_slice name = name_of(format->text);
	VP_AUTO_FREE char *whole = vp_format("%.*s:%.*s", (int)format->system.size,
					     format->system.bytes, (int)name.size, name.bytes);
	vp_tracepoint_places places = {0};
	struct vp_event_class *class;
	struct vp_error *error = vp_event_classes_add(&file->classes, whole, &class);

	if (error) {
		vp_error_free(error);
		return NO_CLASS;
	}
	error = vp_tracepoint_format_parse(whole, format->text.bytes, format->text.size, class,
					   &places);
	vp_vec_push(&file->places, places);
	bool good = !error;
	vp_error_free(error);
	return good ? (uint32_t)file->classes.count - 1 : NO_CLASS;
}

/* Formats are read when there is an event of theirs: there are a thousand more. */
uint32_t vp_tracedat_class(struct vp_tracedat *file, uint32_t id)
{
	const uint32_t *known = vp_map_find(&file->class_of_id, id);
	uint32_t class = NO_CLASS;
	bool inserted;

	if (known)
		return *known;
	vp_vec_each (&file->formats, format)
		if (format->id == id) {
			class = add_class(file, format);
			break;
		}
	vp_map_insert(&file->class_of_id, id, class, &inserted);
	return class;
}

/* The next pages that were compressed together. */
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

/* The next page, whatever is in it; false behind the last. */
static bool next_page(struct vp_tracedat *file, struct vp_tracedat_walk *walk, struct vp_slice *ret)
{
	const struct vp_tracedat_cpu *cpu = &file->cpus.at[walk->cpu];
	struct vp_slice pages = cpu->pages;

	do {
		if (cpu->is_packed)
			pages = (struct vp_slice){walk->piece.bytes, walk->piece.size};
		if (pages.size - walk->offset >= file->page_size) {
			*ret = (struct vp_slice){pages.bytes + walk->offset, file->page_size};
			walk->offset += file->page_size;
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
		if (vp_ring_page_open(page, &walk->page)) {
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
			*time = time_of(file, walk->cpu, *time);
			return true;
		}
		walk->malformed++;
	}
	return false;
}
