/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/image.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

#include <gelf.h>
#include <libelf.h>

#include "base/alloc.h"
#include "base/file.h"

/* Bounds against files made to exhaust memory. */
enum {
	MAX_PROGRAM_HEADERS = 4096,
	MAX_SECTIONS = 1 << 20,
	MAX_NAME = 4096,
	MAX_SYMBOLS = 16 << 20,
	MAX_NAMES = 1 << 30,
	MAX_NOTES = 1 << 20,
};

struct segment {
	uint64_t start, end, offset; /* addresses [start, end) are the file's bytes from `offset` */
	bool code;
};

/* One open ELF file. */
struct elf_file {
	const char *label;
	int own_fd; /* closed with the file, if above 0: libelf reads piece by piece */
	Elf *elf;
	uint64_t size;
	VP_VEC(struct segment) segments;
	Elf_Scn *symtab, *dynsym, *debuglink;
	bool has_debugdata;
	struct vp_build_id build_id;
};

static void elf_file_deinit(struct elf_file *file)
{
	vp_vec_deinit(&file->segments);
	if (file->elf)
		elf_end(file->elf);
	if (file->own_fd > 0)
		close(file->own_fd);
	*file = (struct elf_file){0};
}
#define AUTO_ELF_FILE VP_CLEANUP(elf_file_deinit)

static struct vp_error *broken(const struct elf_file *file, const char *what)
{
	const char *why = elf_errmsg(-1);

	return vp_error_new("'%s' is a broken ELF file: expected %s%s%s", file->label, what,
			    why ? ": " : "", why ? why : "");
}

static struct vp_error *read_segments(struct elf_file *file)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count))
		return broken(file, "program headers");
	if (count > MAX_PROGRAM_HEADERS)
		return broken(file, "at most 4096 program headers");
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;
		uint64_t end;
		if (!gelf_getphdr(file->elf, (int)i, &header))
			return broken(file, "program headers inside the file");
		if (header.p_type != PT_LOAD || !header.p_filesz ||
		    __builtin_add_overflow(header.p_vaddr, header.p_filesz, &end))
			continue;
		vp_vec_push(&file->segments, ((struct segment){.start = header.p_vaddr,
							       .end = end,
							       .offset = header.p_offset,
							       .code = header.p_flags & PF_X}));
	}
	return NULL;
}

static void build_id_in_section(struct elf_file *file, Elf_Scn *section, const GElf_Shdr *header)
{
	if (file->build_id.size || header->sh_size > MAX_NOTES)
		return;
	Elf_Data *data = elf_rawdata(section, NULL);
	if (data && data->d_buf)
		vp_build_id_in_notes(data->d_buf, data->d_size, &file->build_id);
}

/* For files without sections: what the kernel and the loader look at. */
static void build_id_in_segments(struct elf_file *file)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count) || count > MAX_PROGRAM_HEADERS)
		return;
	for (size_t i = 0; i < count && !file->build_id.size; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(file->elf, (int)i, &header) || header.p_type != PT_NOTE ||
		    header.p_filesz > MAX_NOTES || header.p_offset > INT64_MAX)
			continue;
		Elf_Data *data = elf_getdata_rawchunk(file->elf, (int64_t)header.p_offset,
						      header.p_filesz, ELF_T_BYTE);
		if (data && data->d_buf)
			vp_build_id_in_notes(data->d_buf, data->d_size, &file->build_id);
	}
}

static void note_section(struct elf_file *file, Elf_Scn *section, const GElf_Shdr *header,
			 const char *name)
{
	if (header->sh_type == SHT_SYMTAB)
		file->symtab = section;
	else if (header->sh_type == SHT_DYNSYM)
		file->dynsym = section;
	else if (header->sh_type == SHT_NOTE)
		build_id_in_section(file, section, header);
	else if (name && !strcmp(name, ".gnu_debuglink"))
		file->debuglink = section;
	else if (name && !strcmp(name, ".gnu_debugdata"))
		file->has_debugdata = true;
}

/* libelf reads a section of names as a whole. */
static bool has_names(const struct elf_file *file, size_t section)
{
	Elf_Scn *names = elf_getscn(file->elf, section);
	GElf_Shdr header;

	return names && gelf_getshdr(names, &header) && header.sh_size <= MAX_NAMES;
}

static struct vp_error *read_sections(struct elf_file *file)
{
	size_t count, names;

