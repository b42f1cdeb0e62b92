/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Java, Python and Node.js processes of a guest: found by their library, named from their memory,
 * written as map text. */
#include "built_java.h"

#include "opened_guest.h"
#include "python_memory.h"
#include "v8_memory.h"

#include <sys/mman.h>

#include "base/file.h"
#include "guestmem/symbols/dump.h"
#include "guestmem/symbols/runtimes.h"

enum { TGID = 7 };

static struct built_java java;

/* A millisecond passes between two looks at the clock. */
uint64_t __wrap_vp_clock_monotonic(void);

uint64_t __wrap_vp_clock_monotonic(void)
{
	static uint64_t now;

	return now += 1000000;
}

struct watched {
	struct vp_guest_dump *dump;
	struct opened opened;
};

/* The guest as it is by now, read by the same watcher. */
static void look_again(struct watched *watched)
{
	close_guest(&watched->opened);
	built_java_update(&guest, &java);
	open_kernel(&watched->opened);
}

static void watch_java(struct watched *watched, const char *library)
{
	*watched = (struct watched){.dump = vp_guest_dump_new()};
	built_kernel(&guest, BUILT_NEW);
	built_java_process(&guest, TGID, library, &java);
	open_kernel(&watched->opened);
	vp_guest_dump_keep(watched->dump, &watched->opened.kernel);
}

static void see(struct watched *watched)
{
	vp_guest_dump_see(watched->dump, &watched->opened.kernel, java.place, TGID, 100);
}

static void step(struct watched *watched)
{
	vp_guest_runtimes_step(vp_guest_dump_runtimes(watched->dump), &watched->opened.kernel);
}

static void hit(struct watched *watched, uint64_t addr, uint64_t time)
{
	vp_guest_runtimes_hit(vp_guest_dump_runtimes(watched->dump), &watched->opened.kernel, TGID,
			      &addr, 1, time);
}

static void expect_list(const struct watched *watched, const char *expected)
{
	struct vp_buffer list = {0};

	vp_guest_runtimes_list(vp_guest_dump_runtimes(watched->dump), &list);
	assert_string_equal(vp_buffer_text(&list), expected);
	vp_buffer_deinit(&list);
}

/* The map text, and the end of the watcher. */
static void finish(struct watched *watched, struct vp_buffer *text)
{
	VP_AUTO_CLOSE int fd = memfd_create("maps", MFD_CLOEXEC);
	VP_AUTO_FREE char *path = vp_format("/proc/self/fd/%d", fd);
	size_t processes;

	expect_no_error(
	    vp_guest_dump_write(watched->dump, &watched->opened.kernel, fd, true, &processes));
	*text = (struct vp_buffer){0};
	expect_no_error(vp_file_read(path, 1 << 20, text));
	vp_guest_dump_free(watched->dump);
	close_guest(&watched->opened);
}

static void expect_text(struct vp_buffer *text, const char *line, bool expected)
{
	if ((strstr(vp_buffer_text(text), line) != NULL) != expected)
		fail_msg("'%s' is %s in:\n%s", line, expected ? "not" : "there",
			 strstr(vp_buffer_text(text), "\na "));
}

static const char all[] = "java 7 7f0000004000 7f0000008000 7f0000004008 7f00000053e8\n";

static void test_names(void **state)
{
	struct watched watched;
	struct vp_buffer text;
	uint64_t blob;

	(void)state;
	watch_java(&watched, "libjvm.so");
	expect_list(&watched, "");
	see(&watched);
	expect_list(&watched, all);
	/* A method takes the place of another one. */
	blob = java_blob(&java.memory, 2);
	java_put(&java.memory, blob - JAVA_BASE + 0x20, java_method(1), 8);
	java_put(&java.memory, blob - JAVA_BASE + 0x28, 200, 4);
	look_again(&watched);
	hit(&watched, blob + 9, UINT64_MAX / 2);
	const uint64_t method = java_method(0);
	vp_guest_runtimes_hit_methods(vp_guest_dump_runtimes(watched.dump), &watched.opened.kernel,
				      TGID, &method, 1, 500);
	finish(&watched, &text);
	expect_text(&text, "\nj 0 7f0000004008 13e0 Interpreter ", true);
	expect_text(&text, "\nj 0 7f0000005508 3e0 com.example.Work$$Lambda/0x12.spin ", true);
	expect_text(&text, "\nj 0 7f0000005508 3e0 com.example.Work$$Lambda/0x12.<init> ", true);
	expect_text(&text, "\nj 0 7f0000002000 10 com.example.Work$$Lambda/0x12.spin 500\n", true);
	expect_text(&text, "\nn Java", false);
	vp_buffer_deinit(&text);
}

