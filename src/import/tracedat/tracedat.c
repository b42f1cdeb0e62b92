/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/tracedat/tracedat.h"

#include <string.h>

#include "base/error.h"
#include "import/tracedat/tracedat_sections.h"

enum {
	OPTION_DONE = 0,
	OPTION_BUFFER = 3, /* version 6: of an instance */
	OPTION_CLOCK = 7,
	OPTION_CPUS = 8,
	OPTION_VERSION = 9, /* of trace-cmd */
	OPTION_ID = 11,
	OPTION_TIME_SHIFT = 12,
	OPTION_GUEST = 13,
	OPTION_CLOCK_RATE = 14,
	OPTION_HEADERS = 16, /* this and the following: version 7 only */
	OPTION_FTRACE_FORMATS = 17,
	OPTION_FORMATS = 18,
	OPTION_COMMANDS = 21,
	OPTION_TEXT = 22,
	MAX_OPTION_SECTIONS = 4096,
	MAX_CPUS = 65535,
	MAX_SYSTEMS = 65536,
	MAX_BUFFERS = 1024
};
enum { SHIFT_INTERPOLATES = 1 };

static struct vp_error *tracedat_malformed(const struct vp_tracedat *file, const char *what)
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

static struct vp_error *take_page_size(const struct vp_tracedat *file, struct vp_cursor *cursor,
				       uint32_t *ret)
{
	*ret = vp_cursor_u32(cursor);
	if (!vp_cursor_ok(cursor) || *ret < 64 || *ret > 1 << 24)
		return tracedat_malformed(file, "the size of a page");
	return NULL;
}

/* Header after the version: byte order, size of a long, size of a page. */
static struct vp_error *take_kind(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	struct vp_slice kind = vp_cursor_bytes(cursor, 2);

	if (!vp_cursor_ok(cursor) || kind.bytes[0] != 0)
		return vp_error_new("'%s' is from a big-endian machine, which is not supported",
				    file->source);
	file->long_size = (uint8_t)kind.bytes[1];
	if (file->long_size != 4 && file->long_size != 8)
		return tracedat_malformed(file, "the size of a word");
	return take_page_size(file, cursor, &file->page_size);
}

/* The size of the page's field "commit" is the kernel's word size; a 32-bit program may have
 * written the file. */
static void take_page_header(struct vp_tracedat *file, struct vp_slice text)
{
	static const char name[] = " commit;", label[] = "size:";
	const char *end = text.bytes + text.size;
	const char *at = memmem(text.bytes, text.size, name, sizeof(name) - 1);

	at = at ? memmem(at, (size_t)(end - at), label, sizeof(label) - 1) : NULL;
	if (!at || end - at <= (ptrdiff_t)sizeof(label) - 1)
		return;
	char digit = at[sizeof(label) - 1];
	if (digit == '4' || digit == '8')
		file->long_size = (uint32_t)(digit - '0');
}

static struct vp_error *take_headers(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	if (!takes_text(cursor, "header_page", sizeof("header_page")))
		return tracedat_malformed(file, "no description of a page");
	take_page_header(file, take_sized(cursor));
	if (!takes_text(cursor, "header_event", sizeof("header_event")))
		return tracedat_malformed(file, "no description of an event's header");
	take_sized(cursor);
	return NULL;
}

static struct vp_error *take_version(struct vp_tracedat *file, struct vp_cursor *cursor,
				     bool *in_sections)
{
	static const char magic[] = VP_TRACEDAT_MAGIC;

	if (!takes_text(cursor, magic, sizeof(magic) - 1))
		return vp_error_new("'%s' is not a trace.dat file", file->source);
	struct vp_slice version = vp_cursor_string(cursor);
	*in_sections = vp_slice_is(version, "7");
	if (!*in_sections && !vp_slice_is(version, "6"))
		return vp_error_new("'%s' is neither of version 6 nor 7: 'trace-cmd convert "
				    "--file-version 7 -i FILE -o NEW' converts it",
				    file->source);
	return take_kind(file, cursor);
}

static struct vp_error *tracedat_take_events(struct vp_tracedat *file, struct vp_cursor *cursor,
					     struct vp_slice system)
{
	uint32_t count = vp_cursor_u32(cursor);

