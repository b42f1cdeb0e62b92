/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "timeline/guests.h"

#include "base/alloc.h"
#include "base/error.h"
#include "schema/exit_reason.h"
#include "store/packet.h"

static uint32_t vm_add(struct vp_guests *guests, uint32_t vm_id)
{
	bool inserted;
	uint32_t *index =
	    vp_map_insert(&guests->index_of_vm, vm_id, (uint32_t)guests->vms->count, &inserted);

	if (inserted) {
		struct vp_vm vm = vp_vm_of_id(vm_id);
		vm.name = vp_format("pid-%u", vm.pid);
		vm.uuid = vp_strdup("");
		vm.agent = vp_strdup("");
		vm.memory = vp_strdup("");
		vp_vec_push(guests->vms, vm);
		guests->generation++;
	}
	return *index;
}

/* Index of the vCPU with that VM and number; sets its thread to `tid`. */
static uint32_t vcpu_add(struct vp_guests *guests, uint32_t vm, uint32_t number, uint32_t tid)
{
	bool inserted;
	uint32_t index = *vp_map_insert(&guests->vcpu_of_number, (uint64_t)vm << 32 | number,
					(uint32_t)guests->vcpus.count, &inserted);

	if (inserted)
		vp_vec_push(&guests->vcpus,
			    ((struct vp_vcpu_state){.vm = vm, .number = number, .home = VP_NONE}));
	guests->vcpus.at[index].tid = tid;
	*vp_map_insert(&guests->vcpu_of_tid, tid, index, &inserted) = index;
	guests->generation++;
	return index;
}

void vp_guests_init(struct vp_guests *guests, vp_vms *vms, size_t n_streams)
{
	bool inserted;

	*guests = (struct vp_guests){.vms = vms, .generation = 1};
	for (size_t i = 0; i < n_streams; i++)
		vp_vec_push(&guests->home_vcpus, (struct vp_home_vcpus){0});
	for (uint32_t i = 0; i < vms->count; i++) {
		*vp_map_insert(&guests->index_of_vm, vp_vm_id(&vms->at[i]), i, &inserted) = i;
		vp_vec_each (&vms->at[i].vcpus, vcpu)
			vcpu_add(guests, i, vcpu->number, vcpu->tid);
	}
}

void vp_guests_deinit(struct vp_guests *guests)
{
	vp_vec_each (&guests->home_vcpus, here)
		vp_vec_deinit(&here->vcpus);
	vp_vec_deinit(&guests->home_vcpus);
	vp_vec_deinit(&guests->vcpus);
	vp_map_deinit(&guests->index_of_vm);
	vp_map_deinit(&guests->vcpu_of_tid);
	vp_map_deinit(&guests->vcpu_of_number);
}

uint32_t vp_guests_vm(const struct vp_guests *guests, uint32_t vm_id)
{
	const uint32_t *vm = vp_map_find(&guests->index_of_vm, vm_id);

	return vm ? *vm : VP_NONE;
}

uint32_t vp_guests_vcpu(const struct vp_guests *guests, uint32_t owner, uint32_t tid)
{
	const uint32_t *found = vp_map_find(&guests->vcpu_of_tid, tid);

	if (!found)
		return VP_NONE;
	/* Thread ids are reused: compare the VM's process, or its number if known. */
	const struct vp_vm *vm = &guests->vms->at[guests->vcpus.at[*found].vm];
	return vm->pid == owner || vp_vm_id(vm) == owner ? *found : VP_NONE;
}

uint32_t vp_guests_vcpu_add(struct vp_guests *guests, uint32_t vm_id, uint32_t tid, uint32_t number)
{
	uint32_t known = vp_guests_vcpu(guests, vm_id & VP_PID_MASK, tid);
	bool same =
	    known != VP_NONE && vp_vm_id(&guests->vms->at[guests->vcpus.at[known].vm]) == vm_id;

	return same ? known : vcpu_add(guests, vm_add(guests, vm_id), number, tid);
}

void vp_guests_move_away(struct vp_guests *guests, uint32_t vcpu, uint32_t home)
{
	struct vp_vcpu_state *state = &guests->vcpus.at[vcpu];

	if (state->home != VP_NONE) {
		struct vp_home_vcpus *old = &guests->home_vcpus.at[state->home];
		for (size_t i = 0; i < old->vcpus.count; i++)
			if (old->vcpus.at[i] == vcpu) {
				old->vcpus.at[i] = old->vcpus.at[--old->vcpus.count];
				break;
			}
	}
	if (home != VP_NONE)
		vp_vec_push(&guests->home_vcpus.at[home].vcpus, vcpu);
	state->home = home;
	guests->moves++;
}

static void discover_in(struct vp_stream_reader *stream, struct vp_guests *guests)
{
	const struct vp_record_header *record;
	uint32_t last = VP_NONE;

	while ((record = vp_stream_next(stream))) {
		/* The VM is the first field after the header of every record of a vCPU. */
		uint32_t vm = ((const struct vp_vcpu_in *)record)->vm;
		bool of_vcpu = record->id == VP_ID_guest_sample ||
			       record->id == VP_ID_vcpu_sample || record->id == VP_ID_vcpu_in ||
			       record->id == VP_ID_vcpu_out;
		if (of_vcpu && vm != last) {
			vm_add(guests, vm);
			last = vm;
		}
	}
}

struct vp_error *vp_guests_discover(const char *trace, vp_vms *vms)
{
	vp_stream_readers streams = {0};
	struct vp_guests guests;

	VP_TRY(vp_trace_open(trace, VP_STREAMS_SAMPLES, &streams));
	vp_guests_init(&guests, vms, 0);
	vp_vec_each (&streams, stream)
		discover_in(*stream, &guests);
	vp_guests_deinit(&guests);
	vp_trace_close(&streams);
	return NULL;
}

bool vp_vcpu_is_idle(const struct vp_vcpu_state *vcpu)
{
	if (vcpu->exit.known)
		return vp_exit_reason_is_halt(vcpu->exit.vendor, vcpu->exit.reason);
	return vcpu->blocked;
}
