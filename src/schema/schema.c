/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/schema.h"

#include "base/macros.h"

#define FIELD_ENTRY(field_type, field_style, field, text)                                          \
	{.name = #field,                                                                           \
	 .style = #field_style,                                                                    \
	 .type = #field_type,                                                                      \
	 .offset = offsetof(RECORD_STRUCT, field),                                                 \
	 .size = sizeof(vp_type_##field_type),                                                     \
	 .meaning = text},

/* One array of fields per record. Written out, because RECORD_STRUCT cannot be redefined inside a
 * macro. */
#define RECORD_STRUCT struct vp_host_sample
static const struct vp_field_type host_sample_fields[] = {VP_FIELDS_host_sample(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_vcpu_sample
static const struct vp_field_type vcpu_sample_fields[] = {VP_FIELDS_vcpu_sample(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_guest_sample
static const struct vp_field_type guest_sample_fields[] = {VP_FIELDS_guest_sample(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_guest_task
static const struct vp_field_type guest_task_fields[] = {VP_FIELDS_guest_task(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_guest_regs
static const struct vp_field_type guest_regs_fields[] = {VP_FIELDS_guest_regs(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_chain_frames
static const struct vp_field_type chain_frames_fields[] = {VP_FIELDS_chain_frames(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_chain_stack
static const struct vp_field_type chain_stack_fields[] = {VP_FIELDS_chain_stack(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_sample_period
static const struct vp_field_type sample_period_fields[] = {VP_FIELDS_sample_period(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_task
static const struct vp_field_type task_fields[] = {VP_FIELDS_task(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_vcpu_in
static const struct vp_field_type vcpu_in_fields[] = {VP_FIELDS_vcpu_in(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_vcpu_out
static const struct vp_field_type vcpu_out_fields[] = {VP_FIELDS_vcpu_out(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_clock_sync
static const struct vp_field_type clock_sync_fields[] = {VP_FIELDS_clock_sync(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_vcpu_account
static const struct vp_field_type vcpu_account_fields[] = {VP_FIELDS_vcpu_account(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_exit_account
static const struct vp_field_type exit_account_fields[] = {VP_FIELDS_exit_account(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_exit_bucket
static const struct vp_field_type exit_bucket_fields[] = {VP_FIELDS_exit_bucket(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_thief
static const struct vp_field_type thief_fields[] = {VP_FIELDS_thief(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_exit_site
static const struct vp_field_type exit_site_fields[] = {VP_FIELDS_exit_site(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_exit_site_detail
static const struct vp_field_type exit_site_detail_fields[] = {
    VP_FIELDS_exit_site_detail(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_exit_site_address
static const struct vp_field_type exit_site_address_fields[] = {
    VP_FIELDS_exit_site_address(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_exit_site_waits
static const struct vp_field_type exit_site_waits_fields[] = {
    VP_FIELDS_exit_site_waits(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_exit_sampling
static const struct vp_field_type exit_sampling_fields[] = {VP_FIELDS_exit_sampling(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_wake_bucket
static const struct vp_field_type wake_bucket_fields[] = {VP_FIELDS_wake_bucket(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_vm_samples
static const struct vp_field_type vm_samples_fields[] = {VP_FIELDS_vm_samples(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_account_loss
static const struct vp_field_type account_loss_fields[] = {VP_FIELDS_account_loss(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_vcpu_span
static const struct vp_field_type vcpu_span_fields[] = {VP_FIELDS_vcpu_span(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_vcpu_next
static const struct vp_field_type vcpu_next_fields[] = {VP_FIELDS_vcpu_next(FIELD_ENTRY)};
#undef RECORD_STRUCT

#define RECORD_STRUCT struct vp_interval
static const struct vp_field_type interval_fields[] = {VP_FIELDS_interval(FIELD_ENTRY)};
#undef RECORD_STRUCT
#define RECORD_STRUCT struct vp_interval_value
static const struct vp_field_type interval_value_fields[] = {VP_FIELDS_interval_value(FIELD_ENTRY)};
#undef RECORD_STRUCT

#define TYPE_ENTRY(number, record, text)                                                           \
	[number] = {.id = (number),                                                                \
		    .size = sizeof(struct vp_##record),                                            \
		    .name = #record,                                                               \
		    .meaning = text,                                                               \
		    .fields = record##_fields,                                                     \
		    .n_fields = VP_ARRAY_SIZE(record##_fields)},

static const struct vp_record_type record_types[] = {VP_RECORDS(TYPE_ENTRY)};

const struct vp_record_type *vp_record_type(uint32_t id)
{
	if (id >= VP_ARRAY_SIZE(record_types) || !record_types[id].size)
		return NULL;
	return &record_types[id];
}

void vp_schema_document(struct vp_buffer *out)
{
	for (uint32_t id = 0; id < VP_ARRAY_SIZE(record_types); id++) {
		const struct vp_record_type *type = vp_record_type(id);
		if (!type)
			continue;
		vp_buffer_printf(out, "### %s (id %u, %zu bytes)\n\n%s.\n\n", type->name, type->id,
				 type->size, type->meaning);
		vp_buffer_string(out, "| offset | type | field | meaning |\n|---|---|---|---|\n");
		for (size_t i = 0; i < type->n_fields; i++) {
			const struct vp_field_type *field = &type->fields[i];
			vp_buffer_printf(out, "| %zu | %s | %s | %s |\n", field->offset,
					 field->type, field->name, field->meaning);
		}
		vp_buffer_string(out, "\n");
	}
}
