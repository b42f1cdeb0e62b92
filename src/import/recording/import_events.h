/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks records of kernel tracepoints from an untrusted process, and converts a host's events to
 * vperf's own. */
#ifndef VP_IMPORT_RECORDING_IMPORT_EVENTS_H
#define VP_IMPORT_RECORDING_IMPORT_EVENTS_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/event_class.h"
#include "schema/trace_event.h"
#include "schema/vm.h"

enum { VP_IMPORT_FIELDS = 3 };

/* Conversion of a class. */
struct vp_import_class {
	uint16_t id;                       /* id in the recording */
	uint8_t own;                       /* enum vp_trace_kind + 1; 0: not converted */
	uint16_t fields[VP_IMPORT_FIELDS]; /* indices of the needed fields */
};

struct vp_import_vcpu {
	uint32_t vm;
	uint16_t vcpu;
};

struct vp_import_events {
	vp_event_classes given;
	vp_event_classes classes; /* classes of the recording */
	VP_VEC(struct vp_import_class) become;
	struct vp_map vcpu_of_tid; /* value: index in `vcpus` */
	VP_VEC(struct vp_import_vcpu) vcpus;
	struct vp_buffer record;
	uint32_t cpu;              /* CPU of the present records, which are sorted by time */
	struct vp_map comm_of_tid; /* per CPU: hash of the current thread's name */
};

/* `text`: event classes. Errors: malformed. */
struct vp_error *vp_import_events_init(struct vp_import_events *events, const char *source,
				       struct vp_slice text, bool is_host,
				       const vp_vms *vms) VP_MUST_CHECK;
void vp_import_events_deinit(struct vp_import_events *events);

enum { VP_IMPORT_NAMES = 2 };

struct vp_import_event {
	void *record;
	/* Names of threads that are new or changed, from the event. */
	struct {
		uint32_t tid;
		struct vp_slice comm;
	} names[VP_IMPORT_NAMES];
	size_t n_names;
	bool is_own;     /* converted to vperf's own event */
	bool is_strange; /* its thread is not a known vCPU: skip the record */
};

/* The next record; false: malformed. */
bool vp_import_events_next(struct vp_import_events *events, struct vp_cursor *records,
			   struct vp_import_event *ret);

#endif
