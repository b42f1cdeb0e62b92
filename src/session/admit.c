/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/admit.h"

#include <stddef.h>

#include "base/vec.h"
#include "schema/interval.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "schema/trace_event.h"
#include "schema/trace_records.h"
#include "schema/vm.h"
#include "session/instrument.h"
#include "session/session_private.h"

/* A record of any type that has a VM. */
union admitted {
	union vp_any_record any;
	struct vp_trace_kvm_entry entry;
	struct vp_trace_kvm_exit exit;
	struct vp_trace_kvm_inj_virq injection;
	struct vp_trace_guest_switch change;
};

static bool is_unselected(struct vp_session *session, uint32_t number)
{
	if (!session->options.n_vm_names)
		return false;
	const struct vp_vm *vm = vp_session_vm(session, number);
	return !vm || !vp_session_is_chosen(session, vm);
}

/* Sets the number of the VM in which thread `tid` of VMM process `pid` is a vCPU; 0: any thread. */
static uint32_t admit_number(struct vp_session *session, struct vp_admission *last, uint32_t pid,
			     uint32_t tid)
{
	if (last->known && last->revision == session->vms_revision && last->pid == pid &&
	    last->tid == tid)
		return last->vm;
	uint32_t number = vp_session_vm_id(session, pid, tid);
	/* A VM that was not found may be found at the next record. */
	*last = (struct vp_admission){.known = vp_session_vm(session, number) != NULL,
				      .revision = session->vms_revision,
				      .pid = pid,
				      .tid = tid,
				      .vm = number,
				      .noted = VP_VCPU_UNKNOWN,
				      .is_unselected = is_unselected(session, number)};
	return number;
}

/* The same for a record that names the vCPU: its thread is `tid` from now on. */
static uint32_t admit_vcpu(struct vp_session *session, struct vp_admission *last, uint32_t pid,
			   uint32_t tid, uint32_t vcpu)
{
	uint32_t number = admit_number(session, last, pid, tid);
	struct vp_vm *vm =
	    vcpu != VP_VCPU_UNKNOWN && vcpu != last->noted ? vp_session_vm(session, number) : NULL;

	if (!vm)
		return number;
	vp_session_vcpu(session, vm, vcpu, tid);
	/* Another thread may be a vCPU of another VM. */
	number = admit_number(session, last, pid, tid);
	last->noted = vcpu;
	return number;
}

/* The vCPU's number from its thread's name, if the kernel does not report it. */
static uint16_t number_by_thread(struct vp_session *session, uint32_t number, uint32_t tid)
{
	const struct vp_vm *vm = vp_session_vm(session, number);

	if (vm)
		vp_vec_each (&vm->vcpus, vcpu)
			if (vcpu->tid == tid)
				return (uint16_t)vcpu->number;
	return VP_VCPU_UNKNOWN;
}

/* Any sample of a vCPU: the types have the same first fields. */
static void admit_sample(struct vp_session *session, struct vp_admission *last,
			 struct vp_vcpu_sample *sample)
{
	sample->vm = admit_vcpu(session, last, sample->vm, sample->tid, sample->vcpu);
	if (sample->vcpu == VP_VCPU_UNKNOWN)
		sample->vcpu = number_by_thread(session, sample->vm, sample->tid);
}

static void hide_sample(struct vp_guest_sample *sample)
{
	sample->ip = sample->as_root = 0;
	sample->guest_pid = sample->guest_tid = 0;
	sample->flags = (sample->flags & ~(VP_HAS_AS_ROOT | VP_BY_MEMORY)) | VP_HIDDEN;
}

static void hide_regs(struct vp_guest_regs *regs)
{
	regs->ip = regs->sp = regs->bp = regs->as_root = 0;
	regs->guest_pid = regs->guest_tid = 0;
	regs->flags = VP_HIDDEN;
}

/* All types of exit_site start with the fields of the previous type: detail, address, waits. */
static void hide_site(struct vp_exit_site_address *site)
{
	site->ip = site->as_root = site->flags = 0;
	if (site->id != VP_ID_exit_site)
		site->detail = site->detail_kind = 0;
	if (site->id == VP_ID_exit_site_address || site->id == VP_ID_exit_site_waits)
		site->address = VP_NO_ADDRESS;
}

static void hide_exit(struct vp_trace_kvm_exit *exit)
{
	exit->guest_rip = exit->detail = exit->detail_kind = 0;
}

/* Events of the trace. */
static void admit_event(struct vp_session *session, struct vp_admission *last,
			union admitted *record)
{
	switch (record->any.header.id) {
	case VP_TRACE_ID_kvm_entry:
		record->entry.vm = admit_vcpu(session, last, record->entry.vm, record->entry.tid,
					      record->entry.vcpu);
		break;
	case VP_TRACE_ID_kvm_exit:
		record->exit.vm = admit_number(session, last, record->exit.vm, record->exit.tid);
		if (last->is_unselected)
			hide_exit(&record->exit);
		break;
	case VP_TRACE_ID_kvm_inj_virq:
		record->injection.vm =
		    admit_number(session, last, record->injection.vm, record->injection.tid);
		break;
	case VP_TRACE_ID_guest_switch:
		record->change.vm =
		    admit_number(session, last, record->change.vm, record->change.tid);
		break;
	}
}

/* The name of a guest thread, which is not the vCPU thread. */
static bool admit_task(struct vp_session *session, struct vp_guest_task *task)
{
	struct vp_admission of_process = {0};

	task->vm = admit_number(session, &of_process, task->vm, 0);
	return !of_process.is_unselected;
}

bool vp_admit(struct vp_session *session, struct vp_admission *last, void *record)
{
	union admitted *one = record;
	union vp_any_record *any = record;

	switch (any->header.id) {
	case VP_ID_guest_task:
		return admit_task(session, &any->guest_task);
	case VP_ID_guest_regs:
		any->guest_regs.vm =
		    admit_number(session, last, any->guest_regs.vm, any->guest_regs.tid);
		if (last->is_unselected)
			hide_regs(&any->guest_regs);
		return true;
	case VP_ID_guest_sample:
		admit_sample(session, last, &any->vcpu_sample);
		if (last->is_unselected)
			hide_sample(&any->guest_sample);
		return true;
	case VP_ID_vcpu_sample:
	case VP_ID_vcpu_in:
	case VP_ID_vcpu_out:
		admit_sample(session, last, &any->vcpu_sample);
		return true;
	case VP_ID_vcpu_span:
		any->vcpu_span.vm =
		    admit_number(session, last, any->vcpu_span.vm, any->vcpu_span.tid);
		return true;
	case VP_ID_interval:
		any->interval.owner = admit_vcpu(session, last, any->interval.owner,
						 any->interval.tid, any->interval.vcpu);
		return true;
	case VP_ID_exit_site: /* these four: the VM's number was set by the accounting */
	case VP_ID_exit_site_detail:
	case VP_ID_exit_site_address:
	case VP_ID_exit_site_waits:
		if (is_unselected(session, any->exit_site.vm))
			hide_site(&any->exit_site_address);
		return true;
	}
	admit_event(session, last, one);
	return true;
}