	for (uint32_t i = 0; i < count && vp_cursor_ok(cursor); i++) {
		struct vp_tracedat_format format = {.system = system, .text = take_sized(cursor)};
		if (vp_cursor_ok(cursor) && vp_tracepoint_format_id(format.text, &format.id))
			vp_vec_push(&file->formats, format);
	}
	return vp_cursor_ok(cursor) ? NULL : tracedat_malformed(file, "the formats of its events");
}

static struct vp_error *take_systems(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	uint32_t systems = vp_cursor_u32(cursor);

	if (systems > MAX_SYSTEMS)
		return tracedat_malformed(file, "the number of its event systems");
	for (uint32_t i = 0; i < systems; i++) {
		struct vp_slice system = vp_cursor_string(cursor);
		VP_TRY(tracedat_take_events(file, cursor, system));
	}
	return NULL;
}

/* Parses up to the thread names, which older perf versions lack. */
static struct vp_error *take_formats(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	VP_TRY(take_headers(file, cursor));
	VP_TRY(tracedat_take_events(file, cursor, (struct vp_slice){"ftrace", 6}));
	VP_TRY(take_systems(file, cursor));
	vp_cursor_bytes(cursor, vp_cursor_u32(cursor)); /* kernel symbols */
	vp_cursor_bytes(cursor, vp_cursor_u32(cursor)); /* formats of trace_printk() */
	return vp_cursor_ok(cursor) ? NULL : tracedat_malformed(file, "the formats of its events");
}

static struct vp_error *take_commands(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	file->commands = take_sized(cursor);
	return vp_cursor_ok(cursor) ? NULL : tracedat_malformed(file, "the names of its threads");
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
			if ((int32_t)tid > 0 && cpu < MAX_CPUS)
				vp_vec_push(&guest.threads,
					    ((struct vp_tracedat_thread){cpu, tid}));
		}
		vp_vec_push(&file->guests, guest);
		return NULL;
	}
	return tracedat_malformed(file, "its description of a guest");
}

static void take_shifts_of_cpu(struct vp_tracedat *file, uint32_t cpu, struct vp_cursor *cursor)
{
	uint32_t count = vp_cursor_u32(cursor);
	struct vp_slice all = vp_cursor_bytes(cursor, (size_t)count * 24);
	struct vp_cursor times = vp_cursor_of(all.bytes, all.size / 3);
	struct vp_cursor offsets = vp_cursor_of(all.bytes + all.size / 3, all.size / 3);
	struct vp_cursor scalings = vp_cursor_of(all.bytes + all.size / 3 * 2, all.size / 3);

	while (file->shifts.count <= cpu)
		vp_vec_push(&file->shifts, (struct vp_tracedat_shifts){0});
	for (uint32_t i = 0; vp_cursor_ok(cursor) && i < count; i++) {
		struct vp_tracedat_shift shift = {vp_cursor_u64(&times),
						  (int64_t)vp_cursor_u64(&offsets),
						  vp_cursor_u64(&scalings), 0};
		vp_vec_push(&file->shifts.at[cpu].of, shift);
	}
}

static struct vp_error *take_shifts(struct vp_tracedat *file, struct vp_slice option)
{
	struct vp_cursor cursor = vp_cursor_of(option.bytes, option.size);

	vp_cursor_u64(&cursor); /* host id */
	file->interpolates = vp_cursor_u32(&cursor) & SHIFT_INTERPOLATES;
	uint32_t cpus = vp_cursor_u32(&cursor);
	if (cpus > MAX_CPUS || file->shifts.count)
		return tracedat_malformed(file, "the number of CPUs with clock offsets");
	for (uint32_t cpu = 0; cpu < cpus && vp_cursor_ok(&cursor); cpu++)
		take_shifts_of_cpu(file, cpu, &cursor);
	if (!vp_cursor_ok(&cursor))
		return tracedat_malformed(file, "its offsets from the host's clock");
	/* Older files have no fractions. */
	for (uint32_t cpu = 0; cpu < cpus && vp_cursor_left(&cursor); cpu++)
		vp_vec_each (&file->shifts.at[cpu].of, shift)
			shift->fraction_bits = vp_cursor_u64(&cursor);
	return vp_cursor_ok(&cursor)
		   ? NULL
		   : tracedat_malformed(file, "the fractions of its clock's rate");
}

