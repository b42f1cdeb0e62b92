/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of stripped files: without names, of the PLT, in .gnu_debugdata, of Go programs. */
#include "unit.h"

#include <lzma.h>

#include "elf_sections.h"

#include "maps/ghc_functions.h"
#include "maps/image.h"
#include "maps/image_private.h"
#include "maps/xz.h"

enum { CODE = MADE_CODE, SLOT = 0x5000 };

static void read_and_free(struct made_elf *file, struct vp_image *image)
{
	made_finish(file);
	expect_no_error(vp_image_read_memory(file->bytes.bytes, file->bytes.size, "memory", image));
	vp_buffer_deinit(&file->bytes);
	vp_buffer_deinit(&file->names);
}

static void check(struct vp_image *image, const struct made_symbol *expected, size_t count)
{
	assert_int_equal(image->symbols.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(image->symbols.at[i].offset, expected[i].offset);
		assert_int_equal(image->symbols.at[i].size, expected[i].size);
		assert_string_equal(vp_image_symbol_name(image, &image->symbols.at[i]),
				    expected[i].name);
	}
	vp_image_deinit(image);
}

static void test_without_names(void **state)
{
	static const struct made_symbol expected[] = {{CODE, 0x40, ""}, {CODE + 0x80, 0x20, ""}};
	struct vp_image image;
	struct made_elf file;

	made_start(&file);
	made_eh_frame(&file);
	read_and_free(&file, &image);
	check(&image, expected, VP_ARRAY_SIZE(expected));
}

/* A file with unwind tables and these symbols. */
static void check_with_symbols(const struct made_symbol *symbols, size_t count,
			       const struct made_symbol *expected, size_t n_expected)
{
	struct vp_image image;
	struct made_elf file;

	made_start(&file);
	made_eh_frame(&file);
	made_symbols(&file, ".symtab", SHT_SYMTAB, symbols, count);
	read_and_free(&file, &image);
	check(&image, expected, n_expected);
}

/* What symbols cover keeps its name; a symbol without a size gets that of its function. */
static void test_beside_symbols(void **state)
{
	static const struct made_symbol symbols[] = {{CODE + 0x10, 8, "inner"},
						     {CODE + 0x80, 0, "unsized"}};
	static const struct made_symbol expected[] = {{CODE, 0x10, ""},
						      {CODE + 0x10, 8, "inner"},
						      {CODE + 0x18, 0x28, ""},
						      {CODE + 0x80, 0x20, "unsized"}};

	check_with_symbols(symbols, VP_ARRAY_SIZE(symbols), expected, VP_ARRAY_SIZE(expected));
}

/* After a symbol inside a longer one, the longer one's name counts again. */
static void test_symbol_inside(void **state)
{
	static const struct made_symbol symbols[] = {{CODE, 0x30, "outer"},
						     {CODE + 0x10, 8, "inner"}};
	static const struct made_symbol expected[] = {{CODE, 0x30, "outer"},
						      {CODE + 0x10, 8, "inner"},
						      {CODE + 0x18, 0x28, "outer"},
						      {CODE + 0x80, 0x20, ""}};

	check_with_symbols(symbols, VP_ARRAY_SIZE(symbols), expected, VP_ARRAY_SIZE(expected));
}

