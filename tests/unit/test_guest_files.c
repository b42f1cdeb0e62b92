/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What processes of a guest have mapped, by path and by page cache, and the map text of it. */
#include "opened_guest.h"

#include <sys/mman.h>

#include "base/file.h"
#include "guestmem/dump.h"
#include "guestmem/pagecache.h"
#include "guestmem/process.h"

static uint64_t built_dentry(uint64_t parent, const char *name)
{
	const struct vp_kernel_pack *pack = &guest.pack;
	uint64_t dentry = built_object(&guest, 256, 16), text = built_object(&guest, 64, 8);

	strcpy(built_at(&guest, text), name);
	built_put64(&guest, dentry + pack->at.dentry_parent, parent ? parent : dentry);
	built_put64(&guest, dentry + pack->at.dentry_name, text);
	put32(built_at(&guest, dentry + pack->at.dentry_len), (uint32_t)strlen(name));
	return dentry;
}

/* A mount of `root` at `point` in `parent` (a struct vfsmount; 0: itself); its vfsmount. */
static uint64_t built_mount(uint64_t root, uint64_t parent, uint64_t point)
{
	const struct vp_kernel_pack *pack = &guest.pack;
	uint64_t mount = built_object(&guest, 512, 16);

	built_put64(&guest, mount + pack->at.mount_parent,
		    parent ? parent - pack->at.mount_mnt : mount);
	built_put64(&guest, mount + pack->at.mount_point, point);
	built_put64(&guest, mount + pack->at.mount_mnt + pack->at.mnt_root, root);
	return mount + pack->at.mount_mnt;
}

static uint64_t built_file(uint64_t dentry, uint64_t mnt)
{
	uint64_t file = built_object(&guest, 256, 16);

	built_put64(&guest, file + guest.pack.at.file_dentry, dentry);
	built_put64(&guest, file + guest.pack.at.file_mnt, mnt);
	return file;
}

static void test_paths(void **state)
{
	struct vp_buffer path = {0};
	struct vp_guest_task task;
	struct opened opened;

	built_kernel(&guest, BUILT_NEW);
	uint64_t top = built_dentry(0, "/"), usr = built_dentry(top, "usr");
	uint64_t inner = built_dentry(0, "/"), lib = built_dentry(inner, "lib");
	uint64_t x = built_dentry(lib, "x.so");
	uint64_t outer_mnt = built_mount(top, 0, top);
	uint64_t inner_mnt = built_mount(inner, outer_mnt, usr);
	uint64_t file = built_file(x, inner_mnt);
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

static uint64_t page_struct(uint64_t gpa)
{
	return BUILT_MEMMAP + (gpa >> 12) * BUILT_PAGE_SIZE_OF;
}

static void built_page_cache(uint64_t file, uint64_t head, uint64_t size)
{
	const struct vp_kernel_pack *pack = &guest.pack;
	uint64_t mapping = built_object(&guest, 256, 16), inode = built_object(&guest, 256, 16);

	built_put64(&guest, file + pack->at.file_mapping, mapping);
	built_put64(&guest, mapping + pack->at.mapping_host, inode);
	built_put64(&guest, mapping + pack->at.mapping_xa_head, head);
	built_put64(&guest, inode + pack->at.inode_size, size);
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
	built_page_cache(handle, top + 2, 100 * 4096);
	open_kernel(&opened);
	assert_true(vp_guest_file_open(&opened.kernel, handle, &file));
	assert_true(vp_guest_file_read(&file, 0, &byte, 1) && byte == 'a');
	assert_false(vp_guest_file_read(&file, 4096, &byte, 1));
	assert_true(vp_guest_file_read(&file, 64 * 4096, &byte, 1) && byte == 'b');
	assert_true(vp_guest_file_read(&file, 65 * 4096, &byte, 1) && byte == 'c');
	assert_false(vp_guest_file_read(&file, 100 * 4096, &byte, 1));
	file.pages = BUILT_DIRECT + BUILT_LOW + 0x1000000 + 2; /* a node that is nowhere */
	assert_false(vp_guest_file_read(&file, 0, &byte, 1));
	close_guest(&opened);

	built_put64(&guest, low + slots, low + 2); /* a node in itself */
	open_kernel(&opened);
	assert_true(vp_guest_file_open(&opened.kernel, handle, &file));
	assert_false(vp_guest_file_read(&file, 0, &byte, 1));
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
	uint64_t mm = built_mm(&guest), top = built_dentry(0, "/");
	uint64_t mnt = built_mount(top, 0, top);
	uint64_t file = built_file(built_dentry(top, "prog"), mnt);
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
	uint64_t mm = built_mm(&guest), top = built_dentry(0, "/");
	uint64_t file = built_file(built_dentry(top, "prog"), built_mount(top, 0, top));
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
	assert_non_null(strstr(maps, "\nn the%20guest's%20list%20of%20tasks"));
	vp_buffer_deinit(&text);
	vp_guest_dump_free(dump);
	close_guest(&opened);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_paths),
	    cmocka_unit_test(test_page_cache),
	    cmocka_unit_test(test_dump),
	    cmocka_unit_test(test_dump_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
