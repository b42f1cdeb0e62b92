/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CTF 1.8 metadata (https://diamon.org/ctf/v1.8.3/), generated from the record table. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "schema/event_class.h"
#include "schema/schema.h"

static void uuid_text(const uint8_t *uuid, char text[37])
{
	char *next = text;

	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*next++ = '-';
		next += sprintf(next, "%02x", uuid[i]);
	}
}

/* A quoted TSDL string: quotes and backslashes escaped, control characters dropped. */
static void quoted(struct vp_buffer *out, const char *text)
{
	vp_buffer_string(out, "\"");
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			vp_buffer_string(out, "\\");
		if ((unsigned char)*text >= ' ')
			vp_buffer_append(out, text, 1);
	}
	vp_buffer_string(out, "\"");
}

static void write_prologue(const struct vp_ctf_trace *trace, struct vp_buffer *out)
{
	char uuid[37];
	int64_t seconds = trace->realtime_offset_ns / 1000000000;
	int64_t rest = trace->realtime_offset_ns % 1000000000;

	uuid_text(trace->uuid, uuid);
	vp_buffer_printf(
	    out,
	    "/* CTF 1.8 */\n\n"
	    "typealias integer { size = 8; align = 8; signed = false; } := u8;\n"
	    "typealias integer { size = 16; align = 8; signed = false; } := u16;\n"
	    "typealias integer { size = 32; align = 8; signed = false; } := u32;\n"
	    "typealias integer { size = 64; align = 8; signed = false; } := u64;\n"
	    "typealias integer { size = 16; align = 8; signed = false; base = 16; } := x16;\n"
	    "typealias integer { size = 32; align = 8; signed = false; base = 16; } := x32;\n"
	    "typealias integer { size = 64; align = 8; signed = false; base = 16; } := x64;\n"
	    "typealias integer { size = 8; align = 8; signed = false; base = 16; } := x8;\n"
	    "typealias integer { size = 8; align = 8; signed = true; } := s8;\n"
	    "typealias integer { size = 16; align = 8; signed = true; } := s16;\n"
	    "typealias integer { size = 32; align = 8; signed = true; } := s32;\n"
	    "typealias integer { size = 64; align = 8; signed = true; } := s64;\n"
	    "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := text;\n"
	    "\ntrace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"%s\";\n\tbyte_order = le;\n"
	    "\tpacket.header := struct {\n\t\tu32 magic;\n\t\tu8 uuid[16];\n"
	    "\t\tu32 stream_id;\n\t};\n};\n\n",
	    uuid);
	vp_buffer_string(out, "env {\n\tdomain = \"kernel\";\n");
	vp_buffer_string(out, trace->as_lttng ? "\tsysname = \"Linux\";\n"
						"\ttracer_name = \"lttng-modules\";\n"
						"\ttracer_major = 2;\n\ttracer_minor = 13;\n"
						"\ttracer_patchlevel = 0;\n"
						"\texporter = \"vperf\";\n"
					      : "\ttracer_name = \"vperf\";\n");
	vp_buffer_string(out, "\tmachine = ");
	quoted(out, trace->machine);
	vp_buffer_string(out, ";\n\thostname = ");
	quoted(out, trace->hostname);
	/* Each machine has its own clock; times are comparable because all clocks start at the
	 * Epoch. */
	vp_buffer_printf(out,
			 ";\n};\n\nclock {\n\tname = \"monotonic\";\n\tuuid = \"%s\";\n"
			 "\tdescription = \"CLOCK_MONOTONIC of the host\";\n\tfreq = 1000000000;\n"
			 "\toffset_s = %" PRId64 ";\n\toffset = %" PRId64
			 ";\n\tabsolute = TRUE;\n};\n\n",
			 uuid, seconds, rest);
	vp_buffer_string(
	    out, "typealias integer { size = 64; align = 8; signed = false; "
		 "map = clock.monotonic.value; } := time_ns;\n\n"
		 "stream {\n\tid = 0;\n"
		 "\tpacket.context := struct {\n\t\ttime_ns timestamp_begin;\n"
		 "\t\ttime_ns timestamp_end;\n\t\tu64 content_size;\n\t\tu64 packet_size;\n"
		 "\t\tu32 packet_seq_num;\n\t\tx32 flags;\n"
		 "\t\tu64 events_discarded;\n\t\tu32 cpu_id;\n"
		 "\t\tx32 checksum;\n\t};\n"
		 "\tevent.header := struct {\n\t\ttime_ns timestamp;\n\t\tu16 id;\n\t};\n};\n\n");
}

static void write_field(const struct vp_field_type *field, struct vp_buffer *out)
{
	if (!strcmp(field->type, "comm"))
		vp_buffer_printf(out, "\t\ttext %s[%zu];\n", field->name, field->size);
	else if (!strncmp(field->type, "words", 5))
		vp_buffer_printf(out, "\t\tx64 %s[%zu];\n", field->name,
				 field->size / sizeof(uint64_t));
	else if (!strcmp(field->style, "hex"))
		vp_buffer_printf(out, "\t\tx%zu %s;\n", 8 * field->size, field->name);
	else
		vp_buffer_printf(out, "\t\t%s %s;\n", field->type, field->name);
}

static void write_event(const struct vp_record_type *type, struct vp_buffer *out)
{
	vp_buffer_printf(out,
			 "event {\n\tname = \"%s\";\n\tid = %u;\n\tstream_id = 0;\n"
			 "\tfields := struct {\n",
			 type->name, type->id);
	for (size_t i = 0; i < type->n_fields; i++)
		write_field(&type->fields[i], out);
	vp_buffer_string(out, "\t};\n};\n\n");
}

void vp_schema_ctf_metadata(const struct vp_ctf_trace *trace, struct vp_buffer *out)
{
	write_prologue(trace, out);
	for (uint32_t id = 0; !trace->as_lttng && id <= VP_ID_MAX; id++)
		if (vp_record_type(id))
			write_event(vp_record_type(id), out);
	if (trace->classes)
		vp_event_classes_ctf(trace->classes, out);
}
