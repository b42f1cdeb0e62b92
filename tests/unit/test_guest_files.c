/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What processes of a guest have mapped, by path and by page cache, and the map text of it. */
#include "guest_files.h"

#include "opened_guest.h"

#include <sys/mman.h>

#include "base/file.h"
#include "elf_builder.h"
#include <linux/magic.h>

#include "elf_sections.h"
#include "guestmem/symbols/dump.h"
#include "guestmem/symbols/elf_tables.h"
#include "guestmem/symbols/images.h"
#include "guestmem/symbols/kernel_code.h"
#include "guestmem/tasks/process.h"
#include "maps/ghc_functions.h"
#include "maps/image.h"

static void test_paths(void **state)
{
	struct vp_buffer path = {0};
	struct vp_guest_task task;
	struct opened opened;

	built_kernel(&guest, BUILT_NEW);
	uint64_t top = built_dentry(&guest, 0, "/"), usr = built_dentry(&guest, top, "usr");
	uint64_t inner = built_dentry(&guest, 0, "/"), lib = built_dentry(&guest, inner, "lib");
	uint64_t x = built_dentry(&guest, lib, "x.so");
	uint64_t outer_mnt = built_mount(&guest, top, 0, top);
	uint64_t inner_mnt = built_mount(&guest, inner, outer_mnt, usr);
	uint64_t file = built_file(&guest, x, inner_mnt);
	uint64_t place = built_process(&guest, 5, built_mm(&guest), "x");
	uint64_t fs = built_object(&guest, 256, 16);
	built_put64(&guest, place + guest.pack.at.task_fs, fs);
	built_put64(&guest, fs + guest.pack.at.fs_root_dentry, top);
	built_put64(&guest, fs + guest.pack.at.fs_root_mnt, outer_mnt);
	open_kernel(&opened);
	assert_true(vp_guest_task_read(&opened.kernel, place, &task));
	assert_true(vp_guest_path(&opened.kernel, &task, file, &path));
	assert_string_equal(vp_buffer_text(&path), "/usr/lib/x.so");
	close_guest(&opened);

	/* In a chroot to /usr the path begins there. */
	built_put64(&guest, fs + guest.pack.at.fs_root_dentry, inner);
	built_put64(&guest, fs + guest.pack.at.fs_root_mnt, inner_mnt);
	open_kernel(&opened);
	path.size = 0;
	assert_true(vp_guest_path(&opened.kernel, &task, file, &path));
	assert_string_equal(vp_buffer_text(&path), "/lib/x.so");
	close_guest(&opened);

	/* Shared anonymous memory is in no directory. Other names have no slash. */
	uint64_t shared_mnt = built_mount(&guest, built_dentry(&guest, 0, "/"), 0, 0);
	uint64_t zero = built_file(&guest, built_dentry(&guest, 0, "dev/zero"), shared_mnt);
	uint64_t forged = built_file(&guest, built_dentry(&guest, lib, "x/y"), inner_mnt);
	open_kernel(&opened);
	path.size = 0;
	assert_true(vp_guest_path(&opened.kernel, &task, zero, &path));
	assert_string_equal(vp_buffer_text(&path), "/dev/zero");
	assert_false(vp_guest_path(&opened.kernel, &task, forged, &path));
	close_guest(&opened);

	/* Directories in each other, and a mount in itself. */
	built_put64(&guest, lib + guest.pack.at.dentry_parent, x);
	open_kernel(&opened);
	assert_false(vp_guest_path(&opened.kernel, &task, file, &path));
	close_guest(&opened);
	built_put64(&guest, lib + guest.pack.at.dentry_parent, inner);
	put32(built_at(&guest, x + guest.pack.at.dentry_len), 0x7fffffff);
	open_kernel(&opened);
	assert_false(vp_guest_path(&opened.kernel, &task, file, &path));
	close_guest(&opened);
	vp_buffer_deinit(&path);
}

/* A tree of two levels, with a large page of two at 64 and a hole at 1. */
static void test_page_cache(void **state)
{
	struct vp_guest_file file;
	struct opened opened;
	char byte;

	built_kernel(&guest, BUILT_NEW);
	uint64_t pages = built_object(&guest, 0x4000, 0x1000) - BUILT_DIRECT;
	for (unsigned i = 0; i < 4; i++)
		guest.low[pages + 0x1000 * i] = (char)('a' + i);
	uint64_t low = built_object(&guest, 1024, 16), high = built_object(&guest, 1024, 16);
	uint64_t top = built_object(&guest, 1024, 16);
	uint32_t slots = guest.pack.at.xa_node_slots;
	built_put64(&guest, low + slots, page_struct(pages));
	built_put64(&guest, high + slots, page_struct(pages + 0x1000));
	built_put64(&guest, high + slots + 8, 0 << 2 | 2); /* belongs to slot 0 */
	built_put64(&guest, top + slots, low + 2);
	built_put64(&guest, top + slots + 8, high + 2);
	*built_at(&guest, top) = 6;
	uint64_t handle = built_object(&guest, 256, 16);
	built_page_cache(&guest, handle, top + 2, 100 * 4096);
	open_kernel(&opened);
	assert_true(vp_guest_file_open(&opened.kernel, handle, &file));
	assert_true(vp_guest_file_read(&file, 0, &byte, 1) && byte == 'a');
	assert_false(vp_guest_file_read(&file, 4096, &byte, 1));
	assert_true(vp_guest_file_read(&file, 64 * 4096, &byte, 1) && byte == 'b');
	assert_true(vp_guest_file_read(&file, 65 * 4096, &byte, 1) && byte == 'c');
	assert_false(vp_guest_file_read(&file, 100 * 4096, &byte, 1));
	file.size = 64 * 4096 + 1; /* a file ends within its last page */
	assert_true(vp_guest_file_read(&file, 64 * 4096, &byte, 1));
	assert_false(vp_guest_file_read(&file, 64 * 4096 + 1, &byte, 1));
	file.size = 100 * 4096;
	file.pages = BUILT_DIRECT + BUILT_LOW + 0x1000000 + 2; /* a node that is nowhere */
	assert_false(vp_guest_file_read(&file, 0, &byte, 1));
	close_guest(&opened);

	built_put64(&guest, low + slots,
		    page_struct(pages) | 1); /* a value, such as of a swapped page */
	open_kernel(&opened);
	assert_true(vp_guest_file_open(&opened.kernel, handle, &file));
	assert_false(vp_guest_file_read(&file, 0, &byte, 1));
	close_guest(&opened);

	built_put64(&guest, low + slots, low + 2); /* a node in itself */
	open_kernel(&opened);
	assert_true(vp_guest_file_open(&opened.kernel, handle, &file));
	assert_false(vp_guest_file_read(&file, 0, &byte, 1));
	close_guest(&opened);
}

