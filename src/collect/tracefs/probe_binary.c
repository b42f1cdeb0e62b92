/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/tracefs/probe_binary.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/text.h"
#include "base/vec.h"
#include "maps/image.h"

/* Searches PATH as execvp(3) does. */
static char *in_path(const char *name)
{
	const char *next = getenv("PATH");

	while (next && *next) {
		size_t size = strcspn(next, ":");
		VP_AUTO_FREE char *path = vp_format("%.*s/%s", (int)size, next, name);
		if (!access(path, X_OK))
			return realpath(path, NULL);
		next += size + (next[size] == ':');
	}
	errno = ENOENT;
	return NULL;
}

static bool is_loaded_at(const GElf_Phdr *header, uint64_t address)
{
	return header->p_type == PT_LOAD && address >= header->p_vaddr &&
	       address - header->p_vaddr < header->p_filesz;
}

static bool probe_binary_offset_of(Elf *elf, uint64_t address, uint64_t *ret)
{
	size_t count = 0;
	GElf_Phdr header;

	if (elf_getphdrnum(elf, &count))
		return false;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(elf, (int)i, &header) && is_loaded_at(&header, address)) {
			*ret = address - header.p_vaddr + header.p_offset;
			return true;
		}
	return false;
}

/* Finds any symbol with the name; vp_image keeps only one name per address. */
static bool find_in_table(Elf *elf, Elf_Scn *section, const char *name, uint64_t *ret)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Shdr header;
	GElf_Sym symbol;

	if (!data || !gelf_getshdr(section, &header))
		return false;
	for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
		const char *its = elf_strptr(elf, header.sh_link, symbol.st_name);
		if (its && !strcmp(its, name) && GELF_ST_TYPE(symbol.st_info) == STT_FUNC &&
		    symbol.st_shndx != SHN_UNDEF &&
		    probe_binary_offset_of(elf, symbol.st_value, ret))
			return true;
	}
	return false;
}

static bool probe_binary_find_in_file(int fd, const char *name, uint64_t *ret)
{
	bool found = false;

	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	for (Elf_Scn *section = NULL; elf && !found && (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
			found = find_in_table(elf, section, name, ret);
	}
	elf_end(elf);
	return found;
}

/* Searches the debug file; the error suggests similar names. */
static struct vp_error *find_in_image(int fd, const char *path, const char *name, uint64_t *ret)
{
	const struct vp_image_locations locations = {0};
	struct vp_image image;
	struct vp_nearest nearest;

	VP_TRY(vp_image_read(fd, path, &locations, &image));
	bool found = false;
	vp_nearest_init(&nearest, (struct vp_slice){name, strlen(name)});
	vp_vec_each (&image.symbols, symbol) {
		const char *its = vp_image_symbol_name(&image, symbol);
		vp_nearest_add(&nearest, its);
		if (strcmp(its, name) != 0)
			continue;
		*ret = symbol->offset;
		found = true;
	}
	bool has_all = image.has_symtab;
	vp_image_deinit(&image);
	VP_AUTO_FREE char *near = vp_nearest_text(&nearest);
	VP_AUTO_FREE char *clean = vp_text_cleaned(name);
	return found ? NULL
		     : vp_error_usage(
			   "'%s' has no function '%s'%s%s", path, clean, near,
			   has_all ? ""
				   : "; it is stripped and has symbols of exported functions only");
}

struct vp_error *vp_probe_binary_find(const struct vp_probe_definition *definition, char **path,
				      uint64_t *offset)
{
	const char *binary = definition->binary;
	VP_AUTO_FREE char *found = strchr(binary, '/') ? realpath(binary, NULL) : in_path(binary);

	if (!found)
		return vp_error_errno(errno, "event '%s': no program or library '%s'",
				      definition->text, binary);
	if (strpbrk(found, " \t\n:"))
		return vp_error_new("event '%s': the kernel does not accept the file '%s' (its "
				    "name has a blank or a colon)",
				    definition->text, found);
	VP_AUTO_CLOSE int fd = vp_file_open_regular(found, VP_IMAGE_MAX_BYTES, 0);
	if (fd < 0)
		return vp_error_errno(errno, "cannot read '%s'", found);
	if (!probe_binary_find_in_file(fd, definition->function, offset))
		VP_TRY(find_in_image(fd, found, definition->function, offset));
	*offset += definition->offset;
	*path = found;
	found = NULL;
	return NULL;
}

/* Registers of a function's arguments at its entry (System V ABI; AAPCS64). */
#ifdef __x86_64__
static const char *const registers[] = {"%di", "%si", "%dx", "%cx", "%r8", "%r9"};
#else
static const char *const registers[] = {"%x0", "%x1", "%x2", "%x3", "%x4", "%x5", "%x6", "%x7"};
#endif

struct vp_error *vp_probe_binary_argument(const struct vp_probe_definition *definition,
					  const struct vp_probe_argument *argument,
					  struct vp_buffer *out)
{
	const char *what = argument->what, *its = strstr(what, "$arg");

	if (!vp_probe_argument_is_raw(argument))
		return vp_error_usage("event '%s': parameter names of programs are not supported: "
				      "expected $arg1, $arg2 ... or a register instead of '%s'",
				      definition->text, what);
	if (its) {
		char *end;
		unsigned long number = strtoul(its + 4, &end, 10);
		if (number < 1 || number > VP_ARRAY_SIZE(registers) || definition->at_return)
			return vp_error_usage("event '%s': expected $arg1 to $arg%zu, at the start "
					      "of a function, not '%s'",
					      definition->text, VP_ARRAY_SIZE(registers), what);
		vp_buffer_append(out, what, (size_t)(its - what));
		vp_buffer_string(out, registers[number - 1]);
		what = end;
	}
	vp_buffer_string(out, what);
	if (argument->type)
		vp_buffer_printf(out, ":%s", argument->type);
	return NULL;
}
