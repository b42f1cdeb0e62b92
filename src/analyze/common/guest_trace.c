/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/guest_trace.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "schema/records.h"
#include "store/trace_reader.h"

bool vp_guest_traces_has(const char *directory, const vp_vms *vms, const struct vp_vm *vm)
{
	VP_AUTO_FREE char *part = vp_vm_part(vms, vm);
	VP_AUTO_FREE char *events = vp_format("%s/%s.events", directory, part);

	return !access(events, F_OK);
}

struct vp_error *vp_guest_traces_find(const char *directory, const vp_vms *vms,
				      vp_guest_traces *ret)
{
	vp_vec_each (vms, vm) {
		if (!vp_guest_traces_has(directory, vms, vm))
			continue;
		VP_AUTO_FREE char *part = vp_vm_part(vms, vm);
		struct vp_guest_trace *trace = vp_vec_push_slot(ret);
		*trace =
		    (struct vp_guest_trace){.vm = vm, .path = vp_format("%s/%s", directory, part)};
		VP_TRY(vp_trace_classes(trace->path, &trace->classes));
	}
	return NULL;
}

bool vp_guest_traces_any(const char *directory, const vp_vms *vms, const char *name)
{
	vp_vec_each (vms, vm)
		if ((!name || !strcmp(vm->name, name)) && vp_guest_traces_has(directory, vms, vm))
			return true;
	return false;
}

void vp_guest_traces_deinit(vp_guest_traces *traces)
{
	vp_vec_each (traces, trace) {
		free(trace->path);
		vp_event_classes_deinit(&trace->classes);
	}
	vp_vec_deinit(traces);
}

static bool guest_trace_ends_in(const char *name, const char *end)
{
	size_t size = strlen(name), length = strlen(end);

	return size >= length && !strcmp(name + size - length, end);
}

/* In all scheduler tracepoints, a thread's name directly precedes its tid. */
static void names_of_event(const struct vp_event_class *class,
			   const struct vp_defined_record *record,
			   void (*take)(void *context, uint32_t tid, struct vp_slice comm),
			   void *context)
{
	struct vp_cursor fields = vp_event_fields(record);
	struct vp_slice comm = {NULL, 0};
	struct vp_event_value value;

	vp_vec_each (&class->fields, field) {
		if (!vp_event_next_value(&fields, field, &value))
			return;
		bool is_text = field->is_text || field->shape == VP_EVENT_STRING;
		if (is_text && guest_trace_ends_in(field->name, "comm")) {
			comm = value.bytes;
		} else if (comm.bytes && guest_trace_ends_in(field->name, "pid")) {
			take(context, (uint32_t)value.number, comm);
			comm.bytes = NULL;
		}
	}
}

void vp_guest_trace_names(const vp_event_classes *classes, const struct vp_record_header *record,
			  void (*take)(void *context, uint32_t tid, struct vp_slice comm),
			  void *context)
{
	const struct vp_task *task = (const void *)record;

	if (record->id == VP_ID_task)
		take(context, task->tid, (struct vp_slice){task->comm, sizeof(task->comm)});
	const struct vp_event_class *class =
	    record->id < VP_ID_DEFINED ? NULL : vp_event_classes_find(classes, record->id);
	if (class && !strncmp(class->name, "sched:", 6))
		names_of_event(class, (const void *)record, take, context);
}
