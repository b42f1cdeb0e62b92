/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells the sampling program how a guest's current task is read (bpf/guest_current.bpf.h). */
#include "collect/sampler_private.h"

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

/* The place that the vCPU has, or a new one; false: there is no room. */
static bool find_place(struct vp_sampler *sampler, uint64_t key, uint32_t *ret)
{
	int places = bpf_map__fd(sampler->programs->maps.identity_places);

	if (!bpf_map_lookup_elem(places, &key, ret))
		return true;
	if (sampler->free_identities.count)
		*ret = sampler->free_identities.at[sampler->free_identities.count - 1];
	else if (sampler->used_identities < VP_IDENTITY_VCPUS)
		*ret = sampler->used_identities;
	else
		return false;
	if (bpf_map_update_elem(places, &key, ret, BPF_NOEXIST))
		return false;
	if (sampler->free_identities.count)
		sampler->free_identities.count--;
	else
		sampler->used_identities++;
	return true;
}

static struct vp_error *put_vcpus(struct vp_sampler *sampler, uint32_t number,
				  const struct vp_guest_state *state,
				  const struct vp_guest_finding *finding)
{
	int fd = bpf_map__fd(sampler->programs->maps.identity_vcpus);

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
		if (vcpu.current_hva && (!find_place(sampler, key, &place) ||
					 bpf_map_update_elem(fd, &place, &vcpu, BPF_ANY)))
			return vp_error_new("no table entry left for vCPU %u of process %u",
					    cpu->vcpu, state->pid);
	}
	return NULL;
}

struct vp_error *vp_sampler_identify_memory(struct vp_sampler *sampler, uint32_t number,
					    const struct vp_guest_state *state,
					    const struct vp_guest_finding *finding)
{
	struct vp_identity_vm vm;

	VP_TRY(fill_vm(state, finding, &vm));
	return bpf_map_update_elem(bpf_map__fd(sampler->programs->maps.identity_vms), &number, &vm,
				   BPF_ANY)
		   ? vp_error_errno(errno, "no table entry left for another VM")
		   : NULL;
}

struct vp_error *vp_sampler_identify(struct vp_sampler *sampler, uint32_t number,
				     const struct vp_guest_state *state,
				     const struct vp_guest_finding *finding)
{
	enum { LARGEST_STRUCT = 1 << 16 };

	if (finding->at_tgid != finding->at_tid + 4 || finding->at_tid > LARGEST_STRUCT ||
	    finding->at_comm > LARGEST_STRUCT || finding->at_stack > LARGEST_STRUCT ||
	    finding->at_mm > LARGEST_STRUCT || finding->at_pgd > LARGEST_STRUCT)
		return vp_error_new("unknown layout of the guest's task_struct");
	VP_TRY(vp_sampler_identify_memory(sampler, number, state, finding));
	return put_vcpus(sampler, number, state, finding);
}

/* Its place is another's from now on. */
static void free_place(struct vp_sampler *sampler, uint64_t key)
{
	static const struct vp_identity_vcpu nobody;
	int places = bpf_map__fd(sampler->programs->maps.identity_places);
	uint32_t place;

	if (bpf_map_lookup_elem(places, &key, &place))
		return;
	bpf_map_delete_elem(places, &key);
	bpf_map_update_elem(bpf_map__fd(sampler->programs->maps.identity_vcpus), &place, &nobody,
			    BPF_ANY);
	vp_vec_push(&sampler->free_identities, place);
}

void vp_sampler_forget(struct vp_sampler *sampler, uint32_t pid)
{
	int fd = bpf_map__fd(sampler->programs->maps.identity_places);
	uint64_t key, next;
	bool more = !bpf_map_get_next_key(fd, NULL, &key);

	while (more) {
		more = !bpf_map_get_next_key(fd, &key, &next);
		if (key >> 32 == pid)
			free_place(sampler, key);
		key = next;
	}
}

struct vp_sampler_identity_counts vp_sampler_identity_counts(const struct vp_sampler *sampler,
							     uint32_t pid,
							     const struct vp_guest_finding *finding)
{
	int places = bpf_map__fd(sampler->programs->maps.identity_places);
	int vcpus = bpf_map__fd(sampler->programs->maps.identity_vcpus);
	struct vp_sampler_identity_counts counts = {0};

	vp_vec_each (&finding->cpus, cpu) {
		uint64_t key = key_of(pid, cpu->vcpu);
		struct vp_identity_vcpu vcpu;
		uint32_t place;
		if (bpf_map_lookup_elem(places, &key, &place) ||
		    bpf_map_lookup_elem(vcpus, &place, &vcpu))
			continue;
		counts.good += vcpu.good;
		counts.failed += vcpu.failed;
		counts.nowhere += vcpu.nowhere;
	}
	return counts;
}