/* "local [global] mono", as in trace_clock: the clock in brackets is in use. */
static void tracedat_take_clock(struct vp_tracedat *file, struct vp_slice text)
{
	const char *from = text.size ? memchr(text.bytes, '[', text.size) : NULL;
	const char *end = text.bytes + text.size;
	const char *to = from ? memchr(from, ']', (size_t)(end - from)) : NULL;

	if (to)
		file->buffers.at[0].clock = (struct vp_slice){from + 1, (size_t)(to - from - 1)};
}

static struct vp_error *add_buffer(struct vp_tracedat *file, struct vp_slice name,
				   struct vp_tracedat_buffer **ret)
{
	if (file->buffers.count == MAX_BUFFERS)
		return tracedat_malformed(file, "the number of its instances");
	vp_vec_push(&file->buffers,
		    ((struct vp_tracedat_buffer){.name = name, .page_size = file->page_size}));
	*ret = &file->buffers.at[file->buffers.count - 1];
	return NULL;
}

/* Version 6: an instance. */
static struct vp_error *take_instance(struct vp_tracedat *file, struct vp_slice option)
{
	struct vp_cursor cursor = vp_cursor_of(option.bytes, option.size);
	uint64_t offset = vp_cursor_u64(&cursor);
	struct vp_slice name = vp_cursor_string(&cursor);
	struct vp_tracedat_buffer *buffer;

	if (!vp_cursor_ok(&cursor))
		return tracedat_malformed(file, "an instance");
	VP_TRY(add_buffer(file, name, &buffer));
	buffer->offset = offset;
	return NULL;
}

static struct vp_error *set_cpus(struct vp_tracedat *file, uint32_t count)
{
	if (count > MAX_CPUS)
		return tracedat_malformed(file, "the number of its CPUs");
	file->cpus = count;
	return NULL;
}

static struct vp_error *take_option(struct vp_tracedat *file, uint16_t id, struct vp_slice option)
{
	struct vp_cursor cursor = vp_cursor_of(option.bytes, option.size);

	switch (id) {
	case OPTION_ID:
		file->id = vp_cursor_u64(&cursor);
		return NULL;
	case OPTION_CLOCK:
		tracedat_take_clock(file, option);
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
		return file->shift < 64 ? NULL : tracedat_malformed(file, "the rate of its clock");
	default:
		return NULL;
	}
}

static struct vp_error *take_options(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	for (;;) {
		uint16_t id = vp_cursor_u16(cursor);
		if (!vp_cursor_ok(cursor))
			return tracedat_malformed(file, "its options");
		if (!id)
			return NULL;
		struct vp_slice option = vp_cursor_bytes(cursor, vp_cursor_u32(cursor));
		struct vp_cursor number = vp_cursor_of(option.bytes, option.size);
		if (id == OPTION_BUFFER)
			VP_TRY(take_instance(file, option));
		else if (id == OPTION_CPUS)
			VP_TRY(set_cpus(file, vp_cursor_u32(&number)));
		else
			VP_TRY(take_option(file, id, option));
	}
}

static struct vp_error *take_cpus(const struct vp_tracedat *file, struct vp_cursor *cursor,
				  struct vp_tracedat_buffer *buffer)
{
	struct vp_slice whole = {cursor->start, (size_t)(cursor->end - cursor->start)};

	for (uint32_t cpu = 0; cpu < file->cpus && vp_cursor_ok(cursor); cpu++) {
		uint64_t offset = vp_cursor_u64(cursor), size = vp_cursor_u64(cursor);
		struct vp_tracedat_cpu *its = vp_vec_push_slot(&buffer->cpus);
		*its = (struct vp_tracedat_cpu){.pages = {"", 0}};
		if (!size)
			continue;
		if (offset > whole.size || size > whole.size - offset)
			return tracedat_malformed(file, "its CPUs' events extend beyond its end");
		its->pages = (struct vp_slice){whole.bytes + offset, (size_t)size};
	}
	return vp_cursor_ok(cursor) ? NULL
				    : tracedat_malformed(file, "the offsets of its CPUs' events");
}

