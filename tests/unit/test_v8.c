/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of functions in a process with V8, and in memory that lies. */
#include "unit.h"

#include "runtime/v8_names.h"
#include "v8_memory.h"

static struct v8_memory v8;

static void v8_make(struct vp_v8 *ret, unsigned version)
{
	v8_memory_make(&v8, version);
	expect_no_error(vp_v8_open(&v8.memory, v8.symbols, ret));
}

static void expect_open_fails(const char *reason)
{
	struct vp_v8 opened;
	struct vp_error *error = vp_v8_open(&v8.memory, v8.symbols, &opened);

	assert_non_null(error);
	assert_string_equal(vp_error_message(error), reason);
	vp_error_free(error);
}

static void expect_name(struct vp_v8 *opened, uint64_t shared, const char *expected)
{
	struct vp_buffer name = {0};
	bool done = vp_v8_name(opened, shared, &name);

	assert_int_equal(done, expected != NULL);
	assert_string_equal(vp_buffer_text(&name), expected ? expected : "");
	vp_buffer_deinit(&name);
}

static const unsigned versions[] = {V8_OLD, V8_NEW};

static void test_names(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct vp_v8 opened;
		v8_make(&opened, versions[i]);
		expect_name(&opened, v8_shared_at(0), "JS:Class.m\xc3\xa9thode /app/main.js");
		expect_name(&opened, v8_shared_at(1), "JS:(anonymous) /app/main.js:@42");
		expect_name(&opened, v8_shared_at(2), "JS:map");
		expect_name(&opened, v8_shared_at(3), "JS:many /app/main.js");
		assert_int_equal(opened.blob_low, V8_BASE + 0x100000);
		assert_int_equal(opened.blob_high, V8_BASE + 0x300000);
		assert_int_equal(opened.failures[VP_V8_UNREADABLE], 0);
		assert_int_equal(opened.failures[VP_V8_NO_FUNCTION], 0);
	}
}

/* A frame of JavaScript has a context and a function; others have a number in place of the context.
 */
static void test_frames(void **state)
{
	struct vp_v8 opened;

	(void)state;
	v8_make(&opened, V8_NEW);
	uint64_t function = v8_tagged(V8_AT_FUNCTIONS + 0x40), context = v8_tagged(V8_AT_SCRIPT);
	assert_int_equal(opened.layout.function_below, 16);
	assert_int_equal(opened.layout.context_below, 8);
	assert_int_equal(vp_v8_function_of_frame(&opened, context, function), v8_shared_at(1));
	assert_int_equal(vp_v8_function_of_frame(&opened, v8_smi(7), function), 0);
	assert_int_equal(vp_v8_function_of_frame(&opened, 0x1c, function), 0);
	assert_int_equal(vp_v8_function_of_frame(&opened, context, v8_smi(7)), 0);
	assert_int_equal(vp_v8_function_of_frame(&opened, context, v8_tagged(V8_SIZE)), 0);
	v8_put(&v8, V8_AT_FUNCTIONS + 0x40 + 32, v8_smi(1), 8);
	assert_int_equal(vp_v8_function_of_frame(&opened, context, function), 0);
}

