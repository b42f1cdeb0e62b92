/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lies.h"

#include <elf.h>
#include <linux/btf.h>
#include <stddef.h>
#include <string.h>

#include "guestmem/tasks/pagecache.h"
#include "guestmem/tasks/process.h"

/* What a lie is about. */
struct subject {
	const struct vp_guest_kernel *kernel;
	struct vp_guest_task task;
	uint64_t program, library; /* struct files of the first two executable mappings */
	lie_list *lies;
};

#define NOWHERE 0xffffcafe00000000ULL /* an address that no kernel has mapped */

/* Changes `size` bytes at the guest's address; false if they cannot be read. */
static bool change(const struct subject *subject, uint64_t va, const void *bytes, size_t size)
{
	struct lie lie = {.va = va, .size = size};

	if (size > LIE_BYTES || !vp_guest_view_read(&subject->kernel->view, va, lie.truth, size))
		return false;
	memcpy(lie.lie, bytes, size);
	vp_vec_push(subject->lies, lie);
	return true;
}

static bool change_u64(const struct subject *subject, uint64_t va, uint64_t value)
{
	return change(subject, va, &value, sizeof(value));
}

static bool change_u32(const struct subject *subject, uint64_t va, uint32_t value)
{
	return change(subject, va, &value, sizeof(value));
}

static bool endless_name(const struct subject *subject)
{
	return change(subject, subject->task.address + subject->kernel->pack.at.task_comm,
		      "AAAAAAAAAAAAAAAA", 16);
}

static bool huge_pid(const struct subject *subject)
{
	const struct vp_kernel_pack *pack = &subject->kernel->pack;

	return change_u32(subject, subject->task.address + pack->at.task_pid, 0x7fffffff) &&
	       change_u32(subject, subject->task.address + pack->at.task_tgid, 0x7fffffff);
}

static bool no_process(const struct subject *subject)
{
	return change_u32(subject, subject->task.address + subject->kernel->pack.at.task_tgid, 0);
}

/* The next task is the task itself: the list does not come back to its head. */
static bool task_ring(const struct subject *subject)
{
	uint64_t link = subject->task.address + subject->kernel->pack.at.task_tasks;

	return change_u64(subject, link, link);
}

static bool task_nowhere(const struct subject *subject)
{
	return change_u64(subject, subject->task.address + subject->kernel->pack.at.task_tasks,
			  NOWHERE);
}

/* All that the top of the process's tree of mappings leads to is `target`, or before 6.1 what is
 * behind the first of its list. */
static bool lead_mappings(const struct subject *subject, bool nowhere)
{
	const struct vp_kernel_pack *pack = &subject->kernel->pack;
	const struct vp_guest_view *view = &subject->kernel->view;
	uint64_t mm = subject->task.mm, top;
	bool tree = pack->at.mm_maple_root != VP_PACK_NONE, good = true;

	if (!vp_guest_view_u64(view, mm + (tree ? pack->at.mm_maple_root : pack->at.mm_mmap), &top))
		return false;
	if (!tree)
		return change_u64(subject, top + pack->at.vma_next, nowhere ? NOWHERE : top);
	enum { WIDE_TYPE = 3, SLOTS = 10 };
	uint64_t node = top & ~255ULL;
	uint64_t first =
	    node + (((top >> 3) & 15) == WIDE_TYPE ? pack->at.arange_slot : pack->at.range_slot);
	for (unsigned i = 0; i < SLOTS && good; i++) {
		uint64_t slot;
		good = vp_guest_view_u64(view, first + 8 * i, &slot);
		if (good && slot)
			good = change_u64(subject, first + 8 * i,
					  (nowhere ? NOWHERE : node) | (top & 0x78));
	}
	return good;
}

static bool mapping_ring(const struct subject *subject)
{
	return lead_mappings(subject, false);
}

static bool mapping_nowhere(const struct subject *subject)
{
	return lead_mappings(subject, true);
}

static bool dentry_of(const struct subject *subject, uint64_t file, uint64_t *ret)
{
	return file && vp_guest_view_u64(&subject->kernel->view,
					 file + subject->kernel->pack.at.file_dentry, ret);
}

