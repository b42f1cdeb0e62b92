/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/vm_join.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/records.h"

void vp_vm_join_deinit(struct vp_vm_join *join)
{
	vp_vm_join_next(join);
}

void vp_vm_join_next(struct vp_vm_join *join)
{
	vp_map_deinit(&join->ids);
	vp_map_deinit(&join->taken);
}

static uint32_t vm_join_map(struct vp_vm_join *join, uint32_t id, uint32_t number)
{
	bool inserted;

	vp_map_insert(&join->taken, number, 0, &inserted);
	return *vp_map_insert(&join->ids, id, number, &inserted);
}

static bool has_uuid(const struct vp_vm *vm)
{
	return vm->uuid && vm->uuid[0] && vm->name && vm->name[0];
}

static bool vm_join_is_same(const struct vp_vm *a, const struct vp_vm *b)
{
	if (a->has_domain != b->has_domain)
		return false;
	if (has_uuid(a) && has_uuid(b) && !strcmp(a->uuid, b->uuid) && !strcmp(a->name, b->name))
		return true;
	if (a->pid != b->pid)
		return false;
	/* A VM known only from records has no name yet. */
	return a->started && b->started ? a->started == b->started && a->fd == b->fd
					: a->nth == b->nth && (!a->started || !b->started);
}

/* The VM in `vms` that does not belong to another VM of the present recording. */
static struct vp_vm *find_same(const struct vp_vm_join *join, const struct vp_vm *vm)
{
	vp_vec_each (join->vms, known)
		if (vm_join_is_same(known, vm) && !vp_map_find(&join->taken, vp_vm_id(known)))
			return known;
	return NULL;
}

static void vm_join_set(char **to, const char *from)
{
	free(*to);
	*to = from ? vp_strdup(from) : NULL;
}

static void copy_vcpus(struct vp_vm *to, const struct vp_vm *from)
{
	vp_vec_each (&from->vcpus, vcpu) {
		struct vp_vcpu *own = vp_vm_vcpu(to, vcpu->number);
		own->tid = vcpu->tid;
		vm_join_set(&own->pcpus, vcpu->pcpus);
	}
}

/* Copies texts and vCPUs; the number stays. */
static void copy_facts(struct vp_vm *to, const struct vp_vm *from)
{
	to->started = from->started;
	to->fd = from->fd;
	to->has_domain = from->has_domain;
	to->domain = from->domain;
	to->start = from->start;
	to->end = from->end;
	vm_join_set(&to->name, from->name ? from->name : "");
	vm_join_set(&to->uuid, from->uuid ? from->uuid : "");
	vm_join_set(&to->memory, from->memory ? from->memory : "");
	vm_join_set(&to->agent, from->agent ? from->agent : "");
	vm_join_set(&to->cgroup, from->cgroup);
	copy_vcpus(to, from);
}

/* Adds a VM with a free number. */
static struct vp_vm *add_new(struct vp_vm_join *join, uint32_t id)
{
	struct vp_vm new = vp_vm_of_id(id);

	while (vp_vms_find(join->vms, vp_vm_id(&new)))
		new.nth++;
	new.name = vp_format("pid-%u", id);
	new.uuid = vp_strdup("");
	new.memory = vp_strdup("");
	new.agent = vp_strdup("");
	vp_vec_push(join->vms, new);
	return &join->vms->at[join->vms->count - 1];
}

void vp_vm_join_add(struct vp_vm_join *join, const vp_vms *of)
{
	vp_vec_each (of, vm) {
		const uint32_t *number = vp_map_find(&join->ids, vp_vm_id(vm));
		struct vp_vm *known =
		    number ? vp_vms_find(join->vms, *number) : find_same(join, vm);
		if (!known)
			known = add_new(join, vp_vm_id(vm));
		copy_facts(known, vm);
		vm_join_map(join, vp_vm_id(vm), vp_vm_id(known));
	}
}

static uint32_t vm_join_number(struct vp_vm_join *join, uint32_t id)
{
	const uint32_t *number = vp_map_find(&join->ids, id);

	if (number)
		return *number;
	return vm_join_map(join, id, vp_vm_id(add_new(join, id)));
}

static bool is_number(const struct vp_field_type *field)
{
	return field->size == sizeof(uint32_t) && !strcmp(field->name, "vm");
}

const struct vp_record_header *vp_vm_join_record(struct vp_vm_join *join,
						 const struct vp_record_header *record,
						 union vp_any_record *ret)
{
	const struct vp_record_type *type = vp_record_type(record->id);

	for (size_t i = 0; type && record->id != VP_ID_account_loss && i < type->n_fields; i++) {
		uint32_t id;
		if (!is_number(&type->fields[i]))
			continue;
		memcpy(ret, record, type->size);
		memcpy(&id, (char *)ret + type->fields[i].offset, sizeof(id));
		id = vm_join_number(join, id);
		memcpy((char *)ret + type->fields[i].offset, &id, sizeof(id));
		/* A thief's owner may be a VM or another process. */
		if (record->id == VP_ID_thief) {
			const uint32_t *owner = vp_map_find(&join->ids, ret->thief.thief_pid);
			if (owner)
				ret->thief.thief_pid = *owner;
		}
		return &ret->header;
	}
	return record;
}