/* Lazy entries, those with `endbr64` and `bnd`, and the short ones of .plt.got. */
static void test_plt(void **state)
{
	static const struct made_symbol imports[] = {{0, 0, "read"}, {0, 0, "write"}};
	static const struct made_symbol expected[] = {{CODE + 0x10, 0x10, "read@plt"},
						      {CODE + 0x110, 0x10, "write@plt"},
						      {CODE + 0x208, 8, "read@plt"}};
	const Elf64_Rela relocations[] = {
	    {SLOT, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0},
	    {SLOT + 8, ELF64_R_INFO(2, R_X86_64_GLOB_DAT), 0},
	};
	unsigned char plt[0x20] = {[0x10] = 0xff, 0x25},
		      sec[0x20] = {[0x10] = 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25};
	unsigned char got[0x10] = {[8] = 0xff, 0x25};
	int32_t to_first = SLOT - (CODE + 0x16), to_second = SLOT + 8 - (CODE + 0x11b);
	int32_t to_third = SLOT - (CODE + 0x20e);
	struct vp_image image;
	struct made_elf file;

	memcpy(plt + 0x12, &to_first, 4);
	memcpy(sec + 0x17, &to_second, 4);
	memcpy(got + 0xa, &to_third, 4);
	made_start(&file);
	made_symbols(&file, ".dynsym", SHT_DYNSYM, imports, VP_ARRAY_SIZE(imports));
	made_section(&file, ".rela.plt", SHT_RELA, 0, relocations, sizeof(relocations))
	    ->sh_entsize = sizeof(*relocations);
	made_section(&file, ".plt", SHT_PROGBITS, CODE, plt, sizeof(plt))->sh_entsize = 16;
	made_section(&file, ".plt.sec", SHT_PROGBITS, CODE + 0x100, sec, sizeof(sec))->sh_entsize =
	    16;
	made_section(&file, ".plt.got", SHT_PROGBITS, CODE + 0x200, got, sizeof(got))->sh_entsize =
	    8;
	read_and_free(&file, &image);
	check(&image, expected, VP_ARRAY_SIZE(expected));
}

static void pack(const struct vp_buffer *bytes, struct vp_buffer *packed)
{
	size_t room = lzma_stream_buffer_bound(bytes->size);
	char *to = vp_buffer_extend(packed, room);

	packed->size = 0;
	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL,
						 (const uint8_t *)bytes->bytes, bytes->size,
						 (uint8_t *)to, &packed->size, room),
			 LZMA_OK);
}

static void test_debugdata(void **state)
{
	static const struct made_symbol symbols[] = {{CODE, 0x40, "hidden"}};
	static const struct made_symbol expected[] = {{CODE, 0x40, "hidden"},
						      {CODE + 0x80, 0x20, ""}};
	struct vp_buffer packed = {0};
	struct vp_image image;
	struct made_elf file, small;

	made_start(&small);
	made_symbols(&small, ".symtab", SHT_SYMTAB, symbols, VP_ARRAY_SIZE(symbols));
	made_finish(&small);
	pack(&small.bytes, &packed);
	made_start(&file);
	made_eh_frame(&file);
	made_section(&file, ".gnu_debugdata", SHT_PROGBITS, 0, packed.bytes, packed.size);
	read_and_free(&file, &image);
	check(&image, expected, VP_ARRAY_SIZE(expected));
	vp_buffer_deinit(&packed);
	vp_buffer_deinit(&small.bytes);
	vp_buffer_deinit(&small.names);
}

/* A gigabyte of zeros is a few hundred bytes packed: no more than the limit is unpacked. */
static void test_bombs(void **state)
{
	enum { SIZE = 16 << 20 };
	struct vp_buffer zeros = {0}, packed = {0}, unpacked = {0};

	vp_buffer_fill(&zeros, 0, SIZE);
	pack(&zeros, &packed);
	assert_true(vp_xz_unpack(packed.bytes, packed.size, SIZE, &unpacked));
	assert_int_equal(unpacked.size, SIZE);
	vp_buffer_deinit(&unpacked);
	assert_false(vp_xz_unpack(packed.bytes, packed.size, SIZE / 4, &unpacked));
	assert_in_range(unpacked.size, 0, SIZE / 2);
	vp_buffer_deinit(&unpacked);
	assert_false(vp_xz_unpack(packed.bytes, packed.size / 2, SIZE, &unpacked));
	packed.bytes[packed.size / 2] ^= 0x55;
	assert_false(vp_xz_unpack(packed.bytes, packed.size, SIZE, &unpacked));
	vp_buffer_deinit(&unpacked);
	vp_buffer_deinit(&packed);
	vp_buffer_deinit(&zeros);
}

