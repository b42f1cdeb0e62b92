/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code and methods of Java, from made memory of three versions of HotSpot, and from lies. */
#include "unit.h"

#include <inttypes.h>

#include "java_memory.h"

static void java_open(struct java_memory *java, enum java_version version, struct vp_java_vm *vm)
{
	java_memory_make(java, version);
	*vm = (struct vp_java_vm){.memory = &java->memory};
	expect_no_error(vp_java_tables_read(&java->memory, java->symbols, &vm->tables));
	expect_no_error(vp_java_heaps_read(vm));
	assert_int_equal(vm->n_heaps, 1);
}

static void expect_method(const struct vp_java_vm *vm, uint64_t method, const char *expected)
{
	struct vp_buffer name = {0};

	assert_true(vp_java_method_name(vm, method, &name));
	assert_string_equal(vp_buffer_text(&name), expected);
	vp_buffer_deinit(&name);
}

static void expect_no_method(const struct vp_java_vm *vm, uint64_t method)
{
	struct vp_buffer name = {0};

	assert_false(vp_java_method_name(vm, method, &name));
	assert_int_equal(name.size, 0);
	vp_buffer_deinit(&name);
}

static void test_find(void **state)
{
	(void)state;
	for (enum java_version version = JAVA_8; version <= JAVA_25; version++) {
		struct java_memory java;
		struct vp_java_vm vm;
		struct vp_java_code code;
		java_open(&java, version, &vm);
		for (unsigned i = 0; i < JAVA_BLOCKS; i++) {
			uint64_t start = java_blob(&java, i);
			uint64_t size = JAVA_SEGMENT * java_blocks[i].count - 0x20;
			if (!java_blocks[i].name) {
				assert_false(vp_java_code_find(&vm, start + 1, &code));
				continue;
			}
			assert_true(vp_java_code_find(&vm, start, &code));
			assert_true(vp_java_code_find(&vm, start + size - 1, &code));
			assert_int_equal(code.start, start);
			assert_int_equal(code.end, start + size);
			assert_string_equal(code.name, java_blocks[i].name);
			/* The block's end is not the blob's. */
			assert_false(vp_java_code_find(&vm, start + size, &code));
			assert_false(vp_java_code_find(&vm, start - 1, &code));
		}
		assert_true(vp_java_code_find(&vm, java_blob(&java, 2) + 99, &code));
		assert_int_equal(code.kind, VP_JAVA_METHOD);
		assert_int_equal(code.compile_id, 102);
		assert_int_equal(code.level, 4);
		expect_method(&vm, code.method, "com.example.Work$$Lambda/0x12.spin");
		assert_true(vp_java_code_find(&vm, java_blob(&java, 4) + 99, &code));
		assert_int_equal(code.kind, VP_JAVA_METHOD);
		expect_method(&vm, code.method, "com.example.Work$$Lambda/0x12.<init>");
		assert_true(vp_java_code_find(&vm, java_blob(&java, 0) + 99, &code));
		assert_int_equal(code.kind, VP_JAVA_INTERPRETER);
		assert_true(vp_java_code_find(&vm, java_blob(&java, 1) + 9, &code));
		assert_int_equal(code.kind, VP_JAVA_STUB);
		assert_false(vp_java_code_find(&vm, JAVA_BASE + JAVA_AT_CODE - 1, &code));
		assert_false(
		    vp_java_code_find(&vm, JAVA_BASE + JAVA_AT_CODE + JAVA_CODE_SIZE, &code));
	}
}

static bool take_start(void *context, const struct vp_java_code *code)
{
	uint64_t *starts = context;

	assert_true(starts[0] < JAVA_BLOCKS);
	starts[++starts[0]] = code->start;
	return starts[0] < starts[JAVA_BLOCKS + 1];
}