/* The kernel removes levels of the tree that its last page does not need: others are not resident.
 */
static void test_page_cache_shrinks(void **state)
{
	struct vp_guest_file file;
	struct opened opened;
	char byte;

	built_kernel(&guest, BUILT_NEW);
	uint64_t pages = built_object(&guest, 0x2000, 0x1000) - BUILT_DIRECT;
	memcpy(guest.low + pages, "a", 1);
	memcpy(guest.low + pages + 0x1000, "b", 1);
	uint64_t leaf = built_object(&guest, 1024, 16), handle = built_object(&guest, 256, 16);
	built_put64(&guest, leaf + guest.pack.at.xa_node_slots, page_struct(pages));
	built_page_cache(&guest, handle, leaf + 2, 5000 * 4096);
	open_kernel(&opened);
	assert_true(vp_guest_file_open(&opened.kernel, handle, &file));
	assert_true(vp_guest_file_read(&file, 0, &byte, 1) && byte == 'a');
	assert_false(vp_guest_file_read(&file, 64 * 4096, &byte, 1));
	assert_false(vp_guest_file_read(&file, 4096ULL * 4096, &byte, 1));
	file.pages = page_struct(pages); /* the first page only */
	assert_true(vp_guest_file_read(&file, 0, &byte, 1) && byte == 'a');
	assert_false(vp_guest_file_read(&file, 4096, &byte, 1));
	close_guest(&opened);
}

/* The whole way: a guest in, map text out. */
static void test_dump(void **state)
{
	struct vp_guest_dump *dump = vp_guest_dump_new();
	struct vp_buffer text = {0};
	struct opened opened;
	size_t processes;
	int fd = memfd_create("maps", MFD_CLOEXEC);

	built_kernel(&guest, BUILT_OLD);
	uint64_t mm = built_mm(&guest), top = built_dentry(&guest, 0, "/");
	uint64_t mnt = built_mount(&guest, top, 0, top);
	uint64_t file = built_file(&guest, built_dentry(&guest, top, "prog"), mnt);
	built_put64(&guest, mm + guest.pack.at.mm_maple_root,
		    built_vma(&guest, 0x400000, 0x402000, 1, file));
	uint64_t place = built_process(&guest, 7, mm, "prog");
	open_kernel(&opened);
	vp_guest_dump_see(dump, &opened.kernel, place, 8, 100); /* another process by now */
	vp_guest_dump_see(dump, &opened.kernel, place, 7, 100);
	vp_guest_dump_keep(dump, &opened.kernel);
	expect_no_error(vp_guest_dump_write(dump, &opened.kernel, fd, true, &processes));
	assert_int_equal(processes, 1);
	VP_AUTO_FREE char *path = vp_format("/proc/self/fd/%d", fd);
	expect_no_error(vp_file_read(path, 1 << 20, &text));
	const char *maps = vp_buffer_text(&text);
	assert_non_null(strstr(maps, "\nsource memory\n"));
	assert_non_null(strstr(maps, "\na 0 7 1000 0 0 prog\n"));
	assert_non_null(strstr(maps, "\nm 0 400000 402000 1000 0 - /prog\n"));
	assert_non_null(strstr(maps, "\nk ffffffff81000100 0 T entry_SYSCALL_64\n"));
	vp_buffer_deinit(&text);
	vp_guest_dump_free(dump);
	close_guest(&opened);
	close(fd);
}

static bool read_nothing(void *context, uint64_t hva, void *bytes, size_t size)
{
	return false;
}

/* A VM that is gone: what was known of its processes and its kernel's symbols remain. */
static void test_dump_gone(void **state)
{
	struct vp_guest_dump *dump = vp_guest_dump_new();
	struct vp_buffer text = {0};
	struct opened opened;
	size_t processes;
	VP_AUTO_CLOSE int fd = memfd_create("maps", MFD_CLOEXEC);

	built_kernel(&guest, BUILT_PLACE);
	uint64_t mm = built_mm(&guest), top = built_dentry(&guest, 0, "/");
	uint64_t file =
	    built_file(&guest, built_dentry(&guest, top, "prog"), built_mount(&guest, top, 0, top));
	built_put64(&guest, mm + guest.pack.at.mm_maple_root,
		    built_vma(&guest, 0x400000, 0x402000, 1, file));
	uint64_t place = built_process(&guest, 7, mm, "prog");
	open_kernel(&opened);
	vp_guest_dump_keep(dump, &opened.kernel);
	vp_guest_dump_see(dump, &opened.kernel, place, 7, 100);
	opened.snapshot.memory.read = read_nothing;
	vp_guest_dump_see(dump, &opened.kernel, place, 9, 200);
	expect_no_error(vp_guest_dump_write(dump, &opened.kernel, fd, true, &processes));
	assert_int_equal(processes, 1);
	VP_AUTO_FREE char *path = vp_format("/proc/self/fd/%d", fd);
	expect_no_error(vp_file_read(path, 1 << 20, &text));
	const char *maps = vp_buffer_text(&text);
	assert_non_null(strstr(maps, "\na 0 7 1000 0 0 prog\n"));
	assert_non_null(strstr(maps, "\nm 0 400000 402000 1000 0 - /prog\n"));
	assert_non_null(strstr(maps, "\nk ffffffff81000100 0 T entry_SYSCALL_64\n"));
	assert_non_null(strstr(maps, "\nn the%20guest's%20task%20list"));
	vp_buffer_deinit(&text);
	vp_guest_dump_free(dump);
	close_guest(&opened);
}

