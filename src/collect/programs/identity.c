/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/identity.h"

#include <errno.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "bpf/guest_current_abi.h"
#include "bpf/sampler_abi.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_state.h"
#include "guestmem/memory/memory.h"

void vp_identity_init(struct vp_identity *identity, const struct bpf_object *object)
{
	*identity = (struct vp_identity){
	    .vms = bpf_object__find_map_fd_by_name(object, "identity_vms"),
	    .vcpus = bpf_object__find_map_fd_by_name(object, "identity_vcpus"),
	    .indices = bpf_object__find_map_fd_by_name(object, "identity_index"),
	    .slots = bpf_object__find_map_fd_by_name(object, "identity_slots"),
	    .interpreters = bpf_object__find_map_fd_by_name(object, "interpreters"),
	    .interpreter_count = bpf_object__find_map_fd_by_name(object, "interpreter_count"),
	    .threads = bpf_object__find_map_fd_by_name(object, "interpreted_threads")};
}

int vp_identity_shrink(const struct bpf_object *object)
{
	static const char *const names[] = {"identity_vms", "identity_vcpus", "identity_index",
					    "identity_slots", "identity_names"};
	int result = 0;

	for (size_t i = 0; !result && i < VP_ARRAY_SIZE(names); i++)
		result =
		    bpf_map__set_max_entries(bpf_object__find_map_by_name(object, names[i]), 1);
	return result;
}

static uint64_t identity_key_of(uint32_t pid, uint32_t vcpu)
{
	return (uint64_t)pid << 32 | vcpu;
}

/* The first sufficient gap between ranges; returns its index in the list. */
static bool find_gap(const struct vp_identity *identity, uint32_t count, size_t *index,
		     uint32_t *first)
{
	*first = 0;
	for (*index = 0; *index < identity->ranges.count; ++*index) {
		const struct vp_identity_range *range = &identity->ranges.at[*index];
		if (range->first - *first >= count)
			return true;
		*first = range->first + range->count;
	}
	return VP_IDENTITY_SLOTS - *first >= count;
}

static void add_range(struct vp_identity *identity, size_t index,
		      const struct vp_identity_range *range)
{
	vp_vec_push(&identity->ranges, *range);
	for (size_t i = identity->ranges.count - 1; i > index; i--)
		identity->ranges.at[i] = identity->ranges.at[i - 1];
	identity->ranges.at[index] = *range;
}

/* Removes all ranges of the VM except the one that starts there. */
static void drop_ranges(struct vp_identity *identity, uint32_t number, uint32_t but)
{
	size_t kept = 0;

	vp_vec_each (&identity->ranges, range)
		if (range->number != number || range->first == but)
			identity->ranges.at[kept++] = *range;
	identity->ranges.count = kept;
}

/* Sorts the slots: programs use binary search. */
static struct vp_error *put_slots(struct vp_identity *identity, uint32_t number,
				  const struct vp_guest_memory *memory, uint32_t *first)
{
	uint32_t count = (uint32_t)memory->slots.count;
	size_t index;

	if (!find_gap(identity, count, &index, first))
		return vp_error_new("no table entries left for its %u memory slots", count);
	for (uint32_t i = 0; i < count; i++) {
		const struct vp_guest_slot *slot = &memory->slots.at[i];
		const struct vp_identity_slot entry = {slot->gpa, slot->size, slot->hva};
		uint32_t vcpu_index = *first + i;
		if (bpf_map_update_elem(identity->slots, &vcpu_index, &entry, BPF_ANY))
			return vp_error_errno(errno, "no table entry left for a memory slot");
	}
	add_range(identity, index, &(struct vp_identity_range){number, *first, count});
	return NULL;
}

static struct vp_identity_vm identity_vm_of(const struct vp_guest_finding *finding)
{
	return (struct vp_identity_vm){.direct_map = finding->direct_map,
				       .image_va = finding->text,
				       .image_size = finding->size,
				       .image_gpa = finding->gpa,
				       .paging = finding->paging,
				       .kernel_root = finding->kernel_root};
}

void vp_identity_deinit(struct vp_identity *identity)
{
	vp_vec_deinit(&identity->free);
	vp_vec_deinit(&identity->ranges);
	vp_vec_deinit(&identity->followed);
}

