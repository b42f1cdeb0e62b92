/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/tasks/tasks.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/map.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"
#include "guestmem/memory/memory.h"

enum {
	MAX_TASKS = 1 << 17,
	MAX_CPUS = 8192,   /* Linux's maximum on x86; lower on Arm */
	MAX_TID = 4 << 20, /* PID_MAX_LIMIT */
	TASK_BYTES = 4096, /* span of all fields that are read, in all known kernels */
};

/* Part of a task_struct, read at once: each read costs a system call or hypercall. */
struct task_bytes {
	uint64_t first; /* offset in the struct */
	unsigned char bytes[TASK_BYTES];
};

static bool read_task_bytes(const struct vp_guest_kernel *kernel, uint64_t address,
			    struct task_bytes *ret)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const uint64_t fields[][2] = {{pack->at.task_pid, 4},
				      {pack->at.task_tgid, 4},
				      {pack->at.task_mm, 8},
				      {pack->at.task_tasks, 8},
				      {pack->at.task_comm, 16}};
	uint64_t end = 0;

	ret->first = UINT64_MAX;
	for (size_t i = 0; i < VP_ARRAY_SIZE(fields); i++) {
		uint64_t begin = fields[i][0], behind = begin + fields[i][1];
		ret->first = begin < ret->first ? begin : ret->first;
		end = behind > end ? behind : end;
	}
	return end - ret->first <= sizeof(ret->bytes) &&
	       vp_guest_view_read(&kernel->view, address + ret->first, ret->bytes,
				  end - ret->first);
}

static void tasks_take_field(const struct task_bytes *task, uint32_t offset, void *ret, size_t size)
{
	memcpy(ret, task->bytes + (offset - task->first), size);
}

bool vp_guest_task_read(const struct vp_guest_kernel *kernel, uint64_t address,
			struct vp_guest_task *ret)
{
	const struct vp_guest_view *view = &kernel->view;
	const struct vp_kernel_pack *pack = &kernel->pack;
	struct vp_guest_page page;
	struct task_bytes bytes;
	uint64_t pgd;

	*ret = (struct vp_guest_task){.address = address};
	if (kernel->lacks || address % 8 || !read_task_bytes(kernel, address, &bytes))
		return false;
	tasks_take_field(&bytes, pack->at.task_pid, &ret->tid, sizeof(ret->tid));
	tasks_take_field(&bytes, pack->at.task_tgid, &ret->tgid, sizeof(ret->tgid));
	tasks_take_field(&bytes, pack->at.task_mm, &ret->mm, sizeof(ret->mm));
	tasks_take_field(&bytes, pack->at.task_comm, ret->comm, sizeof(ret->comm));
	tasks_take_field(&bytes, pack->at.task_tasks, &ret->next, sizeof(ret->next));
	ret->next -= pack->at.task_tasks;
	if (ret->mm && vp_guest_view_u64(view, ret->mm + pack->at.mm_pgd, &pgd) &&
	    vp_guest_view_translate(view, pgd, &page))
		ret->root = page.gpa;
	/* Only idle tasks have pid 0. Names may be arbitrary, but are terminated by the kernel. */
	return ret->tid <= MAX_TID && ret->tgid <= MAX_TID && !ret->tid == !ret->tgid &&
	       memchr(ret->comm, 0, sizeof(ret->comm));
}

void vp_guest_tasks_each(const struct vp_guest_kernel *kernel,
			 bool (*each)(void *context, const struct vp_guest_task *task),
			 void *context, bool *damaged)
{
	uint64_t first = vp_guest_kernel_symbol(kernel, kernel->pack.symbol.init_task);
	uint64_t address = first;
	struct vp_map seen = {0};
	bool is_new = true;

	*damaged = !first || kernel->lacks;
	for (uint32_t i = 0; !*damaged && i < MAX_TASKS; i++) {
		struct vp_guest_task task;
		vp_map_insert(&seen, address, 0, &is_new);
		*damaged = !is_new || !vp_guest_task_read(kernel, address, &task);
		if (*damaged || (i && !each(context, &task)))
			break;
		address = task.next;
		if (address == first)
			break;
	}
	vp_map_deinit(&seen);
}

