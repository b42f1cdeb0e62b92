/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names: page table roots over time, mappings over time, kernel and generated code. */
#include <sys/stat.h>

#include "elf_builder.h"
#include "unit.h"

#include "base/buffer.h"
#include "base/file.h"

#include "symbol/demangle.h"
#include "symbol/names.h"

static const char text[] = "vperf-maps 1\n"
			   "machine guest g\n"
			   "address-bits 4 kpti 1\n"
			   "k ffffffff81000000 0 T _text\n"
			   "k ffffffff81000000 0 T startup\n"
			   "k ffffffff81000100 0 t do_work\n"
			   "k ffffffff81000100 0 t __do_work\n"
			   "k ffffffff81000200 0 D some_data\n"
			   "k ffffffffc0000000 0 t vcpu_run kvm\n"
			   "k ffffffffc0000040 10 t vcpu_put kvm\n"
			   "k ffffffffc0001000 10 t bad%0aname e%1bvil\n"
			   "i abcd /bin/x\n"
			   "s 1100 20 _ZN3foo3barEi\n"
			   "s 1000 100 main\n"
			   "s 1200 0 tail\n"
			   "a 1 100 5000 0 2000000000 old\n"
			   "a 2 200 5000 3000000000 0 new\n"
			   "a 3 201 7000 3500000000 0 child\n"
			   "a 4 100 9000 4000000000 0 again\n"
			   "f 3 2\n"
			   "m 1 400000 401000 1000 0 abcd /bin/x\n"
			   "m 2 400000 401000 1000 3000000000 abcd /bin/x\n"
			   "m 2 700000 701000 0 3200000000 - /lib/first.so\n"
			   "m 2 700000 701000 0 3600000000 - /lib/second.so\n"
			   "m 2 900000 901000 0 3000000000 - //anon\n"
			   "j 2 900100 20 Interpreter%20loop\n"
			   "end 26\n";

#define SECOND 1000000000ULL
#define NAMES "test_symbol.maps"

static struct vp_names *load(void)
{
	struct vp_names *names;

	temporary_file(NAMES, text, sizeof(text) - 1);
	expect_no_error(vp_names_load(NAMES, NULL, &names));
	assert_int_equal(vp_names_maps(names)->warning_count, 0);
	return names;
}

static uint32_t pid_by_root(const struct vp_names *names, uint64_t cr3, uint64_t time)
{
	const char *comm;
	uint32_t pid = 0;

	vp_names_process(names, vp_names_space_by_root(names, cr3, time), &comm, &pid);
	return pid;
}

static void test_roots_are_used_again(void **state)
{
	struct vp_names *names = load();

	assert_int_equal(pid_by_root(names, 0x4000, 1), 100); /* bit 12 is page table isolation's */
	assert_int_equal(pid_by_root(names, 0x5000, 2 * SECOND - 1), 100);
	assert_int_equal(pid_by_root(names, 0x8000000000005fff, 2 * SECOND - 1), 100);
	assert_int_equal(pid_by_root(names, 0x5000, 2 * SECOND + 1000), 100); /* just over */
	assert_int_equal(pid_by_root(names, 0x5000, 3 * SECOND - 1000), 200); /* not quite born */
	assert_int_equal(pid_by_root(names, 0x5000, 3 * SECOND), 200);
	assert_int_equal(pid_by_root(names, 0x5000, UINT64_MAX), 200);
	assert_int_equal(pid_by_root(names, 0x5000, 5 * SECOND / 2), 0);
	assert_int_equal(pid_by_root(names, 0xb000, SECOND), 0);
	assert_int_equal(pid_by_root(names, 0, SECOND), 0);
	assert_int_equal(vp_names_space_by_pid(names, 100, SECOND), 0);
	assert_int_equal(vp_names_space_by_pid(names, 100, 5 * SECOND), 3);
	vp_names_free(names);
}

/* By nothing but an address of its code. */
static void test_space_by_address(void **state)
{
	struct vp_names *names = load();
	const uint32_t none = VP_NAMES_NO_SPACE;

	assert_int_equal(vp_names_space_by_address(names, none, 0x400100, SECOND), 0);
	assert_int_equal(vp_names_space_by_address(names, none, 0x402000, SECOND), none);
	assert_int_equal(vp_names_space_by_address(names, none, 0x400100, 5 * SECOND / 2), none);
	/* The child has its parent's code: which of both it was, only the caller knows. */
	assert_int_equal(vp_names_space_by_address(names, none, 0x400100, 13 * SECOND / 4), 1);
	assert_int_equal(vp_names_space_by_address(names, none, 0x400100, 4 * SECOND), none);
	assert_int_equal(vp_names_space_by_address(names, 1, 0x400100, 4 * SECOND), 1);
	assert_int_equal(vp_names_space_by_address(names, 2, 0x400100, 4 * SECOND), 2);
	assert_int_equal(vp_names_space_by_address(names, 3, 0x400100, 4 * SECOND), none);
	vp_names_free(names);
}

