/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/elf_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

enum {
	MAX_PROGRAM_HEADERS = 4096,
	MAX_SECTIONS = 1 << 20,
};

void vp_elf_file_deinit(struct vp_elf_file *file)
{
	vp_vec_deinit(&file->segments);
	if (file->elf)
		elf_end(file->elf);
	if (file->own_fd > 0)
		close(file->own_fd);
	*file = (struct vp_elf_file){0};
}

struct vp_error *vp_elf_broken(const struct vp_elf_file *file, const char *what)
{
	const char *why = elf_errmsg(-1);

	return vp_error_new("'%s' is a broken ELF file: expected %s%s%s", file->label, what,
			    why ? ": " : "", why ? why : "");
}

static struct vp_error *read_segments(struct vp_elf_file *file)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count))
		return vp_elf_broken(file, "program headers");
	if (count > MAX_PROGRAM_HEADERS)
		return vp_elf_broken(file, "at most 4096 program headers");
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;
		uint64_t end;
		if (!gelf_getphdr(file->elf, (int)i, &header))
			return vp_elf_broken(file, "program headers inside the file");
		if (header.p_type != PT_LOAD || !header.p_filesz ||
		    __builtin_add_overflow(header.p_vaddr, header.p_filesz, &end))
			continue;
		vp_vec_push(&file->segments,
			    ((struct vp_elf_segment){.start = header.p_vaddr,
						     .end = end,
						     .offset = header.p_offset,
						     .code = header.p_flags & PF_X}));
	}
	return NULL;
}

static void build_id_in_section(struct vp_elf_file *file, Elf_Scn *section, const GElf_Shdr *header)
{
	if (file->build_id.size || header->sh_size > VP_ELF_MAX_NOTES)
		return;
	Elf_Data *data = elf_rawdata(section, NULL);
	if (data && data->d_buf)
		vp_build_id_in_notes(data->d_buf, data->d_size, &file->build_id);
}

/* For files without sections: searches the notes of the program headers, as the kernel and the
 * loader do. */
static void build_id_in_segments(struct vp_elf_file *file)
{
	size_t count;

	if (elf_getphdrnum(file->elf, &count) || count > MAX_PROGRAM_HEADERS)
		return;
	for (size_t i = 0; i < count && !file->build_id.size; i++) {
		GElf_Phdr header;
		if (!gelf_getphdr(file->elf, (int)i, &header) || header.p_type != PT_NOTE ||
		    header.p_filesz > VP_ELF_MAX_NOTES || header.p_offset > INT64_MAX)
			continue;
		Elf_Data *data = elf_getdata_rawchunk(file->elf, (int64_t)header.p_offset,
						      header.p_filesz, ELF_T_BYTE);
		if (data && data->d_buf)
			vp_build_id_in_notes(data->d_buf, data->d_size, &file->build_id);
	}
}

bool vp_elf_section_of_name(const char *name, enum vp_elf_section *ret)
{
	static const struct {
		const char *name;
		enum vp_elf_section which;
	} known[] = {
	    {".gnu_debuglink", VP_ELF_DEBUGLINK},
	    {".gnu_debugdata", VP_ELF_DEBUGDATA},
	    {".text", VP_ELF_TEXT},
	    {".eh_frame", VP_ELF_EH_FRAME},
	    {".eh_frame_hdr", VP_ELF_EH_FRAME_HDR},
	    {".gopclntab", VP_ELF_GO_TABLE},
	    {".data.rel.ro.gopclntab", VP_ELF_GO_TABLE},
	    {".go.module", VP_ELF_GO_MODULE},
	    {".go.buildinfo", VP_ELF_GO_BUILDINFO},
	    {".data.rel.ro", VP_ELF_REL_RO},
	    {".plt", VP_ELF_PLT},
	    {".plt.sec", VP_ELF_PLT_SEC},
	    {".plt.got", VP_ELF_PLT_GOT},
	    {".rela.plt", VP_ELF_RELA_PLT},
	    {".rela.dyn", VP_ELF_RELA_DYN},
	};

	for (size_t i = 0; i < VP_ARRAY_SIZE(known); i++)
		if (!strcmp(name, known[i].name)) {
			*ret = known[i].which;
			return true;
		}
	return false;
}

