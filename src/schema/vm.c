/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "schema/vm.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/intern.h"

struct vp_vm *vp_vms_find(const vp_vms *vms, uint32_t id)
{
	vp_vec_each (vms, vm)
		if (vp_vm_id(vm) == id)
			return vm;
	return NULL;
}

struct vp_vm *vp_vms_latest(const vp_vms *vms, uint32_t pid)
{
	for (size_t i = vms->count; i--;)
		if (vms->at[i].pid == pid)
			return &vms->at[i];
	return NULL;
}

static bool has_thread(const struct vp_vm *vm, uint32_t tid)
{
	vp_vec_each (&vm->vcpus, vcpu)
		if (vcpu->tid == tid)
			return true;
	return false;
}

/* The latest matching VM of the process. */
static struct vp_vm *last_vm(const vp_vms *vms, uint32_t pid, uint32_t tid, bool runs)
{
	for (size_t i = vms->count; i--;) {
		struct vp_vm *vm = &vms->at[i];
		if (vm->pid == pid && (!tid || has_thread(vm, tid)) && (!runs || !vm->end))
			return vm;
	}
	return NULL;
}

struct vp_vm *vp_vms_of_thread(const vp_vms *vms, uint32_t pid, uint32_t tid)
{
	struct vp_vm *vm = last_vm(vms, pid, tid, true);

	vm = vm ? vm : last_vm(vms, pid, 0, true);
	vm = vm ? vm : last_vm(vms, pid, tid, false);
	return vm ? vm : last_vm(vms, pid, 0, false);
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
		  : vp_error_new("no VM named '%s' is running; running: %s", name,
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

const char *vp_vm_location(const struct vp_vm *vm, char text[32])
{
	snprintf(text, 32, "%s %u", vm->has_domain ? "domain" : "process",
		 vm->has_domain ? vm->domain : vm->pid);
	return text;
}

void vp_vm_add_agent_outcome(struct vp_vm *vm, const struct vp_agent_outcome *outcome)
{
	VP_AUTO_FREE char *before = vm->agent, *text = vp_agent_outcome_text(outcome);
	bool is_first = !before || !before[0];

	vm->agent = vp_format("%s%s%s", is_first ? "" : before, is_first ? "" : "; ", text);
	vp_vec_push(&vm->agent_outcomes, *outcome);
}

void vp_vm_set_memory_outcome(struct vp_vm *vm, const struct vp_memory_outcome *outcome)
{
	free(vm->memory);
	free(vm->memory_outcome.problem);
	vm->memory = vp_memory_outcome_text(outcome);
	vm->memory_outcome = *outcome;
	vm->has_memory_outcome = true;
}

void vp_vm_deinit(struct vp_vm *vm)
{
	vp_vec_each (&vm->agent_outcomes, outcome)
		vp_agent_outcome_deinit(outcome);
	vp_vec_deinit(&vm->agent_outcomes);
	free(vm->scheduler);
	free(vm->name);
	free(vm->uuid);
	free(vm->title);
	free(vm->project);
	free(vm->tenant);
	free(vm->agent);
	free(vm->memory);
	free(vm->memory_outcome.problem);
	free(vm->vsock);
	free(vm->cgroup);
	free(vm->part);
	vp_vec_each (&vm->vcpus, vcpu)
		free(vcpu->pcpus);
	vp_vec_deinit(&vm->vcpus);
}

void vp_vms_deinit(vp_vms *vms)
{
	vp_vec_each (vms, vm)
		vp_vm_deinit(vm);
	vp_vec_deinit(vms);
}

/* Longer file names, with suffixes, exceed the limit of some file systems. */
enum { PART_SIZE = 200 };

/* Avoids the name of another file: "a.maps" for a VM "a". */
static void spare_file_names(char *part)
{
	static const char *const endings[] = {".maps", ".orc", ".events"};
	size_t size = strlen(part);

	for (size_t i = 0; i < VP_ARRAY_SIZE(endings); i++) {
		size_t ending = strlen(endings[i]);
		if (size > ending && !strcmp(part + size - ending, endings[i]))
			part[size - ending] = '_';
	}
}

static char *plain_part(const struct vp_vm *vm)
{
	char *name = vp_format("guest-%.*s", PART_SIZE, vm->name);

	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.+", *c))
			*c = '_';
	spare_file_names(name);
	return name;
}

/* The first of NAME, NAME-PID, NAME-PID-2, … that is unused. */
static char *unique_part(struct vp_intern *taken, const struct vp_vm *vm)
{
	char *plain = plain_part(vm), *part = vp_strdup(plain);
	uint32_t before = (uint32_t)taken->strings.count;

	for (unsigned i = 1; vp_intern_string(taken, part) != before; i++) {
		free(part);
		part = i == 1 ? vp_format("%s-%u", plain, vm->pid)
			      : vp_format("%s-%u-%u", plain, vm->pid, i);
	}
	free(plain);
	return part;
}

uint64_t vp_vcpu_host_tsc(const struct vp_vcpu *vcpu, uint64_t guest_tsc)
{
	uint64_t scaled = guest_tsc - (uint64_t)vcpu->tsc_offset;

	if (!vcpu->tsc_frac_bits || !vcpu->tsc_ratio)
		return scaled;
	unsigned __int128 host =
	    ((unsigned __int128)scaled << vcpu->tsc_frac_bits) / vcpu->tsc_ratio;
	return host > UINT64_MAX ? UINT64_MAX : (uint64_t)host;
}

/* Different names may become equal as file names, or after cleaning for display. */
char *vp_vm_part(const vp_vms *vms, const struct vp_vm *vm)
{
	struct vp_intern taken = {0};
	char *part = NULL;

	if (vm->part)
		return vp_strdup(vm->part);
	vp_vec_each (vms, other) {
		free(part);
		part = unique_part(&taken, other);
		if (other == vm)
			break;
	}
	vp_intern_deinit(&taken);
	return part ? part : plain_part(vm);
}

void vp_vms_settle_parts(vp_vms *vms)
{
	struct vp_intern taken = {0};

	vp_vec_each (vms, vm) {
		char *part = unique_part(&taken, vm);
		free(vm->part);
		vm->part = part;
	}
	vp_intern_deinit(&taken);
}