static void test_clock(void **state)
{
	/* The machine's clock is 10 s behind and twice as slow. */
	struct vp_names_clock clock = {.instants = 2,
				       .machine_ns = {0, 5 * SECOND},
				       .host_ns = {10 * SECOND, 20 * SECOND},
				       .error_ns = SECOND / 2};
	struct vp_names *names = load();

	vp_names_set_clock(names, &clock);
	assert_int_equal(pid_by_root(names, 0x5000, 12 * SECOND), 100);
	assert_int_equal(pid_by_root(names, 0x5000, 16 * SECOND), 200);
	assert_int_equal(pid_by_root(names, 0x5000, 14 * SECOND + SECOND / 2), 100);
	assert_int_equal(pid_by_root(names, 0x5000, 1), 100);
	vp_names_free(names);
}

static void expect_name(struct vp_names *names, uint32_t space, uint64_t addr, uint64_t time,
			const char *function, const char *module)
{
	struct vp_name name;

	vp_names_find(names, space, false, addr, time, &name);
	if (function)
		assert_string_equal(name.function, function);
	else
		assert_null(name.function);
	if (module)
		assert_string_equal(name.module, module);
	else
		assert_null(name.module);
}

static void test_functions(void **state)
{
	struct vp_names *names = load();
	struct vp_name name;

	expect_name(names, 0, 0x400000, 0, "main", "/bin/x");
	expect_name(names, 0, 0x400110, 0, "foo::bar", "/bin/x");
	expect_name(names, 0, 0x400120, 0, NULL, "/bin/x");
	expect_name(names, 0, 0x400fff, 0, "tail", "/bin/x");
	expect_name(names, 0, 0x401000, 0, NULL, NULL);
	vp_names_find(names, 0, false, 0x400123, 0, &name);
	assert_int_equal(name.module_offset, 0x1123);
	assert_string_equal(name.comm, "old");
	assert_int_equal(name.pid, 100);
	vp_names_find(names, VP_NAMES_NO_SPACE, false, 0x400123, 0, &name);
	assert_null(name.module);
	assert_int_equal(name.module_offset, 0x400123);
	vp_names_free(names);
}

static void test_mappings_over_time(void **state)
{
	struct vp_names *names = load();
	struct vp_name name;

	vp_names_find(names, 1, false, 0x700000, 3300000000, &name);
	assert_true(name.varies);
	vp_names_find(names, 1, false, 0x400000, 3300000000, &name);
	assert_false(name.varies);
	expect_name(names, 1, 0x700000, 3300000000, NULL, "/lib/first.so");
	expect_name(names, 1, 0x700000, 3700000000, NULL, "/lib/second.so");
	expect_name(names, 1, 0x700000, 3100000000, NULL, "/lib/first.so"); /* nothing better */
	/* The child forked at 3.5 s has what its parent had then. */
	expect_name(names, 2, 0x700000, 3700000000, NULL, "/lib/first.so");
	expect_name(names, 2, 0x400000, 3700000000, "main", "/bin/x");
	expect_name(names, 1, 0x900110, 3700000000, "Interpreter loop", "//anon");
	expect_name(names, 2, 0x900110, 3700000000, "Interpreter loop", "//anon");
	expect_name(names, 1, 0x900120, 3700000000, NULL, "//anon");
	vp_names_free(names);
}

static void test_kernel(void **state)
{
	struct vp_names *names = load();
	struct vp_name name;

	vp_names_find(names, 0, true, 0xffffffff81000120, 0, &name);
	assert_string_equal(name.function, "do_work");
	assert_string_equal(name.module, "[kernel]");
	assert_int_equal(name.module_offset, 0x120);
	assert_int_equal(name.function_offset, 0x20);
	assert_string_equal(name.comm, "old");
	vp_names_find(names, 0, true, 0xffffffff81000200, 0, &name);
	assert_null(name.function);
	vp_names_find(names, VP_NAMES_NO_SPACE, true, 0xffffffffc0000044, 0, &name);
	assert_string_equal(name.function, "vcpu_put");
	assert_string_equal(name.module, "[kvm]");
	assert_int_equal(name.module_offset, 0x44);
	vp_names_find(names, VP_NAMES_NO_SPACE, true, 0xffffffffc0000050, 0, &name);
	assert_null(name.function);
	vp_names_find(names, VP_NAMES_NO_SPACE, true, 0xffffffffc0001000, 0, &name);
	assert_string_equal(name.function, "bad?name");
	assert_string_equal(name.module, "[e?vil]");
	vp_names_find(names, VP_NAMES_NO_SPACE, true, 5, 0, &name);
	assert_null(name.function);
	vp_names_free(names);
}