/* The program's directory is its library, whose directory is the program. */
static bool path_ring(const struct subject *subject)
{
	uint64_t parent = subject->kernel->pack.at.dentry_parent, program, library;

	return dentry_of(subject, subject->program, &program) &&
	       dentry_of(subject, subject->library, &library) &&
	       change_u64(subject, program + parent, library) &&
	       change_u64(subject, library + parent, program);
}

static bool long_path(const struct subject *subject)
{
	uint64_t dentry;

	return dentry_of(subject, subject->program, &dentry) &&
	       change_u32(subject, dentry + subject->kernel->pack.at.dentry_len, 0xfffffff0);
}

static bool path_nowhere(const struct subject *subject)
{
	uint64_t dentry;

	return dentry_of(subject, subject->program, &dentry) &&
	       change_u64(subject, dentry + subject->kernel->pack.at.dentry_name, NOWHERE);
}

static bool file_size(const struct subject *subject)
{
	const struct vp_kernel_pack *pack = &subject->kernel->pack;
	const struct vp_guest_view *view = &subject->kernel->view;
	uint64_t mapping, inode;

	return vp_guest_view_u64(view, subject->program + pack->at.file_mapping, &mapping) &&
	       vp_guest_view_u64(view, mapping + pack->at.mapping_host, &inode) &&
	       change_u64(subject, inode + pack->at.inode_size, INT64_MAX);
}

/* The tree of the program's pages leads to itself. */
static bool page_ring(const struct subject *subject)
{
	const struct vp_kernel_pack *pack = &subject->kernel->pack;
	struct vp_guest_file file;
	bool good =
	    vp_guest_file_open(subject->kernel, subject->program, &file) && (file.pages & 3) == 2;

	for (unsigned i = 0; i < 8 && good; i++)
		good = change_u64(subject, file.pages - 2 + pack->at.xa_node_slots + 8 * i,
				  file.pages);
	return good;
}

/* The guest's address of a place in the program's first page, which is mapped there. */
static bool header_at(const struct subject *subject, Elf64_Ehdr *header, uint64_t *va)
{
	const struct vp_guest_view *view = &subject->kernel->view;
	struct vp_guest_file file;
	uint64_t memmap = 0, mapping, page;

	if (!vp_guest_file_open(subject->kernel, subject->program, &file) ||
	    !vp_guest_file_read(&file, 0, header, sizeof(*header)))
		return false;
	/* The first page of a file is the first slot of each of its tree's nodes. */
	memmap = file.memmap;
	page = file.pages;
	while ((page & 3) == 2)
		if (!vp_guest_view_u64(view, page - 2 + subject->kernel->pack.at.xa_node_slots,
				       &page))
			return false;
	mapping = (page - memmap) / subject->kernel->pack.page_size_of;
	*va = view->direct_map + (mapping << view->paging.page_bits);
	return page >= memmap;
}

/* The sizes in the program's notes are as large as they can be. */
static bool huge_notes(const struct subject *subject)
{
	struct vp_guest_file file;
	Elf64_Ehdr header;
	uint64_t va;
	bool found = false;

	if (!header_at(subject, &header, &va) ||
	    !vp_guest_file_open(subject->kernel, subject->program, &file))
		return false;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		const uint32_t huge[] = {UINT32_MAX, UINT32_MAX};
		Elf64_Phdr segment;
		if (!vp_guest_file_read(&file, header.e_phoff + i * sizeof(segment), &segment,
					sizeof(segment)))
			return false;
		if (segment.p_type != PT_NOTE || segment.p_offset > 4096 - sizeof(huge))
			continue;
		found = true;
		if (!change(subject, va + segment.p_offset, huge, sizeof(huge)))
			return false;
	}
	return found;
}

/* More segments than there can be, at the end of all addresses; and such sections. */
static bool huge_headers(const struct subject *subject)
{
	Elf64_Ehdr header;
	uint64_t va;

	if (!header_at(subject, &header, &va))
		return false;
	header.e_phnum = header.e_shnum = UINT16_MAX;
	header.e_phoff = header.e_shoff = UINT64_MAX - 64;
	return change(subject, va, &header, sizeof(header));
}