	if (elf_getshdrnum(file->elf, &count))
		return broken(file, "section headers");
	if (count > MAX_SECTIONS)
		return broken(file, "at most a million sections");
	if (!count)
		return NULL;
	if (elf_getshdrstrndx(file->elf, &names) || !has_names(file, names))
		names = 0;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
		GElf_Shdr header;
		if (!gelf_getshdr(section, &header))
			return broken(file, "section headers inside the file");
		note_section(file, section, &header,
			     names ? elf_strptr(file->elf, names, header.sh_name) : NULL);
	}
	return NULL;
}

static struct vp_error *elf_file_inspect(struct elf_file *file)
{
	if (!file->elf)
		return broken(file, "readable bytes");
	if (elf_kind(file->elf) != ELF_K_ELF)
		return vp_error_new("'%s' is not an ELF file", file->label);
	VP_TRY(read_segments(file));
	VP_TRY(read_sections(file));
	build_id_in_segments(file);
	return NULL;
}

/* The file is read, not mapped: a mapped file that somebody truncates would kill the reader. */
static struct vp_error *elf_file_open(int fd, const char *label, struct elf_file *file)
{
	struct stat status;

	file->label = label;
	if (fstat(fd, &status))
		return vp_error_errno(errno, "cannot read '%s'", label);
	if (!S_ISREG(status.st_mode))
		return vp_error_new("'%s' is not a regular file", label);
	file->size = (uint64_t)status.st_size;
	elf_version(EV_CURRENT);
	file->elf = elf_begin(fd, ELF_C_READ, NULL);
	return elf_file_inspect(file);
}

/* The file's offset of the address, by the headers of the file that is mapped at run time. */
static bool image_offset_of(const struct elf_file *file, uint64_t addr, uint64_t *offset)
{
	vp_vec_each (&file->segments, segment)
		if (addr >= segment->start && addr < segment->end)
			return !__builtin_add_overflow(segment->offset, addr - segment->start,
						       offset);
	return false;
}

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
	case STT_NOTYPE: /* assembler; but not its local labels, nor ARM's mapping symbols */
		return name[0] != '$' && strncmp(name, ".L", 2) && in_code_section(elf, symbol);
	default:
		return false;
	}
}

/* Preference among several names for one place: sized before unsized, global before local, plain
 * before _plain. */
static uint8_t rank_of(const GElf_Sym *symbol, const char *name)
{
	unsigned binding = GELF_ST_BIND(symbol->st_info), rank = 0;

	rank += symbol->st_size ? 0 : 64;
	rank += binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 8 : 16;
	for (unsigned i = 0; i < 4 && name[i] == '_'; i++)
		rank++;
	return (uint8_t)rank;
}

static void image_keep_symbol(struct vp_image *image, const GElf_Sym *symbol, const char *name,
			      uint64_t offset)
{
	size_t length = strnlen(name, MAX_NAME);
	struct vp_image_symbol *kept = vp_vec_push_slot(&image->symbols);

	*kept = (struct vp_image_symbol){.offset = offset,
					 .size = symbol->st_size,
					 .name = (uint32_t)image->names.size,
					 .rank = rank_of(symbol, name)};
	char *copy = vp_buffer_extend(&image->names, length + 1);
	memcpy(copy, name, length);
	copy[length] = 0;
}