/* The example in docs/format-maps.md for a guest that does not run Linux. */
static void test_map_by_hand(void **state)
{
	static const char start[] = "    vperf-maps 1\n", end[] = "    end 9\n";
	struct vp_buffer document = {0}, map = {0};
	struct vp_names *names;
	struct vp_name name;

	expect_no_error(vp_file_read(RECIPES "/../docs/format-maps.md", 1 << 20, &document));
	const char *from = strstr(vp_buffer_text(&document), start), *to = strstr(from, end);
	assert_non_null(to);
	while (from <= to) {
		const char *next = strchr(from, '\n') + 1;
		vp_buffer_append(&map, from + 4, (size_t)(next - from) - 4);
		from = next;
	}
	temporary_file(NAMES, map.bytes, map.size);
	expect_no_error(vp_names_load(NAMES, NULL, &names));
	assert_int_equal(vp_names_maps(names)->warning_count, 0);
	assert_true(vp_names_maps(names)->complete);
	uint32_t space = vp_names_space_by_root(names, 0x1aa000, 5);
	vp_names_find(names, space, false, 0x6a1010, 5, &name);
	assert_string_equal(name.comm, "postgres");
	assert_string_equal(name.function, "ExecProcNode");
	vp_names_find(names, space, true, 0xffffffff80f61c50, 5, &name);
	assert_string_equal(name.function, "vm_fault");
	assert_string_equal(name.comm, "postgres");
	vp_names_find(names, space, true, 0xffffffff82a1c010, 5, &name);
	assert_string_equal(name.module, "[zfs]");
	vp_names_free(names);
	vp_buffer_deinit(&document);
	vp_buffer_deinit(&map);
}

/* A second who knows other processes and functions, and who lies about those of the first. */
static const char second_text[] = "vperf-maps 1\n"
				  "k ffffffff81000000 0 T forged_text\n"
				  "k ffffffffd0000000 10 t other_module_function other\n"
				  "i abcd /bin/x\n"
				  "s 1100 20 forged\n"
				  "s 1120 8 between\n"
				  "i - /bin/evil\n"
				  "s 0 1000 evil\n"
				  "a 7 666 5000 0 0 evil\n"
				  "a 8 200 5000 0 0 forged\n"
				  "a 9 300 b000 0 0 unseen\n"
				  "m 8 400000 401000 1000 0 abcd /bin/x\n"
				  "m 8 700000 701000 0 0 - /bin/evil\n"
				  "m 8 a00000 a01000 0 0 - /bin/evil\n"
				  "m 9 400000 401000 1000 0 abcd /bin/x\n"
				  "j 8 900100 20 forged_loop\n"
				  "j 8 900200 20 more_code\n"
				  "m 8 900000 901000 0 0 - //anon\n"
				  "end 18\n";

static struct vp_names *load_both(const char *label, const char *of_second, size_t size)
{
	struct vp_names *names = load(), *second;

	temporary_file(label, of_second, size);
	expect_no_error(vp_names_load(label, NULL, &second));
	vp_names_set_fallback(names, second);
	return names;
}

static void test_second(void **state)
{
	struct vp_names *names =
	    load_both("test_second.maps", second_text, sizeof(second_text) - 1);
	const uint64_t now = 4 * SECOND;
	struct vp_name name;
	uint32_t space = vp_names_space_by_root(names, 0x5000, now);
	uint64_t start, end;

	/* Who it is, and what it runs, is the first one's word where it has one. */
	assert_int_equal(pid_by_root(names, 0x5000, now), 200);
	expect_name(names, space, 0x400100, now, "foo::bar", "/bin/x");
	expect_name(names, space, 0x900100, now, "Interpreter loop", "//anon");
	vp_names_find(names, VP_NAMES_NO_SPACE, true, 0xffffffff81000000, now, &name);
	assert_string_equal(name.function, "startup");
	/* Another file at the same place is a lie of one of them. */
	expect_name(names, space, 0x700010, now, NULL, "/lib/second.so");
	/* What the first has no name for. */
	expect_name(names, space, 0x400122, now, "between", "/bin/x");
	expect_name(names, space, 0x900210, now, "more_code", "//anon");
	expect_name(names, space, 0xa00010, now, "evil", "/bin/evil");
	vp_names_find(names, space, false, 0xa00010, now, &name);
	assert_string_equal(name.comm, "new");
	assert_int_equal(name.pid, 200);
	vp_names_find(names, VP_NAMES_NO_SPACE, true, 0xffffffffd0000004, now, &name);
	assert_string_equal(name.function, "other_module_function");
	/* Whom the first does not know. */
	assert_int_equal(pid_by_root(names, 0xb000, now), 300);
	assert_true(vp_names_life(names, space, &start, &end));
	space = vp_names_space_by_root(names, 0xb000, now);
	assert_int_equal(space, vp_names_space_by_pid(names, 300, now));
	assert_false(vp_names_life(names, space, &start, &end));
	expect_name(names, space, 0x400100, now, "forged", "/bin/x"); /* its own process */
	expect_name(names, VP_NAMES_NO_SPACE, 0x400100, now, NULL, NULL);
	vp_names_free(names);
}

