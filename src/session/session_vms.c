/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The VMs of a session: discovery, numbers, end. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/guests/guest_watch.h"
#include "collect/programs/hypervisor.h"
#include "host/vm_scan.h"
#include "schema/memory_outcome.h"
#include "schema/vm.h"
#include "session/instrument.h"
#include "session/session_private.h"
#include "store/recording.h"

/* Time for which records may still name a VM that has ended, as a thief; ns. */
#define FORGET_AFTER 15000000000ULL

bool vp_session_is_chosen(const struct vp_session *session, const struct vp_vm *vm)
{
	return vp_vm_is_named(vm, session->options.vm_names, session->options.n_vm_names);
}

/* KVM's memory slots are listed per process: those of several VMs cannot be distinguished. */
static bool is_alone(const struct vp_session *session, const struct vp_vm *vm)
{
	vp_vec_each (&session->vms, other)
		if (other != vm && other->pid == vm->pid && !other->end && !vm->end)
			return false;
	return true;
}

static void watch_guest(struct vp_session *session, struct vp_vm *vm)
{
	if (!session->guest_watch || vp_vm_is_host(vm) || !vp_session_is_chosen(session, vm))
		return;
	if (is_alone(session, vm)) {
		vp_guest_watch_add(session->guest_watch, vm);
		return;
	}
	vp_vm_set_memory_outcome(vm, &(struct vp_memory_outcome){.status = VP_MEMORY_SHARED});
}

/* From now on, the pid is not sufficient to identify the VM. */
static void note_varying(struct vp_session *session, uint32_t pid)
{
	bool inserted;

	vp_map_insert(&session->varying, pid, 0, &inserted);
	session->vms_revision++;
}

void vp_session_take_vms(struct vp_session *session, size_t from)
{
	session->vms_revision++;
	for (size_t i = from; i < session->vms.count; i++)
		if (session->vms.at[i].nth)
			note_varying(session, session->vms.at[i].pid);
}

void vp_session_watch_vms(struct vp_session *session)
{
	vp_vec_each (&session->vms, vm)
		watch_guest(session, vm);
}

static void report_vm(struct vp_session *session, const struct vp_vm *vm, const char *what)
{
	char location[32];

	if (!session->options.quiet_vms)
		VP_NOTICE(session, "VM '%s' (%s) %s during the recording", vm->name,
			  vp_vm_location(vm, location), what);
}

/* Processes new VMs of the process, from index `from` on. */
static void take_new_vms(struct vp_session *session, size_t from)
{
	vp_session_take_vms(session, from);
	for (size_t i = from; i < session->vms.count; i++) {
		struct vp_vm *vm = &session->vms.at[i];
		watch_guest(session, vm);
		report_vm(session, vm, "started");
		session->vms_changed = true;
	}
}

/* Searches for unknown VMs of the process, at most once a second. */
static void discover(struct vp_session *session, uint32_t pid)
{
	size_t before = session->vms.count;
	bool inserted;

	if (vp_map_find(&session->no_vms, pid))
		return;
	if (session->hypervisor->scan_one(&session->vms, pid, false))
		take_new_vms(session, before);
	else
		vp_map_insert(&session->no_vms, pid, 0, &inserted);
}

struct vp_vm *vp_session_vm(struct vp_session *session, uint32_t id)
{
	struct vp_vm *vm = vp_vms_find(&session->vms, id);

	if (vm || id > VP_PID_MASK)
		return vm;
	discover(session, id);
	return vp_vms_find(&session->vms, id);
}

uint32_t vp_session_vm_id(struct vp_session *session, uint32_t pid, uint32_t tid)
{
	if (!vp_map_find(&session->varying, pid)) {
		vp_session_vm(session, pid);
		if (!vp_map_find(&session->varying, pid))
			return pid;
	}
	const struct vp_vm *vm = vp_vms_of_thread(&session->vms, pid, tid);
	if (!vm || vm->end) {
		/* After the end of a VM there may be another one. */
		discover(session, pid);
		vm = vp_vms_of_thread(&session->vms, pid, tid);
	}
	return vm ? vp_vm_id(vm) : pid;
}

static void note_end(struct vp_session *session, struct vp_vm *vm)
{
	vm->end = vp_clock_monotonic();
	session->vms_changed = true;
	note_varying(session, vm->pid);
	if (session->guest_watch)
		vp_guest_watch_end(session->guest_watch, vm);
	report_vm(session, vm, "stopped");
}

/* `closely`: also detects VMs closed by their process, and reused pids. */
static void note_ends(struct vp_session *session, bool closely)
{
	const struct vp_hypervisor *hypervisor = session->hypervisor;

	vp_vec_each (&session->vms, vm)
		if (!vm->end && (closely ? hypervisor->is_gone(vm) : hypervisor->has_exited(vm)))
			note_end(session, vm);
}

