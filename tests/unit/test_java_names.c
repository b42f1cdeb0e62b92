/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of Java code over time: what is replaced, seen again, out of order. */
#include "unit.h"

#include "java_memory.h"
#include "runtime/java_names.h"

enum { MILLISECOND = 1000000 };

struct process {
	struct java_memory java;
	struct vp_java_vm vm;
	struct vp_code_names names;
};

static void process_start(struct process *process)
{
	java_memory_make(&process->java, JAVA_25);
	process->vm = (struct vp_java_vm){.memory = &process->java.memory};
	process->names = (struct vp_code_names){0};
	expect_no_error(
	    vp_java_tables_read(&process->java.memory, process->java.symbols, &process->vm.tables));
	expect_no_error(vp_java_heaps_read(&process->vm));
}

static void expect_birth(const struct process *process, size_t number, uint64_t addr,
			 uint64_t from_ns, const char *name)
{
	const struct vp_code_birth *birth = &process->names.births.at[number];

	assert_true(number < process->names.births.count);
	assert_int_equal(birth->addr, addr);
	assert_int_equal(birth->from_ns, from_ns);
	assert_string_equal(vp_intern_text(&process->names.texts, birth->name), name);
}

static const char spin[] = "com.example.Work$$Lambda/0x12.spin";
static const char init[] = "com.example.Work$$Lambda/0x12.<init>";

static void test_replaced(void **state)
{
	struct process process;
	struct vp_java_code code;
	uint64_t blob;

	(void)state;
	process_start(&process);
	blob = java_blob(&process.java, 2);
	assert_true(vp_java_names_see(&process.names, &process.vm, blob + 0x40, 100, &code));
	assert_int_equal(code.start, blob);
	expect_birth(&process, 0, blob, 100, spin);
	assert_int_equal(process.names.births.at[0].size, JAVA_SEGMENT * 8 - 0x20);
	/* The same code, later and earlier: it was there before. */
	assert_true(vp_java_names_see(&process.names, &process.vm, blob + 0x50, 300, NULL));
	assert_true(vp_java_names_see(&process.names, &process.vm, blob + 0x50, 90, NULL));
	assert_int_equal(process.names.births.count, 1);
	expect_birth(&process, 0, blob, 90, spin);
	assert_int_equal(process.names.births.at[0].last_ns, 300);
	/* Its place is another method's now. */
	java_put(&process.java, blob - JAVA_BASE + 0x20, java_method(1), 8);
	java_put(&process.java, blob - JAVA_BASE + 0x28, 200, 4);
	assert_true(vp_java_names_see(&process.names, &process.vm, blob + 0x40, 500, NULL));
	assert_int_equal(process.names.births.count, 2);
	expect_birth(&process, 1, blob, 500, init);
	/* A sample of another pCPU that comes late: it is after the last one of what was before. */
	assert_true(vp_java_names_see(&process.names, &process.vm, blob + 0x40, 400, NULL));
	expect_birth(&process, 1, blob, 400, init);
	assert_true(vp_java_names_see(&process.names, &process.vm, blob + 0x40, 200, NULL));
	expect_birth(&process, 1, blob, 301, init);
	expect_birth(&process, 0, blob, 90, spin);
	/* Compiled once more: the same method by its number, and the number alone is another. */
	java_put(&process.java, blob - JAVA_BASE + 0x28, 201, 4);
	assert_true(vp_java_names_see(&process.names, &process.vm, blob + 0x40, 600, NULL));
	assert_int_equal(process.names.births.count, 3);
	expect_birth(&process, 2, blob, 600, init);
	assert_int_equal(process.names.failed, 0);
	vp_code_names_deinit(&process.names);
}

/* Instructions of an inlined method have its name, from their first sample on. */
static void test_inlined(void **state)
{
	struct process process;
	uint64_t blob, begin;

	(void)state;
	process_start(&process);
	blob = java_blob(&process.java, 2);
	begin = blob + JAVA_CODE_OFFSET;
	assert_true(vp_java_names_see(&process.names, &process.vm, begin + 0x18, 100, NULL));
	assert_int_equal(process.names.births.count, 2);
	expect_birth(&process, 0, blob, 100, spin);
	expect_birth(&process, 1, begin + 0x10, 100, init);
	assert_int_equal(process.names.births.at[1].size, 0x10);
	/* The others are the compiled method's, and need no other name than their own range's. */
	assert_true(vp_java_names_see(&process.names, &process.vm, begin + 8, 300, NULL));
	assert_int_equal(process.names.births.count, 3);
	expect_birth(&process, 2, begin, 300, spin);
	assert_int_equal(process.names.births.at[2].size, 0x10);
	assert_true(vp_java_names_see(&process.names, &process.vm, begin + 0x1f, 90, NULL));
	assert_int_equal(process.names.births.count, 3);
	expect_birth(&process, 0, blob, 90, spin);
	expect_birth(&process, 1, begin + 0x10, 90, init);
	/* Compiled once more. */
	java_put(&process.java, blob - JAVA_BASE + 0x28, 201, 4);
	assert_true(vp_java_names_see(&process.names, &process.vm, begin + 0x18, 600, NULL));
	assert_int_equal(process.names.births.count, 5);
	expect_birth(&process, 3, blob, 600, spin);
	expect_birth(&process, 4, begin + 0x10, 600, init);
	vp_code_names_deinit(&process.names);
}

