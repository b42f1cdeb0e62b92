/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Traces of guests in a recording: events sent by their agents. */
#ifndef VP_ANALYZE_COMMON_GUEST_TRACE_H
#define VP_ANALYZE_COMMON_GUEST_TRACE_H

#include "base/cursor.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/event_class.h"
#include "schema/schema.h"
#include "schema/vm.h"
#include "store/recording.h"

struct vp_guest_trace {
	const struct vp_vm *vm;
	char *path;
	vp_event_classes classes;
};
typedef VP_VEC(struct vp_guest_trace) vp_guest_traces;

/* Finds those of the recording in `directory`; `vms` must outlive them. */
struct vp_error *vp_guest_traces_find(const char *directory, const vp_vms *vms,
				      vp_guest_traces *ret) VP_MUST_CHECK;
/* Whether the recording has events of the VM. */
bool vp_guest_traces_has(const char *directory, const vp_vms *vms, const struct vp_vm *vm);
/* Whether there are any: of all VMs, or of the one named `vm`. */
bool vp_guest_traces_any(const char *directory, const vp_vms *vms, const char *vm);
void vp_guest_traces_deinit(vp_guest_traces *traces);
/* Calls `take` for every thread name in the record. */
void vp_guest_trace_names(const vp_event_classes *classes, const struct vp_record_header *record,
			  void (*take)(void *context, uint32_t tid, struct vp_slice comm),
			  void *context);

#endif