/* Half an answer adds what there is of it, and takes nothing away. */
static void test_second_is_cut_off(void **state)
{
	for (size_t size = sizeof("vperf-maps 1\n") - 1; size < sizeof(second_text); size += 7) {
		struct vp_names *names = load_both("test_half.maps", second_text, size);
		uint32_t space = vp_names_space_by_root(names, 0x5000, 4 * SECOND);
		expect_name(names, space, 0x400000, 4 * SECOND, "main", "/bin/x");
		expect_name(names, space, 0x400100, 4 * SECOND, "foo::bar", "/bin/x");
		vp_names_free(names);
	}
}

/* By build-id, else by path: a file with another build-id at the same path is another file. An
 * image may be in the text twice, first without symbols. */
static void test_images(void **state)
{
	static const char images[] = "vperf-maps 1\n"
				     "i aa11 /bin/x\n"
				     "s 0 100 of_aa11\n"
				     "i - /bin/y\n"
				     "s 0 100 without_id\n"
				     "i cc33 /bin/z\n"
				     "i cc33 /bin/z\n"
				     "s 0 100 later\n"
				     "i dd44 /bin/w\n"
				     "a 1 100 5000 0 0 p\n"
				     "m 1 1000 2000 0 0 aa11 /bin/x\n"
				     "m 1 3000 4000 0 0 bb22 /bin/x\n"
				     "m 1 5000 6000 0 0 - /bin/x\n"
				     "m 1 7000 8000 0 0 aa11 /bin/moved\n"
				     "m 1 9000 a000 0 0 bb22 /bin/y\n"
				     "m 1 b000 c000 0 0 cc33 /bin/z\n"
				     "m 1 d000 e000 0 0 dd44 /bin/w\n"
				     "m 1 f000 10000 80 0 aa11 /bin/x\n"
				     "end 18\n";
	const struct vp_names_options alone = {.no_files = true};
	struct vp_names *names;
	struct vp_name name;

	temporary_file(NAMES, images, sizeof(images) - 1);
	expect_no_error(vp_names_load(NAMES, &alone, &names));
	assert_int_equal(vp_names_maps(names)->warning_count, 0);
	expect_name(names, 0, 0x1010, 0, "of_aa11", "/bin/x");
	expect_name(names, 0, 0x3010, 0, NULL, "/bin/x");
	expect_name(names, 0, 0x5010, 0, "of_aa11", "/bin/x");
	expect_name(names, 0, 0x7010, 0, "of_aa11", "/bin/moved");
	expect_name(names, 0, 0x9010, 0, "without_id", "/bin/y");
	expect_name(names, 0, 0xb010, 0, "later", "/bin/z");
	expect_name(names, 0, 0xd010, 0, NULL, "/bin/w");
	/* How far an answer is good: to the function's end, or the mapping's. */
	vp_names_find(names, 0, false, 0xf010, 0, &name);
	assert_string_equal(name.function, "of_aa11");
	assert_int_equal(name.function_offset, 0x90);
	assert_int_equal(name.function_size, 0x100);
	assert_int_equal(name.module_offset, 0x90);
	vp_names_free(names);
}