/* A VM that starts has its tables, and code later. */
static void test_starting(void **state)
{
	struct watched watched;
	struct vp_buffer text;

	(void)state;
	watch_java(&watched, "libjvm.so");
	java_put(&java.memory, JAVA_AT_STATICS, 0, 8);
	look_again(&watched);
	see(&watched);
	expect_list(&watched, "starting\n");
	hit(&watched, java_blob(&java.memory, 2), 200);
	java_put(&java.memory, JAVA_AT_STATICS, JAVA_BASE + JAVA_AT_ARRAY, 8);
	look_again(&watched);
	see(&watched); /* its mappings are known */
	expect_list(&watched, "starting\n");
	step(&watched);
	expect_list(&watched, all);
	java_put(&java.memory, JAVA_AT_STATICS, 0, 8);
	look_again(&watched);
	hit(&watched, java_blob(&java.memory, 2), 200);
	finish(&watched, &text);
	expect_text(&text, "\nj 0 7f0000005508 3e0 com.example.Work$$Lambda/0x12.spin ", true);
	expect_text(&text, "\nn Java%20process%207:%202%20times", true);
	vp_buffer_deinit(&text);
}

static void test_never_started(void **state)
{
	struct watched watched;
	struct vp_buffer text;

	(void)state;
	watch_java(&watched, "libjvm.so");
	java_put(&java.memory, JAVA_AT_STATICS, 0, 8);
	look_again(&watched);
	see(&watched);
	/* Not for ever, and not all the time: 300 times, of which each takes 2 ms. After 0.2 s of
	 * that, there is a rest of 18 ms each time. */
	unsigned steps = 0;
	for (struct vp_buffer list = {0}; steps < 10000; steps++) {
		vp_guest_runtimes_list(vp_guest_dump_runtimes(watched.dump), &list);
		bool starting = list.size != 0;
		vp_buffer_deinit(&list);
		if (!starting)
			break;
		step(&watched);
	}
	assert_in_range(steps, 2000, 5000);
	expect_list(&watched, "");
	finish(&watched, &text);
	expect_text(&text, "\nj ", false);
	expect_text(&text,
		    "\nn Java%20process%207:%20methods%20have%20no%20names:%20the%20Java%20VM%20"
		    "has%20no%20code%20heap%20yet\n",
		    true);
	vp_buffer_deinit(&text);
}

static void test_other_libraries(void **state)
{
	static const char *const others[] = {"libjvm.so.1", "xlibjvm.so", "jvm.so"};

	(void)state;
	for (size_t i = 0; i < VP_ARRAY_SIZE(others); i++) {
		struct watched watched;
		struct vp_buffer text;
		watch_java(&watched, others[i]);
		see(&watched);
		expect_list(&watched, "");
		finish(&watched, &text);
		expect_text(&text, "\nj ", false);
		expect_text(&text, "\nn Java", false);
		vp_buffer_deinit(&text);
	}
}

/* The thread that was seen is another process's by now: another one of the process is found. After
 * the process's end nothing is read where its page tables were. */