static void test_each(void **state)
{
	static const unsigned used[] = {0, 1, 2, 4};
	struct java_memory java;
	struct vp_java_vm vm;
	bool damaged;

	(void)state;
	java_open(&java, JAVA_25, &vm);
	uint64_t starts[JAVA_BLOCKS + 2] = {[JAVA_BLOCKS + 1] = 9};
	vp_java_code_each(&vm, take_start, starts, &damaged);
	assert_false(damaged);
	assert_int_equal(starts[0], 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(starts[i + 1], java_blob(&java, used[i]));
	/* Until `each` says no more. */
	uint64_t two[JAVA_BLOCKS + 2] = {[JAVA_BLOCKS + 1] = 2};
	vp_java_code_each(&vm, take_start, two, &damaged);
	assert_int_equal(two[0], 2);
	/* A block that goes on behind the heap's end: the list is cut there. */
	java_put(&java, JAVA_AT_CODE + JAVA_SEGMENT * 42, 1000, 4);
	uint64_t cut[JAVA_BLOCKS + 2] = {[JAVA_BLOCKS + 1] = 9};
	vp_java_code_each(&vm, take_start, cut, &damaged);
	assert_true(damaged);
	assert_int_equal(cut[0], 2);
}

/* Bytes of the memory that are changed, and the address whose block is not found any more. */
static void test_code_that_lies(void **state)
{
	enum { BLOCK = JAVA_AT_CODE + JAVA_SEGMENT * 42, BLOB = BLOCK + 8 };
	static const struct {
		size_t at, size;
		uint64_t value;
	} lies[] = {
	    {JAVA_AT_MAP + 43, 1, 0xff},   /* free */
	    {JAVA_AT_MAP + 43, 1, 44},     /* before the map */
	    {JAVA_AT_MAP + 43, 1, 0},      /* another block begins there: of zeros */
	    {BLOCK, 4, 0},                 /* no length */
	    {BLOCK, 4, 0xffffffff},        /* beyond the heap */
	    {BLOCK + 4, 1, 0},             /* not in use */
	    {BLOCK + 4, 1, 2},             /* neither in use nor not */
	    {BLOB + 8, 8, 0},              /* no name */
	    {BLOB + 8, 8, UINT64_MAX - 7}, /* a name at the end of all addresses */
	    {BLOB + 0x10, 4, 0},           /* no size */
	    {BLOB + 0x10, 4, 0x80000000},  /* larger than the block */
	    {BLOB + 0x10, 4, 8},           /* ends before the address */
	    {BLOB + 0x20, 8, 0},           /* no method */
	    {JAVA_AT_NAMES + 0x40, 1, 0},  /* an empty name */
	};
	struct java_memory java;
	struct vp_java_vm vm;
	struct vp_java_code code;

	(void)state;
	for (size_t i = 0; i < VP_ARRAY_SIZE(lies); i++) {
		java_open(&java, JAVA_25, &vm);
		assert_true(vp_java_code_find(&vm, java_blob(&java, 2) + 0x90, &code));
		java_put(&java, lies[i].at, lies[i].value, lies[i].size);
		if (vp_java_code_find(&vm, java_blob(&java, 2) + 0x90, &code))
			fail_msg("lie %zu is believed", i);
	}
	/* A way back to before the heap, where there is what looks like a block of all of it. */
	java_open(&java, JAVA_25, &vm);
	java_put(&java, JAVA_AT_CODE - JAVA_SEGMENT, 60, 4);
	java_put(&java, JAVA_AT_CODE - JAVA_SEGMENT + 4, 1, 1);
	java_put(&java, JAVA_AT_CODE - JAVA_SEGMENT + 16, JAVA_BASE + JAVA_AT_NAMES, 8);
	java_put(&java, JAVA_AT_CODE - JAVA_SEGMENT + 24, 59 * JAVA_SEGMENT, 4);
	java_put(&java, JAVA_AT_MAP + 43, 44, 1);
	assert_false(vp_java_code_find(&vm, java_blob(&java, 2) + 0x90, &code));
	/* A level that cannot be is none. */
	java_open(&java, JAVA_25, &vm);
	java.bytes[BLOB + 0x2c] = 5;
	assert_true(vp_java_code_find(&vm, java_blob(&java, 2) + 0x90, &code));
	assert_int_equal(code.level, 0);
}

static void test_methods_that_lie(void **state)
{
	static const struct {
		size_t at, size;
		uint64_t value;
	} lies[] = {
	    {JAVA_AT_METHODS + 8, 8, 0},
	    {JAVA_AT_METHODS + 8, 8, JAVA_BASE + JAVA_AT_CONSTS + 1},
	    {JAVA_AT_METHODS + 8, 8, UINT64_MAX - 15},
	    {JAVA_AT_CONSTS + 8, 8, 0},
	    {JAVA_AT_CONSTS + 8, 8, JAVA_BASE + JAVA_AT_POOL + 4},
	    {JAVA_AT_CONSTS + 0x12, 2, 0},
	    {JAVA_AT_CONSTS + 0x12, 2, 3}, /* the pool has three */
	    {JAVA_AT_POOL + 0x3c, 4, 0x10001},
	    {JAVA_AT_POOL + 0x18, 8, 0},
	    {JAVA_AT_POOL + 0x50, 8, 0},
	    {JAVA_AT_KLASS + 0x18, 8, 0},
	    {JAVA_AT_SYMBOLS, 2, 0},        /* an empty name */
	    {JAVA_AT_SYMBOLS + 6, 1, '\n'}, /* a line of its own */
	    {JAVA_AT_SYMBOLS + 0x46, 1, 0}, /* the end of a text */
	    {JAVA_AT_SYMBOLS + 0x47, 1, 0x7f},
	};
	struct java_memory java;
	struct vp_java_vm vm;

	(void)state;
	for (size_t i = 0; i < VP_ARRAY_SIZE(lies); i++) {
		java_open(&java, JAVA_25, &vm);
		java_put(&java, lies[i].at, lies[i].value, lies[i].size);
		expect_no_method(&vm, java_method(0));
	}
	java_open(&java, JAVA_25, &vm);
	expect_no_method(&vm, 0);
	expect_no_method(&vm, java_method(0) + 4);
	expect_no_method(&vm, UINT64_MAX - 7);
	expect_method(&vm, java_method(0), "com.example.Work$$Lambda/0x12.spin");
	/* A name of 64 KiB is cut, and what cannot be read is no name. */
	java_put(&java, JAVA_AT_SYMBOLS + 0x40, 0xffff, 2);
	memset(java.bytes + JAVA_AT_SYMBOLS + 0x46, 'x', 600);
	struct vp_buffer name = {0};
	assert_true(vp_java_method_name(&vm, java_method(0), &name));
	assert_int_equal(name.size, strlen("com.example.Work$$Lambda/0x12.") + 512);
	vp_buffer_deinit(&name);
	java.readable = JAVA_AT_SYMBOLS + 0x60;
	expect_no_method(&vm, java_method(0));
}

static void test_heaps_that_lie(void **state)
{
	static const struct {
		size_t at, size;
		uint64_t value;
	} lies[] = {
	    {JAVA_AT_STATICS, 8, 0}, /* the VM is starting */
	    {JAVA_AT_ARRAY, 4, 9},   /* more heaps than there are kinds */
	    {JAVA_AT_ARRAY + 8, 8, 0},
	    {JAVA_AT_HEAP_POINTERS, 8, 0},
	    {JAVA_AT_HEAP + 0x28, 8, JAVA_BASE},                   /* ends before it begins */
	    {JAVA_AT_HEAP + 0x28, 8, JAVA_BASE << 1},              /* terabytes */
	    {JAVA_AT_HEAP + 0x58, 8, JAVA_BASE + JAVA_AT_MAP + 1}, /* a map of one segment */
	    {JAVA_AT_HEAP + 0x80, 4, 3},
	    {JAVA_AT_HEAP + 0x80, 4, 17},
	};
	struct java_memory java;
	struct vp_java_vm vm;

	(void)state;
	for (size_t i = 0; i < VP_ARRAY_SIZE(lies); i++) {
		java_open(&java, JAVA_13, &vm);
		java_put(&java, lies[i].at, lies[i].value, lies[i].size);
		expect_error(vp_java_heaps_read(&vm), "no code heap");
		assert_int_equal(vm.n_heaps, 0);
	}
}

/* Every member that every version has: without it there is nothing to read. */
static void test_missing_members(void **state)
{
	static const char *const names[] = {
	    "_heaps",      "_len",         "_data",
	    "_memory",     "_segmap",      "_log2_segment_size",
	    "_low",        "_high",        "_used",
	    "_name",       "_size",        "_method",
	    "_compile_id", "_constMethod", "_constants",
	    "_name_index", "_pool_holder", "_body",
	};
	struct java_memory java;
	struct vp_java_tables tables;

	(void)state;
	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++) {
		java_memory_make(&java, JAVA_25);
		unsigned found = 0;
		for (size_t at = JAVA_AT_STRINGS; at < java.strings;
		     at += strlen(java.bytes + at) + 1)
			if (!strcmp(java.bytes + at, names[i])) {
				java.bytes[at] = '-';
				found++;
			}
		assert_true(found);
		expect_error(vp_java_tables_read(&java.memory, java.symbols, &tables), "have no");
	}
	/* An offset of a megabyte is none. */
	java_memory_make(&java, JAVA_25);
	java_put(&java, JAVA_AT_STRUCTS + JAVA_STRIDE + 32, 1 << 20, 8);
	expect_error(vp_java_tables_read(&java.memory, java.symbols, &tables), "GrowableArray");
	java_memory_make(&java, JAVA_25);
	java_put(&java, JAVA_AT_TYPES + 32, 1 << 20, 8);
	expect_error(vp_java_tables_read(&java.memory, java.symbols, &tables), "HeapBlock");
}

