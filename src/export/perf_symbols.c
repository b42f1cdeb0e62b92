/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export/perf_symbols.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/text.h"

/*
 * Size of each function of a module; the functions start after the file's first page.
 *
 * Kernel functions have one page each. Where kallsyms changes from a name without '[' to one with
 * it, perf assumes the border of a module and extends the symbol before it to the end of its page
 * (symbols__fixup_end). Smaller functions would be shown as [idle] or [unknown], or lose their
 * name.
 */
enum { FUNCTION_SIZE = 16, CODE = 0x1000, KERNEL_FUNCTION_SIZE = 0x1000, MAX_NAME = 100 };
#define MODULES_BEGIN 0x100000000000ULL

/* Bit in keys of `functions`: function of a module. */
#define OF_MODULE (1U << 31)

void vp_perf_symbols_init(struct vp_perf_symbols *symbols, const char *directory)
{
	symbols->directory = directory;
	symbols->functions.key_size = 2 * sizeof(uint32_t);
}

void vp_perf_symbols_deinit(struct vp_perf_symbols *symbols)
{
	for (size_t i = 0; i < symbols->n_kernels; i++)
		vp_vec_deinit(&symbols->kernels[i]);
	free(symbols->kernels);
	vp_vec_each (&symbols->modules, module) {
		free(module->path);
		vp_vec_deinit(&module->functions);
	}
	vp_vec_deinit(&symbols->modules);
	vp_vec_deinit(&symbols->indexes);
	vp_key_set_deinit(&symbols->functions);
	vp_map_deinit(&symbols->module_of_text);
	vp_intern_deinit(&symbols->texts);
}

char *vp_perf_clean(const char *text)
{
	return vp_text_cleaned(text);
}

static uint32_t perf_symbols_index_of(struct vp_perf_symbols *symbols, uint32_t owner,
				      const char *function, vp_perf_functions *functions)
{
	uint32_t text = vp_intern_string(&symbols->texts, function);
	const uint32_t key[2] = {owner, text};
	bool inserted;
	uint32_t number = vp_key_set_add(&symbols->functions, key, &inserted);

	if (inserted) {
		vp_vec_push(&symbols->indexes, (uint32_t)functions->count);
		vp_vec_push(functions, text);
	}
	return symbols->indexes.at[number];
}

/* The functions of a machine's kernel; machine 0 is the host. */
static vp_perf_functions *kernel_of(struct vp_perf_symbols *symbols, uint32_t machine)
{
	while (symbols->n_kernels <= machine) {
		symbols->kernels = vp_realloc_array(symbols->kernels, symbols->n_kernels + 1,
						    sizeof(*symbols->kernels));
		symbols->kernels[symbols->n_kernels++] = (vp_perf_functions){0};
	}
	return &symbols->kernels[machine];
}

uint64_t vp_perf_kernel_function(struct vp_perf_symbols *symbols, uint32_t vm, const char *function)
{
	uint32_t machine = vm + 1; /* UINT32_MAX, the host, becomes 0 */
	uint64_t index =
	    perf_symbols_index_of(symbols, machine, function, kernel_of(symbols, machine));

	/* The first page is _text. */
	return VP_PERF_KERNEL + (index + 1) * KERNEL_FUNCTION_SIZE;
}

uint64_t vp_perf_module_function(struct vp_perf_symbols *symbols, uint32_t module,
				 const char *function)
{
	uint64_t index = perf_symbols_index_of(symbols, module | OF_MODULE, function,
					       &symbols->modules.at[module].functions);

	return vp_perf_module_begin(module) + CODE + index * FUNCTION_SIZE;
}

/* The file name without its directory: the part that perf prints. */
static char *file_name(const char *name)
{
	const char *slash = strrchr(name, '/');
	char *clean = vp_text_cleaned(slash && slash[1] ? slash + 1 : name);
	size_t size = strlen(clean) < MAX_NAME ? strlen(clean) : MAX_NAME;

	/* Do not cut within a UTF-8 character. */
	while (size && clean[size] && ((unsigned char)clean[size] & 0xc0) == 0x80)
		size--;
	clean[size] = 0;
	for (char *at = clean; *at; at++)
		if (*at == '/')
			*at = '_';
	if (!*clean || !strcmp(clean, ".") || !strcmp(clean, ".."))
		memcpy(clean, "_", *clean ? 2 : 1);
	return clean;
}

