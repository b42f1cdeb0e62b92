/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Branches after safepoints of Java loops. */
#include "unit.h"

#include "runtime/java_loop.h"

enum { BASE = 0x1000, SIZE = 64 };

static uint8_t code[SIZE];

static bool read_code(void *context, uint64_t addr, void *bytes, size_t size)
{
	(void)context;
	if (addr < BASE || addr - BASE > SIZE - size)
		return false;
	memcpy(bytes, code + (addr - BASE), size);
	return true;
}

/* Size of the safepoint and branch at the code's start; 0: none. */
static uint64_t loop_of(const void *bytes, size_t size)
{
	const struct vp_process_memory memory = {read_code, NULL};
	uint64_t end;

	memset(code, 0, sizeof(code));
	memcpy(code, bytes, size);
	return vp_java_loop_end(&memory, BASE, &end) ? end - BASE : 0;
}

static void test_x86(void **state)
{
	/* test %eax,(%r10); cmp $0x258,%esi; jl back */
	static const uint8_t near[] = "\x41\x85\x02\x81\xfe\x58\x02\x00\x00\x7c\xe0";
	static const uint8_t far[] = "\x41\x85\x02\x81\xfe\x58\x02\x00\x00\x0f\x8c\x10\xff\xff\xff";
	static const uint8_t on[] = "\x41\x85\x02\x81\xfe\x58\x02\x00\x00\x7c\x20";
	static const uint8_t no_poll[] = "\x41\x85\xc2\x81\xfe\x58\x02\x00\x00\x7c\xe0";
	static const uint8_t plain[] = "\x85\x00\x7f\x80";

	(void)state;
	assert_int_equal(loop_of(near, sizeof(near) - 1), 11);
	assert_int_equal(loop_of(far, sizeof(far) - 1), 15);
	assert_int_equal(loop_of(plain, sizeof(plain) - 1), 4);
	assert_int_equal(loop_of(on, sizeof(on) - 1), 0);
	assert_int_equal(loop_of(no_poll, sizeof(no_poll) - 1), 0);
	assert_int_equal(loop_of("", 0), 0);
}

static void test_arm(void **state)
{
	/* ldr wzr, [x16]; cmp w0, w1; b.lt back, b.lt on, cbnz back, tbz back */
	static const uint32_t back[] = {0xb940021f, 0x6b01001f, 0x54ffff8b};
	static const uint32_t on[] = {0xb940021f, 0x6b01001f, 0x5400008b};
	static const uint32_t by_value[] = {0xb940021f, 0x35ffffe1};
	static const uint32_t by_bit[] = {0xb940021f, 0x3607ffe1};
	static const uint32_t no_poll[] = {0xb9400201, 0x6b01001f, 0x54ffff8b};

	(void)state;
	assert_int_equal(loop_of(back, sizeof(back)), 12);
	assert_int_equal(loop_of(on, sizeof(on)), 0);
	assert_int_equal(loop_of(by_value, sizeof(by_value)), 8);
	assert_int_equal(loop_of(by_bit, sizeof(by_bit)), 8);
	assert_int_equal(loop_of(no_poll, sizeof(no_poll)), 0);
}

static void test_unreadable(void **state)
{
	const struct vp_process_memory memory = {read_code, NULL};
	uint64_t end;

	(void)state;
	assert_false(vp_java_loop_end(&memory, BASE + SIZE - 8, &end));
	assert_false(vp_java_loop_end(&memory, 0, &end));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_x86),
						  cmocka_unit_test(test_arm),
						  cmocka_unit_test(test_unreadable)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
