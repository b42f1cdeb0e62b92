/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes of the host as they are seen: any user can start, rename and map as much as he likes.
 */
#include "unit.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "host/host_maps.h"
#include "maps/maps.h"

#define NAME "test_host_maps.maps"
#define SECOND 1000000000ULL

/* Processes that there are not, whose numbers the kernel never gives. */
enum { NO_PROCESS = 1 << 23 };

static void see_under_name(struct vp_host_maps *maps, unsigned number, uint64_t time)
{
	char name[16];

	snprintf(name, sizeof(name), "name%u", number);
	prctl(PR_SET_NAME, name);
	vp_host_maps_note_sample(maps, (uint32_t)getpid(), name, time);
}

static size_t count_spaces(const struct vp_host_maps *maps)
{
	size_t spaces, mappings;

	vp_host_maps_count(maps, &spaces, &mappings);
	return spaces;
}

static size_t count_mappings(const struct vp_host_maps *maps)
{
	size_t spaces, mappings;

	vp_host_maps_count(maps, &spaces, &mappings);
	return mappings;
}

static char *written(struct vp_host_maps *maps, uint64_t from)
{
	struct vp_buffer text = {0};

	expect_no_error(vp_host_maps_write(maps, NAME, from, false, NULL));
	expect_no_error(vp_file_read(NAME, 256 << 20, &text));
	char *copy = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	return copy;
}

static void expect_problem(struct vp_host_maps *maps, const char *part)
{
	VP_AUTO_FREE char *problem = vp_host_maps_take_problem(maps);

	assert_non_null(problem);
	if (!strstr(problem, part))
		fail_msg("'%s' does not say '%s'", problem, part);
}

/* A new name alone costs no memory, and the map has the mappings once. */
static void test_names_share_mappings(void **state)
{
	struct vp_host_maps *maps = vp_host_maps_new();
	VP_AUTO_FREE char *line = vp_format("\na 0 %d 0 0 2000000000 name0\n", getpid());

	see_under_name(maps, 0, SECOND);
	size_t mappings = count_mappings(maps);
	assert_true(mappings > 2);
	see_under_name(maps, 1, 2 * SECOND);
	see_under_name(maps, 1, 3 * SECOND);
	assert_int_equal(count_spaces(maps), 2);
	assert_int_equal(count_mappings(maps), mappings);
	VP_AUTO_FREE char *text = written(maps, 0);
	assert_non_null(strstr(text, line));
	assert_non_null(strstr(text, "\nf 1 0\n"));
	assert_non_null(strstr(text, "\nm 0 "));
	assert_null(strstr(text, "\nm 1 "));
	assert_null(strstr(text, "\nn "));
	assert_null(vp_host_maps_take_problem(maps));
	vp_host_maps_free(maps);
}

static void test_names_are_bounded(void **state)
{
	struct vp_host_maps *maps = vp_host_maps_new();

	for (unsigned i = 0; i < 200; i++)
		see_under_name(maps, i, SECOND + i);
	assert_int_equal(count_spaces(maps), VP_HOST_MAPS_PROCESS_PER_SECOND + 1);
	for (unsigned i = 0; i < 200; i++)
		see_under_name(maps, i, (2 + i) * SECOND);
	assert_int_equal(count_spaces(maps), VP_HOST_MAPS_PROCESS_SPACES);
	free(written(maps, 0));
	expect_problem(maps, "former name");
	assert_null(vp_host_maps_take_problem(maps));
	free(written(maps, 0)); /* no more than was said */
	assert_null(vp_host_maps_take_problem(maps));
	vp_host_maps_free(maps);
}

static void test_processes_are_bounded(void **state)
{
	struct vp_host_maps *maps = vp_host_maps_new();
	unsigned n = 3 * VP_HOST_MAPS_PER_SECOND;

	for (unsigned i = 0; i < n; i++)
		vp_host_maps_note_sample(maps, NO_PROCESS + i, "short", SECOND + i);
	assert_int_equal(count_spaces(maps), VP_HOST_MAPS_PER_SECOND);
	vp_host_maps_note_sample(maps, NO_PROCESS + n, "short", 2 * SECOND);
	assert_int_equal(count_spaces(maps), VP_HOST_MAPS_PER_SECOND + 1);
	free(written(maps, 0));
	expect_problem(maps, "2000 samples of host processes have no names");
	vp_host_maps_free(maps);
}

