/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folders, files in a page cache and programs of the built guest. */
#ifndef VP_TESTS_GUEST_FILES_H
#define VP_TESTS_GUEST_FILES_H

#include "guest_builder.h"

/* Puts `dentry` in front of what is in a folder. */
static inline void built_child(struct guest_builder *guest, uint64_t parent, uint64_t dentry)
{
	const struct vp_kernel_pack *pack = &guest->pack;
	bool ring = guest->layout == BUILT_OLD;
	uint64_t head = parent + (ring ? pack->at.dentry_subdirs : pack->at.dentry_children);
	uint64_t link = dentry + (ring ? pack->at.dentry_child : pack->at.dentry_sib), next;

	memcpy(&next, built_at(guest, head), sizeof(next));
	built_put64(guest, link, next || !ring ? next : head);
	built_put64(guest, head, link);
}

static inline uint64_t built_dentry(struct guest_builder *guest, uint64_t parent, const char *name)
{
	const struct vp_kernel_pack *pack = &guest->pack;
	uint64_t dentry = built_object(guest, 256, 16), text = built_object(guest, 64, 8);

	if (parent)
		built_child(guest, parent, dentry);
	else if (guest->layout == BUILT_OLD)
		built_put64(guest, dentry + pack->at.dentry_subdirs,
			    dentry + pack->at.dentry_subdirs);

	strcpy(built_at(guest, text), name);
	built_put64(guest, dentry + pack->at.dentry_parent, parent ? parent : dentry);
	built_put64(guest, dentry + pack->at.dentry_name, text);
	put32(built_at(guest, dentry + pack->at.dentry_len), (uint32_t)strlen(name));
	return dentry;
}

/* A mount of `root` at `point` in `parent` (a struct vfsmount; 0: itself); its vfsmount. */
static inline uint64_t built_mount(struct guest_builder *guest, uint64_t root, uint64_t parent,
				   uint64_t point)
{
	const struct vp_kernel_pack *pack = &guest->pack;
	uint64_t mount = built_object(guest, 512, 16);

	built_put64(guest, mount + pack->at.mount_parent,
		    parent ? parent - pack->at.mount_mnt : mount);
	built_put64(guest, mount + pack->at.mount_point, point);
	uint64_t head = mount + pack->at.mount_mounts;
	built_put64(guest, head, head);
	if (parent) { /* the only one in it */
		head = parent - pack->at.mount_mnt + pack->at.mount_mounts;
		built_put64(guest, mount + pack->at.mount_child, head);
		built_put64(guest, head, mount + pack->at.mount_child);
	}
	built_put64(guest, mount + pack->at.mount_mnt + pack->at.mnt_root, root);
	return mount + pack->at.mount_mnt;
}

static inline uint64_t built_file(struct guest_builder *guest, uint64_t dentry, uint64_t mnt)
{
	uint64_t file = built_object(guest, 256, 16);

	built_put64(guest, file + guest->pack.at.file_dentry, dentry);
	built_put64(guest, file + guest->pack.at.file_mnt, mnt);
	return file;
}

static inline uint64_t page_struct(uint64_t gpa)
{
	return BUILT_MEMMAP + (gpa >> 12) * BUILT_PAGE_SIZE_OF;
}

static inline void built_page_cache(struct guest_builder *guest, uint64_t file, uint64_t head,
				    uint64_t size)
{
	const struct vp_kernel_pack *pack = &guest->pack;
	uint64_t mapping = built_object(guest, 256, 16), inode = built_object(guest, 256, 16);

	built_put64(guest, file + pack->at.file_mapping, mapping);
	built_put64(guest, mapping + pack->at.mapping_host, inode);
	built_put64(guest, inode + pack->at.inode_mapping, mapping);
	built_put64(guest, mapping + pack->at.mapping_xa_head, head);
	built_put64(guest, inode + pack->at.inode_size, size);
}

struct page_at {
	uint64_t index, gpa;
};