/* The map text when process `tgid` was seen, and another one, unless `other` is 0. */
static char *map_text_of(uint64_t place, uint32_t tgid, uint64_t other, uint32_t other_tgid,
			 bool has_ended)
{
	struct vp_guest_dump *dump = vp_guest_dump_new();
	VP_AUTO_CLOSE int fd = memfd_create("maps", MFD_CLOEXEC);
	VP_AUTO_FREE char *path = vp_format("/proc/self/fd/%d", fd);
	struct vp_buffer text = {0};
	struct opened opened;
	size_t processes;

	open_kernel(&opened);
	vp_guest_dump_see(dump, &opened.kernel, place, tgid, 100);
	if (other)
		vp_guest_dump_see(dump, &opened.kernel, other, other_tgid, 100);
	close_guest(&opened);
	if (has_ended) { /* out of the ring of tasks */
		uint32_t link = guest.pack.at.task_tasks;
		uint64_t next, before;
		memcpy(&next, built_at(&guest, other + link), sizeof(next));
		memcpy(&before, built_at(&guest, other + link + 8), sizeof(before));
		built_put64(&guest, before, next);
		built_put64(&guest, next + 8, before);
	}
	open_kernel(&opened);
	expect_no_error(vp_guest_dump_write(dump, &opened.kernel, fd, true, &processes));
	expect_no_error(vp_file_read(path, 1 << 20, &text));
	char *copy = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	vp_guest_dump_free(dump);
	close_guest(&opened);
	return copy;
}

/* The same when the other one has ended since. */
static char *map_text(uint64_t place, uint32_t tgid, uint64_t gone, uint32_t gone_tgid)
{
	return map_text_of(place, tgid, gone, gone_tgid, gone);
}

enum {
	MEGABYTE = 1 << 20,
	BIG_SIZE = 300 * MEGABYTE,
	BIG_SYMBOLS = 280 * MEGABYTE,
	BIG_NAMES = 290 * MEGABYTE,
	BIG_SECTIONS = 299 * MEGABYTE,
	NAMES_SIZE = 2 * 4096, /* the last name of the first page goes on in the second */
	CUT_AT = 4096 - 4,
};

enum big_part { BIG_HEAD, BIG_TABLE, BIG_TEXT, BIG_TAIL, BIG_HEADERS, BIG_PARTS };

/* A file of 300 MiB of which only these pages are in the page cache: bits of enum big_part. */
static void built_big_file(uint64_t handle, unsigned parts)
{
	static char names[NAMES_SIZE];
	struct elf_builder elf;
	struct page_at pages[BIG_PARTS];
	size_t count = 0;

	elf_builder_init(&elf);
	elf_builder_symbol(&elf, "far_function", ELF_BUILDER_VADDR + 0x10, 16,
			   ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 1);
	elf_builder_symbol(&elf, "whole", ELF_BUILDER_VADDR + 0x40, 8,
			   ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 1);
	memcpy(names, elf.strings, elf.string_size);
	strcpy(names + CUT_AT, "cut_short");
	elf.symbols[elf.symbol_count++] =
	    (Elf64_Sym){.st_name = CUT_AT,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = 1,
			.st_value = ELF_BUILDER_VADDR + 0x80,
			.st_size = 8};
	elf.sections[3].sh_offset = BIG_NAMES;
	elf.sections[3].sh_size = NAMES_SIZE;
	elf.sections[4].sh_offset = BIG_SYMBOLS;
	elf.header.e_shoff = BIG_SECTIONS;
	elf.header.e_phnum = 2;
	elf_builder_finish(&elf);
	const Elf64_Phdr note = {.p_type = PT_NOTE, .p_offset = ELF_BUILDER_NOTE, .p_filesz = 20};
	memcpy(elf.bytes + sizeof(elf.header) + sizeof(note), &note, sizeof(note));
	const struct {
		uint64_t offset;
		const void *bytes;
		size_t size;
	} all[BIG_PARTS] = {{0, elf.bytes, 0x200},
			    {BIG_SYMBOLS, elf.symbols, sizeof(elf.symbols)},
			    {BIG_NAMES, names, 4096},
			    {BIG_NAMES + 4096, names + 4096, 4096},
			    {BIG_SECTIONS, elf.sections, sizeof(elf.sections)}};
	for (unsigned i = 0; i < BIG_PARTS; i++)
		if (parts >> i & 1)
			pages[count++] = (struct page_at){
			    all[i].offset >> 12, built_page(&guest, all[i].bytes, all[i].size)};
	built_page_cache(&guest, handle, built_tree(&guest, pages, count), BIG_SIZE);
}

/* The map text of a guest whose one program is that file. */
static char *text_of_big_file(unsigned parts)
{
	built_kernel(&guest, BUILT_NEW);
	struct root root = built_root(&guest);
	uint64_t handle = built_file(&guest, built_dentry(&guest, root.dentry, "big"), root.mnt);
	built_big_file(handle, parts);
	return map_text(built_program(&guest, &root, 7, handle), 7, 0, 0);
}

static void test_big_file(void **state)
{
	const unsigned all = (1U << BIG_PARTS) - 1;
	VP_AUTO_FREE char *whole = text_of_big_file(all);

	assert_non_null(strstr(whole, "\ni deadbeef /big\n"));
	assert_non_null(strstr(whole, "\ns 1010 10 far_function\n"));
	assert_non_null(strstr(whole, "\ns 1080 8 cut_short\n"));
	assert_null(strstr(whole, "function%20names%20of%20'/big'"));

	/* Half a name is none. */
	VP_AUTO_FREE char *cut = text_of_big_file(all & ~(1U << BIG_TAIL));
	assert_non_null(strstr(cut, "\ns 1010 10 far_function\n"));
	assert_non_null(strstr(cut, "\ns 1040 8 whole\n"));
	assert_null(strstr(cut, "cut_"));
	assert_non_null(strstr(cut, "only%20some%20function%20names%20of%20'/big':%201%20of%203"));

	VP_AUTO_FREE char *headless = text_of_big_file(all & ~(1U << BIG_HEADERS));
	assert_null(strstr(headless, "\ns 1010"));
	assert_non_null(strstr(headless,
			       "no%20function%20names%20of%20'/big':%20its%20section%20"
			       "headers%20are%20not%20in%20the%20guest's%20page%20cache"));
}

static uint64_t inode_of(const struct opened *opened, uint64_t handle)
{
	struct vp_guest_file file;

	assert_true(vp_guest_file_open(&opened->kernel, handle, &file));
	return file.inode;
}

