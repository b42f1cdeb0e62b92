/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/guests/guest_state.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/io.h"
#include "bpf/guest_state_abi.h"
#include "guest_state.skel.h"
#include "host/device_memory.h"
#include "host/host.h"
#include "host/kernel_btf.h"
#include "maps/proc.h"
#include "schema/records.h"

struct vp_guest_lister {
	struct guest_state_bpf *programs;
	struct bpf_link *link;
};

enum { READ_ONLY = 2 }; /* KVM_MEM_READONLY: firmware */

static int guest_state_load(struct vp_guest_lister *lister)
{
	struct vp_btf_open_opts fitting;
	size_t size;
	const void *elf = guest_state_bpf__elf_bytes(&size);
	int result = -ENOENT;

	vp_btf_open_opts_init(&fitting, NULL, elf, size);
	lister->programs = guest_state_bpf__open_opts(&fitting.options);
	if (lister->programs) {
		lister->programs->rodata->vendor = vp_host_vendor();
		result = guest_state_bpf__load(lister->programs);
	}
	vp_btf_open_opts_deinit(&fitting);
	return result;
}

struct vp_error *vp_guest_lister_new(struct vp_guest_lister **ret)
{
	struct vp_guest_lister *lister = vp_alloc(sizeof(*lister));
	int result = guest_state_load(lister);

	if (!result) {
		lister->link = bpf_program__attach_iter(lister->programs->progs.list_guests, NULL);
		result = lister->link ? 0 : -errno;
	}
	if (!result) {
		*ret = lister;
		return NULL;
	}
	vp_guest_lister_free(lister);
	return vp_error_errno(-result, "cannot load the program that lists KVM's memory slots");
}

void vp_guest_lister_free(struct vp_guest_lister *lister)
{
	if (!lister)
		return;
	bpf_link__destroy(lister->link);
	guest_state_bpf__destroy(lister->programs);
	free(lister);
}

static struct vp_guest_state *guest_state_state_of(vp_guest_states *states, uint32_t pid)
{
	vp_vec_each (states, state)
		if (state->pid == pid)
			return state;
	struct vp_guest_state *state = vp_vec_push_slot(states);
	*state = (struct vp_guest_state){.pid = pid};
	state->memory.arch = vp_host_vendor() == VP_VENDOR_ARM ? VP_GUEST_ARM64 : VP_GUEST_X86_64;
	return state;
}

static void take_item(vp_guest_states *states, const struct vp_guest_item *item)
{
	struct vp_guest_state *state = guest_state_state_of(states, item->pid);

	if (item->has_counter)
		vp_vec_push(&state->counters,
			    ((struct vp_guest_counter){item->vcpu, item->counter_offset}));
	vp_vec_push(&state->vcpus,
		    ((struct vp_guest_registers){.vcpu = item->vcpu,
						 .cr3 = item->cr3,
						 .cr4 = item->cr4,
						 .lstar = item->lstar,
						 .idt = item->idt,
						 .gs_base = item->gs_base,
						 .kernel_gs_base = item->kernel_gs_base,
						 .ttbr1 = item->ttbr1,
						 .tcr = item->tcr,
						 .vbar = item->vbar,
						 .tpidr1 = item->tpidr1}));
}

/* Only slots of RAM: firmware is read-only. */
static struct vp_error *take_slots(const struct vp_guest_lister *lister, uint32_t pid,
				   vp_guest_states *states)
{
	uint32_t count = lister->programs->bss->n_found;
	vp_device_ranges devices = vp_device_memory_of(pid);
	struct vp_error *error = NULL;

	if (count > VP_LISTED_SLOTS)
		error = vp_error_new("the VM of process %u has more than %d memory slots", pid,
				     VP_LISTED_SLOTS);
	for (uint32_t i = 0; i < count && !error; i++) {
		const struct vp_guest_listed_slot *slot = &lister->programs->bss->found[i];
		struct vp_guest_state *state = guest_state_state_of(states, slot->pid);
		if (slot->flags & READ_ONLY ||
		    vp_device_memory_has(&devices, slot->hva, slot->size))
			continue;
		if (state->memory.slots.count == VP_GUEST_SLOTS_MAX)
			error = vp_error_new("the VM of process %u has more than %d memory slots "
					     "of RAM",
					     pid, VP_GUEST_SLOTS_MAX);
		else
			vp_guest_memory_add(&state->memory, slot->gpa, slot->size, slot->hva);
	}
	vp_vec_deinit(&devices);
	return error;
}

