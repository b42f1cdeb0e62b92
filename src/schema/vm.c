/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/vm.h"

#include <ctype.h>
#include <string.h>

#include "base/buffer.h"

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

bool vp_vm_is_named(const struct vp_vm *vm, const char *const *names, size_t n_names)
{
	for (size_t i = 0; i < n_names; i++)
		if (!strcmp(names[i], vm->name))
			return true;
	return n_names == 0;
}

static struct vp_error *expect_one(const vp_vms *vms, const char *name)
{
	struct vp_buffer known = {0};
	bool found = false;

	vp_vec_each (vms, vm) {
		found |= !strcmp(vm->name, name);
		vp_buffer_printf(&known, "%s%s", known.size ? ", " : "", vm->name);
	}
	struct vp_error *error =
	    found ? NULL
		  : vp_error_new("no VM named '%s' is running; there is %s", name,
				 known.size ? vp_buffer_text(&known) : "none");
	vp_buffer_deinit(&known);
	return error;
}

struct vp_error *vp_vms_expect(const vp_vms *vms, const char *const *names, size_t n_names)
{
	for (size_t i = 0; i < n_names; i++)
		VP_TRY(expect_one(vms, names[i]));
	return NULL;
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

static char *plain_part(const struct vp_vm *vm)
{
	char *name = vp_format("guest-%s", vm->name);

	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.+", *c))
			*c = '_';
	return name;
}

/* Names that differ may be alike as names of files, and when they have been cleaned to be shown. */
char *vp_vm_part(const vp_vms *vms, const struct vp_vm *vm)
{
	char *name = plain_part(vm);

	vp_vec_each (vms, other) {
		VP_AUTO_FREE char *others = other == vm ? NULL : plain_part(other);
		if (!others)
			break;
		if (!strcmp(others, name)) {
			char *unique = vp_format("%s-%u", name, vm->pid);
			free(name);
			return unique;
		}
	}
	return name;
}