static bool identity_find_index(struct vp_identity *identity, uint64_t key, uint32_t *ret)
{
	if (!bpf_map_lookup_elem(identity->indices, &key, ret))
		return true;
	if (identity->free.count)
		*ret = identity->free.at[identity->free.count - 1];
	else if (identity->used < VP_IDENTITY_VCPUS)
		*ret = identity->used;
	else
		return false;
	if (bpf_map_update_elem(identity->indices, &key, ret, BPF_NOEXIST))
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

struct vp_error *vp_identity_index(struct vp_identity *identity, uint32_t pid, uint32_t vcpu,
				   uint32_t *ret)
{
	return identity_find_index(identity, identity_key_of(pid, vcpu), ret) ? NULL
									      : no_room(pid, vcpu);
}

static struct vp_error *identity_put_vcpus(struct vp_identity *identity, uint32_t number,
					   const struct vp_guest_state *state,
					   const struct vp_guest_finding *finding)
{
	vp_vec_each (&finding->cpus, cpu) {
		uint64_t key = identity_key_of(state->pid, cpu->vcpu);
		struct vp_identity_vcpu vcpu = {.key = key,
						.current_hva =
						    vp_guest_state_hva(state, cpu->current_gpa),
						.vm = number,
						.off_ids = finding->off_tid,
						.off_comm = finding->off_comm,
						.off_stack = finding->off_stack,
						.off_mm = finding->off_mm,
						.off_pgd = finding->off_pgd};
		uint32_t vcpu_index;
		if (vcpu.current_hva &&
		    (!identity_find_index(identity, key, &vcpu_index) ||
		     bpf_map_update_elem(identity->vcpus, &vcpu_index, &vcpu, BPF_ANY)))
			return no_room(state->pid, cpu->vcpu);
	}
	return NULL;
}

struct vp_error *vp_identity_set_memory(struct vp_identity *identity, uint32_t number,
					const struct vp_guest_state *state,
					const struct vp_guest_finding *finding)
{
	struct vp_identity_vm vm = identity_vm_of(finding);

	if (number >= VP_IDENTITY_VMS)
		return vp_error_new("no table entry left for another VM");
	VP_TRY(put_slots(identity, number, &state->memory, &vm.first_slot));
	vm.n_slots = (uint32_t)state->memory.slots.count;
	identity->revision += identity->revision == UINT32_MAX ? 2 : 1; /* never 0 */
	vm.revision = identity->revision;
	if (bpf_map_update_elem(identity->vms, &number, &vm, BPF_ANY))
		return vp_error_errno(errno, "no table entry left for another VM");
	drop_ranges(identity, number, vm.first_slot);
	return NULL;
}

struct vp_error *vp_identity_set(struct vp_identity *identity, uint32_t number,
				 const struct vp_guest_state *state,
				 const struct vp_guest_finding *finding)
{
	enum { LARGEST_STRUCT = 1 << 16 };

	if (finding->off_tgid != finding->off_tid + 4 || finding->off_tid > LARGEST_STRUCT ||
	    finding->off_comm > LARGEST_STRUCT || finding->off_stack > LARGEST_STRUCT ||
	    finding->off_mm > LARGEST_STRUCT || finding->off_pgd > LARGEST_STRUCT)
		return vp_error_new("unknown layout of the guest's task_struct");
	VP_TRY(vp_identity_set_memory(identity, number, state, finding));
	return identity_put_vcpus(identity, number, state, finding);
}

/* Frees its index. */
static void free_index(struct vp_identity *identity, uint64_t key)
{
	static const struct vp_identity_vcpu nobody;
	uint32_t vcpu_index;

	if (bpf_map_lookup_elem(identity->indices, &key, &vcpu_index))
		return;
	bpf_map_delete_elem(identity->indices, &key);
	bpf_map_update_elem(identity->vcpus, &vcpu_index, &nobody, BPF_ANY);
	vp_vec_push(&identity->free, vcpu_index);
}

void vp_identity_forget(struct vp_identity *identity, uint32_t pid)
{
	uint64_t key, next;
	bool more = !bpf_map_get_next_key(identity->indices, NULL, &key);

	while (more) {
		more = !bpf_map_get_next_key(identity->indices, &key, &next);
		if (key >> 32 == pid)
			free_index(identity, key);
		key = next;
	}
}

/* Key of a process or thread of one VM. */
static uint64_t followed_key(bool is_thread, uint32_t id)
{
	return (uint64_t)is_thread << 32 | id;
}

static void identity_unfollow(struct vp_identity *identity, uint32_t pid,
			      const vp_guest_runtime_list *now)
{
	struct vp_map stay = {0};
	size_t kept = 0;
	bool is_new;

	vp_vec_each (now, runtime) {
		bool is_thread = runtime->kind == VP_RUNTIME_THREAD;
		vp_map_insert(&stay,
			      followed_key(is_thread, is_thread ? runtime->tid : runtime->tgid), 0,
			      &is_new);
	}
	vp_vec_each (&identity->followed, at) {
		uint64_t key = identity_key_of(pid, at->id);
		if (at->vm != pid)
			identity->followed.at[kept++] = *at;
		else if (!vp_map_find(&stay, followed_key(at->is_thread, at->id)))
			bpf_map_delete_elem(
			    at->is_thread ? identity->threads : identity->interpreters, &key);
	}
	identity->followed.count = kept;
	vp_map_deinit(&stay);
}

static void follow_thread(struct vp_identity *identity, uint32_t pid,
			  const struct vp_guest_runtime *thread)
{
	const struct vp_interpreted_thread value = {thread->state, thread->tgid, thread->native_id};
	uint64_t key = identity_key_of(pid, thread->tid);

	bpf_map_update_elem(identity->threads, &key, &value, BPF_ANY);
	vp_vec_push(&identity->followed, ((struct vp_identity_interpreter){
					     .vm = pid, .id = thread->tid, .is_thread = true}));
}

static struct vp_interpreted_layout layout_of(const struct vp_guest_runtime *runtime)
{
	const struct vp_guest_python *python = &runtime->python;
	const struct vp_guest_v8 *v8 = &runtime->v8;

	return (struct vp_interpreted_layout){.native_id = python->native_id,
					      .frame = python->frame,
					      .frame_in = python->frame_in,
					      .code = python->code,
					      .previous = python->previous,
					      .owner = python->owner,
					      .entry_value = python->entry_value,
					      .entry_is_empty = python->entry_is_empty,
					      .context_below = v8->context_below,
					      .function_below = v8->function_below,
					      .shared = v8->shared};
}

static enum vp_interpreter_kind interpreter_kind_of(const struct vp_guest_runtime *runtime)
{
	switch (runtime->kind) {
	case VP_RUNTIME_PYTHON:
		return VP_INTERPRETER_PYTHON;
	case VP_RUNTIME_V8:
		return VP_INTERPRETER_V8;
	default:
		return VP_INTERPRETER_JAVA;
	}
}

static void follow_process(struct vp_identity *identity, uint32_t pid,
			   const struct vp_guest_runtime *runtime)
{
	bool is_java = runtime->kind == VP_RUNTIME_JAVA, is_v8 = runtime->kind == VP_RUNTIME_V8;
	const struct vp_interpreter value = {
	    .low = is_java ? runtime->interpreter_low : runtime->low,
	    .high = is_java ? runtime->interpreter_high : runtime->high,
	    .loop_low = runtime->interpreter_low,
	    .loop_high = runtime->interpreter_high,
	    .kind = interpreter_kind_of(runtime),
	    .layout = layout_of(runtime)};
	uint64_t key = identity_key_of(pid, runtime->tgid);

	bpf_map_update_elem(identity->interpreters, &key, &value, BPF_ANY);
	vp_vec_push(&identity->followed,
		    ((struct vp_identity_interpreter){.vm = pid,
						      .id = runtime->tgid,
						      .low = value.low,
						      .high = value.high,
						      .second_low = is_v8 ? value.loop_low : 0,
						      .second_high = is_v8 ? value.loop_high : 0}));
}

/* If a map is full, samples have the name of the interpreter's code. */
void vp_identity_follow(struct vp_identity *identity, uint32_t pid,
			const vp_guest_runtime_list *now)
{
	if (identity->interpreters < 0)
		return;
	identity_unfollow(identity, pid, now);
	vp_vec_each (now, runtime) {
		if (runtime->kind == VP_RUNTIME_THREAD)
			follow_thread(identity, pid, runtime);
		else
			follow_process(identity, pid, runtime);
	}
	const uint32_t zero = 0, count = (uint32_t)identity->followed.count;
	bpf_map_update_elem(identity->interpreter_count, &zero, &count, BPF_ANY);
}

bool vp_identity_interprets(const struct vp_identity *identity, uint32_t pid, uint32_t tgid,
			    uint64_t ip)
{
	vp_vec_each (&identity->followed, interpreter)
		if (interpreter->vm == pid && interpreter->id == tgid && !interpreter->is_thread)
			return (ip >= interpreter->low && ip < interpreter->high) ||
			       (ip >= interpreter->second_low && ip < interpreter->second_high);
	return false;
}

struct vp_identity_counts vp_identity_counts(const struct vp_identity *identity, uint32_t pid,
					     const struct vp_guest_finding *finding)
{
	struct vp_identity_counts counts = {0};

	vp_vec_each (&finding->cpus, cpu) {
		uint64_t key = identity_key_of(pid, cpu->vcpu);
		struct vp_identity_vcpu vcpu;
		uint32_t vcpu_index;
		if (bpf_map_lookup_elem(identity->indices, &key, &vcpu_index) ||
		    bpf_map_lookup_elem(identity->vcpus, &vcpu_index, &vcpu))
			continue;
		counts.good += vcpu.good;
		counts.failed += vcpu.failed;
		counts.nowhere += vcpu.nowhere;
	}
	return counts;
}
