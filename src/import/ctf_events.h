/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events of a CTF trace of a kernel, as LTTng's tracer and perf write them, under the names that
 * the kernel's own tracepoints and their fields have: sched_switch's prev_tid is
 * sched:sched_switch's prev_pid. The first field is common_pid, as in tracepoints: the thread that
 * had the CPU.
 */
#ifndef VP_IMPORT_CTF_EVENTS_H
#define VP_IMPORT_CTF_EVENTS_H

#include "base/cursor.h"
#include "base/map.h"
#include "base/vec.h"
#include "import/babeltrace.h"
#include "schema/event_class.h"

/* Maps an event's members to the class's fields, after common_pid. */
typedef VP_VEC(uint16_t) vp_ctf_members;

struct vp_ctf_events {
	const struct vp_babeltrace *babeltrace;
	vp_event_classes classes;
	VP_VEC(vp_ctf_members) members;
	struct vp_map class_of; /* of a stream class's event class */
	uint64_t left_out;      /* fields that a recording's classes cannot have */
};

/* Index of its class in `classes`, added if it is new; UINT32_MAX: not convertible. */
uint32_t vp_ctf_events_class(struct vp_ctf_events *events, const struct bt_event *event);
/* Appends its record. False: it is too long, and nothing was appended. */
bool vp_ctf_events_convert(const struct vp_ctf_events *events, uint32_t class,
			   const struct bt_event *event, uint64_t time, uint32_t tid,
			   struct vp_buffer *out);

/* The number that is a field of the event or of its context. False: it has none of that name. */
bool vp_ctf_number(const struct vp_babeltrace *babeltrace, const struct bt_event *event,
		   const char *name, uint64_t *ret);
bool vp_ctf_context_number(const struct vp_babeltrace *babeltrace, const struct bt_event *event,
			   const char *name, uint64_t *ret);
/* The text of a field, or "". */
struct vp_slice vp_ctf_text(const struct vp_babeltrace *babeltrace, const struct bt_event *event,
			    const char *name);

#endif
