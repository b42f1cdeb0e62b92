/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/guest_samples.h"

#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/map.h"
#include "collect/guests/guest_state.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "xen/states.h"

struct vp_error *vp_xen_reported_init(struct vp_xen_reported *reported,
				      const struct vp_guest_state *state,
				      const struct vp_guest_finding *finding)
{
	uint16_t domain = (uint16_t)(state->pid - 1);

	vp_xen_reported_forget(reported);
	VP_TRY(vp_xen_kernel_init(finding, &reported->kernel));
	VP_TRY(vp_xen_foreign_open(domain, &reported->fd));
	reported->foreign = vp_xen_foreign_new(reported->fd, domain);
	vp_vec_each (&finding->cpus, cpu)
		vp_vec_push(&reported->cpus, *cpu);
	reported->known = true;
	return !state->detail || vp_xen_foreign_is_pv(reported->foreign, state->detail)
		   ? NULL
		   : vp_error_new("the guest does not publish the frames of its memory");
}

void vp_xen_reported_forget(struct vp_xen_reported *reported)
{
	if (!reported->known)
		return;
	vp_xen_foreign_free(reported->foreign);
	close(reported->fd);
	vp_vec_deinit(&reported->cpus);
	reported->known = false;
}

static bool read_foreign(void *context, uint64_t address, void *bytes, size_t size)
{
	return vp_xen_foreign_read(context, address, bytes, size);
}

static bool guest_samples_find_task(const struct vp_xen_reported *reported,
				    const struct vp_xen_raw_sample *raw, struct vp_xen_task *ret)
{
	const struct vp_xen_memory memory = {read_foreign, reported->foreign};

	/* By the guest's CPU numbers: APIC ids, as used with KVM, differ from Xen's vCPU
	 * numbers. */
	vp_vec_each (&reported->cpus, cpu)
		if (cpu->cpu == raw->vcpu)
			return vp_xen_task_read(&reported->kernel, &memory, cpu->current_gpa,
						raw->context.root, raw->context.user, ret);
	return false;
}

/* Whether the task's name must be recorded before its sample. */
static bool is_new(const struct vp_xen_task *task, bool user, struct vp_xen_last *last)
{
	uint64_t words[2];

	memcpy(words, task->comm, sizeof(words));
	const struct vp_xen_last now = {
	    vp_hash64(words[0] ^
		      vp_hash64(words[1] ^ vp_hash64((uint64_t)task->pid << 32 | task->tid))) |
		1,
	    user};
	bool changed = now.name != last->name || now.user != last->user;
	*last = now;
	return changed;
}

void vp_xen_sample_make(struct vp_xen_reported *reported, const struct vp_xen_raw_sample *raw,
			struct vp_xen_last *last, union vp_any_record *task,
			union vp_any_record *sample)
{
	const struct vp_xen_context *context = &raw->context;
	uint32_t vm = vp_xen_vm_number(raw->domain);
	bool has_root = context->root != UINT64_MAX;
	struct vp_xen_task found;

	task->header.id = 0;
	*sample = (union vp_any_record){
	    .guest_sample = {.time = raw->time,
			     .id = VP_ID_guest_sample,
			     .flags = VP_HAS_CPL | (has_root ? VP_HAS_AS_ROOT : 0),
			     .vm = vm,
			     .tid = vp_xen_tid(raw->domain, raw->vcpu),
			     .mode = context->user ? VP_MODE_GUEST_USER : VP_MODE_GUEST_KERNEL,
			     .vcpu = (uint16_t)raw->vcpu,
			     .ip = context->ip,
			     .as_root = has_root ? context->root : 0,
			     .cpl = context->user ? 3 : 0}};
	if (!reported->known)
		return;
	if (!guest_samples_find_task(reported, raw, &found)) {
		reported->counts.unnamed += raw->periods;
		return;
	}
	reported->counts.named += raw->periods;
	sample->guest_sample.flags |= VP_BY_MEMORY;
	sample->guest_sample.guest_pid = found.pid;
	sample->guest_sample.guest_tid = found.tid;
	if (!is_new(&found, context->user, last))
		return;
	*task = (union vp_any_record){.guest_task = {.time = raw->time,
						     .id = VP_ID_guest_task,
						     .flags = context->user ? VP_IN_USER : 0,
						     .vm = vm,
						     .guest_pid = found.pid,
						     .guest_tid = found.tid,
						     .task = found.address}};
	memcpy(task->guest_task.comm, found.comm, sizeof(found.comm));
}