/* Whether the task's page tables map the kernel at its address. */
static bool tasks_maps_kernel(const struct vp_guest_kernel *kernel,
			      const struct vp_guest_task *task)
{
	struct vp_guest_view view = kernel->view;
	uint64_t inside = kernel->text;
	struct vp_guest_page page;

	/* On Arm the kernel half has its own tables, and memory before _stext may be unmapped. */
	if (view.memory->arch == VP_GUEST_ARM64)
		inside += VP_ARM_KERNEL_ALIGN;
	else
		view.root = task->root;
	return task->root && vp_guest_view_walk(&view, inside, &page) &&
	       page.gpa == view.image_gpa + (inside - view.image_va);
}

struct vp_error *vp_guest_kernel_check(const struct vp_guest_kernel *kernel)
{
	uint64_t idle = vp_guest_kernel_symbol(kernel, kernel->pack.symbol.init_task);
	struct vp_guest_task task;

	if (kernel->lacks)
		return vp_error_new("the kernel does not provide %s", kernel->lacks);
	if (!vp_guest_task_read(kernel, idle, &task) || task.tid || task.tgid || task.mm ||
	    strncmp(task.comm, "swapper", 7) != 0)
		return vp_error_new(
		    "the kernel pack does not match: the first task is not the idle task");
	if (!vp_guest_task_read(kernel, task.next, &task) || task.tid != 1 || task.tgid != 1)
		return vp_error_new("the kernel pack does not match, or the guest is still "
				    "booting: no process 1 after the idle task");
	if (!tasks_maps_kernel(kernel, &task))
		return vp_error_new("the kernel pack does not match: the page tables of process 1 "
				    "do not map the kernel");
	return NULL;
}

/* Whether the top-level page table is the first of a pair (KPTI): the second one has the same
 * entries in its user half. */
static bool has_pair(const struct vp_guest_kernel *kernel, uint64_t root)
{
	enum { USER_ENTRIES = 256, PAGE = 4096 };
	const uint64_t address = 0x000ffffffffff000ULL;
	uint64_t first[USER_ENTRIES], second[USER_ENTRIES];
	unsigned same = 0;

	if (!root || root & PAGE ||
	    !vp_guest_memory_read(kernel->view.memory, root, first, sizeof(first)) ||
	    !vp_guest_memory_read(kernel->view.memory, root + PAGE, second, sizeof(second)))
		return false;
	for (unsigned i = 0; i < USER_ENTRIES; i++) {
		if ((first[i] ^ second[i]) & address)
			return false;
		same += first[i] != 0;
	}
	return same > 0;
}

bool vp_guest_kernel_isolates(const struct vp_guest_kernel *kernel)
{
	uint64_t idle = vp_guest_kernel_symbol(kernel, kernel->pack.symbol.init_task);
	struct vp_guest_task task;

	return kernel->view.memory->arch == VP_GUEST_X86_64 &&
	       vp_guest_task_read(kernel, idle, &task) &&
	       vp_guest_task_read(kernel, task.next, &task) && has_pair(kernel, task.root);
}

/* Per-CPU pointer to the current task. In v6.2 to v6.14 it is the first member of struct pcpu_hot
 * (e57ef2ed97c1, removed by a1e4cc0155ad). On Arm, it is a copy for the entry code, written at
 * context switches. */
static struct vp_pack_symbol current_of(const struct vp_kernel_pack *pack)
{
	if (pack->symbol.current_task.offset != VP_PACK_NONE)
		return pack->symbol.current_task;
	return pack->symbol.pcpu_hot.offset != VP_PACK_NONE ? pack->symbol.pcpu_hot
							    : pack->symbol.entry_task;
}

/* Reads the CPU's APIC id, which is the vCPU's number. */
static bool read_x86_vcpu(const struct vp_guest_kernel *kernel, uint64_t start, uint32_t *ret)
{
	const struct vp_pack_symbol apic = kernel->pack.symbol.cpu_to_apicid;
	uint16_t id;

	if (apic.offset == VP_PACK_NONE || apic.percpu != current_of(&kernel->pack).percpu ||
	    !vp_guest_view_read(&kernel->view, start + apic.offset, &id, sizeof(id)))
		return false;
	*ret = id;
	return true;
}

