/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JavaScript functions in call chains: only where code of V8 has a frame of JavaScript. */
#include "unit.h"

#include "guestreader/v8_frames.h"
#include "schema/chain_end.h"
#include "v8_memory.h"

enum {
	JIT = 0x1000, /* 0x1000 bytes each */
	BLOB = 0x4000,
	OTHER = 0x8000,
	AT_STACK = 0x3000, /* frames of 0x40 bytes, in the memory */
};

static struct v8_memory memory;

/* The frame pointer of a frame with these two words. */
static uint64_t put_frame(unsigned number, uint64_t context, uint64_t function)
{
	size_t at = AT_STACK + 0x40UL * number + 0x20;

	v8_put(&memory, at - 8, context, 8);
	v8_put(&memory, at - 16, function, 8);
	return V8_BASE + at;
}

static void test_put(void **state)
{
	const struct vp_user_program program = {.read = v8_memory_read, .context = &memory};
	uint64_t functions[VP_CHAIN_LONGEST];
	struct vp_v8 v8;

	(void)state;
	v8_memory_make(&memory, V8_NEW);
	expect_no_error(vp_v8_open(&memory.memory, memory.symbols, &v8));
	const struct vp_guest_v8_code code = {.low = JIT,
					      .high = JIT + 0x1000,
					      .blob_low = BLOB,
					      .blob_high = BLOB + 0x1000,
					      .layout = &v8.layout};
	uint64_t context = v8_tagged(V8_AT_SCRIPT);
	uint64_t first = v8_tagged(V8_AT_FUNCTIONS), second = v8_tagged(V8_AT_FUNCTIONS + 0x40);
	struct vp_user_chain chain = {
	    .count = 7,
	    .ips = {JIT + 0xfff, BLOB + 1, BLOB + 0x1000, JIT + 5, OTHER, JIT + 9, JIT},
	    .fps = {put_frame(0, context, first), put_frame(1, context, second),
		    put_frame(2, context, first),
		    put_frame(3, v8_smi(3), first) /* a builtin's own */,
		    put_frame(4, context, first) /* C++ */, 0, put_frame(5, context, first)}};
	/* Of callers the address is one higher: the third one's code is in the second range, and
	 * the last one's before the first. */
	assert_int_equal(vp_v8_frames_put(&code, &program, &chain, functions), 3);
	const uint64_t expected[] = {v8_shared_at(0),
				     v8_shared_at(1) + 1,
				     v8_shared_at(0) + 1,
				     JIT + 5,
				     OTHER,
				     JIT + 9,
				     JIT};
	assert_memory_equal(chain.ips, expected, sizeof(expected));
	assert_int_equal(functions[0], v8_shared_at(0));
	assert_int_equal(functions[1], v8_shared_at(1));
	assert_int_equal(functions[2], v8_shared_at(0));
}

/* A builtin that has a frame of its own counts as the function that called it; others stay. */
static void test_innermost(void **state)
{
	const struct vp_user_program program = {.read = v8_memory_read, .context = &memory};
	uint64_t functions[VP_CHAIN_LONGEST];
	struct vp_v8 v8;

	(void)state;
	v8_memory_make(&memory, V8_OLD);
	expect_no_error(vp_v8_open(&memory.memory, memory.symbols, &v8));
	const struct vp_guest_v8_code code = {
	    .blob_low = BLOB, .blob_high = BLOB + 0x1000, .layout = &v8.layout};
	uint64_t builtin = put_frame(0, 0x1e, v8_smi(3));
	uint64_t function = put_frame(1, v8_tagged(V8_AT_SCRIPT), v8_tagged(V8_AT_FUNCTIONS));
	struct vp_user_chain chain = {.count = 3,
				      .ips = {BLOB + 1, BLOB + 0x1000, OTHER},
				      .fps = {builtin, function, function}};
	struct vp_user_chain deeper = {
	    .count = 3, .ips = {OTHER, BLOB + 1, BLOB + 9}, .fps = {0, builtin, function}};
	assert_int_equal(vp_v8_frames_put(&code, &program, &chain, functions), 1);
	assert_int_equal(chain.count, 2);
	assert_int_equal(chain.ips[0], v8_shared_at(0));
	assert_int_equal(chain.ips[1], OTHER);
	assert_int_equal(vp_v8_frames_put(&code, &program, &deeper, functions), 1);
	assert_int_equal(deeper.count, 3);
	assert_int_equal(deeper.ips[1], BLOB + 1);
	assert_int_equal(deeper.ips[2], v8_shared_at(0) + 1);
}

/* Addresses from here on have an unwind table. */
static enum vp_cfi_result find_other(void *context, uint64_t address, struct vp_cfi_row *row,
				     struct vp_slice *expressions)
{
	(void)context;
	(void)row;
	(void)expressions;
	return address >= OTHER ? VP_CFI_FOUND : VP_CFI_NONE;
}

/* Where V8's own code is not known, it is code without an unwind table. */
static void test_unknown_place(void **state)
{
	const struct vp_user_program program = {
	    .read = v8_memory_read, .find = find_other, .context = &memory};
	uint64_t functions[VP_CHAIN_LONGEST];
	struct vp_v8 v8;

	(void)state;
	v8_memory_make(&memory, V8_NEW);
	expect_no_error(vp_v8_open(&memory.memory, memory.symbols, &v8));
	const struct vp_guest_v8_code code = {
	    .low = JIT, .high = JIT + 0x1000, .layout = &v8.layout};
	uint64_t context = v8_tagged(V8_AT_SCRIPT), function = v8_tagged(V8_AT_FUNCTIONS);
	uint64_t first = put_frame(0, context, function), second = put_frame(1, context, function);
	uint64_t builtin = put_frame(2, v8_smi(3), function);
	struct vp_user_chain chain = {
	    .count = 6,
	    .ips = {OTHER, BLOB + 1, JIT + 5, BLOB + 5, OTHER + 1, BLOB + 9},
	    /* the second and the third one have one frame; the last is of another kind */
	    .fps = {first, first, first, second, second + 0x40, builtin}};
	assert_int_equal(vp_v8_frames_put(&code, &program, &chain, functions), 2);
	const uint64_t expected[] = {OTHER,     BLOB + 1, v8_shared_at(0) + 1, v8_shared_at(0) + 1,
				     OTHER + 1, BLOB + 9};
	assert_memory_equal(chain.ips, expected, sizeof(expected));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_put),
						  cmocka_unit_test(test_innermost),
						  cmocka_unit_test(test_unknown_place)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