uint32_t vp_perf_module(struct vp_perf_symbols *symbols, const char *name)
{
	bool inserted;
	uint32_t text = vp_intern_string(&symbols->texts, name);
	uint32_t module = *vp_map_insert(&symbols->module_of_text, text,
					 (uint32_t)symbols->modules.count, &inserted);

	if (inserted) {
		VP_AUTO_FREE char *file = file_name(name);
		vp_vec_push_slot(&symbols->modules)->functions = (vp_perf_functions){0};
		symbols->modules.at[module].path =
		    vp_format("%s/files/%" PRIu32 "/%s", symbols->directory, module, file);
	}
	return module;
}

const char *vp_perf_module_path(const struct vp_perf_symbols *symbols, uint32_t module)
{
	return symbols->modules.at[module].path;
}

uint64_t vp_perf_module_begin(uint32_t module)
{
	return MODULES_BEGIN + module * VP_PERF_MODULE_SIZE;
}

static struct vp_error *perf_symbols_make_folder(const char *path)
{
	if (mkdir(path, 0755) && errno != EEXIST)
		return vp_error_errno(errno, "cannot make '%s'", path);
	return NULL;
}

/* In kallsyms a name ends at a space, and for perf also at the first non-ASCII byte; perf ignores
 * names that start with '$'. */
static void put_symbol(uint64_t address, const char *name, struct vp_buffer *out)
{
	VP_AUTO_FREE char *clean = vp_text_cleaned(name);

	for (char *at = clean; *at; at++)
		if (*at == ' ')
			*at = '_';
		else if ((unsigned char)*at > '~')
			*at = '?';
	if (*clean == '$')
		*clean = '_';
	vp_buffer_printf(out, "%" PRIx64 " t %s\n", address, clean);
}

static struct vp_error *perf_symbols_write_kernel(const struct vp_perf_symbols *symbols,
						  uint32_t pid, const vp_perf_functions *functions)
{
	VP_AUTO_FREE char *folder =
	    pid ? vp_format("%s/kcore_dir__%" PRIu32, symbols->directory, pid)
		: vp_format("%s/kcore_dir", symbols->directory);
	VP_AUTO_FREE char *path = vp_format("%s/kallsyms", folder);
	struct vp_buffer out = {0};
	uint64_t address = VP_PERF_KERNEL;

	VP_TRY(perf_symbols_make_folder(folder));
	put_symbol(address, "_text", &out);
	for (size_t i = 0; functions && i < functions->count; i++)
		put_symbol(address += KERNEL_FUNCTION_SIZE,
			   vp_intern_text(&symbols->texts, functions->at[i]), &out);
	put_symbol(address + KERNEL_FUNCTION_SIZE, "_etext", &out);
	struct vp_error *error = vp_file_publish(path, out.bytes, out.size);
	vp_buffer_deinit(&out);
	return error;
}

enum { TEXT = 1, SYMBOLS, STRINGS, NAMES, SECTIONS };

static void perf_symbols_put_symbols(const struct vp_perf_symbols *symbols,
				     const vp_perf_functions *functions, struct vp_buffer *table,
				     struct vp_buffer *strings)
{
	Elf64_Sym symbol = {0};

	vp_buffer_append(table, &symbol, sizeof(symbol));
	vp_buffer_fill(strings, 0, 1);
	for (size_t i = 0; i < functions->count; i++) {
		VP_AUTO_FREE char *clean =
		    vp_text_cleaned(vp_intern_text(&symbols->texts, functions->at[i]));
		symbol = (Elf64_Sym){.st_name = (uint32_t)strings->size,
				     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				     .st_shndx = TEXT,
				     .st_value = CODE + i * FUNCTION_SIZE,
				     .st_size = FUNCTION_SIZE};
		vp_buffer_append(table, &symbol, sizeof(symbol));
		vp_buffer_append(strings, clean, strlen(clean) + 1);
	}
}