/* Names of a file whose build-id is another one by now would be wrong. */
static void test_file_that_changed(void **state)
{
	const struct vp_build_id same = vp_build_id_of("\xde\xad\xbe\xef", 4),
				 other = vp_build_id_of("\xde\xad\xbe\xee", 4);
	struct vp_guest_images images;
	struct vp_maps_writer writer;
	struct opened opened;

	built_kernel(&guest, BUILT_NEW);
	struct root root = built_root(&guest);
	uint64_t handle = built_file(&guest, built_dentry(&guest, root.dentry, "big"), root.mnt);
	built_big_file(handle, (1U << BIG_PARTS) - 1);
	open_kernel(&opened);
	uint64_t inode = inode_of(&opened, handle);
	vp_maps_writer_init(&writer, -1);
	vp_guest_images_init(&images, &opened.kernel, &writer);
	vp_guest_images_write(&images, &(struct vp_guest_image){"/big", other, 0, inode});
	const char *text = vp_buffer_text(&writer.buffer);
	assert_non_null(strstr(text, "i deadbeee /big\n"));
	assert_null(strstr(text, "\ns "));
	assert_non_null(strstr(text, "'/big':%20it%20changed%20since%20it%20was%20mapped"));
	vp_guest_images_write(&images, &(struct vp_guest_image){"/big", same, 0, inode});
	text = vp_buffer_text(&writer.buffer);
	assert_non_null(strstr(text, "\ni deadbeef /big\ns 1010 10 far_function\n"));
	vp_maps_writer_deinit(&writer);
	close_guest(&opened);
}

/* The process has ended, and its struct file is another one's by now: names come from the inode. */
static void test_file_of_ended_process(void **state)
{
	struct vp_guest_dump *dump = vp_guest_dump_new();
	VP_AUTO_CLOSE int fd = memfd_create("maps", MFD_CLOEXEC);
	VP_AUTO_FREE char *path = vp_format("/proc/self/fd/%d", fd);
	struct vp_buffer text = {0};
	struct opened opened;
	size_t processes;

	built_kernel(&guest, BUILT_NEW);
	struct root root = built_root(&guest);
	uint64_t handle = built_file(&guest, built_dentry(&guest, root.dentry, "big"), root.mnt);
	built_big_file(handle, (1U << BIG_PARTS) - 1);
	uint64_t place = built_program(&guest, &root, 7, handle);
	open_kernel(&opened);
	vp_guest_dump_see(dump, &opened.kernel, place, 7, 100);
	close_guest(&opened);
	built_put64(&guest, place + guest.pack.at.task_mm, 0);
	memset(built_at(&guest, handle), 0xff, 256);
	open_kernel(&opened);
	expect_no_error(vp_guest_dump_write(dump, &opened.kernel, fd, true, &processes));
	expect_no_error(vp_file_read(path, 1 << 20, &text));
	assert_non_null(
	    strstr(vp_buffer_text(&text), "\ni deadbeef /big\ns 1010 10 far_function\n"));
	vp_buffer_deinit(&text);
	vp_guest_dump_free(dump);
	close_guest(&opened);
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (const char *at = text; (at = strstr(at, part)); at++)
		count++;
	return count;
}

/* Of very many files without symbols, only how many there are. */
static void test_files_without_notes(void **state)
{
	enum { FILES = 107, TOLD = 100 };
	struct vp_guest_images images;
	struct vp_maps_writer writer;
	struct opened opened;

	built_kernel(&guest, BUILT_NEW);
	open_kernel(&opened);
	vp_maps_writer_init(&writer, -1);
	vp_guest_images_init(&images, &opened.kernel, &writer);
	for (unsigned i = 0; i < FILES; i++) {
		VP_AUTO_FREE char *path = vp_format("/file%u", i);
		vp_guest_images_write(&images, &(struct vp_guest_image){.path = path});
	}
	vp_guest_images_finish(&images);
	const char *text = vp_buffer_text(&writer.buffer);
	assert_int_equal(count_of(text, "cannot%20be%20located"), TOLD);
	assert_int_equal(count_of(text, "\ni - /file"), FILES);
	assert_non_null(strstr(text, "function%20names%20of%207%20more%20files"));
	vp_maps_writer_deinit(&writer);
	close_guest(&opened);
}

/* Headers that claim more than what is read of a file, and tables beyond its end. */
static void test_big_lies(void **state)
{
	const struct {
		uint64_t size, offset;
		const char *why;
	} lies[] = {{VP_ELF_TABLES_MAX + 24, 0, "larger than the limit"},
		    {UINT64_MAX - 4, 16, "its section headers are invalid"},
		    {48, BIG_SIZE, "its section headers are invalid"}};

	for (size_t i = 0; i < VP_ARRAY_SIZE(lies); i++) {
		struct elf_builder elf;
		struct vp_guest_file file;
		struct vp_elf_tables tables;
		struct opened opened;
		built_kernel(&guest, BUILT_NEW);
		elf_builder_init(&elf);
		elf_builder_finish(&elf);
		elf.sections[4].sh_size = lies[i].size;
		elf.sections[4].sh_offset = lies[i].offset;
		memcpy(elf.bytes + ELF_BUILDER_SECTIONS, elf.sections, sizeof(elf.sections));
		const struct page_at page = {0, built_page(&guest, elf.bytes, 0x1000)};
		uint64_t handle = built_object(&guest, 256, 16);
		built_page_cache(&guest, handle, built_tree(&guest, &page, 1), BIG_SIZE);
		open_kernel(&opened);
		assert_true(vp_guest_file_open(&opened.kernel, handle, &file));
		vp_elf_tables_read(&file, UINT64_MAX, &tables);
		assert_non_null(tables.problem);
		if (!strstr(tables.problem, lies[i].why))
			fail_msg("'%s' does not say '%s'", tables.problem, lies[i].why);
		vp_elf_tables_deinit(&tables);
		close_guest(&opened);
	}
}

enum { STRIPPED_SIZE = 0x9000, STRIPPED_HEADERS = 0x8000, STRIPPED_NOTES = 0x600 };

/* A stripped file as it is mapped: its tables are where their addresses are, and its section
 * headers are in its last page. */
static bool is_sstripped; /* without section headers */

