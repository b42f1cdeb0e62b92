/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols of ELF files, whole and broken, with and without a debug file. */
#include "unit.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_builder.h"
#include "maps/image.h"

#define FILE_NAME "test_elf.bin"

static struct vp_error *read_bytes(const void *bytes, size_t size,
				   const struct vp_image_locations *places, struct vp_image *image)
{
	temporary_file(FILE_NAME, bytes, size);
	VP_AUTO_CLOSE int fd = open(FILE_NAME, O_RDONLY);

	return vp_image_read(fd, "/" FILE_NAME, places, image);
}

static void add_symbols(struct elf_builder *elf)
{
	unsigned char global = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
	unsigned char local = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
	unsigned char plain = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE);

	elf_builder_symbol(elf, "second", ELF_BUILDER_VADDR + 0x20, 0x10, global, 1);
	elf_builder_symbol(elf, "first", ELF_BUILDER_VADDR, 0x20, local, 1);
	elf_builder_symbol(elf, "_alias", ELF_BUILDER_VADDR + 0x20, 0x10, global, 1);
	elf_builder_symbol(elf, "label", ELF_BUILDER_VADDR + 0x40, 0, plain, 1);
	elf_builder_symbol(elf, ".Llocal", ELF_BUILDER_VADDR + 0x48, 0, plain, 1);
	elf_builder_symbol(elf, "imported", 0, 0, global, SHN_UNDEF);
	/* Where it is called from, in an executable that is not relocated. */
	elf_builder_symbol(elf, "imported_too", ELF_BUILDER_VADDR + 0x60, 0, global, SHN_UNDEF);
	elf_builder_symbol(elf, "$x", ELF_BUILDER_VADDR + 0x70, 0, plain, 1); /* ARM's */
	elf_builder_symbol(elf, "behind", ELF_BUILDER_VADDR + 0x1000, 8, global, 1);
	elf_builder_symbol(elf, "data", ELF_BUILDER_VADDR + 0x50, 8,
			   ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 1);
	elf_builder_symbol(elf, "outside", 0x900000, 8, global, 1);
}

static void check_symbols(const struct vp_image *image)
{
	static const struct {
		uint64_t offset, size;
		const char *name;
	} expected[] = {{0x1000, 0x20, "first"}, {0x1020, 0x10, "second"}, {0x1040, 0, "label"}};

	assert_int_equal(image->symbols.count, VP_ARRAY_SIZE(expected));
	for (size_t i = 0; i < VP_ARRAY_SIZE(expected); i++) {
		assert_int_equal(image->symbols.at[i].offset, expected[i].offset);
		assert_int_equal(image->symbols.at[i].size, expected[i].size);
		assert_string_equal(vp_image_symbol_name(image, &image->symbols.at[i]),
				    expected[i].name);
	}
	assert_int_equal(image->build_id.size, 4);
	assert_memory_equal(image->build_id.bytes, "\xde\xad\xbe\xef", 4);
}

static void test_symbols(void **state)
{
	struct elf_builder elf;
	struct vp_image image;

	elf_builder_init(&elf);
	add_symbols(&elf);
	elf_builder_finish(&elf);
	expect_no_error(read_bytes(elf.bytes, sizeof(elf.bytes), NULL, &image));
	check_symbols(&image);
	vp_image_deinit(&image);
	expect_no_error(vp_image_read_memory(elf.bytes, sizeof(elf.bytes), "memory", &image));
	check_symbols(&image);
	vp_image_deinit(&image);
}

/* The debug file's own addresses differ: the main file's program headers count. */
static void test_debug_file(void **state)
{
	struct elf_builder elf;
	struct vp_image_locations places = {.root = "test_elf.root", .debug_dir = "/debug"};
	struct vp_image image;

	elf_builder_init(&elf);
	add_symbols(&elf);
	elf.segment.p_offset = 0;
	elf_builder_finish(&elf);
	mkdir("test_elf.root", 0755);
	mkdir("test_elf.root/debug", 0755);
	mkdir("test_elf.root/debug/.build-id", 0755);
	mkdir("test_elf.root/debug/.build-id/de", 0755);
	temporary_file("test_elf.root/debug/.build-id/de/adbeef.debug", elf.bytes,
		       sizeof(elf.bytes));

	elf_builder_init(&elf);
	elf.header.e_shnum = 4; /* no symbols of its own */
	elf_builder_finish(&elf);
	expect_no_error(read_bytes(elf.bytes, sizeof(elf.bytes), &places, &image));
	check_symbols(&image);
	vp_image_deinit(&image);
}