static void test_ended(void **state)
{
	struct watched watched;
	struct vp_buffer text;
	uint64_t blob;

	(void)state;
	watch_java(&watched, "libjvm.so");
	see(&watched);
	blob = java_blob(&java.memory, 2);
	uint64_t mm = 0, other;
	memcpy(&mm, built_at(&guest, java.place + guest.pack.at.task_mm), sizeof(mm));
	other = built_process(&guest, TGID, mm, "java");
	put32(built_at(&guest, java.place + guest.pack.at.task_tgid), 8);
	java_put(&java.memory, blob - JAVA_BASE + 0x28, 200, 4);
	look_again(&watched);
	hit(&watched, blob, UINT64_MAX / 2);
	put32(built_at(&guest, other + guest.pack.at.task_tgid), 9);
	java_put(&java.memory, blob - JAVA_BASE + 0x28, 201, 4);
	look_again(&watched);
	hit(&watched, blob, UINT64_MAX / 2 + 1);
	finish(&watched, &text);
	expect_text(&text, "spin 9223372036854775807\n", true);
	expect_text(&text, "spin 9223372036854775808\n", false);
	vp_buffer_deinit(&text);
}

/* Names of types that the process never touched are in the page cache only. */
static void test_headers_that_lie(void **state)
{
	struct watched watched;
	struct vp_buffer text;
	char library[LIBRARY_SIZE];

	(void)state;
	watch_java(&watched, "libjvm.so");
	built_library(NULL, 0, library);
	char *there = memmem(guest.low, sizeof(guest.low), library, 0x80);
	assert_non_null(there);
	((Elf64_Ehdr *)(void *)there)->e_phnum = 33;
	look_again(&watched);
	see(&watched);
	finish(&watched, &text);
	expect_text(&text, "\nn Java%20process%207:%20methods%20have%20no%20names:%20the%20headers",
		    true);
	vp_buffer_deinit(&text);
	/* A symbol table of two gigabytes: bounded, and nothing is found behind the file. */
	watch_java(&watched, "libjvm.so");
	there = memmem(guest.low, sizeof(guest.low), library, 0x80);
	assert_non_null(there);
	put32(there + 0x304, 0x7fffffff);
	memset(there + NAMES_AT, 'x', 0x800);
	look_again(&watched);
	see(&watched);
	finish(&watched, &text);
	expect_text(&text, "\nn Java%20process%207:%20methods%20have%20no%20names:%20the%20tables",
		    true);
	vp_buffer_deinit(&text);
}

static struct python_memory python;

/* The user space of the Python process, as it is by now. */
static void update_python(void)
{
	memcpy(java.memory.bytes, python.bytes, sizeof(python.bytes));
}

static void watch_python(struct watched *watched, const char *library, unsigned minor)
{
	struct built_export exports[VP_PYTHON_SYMBOLS];

	*watched = (struct watched){.dump = vp_guest_dump_new()};
	built_kernel(&guest, BUILT_NEW);
	python_memory_make(&python, minor);
	python.symbols[VP_PYTHON_LOOP] = BUILT_LIBRARY + 0x900;
	for (unsigned i = 0; i < VP_PYTHON_SYMBOLS; i++)
		exports[i] =
		    (struct built_export){vp_python_symbol_name(i), python.symbols[i], 0x80};
	java_memory_make(&java.memory, JAVA_25);
	update_python();
	built_process_with(&guest, TGID, library, exports, VP_PYTHON_SYMBOLS, &java);
	open_kernel(&watched->opened);
	vp_guest_dump_keep(watched->dump, &watched->opened.kernel);
}

static void hit_python(struct watched *watched, unsigned number, uint64_t time)
{
	const uint64_t code = python_code_at(number);

	vp_guest_runtimes_hit_methods(vp_guest_dump_runtimes(watched->dump),
				      &watched->opened.kernel, TGID, &code, 1, time);
}

