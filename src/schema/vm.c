/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/vm.h"

#include <ctype.h>
#include <string.h>

struct vp_vm *vp_vms_find(const vp_vms *vms, uint32_t pid)
{
	vp_vec_each (vms, vm)
		if (vm->pid == pid)
			return vm;
	return NULL;
}

struct vp_vcpu *vp_vm_vcpu(struct vp_vm *vm, uint32_t number)
{
	vp_vec_each (&vm->vcpus, vcpu)
		if (vcpu->number == number)
			return vcpu;
	struct vp_vcpu *vcpu = vp_vec_push_slot(&vm->vcpus);
	*vcpu = (struct vp_vcpu){.number = number};
	return vcpu;
}

void vp_vms_deinit(vp_vms *vms)
{
	vp_vec_each (vms, vm) {
		free(vm->name);
		free(vm->uuid);
		free(vm->agent);
		free(vm->memory);
		vp_vec_deinit(&vm->vcpus);
	}
	vp_vec_deinit(vms);
}

char *vp_vm_part(const vp_vms *vms, const struct vp_vm *vm)
{
	char *name = vp_format("guest-%s", vm->name);

	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.+", *c))
			*c = '_';
	vp_vec_each (vms, other) {
		if (other == vm)
			break;
		if (!strcmp(other->name, vm->name)) {
			char *unique = vp_format("%s-%u", name, vm->pid);
			free(name);
			return unique;
		}
	}
	return name;
}