/* Finds CPUs from the vCPUs' registers with the per-CPU base. */
static void find_cpus_by_registers(const struct vp_guest_kernel *kernel, vp_guest_cpus *cpus,
				   bool *unsettled)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const struct vp_guest_view *view = &kernel->view;

	for (size_t i = 0; i < view->n_vcpus; i++) {
		struct vp_guest_cpu cpu = {.vcpu = view->vcpus[i].vcpu,
					   .base = view->vcpus[i].tpidr1};
		uint64_t start = kernel->text + cpu.base;
		struct vp_guest_page page;
		struct vp_guest_task task;
		if (!cpu.base || pack->symbol.entry_task.offset == VP_PACK_NONE ||
		    pack->symbol.runqueues.offset == VP_PACK_NONE ||
		    pack->at.rq_cpu == VP_PACK_NONE ||
		    !vp_guest_view_u32(
			view, start + pack->symbol.runqueues.offset + pack->at.rq_cpu, &cpu.cpu) ||
		    cpu.cpu >= MAX_CPUS ||
		    !vp_guest_view_translate(view, start + pack->symbol.entry_task.offset, &page) ||
		    page.left < 8)
			continue;
		cpu.current_gpa = page.gpa;
		if (vp_guest_cpu_task(kernel, &cpu, &task))
			vp_vec_push(cpus, cpu);
		else
			*unsettled |= task.address != 0;
	}
}

/* Derives the vCPU's number from the MPIDR, in which KVM stores it: 4, 8 and 8 bits
 * (reset_mpidr()). */
static bool read_arm_vcpu(const struct vp_guest_kernel *kernel, uint32_t number, uint32_t *ret)
{
	uint64_t map = vp_guest_kernel_symbol(kernel, kernel->pack.symbol.cpu_logical_map), id;

	if (!map || !vp_guest_view_u64(&kernel->view, map + 8ULL * number, &id) || id >> 40 ||
	    (id & 0xff) > 15)
		return false;
	*ret = (uint32_t)((id & 15) | (id >> 8 & 0xff) << 4 | (id >> 16 & 0xff) << 12);
	return true;
}

static bool read_cpu(const struct vp_guest_kernel *kernel, uint32_t number, uint64_t base,
		     struct vp_guest_cpu *ret)
{
	const struct vp_pack_symbol current = current_of(&kernel->pack);
	uint64_t start = base;
	struct vp_guest_page page;

	/* Since v6.15 (9d7de2aa8b41), and on Arm, per-CPU symbols are addresses in the image, and
	 * per-CPU bases are relative to them. */
	if (!current.percpu)
		start += kernel->text;
	*ret = (struct vp_guest_cpu){.cpu = number, .base = base};
	if (current.offset == VP_PACK_NONE ||
	    !(kernel->view.memory->arch == VP_GUEST_ARM64
		  ? read_arm_vcpu(kernel, number, &ret->vcpu)
		  : read_x86_vcpu(kernel, start, &ret->vcpu)) ||
	    !vp_guest_view_translate(&kernel->view, start + current.offset, &page) || page.left < 8)
		return false;
	ret->current_gpa = page.gpa;
	return true;
}

struct vp_error *vp_guest_cpus_find(const struct vp_guest_kernel *kernel, vp_guest_cpus *cpus,
				    bool *unsettled)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	uint64_t offsets = vp_guest_kernel_symbol(kernel, pack->symbol.per_cpu_offset);
	uint64_t ids = vp_guest_kernel_symbol(kernel, pack->symbol.nr_cpu_ids);
	uint32_t count = 1;

	*unsettled = false;
	find_cpus_by_registers(kernel, cpus, unsettled);
	if (cpus->count)
		return NULL;
	if (ids && (!vp_guest_view_u32(&kernel->view, ids, &count) || count > MAX_CPUS))
		return vp_error_new("the kernel's number of CPUs is invalid");
	for (uint32_t i = 0; i < count && offsets; i++) {
		struct vp_guest_task task;
		struct vp_guest_cpu cpu;
		uint64_t base;
		if (!vp_guest_view_u64(&kernel->view, offsets + 8ULL * i, &base) || !base ||
		    !read_cpu(kernel, i, base, &cpu))
			continue;
		if (vp_guest_cpu_task(kernel, &cpu, &task))
			vp_vec_push(cpus, cpu);
		else
			*unsettled |= task.address != 0;
	}
	if (!cpus->count)
		return vp_error_new("no CPU's current task was found in the kernel's memory");
	return NULL;
}

bool vp_guest_cpu_task(const struct vp_guest_kernel *kernel, const struct vp_guest_cpu *cpu,
		       struct vp_guest_task *ret)
{
	uint64_t address;

	*ret = (struct vp_guest_task){0};
	return vp_guest_memory_read(kernel->view.memory, cpu->current_gpa, &address,
				    sizeof(address)) &&
	       vp_guest_task_read(kernel, address, ret);
}
