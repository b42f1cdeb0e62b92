/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events of a recording, one after another: a line each. */
#ifndef VP_RENDER_RENDER_SCRIPT_H
#define VP_RENDER_RENDER_SCRIPT_H

#include "analyze/trace/script.h"
#include "base/clock_text.h"
#include "base/macros.h"

/* Printed members of an event: bits. */
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
	const struct vp_intern *columns; /* of the fields */
	unsigned shown;
	struct vp_clock_text clock; /* of times, in text */
	bool is_first;              /* nothing was printed before: JSON has its version */
};

struct vp_script_format {
	const char *name;
	/* Before the first event; or NULL. */
	void (*begin)(const struct vp_script_layout *layout, struct vp_buffer *out);
	void (*event)(const struct vp_script_event *event, const struct vp_script_layout *layout,
		      struct vp_buffer *out);
};

/* text, jsonl or csv; NULL: unknown. */
const struct vp_script_format *vp_script_format_named(const char *name);
/* Names, separated by commas: comm, tid, cpu, time, vm, vcpu, event, fields. */
struct vp_error *vp_script_shown_parse(const char *text, unsigned *ret) VP_MUST_CHECK;

#endif