/* A function without a name is known by its extent, unless somebody else has its name. */
static void test_nameless(void **state)
{
	static const char nameless[] = "vperf-maps 1\n"
				       "i aa11 /lib/x.so\n"
				       "s 100 40 -\n"
				       "s 140 20 named\n"
				       "a 1 100 5000 0 0 p\n"
				       "m 1 1000 2000 0 0 aa11 /lib/x.so\n"
				       "end 6\n";
	static const char more[] = "vperf-maps 1\n"
				   "i aa11 /lib/x.so\n"
				   "s 100 20 known\n"
				   "s 120 20 -\n"
				   "s 140 20 -\n"
				   "a 1 100 5000 0 0 p\n"
				   "m 1 1000 2000 0 0 aa11 /lib/x.so\n"
				   "end 7\n";
	const struct vp_names_options alone = {.no_files = true};
	struct vp_names *names, *second;
	struct vp_name name;

	temporary_file(NAMES, nameless, sizeof(nameless) - 1);
	expect_no_error(vp_names_load(NAMES, &alone, &names));
	for (unsigned at = 0x1100; at < 0x1140; at += 0x3f) {
		vp_names_find(names, 0, false, at, 0, &name);
		assert_string_equal(name.function, "x.so:0x100");
		assert_string_equal(name.module, "/lib/x.so");
		assert_true(name.nameless);
		assert_int_equal(name.function_offset, at - 0x1100);
		assert_int_equal(name.function_size, 0x40);
	}
	vp_names_find(names, 0, false, 0x1140, 0, &name);
	assert_string_equal(name.function, "named");
	assert_false(name.nameless);
	assert_int_equal(name.gap_end, 0);
	vp_names_find(names, 0, false, 0x1160, 0, &name);
	assert_null(name.function);
	assert_int_equal(name.gap_end, 0); /* no function comes after */

	temporary_file(NAMES, more, sizeof(more) - 1);
	expect_no_error(vp_names_load(NAMES, &alone, &second));
	vp_names_set_fallback(names, second);
	vp_names_find(names, 0, false, 0x1110, 0, &name);
	assert_string_equal(name.function, "known");
	assert_false(name.nameless);
	vp_names_find(names, 0, false, 0x1130, 0, &name);
	assert_string_equal(name.function, "x.so:0x100");
	vp_names_find(names, 0, false, 0x1150, 0, &name);
	assert_string_equal(name.function, "named");
	vp_names_free(names);
}

/* A file of this machine with the same build-id has names that the map lacks; which one is known.
 * Without files, the answer is the same on every machine. */
static void test_files_of_this_machine(void **state)
{
	static const char map[] = "vperf-maps 1\ni deadbeef /bin/tool\na 1 100 5000 0 0 p\n"
				  "m 1 1000 2000 1000 0 deadbeef /bin/tool\nend 3\n";
	struct vp_names_options options = {.root = "test_symbol.root"};
	vp_names_paths used = {0};
	struct vp_names *names;
	struct elf_builder elf;

	elf_builder_init(&elf);
	elf_builder_symbol(&elf, "of_file", ELF_BUILDER_VADDR, 0x20,
			   ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 1);
	elf_builder_finish(&elf);
	mkdir("test_symbol.root", 0755);
	mkdir("test_symbol.root/bin", 0755);
	temporary_file("test_symbol.root/bin/tool", elf.bytes, sizeof(elf.bytes));
	temporary_file(NAMES, map, sizeof(map) - 1);
	expect_no_error(vp_names_load(NAMES, &options, &names));
	vp_names_files_used(names, &used);
	assert_int_equal(used.count, 0);
	expect_name(names, 0, 0x1008, 0, "of_file", "/bin/tool");
	vp_names_files_used(names, &used);
	assert_int_equal(used.count, 1);
	assert_string_equal(used.at[0], "test_symbol.root/bin/tool");
	/* Those of the second map are used, too. */
	static const char empty[] = "vperf-maps 1\nend 1\n";
	struct vp_names *first;
	temporary_file(NAMES, empty, sizeof(empty) - 1);
	expect_no_error(vp_names_load(NAMES, &options, &first));
	vp_names_set_fallback(first, names);
	used.count = 0;
	vp_names_files_used(first, &used);
	assert_int_equal(used.count, 1);
	vp_names_free(first);
	temporary_file(NAMES, map, sizeof(map) - 1);

	used.count = 0;
	options.map_only = true;
	expect_no_error(vp_names_load(NAMES, &options, &names));
	expect_name(names, 0, 0x1008, 0, NULL, "/bin/tool");
	vp_names_files_used(names, &used);
	assert_int_equal(used.count, 0);
	vp_names_free(names);
	vp_vec_deinit(&used);
}