static void test_tables_that_lie(void **state)
{
	struct java_memory java;
	struct vp_java_tables tables;

	(void)state;
	/* A symbol that is nowhere. */
	java_memory_make(&java, JAVA_25);
	java.symbols[VP_JAVA_TYPES] = 0;
	expect_error(vp_java_tables_read(&java.memory, java.symbols, &tables), "no tables");
	java_memory_make(&java, JAVA_25);
	java.symbols[VP_JAVA_TYPES] = JAVA_BASE - 8;
	expect_error(vp_java_tables_read(&java.memory, java.symbols, &tables), "no tables");
	/* Entries that overlap themselves, are too large, or have members outside. */
	static const struct {
		enum vp_java_symbol symbol;
		uint64_t value;
	} lies[] = {
	    {VP_JAVA_STRUCTS, 0},
	    {VP_JAVA_STRUCT_STRIDE, 0},
	    {VP_JAVA_STRUCT_STRIDE, 257},
	    {VP_JAVA_STRUCT_TYPE_NAME, 41},
	    {VP_JAVA_STRUCT_FIELD_NAME, UINT64_MAX},
	    {VP_JAVA_STRUCT_IS_STATIC, 45},
	    {VP_JAVA_STRUCT_OFFSET, 48},
	    {VP_JAVA_STRUCT_ADDRESS, 41},
	    {VP_JAVA_TYPES, 0},
	    {VP_JAVA_TYPE_STRIDE, 0},
	    {VP_JAVA_TYPE_NAME, 41},
	    {VP_JAVA_TYPE_SIZE, 41},
	};
	for (size_t i = 0; i < VP_ARRAY_SIZE(lies); i++) {
		java_memory_make(&java, JAVA_25);
		java_put(&java, 8 * lies[i].symbol, lies[i].value, 8);
		expect_error(vp_java_tables_read(&java.memory, java.symbols, &tables),
			     "make no sense");
	}
	/* A table that goes on into memory that is not there. */
	java_memory_make(&java, JAVA_25);
	java.readable = JAVA_AT_STRUCTS + JAVA_STRIDE * 3;
	expect_error(vp_java_tables_read(&java.memory, java.symbols, &tables), "page");
	/* A table without an end: entries of eight bytes, all alike. */
	java_memory_make(&java, JAVA_25);
	for (unsigned i = VP_JAVA_STRUCT_TYPE_NAME; i <= VP_JAVA_STRUCT_ADDRESS; i++)
		java_put(&java, 8 * i, 0, 8);
	java_put(&java, 8 * VP_JAVA_STRUCT_STRIDE, 8, 8);
	java_put(&java, 8 * VP_JAVA_STRUCTS, 0x10000000, 8);
	java.reads = 0;
	expect_error(vp_java_tables_read(&java.memory, java.symbols, &tables), "page");
	assert_true(java.reads < 20);
}