static void test_open(void **state)
{
	struct vp_v8 opened;

	(void)state;
	v8_make(&opened, V8_OLD);
	v8.symbols[VP_V8_SHARED_NAME] = 0;
	assert_false(vp_v8_has_symbols(v8.symbols));
	expect_open_fails("it does not export "
			  "v8dbg_class_SharedFunctionInfo__name_or_scope_info__Object");
	v8_make(&opened, V8_OLD);
	assert_true(vp_v8_has_symbols(v8.symbols));
	v8_put_symbol(&v8, VP_V8_TAGGED_SIZE, 4);
	expect_open_fails("V8 with compressed pointers is not supported");
	v8_make(&opened, V8_OLD);
	v8_put_symbol(&v8, VP_V8_OFF_FUNCTION, 16);
	expect_open_fails("v8dbg_off_fp_function is unreadable or invalid");
	v8_make(&opened, V8_OLD);
	v8_put_symbol(&v8, VP_V8_CONS_SECOND, 1 << 20);
	expect_open_fails("v8dbg_class_ConsString__second__String is unreadable or invalid");
	v8_make(&opened, V8_OLD);
	v8_put_symbol(&v8, VP_V8_FUNCTION_SHARED, 17);
	expect_open_fails("v8dbg_class_JSFunction__shared__SharedFunctionInfo is unreadable or "
			  "invalid");
	/* It is known when V8 has started. */
	v8_make(&opened, V8_OLD);
	v8_put(&v8, V8_AT_BLOB, 0, 8);
	expect_no_error(vp_v8_open(&v8.memory, v8.symbols, &opened));
	assert_int_equal(opened.blob_high, 0);
	v8_put(&v8, V8_AT_BLOB, V8_BASE + 0x100000, 8);
	vp_v8_find_blob(&opened);
	assert_int_equal(opened.blob_high, V8_BASE + 0x300000);
	/* It is not needed. */
	v8_make(&opened, V8_OLD);
	v8.bytes[V8_AT_CODE + 7] = 0x90;
	expect_no_error(vp_v8_open(&v8.memory, v8.symbols, &opened));
	assert_int_equal(opened.blob_low, 0);
	assert_int_equal(opened.blob_high, 0);
	v8_make(&opened, V8_OLD);
	v8_put(&v8, V8_AT_BLOB + 8, 0x7fffffff, 4);
	expect_no_error(vp_v8_open(&v8.memory, v8.symbols, &opened));
	assert_int_equal(opened.blob_high, 0);
}

static void put_code(size_t place, const uint32_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		v8_put(&v8, place + 4 * i, words[i], 4);
}

/* Functions of 64-bit Arm that return the blob: with and without an addition, behind a landing pad,
 * from a page before theirs. */
static void test_blob_on_arm(void **state)
{
	enum { FAR = 0x3f00 }; /* three pages further */
	const uint32_t code[] = {0x90000000, 0xf9424000, 0xd65f03c0};
	const uint32_t size[] = {0xd503245f, 0x90000000, 0x91120000, 0xb9400800, 0xd65f03c0};
	const uint32_t far[] = {0xb0ffffe0, 0x91120000, 0xf9400000, 0xd65f03c0};
	struct vp_v8 opened;

	(void)state;
	v8_make(&opened, V8_OLD);
	put_code(V8_AT_CODE, code, 3);
	put_code(V8_AT_CODE + 0x20, size, 5);
	expect_no_error(vp_v8_open(&v8.memory, v8.symbols, &opened));
	assert_int_equal(opened.blob_low, V8_BASE + 0x100000);
	assert_int_equal(opened.blob_high, V8_BASE + 0x300000);
	put_code(FAR, far, 4);
	v8.symbols[VP_V8_BLOB] = V8_BASE + FAR;
	expect_no_error(vp_v8_open(&v8.memory, v8.symbols, &opened));
	assert_int_equal(opened.blob_low, V8_BASE + 0x100000);
	/* Another register, and no return. */
	for (unsigned word = 0; word < 4; word++) {
		put_code(FAR, far, 4);
		v8_put(&v8, FAR + 4UL * word, far[word] ^ 1 << (word == 3 ? 5 : 0), 4);
		expect_no_error(vp_v8_open(&v8.memory, v8.symbols, &opened));
		assert_int_equal(opened.blob_high, 0);
	}
}

