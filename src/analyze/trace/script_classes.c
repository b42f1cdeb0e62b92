/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/trace/script_classes.h"

#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/text.h"
#include "schema/records.h"

/* Prefixes of records that are not events by themselves. */
static const uint32_t no_events[] = {VP_ID_task,
				     VP_ID_clock_sync,
				     VP_ID_guest_task,
				     VP_ID_guest_regs,
				     VP_ID_chain_frames,
				     VP_ID_chain_stack,
				     VP_ID_vcpu_account,
				     VP_ID_exit_account,
				     VP_ID_exit_bucket,
				     VP_ID_thief,
				     VP_ID_exit_site,
				     VP_ID_account_loss,
				     VP_ID_interval_value,
				     VP_ID_exit_site_detail,
				     VP_ID_exit_site_address,
				     VP_ID_exit_site_waits,
				     VP_ID_exit_sampling,
				     VP_ID_wake_bucket,
				     VP_ID_vm_samples};

static const struct {
	const char *name;
	enum vp_script_role role;
} roles[] = {{"tid", VP_SCRIPT_TID},
	     {"prev_tid", VP_SCRIPT_PREV_TID},
	     {"next_tid", VP_SCRIPT_OTHER_TID},
	     {"woken_tid", VP_SCRIPT_OTHER_TID},
	     {"other_tid", VP_SCRIPT_OTHER_TID},
	     {"vm", VP_SCRIPT_VM},
	     {"vcpu", VP_SCRIPT_VCPU},
	     {"vendor", VP_SCRIPT_VENDOR},
	     {"reason", VP_SCRIPT_REASON},
	     {"exit_reason", VP_SCRIPT_REASON},
	     {"detail", VP_SCRIPT_DETAIL},
	     {"detail_kind", VP_SCRIPT_DETAIL_KIND},
	     {"flags", VP_SCRIPT_FLAGS},
	     {"switch_flags", VP_SCRIPT_SWITCH},
	     {"prev_state", VP_SCRIPT_STATE},
	     {"preempted", VP_SCRIPT_PREEMPTED}};

static enum vp_script_role role_of(const struct vp_event_field *field)
{
	if (!strncmp(field->name, "reserved", 8))
		return VP_SCRIPT_HIDDEN;
	for (size_t i = 0; field->shape == VP_EVENT_INTEGER && i < VP_ARRAY_SIZE(roles); i++)
		if (!strcmp(roles[i].name, field->name))
			return roles[i].role;
	return VP_SCRIPT_PLAIN;
}

static struct vp_script_column add_column(struct vp_script_classes *classes, const char *name)
{
	uint32_t number = vp_intern_string(classes->columns, name);

	return (struct vp_script_column){number, vp_intern_text(classes->columns, number),
					 strlen(name)};
}

/* Names of common columns are reserved: a field with such a name gets a prefix. */
static struct vp_script_column column_of(struct vp_script_classes *classes, const char *name)
{
	static const char *const taken[] = {"time_ns", "pcpu", "comm",    "tid",
					    "vm",      "vcpu", "machine", "event"};
	VP_AUTO_FREE char *clean = vp_text_cleaned(name);

	for (size_t i = 0; i < VP_ARRAY_SIZE(taken); i++)
		if (!strcmp(taken[i], name)) {
			VP_AUTO_FREE char *other = vp_format("its_%s", clean);
			return add_column(classes, other);
		}
	return add_column(classes, clean);
}

static void script_classes_add_columns(struct vp_script_classes *classes,
				       struct vp_script_part *part)
{
	const char *name = part->field->name;

	switch (part->role) {
	case VP_SCRIPT_HIDDEN:
	case VP_SCRIPT_TID:
	case VP_SCRIPT_VM:
	case VP_SCRIPT_VCPU:
	case VP_SCRIPT_PCPU:
	case VP_SCRIPT_VENDOR:
	case VP_SCRIPT_DETAIL_KIND:
	case VP_SCRIPT_PREEMPTED:
		return;
	case VP_SCRIPT_OTHER_TID:
	case VP_SCRIPT_GUEST_TID: {
		VP_AUTO_FREE char *comm = vp_format("%.*scomm", (int)strlen(name) - 3, name);
		part->column = column_of(classes, name);
		part->comm_column = column_of(classes, comm);
		return;
	}
	default:
		part->column = column_of(classes, name);
	}
}

