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

/* The format "text", "jsonl" or "csv"; NULL: unknown name. */
const struct vp_script_format *vp_script_format_named(const char *name);
/* Parses names separated by commas: comm, tid, cpu, time, vm, vcpu, event, fields. */
struct vp_error *vp_script_shown_parse(const char *text, unsigned *ret) VP_MUST_CHECK;

#endif