/* A user may put a device where a debug file would be: opening one may do something. */
static void test_debug_file_is_no_device(void **state)
{
	static const char path[] = "test_elf.pipes/debug/.build-id/de/adbeef.debug";
	struct vp_image_locations places = {.root = "test_elf.pipes", .debug_dir = "/debug"};
	struct elf_builder elf;
	struct vp_image image;
	char events[4096];

	(void)!system("mkdir -p test_elf.pipes/debug/.build-id/de");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	VP_AUTO_CLOSE int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
	elf_builder_init(&elf);
	elf.header.e_shnum = 4; /* no symbols of its own */
	elf_builder_finish(&elf);
	expect_no_error(read_bytes(elf.bytes, sizeof(elf.bytes), &places, &image));
	assert_int_equal(image.symbols.count, 0);
	assert_int_equal(read(watch, events, sizeof(events)), -1);
	vp_image_deinit(&image);
}

static void test_other_files(void **state)
{
	struct vp_image image;

	expect_error(read_bytes("hello", 5, NULL, &image), "'/test_elf.bin' is not an ELF file");
	expect_error(read_bytes("", 0, NULL, &image), "'/test_elf.bin' is");
	VP_AUTO_CLOSE int fd = open(".", O_RDONLY);
	expect_error(vp_image_read(fd, ".", NULL, &image), "not a regular file");
}

static void read_broken(const void *bytes, size_t size)
{
	struct vp_image image;

	vp_error_free(read_bytes(bytes, size, NULL, &image));
	vp_image_deinit(&image);
	vp_error_free(vp_image_read_memory(bytes, size, "memory", &image));
	vp_image_deinit(&image);
}

/* No crash, whatever is cut or changed. */
static void test_broken_files(void **state)
{
	struct elf_builder elf;

	elf_builder_init(&elf);
	add_symbols(&elf);
	elf_builder_finish(&elf);
	for (size_t size = 1; size < ELF_BUILDER_SECTIONS + 0x200; size += 7)
		read_broken(elf.bytes, size);
	for (size_t i = 0; i < ELF_BUILDER_SECTIONS + 0x180; i++) {
		unsigned char before = elf.bytes[i];
		if (i >= ELF_BUILDER_NOTE + 20 && i < ELF_BUILDER_STRINGS)
			continue;
		elf.bytes[i] = 0xff;
		read_broken(elf.bytes, sizeof(elf.bytes));
		elf.bytes[i] = before;
	}
}

static void test_huge_symbol_table(void **state)
{
	struct elf_builder elf;
	struct vp_image image;

	elf_builder_init(&elf);
	add_symbols(&elf);
	elf_builder_finish(&elf);
	elf.sections[4].sh_size = 1ULL << 40;
	memcpy(elf.bytes + ELF_BUILDER_SECTIONS, elf.sections, sizeof(elf.sections));
	expect_error(read_bytes(elf.bytes, sizeof(elf.bytes), NULL, &image), "broken ELF file");
	vp_image_deinit(&image);
}

static void test_huge_names(void **state)
{
	struct elf_builder elf;
	struct vp_image image;

	elf_builder_init(&elf);
	add_symbols(&elf);
	elf_builder_finish(&elf);
	elf.sections[elf.sections[4].sh_link].sh_size = 1ULL << 40;
	memcpy(elf.bytes + ELF_BUILDER_SECTIONS, elf.sections, sizeof(elf.sections));
	expect_error(read_bytes(elf.bytes, sizeof(elf.bytes), NULL, &image), "symbol names");
	vp_image_deinit(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_symbols),
	    cmocka_unit_test(test_debug_file),
	    cmocka_unit_test(test_other_files),
	    cmocka_unit_test(test_broken_files),
	    cmocka_unit_test(test_huge_symbol_table),
	    cmocka_unit_test(test_huge_names),
	    cmocka_unit_test(test_debug_file_is_no_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