/* Strings that consist of themselves, and sizes without a limit. */
static void test_forged(void **state)
{
	struct vp_v8 opened;

	(void)state;
	v8_make(&opened, V8_OLD);
	uint64_t cycle = v8_put_pair(&v8, V8_TYPE_CONS, 0, 0);
	v8_put(&v8, cycle - 1 - V8_BASE + 16, cycle, 8);
	v8_put(&v8, cycle - 1 - V8_BASE + 24, cycle, 8);
	v8_put_function(&v8, 0, cycle, v8_tagged(V8_AT_SCRIPT));
	v8.reads = 0;
	expect_name(&opened, v8_shared_at(0), "JS:(anonymous) /app/main.js");
	assert_true(v8.reads < 500);
	uint64_t thin = v8_put_pair(&v8, V8_TYPE_THIN, 0, 0);
	v8_put(&v8, thin - 1 - V8_BASE + 16, thin, 8);
	v8_put_function(&v8, 0, thin, v8_tagged(V8_AT_SCRIPT));
	v8.reads = 0;
	expect_name(&opened, v8_shared_at(0), "JS:(anonymous) /app/main.js");
	assert_true(v8.reads < 500);
	uint64_t part = v8_put_pair(&v8, V8_TYPE_SLICED, 0, 0);
	v8_put_function(&v8, 0, part, v8_tagged(V8_AT_SCRIPT));
	expect_name(&opened, v8_shared_at(0), "JS:(anonymous) /app/main.js");
	uint64_t large = v8_put_string(&v8, "large", false);
	v8_put(&v8, large - 1 - V8_BASE + 12, 0x7fffffff, 4);
	v8_put_function(&v8, 0, large, v8_tagged(V8_AT_SCRIPT));
	struct vp_buffer name = {0};
	assert_true(vp_v8_name(&opened, v8_shared_at(0), &name));
	assert_true(name.size < 400);
	vp_buffer_deinit(&name);
	/* A scope with a number of variables that leads far away. */
	v8_put(&v8, V8_AT_SCOPES + 0x400 + 24, v8_smi(0x7ffffffe), 8);
	expect_name(&opened, v8_shared_at(1), "JS:(anonymous) /app/main.js");
	/* No function, and no memory. */
	expect_name(&opened, V8_BASE + V8_AT_SCRIPT, NULL);
	expect_name(&opened, V8_BASE + V8_SIZE, NULL);
	expect_name(&opened, v8_shared_at(0) + 1, NULL);
	expect_name(&opened, UINT64_MAX - 7, NULL);
	assert_int_equal(opened.failures[VP_V8_NO_FUNCTION], 3);
	assert_int_equal(opened.failures[VP_V8_UNREADABLE], 1);
}

/* The garbage collector moves functions: another one is at the address later. */
static void test_births(void **state)
{
	struct vp_code_names names = {0};
	struct vp_v8 opened;

	(void)state;
	v8_make(&opened, V8_OLD);
	assert_true(vp_v8_names_see(&names, &opened, v8_shared_at(2), 1000));
	assert_true(vp_v8_names_see(&names, &opened, v8_shared_at(2), 2000));
	assert_int_equal(names.births.count, 1);
	v8_put_function(&v8, 2, v8_put_string(&v8, "other", false), v8_tagged(V8_AT_SCRIPT));
	assert_true(vp_v8_names_see(&names, &opened, v8_shared_at(2), 1000000000));
	assert_int_equal(names.births.count, 2);
	assert_string_equal(vp_intern_text(&names.texts, names.births.at[1].name),
			    "JS:other /app/main.js");
	assert_int_equal(names.births.at[1].before, 1);
	v8_put_type(&v8, V8_AT_SHARED + 0x80, V8_TYPE_SCRIPT);
	assert_false(vp_v8_names_see(&names, &opened, v8_shared_at(2), 2000000000));
	assert_int_equal(names.failed, 1);
	vp_code_names_deinit(&names);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),  cmocka_unit_test(test_frames),
	    cmocka_unit_test(test_open),   cmocka_unit_test(test_blob_on_arm),
	    cmocka_unit_test(test_forged), cmocka_unit_test(test_births),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
