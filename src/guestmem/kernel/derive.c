/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/kernel/derive.h"

#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"
#include "guestmem/memory/memory.h"

enum {
	TASK_BYTES = 8192, /* searched bytes of a task_struct; saved registers come later */
	MM_BYTES = 1024,
	SMALLEST_TABLE = 64, /* minimum alignment of page tables: 64-bit Arm, 52-bit addresses */
	MIN_TASKS = 8,       /* a running kernel has some dozens of threads */
	MAX_TASKS = 1 << 17,
	MAX_KEPT = 64, /* tasks to compare, at most */
	MAX_TID = 4 << 20,
	COMM = 16,
	NOT_FOUND = -1,
	DOUBTFUL = -2,
};

struct tasks {
	const struct vp_guest_kernel *kernel;
	uint64_t idle_at;
	char *idle;  /* TASK_BYTES of the idle task */
	char *bytes; /* and of each other task, in list order */
	size_t count;
	int comm, list, pid, mm, pgd;
};

static uint64_t u64_of(const char *task, int offset)
{
	uint64_t value;

	memcpy(&value, task + offset, sizeof(value));
	return value;
}

static uint32_t u32_of(const char *task, int offset)
{
	uint32_t value;

	memcpy(&value, task + offset, sizeof(value));
	return value;
}

static const char *task_of(const struct tasks *tasks, size_t i)
{
	return tasks->bytes + i * TASK_BYTES;
}

static bool is_kernel_pointer(uint64_t value)
{
	return value >> 47 == 0x1ffff || value >> 56 == 0xff; /* 4 or 5 page-table levels */
}

/* Returns the only offset below `end` for which `fits` is true; NOT_FOUND: none; DOUBTFUL:
 * several. */
static int find_only(const struct tasks *tasks, int end, int step,
		     bool (*fits)(const struct tasks *tasks, int offset))
{
	int found = NOT_FOUND;

	for (int offset = 0; offset < end; offset += step)
		if (fits(tasks, offset)) {
			if (found != NOT_FOUND)
				return DOUBTFUL;
			found = offset;
		}
	return found;
}

static bool is_comm(const char *name)
{
	return name[0] && memchr(name, 0, COMM);
}

static bool fits_comm(const struct tasks *tasks, int offset)
{
	const char *name = tasks->idle + offset;

	return !memcmp(name, "swapper", 7) && is_comm(name);
}

/* Whether `offset` is that of the task list: the list is consistent in both directions, and each
 * task in it has a valid name at the name's offset. */
static bool fits_list(const struct tasks *tasks, int offset)
{
	const struct vp_guest_view *view = &tasks->kernel->view;
	uint64_t head = tasks->idle_at + (uint64_t)offset, before = head;
	uint64_t at = u64_of(tasks->idle, offset);
	unsigned count = 0;

	for (; at != head && count < MAX_TASKS; count++) {
		uint64_t links[2];
		char name[COMM];
		if (!is_kernel_pointer(at) || at % 8 ||
		    !vp_guest_view_read(view, at, links, sizeof(links)) || links[1] != before ||
		    !vp_guest_view_read(view, at - (uint64_t)offset + (uint64_t)tasks->comm, name,
					sizeof(name)) ||
		    !is_comm(name))
			return false;
		before = at;
		at = links[0];
	}
	return at == head && count >= MIN_TASKS;
}

/* Whether `offset` is that of pid, followed by tgid: in the main thread of a process both are
 * equal, and unique among processes. */
static bool fits_pid(const struct tasks *tasks, int offset)
{
	if (u64_of(tasks->idle, offset) || u64_of(task_of(tasks, 0), offset) != 0x100000001)
		return false;
	for (size_t i = 1; i < tasks->count; i++) {
		uint32_t tid = u32_of(task_of(tasks, i), offset);
		if (tid != u32_of(task_of(tasks, i), offset + 4) || tid < 2 || tid > MAX_TID)
			return false;
		for (size_t j = 1; j < i; j++)
			if (u32_of(task_of(tasks, j), offset) == tid)
				return false;
	}
	return true;
}

/* Whether `offset` is that of pgd in an mm_struct: init_mm's points to the kernel's page tables. */
static bool fits_pgd(const struct tasks *tasks, int offset)
{
	const struct vp_guest_kernel *kernel = tasks->kernel;
	uint64_t mm = vp_guest_kernel_symbol(kernel, kernel->pack.symbol.init_mm);
	uint64_t top = vp_guest_kernel_symbol(kernel, vp_kernel_pack_top(&kernel->pack)), value;

	return mm && top && vp_guest_view_u64(&kernel->view, mm + (uint64_t)offset, &value) &&
	       value == top;
}

