/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/tasks/folder.h"

#include <string.h>

#include "guestmem/kernel/kernel.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"

enum {
	MAX_ENTRIES = 1 << 16,
	MAX_MOUNTS = 1 << 14,
	MAX_STACKED = 16, /* mounts stacked on one folder */
	MAX_NAME = 255,
};

static bool folder_is_known(const uint32_t *offsets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (offsets[i] == VP_PACK_NONE)
			return false;
	return true;
}

bool vp_guest_folder_root(const struct vp_guest_kernel *kernel, const struct vp_guest_task *task,
			  struct vp_guest_folder *ret)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const uint32_t needed[] = {pack->at.task_fs, pack->at.fs_root_dentry, pack->at.fs_root_mnt};
	uint64_t fs;

	return folder_is_known(needed, VP_ARRAY_SIZE(needed)) &&
	       vp_guest_view_u64(&kernel->view, task->address + pack->at.task_fs, &fs) && fs &&
	       vp_guest_view_u64(&kernel->view, fs + pack->at.fs_root_dentry, &ret->dentry) &&
	       vp_guest_view_u64(&kernel->view, fs + pack->at.fs_root_mnt, &ret->mnt) &&
	       ret->dentry && ret->mnt;
}

/* Children of a folder: until v6.8 (da549bdd15c2 "dentry: switch the lists of children to hlist") a
 * circular list, since then a NULL-terminated one. */
struct children {
	uint64_t head; /* address of the first pointer */
	uint32_t link; /* offset in an entry */
	bool ring;
};

static bool find_children(const struct vp_guest_kernel *kernel, uint64_t dentry,
			  struct children *ret)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const uint32_t list[] = {pack->at.dentry_children, pack->at.dentry_sib};
	const uint32_t ring[] = {pack->at.dentry_subdirs, pack->at.dentry_child};
	const uint32_t common[] = {pack->at.dentry_name, pack->at.dentry_len,
				   pack->at.dentry_inode};

	ret->ring = !folder_is_known(list, VP_ARRAY_SIZE(list));
	const uint32_t *used = ret->ring ? ring : list;
	if (!folder_is_known(common, VP_ARRAY_SIZE(common)) ||
	    !folder_is_known(used, VP_ARRAY_SIZE(list)))
		return false;
	ret->head = dentry + used[0];
	ret->link = used[1];
	return true;
}

/* Reads the NUL-terminated name; false if it is not a valid file name. */
static bool read_name(const struct vp_guest_kernel *kernel, uint64_t dentry,
		      char name[MAX_NAME + 1])
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	uint32_t length;
	uint64_t at;

	if (!vp_guest_view_u32(&kernel->view, dentry + pack->at.dentry_len, &length) || !length ||
	    length > MAX_NAME ||
	    !vp_guest_view_u64(&kernel->view, dentry + pack->at.dentry_name, &at) ||
	    !vp_guest_view_read(&kernel->view, at, name, length))
		return false;
	name[length] = 0;
	return strlen(name) == length;
}

bool vp_guest_folder_each(const struct vp_guest_kernel *kernel,
			  const struct vp_guest_folder *folder,
			  bool (*each)(void *context, const char *name, uint64_t dentry),
			  void *context)
{
	struct children children;
	char name[MAX_NAME + 1];
	uint64_t next;

	if (!find_children(kernel, folder->dentry, &children) ||
	    !vp_guest_view_u64(&kernel->view, children.head, &next))
		return false;
	for (unsigned i = 0; next != (children.ring ? children.head : 0); i++) {
		uint64_t dentry = next - children.link;
		if (i == MAX_ENTRIES || !vp_guest_view_u64(&kernel->view, next, &next))
			return false;
		if (read_name(kernel, dentry, name) && !each(context, name, dentry))
			return true;
	}
	return true;
}

uint64_t vp_guest_folder_inode(const struct vp_guest_kernel *kernel, uint64_t dentry)
{
	uint64_t inode;

	return vp_guest_view_u64(&kernel->view, dentry + kernel->pack.at.dentry_inode, &inode)
		   ? inode
		   : 0;
}

/* Finds the root of the mount on this folder; false: none. */
static bool find_mount(const struct vp_guest_kernel *kernel, const struct vp_guest_folder *folder,
		       struct vp_guest_folder *ret)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const struct vp_guest_view *view = &kernel->view;
	uint64_t head = folder->mnt - pack->at.mount_mnt + pack->at.mount_mounts, next, point;

	if (!vp_guest_view_u64(view, head, &next))
		return false;
	for (unsigned i = 0; next != head && i < MAX_MOUNTS; i++) {
		uint64_t mount = next - pack->at.mount_child;
		if (!vp_guest_view_u64(view, mount + pack->at.mount_point, &point))
			return false;
		if (point == folder->dentry) {
			ret->mnt = mount + pack->at.mount_mnt;
			return vp_guest_view_u64(view, ret->mnt + pack->at.mnt_root,
						 &ret->dentry) &&
			       ret->dentry;
		}
		if (!vp_guest_view_u64(view, next, &next))
			return false;
	}
	return false;
}

static void climb_mounts(const struct vp_guest_kernel *kernel, struct vp_guest_folder *folder)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const uint32_t needed[] = {pack->at.mount_mnt, pack->at.mount_mounts, pack->at.mount_child,
				   pack->at.mount_point, pack->at.mnt_root};
	struct vp_guest_folder above;

	for (unsigned i = 0; folder_is_known(needed, VP_ARRAY_SIZE(needed)) && i < MAX_STACKED;
	     i++) {
		if (!find_mount(kernel, folder, &above))
			return;
		*folder = above;
	}
}

struct search {
	const struct vp_guest_kernel *kernel;
	const char *name;
	uint64_t found; /* a dentry, or 0 */
};

static bool folder_look_at(void *context, const char *name, uint64_t dentry)
{
	struct search *search = context;

	/* The entry of a removed file may remain without an inode. */
	if (!strcmp(name, search->name) && vp_guest_folder_inode(search->kernel, dentry))
		search->found = dentry;
	return !search->found;
}

bool vp_guest_folder_enter(const struct vp_guest_kernel *kernel,
			   const struct vp_guest_folder *folder, const char *name,
			   struct vp_guest_folder *ret)
{
	struct search search = {.kernel = kernel, .name = name};

	vp_guest_folder_each(kernel, folder, folder_look_at, &search);
	if (!search.found)
		return false;
	*ret = (struct vp_guest_folder){search.found, folder->mnt};
	climb_mounts(kernel, ret);
	return true;
}