static void build_stripped(char *bytes)
{
	struct made_elf file;

	made_start(&file);
	made_eh_frame(&file);
	made_finish(&file);
	Elf64_Ehdr header;
	memcpy(&header, file.bytes.bytes, sizeof(header));
	memset(bytes, 0, STRIPPED_SIZE);
	memcpy(bytes, file.bytes.bytes, header.e_ehsize + sizeof(Elf64_Phdr));
	memcpy(bytes + MADE_UNWIND, file.bytes.bytes + file.sections[1].sh_offset,
	       file.sections[1].sh_size);
	memcpy(bytes + STRIPPED_NOTES, file.names.bytes, file.names.size);
	file.sections[1].sh_offset = MADE_UNWIND;
	file.sections[2].sh_offset = STRIPPED_NOTES;
	memcpy(bytes + STRIPPED_HEADERS, file.sections, file.count * sizeof(*file.sections));
	header.e_shoff = STRIPPED_HEADERS;
	header.e_phnum = 2;
	if (is_sstripped) {
		memset(bytes + STRIPPED_HEADERS, 0, file.count * sizeof(*file.sections));
		header.e_shoff = header.e_shnum = header.e_shentsize = header.e_shstrndx = 0;
	}
	/* version, encodings, where .eh_frame is, one entry: the second function's */
	const uint32_t words[] = {0x3b031b01, (uint32_t)(MADE_UNWIND - (0x5000 + 4)), 1,
				  (uint32_t)(MADE_CODE + 0x80 - 0x5000),
				  (uint32_t)(MADE_UNWIND + 36 - 0x5000)};
	memcpy(bytes + 0x5000, words, sizeof(words));
	const Elf64_Phdr unwind = {.p_type = PT_GNU_EH_FRAME,
				   .p_offset = 0x5000,
				   .p_vaddr = 0x5000,
				   .p_filesz = sizeof(words)};
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header) + sizeof(unwind), &unwind, sizeof(unwind));
	vp_buffer_deinit(&file.bytes);
	vp_buffer_deinit(&file.names);
}

/* The map text of a guest with that program, of which pages `missing` and `also` are not
 * resident. */
static char *text_without_pages(unsigned missing, unsigned also)
{
	static char bytes[STRIPPED_SIZE];
	struct page_at pages[STRIPPED_SIZE >> 12];
	size_t count = 0;

	built_kernel(&guest, BUILT_NEW);
	struct root root = built_root(&guest);
	uint64_t handle = built_file(&guest, built_dentry(&guest, root.dentry, "bare"), root.mnt);
	build_stripped(bytes);
	for (unsigned i = 0; i < VP_ARRAY_SIZE(pages); i++)
		if (i != missing && i != also)
			pages[count++] =
			    (struct page_at){i, built_page(&guest, bytes + 0x1000 * i, 0x1000)};
	built_page_cache(&guest, handle, built_tree(&guest, pages, count), STRIPPED_SIZE);
	return map_text(built_program(&guest, &root, 7, handle), 7, 0, 0);
}

static char *text_of_stripped(unsigned missing)
{
	return text_without_pages(missing, missing);
}

/* Neither names nor a build-id: functions are known by their extents. */
static void test_stripped_file(void **state)
{
	VP_AUTO_FREE char *whole = text_of_stripped(UINT32_MAX);
	VP_AUTO_FREE char *headless = text_of_stripped(STRIPPED_HEADERS >> 12);
	VP_AUTO_FREE char *bare = text_of_stripped(MADE_UNWIND >> 12);
	VP_AUTO_FREE char *nothing = text_of_stripped(0);
	VP_AUTO_FREE char *tables = text_without_pages(STRIPPED_HEADERS >> 12, MADE_UNWIND >> 12);

	assert_non_null(strstr(whole, "\ni - /bare\ns 1000 40 -\ns 1080 20 -\n"));
	assert_null(strstr(whole, "function%20names%20of%20'/bare'"));
	assert_null(strstr(whole, "section%20headers"));
	assert_non_null(strstr(headless, "\ni - /bare\ns 1000 40 -\ns 1080 20 -\n"));
	assert_non_null(
	    strstr(headless, "may%20be%20missing%20in%20'/bare'%20(files:%201):%20section"));
	assert_null(strstr(bare, "\ns "));
	assert_non_null(strstr(bare, "only%20some%20function%20names%20of%20'/bare':%201%20of"
				     "%201%20pages%20of%20its%20unwind%20tables"));
	assert_null(strstr(nothing, "\ns "));
	assert_non_null(strstr(nothing, "its%20build-id%20is%20missing"));
	assert_null(strstr(tables, "no%20symbol%20table"));
	assert_non_null(strstr(tables, "section%20headers%20are%20not%20in%20the%20guest's"));
}

/* Number of functions in a Haskell program, of which the code's page `missing` is not resident. */
static size_t functions_of_haskell(size_t missing)
{
	static unsigned char text[VP_GHC_SMALLEST + 0x1000];
	struct page_at pages[32];
	struct vp_elf_tables tables;
	struct vp_guest_file file;
	struct vp_image image;
	struct made_elf made;
	struct opened opened;
	size_t count = 0;

	made_start(&made);
	made_for_ghc(&made);
	made_eh_frame(&made);
	made_ghc_code(text, sizeof(text));
	made_section(&made, ".text", SHT_PROGBITS, MADE_GHC, text, sizeof(text));
	made_finish(&made);
	built_kernel(&guest, BUILT_NEW);
	for (size_t i = 0, at; (at = i << 12) < made.bytes.size; i++) {
		size_t size = made.bytes.size - at < 0x1000 ? made.bytes.size - at : 0x1000;
		if (i != missing)
			pages[count++] =
			    (struct page_at){i, built_page(&guest, made.bytes.bytes + at, size)};
	}
	uint64_t handle = built_object(&guest, 256, 16);
	built_page_cache(&guest, handle, built_tree(&guest, pages, count), made.bytes.size);
	open_kernel(&opened);
	assert_true(vp_guest_file_open(&opened.kernel, handle, &file));
	vp_elf_tables_read(&file, UINT64_MAX, &tables);
	assert_null(tables.problem);
	assert_int_equal(tables.functions.missing, 0);
	expect_no_error(
	    vp_image_read_memory(tables.bytes.bytes, tables.bytes.size, "made", &image));
	count = image.symbols.count;
	vp_image_deinit(&image);
	vp_elf_tables_deinit(&tables);
	close_guest(&opened);
	vp_buffer_deinit(&made.bytes);
	vp_buffer_deinit(&made.names);
	return count;
}