struct endless {
	uint64_t reads;
	bool all_alike;
};

/* The same 8 bytes everywhere: an address there. */
static bool endless_read(void *context, uint64_t addr, void *bytes, size_t size)
{
	struct endless *endless = context;

	endless->reads++;
	for (size_t i = 0; i < size; i++)
		((char *)bytes)[i] = endless->all_alike ? 1 : (char)((addr + i) % 8 ? 1 : 2);
	return true;
}

/* Memory that is readable everywhere and always leads on: bounded. */
static void test_bounds(void **state)
{
	struct endless endless = {.all_alike = true};
	const struct vp_process_memory memory = {endless_read, &endless};
	struct java_memory java;
	struct vp_java_vm vm;
	struct vp_java_code code;
	struct vp_java_tables tables;
	uint64_t symbols[VP_JAVA_SYMBOLS];
	bool damaged;

	(void)state;
	for (size_t i = 0; i < VP_JAVA_SYMBOLS; i++)
		symbols[i] = 8 * (i + 1);
	expect_error(vp_java_tables_read(&memory, symbols, &tables), "make no sense");
	java_open(&java, JAVA_25, &vm);
	vm.memory = &memory;
	endless.reads = 0;
	/* The way back to a block's first segment, one at a time: bounded. */
	vm.heaps[0].high = vm.heaps[0].low + (1ULL << 30);
	assert_false(vp_java_code_find(&vm, vm.heaps[0].high - 1, &code));
	assert_int_equal(endless.reads, 256);
	expect_no_method(&vm, 0x1000);
	uint64_t starts[JAVA_BLOCKS + 2] = {[JAVA_BLOCKS + 1] = 9};
	vp_java_code_each(&vm, take_start, starts, &damaged);
	assert_true(damaged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_find),
	    cmocka_unit_test(test_each),
	    cmocka_unit_test(test_code_that_lies),
	    cmocka_unit_test(test_methods_that_lie),
	    cmocka_unit_test(test_heaps_that_lie),
	    cmocka_unit_test(test_missing_members),
	    cmocka_unit_test(test_tables_that_lie),
	    cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
