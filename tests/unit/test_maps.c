/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Map text: what is written is read, and what is malformed is described and skipped. */
#include "unit.h"

#include "maps/maps.h"
#include "maps/writer.h"

static struct vp_maps parse(const char *text)
{
	struct vp_buffer buffer = {0};
	struct vp_maps maps;

	vp_buffer_string(&buffer, text);
	expect_no_error(vp_maps_parse("text", &buffer, &maps));
	return maps;
}

static void check_string(const struct vp_maps *maps, vp_text place, const char *expected)
{
	char *string = vp_maps_string(maps, place);

	assert_string_equal(string, expected);
	free(string);
}

static void write_all(struct vp_maps_writer *writer)
{
	struct vp_build_id id = vp_build_id_of("\xab\xcd\x01", 3);

	vp_maps_writer_init(writer, -1);
	vp_maps_write_machine(writer, true, "g 1");
	vp_maps_write_kernel(writer, "6.1.0-1-amd64", &id);
	vp_maps_write_paging(writer, 5, true);
	vp_maps_write_clock(writer, 1000, UINT64_MAX, 40);
	vp_maps_write_kernel_symbol(writer, 0xffffffff81000000, 0, 'T', "_text", NULL);
	vp_maps_write_kernel_symbol(writer, 0xffffffffc0000000, 16, 't', "run", "kvm");
	vp_maps_write_image(writer, &id, "/bin/a b");
	vp_maps_write_symbol(writer, 0x10, 4, "main");
	vp_maps_write_symbol(writer, 0x20, 0, "100%\n");
	vp_maps_write_space(writer, 7, 70, 0x1000, 5, 9, "");
	vp_maps_write_space(writer, 8, 71, 0, 6, 0, "-");
	vp_maps_write_fork(writer, 8, 7);
	vp_maps_write_mapping(writer, 7, 0x400000, 0x401000, 0x1000, 5, &id, "/bin/a b");
	vp_maps_write_jit(writer, 8, 0x7000, 0x10, "Interpreter main");
	vp_maps_write_jit_from(writer, 8, 0x7010, 0x20, "a b", 1234);
	vp_maps_write_note(writer, "%d lost", 3);
}

static void test_round_trip(void **state)
{
	struct vp_maps_writer writer;
	struct vp_maps maps;

	write_all(&writer);
	assert_int_equal(vp_maps_writer_finish(&writer), 0);
	expect_no_error(vp_maps_parse("text", &writer.buffer, &maps));
	vp_maps_writer_deinit(&writer);

	assert_int_equal(maps.warning_count, 0);
	assert_true(maps.complete && maps.guest && maps.kpti);
	assert_int_equal(maps.levels, 5);
	check_string(&maps, maps.machine, "g 1");
	check_string(&maps, maps.release, "6.1.0-1-amd64");
	assert_int_equal(maps.kernel_build_id.size, 3);
	assert_true(maps.clocks.at[0].tsc == UINT64_MAX);
	assert_int_equal(maps.clocks.at[0].error_ns, 40);
	assert_int_equal(maps.kernel.count, 2);
	assert_int_equal(maps.kernel.at[0].module, 0);
	check_string(&maps, maps.kernel.at[1].module, "kvm");
	assert_int_equal(maps.images.at[0].count, 2);
	check_string(&maps, maps.images.at[0].path, "/bin/a b");
	check_string(&maps, maps.symbols.at[1].name, "100%\n");
	check_string(&maps, maps.spaces.at[0].comm, "");
	check_string(&maps, maps.spaces.at[1].comm, "-");
	assert_int_equal(maps.spaces.at[1].parent, 1);
	assert_int_equal(maps.mappings.at[0].space, 0);
	assert_int_equal(maps.mappings.at[0].pgoff, 0x1000);
	check_string(&maps, maps.jit.at[0].symbol.name, "Interpreter main");
	assert_int_equal(maps.jit.at[0].from_ns, 0);
	check_string(&maps, maps.jit.at[1].symbol.name, "a b");
	assert_int_equal(maps.jit.at[1].symbol.size, 0x20);
	assert_int_equal(maps.jit.at[1].from_ns, 1234);
	check_string(&maps, maps.notes.at[0], "3 lost");
	vp_maps_deinit(&maps);
}