static bool module_ring(const struct subject *subject)
{
	uint64_t head =
	    vp_guest_kernel_symbol(subject->kernel, subject->kernel->pack.symbol.modules);
	uint64_t first;

	return head && vp_guest_view_u64(&subject->kernel->view, head, &first) && first != head &&
	       change_u64(subject, first, first);
}

/* The kernel's BTF does not begin like BTF: as if it were built without. */
static bool no_btf(const struct subject *subject)
{
	uint64_t start =
	    vp_guest_kernel_symbol(subject->kernel, subject->kernel->pack.symbol.start_btf);

	return start && change_u64(subject, start, 0);
}

/* The types reach beyond the end of all. */
static bool huge_btf(const struct subject *subject)
{
	uint64_t start =
	    vp_guest_kernel_symbol(subject->kernel, subject->kernel->pack.symbol.start_btf);

	return start &&
	       change_u32(subject, start + offsetof(struct btf_header, type_len), 0xfffffff0);
}

/* Symbols' names have tokens that lead anywhere. */
static bool wild_symbols(const struct subject *subject)
{
	char ones[LIE_BYTES];

	memset(ones, 0xff, sizeof(ones));
	return change(subject, subject->kernel->text + subject->kernel->pack.kallsyms.token_index,
		      ones, sizeof(ones));
}

static const struct kind {
	const char *name;
	bool (*make)(const struct subject *subject);
	bool about_kernel;
} kinds[] = {
    {"endless-name", endless_name, false},
    {"huge-pid", huge_pid, false},
    {"no-process", no_process, false},
    {"task-ring", task_ring, false},
    {"task-nowhere", task_nowhere, false},
    {"mapping-ring", mapping_ring, false},
    {"mapping-nowhere", mapping_nowhere, false},
    {"path-ring", path_ring, false},
    {"long-path", long_path, false},
    {"path-nowhere", path_nowhere, false},
    {"file-size", file_size, false},
    {"page-ring", page_ring, false},
    {"huge-notes", huge_notes, false},
    {"huge-headers", huge_headers, false},
    {"module-ring", module_ring, true},
    {"no-btf", no_btf, true},
    {"huge-btf", huge_btf, true},
    {"wild-symbols", wild_symbols, true},
};

void lies_list(struct vp_buffer *text)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(kinds); i++)
		vp_buffer_printf(text, "  %s%s\n", kinds[i].name,
				 kinds[i].about_kernel ? "" : ":PROCESS");
}

struct finding {
	const char *comm;
	struct vp_guest_task task;
};

static bool is_it(void *context, const struct vp_guest_task *task)
{
	struct finding *finding = context;

	if (!strcmp(task->comm, finding->comm))
		finding->task = *task;
	return !finding->task.address;
}

static void take_file(void *context, const struct vp_guest_mapping *mapping)
{
	struct subject *subject = context;

	if (!subject->program)
		subject->program = mapping->file;
	else if (!subject->library)
		subject->library = mapping->file;
}

struct vp_error *lies_make(const struct vp_guest_kernel *kernel, const char *kind, const char *who,
			   lie_list *lies)
{
	struct subject subject = {.kernel = kernel, .lies = lies};
	struct finding finding = {.comm = who};
	const struct kind *found = NULL;
	bool damaged;

	for (size_t i = 0; i < VP_ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].name, kind))
			found = &kinds[i];
	if (!found || found->about_kernel == (who != NULL))
		return vp_error_usage("'%s' is no lie", kind);
	if (who) {
		vp_guest_tasks_each(kernel, is_it, &finding, &damaged);
		if (!finding.task.address)
			return vp_error_new("no process of the guest is named '%s'", who);
		subject.task = finding.task;
		if (!vp_guest_mappings_each(kernel, subject.task.mm, take_file, &subject))
			return vp_error_new("the mappings of '%s' cannot be read", who);
	}
	return found->make(&subject) ? NULL
				     : vp_error_new("what '%s' is about is not in memory", kind);
}
