/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads and names of a Python process's memory, and of memory that lies. */
#include "unit.h"

#include "python_memory.h"
#include "runtime/python_names.h"

static struct python_memory python;

static void python_make(struct vp_python *ret, unsigned minor)
{
	python_memory_make(&python, minor);
	expect_no_error(vp_python_open(&python.memory, python.symbols, ret));
}

static void expect_open_fails(const char *reason)
{
	struct vp_python opened;
	struct vp_error *error = vp_python_open(&python.memory, python.symbols, &opened);

	assert_non_null(error);
	assert_string_equal(vp_error_message(error), reason);
	vp_error_free(error);
}

struct threads {
	uint32_t ids[2048];
	uint64_t states[2048];
	unsigned count, most;
};

static bool take_thread(void *context, const struct vp_python_thread *thread)
{
	struct threads *threads = context;

	threads->ids[threads->count] = thread->native_id;
	threads->states[threads->count++] = thread->state;
	return threads->count != threads->most;
}

static void expect_name(struct vp_python *opened, unsigned number, const char *expected)
{
	struct vp_buffer name = {0};
	bool done = vp_python_code_name(opened, python_code_at(number), &name);

	assert_int_equal(done, expected != NULL);
	assert_string_equal(vp_buffer_text(&name), expected ? expected : "");
	vp_buffer_deinit(&name);
}

static const unsigned minors[] = {11, 13, 14};

static void test_threads(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct threads threads = {.count = 0}, one = {.most = 1};
		struct vp_python opened;
		python_make(&opened, minors[i]);
		assert_true(vp_python_threads_each(&opened, take_thread, &threads));
		assert_int_equal(threads.count, 3);
		for (unsigned j = 0; j < 3; j++) {
			assert_int_equal(threads.ids[j], 100 + j);
			assert_int_equal(threads.states[j],
					 PYTHON_BASE + PYTHON_AT_THREADS + 0x200 * j);
		}
		assert_true(vp_python_threads_each(&opened, take_thread, &one));
		assert_int_equal(one.count, 1);
		/* A thread that starts has no id. */
		python_put(&python, PYTHON_AT_THREADS + 0xa0, 0, 8);
		python_put(&python, PYTHON_AT_THREADS + 0x2a0, 1 << 22, 8);
		threads.count = 0;
		assert_true(vp_python_threads_each(&opened, take_thread, &threads));
		assert_int_equal(threads.count, 1);
	}
}

static void test_damaged_threads(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		unsigned most; /* threads */
	} wrong[] = {
	    {PYTHON_AT_RUNTIME + 40, PYTHON_BASE - 8, 0},
	    {PYTHON_AT_RUNTIME + 40, 1ULL << 60, 0},
	    {PYTHON_AT_RUNTIME + 40, PYTHON_BASE + PYTHON_AT_INTERPRETERS + 4, 0},
	    {PYTHON_AT_INTERPRETERS + 16, PYTHON_BASE + PYTHON_SIZE, 0},
	    {PYTHON_AT_INTERPRETERS, PYTHON_BASE + PYTHON_SIZE, 2},
	    /* Lists that go in circles. */
	    {PYTHON_AT_INTERPRETERS, PYTHON_BASE + PYTHON_AT_INTERPRETERS, 128},
	    {PYTHON_AT_THREADS + 8, PYTHON_BASE + PYTHON_AT_THREADS, 1024},
	    {PYTHON_AT_THREADS + 8, UINT64_MAX - 7, 1},
	};

	(void)state;
	for (size_t i = 0; i < VP_ARRAY_SIZE(wrong); i++) {
		struct threads threads = {.count = 0};
		struct vp_python opened;
		python_make(&opened, 11);
		python_put(&python, wrong[i].at, wrong[i].value, 8);
		assert_false(vp_python_threads_each(&opened, take_thread, &threads));
		assert_int_equal(threads.count, wrong[i].most);
	}
}

static void test_names(void **state)
{
	static const uint32_t latin[] = {'n', 0xe9, 0x85, 'e'},
			      wide[] = {0x4e2d, 0xd800, 'x', 0x7ff},
			      widest[] = {0x1f40d, 0x110000, 10};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct vp_python opened;
		python_make(&opened, minors[i]);
		expect_name(&opened, 0, "py::work:/srv/app.py");
		expect_name(&opened, 1, "py::Class.method:/srv/app.py");
		python_put_text(&python, python_text_at(0), latin, 4, 1, false);
		expect_name(&opened, 0, "py::n\xc3\xa9?e:/srv/app.py");
		python_put_text(&python, python_text_at(0), wide, 4, 2, false);
		expect_name(&opened, 0, "py::\xe4\xb8\xad?x\xdf\xbf:/srv/app.py");
		python_put_text(&python, python_text_at(0), widest, 3, 4, false);
		expect_name(&opened, 0, "py::\xf0\x9f\x90\x8d??:/srv/app.py");
		for (unsigned j = 0; j < VP_PYTHON_FAILURES; j++)
			assert_int_equal(opened.failures[j], 0);
	}
}