/* The branch after a loop's safepoint is of the method of the safepoint. */
static void test_branch_of_loop(void **state)
{
	static const char loop[] = "\x41\x85\x02\x7c\xf0"; /* test %eax,(%r10); jl back */
	struct process process;
	uint64_t begin;

	(void)state;
	process_start(&process);
	begin = java_blob(&process.java, 2) + JAVA_CODE_OFFSET;
	memcpy(process.java.bytes + (begin - JAVA_BASE) + 0x10, loop, sizeof(loop) - 1);
	assert_true(vp_java_names_see(&process.names, &process.vm, begin + 0x14, 100, NULL));
	expect_birth(&process, 1, begin + 0x10, 100, spin);
	assert_int_equal(process.names.births.at[1].size, 5);
	assert_true(vp_java_names_see(&process.names, &process.vm, begin + 0x15, 100, NULL));
	expect_birth(&process, 2, begin + 0x15, 100, init);
	assert_int_equal(process.names.births.at[2].size, 0x10 - 5);
	vp_code_names_deinit(&process.names);
}

static void test_known_code_is_not_read_again(void **state)
{
	struct process process;
	uint64_t blob;

	(void)state;
	process_start(&process);
	blob = java_blob(&process.java, 2);
	process.java.reads = 0;
	assert_true(vp_java_names_see(&process.names, &process.vm, blob, 100, NULL));
	uint64_t first = process.java.reads;
	assert_true(vp_java_names_see(&process.names, &process.vm, blob, 101, NULL));
	assert_true(process.java.reads - first + 10 < first);
	vp_code_names_deinit(&process.names);
}

static void test_failures_are_counted(void **state)
{
	struct process process;
	struct vp_java_code code;
	uint64_t blob;

	(void)state;
	process_start(&process);
	blob = java_blob(&process.java, 2);
	assert_false(vp_java_names_see(&process.names, &process.vm, blob - 9, 100, &code));
	assert_int_equal(process.names.failed, 1);
	java_put(&process.java, JAVA_AT_KLASS + 0x18, 0, 8);
	assert_false(vp_java_names_see(&process.names, &process.vm, blob, 100, NULL));
	assert_int_equal(process.names.failed, 2);
	assert_false(vp_java_names_see_method(&process.names, &process.vm, java_method(0), 100));
	assert_false(vp_java_names_see_method(&process.names, &process.vm, JAVA_BASE - 64, 100));
	assert_int_equal(process.names.failed, 4);
	assert_int_equal(process.names.births.count, 0);
	vp_code_names_deinit(&process.names);
}

static void test_interpreted(void **state)
{
	struct process process;

	(void)state;
	process_start(&process);
	assert_true(vp_java_names_see_method(&process.names, &process.vm, java_method(0), 100));
	assert_true(vp_java_names_see_method(&process.names, &process.vm, java_method(1), 110));
	assert_true(vp_java_names_see_method(&process.names, &process.vm, java_method(0), 120));
	assert_int_equal(process.names.births.count, 2);
	expect_birth(&process, 0, java_method(0), 100, spin);
	expect_birth(&process, 1, java_method(1), 110, init);
	assert_int_equal(process.names.births.at[0].size, 16);
	/* Its class was unloaded, and the place is another method's. */
	java_put(&process.java, JAVA_AT_METHODS + 8, JAVA_BASE + JAVA_AT_CONSTS + 0x20, 8);
	assert_true(
	    vp_java_names_see_method(&process.names, &process.vm, java_method(0), 200000000));
	assert_int_equal(process.names.births.count, 3);
	expect_birth(&process, 2, java_method(0), 200000000, init);
	vp_code_names_deinit(&process.names);
}

static void test_all(void **state)
{
	struct process process;
	bool damaged;

	(void)state;
	process_start(&process);
	assert_true(
	    vp_java_names_see(&process.names, &process.vm, java_blob(&process.java, 4), 50, NULL));
	vp_java_names_see_all(&process.names, &process.vm, MILLISECOND, &damaged);
	assert_false(damaged);
	assert_int_equal(process.names.births.count, 4);
	expect_birth(&process, 0, java_blob(&process.java, 4), 50, init);
	expect_birth(&process, 1, java_blob(&process.java, 0), MILLISECOND, "Interpreter");
	expect_birth(&process, 2, java_blob(&process.java, 1), MILLISECOND, "StubRoutines (1)");
	expect_birth(&process, 3, java_blob(&process.java, 2), MILLISECOND, spin);
	/* One without a name is left out and counted. */
	java_put(&process.java, JAVA_AT_METHODS + 8, 0, 8);
	java_put(&process.java, java_blob(&process.java, 2) - JAVA_BASE + 0x28, 7, 4);
	vp_java_names_see_all(&process.names, &process.vm, 2 * MILLISECOND, &damaged);
	assert_int_equal(process.names.births.count, 4);
	assert_int_equal(process.names.failed, 1);
	vp_code_names_deinit(&process.names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_replaced),
	    cmocka_unit_test(test_inlined),
	    cmocka_unit_test(test_branch_of_loop),
	    cmocka_unit_test(test_known_code_is_not_read_again),
	    cmocka_unit_test(test_failures_are_counted),
	    cmocka_unit_test(test_interpreted),
	    cmocka_unit_test(test_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
