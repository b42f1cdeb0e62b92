/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "import/recording/import_vms.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "base/text.h"

void vp_import_vms_deinit(struct vp_import_vms *vms)
{
	vp_vms_deinit(&vms->vms);
	vp_vec_deinit(&vms->ids);
	vp_vec_deinit(&vms->taken);
	vp_vec_deinit(&vms->entered);
}

size_t vp_import_vms_add(struct vp_import_vms *vms, struct vp_slice name, uint64_t id)
{
	struct vp_vm vm = {.name = vp_strdup(""),
			   .uuid = vp_strdup(""),
			   .memory = vp_strdup(""),
			   .agent = vp_strdup(""),
			   .at_start = true};

	vp_vec_push(&vms->vms, vm);
	vp_vec_push(&vms->ids, id);
	vp_vec_push(&vms->taken, false);
	vp_import_vms_rename(vms, vms->vms.count - 1, name);
	return vms->vms.count - 1;
}

void vp_import_vms_rename(struct vp_import_vms *vms, size_t index, struct vp_slice name)
{
	struct vp_buffer clean = {0};

	vp_text_clean(name.bytes, name.size, &clean);
	free(vms->vms.at[index].name);
	vms->vms.at[index].name = vp_strdup(vp_buffer_text(&clean));
	vp_buffer_deinit(&clean);
}

static size_t vm_of_thread(const struct vp_import_vms *vms, uint32_t tid)
{
	for (size_t i = 0; i < vms->vms.count; i++)
		vp_vec_each (&vms->vms.at[i].vcpus, vcpu)
			if (vcpu->tid == tid)
				return i;
	return SIZE_MAX;
}

static size_t vm_of_process(const struct vp_import_vms *vms, uint32_t process)
{
	for (size_t i = 0; process && i < vms->vms.count; i++)
		if (vms->vms.at[i].pid == process)
			return i;
	return SIZE_MAX;
}

size_t vp_import_vms_claim(struct vp_import_vms *vms, uint32_t process, uint32_t tid,
			   struct vp_slice name)
{
	size_t index = vm_of_process(vms, process);

	vp_vec_each (&vms->entered, thread) {
		bool is_its =
		    thread->process && process ? thread->process == process : thread->tid == tid;
		if (!is_its || vm_of_thread(vms, thread->tid) != SIZE_MAX)
			continue;
		if (index == SIZE_MAX)
			index = vp_import_vms_add(vms, name, 0);
		vp_vm_vcpu(&vms->vms.at[index], thread->vcpu)->tid = thread->tid;
		vms->vms.at[index].pid = thread->process;
	}
	return index == SIZE_MAX ? vm_of_thread(vms, tid) : index;
}

static int by_tid(const void *a, const void *b)
{
	const struct vp_import_thread *left = a, *right = b;

	return (left->tid > right->tid) - (left->tid < right->tid);
}

static size_t add_named_by_number(struct vp_import_vms *vms, uint32_t number)
{
	VP_AUTO_FREE char *name = vp_format("vm-%" PRIu32, number);

	return vp_import_vms_add(vms, (struct vp_slice){name, strlen(name)}, 0);
}

static void add_by_processes(struct vp_import_vms *vms)
{
	vp_vec_each (&vms->entered, thread) {
		if (!thread->process || vm_of_thread(vms, thread->tid) != SIZE_MAX)
			continue;
		size_t index = vm_of_process(vms, thread->process);
		if (index == SIZE_MAX)
			index = add_named_by_number(vms, thread->process);
		vms->vms.at[index].pid = thread->process;
		vp_vm_vcpu(&vms->vms.at[index], thread->vcpu)->tid = thread->tid;
	}
}

/* A VMM creates its vCPU threads one after the other: vCPU numbers ascend with thread ids. */
void vp_import_vms_add_unknown(struct vp_import_vms *vms, vp_notices *notes)
{
	size_t index = SIZE_MAX;
	uint64_t assumed = 0;
	uint32_t last = 0;

	if (vms->entered.count)
		qsort(vms->entered.at, vms->entered.count, sizeof(*vms->entered.at), by_tid);
	add_by_processes(vms);
	vp_vec_each (&vms->entered, thread) {
		if (vm_of_thread(vms, thread->tid) != SIZE_MAX)
			continue;
		if (index == SIZE_MAX || thread->vcpu <= last) {
			index = add_named_by_number(vms, thread->tid);
			assumed++;
		}
		vp_vm_vcpu(&vms->vms.at[index], thread->vcpu)->tid = thread->tid;
		last = thread->vcpu;
	}
	if (assumed)
		vp_vec_push(notes, vp_format("the trace does not map threads to VMs: %" PRIu64
					     " VMs are guessed from the order of vCPU threads",
					     assumed));
}

size_t vp_import_vms_only(const struct vp_import_vms *vms)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < vms->vms.count; i++) {
		if (vms->taken.at[i])
			continue;
		if (found != SIZE_MAX)
			return SIZE_MAX;
		found = i;
	}
	return found;
}

/* If the pid of a VMM is unknown, the tid of its first thread is used. */
void vp_import_vms_finish(struct vp_import_vms *vms, uint64_t start)
{
	vp_vec_each (&vms->vms, vm) {
		uint32_t first = UINT32_MAX >> 8;
		vm->start = start;
		vp_vec_each (&vm->vcpus, vcpu)
			first = vcpu->tid < first ? vcpu->tid : first;
		vm->pid = vm->pid ? vm->pid : first;
	}
}