/* A name of a megabyte is cut; its characters need not all be readable. */
static void test_long_name(void **state)
{
	struct vp_python opened;
	struct vp_buffer name = {0};

	(void)state;
	python_make(&opened, 11);
	python_put_ascii(&python, PYTHON_AT_LONG, "f");
	memset(python.bytes + PYTHON_AT_LONG + 48, 'f', 2000);
	python_put(&python, PYTHON_AT_LONG + 16, 1 << 20, 8);
	python_put(&python, PYTHON_AT_CODE + 0x80, PYTHON_BASE + PYTHON_AT_LONG, 8);
	assert_true(vp_python_code_name(&opened, python_code_at(0), &name));
	assert_int_equal(name.size, 4 + 256 + 1 + strlen("/srv/app.py"));
	vp_buffer_deinit(&name);
}

static void test_damaged_names(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		size_t size;
		enum vp_python_failure failure;
	} wrong[] = {
	    {PYTHON_AT_CODE + 8, PYTHON_BASE + PYTHON_TEXT_TYPE, 8, VP_PYTHON_NO_CODE},
	    {PYTHON_AT_CODE + 0x80, 0, 8, VP_PYTHON_NO_TEXT},
	    {PYTHON_AT_CODE + 0x80, PYTHON_BASE + PYTHON_AT_TEXTS + 1, 8, VP_PYTHON_NO_TEXT},
	    {PYTHON_AT_CODE + 0x80, UINT64_MAX - 7, 8, VP_PYTHON_NO_TEXT},
	    {PYTHON_AT_CODE + 0x70, PYTHON_BASE + PYTHON_SIZE, 8, VP_PYTHON_UNREADABLE},
	    {PYTHON_AT_TEXTS + 8, PYTHON_BASE + PYTHON_CODE_TYPE, 8, VP_PYTHON_NO_TEXT},
	    {PYTHON_AT_TEXTS + 16, 0, 8, VP_PYTHON_NO_TEXT},
	    {PYTHON_AT_TEXTS + 16, UINT64_MAX, 8, VP_PYTHON_NO_TEXT},
	    {PYTHON_AT_TEXTS + 32, 0x64 & ~0x20, 4, VP_PYTHON_NO_TEXT}, /* not compact */
	    {PYTHON_AT_TEXTS + 32, 3 << 2 | 1 << 5, 4, VP_PYTHON_NO_TEXT},
	    {PYTHON_AT_TEXTS + 32, 2 << 2 | 1 << 5 | 1 << 6, 4, VP_PYTHON_NO_TEXT},
	};

	(void)state;
	for (size_t i = 0; i < VP_ARRAY_SIZE(wrong); i++) {
		struct vp_python opened;
		python_make(&opened, 11);
		python_put(&python, wrong[i].at, wrong[i].value, wrong[i].size);
		expect_name(&opened, 0, NULL);
		for (unsigned j = 0; j < VP_PYTHON_FAILURES; j++)
			assert_int_equal(opened.failures[j], j == wrong[i].failure);
	}
}

static void test_versions(void **state)
{
	(void)state;
	python_memory_make(&python, 11);
	python_put(&python, PYTHON_AT_VERSION, 0x030a02f0, 8);
	expect_open_fails("Python 3.10 is not supported");
	python_put(&python, PYTHON_AT_VERSION, 0x010000030b02f0, 8);
	expect_open_fails("Python 16777219.11 is not supported");
	python.symbols[VP_PYTHON_VERSION] = PYTHON_BASE - 1;
	expect_open_fails("Py_Version cannot be read");
	python.symbols[VP_PYTHON_VERSION] = 0;
	expect_open_fails("the interpreter does not export Py_Version");
}