static void put_elf(const vp_perf_functions *functions, const struct vp_buffer *table,
		    const struct vp_buffer *strings, struct vp_buffer *out)
{
	static const char names[] = "\0.text\0.symtab\0.strtab\0.shstrtab";
	uint64_t size = functions->count * FUNCTION_SIZE, at = CODE + size;
	const Elf64_Shdr sections[SECTIONS] = {
	    [TEXT] = {1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, CODE, CODE, size, 0, 0, 16, 0},
	    [SYMBOLS] = {7, SHT_SYMTAB, 0, 0, at, table->size, STRINGS, 1, 8, sizeof(Elf64_Sym)},
	    [STRINGS] = {15, SHT_STRTAB, 0, 0, at + table->size, strings->size, 0, 0, 1, 0},
	    [NAMES] = {23, SHT_STRTAB, 0, 0, at + table->size + strings->size, sizeof(names), 0, 0,
		       1, 0}};
	const Elf64_Phdr code = {PT_LOAD, PF_R | PF_X, CODE, CODE, CODE, size, size, CODE};
	Elf64_Ehdr header = {
	    .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	    .e_type = ET_DYN,
	    .e_machine = EM_X86_64,
	    .e_version = EV_CURRENT,
	    .e_phoff = sizeof(header),
	    .e_shoff = sizeof(header) + sizeof(code),
	    .e_ehsize = sizeof(header),
	    .e_phentsize = sizeof(code),
	    .e_phnum = 1,
	    .e_shentsize = sizeof(Elf64_Shdr),
	    .e_shnum = SECTIONS,
	    .e_shstrndx = NAMES};

	vp_buffer_append(out, &header, sizeof(header));
	vp_buffer_append(out, &code, sizeof(code));
	vp_buffer_append(out, sections, sizeof(sections));
	vp_buffer_fill(out, 0, CODE + size - out->size);
	vp_buffer_append(out, table->bytes, table->size);
	vp_buffer_append(out, strings->bytes, strings->size);
	vp_buffer_append(out, names, sizeof(names));
}

static struct vp_error *perf_symbols_write_module(const struct vp_perf_symbols *symbols,
						  uint32_t number)
{
	const char *path = symbols->modules.at[number].path;
	const vp_perf_functions *functions = &symbols->modules.at[number].functions;
	VP_AUTO_FREE char *folder = vp_format("%s/files/%" PRIu32, symbols->directory, number);
	struct vp_buffer table = {0}, strings = {0}, out = {0};

	VP_TRY(perf_symbols_make_folder(folder));
	perf_symbols_put_symbols(symbols, functions, &table, &strings);
	put_elf(functions, &table, &strings, &out);
	struct vp_error *error = vp_file_publish(path, out.bytes, out.size);
	vp_buffer_deinit(&table);
	vp_buffer_deinit(&strings);
	vp_buffer_deinit(&out);
	return error;
}

struct vp_error *vp_perf_symbols_write(const struct vp_perf_symbols *symbols, const vp_vms *vms)
{
	VP_AUTO_FREE char *files = vp_format("%s/files", symbols->directory);

	VP_TRY(perf_symbols_write_kernel(symbols, 0,
					 symbols->n_kernels ? &symbols->kernels[0] : NULL));
	for (uint32_t vm = 0; vm < vms->count; vm++)
		VP_TRY(perf_symbols_write_kernel(
		    symbols, vms->at[vm].pid,
		    vm + 1 < symbols->n_kernels ? &symbols->kernels[vm + 1] : NULL));
	VP_TRY(perf_symbols_make_folder(files));
	for (uint32_t module = 0; module < symbols->modules.count; module++)
		VP_TRY(perf_symbols_write_module(symbols, module));
	return NULL;
}