static void test_malformed_lines_are_skipped(void **state)
{
	static const char *const lines[] = {
	    "machine vm x",
	    "kernel 6.1 xyz",
	    "address-bits 7 kpti 0",
	    "address-bits 6 kpti 0",
	    "address-bits 2 kpti 0",
	    "address-bits 4 kpti 2",
	    "address-bits 4 kpt 0",
	    "address-bits 4 kpti 0 0",
	    "clock 1",
	    "clock 99999999999999999999 1",
	    "k 10 0 TT name",
	    "k zz 0 T name",
	    "a 1 2 3 9 5 comm",
	    "a 1 4294967296 3 0 0 comm",
	    "f 1 2",
	    "m 99 1 2 0 0 - /x",
	    "s 1 2 early",
	    "i 0 /odd",
	    "j 5 1 2 x",
	    "j 5 1 2 x 10 10",
	    "n two words",
	    "end 3",
	    "what is this",
	    "",
	};
	struct vp_buffer text = {0};
	struct vp_maps maps;

	vp_buffer_string(&text, "vperf-maps 1\n");
	for (size_t i = 0; i < VP_ARRAY_SIZE(lines); i++)
		vp_buffer_printf(&text, "%s\n", lines[i]);
	vp_buffer_string(&text, "n good\n");
	vp_buffer_printf(&text, "end %zu\n", VP_ARRAY_SIZE(lines) + 2);
	expect_no_error(vp_maps_parse("text", &text, &maps));
	assert_int_equal(maps.warning_count, VP_ARRAY_SIZE(lines));
	assert_string_equal(maps.warnings.at[0], "text:2: expected 'machine guest|host NAME'");
	assert_true(maps.complete);
	assert_int_equal(maps.notes.count, 1);
	assert_int_equal(maps.spaces.count + maps.mappings.count + maps.symbols.count, 0);
	vp_maps_deinit(&maps);
}

/* So many sentences are kept, and all are counted. */
static void test_many_malformed_lines(void **state)
{
	struct vp_buffer text = {0};
	struct vp_maps maps;

	vp_buffer_string(&text, "vperf-maps 1\n");
	for (size_t i = 0; i < 50; i++)
		vp_buffer_string(&text, "what is this\n");
	vp_buffer_string(&text, "end 51\n");
	expect_no_error(vp_maps_parse("text", &text, &maps));
	assert_int_equal(maps.warning_count, 50);
	assert_int_equal(maps.warnings.count, 20);
	assert_true(maps.complete);
	vp_maps_deinit(&maps);
}

static void test_lines_are_not_believed(void **state)
{
	struct vp_maps maps = parse("vperf-maps 1\naddress-bits 4 kpti 0\na 1 10 0 0 0 x\n"
				    "m 1 2000 2000 0 0 - /empty\nm 1 2000 2001 0 0 - /tiny\n"
				    "i ab /one\ns 1 2 of-one\ni 0 /odd\ns 3 4 of-none\nend 9\n");

	assert_int_equal(maps.levels, 4);
	assert_false(maps.kpti);
	assert_int_equal(maps.mappings.count, 1);
	check_string(&maps, maps.mappings.at[0].path, "/tiny");
	assert_int_equal(maps.images.count, 1);
	assert_int_equal(maps.images.at[0].count, 1);
	assert_int_equal(maps.symbols.count, 1);
	assert_int_equal(maps.warning_count, 3);
	vp_maps_deinit(&maps);
}

static void test_cut_off(void **state)
{
	struct vp_maps maps = parse("vperf-maps 1\nmachine guest x\na 1 2 3 0");

	assert_false(maps.complete);
	assert_int_equal(maps.warning_count, 2);
	assert_string_equal(maps.warnings.at[1],
			    "text: truncated at byte 38: no end line, using what comes before");
	check_string(&maps, maps.machine, "x");
	vp_maps_deinit(&maps);
}

