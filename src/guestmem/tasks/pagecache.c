/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/tasks/pagecache.h"

#include <elf.h>
#include <linux/magic.h>
#include <string.h>

#include "base/map.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"
#include "guestmem/memory/memory.h"
#include "maps/format.h"

enum {
	PAGE = 4096,
	PAGE_BITS = 12,
	MAX_LEVELS = 11, /* of a tree with 6 bits per level */
	SLOT_BITS = 6,
	MAX_PROGRAM_HEADERS = 64,
	MAX_NOTES = 8192,
	MAX_LAYERS = 3, /* nested overlayfs */
};

/* Opens the file whose pointer to a struct address_space is at `mapping_at`. */
static bool open_mapping(const struct vp_guest_kernel *kernel, uint64_t mapping_at,
			 struct vp_guest_file *ret)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const struct vp_guest_view *view = &kernel->view;
	uint64_t mapping;

	*ret = (struct vp_guest_file){.kernel = kernel, .memmap = kernel->memmap};
	return kernel->memmap && pack->page_size_of && pack->at.mapping_host != VP_PACK_NONE &&
	       pack->at.inode_size != VP_PACK_NONE && pack->at.mapping_xa_head != VP_PACK_NONE &&
	       pack->at.xa_node_shift != VP_PACK_NONE && pack->at.xa_node_slots != VP_PACK_NONE &&
	       vp_guest_view_u64(view, mapping_at, &mapping) &&
	       vp_guest_view_u64(view, mapping + pack->at.mapping_xa_head, &ret->pages) &&
	       vp_guest_view_u64(view, mapping + pack->at.mapping_host, &ret->inode) &&
	       vp_guest_view_u64(view, ret->inode + pack->at.inode_size, &ret->size);
}

bool vp_guest_file_open(const struct vp_guest_kernel *kernel, uint64_t file,
			struct vp_guest_file *ret)
{
	return kernel->pack.at.file_mapping != VP_PACK_NONE &&
	       open_mapping(kernel, file + kernel->pack.at.file_mapping, ret);
}

/* Returns the inode with the pages: for overlayfs, that of the file in the upper layer. struct
 * ovl_inode starts with a struct inode, followed by the upper layer's dentry (the BTF of its module
 * is not read). */
static uint64_t inode_with_pages(const struct vp_guest_kernel *kernel, uint64_t inode)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const struct vp_guest_view *view = &kernel->view;
	uint64_t super, magic, dentry, upper;

	if (pack->at.inode_sb == VP_PACK_NONE || pack->at.sb_magic == VP_PACK_NONE ||
	    pack->at.dentry_inode == VP_PACK_NONE || !pack->inode_size_of)
		return inode;
	for (unsigned i = 0; i < MAX_LAYERS; i++) {
		if (!vp_guest_view_u64(view, inode + pack->at.inode_sb, &super) ||
		    !vp_guest_view_u64(view, super + pack->at.sb_magic, &magic) ||
		    magic != OVERLAYFS_SUPER_MAGIC)
			return inode;
		if (!vp_guest_view_u64(view, inode + pack->inode_size_of, &dentry) || !dentry ||
		    !vp_guest_view_u64(view, dentry + pack->at.dentry_inode, &upper) || !upper)
			return inode;
		inode = upper;
	}
	return inode;
}

bool vp_guest_file_open_inode(const struct vp_guest_kernel *kernel, uint64_t inode,
			      struct vp_guest_file *ret)
{
	inode = inode_with_pages(kernel, inode);
	return kernel->pack.at.inode_mapping != VP_PACK_NONE &&
	       open_mapping(kernel, inode + kernel->pack.at.inode_mapping, ret);
}

/* Whether an XArray entry is a node or a sibling: their low bits are 10. Values have bit 0 set. */
static bool is_internal(uint64_t entry)
{
	return (entry & 3) == 2;
}