/* Go's table: one function of 0x30 bytes, "main.work". */
static void put_go_table(char table[0x100], uint64_t text)
{
	static const uint64_t functions = 1, names = 0x60, entries = 0x80;
	static const uint32_t words[] = {0, 0x20, 0x30}, facts[] = {0, 0};

	memset(table, 0, 0x100);
	memcpy(table, "\xf1\xff\xff\xff\0\0\1\x08", 8);
	memcpy(table + 8, &functions, 8);
	memcpy(table + 24, &text, 8);
	memcpy(table + 32, &names, 8);
	memcpy(table + 64, &entries, 8);
	strcpy(table + names, "main.work");
	memcpy(table + entries, words, sizeof(words));
	memcpy(table + entries + 0x20, facts, sizeof(facts));
}

static const struct made_symbol go_functions[] = {{CODE + 0x100, 0x30, "main.work"}};

static void test_go(void **state)
{
	char table[0x100];
	struct vp_image image;
	struct made_elf file;

	put_go_table(table, CODE + 0x100);
	made_start(&file);
	made_section(&file, ".gopclntab", SHT_PROGBITS, 0x4000, table, sizeof(table));
	read_and_free(&file, &image);
	check(&image, go_functions, 1);
}

/* Position-independent: the table is among other data, and the loader puts in the address. */
static void test_go_pie(void **state)
{
	const Elf64_Rela relocation = {0x4000 + 0x40 + 24, ELF64_R_INFO(0, R_X86_64_RELATIVE),
				       CODE + 0x100};
	char data[0x140] = "";
	struct vp_image image;
	struct made_elf file;

	put_go_table(data + 0x40, 0);
	made_start(&file);
	made_section(&file, ".data.rel.ro", SHT_PROGBITS, 0x4000, data, sizeof(data));
	made_section(&file, ".go.buildinfo", SHT_PROGBITS, 0x5000, "x", 1);
	made_section(&file, ".rela.dyn", SHT_RELA, 0, &relocation, sizeof(relocation))->sh_entsize =
	    sizeof(relocation);
	read_and_free(&file, &image);
	check(&image, go_functions, 1);
}

/* From Go 1.26 on, the address is in moduledata only. */
static void test_go_module(void **state)
{
	uint64_t module[30] = {[22] = CODE + 0x100};
	char table[0x100];
	struct vp_image image;
	struct made_elf file;

	put_go_table(table, 0);
	made_start(&file);
	made_section(&file, ".gopclntab", SHT_PROGBITS, 0x4000, table, sizeof(table));
	made_section(&file, ".go.module", SHT_PROGBITS, 0x5000, module, sizeof(module));
	read_and_free(&file, &image);
	check(&image, go_functions, 1);
}

enum { DATA = 0x800000, GHC_SIZE = 0x1000 };

/* The functions that are found in this code at MADE_GHC; free with vp_vec_deinit(). */
static vp_code_ranges ghc_functions(const unsigned char *text, size_t size)
{
	const struct vp_section_bytes code = {text, size, MADE_GHC};
	vp_code_ranges ret = {0};

	vp_ghc_functions(&code, DATA, DATA + 0x1000, &ret);
	return ret;
}

static void expect_range(const vp_code_ranges *ranges, size_t i, uint64_t start, uint64_t end)
{
	assert_in_range(i, 0, ranges->count - 1);
	assert_int_equal(ranges->at[i].start, MADE_GHC + start);
	assert_int_equal(ranges->at[i].size, end - start);
}

/* Each info table starts a function; places to return to belong to the function before. */
static void test_ghc(void **state)
{
	unsigned char text[GHC_SIZE];

	made_ghc_code(text, sizeof(text));
	vp_code_ranges ranges = ghc_functions(text, sizeof(text));
	assert_int_equal(ranges.count, 15);
	expect_range(&ranges, 0, 0x100, 0x200);
	expect_range(&ranges, 14, 0xf00, 0x1000);
	vp_vec_deinit(&ranges);

	/* A frame of the runtime system, then a place to return to: no function's. */
	made_info_table(text, 0x140, 1, 33, 0);
	made_info_table(text, 0x180, 1, 30, 0);
	ranges = ghc_functions(text, sizeof(text));
	assert_int_equal(ranges.count, 17);
	expect_range(&ranges, 0, 0x100, 0x140);
	expect_range(&ranges, 1, 0x140, 0x180);
	expect_range(&ranges, 2, 0x180, 0x200);
	vp_vec_deinit(&ranges);
}