static void test_debug_offsets(void **state)
{
	static const struct {
		unsigned word;
		uint64_t value;
		const char *reason;
	} wrong[] = {
	    {0, 0, "_PyRuntime has no offsets for debuggers"},
	    {1, 0x030d04f0, "_PyRuntime has no offsets for debuggers"},
	    {2, 1, "Python without a GIL is not supported"},
	    {5, 1 << 20, "_PyRuntime has invalid offsets for debuggers"},
	    {23, 0x4c, "_PyRuntime has invalid offsets for debuggers"},
	    {30, 8, "_PyRuntime has invalid offsets for debuggers"}, /* as the previous frame */
	    {37, 0x70, "_PyRuntime has invalid offsets for debuggers"},
	    {70, UINT64_MAX, "_PyRuntime has invalid offsets for debuggers"},
	};

	(void)state;
	for (size_t i = 0; i < VP_ARRAY_SIZE(wrong); i++) {
		python_memory_make(&python, 13);
		python_put(&python, PYTHON_AT_RUNTIME + 8UL * wrong[i].word, wrong[i].value, 8);
		expect_open_fails(wrong[i].reason);
	}
	python_memory_make(&python, 13);
	python.unreadable = PYTHON_BASE + PYTHON_AT_RUNTIME + 0x100;
	expect_open_fails("_PyRuntime cannot be read");
}

/* Each offset is a multiple of the size of what is there, and below the size of the object. */
static void test_alignment(void **state)
{
	static const struct {
		unsigned word;
		uint64_t align, below;
	} offsets[] = {{5, 8, 1 << 20}, {8, 8, 1 << 20}, {9, 8, 1 << 20}, {21, 8, 4096},
		       {23, 8, 4096},   {25, 8, 4096},   {29, 8, 4096},   {30, 8, 4096},
		       {33, 1, 4096},   {35, 8, 4096},   {37, 8, 4096},   {45, 8, 4096},
		       {68, 4, 4096},   {69, 8, 4096},   {70, 8, 4096}};
	struct vp_python found;

	(void)state;
	for (size_t i = 0; i < VP_ARRAY_SIZE(offsets); i++) {
		size_t at = PYTHON_AT_RUNTIME + 8UL * offsets[i].word;
		python_memory_make(&python, 13);
		python_put(&python, at, offsets[i].below - offsets[i].align, 8);
		expect_no_error(vp_python_open(&python.memory, python.symbols, &found));
		python_put(&python, at, offsets[i].below, 8);
		expect_open_fails("_PyRuntime has invalid offsets for debuggers");
		if (offsets[i].align == 1)
			continue;
		python_put(&python, at, 0x400 + offsets[i].align / 2, 8);
		expect_open_fails("_PyRuntime has invalid offsets for debuggers");
	}
}

static void test_names_by_time(void **state)
{
	struct vp_code_names names = {0};
	struct vp_python opened;

	(void)state;
	python_make(&opened, 11);
	assert_true(vp_python_names_see(&names, &opened, python_code_at(0), 1000));
	assert_int_equal(names.births.at[0].from_ns, 1000);
	/* Within the interval nothing is read. */
	uint64_t reads = python.reads;
	assert_true(vp_python_names_see(&names, &opened, python_code_at(0), 99999999));
	assert_int_equal(python.reads, reads);
	/* Later, the address has other code. */
	python_put(&python, PYTHON_AT_CODE + 0x80, PYTHON_BASE + python_text_at(2), 8);
	assert_true(vp_python_names_see(&names, &opened, python_code_at(0), 100001000));
	assert_int_equal(names.births.count, 2);
	assert_int_equal(names.births.at[1].from_ns, 100001000);
	assert_string_equal(vp_intern_text(&names.texts, names.births.at[1].name),
			    "py::Class.method:/srv/app.py");
	/* The same code again. */
	assert_true(vp_python_names_see(&names, &opened, python_code_at(0), 300000000));
	assert_int_equal(names.births.count, 2);
	assert_int_equal(names.births.at[1].last_ns, 300000000);
	/* An earlier sample, which another pCPU wrote. */
	assert_true(vp_python_names_see(&names, &opened, python_code_at(0), 100000500));
	assert_int_equal(names.births.at[1].from_ns, 100000500);
	assert_false(vp_python_names_see(&names, &opened, PYTHON_BASE + 1, 5));
	assert_false(vp_python_names_see(&names, &opened, python_code_at(0) + 8, 5));
	assert_int_equal(names.failed, 2);
	vp_code_names_deinit(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_threads),       cmocka_unit_test(test_damaged_threads),
	    cmocka_unit_test(test_names),         cmocka_unit_test(test_long_name),
	    cmocka_unit_test(test_damaged_names), cmocka_unit_test(test_versions),
	    cmocka_unit_test(test_debug_offsets), cmocka_unit_test(test_alignment),
	    cmocka_unit_test(test_names_by_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
