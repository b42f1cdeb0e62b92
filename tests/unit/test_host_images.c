/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of users are read by a process that can do nothing but read them. */
#include "unit.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/confine.h"
#include "elf_builder.h"
#include "host/host_images.h"

#define FILE_NAME "test_host_images.bin"

static void test_images(void **state)
{
	char here[PATH_MAX / 2], path[PATH_MAX];
	struct elf_builder elf;
	struct vp_maps_writer writer;
	struct vp_mapped images[3] = {{.path = "/nonexistent"}, {.path = "[heap]"}, {.path = path}};

	assert_non_null(getcwd(here, sizeof(here)));
	snprintf(path, sizeof(path), "%s/" FILE_NAME, here);
	elf_builder_init(&elf);
	elf_builder_symbol(&elf, "first", ELF_BUILDER_VADDR, 0x20,
			   ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 1);
	elf_builder_finish(&elf);
	temporary_file(FILE_NAME, elf.bytes, sizeof(elf.bytes));
	vp_maps_writer_init(&writer, -1);
	size_t unread;
	expect_no_error(vp_host_images_write(&writer, images, 3, true, NULL, &unread));
	assert_int_equal(unread, 1); /* /nonexistent; [heap] is no file */
	assert_int_equal(writer.lines, 3);
	const char *text = vp_buffer_text(&writer.buffer);
	assert_non_null(strstr(text, "\ni deadbeef /"));
	assert_non_null(strstr(text, "\ns 1000 20 first\n"));
	assert_int_equal(images[2].build_id.size, 4);
	assert_int_equal(images[0].build_id.size, 0);
	vp_maps_writer_deinit(&writer);
}

/* A reader that was taken over may lie about files, and about nothing else. */
static void test_other_lines_are_not_taken(void **state)
{
	static const char text[] =
	    "i - /file\na 1 2 3 4 5 evil\ns 0 1 good\nsx\n\nend 5\ns 0 1 half";
	struct vp_maps_writer writer;

	vp_maps_writer_init(&writer, -1);
	vp_maps_writer_adopt(&writer, (struct vp_slice){text, sizeof(text) - 1}, "is");
	assert_string_equal(vp_buffer_text(&writer.buffer),
			    "vperf-maps 1\ni - /file\ns 0 1 good\n");
	assert_int_equal(writer.lines, 3);
	vp_maps_writer_deinit(&writer);
}

/* Tries what must not be possible, and says what was. */
static VP_NORETURN void try_all(int result)
{
	char can[4] = "----";

	if (vp_confine_to_reading(&result, 1, 0))
		_exit(1);
	can[0] = open(FILE_NAME, O_RDONLY | O_CLOEXEC) >= 0 ? 'r' : '-';
	can[1] = open(FILE_NAME, O_RDWR | O_CLOEXEC) >= 0 ? 'w' : '-';
	can[2] = open(FILE_NAME, O_RDONLY | O_TRUNC | O_CLOEXEC) >= 0 ? 't' : '-';
	can[3] = socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ? 's' : '-';
	_exit(write(result, can, sizeof(can)) != sizeof(can));
}

static void test_reader_only_reads(void **state)
{
	char can[8];
	int ends[2];

	temporary_file(FILE_NAME, "1", 1);
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0)
		try_all(ends[1]);
	close(ends[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(read(ends[0], can, sizeof(can)), 4);
	assert_memory_equal(can, "r---", 4);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_images),
	    cmocka_unit_test(test_other_lines_are_not_taken),
	    cmocka_unit_test(test_reader_only_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