struct option {
	uint16_t id;
	struct vp_slice bytes;
};
typedef VP_VEC(struct option) option_list;

/* The section's bytes, decompressed. */
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
	return good ? NULL : tracedat_malformed(file, "a compressed section");
}

/* The last option of each options section has the offset of the next one. */
static struct vp_error *gather_options(struct vp_tracedat *file,
				       const struct vp_tracedat_sections *sections,
				       option_list *ret)
{
	uint64_t next = sections->options;

	for (size_t i = 0; next; i++) {
		struct vp_cursor cursor;
		struct option option;
		if (i == MAX_OPTION_SECTIONS)
			return tracedat_malformed(file, "the sections of its options");
		VP_TRY(open_section(file, sections, next, &cursor));
		do {
			option.id = vp_cursor_u16(&cursor);
			option.bytes = vp_cursor_bytes(&cursor, vp_cursor_u32(&cursor));
			if (!vp_cursor_ok(&cursor))
				return tracedat_malformed(file, "its options");
			vp_vec_push(ret, option);
		} while (option.id != OPTION_DONE);
		struct vp_cursor done = vp_cursor_of(option.bytes.bytes, option.bytes.size);
		next = vp_cursor_u64(&done);
	}
	return NULL;
}

/* Starts an instance, or the main buffer, which has no name. */
static struct vp_error *begin_buffer(struct vp_tracedat *file, struct vp_slice name,
				     struct vp_tracedat_buffer **ret)
{
	*ret = &file->buffers.at[0];
	return name.size || (*ret)->cpus.count ? add_buffer(file, name, ret) : NULL;
}

static struct vp_error *tracedat_take_buffer(struct vp_tracedat *file,
					     const struct vp_tracedat_sections *sections,
					     struct vp_slice option)
{
	struct vp_cursor cursor = vp_cursor_of(option.bytes, option.size);
	struct vp_tracedat_section section;
	struct vp_tracedat_buffer *buffer;

	VP_TRY(vp_tracedat_sections_at(sections, vp_cursor_u64(&cursor), &section));
	struct vp_slice name = vp_cursor_string(&cursor);
	VP_TRY(begin_buffer(file, name, &buffer));
	buffer->clock = vp_cursor_string(&cursor);
	VP_TRY(take_page_size(file, &cursor, &buffer->page_size));
	uint32_t count = vp_cursor_u32(&cursor);
	for (uint32_t i = 0; i < count && vp_cursor_ok(&cursor); i++) {
		uint32_t number = vp_cursor_u32(&cursor);
		uint64_t offset = vp_cursor_u64(&cursor), size = vp_cursor_u64(&cursor);
		if (!vp_cursor_ok(&cursor) || number >= MAX_CPUS)
			break;
		while (buffer->cpus.count <= number)
			vp_vec_push(&buffer->cpus, (struct vp_tracedat_cpu){0});
		file->cpus = number >= file->cpus ? number + 1 : file->cpus;
		struct vp_tracedat_cpu *cpu = &buffer->cpus.at[number];
		/* The size excludes the number of compressed chunks. */
		if (section.is_packed && size)
			size += sizeof(uint32_t);
		VP_TRY(vp_tracedat_sections_range(sections, offset, size, &cpu->pages));
		cpu->is_packed = section.is_packed;
	}
	return vp_cursor_ok(&cursor) ? NULL
				     : tracedat_malformed(file, "the offsets of its CPUs' events");
}

/* Reads the section that an option refers to. */
static struct vp_error *tracedat_take_section(struct vp_tracedat *file,
					      const struct vp_tracedat_sections *sections,
					      const struct option *option)
{
	struct vp_cursor option_bytes = vp_cursor_of(option->bytes.bytes, option->bytes.size),
			 cursor;

	VP_TRY(open_section(file, sections, vp_cursor_u64(&option_bytes), &cursor));
	switch (option->id) {
	case OPTION_HEADERS:
		return take_headers(file, &cursor);
	case OPTION_FTRACE_FORMATS:
		return tracedat_take_events(file, &cursor, (struct vp_slice){"ftrace", 6});
	case OPTION_FORMATS:
		return take_systems(file, &cursor);
	default:
		return take_commands(file, &cursor);
	}
}