/* Sizes are known, or go to the next symbol; one may lie within another. */
static void test_sizes(void **state)
{
	static const char sizes[] = "vperf-maps 1\n"
				    "i - /bin/x\n"
				    "s 300 40 third\n"
				    "s 100 0 first\n"
				    "s 200 200 second\n"
				    "s 400 0 last\n"
				    "a 1 100 5000 0 0 p\n"
				    "m 1 1000 1480 0 0 - /bin/x\n"
				    "end 8\n";
	static const struct {
		uint64_t at;
		const char *function;
		uint64_t offset, size;
	} expected[] = {{0xff, NULL, 0, 0},
			{0x100, "first", 0, 0x100},
			{0x1ff, "first", 0xff, 0x100},
			{0x200, "second", 0, 0x100},
			{0x2ff, "second", 0xff, 0x100},
			{0x300, "third", 0, 0x40},
			{0x33f, "third", 0x3f, 0x40},
			{0x340, NULL, 0, 0},
			{0x400, "last", 0, 0},
			{0x47f, "last", 0x7f, 0}};
	struct vp_names *names;
	struct vp_name name;

	temporary_file(NAMES, sizes, sizeof(sizes) - 1);
	expect_no_error(vp_names_load(NAMES, NULL, &names));
	for (size_t i = 0; i < VP_ARRAY_SIZE(expected); i++) {
		vp_names_find(names, 0, false, 0x1000 + expected[i].at, 0, &name);
		if (expected[i].function)
			assert_string_equal(name.function, expected[i].function);
		else
			assert_null(name.function);
		assert_int_equal(name.function_offset, expected[i].offset);
		assert_int_equal(name.function_size, expected[i].size);
	}
	vp_names_free(names);
}

/* Of symbols at one address: global before local before others, few leading underscores before
 * either. What has no size ends at the next symbol of its module, else after 64 KiB. */
static void test_kernel_symbols(void **state)
{
	static const char kernel[] = "vperf-maps 1\n"
				     "k ffffffff81100000 10 T sized\n"
				     "k ffffffff81000000 0 T _text\n"
				     "k ffffffff81000100 0 t local_one\n"
				     "k ffffffff81000100 0 T global_one\n"
				     "k ffffffff81000200 0 T __global\n"
				     "k ffffffff81000200 0 t local\n"
				     "k ffffffff81000300 0 W weak\n"
				     "k ffffffff81000300 0 t local_two\n"
				     "k ffffffff81000400 0 t ___three\n"
				     "k ffffffff81000400 0 T ____four\n"
				     "k ffffffff81000500 0 T _one\n"
				     "k ffffffff81000500 0 T __two\n"
				     "k ffffffff81000600 0 T no_size\n"
				     "k ffffffffc0000000 0 t in_module kvm\n"
				     "k ffffffffc0100000 0 t elsewhere other\n"
				     "end 16\n";
	static const struct {
		uint64_t at;
		const char *function, *module;
		uint64_t size, module_offset;
	} expected[] = {
	    {0xffffffff81000100, "global_one", "[kernel]", 0x100, 0x100},
	    {0xffffffff810001ff, "global_one", "[kernel]", 0x100, 0x1ff},
	    {0xffffffff81000200, "local", "[kernel]", 0x100, 0x200},
	    {0xffffffff81000300, "local_two", "[kernel]", 0x100, 0x300},
	    {0xffffffff81000400, "____four", "[kernel]", 0x100, 0x400},
	    {0xffffffff81000500, "_one", "[kernel]", 0x100, 0x500},
	    {0xffffffff81000600, "no_size", "[kernel]", 0xffa00, 0x600},
	    {0xffffffff810fffff, "no_size", "[kernel]", 0xffa00, 0xfffff},
	    {0xffffffff8110000f, "sized", "[kernel]", 0x10, 0x10000f},
	    {0xffffffff81100010, NULL, "[kernel]", 0, 0x100010},
	    {0xffffffffc000ffff, "in_module", "[kvm]", 0x10000, 0xffff},
	    {0xffffffffc0010000, NULL, "[kernel]", 0, 0xffffffffc0010000 - 0xffffffff81000000},
	    {0xffffffffc0100004, "elsewhere", "[other]", 0x10000, 4},
	    {0xffffffff80ffffff, NULL, "[kernel]", 0, 0xffffffff80ffffff}};
	struct vp_names *names;
	struct vp_name name;

	temporary_file(NAMES, kernel, sizeof(kernel) - 1);
	expect_no_error(vp_names_load(NAMES, NULL, &names));
	for (size_t i = 0; i < VP_ARRAY_SIZE(expected); i++) {
		vp_names_find(names, VP_NAMES_NO_SPACE, true, expected[i].at, 0, &name);
		if (expected[i].function)
			assert_string_equal(name.function, expected[i].function);
		else
			assert_null(name.function);
		assert_string_equal(name.module, expected[i].module);
		assert_int_equal(name.function_size, expected[i].size);
		assert_int_equal(name.module_offset, expected[i].module_offset);
	}
	vp_names_free(names);
}