/* The node below `node` for that page, made if it is not there. */
static inline uint64_t node_below(struct guest_builder *guest, uint64_t node, unsigned shift,
				  uint64_t index)
{
	uint64_t slot = node + guest->pack.at.xa_node_slots + 8 * (index >> shift & 63), below;

	memcpy(&below, built_at(guest, slot), sizeof(below));
	if (below)
		return below - 2;
	below = built_object(guest, 576, 16);
	*built_at(guest, below + guest->pack.at.xa_node_shift) = (char)(shift - 6);
	built_put64(guest, slot, below + 2);
	return below;
}

/* A tree of three levels with these pages: enough for a file of 1 GiB. */
static inline uint64_t built_tree(struct guest_builder *guest, const struct page_at *pages,
				  size_t count)
{
	uint64_t top = built_object(guest, 576, 16);

	*built_at(guest, top + guest->pack.at.xa_node_shift) = 12;
	for (size_t i = 0; i < count; i++) {
		uint64_t node = node_below(guest, top, 12, pages[i].index);
		node = node_below(guest, node, 6, pages[i].index);
		built_put64(guest, node + guest->pack.at.xa_node_slots + 8 * (pages[i].index & 63),
			    page_struct(pages[i].gpa));
	}
	return top + 2;
}

/* A page of memory with these bytes; its physical address. */
static inline uint64_t built_page(struct guest_builder *guest, const void *bytes, size_t size)
{
	uint64_t page = built_object(guest, 0x1000, 0x1000);

	memcpy(built_at(guest, page), bytes, size);
	return page - BUILT_DIRECT;
}

/* The root directory, of process 1 too. */
struct root {
	uint64_t dentry, mnt, fs;
};

static inline uint64_t init_task(struct guest_builder *guest)
{
	uint32_t link = guest->pack.at.task_tasks;
	uint64_t next;

	memcpy(&next, guest->image + AT_INIT_TASK + link, sizeof(next));
	return next - link;
}

static inline struct root built_root(struct guest_builder *guest)
{
	struct root root = {.dentry = built_dentry(guest, 0, "/")};

	root.mnt = built_mount(guest, root.dentry, 0, root.dentry);
	root.fs = built_object(guest, 256, 16);
	built_put64(guest, root.fs + guest->pack.at.fs_root_dentry, root.dentry);
	built_put64(guest, root.fs + guest->pack.at.fs_root_mnt, root.mnt);
	built_put64(guest, init_task(guest) + guest->pack.at.task_fs, root.fs);
	return root;
}

/* A process that has `file` mapped; its task. */
static inline uint64_t built_program(struct guest_builder *guest, const struct root *root,
				     uint32_t tgid, uint64_t file)
{
	uint64_t mm = built_mm(guest);

	built_put64(guest, mm + guest->pack.at.mm_maple_root,
		    built_vma(guest, 0x400000, 0x402000, 1, file));
	uint64_t place = built_process(guest, tgid, mm, "prog");
	built_put64(guest, place + guest->pack.at.task_fs, root->fs);
	return place;
}

/* A file with this text in the folder; `hole`: its first page is not in the page cache. */
static inline void built_text_file(struct guest_builder *guest, uint64_t folder, const char *name,
				   const char *text, bool hole)
{
	const struct vp_kernel_pack *pack = &guest->pack;
	uint64_t dentry = built_dentry(guest, folder, name), inode = built_object(guest, 256, 16);
	uint64_t mapping = built_object(guest, 256, 16);
	const struct page_at page = {hole, built_page(guest, text, strlen(text))};

	built_put64(guest, dentry + pack->at.dentry_inode, inode);
	built_put64(guest, inode + pack->at.inode_mapping, mapping);
	built_put64(guest, inode + pack->at.inode_size, strlen(text) + (hole ? 4096 : 0));
	built_put64(guest, mapping + pack->at.mapping_host, inode);
	built_put64(guest, mapping + pack->at.mapping_xa_head, built_tree(guest, &page, 1));
}

#endif