/* Code is read where the unwind tables are small for it; what is not resident of it did not run. */
static void test_haskell_file(void **state)
{
	enum { WHOLE = 2 + (VP_GHC_SMALLEST + 0x1000) / MADE_GHC_STEP - 1 };

	assert_int_equal(functions_of_haskell(SIZE_MAX), WHOLE);
	assert_in_range(functions_of_haskell(4), WHOLE - 17, WHOLE - 15);
}

/* Files truly without section headers, as sstrip makes them. */
static void test_sstripped_file(void **state)
{
	(void)state;
	is_sstripped = true;
	VP_AUTO_FREE char *whole = text_of_stripped(UINT32_MAX);
	VP_AUTO_FREE char *tables = text_of_stripped(MADE_UNWIND >> 12);
	is_sstripped = false;
	assert_non_null(strstr(whole, "\ni - /bare\ns 1000 40 -\ns 1080 20 -\n"));
	assert_null(strstr(whole, "section%20headers"));
	assert_null(strstr(tables, "\ns "));
	assert_non_null(strstr(tables, "pages%20of%20its%20unwind%20tables"));
}

/* A file without a build-id that has another first page by now is another file. */
static void test_print(void **state)
{
	static char bytes[STRIPPED_SIZE];
	struct vp_guest_images images;
	struct vp_maps_writer writer;
	struct vp_guest_file file;
	struct opened opened;

	built_kernel(&guest, BUILT_NEW);
	struct root root = built_root(&guest);
	uint64_t handle = built_file(&guest, built_dentry(&guest, root.dentry, "bare"), root.mnt);
	build_stripped(bytes);
	struct page_at pages[STRIPPED_SIZE >> 12];
	for (unsigned i = 0; i < VP_ARRAY_SIZE(pages); i++)
		pages[i] = (struct page_at){i, built_page(&guest, bytes + 0x1000 * i, 0x1000)};
	uint64_t tree = built_tree(&guest, pages, VP_ARRAY_SIZE(pages));
	built_page_cache(&guest, handle, tree, STRIPPED_SIZE);
	open_kernel(&opened);
	assert_true(vp_guest_file_open(&opened.kernel, handle, &file));
	struct vp_guest_image image = {
	    .path = "/bare", .print = vp_guest_file_print(&file), .inode = file.inode};
	vp_maps_writer_init(&writer, -1);
	vp_guest_images_init(&images, &opened.kernel, &writer);
	vp_guest_images_write(&images, &image);
	assert_non_null(strstr(vp_buffer_text(&writer.buffer), "\ns 1000 40 -\n"));
	writer.buffer.size = 0;
	image.print++;
	vp_guest_images_write(&images, &image);
	assert_null(strstr(vp_buffer_text(&writer.buffer), "\ns "));
	assert_non_null(strstr(vp_buffer_text(&writer.buffer), "it%20changed%20since"));
	writer.buffer.size = 0;
	image.print = 0;
	vp_guest_images_write(&images, &image);
	assert_null(strstr(vp_buffer_text(&writer.buffer), "\ns "));
	vp_maps_writer_deinit(&writer);
	close_guest(&opened);
}

/* The process is number 3 in a pid namespace of its own. */
static void built_inner_pid(uint64_t task)
{
	uint64_t pid = built_object(&guest, 256, 16);

	built_put64(&guest, task + guest.pack.at.task_thread_pid, pid);
	put32(built_at(&guest, pid + guest.pack.at.pid_level), 1);
	put32(built_at(&guest, pid + guest.pack.at.pid_numbers), 7);
	put32(built_at(&guest, pid + guest.pack.at.pid_numbers + 16), 3);
}

/* /tmp is a mount of its own, with perf maps of a process in a pid namespace and of one that ended.
 */
static void test_generated_code(void **state)
{
	const enum built_layout layouts[] = {BUILT_OLD, BUILT_NEW, BUILT_PLACE};

	for (size_t i = 0; i < VP_ARRAY_SIZE(layouts); i++) {
		built_kernel(&guest, layouts[i]);
		struct root root = built_root(&guest);
		uint64_t prog =
		    built_file(&guest, built_dentry(&guest, root.dentry, "prog"), root.mnt);
		uint64_t point = built_dentry(&guest, root.dentry, "tmp"),
			 tmp = built_dentry(&guest, 0, "/");
		built_put64(&guest, point + guest.pack.at.dentry_inode, 1);
		built_mount(&guest, tmp, root.mnt, point);
		built_dentry(&guest, root.dentry, "usr");
		built_text_file(
		    &guest, tmp, "perf-3.map",
		    "7f0000001000 40 Interp:main\n0x7f0000001040 0x20 a b\n"
		    "nonsense\n0 10 zero\nffffffffffffffff 10 beyond\n7f0000002000 10 x",
		    false);
		built_text_file(&guest, tmp, "perf-9.map", "400000 10 left_behind\n", false);
		built_text_file(&guest, tmp, "perf-7.map", "400000 10 of_another\n", false);
		built_text_file(&guest, tmp, "perf-3.mapx", "400000 10 no_map\n", false);
		built_dentry(&guest, tmp, "perf-3.map"); /* removed: an entry without an inode */
		uint64_t place = built_program(&guest, &root, 7, prog);
		uint64_t gone = built_program(&guest, &root, 9, prog);
		built_inner_pid(place);
		VP_AUTO_FREE char *text = map_text(place, 7, gone, 9);
		assert_non_null(strstr(text, "\nj 0 7f0000001000 40 Interp:main\n"
					     "j 0 7f0000001040 20 a%20b\nj 0 7f0000002000 10 x\n"));
		assert_non_null(strstr(text, "\nj 1 400000 10 left_behind\n"));
		assert_null(strstr(text, "of_another"));
		assert_null(strstr(text, "no_map"));
		assert_null(strstr(text, "zero"));
		assert_null(strstr(text, "beyond"));
	}
}

/* Two roots on one mount, as of chroot(2), have a /tmp each, with maps of the same process numbers.
 */
