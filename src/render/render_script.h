/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders the events of a recording, one per line. */
#ifndef VP_RENDER_RENDER_SCRIPT_H
#define VP_RENDER_RENDER_SCRIPT_H

#include "analyze/trace/script.h"
#include "base/clock_text.h"
#include "base/macros.h"

/* Bits: printed members of an event. */
enum vp_script_shown {
	VP_SHOW_COMM = 1,
	VP_SHOW_TID = 2,
	VP_SHOW_CPU = 4,
	VP_SHOW_TIME = 8,
	VP_SHOW_VM = 16,
	VP_SHOW_VCPU = 32,
	VP_SHOW_EVENT = 64,
	VP_SHOW_FIELDS = 128,
	VP_SHOW_ALL = 255
};

struct vp_script_layout {
	const struct vp_intern *columns; /* names of the columns for fields */
	unsigned shown;
	struct vp_clock_text clock; /* format of times in text */
	bool is_first;              /* no event was printed so far: JSON prints its version */
};

struct vp_script_format {
	const char *name;
	/* Called before the first event; or NULL. */
	void (*begin)(const struct vp_script_layout *layout, struct vp_buffer *out);
	void (*event)(const struct vp_script_event *event, const struct vp_script_layout *layout,
		      struct vp_buffer *out);
};

/* Columns of text: the thread's name and number, as far as they are among `shown` … */
void vp_script_put_thread(const char *comm, bool has_tid, uint32_t tid, unsigned shown,
			  struct vp_buffer *out);
/* … and "[PCPU] ". */
void vp_script_put_pcpu(uint32_t pcpu, struct vp_buffer *out);
/* Writes a field's number in text, at most VP_PUT_COUNT + 8 bytes, including scratch bytes. */
char *vp_script_put_number(char *at, const struct vp_event_field *type, uint64_t number);
/* The format "text", "jsonl" or "csv"; NULL: unknown name. */
const struct vp_script_format *vp_script_format_named(const char *name);
/* Parses names separated by commas: comm, tid, cpu, time, vm, vcpu, event, fields. */
struct vp_error *vp_script_shown_parse(const char *text, unsigned *ret) VP_MUST_CHECK;

/*
 * Lines of text for the events of a recording, the same as by vp_script_format_named("text") with
 * all members, but faster: events whose fields are integers at fixed positions are printed from the
 * record, with texts prepared for each class and each thread.
 */
struct vp_script_lines;

/* Whether these lines are prepared: all members, times of the host's clock, and no selection by VM
 * or thread. */
bool vp_script_lines_fit(const struct vp_script_layout *layout,
			 const struct vp_script_options *options);
/* For `script` before its first event. */
struct vp_script_lines *vp_script_lines_new(struct vp_script *script);
void vp_script_lines_free(struct vp_script_lines *lines);
/* Appends the lines of at most `limit` events, about `size` bytes. Returns the number of events; 0:
 * the end. */
uint64_t vp_script_lines_put(struct vp_script_lines *lines, uint64_t limit, size_t size,
			     struct vp_buffer *out);

#endif
