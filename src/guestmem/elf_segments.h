/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sections of an ELF file without its section headers. They are at the end of a file and not
 * loaded, so a guest seldom has them in its page cache. The loader's headers lead to the unwind
 * tables and to the exported symbols.
 */
#ifndef VP_GUESTMEM_ELF_SEGMENTS_H
#define VP_GUESTMEM_ELF_SEGMENTS_H

#include <elf.h>

#include "base/macros.h"
#include "guestmem/pagecache.h"

/* The null section, .eh_frame_hdr, .eh_frame, .dynsym, .dynstr; one that is unknown has size 0. */
enum { VP_ELF_SEGMENT_SECTIONS = 5 };

struct vp_elf_segments {
	Elf64_Shdr sections[VP_ELF_SEGMENT_SECTIONS]; /* sh_name: in `names` */
	const char *names;
	size_t names_size;
};

/* Finds the sections by `count` program headers; false: neither unwind tables nor symbols. */
bool vp_elf_segments_find(const struct vp_guest_file *file, const Elf64_Phdr *segments,
			  unsigned count, struct vp_elf_segments *ret) VP_MUST_CHECK;

#endif