static struct vp_error *take_buffers(struct vp_tracedat *file,
				     const struct vp_tracedat_sections *sections,
				     const option_list *all)
{
	bool has_text = false, has_buffer = false;

	vp_vec_each (all, option) {
		struct vp_cursor cursor = vp_cursor_of(option->bytes.bytes, option->bytes.size);
		if (option->id == OPTION_CPUS)
			VP_TRY(set_cpus(file, vp_cursor_u32(&cursor)));
		has_text |= option->id == OPTION_TEXT;
		has_buffer |= option->id == OPTION_BUFFER;
	}
	if (!has_buffer && has_text)
		return vp_error_new("'%s' has text (trace-cmd's latency format) and no events",
				    file->source);
	if (!has_buffer)
		return tracedat_malformed(file, "no offsets of its CPUs' events");
	vp_vec_each (all, option)
		if (option->id == OPTION_BUFFER)
			VP_TRY(tracedat_take_buffer(file, sections, option->bytes));
	return NULL;
}

static bool is_section(uint16_t id)
{
	return id == OPTION_HEADERS || id == OPTION_FTRACE_FORMATS || id == OPTION_FORMATS ||
	       id == OPTION_COMMANDS;
}

static struct vp_error *take_sections(struct vp_tracedat *file,
				      const struct vp_tracedat_sections *sections,
				      const option_list *all)
{
	VP_TRY(take_buffers(file, sections, all));
	vp_vec_each (all, option)
		if (is_section(option->id))
			VP_TRY(tracedat_take_section(file, sections, option));
		else if (option->id != OPTION_CLOCK || !file->buffers.at[0].clock.size)
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

/* The kernel's clocks, after the offsets of the main buffer, with the one in use in brackets.
 * Older files have none. */
static void take_clocks(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	struct vp_slice text = take_sized(cursor);

	if (vp_cursor_ok(cursor) && !file->buffers.at[0].clock.size)
		tracedat_take_clock(file, text);
}

/* Version 6: the data at the instance's offset. */
static struct vp_error *take_instance_cpus(const struct vp_tracedat *file, struct vp_slice whole,
					   struct vp_tracedat_buffer *buffer)
{
	static const char pages[10] = "flyrecord";
	struct vp_cursor cursor = vp_cursor_of(whole.bytes, whole.size);

	if (buffer->offset > whole.size)
		return tracedat_malformed(file, "the offsets of an instance's events");
	vp_cursor_bytes(&cursor, (size_t)buffer->offset);
	/* Otherwise it is text ("latency"). */
	return takes_text(&cursor, pages, sizeof(pages)) ? take_cpus(file, &cursor, buffer) : NULL;
}

static struct vp_error *parse_old(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	static const char options[10] = "options  ", pages[10] = "flyrecord",
			  text[10] = "latency  ";

	VP_TRY(take_formats(file, cursor));
	VP_TRY(take_commands(file, cursor));
	VP_TRY(set_cpus(file, vp_cursor_u32(cursor)));
	struct vp_slice kind = vp_cursor_bytes(cursor, sizeof(pages));
	if (kind.size && !memcmp(kind.bytes, options, sizeof(options))) {
		VP_TRY(take_options(file, cursor));
		kind = vp_cursor_bytes(cursor, sizeof(pages));
	}
	if (!vp_cursor_ok(cursor))
		return tracedat_malformed(file, "it ends before the offsets of its CPUs' events");
	if (!memcmp(kind.bytes, text, sizeof(text)))
		return vp_error_new("'%s' has text (trace-cmd's latency format) and no events",
				    file->source);
	if (memcmp(kind.bytes, pages, sizeof(pages)) != 0)
		return tracedat_malformed(file, "no offsets of its CPUs' events");
	VP_TRY(take_cpus(file, cursor, &file->buffers.at[0]));
	take_clocks(file, cursor);
	const struct vp_slice whole = {cursor->start, (size_t)(cursor->end - cursor->start)};
	for (size_t i = 1; i < file->buffers.count; i++)
		VP_TRY(take_instance_cpus(file, whole, &file->buffers.at[i]));
	return NULL;
}

static enum vp_tracedat_clock clock_of(const struct vp_tracedat *file, struct vp_slice name)
{
	static const struct {
		const char *name;
		enum vp_tracedat_clock clock;
	} others[] = {{"uptime", VP_TRACEDAT_TICKS},
		      {"counter", VP_TRACEDAT_COUNTER},
		      {"x86-tsc", VP_TRACEDAT_CYCLES},
		      {"ppc-tb", VP_TRACEDAT_CYCLES}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(others); i++)
		if (vp_slice_is(name, others[i].name))
			return others[i].clock == VP_TRACEDAT_CYCLES && file->mult
				   ? VP_TRACEDAT_NS
				   : others[i].clock;
	return VP_TRACEDAT_NS;
}

static struct vp_error *tracedat_parse(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	bool in_sections = false;
	struct vp_tracedat_buffer *own;

	VP_TRY(take_version(file, cursor, &in_sections));
	VP_TRY(add_buffer(file, (struct vp_slice){"", 0}, &own));
	VP_TRY(in_sections ? parse_sections(file, cursor) : parse_old(file, cursor));
	vp_vec_each (&file->buffers, buffer) {
		if (!buffer->clock.size) /* version 6: an instance uses the trace's clock */
			buffer->clock = file->buffers.at[0].clock;
		buffer->counts = clock_of(file, buffer->clock);
	}
	return NULL;
}

struct vp_error *vp_tracedat_open(const char *source, struct vp_slice bytes,
				  struct vp_tracedat *ret)
{
	struct vp_cursor cursor = vp_cursor_of(bytes.bytes, bytes.size);

	*ret = (struct vp_tracedat){.source = source};
	struct vp_error *error = tracedat_parse(ret, &cursor);
	if (error)
		vp_tracedat_close(ret);
	return error;
}

static struct vp_error *parse_formats(struct vp_tracedat *file, struct vp_cursor *cursor)
{
	static const char magic[] = VP_TRACEDAT_MAGIC;

	if (!takes_text(cursor, magic, sizeof(magic) - 1))
		return tracedat_malformed(file, "the formats of its tracepoints");
	vp_cursor_string(cursor); /* perf version */
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

	vp_vec_each (&file->shifts, shifts)
		shifted |= shifts->of.count != 0;
	return file->by_trace_cmd && !shifted;
}

bool vp_tracedat_same_clock(const struct vp_tracedat *file, size_t one, size_t other)
{
	static const char *const scheduler[] = {"", "local", "global", "perf"};
	struct vp_slice names[] = {file->buffers.at[one].clock, file->buffers.at[other].clock};
	unsigned of_scheduler = 0;

	for (size_t i = 0; i < VP_ARRAY_SIZE(scheduler); i++)
		for (size_t which = 0; which < VP_ARRAY_SIZE(names); which++)
			of_scheduler |= vp_slice_is(names[which], scheduler[i]) ? 1U << which : 0;
	return of_scheduler == 3 || (names[0].size == names[1].size &&
				     !memcmp(names[0].bytes, names[1].bytes, names[0].size));
}

static void close_buffer(struct vp_tracedat_buffer *buffer)
{
	vp_vec_deinit(&buffer->cpus);
}

void vp_tracedat_close(struct vp_tracedat *file)
{
	vp_vec_each (&file->buffers, buffer)
		close_buffer(buffer);
	vp_vec_deinit(&file->buffers);
	vp_vec_each (&file->shifts, shifts)
		vp_vec_deinit(&shifts->of);
	vp_vec_deinit(&file->shifts);
	vp_vec_each (&file->guests, guest)
		vp_vec_deinit(&guest->threads);
	vp_vec_deinit(&file->guests);
	vp_vec_deinit(&file->formats);
	vp_map_deinit(&file->class_of_id);
	vp_event_classes_deinit(&file->classes);
	vp_vec_each (&file->layouts, layouts)
		vp_vec_deinit(layouts);
	vp_vec_deinit(&file->layouts);
	vp_vec_each (&file->unpacked, unpacked)
		vp_buffer_deinit(unpacked);
	vp_vec_deinit(&file->unpacked);
}