static void test_generated_code_in_two_roots(void **state)
{
	const char *const names[] = {"left", "right"};
	uint64_t place[2];

	built_kernel(&guest, BUILT_NEW);
	struct root root = built_root(&guest);
	for (unsigned i = 0; i < 2; i++) {
		if (i) {
			root.dentry = built_dentry(&guest, root.dentry, "jail");
			root.fs = built_object(&guest, 256, 16);
			built_put64(&guest, root.fs + guest.pack.at.fs_root_dentry, root.dentry);
			built_put64(&guest, root.fs + guest.pack.at.fs_root_mnt, root.mnt);
		}
		uint64_t prog =
		    built_file(&guest, built_dentry(&guest, root.dentry, "prog"), root.mnt);
		uint64_t tmp = built_dentry(&guest, root.dentry, "tmp");
		built_put64(&guest, tmp + guest.pack.at.dentry_inode, 1);
		for (unsigned pid = 7; pid < 9; pid++) {
			VP_AUTO_FREE char *name = vp_format("perf-%u.map", pid);
			VP_AUTO_FREE char *code =
			    vp_format("400000 10 %s_%s\n", names[i], pid == 7 ? "a" : "b");
			built_text_file(&guest, tmp, name, code, false);
		}
		place[i] = built_program(&guest, &root, 7 + i, prog);
	}
	VP_AUTO_FREE char *text = map_text_of(place[0], 7, place[1], 8, false);
	assert_non_null(strstr(text, "\nj 0 400000 10 left_a\n"));
	assert_non_null(strstr(text, "\nj 1 400000 10 right_b\n"));
	assert_null(strstr(text, "left_b"));
	assert_null(strstr(text, "right_a"));
}

/* On overlayfs: the file's inode has no pages, those of the upper layer's file have them. */
static void test_generated_code_on_overlayfs(void **state)
{
	const struct vp_kernel_pack *pack = &guest.pack;
	uint64_t upper;

	built_kernel(&guest, BUILT_NEW);
	struct root root = built_root(&guest);
	uint64_t prog = built_file(&guest, built_dentry(&guest, root.dentry, "prog"), root.mnt);
	uint64_t tmp = built_dentry(&guest, root.dentry, "tmp");
	built_put64(&guest, tmp + pack->at.dentry_inode, 1);
	uint64_t layer = built_dentry(&guest, 0, "/");
	built_text_file(&guest, layer, "perf-7.map", "7f0000001000 40 compiled\n", false);
	memcpy(&upper, built_at(&guest, layer + pack->at.dentry_children), sizeof(upper));
	upper -= pack->at.dentry_sib;
	uint64_t super = built_object(&guest, 512, 16), inode = built_object(&guest, 1024, 16);
	built_put64(&guest, super + pack->at.sb_magic, OVERLAYFS_SUPER_MAGIC);
	built_put64(&guest, inode + pack->at.inode_sb, super);
	built_put64(&guest, inode + BUILT_STRUCT, upper);
	uint64_t dentry = built_dentry(&guest, tmp, "perf-7.map");
	built_put64(&guest, dentry + pack->at.dentry_inode, inode);
	uint64_t place = built_program(&guest, &root, 7, prog);
	VP_AUTO_FREE char *text = map_text(place, 7, 0, 0);
	assert_non_null(strstr(text, "\nj 0 7f0000001000 40 compiled\n"));

	/* An overlay whose upper file is its own one has an end. */
	built_put64(&guest, upper + pack->at.dentry_inode, inode);
	VP_AUTO_FREE char *ring = map_text(place, 7, 0, 0);
	assert_null(strstr(ring, "compiled"));
}

/* An entry of a list; its list_head is at `link`. */
static void built_entry(uint64_t head, uint64_t entry, uint32_t link)
{
	uint64_t next;

	memcpy(&next, built_at(&guest, head), sizeof(next));
	built_put64(&guest, entry + link, next);
	built_put64(&guest, head, entry + link);
}

static uint64_t built_ksym(uint64_t start, uint64_t size, const char *name)
{
	const struct vp_kernel_pack *pack = &guest.pack;
	uint64_t entry = built_object(&guest, 512, 16);

	built_put64(&guest, entry + pack->at.ksym_start, start);
	built_put64(&guest, entry + pack->at.ksym_end, start + size);
	strcpy(built_at(&guest, entry + pack->at.ksym_name), name);
	/* Members of the built kernel are 8 bytes each: nothing after the name is used. */
	built_entry(BUILT_TEXT + AT_BPF, entry, pack->at.ksym_node);
	return entry;
}

static char *kernel_code_text(void)
{
	struct vp_maps_writer writer;
	struct opened opened;

	open_kernel(&opened);
	vp_maps_writer_init(&writer, -1);
	vp_guest_kernel_code_write(&opened.kernel, &writer);
	char *text = vp_strdup(vp_buffer_text(&writer.buffer));
	vp_maps_writer_deinit(&writer);
	close_guest(&opened);
	return text;
}

/* BPF programs and trampolines; lists that have no end, entries that can be none. */
static void test_kernel_code(void **state)
{
	const struct vp_kernel_pack *pack = &guest.pack;

	built_kernel(&guest, BUILT_NEW);
	VP_AUTO_FREE char *none = kernel_code_text();
	assert_null(strstr(none, "\nk "));
	assert_null(strstr(none, "\nn "));

	built_ksym(0xffffffffc0001000, 0x80, "bpf_1");
	uint64_t entry = built_ksym(0xffffffffc0002000, 0x40, "tramp_2");
	uint64_t ops = built_object(&guest, 512, 16);
	built_put64(&guest, ops + pack->at.ops_trampoline, 0xffffffffc0003000);
	built_put64(&guest, ops + pack->at.ops_trampoline_size, 0x100);
	built_entry(BUILT_TEXT + AT_FTRACE, ops, pack->at.ops_list);
	VP_AUTO_FREE char *text = kernel_code_text();
	assert_non_null(strstr(text,
			       "\nk ffffffffc0002000 40 t tramp_2 bpf\n"
			       "k ffffffffc0001000 80 t bpf_1 bpf\n"
			       "k ffffffffc0003000 100 t ftrace_trampoline __builtin__ftrace\n"));
	assert_null(strstr(text, "\nn "));

	/* A program that ends before it starts, and one in user space. */
	built_put64(&guest, entry + pack->at.ksym_end, 0xffffffffc0001fff);
	VP_AUTO_FREE char *negative = kernel_code_text();
	assert_null(strstr(negative, "tramp_2"));
	assert_non_null(strstr(negative, "\nn the%20guest%20kernel's%20list%20of%20BPF"));
	built_put64(&guest, entry + pack->at.ksym_end, 0xffffffffc4002000); /* 64 MiB */
	VP_AUTO_FREE char *large = kernel_code_text();
	assert_null(strstr(large, "tramp_2"));
	built_put64(&guest, entry + pack->at.ksym_start, 0x1000);
	built_put64(&guest, entry + pack->at.ksym_end, 0x1040);
	VP_AUTO_FREE char *low = kernel_code_text();
	assert_null(strstr(low, "tramp_2"));

	/* A ring without its head. */
	built_put64(&guest, entry + pack->at.ksym_start, 0xffffffffc0002000);
	built_put64(&guest, entry + pack->at.ksym_end, 0xffffffffc0002040);
	built_put64(&guest, entry + pack->at.ksym_node, entry + pack->at.ksym_node);
	VP_AUTO_FREE char *ring = kernel_code_text();
	assert_non_null(strstr(ring, "\nn the%20guest%20kernel's%20list%20of%20BPF"));
}