static void test_python(void **state)
{
	struct watched watched;
	struct vp_buffer text;
	uint64_t low = 0, high = 0;

	(void)state;
	watch_python(&watched, "python3.11", 11);
	assert_false(
	    vp_guest_runtimes_loop(vp_guest_dump_runtimes(watched.dump), TGID, &low, &high));
	/* The threads' ids are those of a container: only the first one is known. */
	see(&watched);
	expect_list(&watched, "python 7 7eff00000000 7eff00001000 7eff00000900 7eff00000980 "
			      "a0 38 8 20 30 44 1 0\n"
			      "thread 7 7 7f0000001000 66\n");
	/* Now one of them is the process's. */
	python_put(&python, PYTHON_AT_THREADS + 0xa0, TGID, 8);
	update_python();
	look_again(&watched);
	step(&watched);
	expect_list(&watched, "python 7 7eff00000000 7eff00001000 7eff00000900 7eff00000980 "
			      "a0 38 8 20 30 44 1 0\n"
			      "thread 7 7 7f0000000c00 7\nthread 7 65 7f0000000e00 65\n"
			      "thread 7 66 7f0000001000 66\n");
	assert_true(
	    vp_guest_runtimes_loop(vp_guest_dump_runtimes(watched.dump), TGID, &low, &high));
	assert_int_equal(low, BUILT_LIBRARY + 0x900);
	assert_int_equal(high, BUILT_LIBRARY + 0x980);
	hit_python(&watched, 0, 500);
	hit_python(&watched, 1, 600);
	hit(&watched, python_code_at(2), 700); /* nothing of Java's */
	finish(&watched, &text);
	expect_text(&text, "\nj 0 7f0000001800 10 py::work:/srv/app.py 500\n", true);
	expect_text(&text, "\nj 0 7f0000001900 10 py::Class.method:/srv/app.py 600\n", true);
	expect_text(&text, "7f0000001a00", false);
	expect_text(&text, "\nn Python", false);
	vp_buffer_deinit(&text);
}

static void test_python_that_lies(void **state)
{
	struct watched watched;
	struct vp_buffer text;

	(void)state;
	watch_python(&watched, "libpython3.13.so.1.0", 13);
	see(&watched);
	expect_list(&watched, "python 7 7eff00000000 7eff00001000 7eff00000900 7eff00000980 "
			      "a0 48 ffff 0 8 46 3 1\n"
			      "thread 7 7 7f0000001000 66\n");
	python_put(&python, PYTHON_AT_CODE + 8, 0, 8);
	python_put(&python, PYTHON_AT_CODE + 0x180, PYTHON_BASE - 0x1000, 8);
	update_python();
	look_again(&watched);
	hit_python(&watched, 0, 500);
	hit_python(&watched, 1, 500);
	finish(&watched, &text);
	expect_text(&text,
		    "\nn Python:%202%20times,%20a%20function%20had%20no%20name%20(1%20unreadable,"
		    "%201%20no%20code%20object,%200%20an%20invalid%20string)\n",
		    true);
	vp_buffer_deinit(&text);
	/* One note for all processes of the VM. */
	watch_python(&watched, "python3.9", 9);
	python_put(&python, PYTHON_AT_VERSION, 0x030902f0, 8);
	update_python();
	look_again(&watched);
	see(&watched);
	expect_list(&watched, "starting\n");
	for (unsigned i = 0; i < 30; i++)
		step(&watched);
	expect_list(&watched, "");
	hit_python(&watched, 0, 500);
	finish(&watched, &text);
	expect_text(&text,
		    "\nn 1%20Python%20processes:%20functions%20have%20no%20names:%20Python%203.9%20"
		    "is%20not%20supported%20(process%207)\n",
		    true);
	vp_buffer_deinit(&text);
}

static struct v8_memory v8;

static void watch_v8(struct watched *watched, const char *library, unsigned version)
{
	struct built_export exports[VP_V8_SYMBOLS];
	unsigned count = 0;

	*watched = (struct watched){.dump = vp_guest_dump_new()};
	built_kernel(&guest, BUILT_NEW);
	v8_memory_make(&v8, version);
	for (unsigned i = 0; i < VP_V8_SYMBOLS; i++)
		if (v8.symbols[i])
			exports[count++] =
			    (struct built_export){vp_v8_symbol_name(i), v8.symbols[i], 4};
	java_memory_make(&java.memory, JAVA_25);
	memcpy(java.memory.bytes, v8.bytes, sizeof(v8.bytes));
	built_process_with(&guest, TGID, library, exports, count, &java);
	open_kernel(&watched->opened);
	vp_guest_dump_keep(watched->dump, &watched->opened.kernel);
}

