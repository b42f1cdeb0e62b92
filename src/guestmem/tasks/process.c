/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/tasks/process.h"

#include <string.h>

#include "base/buffer.h"
#include "guestmem/kernel/kernel.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"

enum {
	VM_EXEC = 4,
	PAGE_BITS = 12,
	MAX_MAPPINGS = 1 << 17,
	MAX_NODES = 1 << 15,
	MAX_DEPTH = 12, /* maple tree: 10 slots per node would hold 10^12 mappings */
	MAX_PATH_STEPS = 512,
	MAX_NAME = 255,
};

struct walk {
	const struct vp_guest_kernel *kernel;
	void (*each)(void *context, const struct vp_guest_mapping *mapping);
	void *context;
	uint64_t before; /* end of the previous mapping: addresses must ascend */
	unsigned mappings, nodes;
};

/* Reads one vm_area_struct; false: invalid. */
static bool take_vma(struct walk *walk, uint64_t vma)
{
	const struct vp_guest_view *view = &walk->kernel->view;
	const struct vp_kernel_pack *pack = &walk->kernel->pack;
	struct vp_guest_mapping mapping;
	uint64_t flags;

	if (vma % 8 || walk->mappings++ == MAX_MAPPINGS ||
	    !vp_guest_view_u64(view, vma + pack->at.vma_start, &mapping.start) ||
	    !vp_guest_view_u64(view, vma + pack->at.vma_end, &mapping.end) ||
	    !vp_guest_view_u64(view, vma + pack->at.vma_pgoff, &mapping.pgoff) ||
	    !vp_guest_view_u64(view, vma + pack->at.vma_flags, &flags) ||
	    !vp_guest_view_u64(view, vma + pack->at.vma_file, &mapping.file))
		return false;
	if (mapping.start >= mapping.end || mapping.start < walk->before)
		return false;
	walk->before = mapping.end;
	mapping.pgoff <<= view->paging.page_bits;
	if (!mapping.file)
		mapping.pgoff = 0;
	if (flags & VM_EXEC)
		walk->each(walk->context, &mapping);
	return true;
}

/* Walks the linked list of mappings of kernels until v6.1 (763ecb035029 "mm: remove the vma linked
 * list"). */
static bool walk_list(struct walk *walk, uint64_t mm)
{
	const struct vp_kernel_pack *pack = &walk->kernel->pack;
	uint64_t vma;

	if (!vp_guest_view_u64(&walk->kernel->view, mm + pack->at.mm_mmap, &vma))
		return false;
	while (vma)
		if (!take_vma(walk, vma) ||
		    !vp_guest_view_u64(&walk->kernel->view, vma + pack->at.vma_next, &vma))
			return false;
	return true;
}

/* A maple node: 256 bytes, aligned; its type is in bits 3 to 6 of pointers to it. */
enum { MAPLE_NODE = 256, MAPLE_LEAF = 1, MAPLE_RANGE = 2, MAPLE_ARANGE = 3 };
enum { RANGE_SLOTS = 16, ARANGE_SLOTS = 10 };

/* Whether the root of the tree is a node (low bits 10), not a single mapping. */
static bool is_root_node(uint64_t entry)
{
	return (entry & 3) == 2 && entry > 4096;
}

static uint64_t process_u64_at(const char *bytes, size_t at)
{
	uint64_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

static bool walk_node(struct walk *walk, uint64_t entry, uint64_t max, unsigned depth);

static bool walk_slot(struct walk *walk, uint64_t entry, bool leaf, uint64_t max, unsigned depth)
{
	if (!entry)
		return true;
	if (leaf) /* low bits set: a marker, for example during a fork */
		return (entry & 3) || take_vma(walk, entry);
	return walk_node(walk, entry, max, depth + 1);
}

/* Walks a node. `max`: last address of the node. Pivots are the last addresses of slots. */
static bool walk_node(struct walk *walk, uint64_t entry, uint64_t max, unsigned depth)
{
	const struct vp_kernel_pack *pack = &walk->kernel->pack;
	unsigned type = (entry >> 3) & 15;
	bool wide = type == MAPLE_ARANGE, leaf = type == MAPLE_LEAF;
	size_t pivots = wide ? pack->at.arange_pivot : pack->at.range_pivot;
	size_t slots = wide ? pack->at.arange_slot : pack->at.range_slot;
	unsigned count = wide ? ARANGE_SLOTS : RANGE_SLOTS;
	char node[MAPLE_NODE];
	uint64_t last = 0;

	if (depth == MAX_DEPTH || walk->nodes++ == MAX_NODES || type < MAPLE_LEAF ||
	    type > MAPLE_ARANGE || pivots + 8 * (count - 1) > sizeof(node) ||
	    slots + 8 * count > sizeof(node) ||
	    !vp_guest_view_read(&walk->kernel->view, entry & ~(MAPLE_NODE - 1ULL), node,
				sizeof(node)))
		return false;
	for (unsigned i = 0; i < count; i++) {
		uint64_t pivot = i < count - 1 ? process_u64_at(node, pivots + 8 * i) : max;
		if (!pivot && i) /* unused: the previous slot was the last */
			pivot = max;
		if (pivot > max || pivot < last ||
		    !walk_slot(walk, process_u64_at(node, slots + 8 * i), leaf, pivot, depth))
			return false;
		if (pivot == max)
			return true;
		last = pivot;
	}
	return true;
}

static bool walk_tree(struct walk *walk, uint64_t mm)
{
	const struct vp_kernel_pack *pack = &walk->kernel->pack;
	uint64_t root;

	if (!vp_guest_view_u64(&walk->kernel->view, mm + pack->at.mm_maple_root, &root))
		return false;
	return is_root_node(root) ? walk_node(walk, root, UINT64_MAX, 0)
				  : walk_slot(walk, root, true, UINT64_MAX, 0);
}

static bool has_all(const uint32_t *offsets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (offsets[i] == VP_PACK_NONE)
			return false;
	return true;
}

bool vp_guest_mappings_each(const struct vp_guest_kernel *kernel, uint64_t mm,
			    void (*each)(void *context, const struct vp_guest_mapping *mapping),
			    void *context)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const uint32_t common[] = {pack->at.vma_start, pack->at.vma_end, pack->at.vma_pgoff,
				   pack->at.vma_flags, pack->at.vma_file};
	const uint32_t tree[] = {pack->at.mm_maple_root, pack->at.range_pivot, pack->at.range_slot,
				 pack->at.arange_pivot, pack->at.arange_slot};
	const uint32_t list[] = {pack->at.mm_mmap, pack->at.vma_next};
	struct walk walk = {.kernel = kernel, .each = each, .context = context};

	if (!mm || !has_all(common, VP_ARRAY_SIZE(common)))
		return false;
	if (has_all(tree, VP_ARRAY_SIZE(tree)))
		return walk_tree(&walk, mm);
	return has_all(list, VP_ARRAY_SIZE(list)) && walk_list(&walk, mm);
}