/* What is not in the page cache is said, and half a line before or after it is none. */
static void test_generated_code_holes(void **state)
{
	built_kernel(&guest, BUILT_NEW);
	struct root root = built_root(&guest);
	uint64_t prog = built_file(&guest, built_dentry(&guest, root.dentry, "prog"), root.mnt);
	uint64_t tmp = built_dentry(&guest, root.dentry, "tmp");
	built_put64(&guest, tmp + guest.pack.at.dentry_inode, 1);
	built_text_file(&guest, tmp, "perf-7.map", "e 40 half\n7f0000001040 20 whole\n", true);
	uint64_t place = built_program(&guest, &root, 7, prog);
	VP_AUTO_FREE char *text = map_text(place, 7, 0, 0);
	assert_non_null(strstr(text, "\nj 0 7f0000001040 20 whole\n"));
	assert_null(strstr(text, "half"));
	assert_non_null(strstr(text, "\nn only%20some%20names%20of%20JIT%20code"));
}

/* Folders that have no end, entries that are nowhere, names that are no names. */
static void test_folder_lies(void **state)
{
	enum { ENDLESS, NOWHERE, LONG_NAME, MOUNT_RING, LIES };

	for (int lie = 0; lie < LIES; lie++) {
		const struct vp_kernel_pack *pack = &guest.pack;
		built_kernel(&guest, BUILT_NEW);
		struct root root = built_root(&guest);
		uint64_t prog =
		    built_file(&guest, built_dentry(&guest, root.dentry, "prog"), root.mnt);
		uint64_t tmp = built_dentry(&guest, root.dentry, "tmp");
		built_put64(&guest, tmp + pack->at.dentry_inode, 1);
		built_text_file(&guest, tmp, "perf-7.map", "400000 10 found\n", false);
		uint64_t entry = built_dentry(&guest, tmp, "entry");
		if (lie == ENDLESS)
			built_put64(&guest, entry + pack->at.dentry_sib,
				    entry + pack->at.dentry_sib);
		else if (lie == NOWHERE)
			built_put64(&guest, entry + pack->at.dentry_sib, UINT64_MAX - 7);
		else if (lie == LONG_NAME)
			put32(built_at(&guest, entry + pack->at.dentry_len), UINT32_MAX);
		else
			built_mount(&guest, tmp, root.mnt,
				    tmp); /* a folder that is mounted on itself */
		VP_AUTO_FREE char *text = map_text(built_program(&guest, &root, 7, prog), 7, 0, 0);
		bool reached = lie == LONG_NAME || lie == MOUNT_RING;
		assert_int_equal(strstr(text, "\nj 0 400000 10 found\n") != NULL, reached);
		assert_int_equal(strstr(text, "\nn a%20/tmp") != NULL, !reached);
	}
}

/* Of programs of 64 bits only. */
static void test_build_id(void **state)
{
	struct vp_guest_file file;
	struct vp_build_id id;
	struct opened opened;
	struct elf_builder elf;

	for (int odd = 0; odd < 3; odd++) {
		elf_builder_init(&elf);
		elf.segment.p_type = PT_NOTE;
		elf.segment.p_offset = ELF_BUILDER_NOTE;
		elf.segment.p_filesz = 20;
		if (odd)
			elf.header.e_ident[odd == 1 ? EI_CLASS : EI_DATA] ^= 3;
		elf_builder_finish(&elf);
		built_kernel(&guest, BUILT_NEW);
		uint64_t page = built_object(&guest, 4096, 4096);
		memcpy(built_at(&guest, page), elf.bytes, 4096);
		uint64_t handle = built_object(&guest, 256, 16);
		built_page_cache(&guest, handle, page_struct(page - BUILT_DIRECT), 4096);
		open_kernel(&opened);
		assert_true(vp_guest_file_open(&opened.kernel, handle, &file));
		assert_int_equal(vp_guest_file_build_id(&file, &id), !odd);
		assert_int_equal(id.size, odd ? 0 : 4);
		close_guest(&opened);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_paths),
	    cmocka_unit_test(test_page_cache),
	    cmocka_unit_test(test_page_cache_shrinks),
	    cmocka_unit_test(test_dump),
	    cmocka_unit_test(test_dump_gone),
	    cmocka_unit_test(test_big_file),
	    cmocka_unit_test(test_big_lies),
	    cmocka_unit_test(test_stripped_file),
	    cmocka_unit_test(test_haskell_file),
	    cmocka_unit_test(test_sstripped_file),
	    cmocka_unit_test(test_print),
	    cmocka_unit_test(test_file_that_changed),
	    cmocka_unit_test(test_file_of_ended_process),
	    cmocka_unit_test(test_files_without_notes),
	    cmocka_unit_test(test_generated_code),
	    cmocka_unit_test(test_generated_code_in_two_roots),
	    cmocka_unit_test(test_generated_code_on_overlayfs),
	    cmocka_unit_test(test_kernel_code),
	    cmocka_unit_test(test_generated_code_holes),
	    cmocka_unit_test(test_folder_lies),
	    cmocka_unit_test(test_build_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
