/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/image.h"

#include <inttypes.h>
#include <libgen.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/file.h"
#include "maps/code_ranges.h"
#include "maps/elf_file.h"
#include "maps/image_private.h"
#include "maps/xz.h"

/* Limits against files that would exhaust memory. */
enum {
	MAX_NAME = 4096,
	MAX_SYMBOLS = 16 << 20,
	MAX_DEBUGDATA = 64 << 20, /* decompressed */
};

static bool in_code_section(Elf *elf, const GElf_Sym *symbol)
{
	GElf_Shdr header;

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE)
		return false;
	Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);
	return section && gelf_getshdr(section, &header) && (header.sh_flags & SHF_EXECINSTR);
}

static bool names_code(Elf *elf, const GElf_Sym *symbol, const char *name)
{
	switch (GELF_ST_TYPE(symbol->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return symbol->st_shndx != SHN_UNDEF;
	case STT_NOTYPE: /* assembler code; excludes local labels and ARM's mapping symbols */
		return name[0] != '$' && strncmp(name, ".L", 2) && in_code_section(elf, symbol);
	default:
		return false;
	}
}

/* Preference among symbols of an address: with size, then global, then without leading
 * underscore. */
static uint8_t rank_of(const GElf_Sym *symbol, const char *name)
{
	unsigned binding = GELF_ST_BIND(symbol->st_info), rank = 0;

	rank += symbol->st_size ? 0 : 64;
	rank += binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 8 : 16;
	for (unsigned i = 0; i < 4 && name[i] == '_'; i++)
		rank++;
	return (uint8_t)rank;
}

void vp_image_add(struct vp_image *image, const struct vp_image_symbol *symbol,
		  struct vp_slice name)
{
	size_t length = name.size < MAX_NAME ? name.size : MAX_NAME;
	struct vp_image_symbol *kept = vp_vec_push_slot(&image->symbols);

	*kept = *symbol;
	kept->name = (uint32_t)image->names.size;
	char *copy = vp_buffer_extend(&image->names, length + 1);
	memcpy(copy, name.bytes, length);
	copy[length] = 0;
}

/* Adds a symbol table of `file`, whose addresses are relative to `main`'s program headers. */
static struct vp_error *read_table(const struct vp_elf_file *file, Elf_Scn *section,
				   const struct vp_elf_file *main, struct vp_image *image)
{
	GElf_Shdr header;
	size_t entry = gelf_fsize(file->elf, ELF_T_SYM, 1, EV_CURRENT);

	if (!gelf_getshdr(section, &header) || header.sh_size > file->size || !entry ||
	    header.sh_size / entry > MAX_SYMBOLS)
		return vp_elf_broken(file, "a symbol table no larger than the file");
	if (!vp_elf_has_names(file, header.sh_link))
		return vp_elf_broken(file, "less than a gigabyte of symbol names");
	Elf_Data *data = elf_getdata(section, NULL);
	if (!data || !data->d_buf)
		return vp_elf_broken(file, "the symbol table inside the file");
	size_t count = data->d_size / entry;
	for (size_t i = 0; i < count; i++) {
		GElf_Sym symbol;
		uint64_t offset;
		if (!gelf_getsym(data, (int)i, &symbol))
			return vp_elf_broken(file, "whole symbols");
		const char *name = elf_strptr(file->elf, header.sh_link, symbol.st_name);
		if (!name || !*name || !names_code(file->elf, &symbol, name) ||
		    !vp_elf_offset_of(main, symbol.st_value, &offset))
			continue;
		if (image->names.size > VP_ELF_MAX_NAMES)
			return vp_elf_broken(file, "less than a gigabyte of symbol names");
		const struct vp_image_symbol kept = {
		    .offset = offset, .size = symbol.st_size, .rank = rank_of(&symbol, name)};
		vp_image_add(image, &kept, (struct vp_slice){name, strlen(name)});
	}
	return NULL;
}

static int by_offset(const void *left, const void *right)
{
	const struct vp_image_symbol *a = left, *b = right;

	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

void vp_image_sort(struct vp_image *image)
{
	size_t kept = 0;

	if (!image->symbols.count)
		return;
	qsort(image->symbols.at, image->symbols.count, sizeof(*image->symbols.at), by_offset);
	for (size_t i = 0; i < image->symbols.count; i++)
		if (!kept || image->symbols.at[i].offset != image->symbols.at[kept - 1].offset)
			image->symbols.at[kept++] = image->symbols.at[i];
	image->symbols.count = kept;
}

/* Opens a debug file and checks that it belongs to `main`. */
static bool open_debug(const char *path, const struct vp_elf_file *main, struct vp_elf_file *debug)
{
	int fd = vp_file_open_regular(path, VP_IMAGE_MAX_BYTES, 0);

	if (fd < 0)
		return false;
	debug->own_fd = fd;
	VP_AUTO_ERROR struct vp_error *error = vp_elf_file_open(fd, path, debug);
	if (!error && debug->section[VP_ELF_SYMTAB] &&
	    vp_build_id_equal(&main->build_id, &debug->build_id))
		return true;
	vp_elf_file_deinit(debug);
	return false;
}

static char *debug_path_by_id(const struct vp_elf_file *main, const char *root,
			      const char *debug_dir)
{
	struct vp_buffer digits = {0};

	vp_build_id_put(&main->build_id, &digits);
	const char *text = vp_buffer_text(&digits);
	char *path = vp_format("%s%s/.build-id/%.2s/%s.debug", root, debug_dir, text, text + 2);
	vp_buffer_deinit(&digits);
	return path;
}

/* The name in .gnu_debuglink, or NULL. Its checksum is not verified: build-ids match. */
static char *debuglink_name(const struct vp_elf_file *main)
{
	GElf_Shdr header;
	bool fits = main->section[VP_ELF_DEBUGLINK] &&
		    gelf_getshdr(main->section[VP_ELF_DEBUGLINK], &header) &&
		    header.sh_size <= VP_ELF_MAX_NOTES;
	Elf_Data *data = fits ? elf_rawdata(main->section[VP_ELF_DEBUGLINK], NULL) : NULL;

	if (!data || !data->d_buf || !data->d_size)
		return NULL;
	size_t length = strnlen(data->d_buf, data->d_size);
	if (!length || length == data->d_size || length > 255 || memchr(data->d_buf, '/', length) ||
	    !main->build_id.size)
		return NULL;
	return vp_strndup(data->d_buf, length);
}

static bool find_debug(const struct vp_elf_file *main, const char *path,
		       const struct vp_image_locations *locations, struct vp_elf_file *debug)
{
	const char *root = locations && locations->root ? locations->root : "";
	const char *debug_dir =
	    locations && locations->debug_dir ? locations->debug_dir : "/usr/lib/debug";

	if (locations && locations->debug_file && open_debug(locations->debug_file, main, debug))
		return true;
	if (main->build_id.size >= 2) {
		VP_AUTO_FREE char *by_id = debug_path_by_id(main, root, debug_dir);
		if (open_debug(by_id, main, debug))
			return true;
	}
	VP_AUTO_FREE char *name = debuglink_name(main);
	if (!name)
		return false;
	VP_AUTO_FREE char *copy = vp_strdup(path);
	const char *folder = dirname(copy);
	VP_AUTO_FREE char *beside = vp_format("%s%s/%s", root, folder, name);
	VP_AUTO_FREE char *below = vp_format("%s%s/.debug/%s", root, folder, name);
	VP_AUTO_FREE char *apart = vp_format("%s%s%s/%s", root, debug_dir, folder, name);
	return open_debug(beside, main, debug) || open_debug(below, main, debug) ||
	       open_debug(apart, main, debug);
}

/* Adds the small compressed symbol table (mini debuginfo) of Fedora's stripped files. */
static void read_debugdata(const struct vp_elf_file *main, struct vp_image *image)
{
	VP_AUTO_ELF_FILE struct vp_elf_file small = {0};
	struct vp_section_bytes packed;
	struct vp_buffer bytes = {0};

	if (vp_elf_section_bytes(main, VP_ELF_DEBUGDATA, &packed) &&
	    vp_xz_unpack(packed.bytes, packed.size, MAX_DEBUGDATA, &bytes)) {
		struct vp_error *error =
		    vp_elf_file_open_memory(bytes.bytes, bytes.size, main->label, &small);
		if (!error && small.section[VP_ELF_SYMTAB])
			error = read_table(&small, small.section[VP_ELF_SYMTAB], main, image);
		vp_error_free(error);
	}
	vp_elf_file_deinit(&small);
	vp_buffer_deinit(&bytes);
}

static struct vp_error *read_symbols(const struct vp_elf_file *main,
				     const struct vp_elf_file *debug, struct vp_image *image)
{
	struct vp_error *error = NULL;

	image->build_id = main->build_id;
	if (main->section[VP_ELF_SYMTAB])
		error = read_table(main, main->section[VP_ELF_SYMTAB], main, image);
	else if (debug)
		error = read_table(debug, debug->section[VP_ELF_SYMTAB], main, image);
	else
		read_debugdata(main, image);
	if (!error && main->section[VP_ELF_DYNSYM])
		error = read_table(main, main->section[VP_ELF_DYNSYM], main, image);
	image->has_symtab = main->section[VP_ELF_SYMTAB] || debug;
	if (!image->has_symtab)
		vp_image_add_go(image, main);
	vp_image_add_plt(image, main);
	vp_image_sort(image);
	vp_image_add_extents(image, main);
	return error;
}

struct vp_error *vp_image_read(int fd, const char *path, const struct vp_image_locations *locations,
			       struct vp_image *image)
{
	VP_AUTO_ELF_FILE struct vp_elf_file main = {0};
	VP_AUTO_ELF_FILE struct vp_elf_file debug = {0};

	*image = (struct vp_image){0};
	VP_TRY(vp_elf_file_open(fd, path, &main));
	bool found = !main.section[VP_ELF_SYMTAB] && find_debug(&main, path, locations, &debug);
	return read_symbols(&main, found ? &debug : NULL, image);
}

struct vp_error *vp_image_read_memory(const void *bytes, size_t size, const char *label,
				      struct vp_image *image)
{
	struct vp_elf_file main = {0};
	/* A writable copy: some of libelf's readers convert in place. */
	VP_AUTO_FREE char *copy = vp_realloc_array(NULL, size, 1);

	*image = (struct vp_image){0};
	memcpy(copy, bytes, size);
	struct vp_error *error = vp_elf_file_open_memory(copy, size, label, &main);
	if (!error)
		error = read_symbols(&main, NULL, image);
	vp_elf_file_deinit(&main);
	return error;
}

struct vp_error *vp_image_read_build_id(int fd, const char *path, struct vp_build_id *id)
{
	VP_AUTO_ELF_FILE struct vp_elf_file main = {0};

	*id = (struct vp_build_id){0};
	VP_TRY(vp_elf_file_open(fd, path, &main));
	*id = main.build_id;
	return NULL;
}

void vp_image_deinit(struct vp_image *image)
{
	vp_vec_deinit(&image->symbols);
	vp_buffer_deinit(&image->names);
	*image = (struct vp_image){0};
}
