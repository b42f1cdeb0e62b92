/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What /proc tells of a process: its name, its program, when it began, what it has mapped. */
#include "unit.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "maps/proc.h"

/* Number of a process that there is not. */
enum { NO_PROCESS = 1 << 23 };

/* Programs that are the same but for their files. */
#define ONE "./test_proc_1"
#define OTHER "./test_proc_2"

/* Says that it is there, and becomes the program that it is told to ('1' or '2'). */
static int become(void)
{
	char *arguments[] = {(char *)"program", NULL}, *environment[] = {NULL};
	char which;

	if (write(STDOUT_FILENO, "", 1) != 1 || read(STDIN_FILENO, &which, 1) != 1)
		return 0;
	execve(which == '1' ? ONE : OTHER, arguments, environment);
	return 1;
}

struct child {
	pid_t pid;
	int out, in; /* to and from it */
};

/* A program with fixed addresses, so that code and stack are where they were after each exec. */
static struct child start(void)
{
	int to[2], from[2];

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		close(to[1]);
		personality(ADDR_NO_RANDOMIZE);
		_exit(become());
	}
	close(to[0]);
	close(from[1]);
	return (struct child){pid, to[1], from[0]};
}

static void wait_for(const struct child *child)
{
	char there;

	assert_int_equal(read(child->in, &there, 1), 1);
}

static uint64_t program_after(const struct child *child, const char *which)
{
	assert_int_equal(write(child->out, which, 1), 1);
	wait_for(child);
	return vp_proc_program((uint32_t)child->pid);
}

static void copy_of_this(const char *name)
{
	struct vp_buffer bytes = {0};

	expect_no_error(vp_file_read("/proc/self/exe", 256 << 20, &bytes));
	temporary_file(name, bytes.bytes, bytes.size);
	assert_int_equal(chmod(name, 0700), 0);
	vp_buffer_deinit(&bytes);
}

static void test_program(void **state)
{
	copy_of_this(ONE);
	copy_of_this(OTHER);
	struct child child = start();
	wait_for(&child);
	uint64_t before = vp_proc_program((uint32_t)child.pid);
	uint64_t first = program_after(&child, "1");
	assert_true(before && first && before != first);
	/* An exec of the same file is the same program here; of another file it is another. */
	assert_int_equal(program_after(&child, "1"), first);
	uint64_t second = program_after(&child, "2");
	assert_true(second && second != first);
	assert_int_equal(program_after(&child, "1"), first);
	close(child.out);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
	close(child.in);
	assert_int_equal(vp_proc_program((uint32_t)child.pid), 0);
	unlink(ONE);
	unlink(OTHER);
}

/* A name may have what separates the fields, and does not change the program. */
static void test_names(void **state)
{
	static const char *const names[] = {"plain", "a) b (c", ") R 1 1",
					    "(",     ")",       "15 characters.."};
	uint32_t self = (uint32_t)getpid();
	uint64_t started = vp_proc_start_time(self), program = vp_proc_program(self);
	char comm[16];

	assert_true(started && program);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		prctl(PR_SET_NAME, names[i]);
		assert_true(vp_proc_comm(self, comm));
		assert_string_equal(comm, names[i]);
		assert_int_equal(vp_proc_start_time(self), started);
		assert_int_equal(vp_proc_program(self), program);
	}
	assert_false(vp_proc_comm(NO_PROCESS, comm));
	assert_int_equal(vp_proc_start_time(NO_PROCESS), 0);
	assert_int_equal(vp_proc_inner_pid(NO_PROCESS), NO_PROCESS);
}

/* In ticks since boot, as stat has it. */
static void test_start_time(void **state)
{
	struct timespec now;
	long hz = sysconf(_SC_CLK_TCK);
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	clock_gettime(CLOCK_BOOTTIME, &now);
	uint64_t ticks = (uint64_t)now.tv_sec * (uint64_t)hz +
			 (uint64_t)now.tv_nsec / (1000000000 / (uint64_t)hz);
	uint64_t started = vp_proc_start_time((uint32_t)pid);
	assert_true(started <= ticks && started >= vp_proc_start_time((uint32_t)getpid()));
	/* A minute is enough for a fork on any machine; another field is further away. */
	assert_true(ticks - started < 60 * (uint64_t)hz);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct found {
	const char *path;
	uint64_t at, size, pgoff;
	unsigned count, limit;
};

static bool find(void *context, const struct vp_proc_mapping *mapping)
{
	struct found *found = context;

	found->count++;
	if (!strcmp(mapping->path, found->path)) {
		found->at = mapping->start;
		found->size = mapping->end - mapping->start;
		found->pgoff = mapping->pgoff;
	}
	return found->count != found->limit;
}

static void test_mappings(void **state)
{
	static const char page[3 * 4096];
	const char *name = temporary_file("test_proc a\nb", page, sizeof(page));
	FILE *file = fopen(name, "r");
	char folder[4096];
	void *code = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 4096);
	void *data = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fileno(file), 0);
	uint32_t self = (uint32_t)getpid();
	size_t most = 1 << 20, left;

	assert_ptr_not_equal(code, MAP_FAILED);
	/* A line break is escaped, by the kernel. */
	VP_AUTO_FREE char *path = vp_format("%s/test_proc a\\012b", getcwd(folder, sizeof(folder)));
	struct found found = {.path = path};
	left = most;
	assert_int_equal(vp_proc_mappings(self, &left, find, &found), VP_PROC_ALL);
	assert_int_equal(found.at, (uintptr_t)code);
	assert_int_equal(found.size, 8192);
	assert_int_equal(found.pgoff, 4096);
	assert_true(left < most);
	size_t needed = most - left;

	/* It stops when it is told to, and when it may not read more. */
	struct found first = {.path = "", .limit = 1};
	assert_int_equal(vp_proc_mappings(self, &left, find, &first), VP_PROC_STOPPED);
	assert_int_equal(first.count, 1);
	left = needed / 2;
	assert_int_equal(vp_proc_mappings(self, &left, find, &found), VP_PROC_STOPPED);
	assert_int_equal(left, 0);
	assert_int_equal(vp_proc_mappings(self, &left, find, &found), VP_PROC_STOPPED);
	left = most;
	assert_int_equal(vp_proc_mappings(NO_PROCESS, &left, find, &found), VP_PROC_GONE);
	assert_int_equal(left, most);
	munmap(code, 8192);
	munmap(data, 8192);
	fclose(file);
	unlink(name);
}

struct listed {
	uint32_t wanted;
	unsigned count;
};

static void count_wanted(void *context, uint32_t pid)
{
	struct listed *listed = context;

	assert_true(pid);
	listed->count += pid == listed->wanted;
}

static void test_processes(void **state)
{
	struct listed self = {.wanted = (uint32_t)getpid()}, none = {.wanted = NO_PROCESS};

	expect_no_error(vp_proc_processes(count_wanted, &self));
	assert_int_equal(self.count, 1);
	expect_no_error(vp_proc_processes(count_wanted, &none));
	assert_int_equal(none.count, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_program),    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_start_time), cmocka_unit_test(test_mappings),
	    cmocka_unit_test(test_processes),
	};

	if (!strcmp(argv[0], "program"))
		return become();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
