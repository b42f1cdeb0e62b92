/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Converts events of a CTF kernel trace, as written by LTTng or perf, to the names of the kernel's
 * own tracepoints and fields: sched_switch's prev_tid becomes prev_pid of sched:sched_switch. The
 * first field is common_pid, as in tracepoints: the thread that was running.
 */
#ifndef VP_IMPORT_CTF_CTF_EVENTS_H
#define VP_IMPORT_CTF_CTF_EVENTS_H

#include "base/cursor.h"
#include "base/map.h"
#include "base/vec.h"
#include "import/ctf/babeltrace.h"
#include "schema/event_class.h"

/* Maps members of an event to the fields of its class after common_pid. */
typedef VP_VEC(uint16_t) vp_ctf_members;

struct vp_ctf_events {
	const struct vp_babeltrace *babeltrace;
	vp_event_classes classes;
	VP_VEC(vp_ctf_members) members;
	struct vp_map class_of; /* by stream class and event class */
	uint64_t left_out;      /* number of fields that cannot be converted */
};

/* Index of the event's class in `classes`, added if new; UINT32_MAX: not convertible. */
uint32_t vp_ctf_events_class(struct vp_ctf_events *events, const struct bt_event *event);
/* Appends the event's record. False: too long; nothing was appended. */
bool vp_ctf_events_convert(const struct vp_ctf_events *events, uint32_t class,
			   const struct bt_event *event, uint64_t time, uint32_t tid,
			   struct vp_buffer *out);

/* A numeric field of the event or its context. False: no such field. */
bool vp_ctf_number(const struct vp_babeltrace *babeltrace, const struct bt_event *event,
		   const char *name, uint64_t *ret);
bool vp_ctf_context_number(const struct vp_babeltrace *babeltrace, const struct bt_event *event,
			   const char *name, uint64_t *ret);
/* A text field, or "". */
struct vp_slice vp_ctf_text(const struct vp_babeltrace *babeltrace, const struct bt_event *event,
			    const char *name);

#endif