/* Bytes that are no info tables: of another type, too large, with references outside the data. */
static void test_not_ghc(void **state)
{
	const struct {
		uint64_t layout;
		uint32_t type;
		int32_t references;
		bool is_table;
	} tables[] = {
	    {1, 15, 0, true},
	    {1, 15, DATA - (MADE_GHC + 0x180), true},
	    {1, 15, DATA - (MADE_GHC + 0x180) - 1, false},
	    {1, 15, DATA + 0x1000 - (MADE_GHC + 0x180), false},
	    {1, 2, 3, true}, /* the fourth constructor of a type */
	    {1, 2, 0x1000, false},
	    {1, 2, -1, false},
	    {1, 0, 0, false},
	    {1, 65, 0, false},
	    {0x1000, 15, 0, false},
	    {0x1000ULL << 32, 15, 0, false},
	    {1 | 1 << 6, 36, 0, true},
	    {1 | 1 << 7, 36, 0, false}, /* a bit after the last word's */
	    {63, 36, 0, false},
	};
	unsigned char text[GHC_SIZE];

	for (size_t i = 0; i < VP_ARRAY_SIZE(tables); i++) {
		made_ghc_code(text, sizeof(text));
		made_info_table(text, 0x180, tables[i].layout, tables[i].type,
				tables[i].references);
		vp_code_ranges ranges = ghc_functions(text, sizeof(text));
		assert_int_equal(ranges.count, tables[i].is_table ? 16 : 15);
		vp_vec_deinit(&ranges);
	}

	/* One table in a kilobyte is too little. */
	memset(text, 0x90, sizeof(text));
	for (size_t at = 0x200; at < sizeof(text); at += 0x400)
		made_info_table(text, at, 1, 15, 0);
	vp_code_ranges ranges = ghc_functions(text, sizeof(text));
	assert_int_equal(ranges.count, 0);
	vp_vec_deinit(&ranges);
}

/* In a file, only where unwind tables leave large gaps, and there in small ones, too. */
static void test_ghc_file(void **state)
{
	static unsigned char text[VP_GHC_SMALLEST + MADE_GHC_STEP];
	struct vp_image image;

	for (size_t size = sizeof(text); size >= VP_GHC_SMALLEST; size -= 2UL * MADE_GHC_STEP) {
		struct made_elf file;
		made_start(&file);
		made_for_ghc(&file);
		made_eh_frame(&file);
		made_ghc_code(text, size);
		made_section(&file, ".text", SHT_PROGBITS, MADE_GHC, text, size);
		read_and_free(&file, &image);
		assert_int_equal(image.symbols.count, 2 + size / MADE_GHC_STEP - 1);
		const struct vp_image_symbol *last = &image.symbols.at[image.symbols.count - 1];
		assert_int_equal(last->offset, MADE_GHC + size - MADE_GHC_STEP);
		assert_int_equal(last->size, MADE_GHC_STEP);
		assert_string_equal(vp_image_symbol_name(&image, last), "");
		vp_image_deinit(&image);
		if (size == VP_GHC_SMALLEST)
			break;
		size = VP_GHC_SMALLEST + 2UL * MADE_GHC_STEP;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_without_names),
	    cmocka_unit_test(test_beside_symbols),
	    cmocka_unit_test(test_symbol_inside),
	    cmocka_unit_test(test_plt),
	    cmocka_unit_test(test_debugdata),
	    cmocka_unit_test(test_bombs),
	    cmocka_unit_test(test_go),
	    cmocka_unit_test(test_go_pie),
	    cmocka_unit_test(test_go_module),
	    cmocka_unit_test(test_ghc),
	    cmocka_unit_test(test_not_ghc),
	    cmocka_unit_test(test_ghc_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