/* Lives, mappings and generated code, in whatever order the text has them. */
static void test_order(void **state)
{
	static const char lives[] = "vperf-maps 1\n"
				    "a 3 103 5000 3000000000 4000000000 third\n"
				    "a 1 101 5000 1000000000 2000000000 first\n"
				    "a 4 104 4000 0 0 other\n"
				    "a 2 102 5000 2000000000 3000000000 second\n"
				    "m 4 9000 a000 0 0 - /bin/high\n"
				    "m 4 1000 2000 0 0 - /bin/low\n"
				    "m 4 5000 6000 0 0 - /bin/middle\n"
				    "j 4 9300 10 code_c\n"
				    "j 4 9100 10 code_a\n"
				    "j 4 9200 10 code_b\n"
				    "i - /bin/low\n"
				    "s 300 10 low_c\n"
				    "s 100 10 low_a\n"
				    "s 200 10 low_b\n"
				    "end 15\n";
	struct vp_names *names;
	const uint32_t other = 2;

	temporary_file(NAMES, lives, sizeof(lives) - 1);
	expect_no_error(vp_names_load(NAMES, NULL, &names));
	assert_int_equal(pid_by_root(names, 0x5000, 3 * SECOND / 2), 101);
	assert_int_equal(pid_by_root(names, 0x5000, 5 * SECOND / 2), 102);
	assert_int_equal(pid_by_root(names, 0x5000, 7 * SECOND / 2), 103);
	assert_int_equal(pid_by_root(names, 0x4000, 7 * SECOND / 2), 104);
	expect_name(names, other, 0x1100, 0, "low_a", "/bin/low");
	expect_name(names, other, 0x1200, 0, "low_b", "/bin/low");
	expect_name(names, other, 0x1300, 0, "low_c", "/bin/low");
	expect_name(names, other, 0x5000, 0, NULL, "/bin/middle");
	expect_name(names, other, 0x9100, 0, "code_a", "/bin/high");
	expect_name(names, other, 0x9200, 0, "code_b", "/bin/high");
	expect_name(names, other, 0x9300, 0, "code_c", "/bin/high");
	vp_names_free(names);
}

/* The place of generated code is another function's later, also of one that begins elsewhere. */
static void test_generated_code_over_time(void **state)
{
	static const char code[] = "vperf-maps 1\n"
				   "a 1 101 4000 0 0 java\n"
				   "m 1 9000 a000 0 0 - //anon\n"
				   "j 1 9100 100 third 3000000000\n"
				   "j 1 9100 100 first 1000000000\n"
				   "j 1 9180 20 second 2000000000\n"
				   "j 1 9400 10 alone 5000000000\n"
				   "end 7\n";
	struct vp_names *names;

	(void)state;
	temporary_file(NAMES, code, sizeof(code) - 1);
	expect_no_error(vp_names_load(NAMES, NULL, &names));
	expect_name(names, 0, 0x9190, SECOND, "first", "//anon");
	expect_name(names, 0, 0x9190, 2 * SECOND - 1, "first", "//anon");
	expect_name(names, 0, 0x9190, 2 * SECOND, "second", "//anon");
	expect_name(names, 0, 0x9190, 3 * SECOND, "third", "//anon");
	expect_name(names, 0, 0x9190, 9 * SECOND, "third", "//anon");
	/* Before all of them: the one that came first. */
	expect_name(names, 0, 0x9190, 0, "first", "//anon");
	expect_name(names, 0, 0x9401, 0, "alone", "//anon");
	/* Where the other one never was. */
	expect_name(names, 0, 0x91f0, 2 * SECOND, "first", "//anon");
	expect_name(names, 0, 0x91f0, 3 * SECOND, "third", "//anon");
	expect_name(names, 0, 0x9200, 3 * SECOND, NULL, "//anon");
	/* Whoever keeps names asks again at another time. */
	struct vp_name name;
	vp_names_find(names, 0, false, 0x9190, SECOND, &name);
	assert_true(name.varies);
	assert_int_equal(name.function_offset, 0x90);
	vp_names_find(names, 0, false, 0x9401, SECOND, &name);
	assert_false(name.varies);
	vp_names_free(names);
}

/* A line through two instants, or one speed from one on; nothing before the clock's begin. */
static void test_clocks(void **state)
{
	struct vp_names_clock clock = {
	    .instants = 1, .machine_ns = {SECOND}, .host_ns = {10 * SECOND}};
	struct vp_names *names = load();

	vp_names_set_clock(names, &clock);
	assert_int_equal(pid_by_root(names, 0x5000, 10 * SECOND), 100);
	assert_int_equal(pid_by_root(names, 0x5000, 11 * SECOND + 19999999), 100);
	assert_int_equal(pid_by_root(names, 0x5000, 11 * SECOND + 20000000), 0); /* 20 ms late */
	assert_int_equal(pid_by_root(names, 0x5000, 12 * SECOND - 20000001), 0);
	assert_int_equal(pid_by_root(names, 0x5000, 12 * SECOND - 20000000), 200);
	assert_int_equal(pid_by_root(names, 0x5000, 12 * SECOND), 200);
	assert_int_equal(pid_by_root(names, 0x5000, 5), 100); /* before it began */
	vp_names_free(names);
}

