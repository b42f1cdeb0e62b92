/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All record classes that a recording's streams may have, with the meaning of each field. */
#ifndef VP_ANALYZE_TRACE_SCRIPT_CLASSES_H
#define VP_ANALYZE_TRACE_SCRIPT_CLASSES_H

#include <string.h>

#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/event_class.h"
#include "schema/schema.h"

/* Meaning of a field beyond its number. */
enum vp_script_role {
	VP_SCRIPT_PLAIN,
	VP_SCRIPT_HIDDEN,    /* no information beyond other fields */
	VP_SCRIPT_TID,       /* running thread; not printed as a field */
	VP_SCRIPT_PREV_TID,  /* the same, printed as a field */
	VP_SCRIPT_OTHER_TID, /* a thread whose name is in another field */
	VP_SCRIPT_GUEST_TID, /* the same, a thread of the VM's guest */
	VP_SCRIPT_VM,
	VP_SCRIPT_VCPU,
	VP_SCRIPT_PCPU, /* of the hypervisor */
	VP_SCRIPT_VENDOR,
	VP_SCRIPT_REASON, /* printed by name */
	VP_SCRIPT_DETAIL, /* exit detail: printed as text */
	VP_SCRIPT_DETAIL_KIND,
	VP_SCRIPT_FLAGS,
	VP_SCRIPT_SWITCH, /* flags of a guest_switch, printed by name */
	VP_SCRIPT_STATE,  /* state of a thread, printed as a letter */
	VP_SCRIPT_PREEMPTED
};

/* A column of the recording. */
struct vp_script_column {
	uint32_t number;
	const char *name;
	size_t name_size;
};

struct vp_script_part {
	const struct vp_event_field *field;
	enum vp_script_role role;
	struct vp_script_column column, comm_column; /* empty in a class that is not selected */
	/* An integer's position after the header, if no field before it varies in size, and the
	 * number of bits of a u64 that it lacks. */
	uint32_t offset;
	uint8_t unused;
};

struct vp_script_class {
	const struct vp_event_class *event; /* NULL: no such class */
	char *name;                         /* name of the event, cleaned */
	bool chosen;
	bool of_hypervisor; /* its first fields are pcpu, vm, vcpu */
	size_t name_size;
	/* Integers of a fixed size only, which depend on no other field: on the host,
	 * vp_script_next_plain() returns them unread. */
	bool is_plain;
	uint32_t whole_size; /* of such a record, with its header */
	VP_VEC(struct vp_script_part) parts;
};

struct vp_script_classes {
	vp_event_classes fixed, defined; /* of the schema, of the recording */
	VP_VEC(struct vp_script_class) all;
	struct vp_intern
	    *columns; /* names of the selected classes' fields; owned by the recording */
};

/* The number at its fixed position, read as eight bytes: streams have VP_RECORD_ROOM bytes after
 * each record. `fields`: the record without its header. */
static inline uint64_t vp_script_number(const struct vp_script_part *part, const char *fields)
{
	uint64_t number;

	memcpy(&number, fields + part->offset, sizeof(number));
	number <<= part->unused;
	return part->field->is_signed ? (uint64_t)((int64_t)number >> part->unused)
				      : number >> part->unused;
}

/* Takes over `defined`, even on failure; `columns`: owned by the recording. */
struct vp_error *vp_script_classes_init(struct vp_script_classes *classes,
					vp_event_classes *defined,
					struct vp_intern *columns) VP_MUST_CHECK;
/* Selects classes by name in all traces of a recording. Without names: all events, without thread
 * names, sums or parts of stacks. A name may omit its system ("kvm_exit"). */
struct vp_error *vp_script_classes_choose(struct vp_script_classes *const *traces, size_t n_traces,
					  const char *const *names, size_t n_names) VP_MUST_CHECK;
void vp_script_classes_deinit(struct vp_script_classes *classes);
/* The class with that id, or NULL. */
static inline const struct vp_script_class *
vp_script_classes_find(const struct vp_script_classes *classes, uint32_t id)
{
	return id < classes->all.count && classes->all.at[id].event ? &classes->all.at[id] : NULL;
}

#endif