static const char *const protections[VP_GUEST_PROTECTIONS] = {
    [VP_PROTECTED_SEV] = "AMD SEV",
    [VP_PROTECTED_SEV_ES] = "AMD SEV-ES",
    [VP_PROTECTED_SNP] = "AMD SEV-SNP",
    [VP_PROTECTED_TDX] = "Intel TDX",
    [VP_PROTECTED_PKVM] = "pKVM",
    [VP_PROTECTED_BY_KVM] = "KVM's protected memory",
    [VP_PROTECTED_REGISTERS] = "its registers are encrypted, too",
};

/* Callers that ignore this have no slots to read or write. */
static void take_protection(const struct vp_guest_lister *lister, struct vp_guest_state *state)
{
	uint32_t protection = lister->programs->bss->protection;

	state->generation = lister->programs->bss->generation;
	if (!protection)
		return;
	state->protected_by =
	    protections[protection < VP_GUEST_PROTECTIONS ? protection : VP_PROTECTED_REGISTERS];
	vp_guest_memory_deinit(&state->memory);
}

static struct vp_error *guest_state_list(struct vp_guest_lister *lister, uint32_t pid,
					 vp_guest_states *states)
{
	uint64_t started = vp_proc_start_time(pid);

	lister->programs->bss->only_pid = pid;
	lister->programs->bss->n_found = 0;
	lister->programs->bss->generation = 0;
	lister->programs->bss->protection = VP_NOT_PROTECTED;
	VP_AUTO_CLOSE int fd = bpf_iter_create(bpf_link__fd(lister->link));
	struct vp_guest_item items[64];
	ssize_t got;

	if (fd < 0)
		return vp_error_errno(-fd, "cannot list KVM's memory slots");
	while ((got = vp_read(fd, items, sizeof(items))) > 0 || (got < 0 && errno == EAGAIN))
		for (ssize_t i = 0; i < got / (ssize_t)sizeof(*items); i++)
			take_item(states, &items[i]);
	if (got)
		return vp_error_errno(errno, "cannot list KVM's memory slots");
	vp_vec_each (states, state)
		state->started = state->pid == pid ? started : state->started;
	return NULL;
}

struct vp_error *vp_guest_lister_read_one(struct vp_guest_lister *lister, uint32_t pid,
					  vp_guest_states *states)
{
	uint64_t started = vp_proc_start_time(pid);

	VP_TRY(guest_state_list(lister, pid, states));
	VP_TRY(take_slots(lister, pid, states));
	if (states->count) {
		take_protection(lister, &states->at[0]);
		return NULL;
	}
	if (!started || vp_proc_start_time(pid) != started)
		return vp_error_new("process %u ended before the VM's memory could be read", pid);
	return vp_error_new("this host's kernel does not expose KVM's memory slots");
}

struct vp_error *vp_guest_lister_read_counters(struct vp_guest_lister *lister, struct vp_vm *vm)
{
	vp_guest_states states = {0};
	struct vp_error *error = guest_state_list(lister, vm->pid, &states);

	if (!error && states.count)
		vp_vec_each (&states.at[0].counters, counter) {
			struct vp_vcpu *vcpu = vp_vm_vcpu(vm, counter->vcpu);
			vcpu->tsc_offset = -(int64_t)counter->offset;
			vcpu->has_tsc = true;
		}
	vp_guest_states_deinit(&states);
	return error;
}

struct vp_error *vp_guest_state_expect_same(const struct vp_guest_state *state)
{
	return state->started && vp_proc_start_time(state->pid) == state->started
		   ? NULL
		   : vp_error_new("process %u no longer is the VM's process: the pid was reused",
				  state->pid);
}

struct vp_error *vp_guest_state_expect_open(const struct vp_guest_state *state)
{
	return state->protected_by ? vp_error_new("memory encrypted (%s): names of the guest's "
						  "processes and kernel functions are missing",
						  state->protected_by)
				   : NULL;
}

uint64_t vp_guest_state_hva(const struct vp_guest_state *state, uint64_t gpa)
{
	return vp_guest_memory_hva(&state->memory, gpa, sizeof(uint64_t));
}

void vp_guest_state_deinit(struct vp_guest_state *state)
{
	vp_guest_memory_deinit(&state->memory);
	vp_vec_deinit(&state->vcpus);
	vp_vec_deinit(&state->counters);
}

void vp_guest_states_deinit(vp_guest_states *states)
{
	vp_vec_each (states, state)
		vp_guest_state_deinit(state);
	vp_vec_deinit(states);
}