static void test_kallsyms(void **state)
{
	static const char system_map[] = "ffffffff81000000 T _text\nffffffff81000010 t work\n"
					 "ffffffffc0000000 t vcpu_run\t[kvm]\nnonsense\n";
	static const char hidden[] = "0000000000000000 T _text\n";
	struct vp_names *names;
	struct vp_name name;

	temporary_file("test_symbol.map", system_map, sizeof(system_map) - 1);
	expect_no_error(vp_names_load_kallsyms("test_symbol.map", &names));
	assert_int_equal(vp_names_maps(names)->warning_count, 1);
	vp_names_find(names, VP_NAMES_NO_SPACE, true, 0xffffffffc0000004, 0, &name);
	assert_string_equal(name.function, "vcpu_run");
	assert_string_equal(name.module, "[kvm]");
	vp_names_find(names, VP_NAMES_NO_SPACE, true, 0xffffffff81000000, 0, &name);
	assert_string_equal(name.function, "_text");
	vp_names_free(names);

	temporary_file("test_symbol.map", hidden, sizeof(hidden) - 1);
	expect_error(vp_names_load_kallsyms("test_symbol.map", &names), "only zero addresses");
	temporary_file("test_symbol.map", "hello\n", 6);
	expect_error(vp_names_load_kallsyms("test_symbol.map", &names), "no line like");
	expect_error(vp_names_load_kallsyms("/nonexistent", &names), "cannot open");
}

static void expect_demangled(const char *symbol, const char *expected)
{
	struct vp_buffer result = {0};

	vp_demangle(symbol, &result);
	assert_string_equal(vp_buffer_text(&result), expected);
	vp_buffer_deinit(&result);
}

static void test_demangle(void **state)
{
	expect_demangled("main", "main");
	expect_demangled("_ZN3foo3barEi", "foo::bar");
	expect_demangled("_ZN3foo3barEi@plt", "foo::bar@plt");
	expect_demangled("_ZN3foo3barEi.cold", "foo::bar");
	expect_demangled("_ZNSt6vectorIiSaIiEE9push_backERKi",
			 "std::vector<int, std::allocator<int> >::push_back");
	expect_demangled("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
			 "core::fmt::Formatter::pad");
	expect_demangled("_RNvC6_123foo3bar", "123foo::bar");
	expect_demangled("_Zjunk", "_Zjunk");
	expect_demangled("", "");
}

/* Each level doubles the name: 2^40 bytes. */
static void test_demangle_is_bounded(void **state)
{
	struct vp_buffer bomb = {0}, result = {0};

	vp_buffer_string(&bomb, "_Z1fI1AIiiE");
	for (int i = 0; i < 40; i++) {
		if (i < 2)
			vp_buffer_printf(&bomb, "1BIS%s_S%s_E", i ? "0" : "", i ? "0" : "");
		else
			vp_buffer_printf(
			    &bomb, "1BIS%c_S%c_E",
			    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(i < 37 ? 2 * i - 1 : 35) % 36],
			    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[(i < 37 ? 2 * i - 1 : 35) % 36]);
	}
	vp_buffer_string(&bomb, "Evv");
	vp_demangle(vp_buffer_text(&bomb), &result);
	assert_true(result.size <= 16 * 1024);
	vp_buffer_deinit(&bomb);
	vp_buffer_deinit(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_roots_are_used_again),
	    cmocka_unit_test(test_space_by_address),
	    cmocka_unit_test(test_clock),
	    cmocka_unit_test(test_functions),
	    cmocka_unit_test(test_mappings_over_time),
	    cmocka_unit_test(test_kernel),
	    cmocka_unit_test(test_map_by_hand),
	    cmocka_unit_test(test_second),
	    cmocka_unit_test(test_second_is_cut_off),
	    cmocka_unit_test(test_images),
	    cmocka_unit_test(test_nameless),
	    cmocka_unit_test(test_files_of_this_machine),
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_kernel_symbols),
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_generated_code_over_time),
	    cmocka_unit_test(test_clocks),
	    cmocka_unit_test(test_kallsyms),
	    cmocka_unit_test(test_demangle),
	    cmocka_unit_test(test_demangle_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