/* Corrects a guessed vCPU number: records have KVM's number of the vCPU of a thread. */
static void correct_vcpus(struct vp_vm *vm, uint32_t number, uint32_t tid)
{
	size_t kept = 0;

	vp_vec_each (&vm->vcpus, vcpu) {
		if (vcpu->is_guessed && vcpu->tid == tid && vcpu->number != number)
			free(vcpu->pcpus);
		else
			vm->vcpus.at[kept++] = *vcpu;
	}
	vm->vcpus.count = kept;
}

void vp_session_vcpu(struct vp_session *session, struct vp_vm *vm, uint32_t number, uint32_t tid)
{
	size_t before = vm->vcpus.count;

	correct_vcpus(vm, number, tid);
	struct vp_vcpu *vcpu = vp_vm_vcpu(vm, number);
	/* A different thread: the pid may have been reused by another VM. */
	if (!vm->end && vcpu->tid && vcpu->tid != tid && session->hypervisor->is_gone(vm))
		note_end(session, vm);
	if (vm->end)
		return;
	session->vms_revision += vcpu->tid != tid;
	session->vms_changed |= vcpu->tid != tid;
	vcpu->tid = tid;
	vcpu->is_guessed = false;
	if (session->info.start && vm->vcpus.count > before && before && vm->at_start)
		VP_NOTICE(session, "VM '%s' gained vCPU %u during the recording", vm->name, number);
}

bool vp_session_may_be_new_vms(struct vp_session *session)
{
	uint64_t before = session->vm_generation;

	session->vm_generation =
	    session->hypervisor->generation ? session->hypervisor->generation() : 0;
	return !session->vm_generation || session->vm_generation != before;
}

void vp_session_find_late_vms(struct vp_session *session)
{
	const struct vp_hypervisor *hypervisor = session->hypervisor;
	size_t before = session->vms.count;

	if (!hypervisor->scan_new)
		return;
	vp_vec_each (&session->vms, vm)
		hypervisor->read_vcpus(vm);
	hypervisor->scan_new(&session->vms, true);
	vp_session_take_vms(session, before);
	for (size_t i = before; i < session->vms.count; i++)
		watch_guest(session, &session->vms.at[i]);
	session->vms_changed = true;
}

/* A process may open another VM. A VM that does not run has no events that would show it. */
static void find_more_vms(struct vp_session *session)
{
	size_t before = session->vms.count;

	if (!vp_session_may_be_new_vms(session))
		return;
	for (size_t i = 0; i < before; i++)
		if (!session->vms.at[i].end)
			session->hypervisor->scan_one(&session->vms, session->vms.at[i].pid, false);
	if (session->hypervisor->scan_new)
		session->hypervisor->scan_new(&session->vms, false);
	take_new_vms(session, before);
}

void vp_session_check_vms(struct vp_session *session, bool closely)
{
	note_ends(session, closely);
	if (closely && !session->info.end)
		find_more_vms(session);
}

/* In a recording on disk, maps of ended VMs are written at once, not kept in memory until the
 * end. */
static void put_away_map(struct vp_session *session, struct vp_vm *vm)
{
	VP_AUTO_FREE char *path =
	    vp_recording_maps_path(session->options.directory, &session->vms, vm);
	struct vp_error *error =
	    vp_guest_watch_put_away(session->guest_watch, vm, path, &vm->is_put_away);

	if (error)
		VP_NOTICE(session, "VM '%s': %s; trying again at the end", vm->name,
			  vp_error_message(error));
	vp_error_free(error);
}

void vp_session_put_away_vms(struct vp_session *session)
{
	if (!session->guest_watch)
		return;
	vp_vec_each (&session->vms, vm)
		if (vm->end && !vm->is_put_away)
			put_away_map(session, vm);
}

static void forget_vm(struct vp_session *session, struct vp_vm *vm)
{
	vp_vec_each (&session->instruments, instrument)
		if ((*instrument)->ops->forget_vm)
			(*instrument)->ops->forget_vm(*instrument, vp_vm_id(vm));
	if (session->guest_watch)
		vp_guest_watch_drop(session->guest_watch, vm);
	vp_vm_deinit(vm);
}

/* Keeps the order, because names of parts of recordings depend on it. */
void vp_session_forget_vms(struct vp_session *session, uint64_t before)
{
	size_t kept = 0;

	for (size_t i = 0; i < session->vms.count; i++) {
		struct vp_vm *vm = &session->vms.at[i];
		if (vm->end && vm->end + FORGET_AFTER < before)
			forget_vm(session, vm);
		else
			session->vms.at[kept++] = *vm;
	}
	session->vms_forgotten += session->vms.count - kept;
	session->vms_revision++;
	session->vms.count = kept;
}
