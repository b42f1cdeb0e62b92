/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/identity.h"

#include <errno.h>

#include <bpf/bpf.h>

#include "bpf/guest_current.h"

static uint64_t key_of(uint32_t pid, uint32_t vcpu)
{
	return (uint64_t)pid << 32 | vcpu;
}

static struct vp_error *fill_vm(const struct vp_guest_state *state,
				const struct vp_guest_finding *finding, struct vp_identity_vm *vm)
{
	*vm = (struct vp_identity_vm){.direct_map = finding->direct_map,
				      .image_va = finding->text,
				      .image_size = finding->size,
				      .image_gpa = finding->gpa,
				      .levels = finding->levels};
	if (state->memory.slots.count > VP_IDENTITY_SLOTS)
		return vp_error_new(
		    "the VM has %zu memory slots: only the first %d are used at a sample",
		    state->memory.slots.count, VP_IDENTITY_SLOTS);
	vp_vec_each (&state->memory.slots, slot)
		vm->slots[vm->n_slots++] =
		    (struct vp_identity_slot){slot->gpa, slot->size, slot->hva};
	return NULL;
}

void vp_identity_deinit(struct vp_identity *identity)
{
	vp_vec_deinit(&identity->free);
}

static bool find_place(struct vp_identity *identity, uint64_t key, uint32_t *ret)
{
	if (!bpf_map_lookup_elem(identity->places, &key, ret))
		return true;
	if (identity->free.count)
		*ret = identity->free.at[identity->free.count - 1];
	else if (identity->used < VP_IDENTITY_VCPUS)
		*ret = identity->used;
	else
		return false;
	if (bpf_map_update_elem(identity->places, &key, ret, BPF_NOEXIST))
		return false;
	if (identity->free.count)
		identity->free.count--;
	else
		identity->used++;
	return true;
}

static struct vp_error *no_room(uint32_t pid, uint32_t vcpu)
{
	return vp_error_new("no table entry left for vCPU %u of process %u", vcpu, pid);
}

struct vp_error *vp_identity_place(struct vp_identity *identity, uint32_t pid, uint32_t vcpu,
				   uint32_t *ret)
{
	return find_place(identity, key_of(pid, vcpu), ret) ? NULL : no_room(pid, vcpu);
}

static struct vp_error *put_vcpus(struct vp_identity *identity, uint32_t number,
				  const struct vp_guest_state *state,
				  const struct vp_guest_finding *finding)
{
	vp_vec_each (&finding->cpus, cpu) {
		uint64_t key = key_of(state->pid, cpu->vcpu);
		struct vp_identity_vcpu vcpu = {.key = key,
						.current_hva =
						    vp_guest_state_hva(state, cpu->current_gpa),
						.vm = number,
						.at_ids = finding->at_tid,
						.at_comm = finding->at_comm,
						.at_stack = finding->at_stack,
						.at_mm = finding->at_mm,
						.at_pgd = finding->at_pgd};
		uint32_t place;
		if (vcpu.current_hva &&
		    (!find_place(identity, key, &place) ||
		     bpf_map_update_elem(identity->vcpus, &place, &vcpu, BPF_ANY)))
			return no_room(state->pid, cpu->vcpu);
	}
	return NULL;
}

struct vp_error *vp_identity_tell_memory(struct vp_identity *identity, uint32_t number,
					 const struct vp_guest_state *state,
					 const struct vp_guest_finding *finding)
{
	struct vp_identity_vm vm;

	VP_TRY(fill_vm(state, finding, &vm));
	return bpf_map_update_elem(identity->vms, &number, &vm, BPF_ANY)
		   ? vp_error_errno(errno, "no table entry left for another VM")
		   : NULL;
}

struct vp_error *vp_identity_tell(struct vp_identity *identity, uint32_t number,
				  const struct vp_guest_state *state,
				  const struct vp_guest_finding *finding)
{
	enum { LARGEST_STRUCT = 1 << 16 };

	if (finding->at_tgid != finding->at_tid + 4 || finding->at_tid > LARGEST_STRUCT ||
	    finding->at_comm > LARGEST_STRUCT || finding->at_stack > LARGEST_STRUCT ||
	    finding->at_mm > LARGEST_STRUCT || finding->at_pgd > LARGEST_STRUCT)
		return vp_error_new("unknown layout of the guest's task_struct");
	VP_TRY(vp_identity_tell_memory(identity, number, state, finding));
	return put_vcpus(identity, number, state, finding);
}

/* Its place is another's from now on. */
static void free_place(struct vp_identity *identity, uint64_t key)
{
	static const struct vp_identity_vcpu nobody;
	uint32_t place;

	if (bpf_map_lookup_elem(identity->places, &key, &place))
		return;
	bpf_map_delete_elem(identity->places, &key);
	bpf_map_update_elem(identity->vcpus, &place, &nobody, BPF_ANY);
	vp_vec_push(&identity->free, place);
}

void vp_identity_forget(struct vp_identity *identity, uint32_t pid)
{
	uint64_t key, next;
	bool more = !bpf_map_get_next_key(identity->places, NULL, &key);

	while (more) {
		more = !bpf_map_get_next_key(identity->places, &key, &next);
		if (key >> 32 == pid)
			free_place(identity, key);
		key = next;
	}
}

struct vp_identity_counts vp_identity_counts(const struct vp_identity *identity, uint32_t pid,
					     const struct vp_guest_finding *finding)
{
	struct vp_identity_counts counts = {0};

	vp_vec_each (&finding->cpus, cpu) {
		uint64_t key = key_of(pid, cpu->vcpu);
		struct vp_identity_vcpu vcpu;
		uint32_t place;
		if (bpf_map_lookup_elem(identity->places, &key, &place) ||
		    bpf_map_lookup_elem(identity->vcpus, &place, &vcpu))
			continue;
		counts.good += vcpu.good;
		counts.failed += vcpu.failed;
		counts.nowhere += vcpu.nowhere;
	}
	return counts;
}
