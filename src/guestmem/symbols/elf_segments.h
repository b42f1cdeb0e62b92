/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the unwind tables and the exported symbols of an ELF file from its program headers. Section
 * headers are at the end of the file and are not loaded, so they are rarely in the guest's page
 * cache. */
#ifndef VP_GUESTMEM_SYMBOLS_ELF_SEGMENTS_H
#define VP_GUESTMEM_SYMBOLS_ELF_SEGMENTS_H

#include <elf.h>

#include "base/macros.h"
#include "guestmem/tasks/pagecache.h"

/* The null section, .eh_frame_hdr, .eh_frame, .dynsym, .dynstr; a missing one has size 0. */
enum { VP_ELF_SEGMENT_SECTIONS = 5 };

struct vp_elf_segments {
	Elf64_Shdr sections[VP_ELF_SEGMENT_SECTIONS]; /* sh_name: offset in `names` */
	const char *names;
	size_t names_size;
};

/* Finds the sections with `count` program headers; false: neither unwind tables nor symbols. */
bool vp_elf_segments_find(const struct vp_guest_file *file, const Elf64_Phdr *segments,
			  unsigned count, struct vp_elf_segments *ret) VP_MUST_CHECK;

#endif