static void test_other_files(void **state)
{
	static const char *const texts[] = {"", "hello\n", "vperf-maps\n", "vperf-maps 2\n"};

	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++) {
		struct vp_buffer buffer = {0};
		struct vp_maps maps;
		vp_buffer_string(&buffer, texts[i]);
		expect_error(vp_maps_parse("text", &buffer, &maps), "'text' is");
		vp_maps_deinit(&maps);
	}
}

static void test_ids_are_unique_and_parents_come_first(void **state)
{
	struct vp_maps maps = parse("vperf-maps 1\na 1 10 0 0 0 x\na 1 11 0 0 0 y\na 2 12 0 0 0 z\n"
				    "f 1 2\nf 1 1\nf 2 1\nend 7\n");

	assert_int_equal(maps.spaces.count, 2);
	assert_int_equal(maps.warning_count, 3);
	assert_int_equal(maps.spaces.at[0].parent, 0);
	assert_int_equal(maps.spaces.at[1].parent, 1);
	vp_maps_deinit(&maps);
}

static void test_long_lines(void **state)
{
	struct vp_buffer text = {0};
	struct vp_maps maps;

	vp_buffer_string(&text, "vperf-maps 1\nn ");
	memset(vp_buffer_extend(&text, VP_MAPS_MAX_LINE), 'x', VP_MAPS_MAX_LINE);
	vp_buffer_string(&text, "\nend 2\n");
	expect_no_error(vp_maps_parse("text", &text, &maps));
	assert_int_equal(maps.notes.count, 0);
	assert_int_equal(maps.warning_count, 1);
	vp_maps_deinit(&maps);
}

/* Names that would make a line too long are cut: the line is read. */
static void test_long_names(void **state)
{
	struct vp_maps_writer writer;
	struct vp_maps maps;
	char name[6000];

	memset(name, ' ', sizeof(name)); /* each is three bytes of a line */
	name[sizeof(name) - 1] = 0;
	vp_maps_writer_init(&writer, -1);
	vp_maps_write_machine(&writer, true, "g");
	vp_maps_write_kernel_symbol(&writer, 0x1000, 0, 'T', name, NULL);
	assert_int_equal(vp_maps_writer_finish(&writer), 0);
	expect_no_error(vp_maps_parse("text", &writer.buffer, &maps));
	vp_maps_writer_deinit(&writer);
	assert_int_equal(maps.warning_count, 0);
	assert_int_equal(maps.kernel.count, 1);
	vp_maps_deinit(&maps);
}

static void test_escapes(void **state)
{
	struct vp_buffer text = {0};

	vp_maps_unescape((struct vp_slice){"a%20b%2%zz%", 11}, &text);
	assert_string_equal(vp_buffer_text(&text), "a b%2%zz%");
	vp_buffer_deinit(&text);
}

static void test_build_ids(void **state)
{
	static const char notes[] = "\4\0\0\0\3\0\0\0\1\0\0\0Xen\0abc\0"
				    "\4\0\0\0\2\0\0\0\3\0\0\0GNU\0\x12\x34\0\0";
	struct vp_build_id id;
	struct vp_buffer text = {0};

	assert_true(vp_build_id_in_notes(notes, sizeof(notes) - 1, &id));
	vp_build_id_put(&id, &text);
	assert_string_equal(vp_buffer_text(&text), "1234");
	vp_buffer_deinit(&text);
	for (size_t size = 0; size < 38; size++)
		assert_false(vp_build_id_in_notes(notes, size, &id));
	assert_false(vp_build_id_parse((struct vp_slice){"123", 3}, &id));
	assert_false(vp_build_id_parse((struct vp_slice){"", 0}, &id));
	assert_true(vp_build_id_parse((struct vp_slice){"-", 1}, &id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_round_trip),
	    cmocka_unit_test(test_malformed_lines_are_skipped),
	    cmocka_unit_test(test_many_malformed_lines),
	    cmocka_unit_test(test_lines_are_not_believed),
	    cmocka_unit_test(test_cut_off),
	    cmocka_unit_test(test_other_files),
	    cmocka_unit_test(test_ids_are_unique_and_parents_come_first),
	    cmocka_unit_test(test_long_lines),
	    cmocka_unit_test(test_escapes),
	    cmocka_unit_test(test_build_ids),
	    cmocka_unit_test(test_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
