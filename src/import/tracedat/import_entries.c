/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/tracedat/import_entries.h"

#include <string.h>

#include "base/vec.h"
#include "schema/event_class.h"
#include "schema/tracepoint_format.h"

/* Thread and vCPU of a kvm:kvm_entry event; false: another event. */
static bool import_entries_find_vcpu(const struct vp_event_class *class, struct vp_cursor fields,
				     uint32_t *tid, uint32_t *vcpu)
{
	struct vp_event_value value;
	bool found = false;

	if (strcmp(class->name, "kvm:kvm_entry") != 0)
		return false;
	vp_vec_each (&class->fields, field) {
		if (!vp_event_next_value(&fields, field, &value))
			return false;
		if (!strcmp(field->name, "common_pid"))
			*tid = (uint32_t)value.number;
		if (!strcmp(field->name, "vcpu_id")) {
			*vcpu = (uint32_t)value.number;
			found = true;
		}
	}
	return found;
}

void vp_import_entries_update(struct vp_import_entries *entries, const struct vp_tracedat *file,
			      uint32_t class, struct vp_slice raw, uint32_t process,
			      const struct vp_import_channel *channel)
{
	const struct vp_event_class *its = &file->classes.at[class];
	uint32_t tid = 0, vcpu = 0;
	bool inserted = false;

	if (strcmp(its->name, "kvm:kvm_entry") != 0)
		return;
	entries->record.size = 0;
	if (vp_tracepoint_convert(its, &file->layouts.at[class], 0, raw, &entries->record) &&
	    import_entries_find_vcpu(its, vp_event_fields((void *)entries->record.bytes), &tid,
				     &vcpu))
		vp_map_insert(&entries->vcpu_of_tid, tid, vcpu, &inserted);
	if (inserted)
		vp_import_send(channel,
			       (struct vp_import_msg){.kind = VP_IMPORT_VCPU,
						      .cpu = vcpu,
						      .number = tid | (uint64_t)process << 32},
			       NULL, 0);
}
