/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files with symbols beside an exported perf.data: what a reader of ELF finds in them. */
#include "unit.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <unistd.h>

#include "export/perf_symbols.h"

#define NAME "test_perf_symbols.out"

/* Addresses and sizes as the file's own headers have them, which tools rely on. */
static void expect_module(const char *path, const char *const *functions, size_t count)
{
	size_t names, found = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf_Scn *section = NULL;
	GElf_Ehdr head;
	GElf_Phdr segment;
	GElf_Shdr text = {0};

	assert_true(fd >= 0);
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(gelf_getehdr(elf, &head));
	assert_int_equal(head.e_type, ET_DYN);
	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	assert_non_null(gelf_getphdr(elf, 0, &segment));
	assert_int_equal(segment.p_type, PT_LOAD);
	assert_int_equal(segment.p_flags, PF_R | PF_X);
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		assert_non_null(gelf_getshdr(section, &header));
		const char *name = elf_strptr(elf, names, header.sh_name);
		/* An alignment is a power of two, at which the section is. */
		assert_true(header.sh_addralign &&
			    !(header.sh_addralign & (header.sh_addralign - 1)));
		assert_int_equal(header.sh_addr % header.sh_addralign, 0);
		if (!strcmp(name, ".text"))
			text = header;
		if (header.sh_type != SHT_SYMTAB)
			continue;
		assert_string_equal(name, ".symtab");
		Elf_Data *data = elf_getdata(section, NULL);
		for (size_t i = 1; i < header.sh_size / header.sh_entsize; i++) {
			GElf_Sym symbol;
			assert_non_null(gelf_getsym(data, (int)i, &symbol));
			assert_string_equal(elf_strptr(elf, header.sh_link, symbol.st_name),
					    functions[i - 1]);
			assert_int_equal(GELF_ST_TYPE(symbol.st_info), STT_FUNC);
			assert_true(symbol.st_size > 0);
			assert_true(symbol.st_value >= segment.p_vaddr);
			assert_true(symbol.st_value + symbol.st_size <=
				    segment.p_vaddr + segment.p_memsz);
			found++;
		}
	}
	assert_int_equal(found, count);
	assert_int_equal(text.sh_type, SHT_PROGBITS);
	assert_int_equal(text.sh_addr, segment.p_vaddr);
	assert_int_equal(text.sh_size, segment.p_memsz);
	elf_end(elf);
	close(fd);
}

static void test_modules(void **state)
{
	static const char *const first[] = {"main", "work?"}, *const second[] = {"other"};
	struct vp_perf_symbols symbols = {0};
	const vp_vms vms = {0};

	assert_int_equal(system("rm -rf " NAME " && mkdir " NAME), 0);
	vp_perf_symbols_init(&symbols, NAME);
	uint32_t tool = vp_perf_module(&symbols, "/bin/tool");
	uint32_t library = vp_perf_module(&symbols, "/lib/x.so");
	assert_int_equal(vp_perf_module(&symbols, "/bin/tool"), tool);
	assert_true(tool != library);
	uint64_t at = vp_perf_module_function(&symbols, tool, "main");
	uint64_t other = vp_perf_module_function(&symbols, tool, "work\033");
	uint64_t of_library = vp_perf_module_function(&symbols, library, "other");
	assert_int_equal(vp_perf_module_function(&symbols, tool, "main"), at);
	assert_true(other > at && at > vp_perf_module_begin(tool));
	assert_true(of_library > vp_perf_module_begin(library));
	expect_no_error(vp_perf_symbols_write(&symbols, &vms));
	expect_module(vp_perf_module_path(&symbols, tool), first, 2);
	expect_module(vp_perf_module_path(&symbols, library), second, 1);
	vp_perf_symbols_deinit(&symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