/* Fields of kernel tracepoints are not interpreted, except the current thread. */
static enum vp_script_role role_in_tracepoint(const struct vp_event_field *field)
{
	return strcmp(field->name, "common_pid") != 0 ? VP_SCRIPT_PLAIN : VP_SCRIPT_TID;
}

static bool script_classes_is_tracepoint(const struct vp_event_class *event)
{
	return event->fields.count && !strcmp(event->fields.at[0].name, "common_pid");
}

/* collect/programs/hypervisor_events.h */
static bool is_of_hypervisor(const struct vp_event_class *event)
{
	static const char *const first[] = {"pcpu", "vm", "vcpu"};

	for (size_t i = 0; i < VP_ARRAY_SIZE(first); i++)
		if (i >= event->fields.count || strcmp(event->fields.at[i].name, first[i]) != 0)
			return false;
	return true;
}

/* Fields of hypervisor events are not interpreted, except the first three. */
static enum vp_script_role role_in_hypervisor(const struct vp_event_class *event,
					      const struct vp_event_field *field)
{
	static const enum vp_script_role first[] = {VP_SCRIPT_PCPU, VP_SCRIPT_VM, VP_SCRIPT_VCPU};
	size_t index = (size_t)(field - event->fields.at);

	return index < VP_ARRAY_SIZE(first) ? first[index] : VP_SCRIPT_PLAIN;
}

/* Whether a bit of `flags` indicates a known exit reason. */
static bool flags_have_reason(uint32_t id)
{
	return id != VP_ID_exit_site && id != VP_ID_exit_site_detail &&
	       id != VP_ID_exit_site_address && id != VP_ID_exit_site_waits;
}

static bool is_plain(const struct vp_script_part *part)
{
	switch (part->role) {
	case VP_SCRIPT_PLAIN:
	case VP_SCRIPT_HIDDEN:
	case VP_SCRIPT_TID:
	case VP_SCRIPT_PREV_TID:
	case VP_SCRIPT_OTHER_TID:
	case VP_SCRIPT_STATE:
	case VP_SCRIPT_PREEMPTED:
		return part->field->shape == VP_EVENT_INTEGER;
	default:
		return false;
	}
}

static void script_classes_add_parts(struct vp_script_classes *classes,
				     struct vp_script_class *class)
{
	bool is_defined = class - classes->all.at >= VP_ID_DEFINED;
	bool raw = script_classes_is_tracepoint(class->event);

	class->of_hypervisor = is_defined && is_of_hypervisor(class->event);
	class->name = vp_text_cleaned(class->event->name);
	class->name_size = strlen(class->name);
	class->is_plain = !class->of_hypervisor;
	class->whole_size =
	    class->event->fixed_size +
	    (is_defined ? sizeof(struct vp_defined_record) : sizeof(struct vp_record_header));
	uint32_t offset = 0;
	vp_vec_each (&class->event->fields, field) {
		struct vp_script_part part = {.field = field,
					      .role =
						  raw ? role_in_tracepoint(field) : role_of(field),
					      .offset = offset,
					      .unused = (uint8_t)(64 - 8 * field->size)};
		offset += field->size * (field->shape == VP_EVENT_ARRAY ? field->count : 1U);
		if (is_defined && !raw && !strcmp(field->name, "guest_tid"))
			part.role = VP_SCRIPT_GUEST_TID;
		if (part.role == VP_SCRIPT_FLAGS &&
		    !flags_have_reason((uint32_t)(class - classes->all.at)))
			part.role = VP_SCRIPT_PLAIN;
		if (class->of_hypervisor)
			part.role = role_in_hypervisor(class->event, field);
		if (class->chosen)
			script_classes_add_columns(classes, &part);
		class->is_plain &= is_plain(&part);
		vp_vec_push(&class->parts, part);
	}
}

/* A record of the schema as a class; a field that is not an integer is an array. */
static struct vp_error *add_fixed(vp_event_classes *fixed, const struct vp_record_type *type)
{
	struct vp_event_class *event;