/* Whether the mm_struct's page tables map the kernel at its address. */
static bool derive_maps_kernel(const struct tasks *tasks, uint64_t mm)
{
	struct vp_guest_view view = tasks->kernel->view;
	struct vp_guest_page page;
	uint64_t pgd;

	if (!vp_guest_view_u64(&view, mm + (uint64_t)tasks->pgd, &pgd) || pgd % SMALLEST_TABLE ||
	    !vp_guest_view_translate(&view, pgd, &page))
		return false;
	if (view.memory->arch == VP_GUEST_ARM64) /* the kernel half has its own tables */
		return is_kernel_pointer(pgd);
	view.root = page.gpa;
	return vp_guest_view_walk(&view, tasks->kernel->text, &page) &&
	       page.gpa == view.image_gpa + (tasks->kernel->text - view.image_va);
}

/* Whether `offset` is that of mm, followed by active_mm: both are equal in a process; mm is NULL in
 * a kernel thread. */
static bool fits_mm(const struct tasks *tasks, int offset)
{
	unsigned kernel_threads = 0;

	if (u64_of(tasks->idle, offset))
		return false;
	for (size_t i = 0; i < tasks->count; i++) {
		uint64_t mm = u64_of(task_of(tasks, i), offset);
		kernel_threads += !mm;
		if ((!i && !mm) || (mm && (!is_kernel_pointer(mm) || mm % 8 ||
					   mm != u64_of(task_of(tasks, i), offset + 8) ||
					   !derive_maps_kernel(tasks, mm))))
			return false;
	}
	return kernel_threads > 0;
}

static void keep_tasks(struct tasks *tasks)
{
	uint64_t link = (uint64_t)tasks->list, head = tasks->idle_at + link;
	uint64_t at = u64_of(tasks->idle, tasks->list);

	for (; at != head && tasks->count < MAX_KEPT; tasks->count++) {
		char *to = tasks->bytes + tasks->count * TASK_BYTES;
		if (!vp_guest_view_read(&tasks->kernel->view, at - link, to, TASK_BYTES))
			return;
		at = u64_of(to, tasks->list);
	}
}

static bool derive_find_offsets(struct tasks *tasks)
{
	tasks->comm = find_only(tasks, TASK_BYTES - COMM, 4, fits_comm);
	if (tasks->comm < 0)
		return false;
	tasks->list = find_only(tasks, TASK_BYTES - 16, 8, fits_list);
	if (tasks->list < 0)
		return false;
	keep_tasks(tasks);
	if (tasks->count < MIN_TASKS)
		return false;
	tasks->pid = find_only(tasks, TASK_BYTES - 8, 4, fits_pid);
	tasks->pgd = find_only(tasks, MM_BYTES, 8, fits_pgd);
	if (tasks->pid < 0 || tasks->pgd < 0)
		return false;
	tasks->mm = find_only(tasks, TASK_BYTES - 16, 8, fits_mm);
	return tasks->mm >= 0;
}

bool vp_guest_derive_tasks(struct vp_guest_kernel *kernel)
{
	uint64_t idle = vp_guest_kernel_symbol(kernel, kernel->pack.symbol.init_task);
	VP_AUTO_FREE char *idle_bytes = vp_alloc(TASK_BYTES);
	VP_AUTO_FREE char *bytes = vp_alloc((size_t)MAX_KEPT * TASK_BYTES);
	struct tasks tasks = {
	    .kernel = kernel, .idle_at = idle, .idle = idle_bytes, .bytes = bytes};

	if (!idle || !kernel->view.direct_map ||
	    !vp_guest_view_read(&kernel->view, idle, idle_bytes, TASK_BYTES) ||
	    !derive_find_offsets(&tasks))
		return false;
	struct vp_kernel_pack *pack = &kernel->pack;
	pack->at.task_comm = (uint32_t)tasks.comm;
	pack->at.task_tasks = (uint32_t)tasks.list;
	pack->at.task_pid = (uint32_t)tasks.pid;
	pack->at.task_tgid = (uint32_t)tasks.pid + 4;
	pack->at.task_mm = (uint32_t)tasks.mm;
	pack->at.mm_pgd = (uint32_t)tasks.pgd;
	pack->derived = true;
	return true;
}