static void test_v8(void **state)
{
	struct watched watched;
	struct vp_buffer text;
	struct vp_guest_v8_code code;
	const uint64_t functions[] = {v8_shared_at(0), v8_shared_at(1)};

	(void)state;
	watch_v8(&watched, "libnode.so.108", V8_OLD);
	struct vp_guest_runtimes *runtimes = vp_guest_dump_runtimes(watched.dump);
	assert_false(vp_guest_runtimes_v8(runtimes, TGID, &code));
	see(&watched);
	/* The process has no generated code so far. */
	expect_list(&watched, "v8 7 0 0 7f0000100000 7f0000300000 8 10 18\n");
	assert_true(vp_guest_runtimes_v8(runtimes, TGID, &code));
	assert_int_equal(code.blob_low, V8_BASE + 0x100000);
	assert_int_equal(code.layout->function_below, 16);
	vp_guest_runtimes_hit_methods(runtimes, &watched.opened.kernel, TGID, functions, 2, 500);
	hit(&watched, v8_shared_at(2), 700); /* nothing of Java's */
	finish(&watched, &text);
	expect_text(&text, "\nj 0 7f0000001200 10 JS:Class.m\xc3\xa9thode%20/app/main.js 500\n",
		    true);
	expect_text(&text, "\nj 0 7f0000001240 10 JS:(anonymous)%20/app/main.js:@42 500\n", true);
	expect_text(&text, "7f0000001280", false);
	expect_text(&text, "\nn ", false);
	vp_buffer_deinit(&text);
}

static void test_v8_that_lies(void **state)
{
	struct watched watched;
	struct vp_buffer text;
	const uint64_t functions[] = {v8_shared_at(0), 0x123456789abcd8};

	(void)state;
	watch_v8(&watched, "node", V8_NEW);
	v8_put_type(&v8, V8_AT_SHARED, V8_TYPE_SCRIPT);
	v8_put(&v8, V8_AT_BLOB + 8, UINT32_MAX, 4);
	memcpy(java.memory.bytes, v8.bytes, sizeof(v8.bytes));
	look_again(&watched);
	see(&watched);
	expect_list(&watched, "v8 7 0 0 0 0 8 10 20\n");
	vp_guest_runtimes_hit_methods(vp_guest_dump_runtimes(watched.dump), &watched.opened.kernel,
				      TGID, functions, 2, 500);
	finish(&watched, &text);
	expect_text(&text,
		    "\nn JavaScript:%202%20times,%20a%20function%20had%20no%20name%20(1%20"
		    "unreadable,%201%20no%20function)\n",
		    true);
	expect_text(&text, "interpreter%20was%20not%20found", true);
	vp_buffer_deinit(&text);
	/* A program of that name without V8. */
	watch_python(&watched, "node", 11);
	see(&watched);
	for (unsigned i = 0; i < 30; i++)
		step(&watched);
	expect_list(&watched, "");
	finish(&watched, &text);
	expect_text(
	    &text,
	    "\nn 1%20Node.js%20processes:%20functions%20have%20no%20names:%20it%20does%20not%20"
	    "export%20v8dbg_off_fp_function%20(process%207)\n",
	    true);
	vp_buffer_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_starting),
	    cmocka_unit_test(test_never_started),
	    cmocka_unit_test(test_other_libraries),

	    cmocka_unit_test(test_ended),
	    cmocka_unit_test(test_headers_that_lie),
	    cmocka_unit_test(test_python),
	    cmocka_unit_test(test_python_that_lies),
	    cmocka_unit_test(test_v8),
	    cmocka_unit_test(test_v8_that_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
