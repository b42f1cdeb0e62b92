/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Function extents from unwind tables, whole and damaged. */
#include "unit.h"

#include "maps/eh_frame.h"

enum { FRAME_ADDR = 0x9000, HEADER_ADDR = 0x8000, FRAME_SIZE = 0x100, HEADER_SIZE = 12 + 8 * 3 };

/* Three functions of two CIEs. `entry` is where each FDE is. */
struct built {
	char frame[FRAME_SIZE], header[HEADER_SIZE];
	uint32_t size, entry[3];
};

static const struct vp_code_range functions[] = {{0x1000, 0x40}, {0x1040, 0x20}, {0x1100, 0x8}};

static void put32_at(char *bytes, uint32_t at, uint32_t value)
{
	memcpy(bytes + at, &value, sizeof(value));
}

static uint32_t put_record(struct built *built, const void *body, uint32_t size)
{
	uint32_t at = built->size, padded = (size + 3) & ~3U;

	put32_at(built->frame, at, padded);
	memcpy(built->frame + at + 4, body, size);
	built->size += 4 + padded;
	return at;
}

static void put_fde(struct built *built, unsigned number, uint32_t cie)
{
	uint32_t at = built->size, words[3];

	words[0] = at + 4 - cie;
	words[1] = (uint32_t)(functions[number].start - (FRAME_ADDR + at + 8));
	words[2] = (uint32_t)functions[number].size;
	built->entry[number] = put_record(built, words, sizeof(words));
}

/* `lead` bytes of zero come first: four of them end the walk along the records at once. */
static void build_after(struct built *built, uint32_t lead)
{
	/* id, version, letters, alignments (1, -8), return register, data, encoding(s) */
	static const char plain[] = "\0\0\0\0\1zR\0\1\x78\x10\1\x1b";
	static const char personal[] = "\0\0\0\0\1zPLR\0\1\x78\x10\7\x9b\1\2\3\4\x1b\x1b";

	*built = (struct built){.size = lead};
	uint32_t first = put_record(built, plain, sizeof(plain) - 1);
	put_fde(built, 0, first);
	put_fde(built, 1, first);
	uint32_t second = put_record(built, personal, sizeof(personal) - 1);
	put_fde(built, 2, second);

	memcpy(built->header, "\1\x1b\3\x3b", 4);
	put32_at(built->header, 4, FRAME_ADDR - (HEADER_ADDR + 4));
	put32_at(built->header, 8, 3);
	for (uint32_t i = 0; i < 3; i++) {
		put32_at(built->header, 12 + 8 * i, (uint32_t)(functions[i].start - HEADER_ADDR));
		put32_at(built->header, 16 + 8 * i, FRAME_ADDR + built->entry[i] - HEADER_ADDR);
	}
}

static void build(struct built *built)
{
	build_after(built, 0);
}

static void read_built(const struct built *built, bool frame, bool header, vp_code_ranges *ret)
{
	const struct vp_eh_frame tables = {
	    .frame = {built->frame, frame ? built->size + 4 : 0, FRAME_ADDR},
	    .header = {built->header, header ? HEADER_SIZE : 0, HEADER_ADDR},
	    .is_64_bit = true};

	*ret = (vp_code_ranges){0};
	vp_eh_frame_functions(&tables, ret);
}

/* Each of `sizes` is that of one function; 0: it has no size, 1: it is missing. */
static void check_best(const vp_code_ranges *ranges, const uint64_t sizes[3])
{
	uint64_t best[3] = {1, 1, 1};

	vp_vec_each (ranges, range) {
		unsigned i = 0;
		while (i < 3 && functions[i].start != range->start)
			i++;
		assert_in_range(i, 0, 2);
		if (best[i] <= 1)
			best[i] = range->size;
	}
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(best[i], sizes[i]);
}

static void check_read(const struct built *built, bool frame, bool header, const uint64_t sizes[3])
{
	vp_code_ranges ranges;

	read_built(built, frame, header, &ranges);
	check_best(&ranges, sizes);
	vp_vec_deinit(&ranges);
}

static const uint64_t all[3] = {0x40, 0x20, 0x8};

static void test_both_tables(void **state)
{
	struct built built;

	build(&built);
	check_read(&built, true, true, all);
	check_read(&built, true, false, all);
	check_read(&built, false, true, (const uint64_t[]){0, 0, 0});
	check_read(&built, false, false, (const uint64_t[]){1, 1, 1});
}

/* From the second function on, the records are missing. */
static void test_missing_part(void **state)
{
	struct built built;

	build(&built);
	memset(built.frame + built.entry[1], 0, 16);
	check_read(&built, true, false, (const uint64_t[]){0x40, 1, 1});
	check_read(&built, true, true, (const uint64_t[]){0x40, 0, 0x8});
}

/* The header's word counts for where a function starts; a record that differs has no size. */
static void test_contradiction(void **state)
{
	struct built built;

	build_after(&built, 4);
	check_read(&built, true, false, (const uint64_t[]){1, 1, 1});
	check_read(&built, true, true, all);
	put32_at(built.header, 16, FRAME_ADDR + built.entry[1] - HEADER_ADDR);
	check_read(&built, true, true, (const uint64_t[]){0, 0x20, 0x8});
}

/* No crash and no endless loop, whatever is cut or changed. */
static void test_damage(void **state)
{
	struct built built;
	vp_code_ranges ranges;

	for (uint32_t at = 0; at < FRAME_SIZE; at++)
		for (unsigned value = 0; value < 256; value += 51) {
			build(&built);
			built.frame[at] = (char)value;
			if (at < HEADER_SIZE)
				built.header[at] = (char)value;
			read_built(&built, true, true, &ranges);
			assert_in_range(ranges.count, 0, FRAME_SIZE / 4 + 3);
			vp_vec_deinit(&ranges);
		}
	for (build(&built); built.size; built.size--) {
		read_built(&built, true, true, &ranges);
		vp_vec_deinit(&ranges);
	}
}

/* A table may claim four billion entries. */
static void test_huge_count(void **state)
{
	struct built built;

	build(&built);
	put32_at(built.header, 8, UINT32_MAX);
	check_read(&built, true, true, all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_both_tables),   cmocka_unit_test(test_missing_part),
	    cmocka_unit_test(test_contradiction), cmocka_unit_test(test_damage),
	    cmocka_unit_test(test_huge_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
