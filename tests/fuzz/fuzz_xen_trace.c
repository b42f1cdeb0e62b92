/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A trace buffer of Xen's, and what is made of its records. */
#include "xen/states.h"
#include "xen/xen_conditions.h"
#include "xen/xen_events.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct vp_hypervisor_events *all_events(vp_event_classes *classes)
{
	static const char *const all = "all";
	struct vp_hypervisor_events *events = NULL;
	struct vp_error *error = vp_xen_events_ops()->open(&all, 1, &events);

	if (error || vp_xen_events_ops()->define(events, classes))
		abort();
	return events;
}

/* Each record is of a class, and as that says. */
static void check(struct vp_hypervisor_events *events, const vp_event_classes *classes)
{
	const struct vp_buffer *records = vp_xen_events_ops()->take(events);

	for (size_t at = 0; at < records->size;) {
		const struct vp_defined_record *record = (const void *)(records->bytes + at);
		const struct vp_event_class *event = vp_event_classes_find(classes, record->id);
		if (!event || record->size > records->size - at ||
		    !vp_event_is_whole(event, record))
			abort();
		at += record->size;
	}
}

/* A trigger that fires names a time and a pCPU of the records. */
static void check_fired(struct vp_condition_watch *watch, const struct vp_xen_traced *traced)
{
	struct vp_fired fired;

	if (!vp_xen_conditions_fired(watch, &fired))
		return;
	if (fired.time != traced->time || fired.cpu != traced->pcpu || fired.ns > fired.time ||
	    fired.thief_tid == fired.tid)
		abort();
	vp_xen_conditions_arm(watch);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct vp_conditions conditions = {.wanted = {true, true, true, true},
						 .ns = {1000, 1, 1, 0}};
	struct vp_condition_watch *watch = vp_xen_conditions_new(&conditions, true);
	struct vp_cursor cursor = vp_cursor_of(bytes, size);
	struct vp_xen_traced traced = {0};
	struct vp_xen_states states;
	static struct vp_hypervisor_events *events; /* made once: its classes are many */
	static vp_event_classes classes;

	if (!events)
		events = all_events(&classes);
	vp_xen_states_init(&states, VP_VENDOR_AMD, true);
	vp_xen_conditions_arm(watch);
	while (vp_xen_record_read(&cursor, &traced.record)) {
		traced.pcpu = (uint32_t)(traced.record.tsc >> 62);
		traced.time = traced.record.tsc ? traced.record.tsc : traced.time;
		vp_xen_conditions_take(watch, &states, &traced);
		check_fired(watch, &traced);
		vp_xen_states_take(&states, &traced);
		vp_xen_events_add(events, &traced, 1, 0);
	}
	check(events, &classes);
	vp_xen_conditions_free(watch);
	vp_xen_states_emit_gone(&states, 0, traced.time);
	vp_xen_states_end_gone(&states);
	vp_xen_states_deinit(&states);
	return 0;
}
