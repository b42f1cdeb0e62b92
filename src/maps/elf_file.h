/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An open ELF file: its segments, and the sections with symbols or functions. */
#ifndef VP_MAPS_ELF_FILE_H
#define VP_MAPS_ELF_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <gelf.h>
#include <libelf.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "maps/code_ranges.h"
#include "maps/format.h"

/* Bounds against files made to exhaust memory. */
enum {
	VP_ELF_MAX_NAMES = 1 << 30,
	VP_ELF_MAX_NOTES = 1 << 20,
	VP_ELF_MAX_TABLE = 256 << 20, /* bytes of a section that is read as a whole */
};

struct vp_elf_segment {
	uint64_t start, end, offset; /* addresses [start, end) are in the file at `offset` */
	bool code;
};

/* Sections by purpose; a file may have several of some kinds. */
enum vp_elf_section {
	VP_ELF_SYMTAB,
	VP_ELF_DYNSYM,
	VP_ELF_DEBUGLINK,
	VP_ELF_DEBUGDATA,
	VP_ELF_TEXT,
	VP_ELF_EH_FRAME,
	VP_ELF_EH_FRAME_HDR,
	VP_ELF_GO_TABLE,  /* function names of Go programs; its section's name varies */
	VP_ELF_GO_MODULE, /* from Go 1.26 on */
	VP_ELF_GO_BUILDINFO,
	VP_ELF_REL_RO, /* of a position-independent Go program: contains that table */
	VP_ELF_PLT,
	VP_ELF_PLT_SEC,
	VP_ELF_PLT_GOT,
	VP_ELF_RELA_PLT,
	VP_ELF_RELA_DYN,
	VP_ELF_SECTIONS
};

struct vp_elf_file {
	const char *label;
	int own_fd; /* closed with the file, if above 0; libelf reads the file on demand */
	Elf *elf;
	uint64_t size;
	VP_VEC(struct vp_elf_segment) segments;
	Elf_Scn *section[VP_ELF_SECTIONS]; /* NULL: no such section */
	struct vp_build_id build_id;
};

/* The kind of a section by its name; false for other sections. */
bool vp_elf_section_of_name(const char *name, enum vp_elf_section *ret);

/* Opens a file for reading. It is not mapped: if another process truncated a mapped file, the
 * reader would get SIGBUS. */
struct vp_error *vp_elf_file_open(int fd, const char *label,
				  struct vp_elf_file *file) VP_MUST_CHECK;
/* Opens an ELF image in memory, which libelf may modify and which must outlive the file. */
struct vp_error *vp_elf_file_open_memory(char *bytes, size_t size, const char *label,
					 struct vp_elf_file *file) VP_MUST_CHECK;
void vp_elf_file_deinit(struct vp_elf_file *file);
#define VP_AUTO_ELF_FILE VP_CLEANUP(vp_elf_file_deinit)

/* The error "'LABEL' is a broken ELF file: expected `what`". */
struct vp_error *vp_elf_broken(const struct vp_elf_file *file, const char *what);
/* Whether section `number` is a string table of acceptable size: libelf reads it as a whole. */
bool vp_elf_has_names(const struct vp_elf_file *file, size_t number);
/* File offset of an address, and of an address of code. */
bool vp_elf_offset_of(const struct vp_elf_file *file, uint64_t addr, uint64_t *offset);
bool vp_elf_code_offset_of(const struct vp_elf_file *file, uint64_t addr, uint64_t *offset);
/* The contents of a section, valid as long as the file is open; false: missing, or too large. */
bool vp_elf_section_bytes(const struct vp_elf_file *file, enum vp_elf_section which,
			  struct vp_section_bytes *ret);

#endif