static void note_section(struct vp_elf_file *file, Elf_Scn *section, const GElf_Shdr *header,
			 const char *name)
{
	enum vp_elf_section which;

	if (header->sh_type == SHT_SYMTAB)
		file->section[VP_ELF_SYMTAB] = section;
	else if (header->sh_type == SHT_DYNSYM)
		file->section[VP_ELF_DYNSYM] = section;
	else if (header->sh_type == SHT_NOTE)
		build_id_in_section(file, section, header);
	else if (name && vp_elf_section_of_name(name, &which))
		file->section[which] = section;
}

bool vp_elf_has_names(const struct vp_elf_file *file, size_t number)
{
	Elf_Scn *names = elf_getscn(file->elf, number);
	GElf_Shdr header;

	return names && gelf_getshdr(names, &header) && header.sh_size <= VP_ELF_MAX_NAMES;
}

static struct vp_error *read_sections(struct vp_elf_file *file)
{
	size_t count, names;

	if (elf_getshdrnum(file->elf, &count))
		return vp_elf_broken(file, "section headers");
	if (count > MAX_SECTIONS)
		return vp_elf_broken(file, "at most a million sections");
	if (!count)
		return NULL;
	if (elf_getshdrstrndx(file->elf, &names) || !vp_elf_has_names(file, names))
		names = 0;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
		GElf_Shdr header;
		if (!gelf_getshdr(section, &header))
			return vp_elf_broken(file, "section headers inside the file");
		note_section(file, section, &header,
			     names ? elf_strptr(file->elf, names, header.sh_name) : NULL);
	}
	return NULL;
}

static struct vp_error *elf_file_inspect(struct vp_elf_file *file)
{
	if (!file->elf)
		return vp_elf_broken(file, "readable bytes");
	if (elf_kind(file->elf) != ELF_K_ELF)
		return vp_error_new("'%s' is not an ELF file", file->label);
	VP_TRY(read_segments(file));
	VP_TRY(read_sections(file));
	build_id_in_segments(file);
	return NULL;
}

struct vp_error *vp_elf_file_open(int fd, const char *label, struct vp_elf_file *file)
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

struct vp_error *vp_elf_file_open_memory(char *bytes, size_t size, const char *label,
					 struct vp_elf_file *file)
{
	file->label = label;
	file->size = size;
	elf_version(EV_CURRENT);
	file->elf = elf_memory(bytes, size);
	return elf_file_inspect(file);
}

static bool offset_of(const struct vp_elf_file *file, uint64_t addr, bool code, uint64_t *offset)
{
	vp_vec_each (&file->segments, segment)
		if (addr >= segment->start && addr < segment->end && (segment->code || !code))
			return !__builtin_add_overflow(segment->offset, addr - segment->start,
						       offset);
	return false;
}

bool vp_elf_offset_of(const struct vp_elf_file *file, uint64_t addr, uint64_t *offset)
{
	return offset_of(file, addr, false, offset);
}

bool vp_elf_code_offset_of(const struct vp_elf_file *file, uint64_t addr, uint64_t *offset)
{
	return offset_of(file, addr, true, offset);
}

bool vp_elf_section_bytes(const struct vp_elf_file *file, enum vp_elf_section which,
			  struct vp_section_bytes *ret)
{
	Elf_Scn *section = file->section[which];
	GElf_Shdr header;

	*ret = (struct vp_section_bytes){0};
	if (!section || !gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS ||
	    (header.sh_flags & SHF_COMPRESSED) || header.sh_size > VP_ELF_MAX_TABLE ||
	    header.sh_size > file->size)
		return false;
	Elf_Data *data = elf_rawdata(section, NULL);
	if (!data || !data->d_buf || !data->d_size)
		return false;
	*ret = (struct vp_section_bytes){data->d_buf, data->d_size, header.sh_addr};
	return true;
}