	VP_TRY(vp_event_classes_add(fixed, type->name, &event));
	for (size_t i = 0; i < type->n_fields; i++) {
		const struct vp_field_type *field = &type->fields[i];
		bool is_text = !strcmp(field->type, "comm");
		bool is_array = is_text || !strncmp(field->type, "words", 5);
		size_t size = is_text ? 1 : is_array ? sizeof(uint64_t) : field->size;
		const struct vp_event_field plain = {
		    .name = (char *)field->name,
		    .shape = is_array ? VP_EVENT_ARRAY : VP_EVENT_INTEGER,
		    .size = (uint8_t)size,
		    .is_hex = !strcmp(field->style, "hex"),
		    .is_text = is_text,
		    .count = (uint16_t)(is_array ? field->size / size : 0)};
		VP_TRY(vp_event_class_add_field(event, &plain));
	}
	return NULL;
}

static struct vp_error *script_classes_add_all(struct vp_script_classes *classes)
{
	for (uint32_t id = 0; id <= VP_ID_MAX; id++)
		if (vp_record_type(id))
			VP_TRY(add_fixed(&classes->fixed, vp_record_type(id)));
	size_t next = 0;
	for (uint32_t id = 0; id < VP_ID_DEFINED; id++) {
		struct vp_script_class class = {0};
		if (vp_record_type(id))
			class.event = &classes->fixed.at[next++];
		vp_vec_push(&classes->all, class);
	}
	vp_vec_each (&classes->defined, event)
		vp_vec_push(&classes->all, (struct vp_script_class){.event = event});
	return NULL;
}

static const char *without_system(const char *name)
{
	const char *colon = strchr(name, ':');

	return colon ? colon + 1 : name;
}

/* `pattern`: a name, which may have wildcards of fnmatch(3). */
static bool script_classes_is_named(const char *name, const char *pattern)
{
	return !strcmp(name, pattern) || !fnmatch(pattern, name, 0);
}

static bool choose_by_name(struct vp_script_classes *classes, const char *name,
			   struct vp_nearest *nearest)
{
	bool found = false;

	vp_vec_each (&classes->all, class) {
		if (!class->event)
			continue;
		const char *its = class->event->name;
		if (script_classes_is_named(its, name) ||
		    script_classes_is_named(without_system(its), name))
			found = class->chosen = true;
		vp_nearest_add(nearest, strchr(name, ':') ? its : without_system(its));
	}
	return found;
}

static struct vp_error *choose_in_all(struct vp_script_classes *const *traces, size_t n_traces,
				      const char *name)
{
	struct vp_nearest nearest;
	bool found = false;

	vp_nearest_init(&nearest, (struct vp_slice){name, strlen(name)});
	for (size_t i = 0; i < n_traces; i++)
		found |= choose_by_name(traces[i], name, &nearest);
	if (found)
		return NULL;
	VP_AUTO_FREE char *near = vp_nearest_text(&nearest);
	return vp_error_usage("the recording has no event '%s'%s", name, near);
}

static void script_classes_choose_events(struct vp_script_classes *classes)
{
	vp_vec_each (&classes->all, class)
		class->chosen = class->event != NULL;
	for (size_t i = 0; i < VP_ARRAY_SIZE(no_events); i++)
		classes->all.at[no_events[i]].chosen = false;
}

struct vp_error *vp_script_classes_init(struct vp_script_classes *classes,
					vp_event_classes *defined, struct vp_intern *columns)
{
	*classes = (struct vp_script_classes){.defined = *defined, .columns = columns};
	*defined = (vp_event_classes){0};
	struct vp_error *error = script_classes_add_all(classes);
	if (error)
		vp_script_classes_deinit(classes);
	return error;
}

struct vp_error *vp_script_classes_choose(struct vp_script_classes *const *traces, size_t n_traces,
					  const char *const *names, size_t n_names)
{
	for (size_t i = 0; i < n_names; i++)
		VP_TRY(choose_in_all(traces, n_traces, names[i]));
	for (size_t i = 0; i < n_traces; i++) {
		if (!n_names)
			script_classes_choose_events(traces[i]);
		vp_vec_each (&traces[i]->all, class)
			if (class->event)
				script_classes_add_parts(traces[i], class);
	}
	return NULL;
}

void vp_script_classes_deinit(struct vp_script_classes *classes)
{
	vp_vec_each (&classes->all, class) {
		free(class->name);
		vp_vec_deinit(&class->parts);
	}
	vp_vec_deinit(&classes->all);
	vp_event_classes_deinit(&classes->fixed);
	vp_event_classes_deinit(&classes->defined);
}