static void test_mappings_are_bounded(void **state)
{
	enum { MORE = VP_HOST_MAPS_MAPPINGS + 500 };
	size_t page = (size_t)getpagesize();
	struct vp_host_maps *maps = vp_host_maps_new();
	char *room = mmap(NULL, 2 * MORE * page, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(room, MAP_FAILED);
	for (size_t i = 0; i < MORE; i++)
		if (mprotect(room + 2 * i * page, page, PROT_READ | PROT_EXEC))
			fail_msg("the kernel allows fewer mappings");
	see_under_name(maps, 0, SECOND);
	munmap(room, 2 * MORE * page);
	assert_int_equal(count_mappings(maps), VP_HOST_MAPS_MAPPINGS);
	VP_AUTO_FREE char *text = written(maps, 0);
	assert_non_null(strstr(text, "\nn 1%20host%20programs%20have%20more%20than%208192"));
	expect_problem(maps, "1 host programs have more than 8192");
	vp_host_maps_free(maps);
}

/* A flight recorder forgets whom it has no samples of any more. */
static void test_forgets(void **state)
{
	struct vp_host_maps *maps = vp_host_maps_new();

	see_under_name(maps, 0, SECOND);
	size_t mappings = count_mappings(maps);
	for (unsigned i = 0; i < 10000; i++)
		vp_host_maps_note_sample(maps, NO_PROCESS + i, "short", (2 + i) * SECOND / 100);
	vp_host_maps_forget(maps, 1); /* all are later */
	size_t all = count_spaces(maps);
	assert_true(all > 9000);
	vp_host_maps_forget(maps, 90 * SECOND);
	assert_in_range(count_spaces(maps), 1, 1200);
	assert_int_equal(count_mappings(maps), 0);
	see_under_name(maps, 0, 101 * SECOND);
	assert_int_equal(count_mappings(maps), mappings);
	VP_AUTO_FREE char *text = written(maps, 101 * SECOND); /* it alone */
	VP_AUTO_FREE char *line = vp_format("\na 0 %d 0 0 0 name0\n", getpid());
	assert_int_equal(count_spaces(maps), 1);
	assert_non_null(strstr(text, line));
	assert_null(strstr(text, "\na 1 "));
	vp_host_maps_free(maps);
}

/* Samples are taken while a map is written; what they are of is in the next one. */
static void see_many(void *context)
{
	for (unsigned i = 0; i < 500; i++)
		vp_host_maps_note_sample(context, NO_PROCESS + i, "late", 2 * SECOND + i);
}

static void test_sees_while_it_writes(void **state)
{
	struct vp_host_maps *maps = vp_host_maps_new();
	const struct vp_meanwhile meanwhile = {see_many, maps};

	see_under_name(maps, 0, SECOND);
	expect_no_error(vp_host_maps_write(maps, NAME, 0, true, &meanwhile));
	assert_int_equal(count_spaces(maps), 501); /* and it was called */
	struct vp_maps read;
	expect_no_error(vp_maps_load(NAME, &read));
	assert_int_equal(read.spaces.count, 1);
	vp_maps_deinit(&read);
	vp_host_maps_free(maps);
}

/* What cannot be read for want of descriptors is missing, and that is said. */
static void test_missing_reader_is_told(void **state)
{
	struct vp_host_maps *maps = vp_host_maps_new();
	struct rlimit before, now;
	struct vp_maps read;

	see_under_name(maps, 0, SECOND);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	int next = dup(STDERR_FILENO);
	close(next);
	now = (struct rlimit){(rlim_t)next + 1, before.rlim_max}; /* one, for the map itself */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	struct vp_error *error = vp_host_maps_write(maps, NAME, 0, true, NULL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	expect_no_error(error);
	expect_problem(maps, "some files of host programs were not read");
	expect_no_error(vp_maps_load(NAME, &read));
	assert_true(read.complete);
	assert_true(read.notes.count > 0);
	vp_maps_deinit(&read);
	vp_host_maps_free(maps);
}

/* Whether the written map names code at that address. */
static bool names_code(const char *text, uintptr_t address, const char *name)
{
	char line[128];

	snprintf(line, sizeof(line), " %lx 20 %s\n", (unsigned long)address, name);
	return strstr(text, line) != NULL;
}

static char *written_with_symbols(const char *map, const char *line, uid_t owner, const char *link)
{
	struct vp_host_maps *maps = vp_host_maps_new();
	struct vp_buffer text = {0};

	unlink(map);
	if (link) {
		temporary_file("test_host_maps.elsewhere", line, strlen(line));
		VP_AUTO_FREE char *target = realpath("test_host_maps.elsewhere", NULL);
		assert_int_equal(symlink(target, map), 0);
	} else {
		temporary_file(map, line, strlen(line));
		assert_int_equal(chown(map, owner, (gid_t)-1), 0);
	}
	vp_host_maps_note_sample(maps, (uint32_t)getpid(), NULL, SECOND);
	expect_no_error(vp_host_maps_write(maps, NAME, 0, true, NULL));
	expect_no_error(vp_file_read(NAME, 512 << 20, &text));
	char *copy = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	vp_host_maps_free(maps);
	return copy;
}

/* As perf report reads them: /tmp/perf-PID.map of the process's user, or root's. */
static void test_generated_code_has_names(void **state)
{
	char *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char map[64], line[128];

	assert_ptr_not_equal(code, MAP_FAILED);
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)getpid());
	snprintf(line, sizeof(line), "%lx 20 LHot;::spin\nbroken\n", (unsigned long)code);
	VP_AUTO_FREE char *own = written_with_symbols(map, line, getuid(), NULL);
	assert_true(names_code(own, (uintptr_t)code, "LHot;::spin"));
	if (getuid() == 0) {
		VP_AUTO_FREE char *others = written_with_symbols(map, line, 65534, NULL);
		assert_false(names_code(others, (uintptr_t)code, "LHot;::spin"));
	}
	VP_AUTO_FREE char *linked = written_with_symbols(map, line, getuid(), "link");
	assert_false(names_code(linked, (uintptr_t)code, "LHot;::spin"));
	unlink(map);
	munmap(code, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_generated_code_has_names),
	    cmocka_unit_test(test_names_share_mappings),
	    cmocka_unit_test(test_names_are_bounded),
	    cmocka_unit_test(test_processes_are_bounded),
	    cmocka_unit_test(test_mappings_are_bounded),
	    cmocka_unit_test(test_forgets),
	    cmocka_unit_test(test_missing_reader_is_told),
	    cmocka_unit_test(test_sees_while_it_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