/* A directory entry in a mount, like struct path. */
struct address {
	uint64_t dentry, mnt;
};

static bool process_read_location(const struct vp_guest_kernel *kernel, uint64_t dentry_at,
				  uint64_t mnt_at, struct address *ret)
{
	return vp_guest_view_u64(&kernel->view, dentry_at, &ret->dentry) &&
	       vp_guest_view_u64(&kernel->view, mnt_at, &ret->mnt) && ret->dentry && ret->mnt;
}

/* Prepends "/NAME" to the text that starts at *at. `alone`: the file is in no directory, and its
 * name may have slashes: "dev/zero" of shared anonymous memory. */
static bool prepend_name(const struct vp_guest_kernel *kernel, uint64_t dentry, bool alone,
			 char *text, size_t *at)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	uint32_t length;
	uint64_t name;

	if (!vp_guest_view_u32(&kernel->view, dentry + pack->at.dentry_len, &length) || !length ||
	    length > MAX_NAME || length + 1 > *at ||
	    !vp_guest_view_u64(&kernel->view, dentry + pack->at.dentry_name, &name))
		return false;
	*at -= length + 1;
	text[*at] = '/';
	return vp_guest_view_read(&kernel->view, name, text + *at + 1, length) &&
	       !memchr(text + *at + 1, 0, length) &&
	       (alone || !memchr(text + *at + 1, '/', length));
}

/* Moves from the root of a mount to its mount point; false at the topmost mount. */
static bool leave_mount(const struct vp_guest_kernel *kernel, struct address *address)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	uint64_t mount = address->mnt - pack->at.mount_mnt, parent, point;

	if (!vp_guest_view_u64(&kernel->view, mount + pack->at.mount_parent, &parent) ||
	    !vp_guest_view_u64(&kernel->view, mount + pack->at.mount_point, &point) ||
	    parent == mount)
		return false;
	*address = (struct address){point, parent + pack->at.mount_mnt};
	return true;
}

/* Prepends the names of all directories up to the task's root directory or the topmost mount. */
static bool walk_up(const struct vp_guest_kernel *kernel, struct address address,
		    struct address root, char *text, size_t *at)
{
	const struct vp_kernel_pack *pack = &kernel->pack;

	for (unsigned step = 0; step < MAX_PATH_STEPS; step++) {
		uint64_t top, parent;
		if (address.dentry == root.dentry && address.mnt == root.mnt)
			return true;
		if (!vp_guest_view_u64(&kernel->view, address.mnt + pack->at.mnt_root, &top) ||
		    !vp_guest_view_u64(&kernel->view, address.dentry + pack->at.dentry_parent,
				       &parent))
			return false;
		if (address.dentry == top) {
			if (!leave_mount(kernel, &address))
				return true;
			continue;
		}
		bool alone = parent == address.dentry; /* such as a memfd */
		if (!prepend_name(kernel, address.dentry, alone, text, at))
			return false;
		if (alone)
			return true;
		address.dentry = parent;
	}
	return false;
}

bool vp_guest_path(const struct vp_guest_kernel *kernel, const struct vp_guest_task *task,
		   uint64_t file, struct vp_buffer *path)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const uint32_t needed[] = {
	    pack->at.file_dentry, pack->at.file_mnt,       pack->at.dentry_parent,
	    pack->at.dentry_name, pack->at.dentry_len,     pack->at.mount_parent,
	    pack->at.mount_point, pack->at.mount_mnt,      pack->at.mnt_root,
	    pack->at.task_fs,     pack->at.fs_root_dentry, pack->at.fs_root_mnt};
	char text[VP_GUEST_PATH_MAX];
	size_t at = sizeof(text);
	struct address address, root = {0};
	uint64_t fs;

	if (!has_all(needed, VP_ARRAY_SIZE(needed)) ||
	    !process_read_location(kernel, file + pack->at.file_dentry, file + pack->at.file_mnt,
				   &address))
		return false;
	/* An exiting task has no root directory: the path is from the topmost mount. */
	if (vp_guest_view_u64(&kernel->view, task->address + pack->at.task_fs, &fs) && fs &&
	    !process_read_location(kernel, fs + pack->at.fs_root_dentry, fs + pack->at.fs_root_mnt,
				   &root))
		root = (struct address){0};
	if (!walk_up(kernel, address, root, text, &at) || at == sizeof(text))
		return false;
	vp_buffer_append(path, text + at, sizeof(text) - at);
	return true;
}
