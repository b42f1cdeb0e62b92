/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/symbols/modules.h"

#include <elf.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "base/map.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"

enum { MAX_MODULES = 4096, MAX_SYMBOLS = 1 << 17, LONGEST_NAME = 512, MODULE_NAME = 56 };

struct tables {
	uint64_t symbols, names, types;
	uint32_t count;
};

static bool modules_read_tables(const struct vp_guest_kernel *kernel, uint64_t module,
				struct tables *ret)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const struct vp_guest_view *view = &kernel->view;
	uint64_t at;

	return vp_guest_view_u64(view, module + pack->at.module_kallsyms, &at) &&
	       vp_guest_view_u64(view, at + pack->at.mod_symtab, &ret->symbols) &&
	       vp_guest_view_u64(view, at + pack->at.mod_strtab, &ret->names) &&
	       vp_guest_view_u64(view, at + pack->at.mod_typetab, &ret->types) &&
	       vp_guest_view_u32(view, at + pack->at.mod_num_symtab, &ret->count) &&
	       ret->count <= MAX_SYMBOLS;
}

static void modules_write_symbols(const struct vp_guest_kernel *kernel, const struct tables *tables,
				  const char *module, struct vp_maps_writer *writer)
{
	const struct vp_guest_view *view = &kernel->view;
	VP_AUTO_FREE Elf64_Sym *symbols =
	    vp_realloc_array(NULL, tables->count + 1UL, sizeof(*symbols));
	VP_AUTO_FREE char *types = vp_alloc(tables->count + 1UL);
	char name[LONGEST_NAME];

	if (!vp_guest_view_read(view, tables->symbols, symbols, tables->count * sizeof(*symbols)) ||
	    !vp_guest_view_read(view, tables->types, types, tables->count))
		return;
	for (uint32_t i = 0; i < tables->count; i++)
		if (symbols[i].st_shndx != SHN_UNDEF &&
		    vp_guest_view_string(view, tables->names + symbols[i].st_name, name,
					 sizeof(name)) &&
		    name[0] && types[i])
			vp_maps_write_kernel_symbol(writer, symbols[i].st_value, 0, types[i], name,
						    module);
}

bool vp_guest_modules_each(const struct vp_guest_kernel *kernel,
			   bool (*each)(void *context, uint64_t module), void *context)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	uint64_t head = vp_guest_kernel_symbol(kernel, pack->symbol.modules), at = head;
	struct vp_map seen = {0};
	bool good = head && pack->at.module_list != VP_PACK_NONE;

	for (unsigned i = 0; good && i < MAX_MODULES; i++) {
		bool is_new;
		good = vp_guest_view_u64(&kernel->view, at, &at);
		if (!good || at == head)
			break;
		vp_map_insert(&seen, at, 0, &is_new);
		good = is_new && each(context, at - pack->at.module_list);
	}
	vp_map_deinit(&seen);
	return good;
}

struct writing {
	const struct vp_guest_kernel *kernel;
	struct vp_maps_writer *writer;
};

/* Writes one module; false: invalid. */
static bool modules_write_module(void *context, uint64_t module)
{
	const struct writing *writing = context;
	const struct vp_guest_kernel *kernel = writing->kernel;
	struct tables tables;
	char name[MODULE_NAME];

	if (!vp_guest_view_string(&kernel->view, module + kernel->pack.at.module_name, name,
				  sizeof(name)) ||
	    !name[0] || !modules_read_tables(kernel, module, &tables))
		return false;
	modules_write_symbols(kernel, &tables, name, writing->writer);
	return true;
}

void vp_guest_modules_write(const struct vp_guest_kernel *kernel, struct vp_maps_writer *writer)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	struct writing writing = {kernel, writer};
	bool known = pack->at.module_name != VP_PACK_NONE &&
		     pack->at.module_kallsyms != VP_PACK_NONE &&
		     pack->at.mod_symtab != VP_PACK_NONE && pack->at.mod_typetab != VP_PACK_NONE &&
		     pack->at.mod_strtab != VP_PACK_NONE && pack->at.mod_num_symtab != VP_PACK_NONE;

	if (pack->symbol.modules.offset == VP_PACK_NONE)
		vp_maps_write_note(writer,
				   "functions of modules have no names: the guest's list of "
				   "kernel modules was not found (no CONFIG_KALLSYMS_ALL)");
	else if (!known || !vp_guest_modules_each(kernel, modules_write_module, &writing))
		vp_maps_write_note(writer,
				   "the guest's list of kernel modules could only be read in part");
}
