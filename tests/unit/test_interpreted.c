/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames of Python code in call chains: each C frame of the interpreter's loop has a group of them.
 */
#include "unit.h"

#include <stdbool.h>
#include <string.h>

#include "guestreader/interpreted.h"

enum { LOW = 0x1000, HIGH = 0x2000, LOOP = 0x1800, OTHER = 0x5000, CODE = 0x9000 };

static struct vp_stack_job job;

/* A chain of addresses: 'L' in the loop, others elsewhere; frames of Python, where an upper case
 * letter is an entry. */
static void make(const char *chain, const char *frames, enum vp_chain_end end)
{
	job = (struct vp_stack_job){.count = (uint32_t)strlen(chain), .end = (uint16_t)end};
	for (uint32_t i = 0; i < job.count; i++)
		job.ips[i] = chain[i] == 'L' ? LOOP : OTHER + (uint64_t)chain[i];
	job.interpreted.count = (uint32_t)strlen(frames);
	for (uint32_t i = 0; i < job.interpreted.count; i++) {
		bool entry = frames[i] < 'a';
		job.interpreted.frames[i] = (CODE + ((uint64_t)(frames[i] | 0x20) << 4)) |
					    (entry ? VP_INTERPRETED_ENTRY : 0);
	}
	vp_interpreted_merge(&job, LOW, HIGH);
}

/* The chain as letters: 'a' and so on are Python code, all others as above. */
static void expect(const char *expected)
{
	char chain[VP_CHAIN_LONGEST + 1] = "";

	assert_true(job.count <= VP_CHAIN_LONGEST);
	for (uint32_t i = 0; i < job.count; i++) {
		uint64_t ip = job.ips[i];
		if (ip >= CODE)
			assert_int_equal(ip & 15, i != 0);
		chain[i] = (char)(ip >= CODE ? (ip - CODE) >> 4 : ip == LOOP ? 'L' : ip - OTHER);
	}
	assert_string_equal(chain, expected);
}

static void test_merged(void **state)
{
	(void)state;
	make("LM", "aB", VP_CHAIN_WHOLE);
	expect("abM");
	make("XLYLM", "abCdE", VP_CHAIN_WHOLE);
	expect("XabcYdeM");
	make("XYM", "", VP_CHAIN_WHOLE);
	expect("XYM");
	make("XLM", "", VP_CHAIN_WHOLE);
	expect("XLM");
	/* The last group need not end with an entry. */
	make("LYLM", "aBc", VP_CHAIN_WHOLE);
	expect("abYcM");
}

static void test_numbers_differ(void **state)
{
	(void)state;
	/* The innermost call has no frame yet. */
	make("LYLM", "aB", VP_CHAIN_WHOLE);
	expect("LYabM");
	/* It has left its C frame. */
	make("XLM", "abCdE", VP_CHAIN_WHOLE);
	expect("XdeM");
	/* The chain was cut: the innermost ones are known. */
	make("XLY", "abCdE", VP_CHAIN_NO_FRAME);
	expect("XabcY");
	make("LYL", "aB", VP_CHAIN_NO_TABLE);
	expect("abYL");
}

/* The first address is an instruction's, the others are return addresses. */
static void test_bounds(void **state)
{
	(void)state;
	for (uint32_t first = 0; first < 2; first++) {
		job = (struct vp_stack_job){.count = first + 1, .interpreted = {.count = 1}};
		job.interpreted.frames[0] = CODE;
		job.ips[first] = LOW + first;
		vp_interpreted_merge(&job, LOW, HIGH);
		assert_int_equal(job.ips[first], CODE + first);
		job.ips[first] = HIGH + first;
		vp_interpreted_merge(&job, LOW, HIGH);
		assert_int_equal(job.ips[first], HIGH + first);
	}
}

/* A loop whose frame was guessed is a loop; the mark is at the innermost function in its place. */
static void test_guessed(void **state)
{
	(void)state;
	job = (struct vp_stack_job){.count = 2, .interpreted = {.count = 2}};
	job.ips[0] = OTHER;
	job.ips[1] = LOOP | VP_CHAIN_GUESSED_IP;
	job.interpreted.frames[0] = CODE;
	job.interpreted.frames[1] = (CODE + 16) | VP_INTERPRETED_ENTRY;
	vp_interpreted_merge(&job, LOW, HIGH);
	assert_int_equal(job.count, 3);
	assert_int_equal(job.ips[1], (CODE + 1) | VP_CHAIN_GUESSED_IP);
	assert_int_equal(job.ips[2], CODE + 16 + 1);
}

static void test_too_deep(void **state)
{
	enum { OTHERS = VP_CHAIN_LONGEST - VP_INTERPRETED_FRAMES };
	char frames[VP_INTERPRETED_FRAMES + 1] = "", chain[OTHERS + 3] = "L";

	(void)state;
	memset(frames, 'a', VP_INTERPRETED_FRAMES);
	memset(chain + 1, 'X', OTHERS);
	make(chain, frames, VP_CHAIN_WHOLE);
	assert_int_equal(job.count, VP_CHAIN_LONGEST);
	assert_int_equal(job.end, VP_CHAIN_WHOLE);
	chain[OTHERS + 1] = 'M';
	make(chain, frames, VP_CHAIN_WHOLE);
	assert_int_equal(job.count, VP_CHAIN_LONGEST);
	assert_int_equal(job.end, VP_CHAIN_TOO_DEEP);
	/* Counts that nobody has bounded. */
	job.count = UINT32_MAX;
	job.interpreted.count = UINT32_MAX;
	vp_interpreted_merge(&job, LOW, HIGH);
	assert_true(job.count <= VP_CHAIN_LONGEST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_merged),   cmocka_unit_test(test_numbers_differ),
	    cmocka_unit_test(test_bounds),   cmocka_unit_test(test_guessed),
	    cmocka_unit_test(test_too_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
