/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The function table of Go programs, of three versions. */
#include "unit.h"

#include "maps/go_functions.h"

enum { NAMES = 0x60, TABLE = 0xa0, SIZE = 0x140, TEXT = 0x401000 };
enum version { GO_16, GO_18, GO_20, GO_26 };

static void put(char *bytes, size_t at, uint64_t value, size_t size)
{
	memcpy(bytes + at, &value, size);
}

/* Two functions: main.work of 0x40 bytes, main.main of 0x20. */
static void build(char bytes[SIZE], enum version version)
{
	static const uint32_t magic[] = {0xfffffffa, 0xfffffff0, 0xfffffff1, 0xfffffff1};
	size_t word = version == GO_16 ? 8 : 4, field = 24;
	uint64_t base = version == GO_16 ? TEXT : 0, facts[] = {0x40, 0x60};

	memset(bytes, 0, SIZE);
	put(bytes, 0, magic[version], 4);
	bytes[6] = 1;
	bytes[7] = 8;
	put(bytes, 8, 2, 8);
	if (version != GO_16) {
		put(bytes, field, version == GO_26 ? 0 : TEXT, 8);
		field += 8;
	}
	put(bytes, field, NAMES, 8);
	put(bytes, field + 32, TABLE, 8);
	strcpy(bytes + NAMES, "main.work");
	strcpy(bytes + NAMES + 16, "main.main");
	const uint64_t entries[] = {base, facts[0], base + 0x40, facts[1], base + 0x60};
	for (size_t i = 0; i < VP_ARRAY_SIZE(entries); i++)
		put(bytes, TABLE + i * word, entries[i], word);
	for (size_t i = 0; i < 2; i++) {
		put(bytes, TABLE + facts[i], entries[2 * i], word);
		put(bytes, TABLE + facts[i] + word, 16 * i, 4);
	}
}

struct seen {
	struct vp_go_function functions[8];
	size_t count;
};

static void keep(void *context, const struct vp_go_function *function)
{
	struct seen *seen = context;

	assert_true(seen->count < VP_ARRAY_SIZE(seen->functions));
	seen->functions[seen->count++] = *function;
}

static struct seen read_table(const char *bytes, size_t size, uint64_t text)
{
	const struct vp_go_table table = {bytes, size, text};
	struct seen seen = {0};

	vp_go_functions(&table, keep, &seen);
	return seen;
}

static void check_function(const struct vp_go_function *function, uint64_t addr, uint64_t size,
			   const char *name)
{
	assert_int_equal(function->addr, addr);
	assert_int_equal(function->size, size);
	assert_true(vp_slice_is(function->name, name));
}

static void test_versions(void **state)
{
	char bytes[SIZE];

	for (enum version version = GO_16; version <= GO_26; version++) {
		build(bytes, version);
		assert_true(vp_go_table_starts(bytes, SIZE));
		assert_int_equal(vp_go_table_needs_text(bytes, SIZE), version == GO_26);
		struct seen seen = read_table(bytes, SIZE, version == GO_26 ? TEXT : 0);
		assert_int_equal(seen.count, 2);
		check_function(&seen.functions[0], TEXT, 0x40, "main.work");
		check_function(&seen.functions[1], TEXT + 0x40, 0x20, "main.main");
	}
	assert_int_equal(read_table(bytes, SIZE, 0).count, 0);
}

/* A name that is missing does not become another one. */
static void test_missing_names(void **state)
{
	char bytes[SIZE];

	build(bytes, GO_20);
	put(bytes, TABLE + 0x60, 0x1234, 4);
	memset(bytes + NAMES, 0, 16);
	struct seen seen = read_table(bytes, SIZE, 0);
	assert_int_equal(seen.count, 2);
	check_function(&seen.functions[0], TEXT, 0x40, "");
	check_function(&seen.functions[1], TEXT + 0x40, 0x20, "");
}

static void test_other_tables(void **state)
{
	char bytes[SIZE];

	build(bytes, GO_20);
	put(bytes, 8, UINT64_MAX, 8);
	assert_int_equal(read_table(bytes, SIZE, 0).count, 0);
	build(bytes, GO_20);
	bytes[7] = 4;
	assert_false(vp_go_table_starts(bytes, SIZE));
	build(bytes, GO_20);
	bytes[0] = (char)0xfb; /* Go 1.2 */
	assert_int_equal(read_table(bytes, SIZE, 0).count, 0);
}

/* No crash, whatever is cut or changed. */
static void test_damage(void **state)
{
	char bytes[SIZE];

	build(bytes, GO_20);
	for (size_t size = 0; size < SIZE; size++) {
		char *exact = malloc(size + 1);
		memcpy(exact, bytes, size);
		assert_in_range(read_table(exact, size, 0).count, 0, 2);
		free(exact);
	}
	for (size_t at = 16; at < SIZE; at++)
		for (unsigned value = 0; value < 256; value += 51) {
			build(bytes, GO_20);
			bytes[at] = (char)value;
			assert_in_range(read_table(bytes, SIZE, 0).count, 0, 2);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_versions),
	    cmocka_unit_test(test_missing_names),
	    cmocka_unit_test(test_other_tables),
	    cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