/* Adds one symbol table of `file`, whose addresses are those of `main`'s program headers. */
static struct vp_error *read_table(const struct elf_file *file, Elf_Scn *section,
				   const struct elf_file *main, struct vp_image *image)
{
	GElf_Shdr header;
	size_t entry = gelf_fsize(file->elf, ELF_T_SYM, 1, EV_CURRENT);

	if (!gelf_getshdr(section, &header) || header.sh_size > file->size || !entry ||
	    header.sh_size / entry > MAX_SYMBOLS)
		return broken(file, "a symbol table no larger than the file");
	if (!has_names(file, header.sh_link))
		return broken(file, "names of symbols, of less than a gigabyte");
	Elf_Data *data = elf_getdata(section, NULL);
	if (!data || !data->d_buf)
		return broken(file, "the symbol table inside the file");
	size_t count = data->d_size / entry;
	for (size_t i = 0; i < count; i++) {
		GElf_Sym symbol;
		uint64_t offset;
		if (!gelf_getsym(data, (int)i, &symbol))
			return broken(file, "whole symbols");
		const char *name = elf_strptr(file->elf, header.sh_link, symbol.st_name);
		if (!name || !*name || !names_code(file->elf, &symbol, name) ||
		    !image_offset_of(main, symbol.st_value, &offset))
			continue;
		if (image->names.size > MAX_NAMES)
			return broken(file, "less than a gigabyte of symbol names");
		image_keep_symbol(image, &symbol, name, offset);
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

static void image_sort_symbols(struct vp_image *image)
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
static bool open_debug(const char *path, const struct elf_file *main, struct elf_file *debug)
{
	int fd = vp_file_open_regular(path, VP_IMAGE_MAX_BYTES, 0);

	if (fd < 0)
		return false;
	debug->own_fd = fd;
	VP_AUTO_ERROR struct vp_error *error = elf_file_open(fd, path, debug);
	if (!error && debug->symtab && vp_build_id_equal(&main->build_id, &debug->build_id))
		return true;
	elf_file_deinit(debug);
	return false;
}

static char *debug_path_by_id(const struct elf_file *main, const char *root, const char *debug_dir)
{
	struct vp_buffer digits = {0};

	vp_build_id_put(&main->build_id, &digits);
	const char *text = vp_buffer_text(&digits);
	char *path = vp_format("%s%s/.build-id/%.2s/%s.debug", root, debug_dir, text, text + 2);
	vp_buffer_deinit(&digits);
	return path;
}

/* The name in .gnu_debuglink, or NULL. The checksum after it is not looked at: build-ids match. */
static char *debuglink_name(const struct elf_file *main)
{
	GElf_Shdr header;
	bool fits = main->debuglink && gelf_getshdr(main->debuglink, &header) &&
		    header.sh_size <= MAX_NOTES;
	Elf_Data *data = fits ? elf_rawdata(main->debuglink, NULL) : NULL;

	if (!data || !data->d_buf || !data->d_size)
		return NULL;
	size_t length = strnlen(data->d_buf, data->d_size);
	if (!length || length == data->d_size || length > 255 || memchr(data->d_buf, '/', length) ||
	    !main->build_id.size)
		return NULL;
	return vp_strndup(data->d_buf, length);
}

static bool find_debug(const struct elf_file *main, const char *path,
		       const struct vp_image_locations *locations, struct elf_file *debug)
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

static struct vp_error *read_symbols(const struct elf_file *main, const struct elf_file *debug,
				     struct vp_image *image)
{
	struct vp_error *error = NULL;

	image->build_id = main->build_id;
	if (main->symtab)
		error = read_table(main, main->symtab, main, image);
	else if (debug)
		error = read_table(debug, debug->symtab, main, image);
	if (!error && main->dynsym)
		error = read_table(main, main->dynsym, main, image);
	image->has_symtab = main->symtab || debug;
	image->has_debugdata = main->has_debugdata && !main->symtab && !debug;
	image_sort_symbols(image);
	return error;
}

struct vp_error *vp_image_read(int fd, const char *path, const struct vp_image_locations *locations,
			       struct vp_image *image)
{
	AUTO_ELF_FILE struct elf_file main = {0};
	AUTO_ELF_FILE struct elf_file debug = {0};

	*image = (struct vp_image){0};
	VP_TRY(elf_file_open(fd, path, &main));
	bool found = !main.symtab && find_debug(&main, path, locations, &debug);
	return read_symbols(&main, found ? &debug : NULL, image);
}

struct vp_error *vp_image_read_memory(const void *bytes, size_t size, const char *label,
				      struct vp_image *image)
{
	AUTO_ELF_FILE struct elf_file main = {.label = label, .size = size};
	/* libelf wants to write: some of its readers convert in place. */
	VP_AUTO_FREE char *copy = vp_realloc_array(NULL, size, 1);

	*image = (struct vp_image){0};
	memcpy(copy, bytes, size);
	elf_version(EV_CURRENT);
	main.elf = elf_memory(copy, size);
	struct vp_error *error = elf_file_inspect(&main);
	if (!error)
		error = read_symbols(&main, NULL, image);
	elf_file_deinit(&main);
	return error;
}

struct vp_error *vp_image_read_build_id(int fd, const char *path, struct vp_build_id *id)
{
	AUTO_ELF_FILE struct elf_file main = {0};

	*id = (struct vp_build_id){0};
	VP_TRY(elf_file_open(fd, path, &main));
	*id = main.build_id;
	return NULL;
}

void vp_image_deinit(struct vp_image *image)
{
	vp_vec_deinit(&image->symbols);
	vp_buffer_deinit(&image->names);
	*image = (struct vp_image){0};
}