/* Finds the entry of page `index`, and its distance in pages from the entry's first page. */
static bool pagecache_find_entry(const struct vp_guest_file *file, uint64_t index, uint64_t *entry,
				 uint64_t *behind)
{
	const struct vp_kernel_pack *pack = &file->kernel->pack;
	const struct vp_guest_view *view = &file->kernel->view;

	*entry = file->pages;
	*behind = 0;
	if (index && !is_internal(*entry)) /* page 0 only */
		return false;
	for (unsigned level = 0; is_internal(*entry); level++) {
		uint64_t node = *entry - 2, slot;
		uint8_t shift;
		if (level == MAX_LEVELS || *entry < PAGE ||
		    !vp_guest_view_read(view, node + pack->at.xa_node_shift, &shift, 1) ||
		    shift > 60)
			return false;
		/* A tree has as many levels as its last page needs: others are not resident. */
		if (!level && index >> shift >> SLOT_BITS)
			return false;
		slot = (index >> shift) & ((1 << SLOT_BITS) - 1);
		uint64_t slots = node + pack->at.xa_node_slots;
		if (!vp_guest_view_u64(view, slots + 8 * slot, entry))
			return false;
		if (is_internal(*entry) && *entry < 4 << SLOT_BITS) { /* a sibling */
			slot = *entry >> 2;
			if (!vp_guest_view_u64(view, slots + 8 * slot, entry) ||
			    is_internal(*entry))
				return false;
		}
		uint64_t start = ((index >> shift >> SLOT_BITS << SLOT_BITS) | slot) << shift;
		*behind = index - start;
	}
	return *entry && !(*entry & 3);
}

static bool find_page(const struct vp_guest_file *file, uint64_t index, uint64_t *gpa)
{
	uint64_t page, behind;

	if (!pagecache_find_entry(file, index, &page, &behind))
		return false;
	uint64_t distance = page - file->memmap;
	if (page < file->memmap || distance % file->kernel->pack.page_size_of)
		return false;
	*gpa = (distance / file->kernel->pack.page_size_of + behind)
	       << file->kernel->view.paging.page_bits;
	return true;
}

bool vp_guest_file_read(const struct vp_guest_file *file, uint64_t offset, void *bytes, size_t size)
{
	const unsigned page_bits = file->kernel->view.paging.page_bits;
	const uint64_t page = 1ULL << page_bits;
	char *to = bytes;

	if (offset > file->size || size > file->size - offset)
		return false;
	while (size) {
		uint64_t inside = offset & (page - 1), gpa;
		size_t piece = page - inside < size ? page - inside : size;
		if (!find_page(file, offset >> page_bits, &gpa) ||
		    !vp_guest_memory_read(file->kernel->view.memory, gpa + inside, to, piece))
			return false;
		to += piece;
		offset += piece;
		size -= piece;
	}
	return true;
}

static bool pagecache_read_header(vp_file_bytes get, void *context, Elf64_Ehdr *header)
{
	return get(context, 0, header, sizeof(*header)) &&
	       !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB;
}

bool vp_file_build_id(vp_file_bytes get, void *context, struct vp_build_id *ret)
{
	Elf64_Ehdr header;

	*ret = (struct vp_build_id){0};
	if (!pagecache_read_header(get, context, &header) ||
	    header.e_phentsize != sizeof(Elf64_Phdr))
		return false;
	for (unsigned i = 0; i < header.e_phnum && i < MAX_PROGRAM_HEADERS; i++) {
		char notes[MAX_NOTES];
		Elf64_Phdr segment;
		if (!get(context, header.e_phoff + i * sizeof(segment), &segment, sizeof(segment)))
			return false;
		if (segment.p_type == PT_NOTE && segment.p_filesz <= sizeof(notes) &&
		    get(context, segment.p_offset, notes, segment.p_filesz) &&
		    vp_build_id_in_notes(notes, segment.p_filesz, ret))
			return true;
	}
	return false;
}

static bool read_of_guest(void *context, uint64_t offset, void *bytes, size_t size)
{
	return vp_guest_file_read(context, offset, bytes, size);
}

bool vp_guest_file_build_id(const struct vp_guest_file *file, struct vp_build_id *ret)
{
	struct vp_guest_file source = *file;

	return vp_file_build_id(read_of_guest, &source, ret);
}

uint64_t vp_guest_file_print(const struct vp_guest_file *file)
{
	uint64_t words[PAGE / sizeof(uint64_t)] = {0}, hash = vp_hash64(file->size);

	if (!vp_guest_file_read(file, 0, words, file->size < PAGE ? file->size : PAGE))
		return 0;
	for (size_t i = 0; i < VP_ARRAY_SIZE(words); i++)
		hash = vp_hash64(hash ^ words[i]) + i;
	return hash ? hash : 1;
}
