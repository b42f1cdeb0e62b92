/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of 'vperf guests' on narrow terminals. */
#include "unit.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "base/text_wrap.h"
#include "base/vec.h"
#include "cmd/host/guests_table.h"
#include "collect/guests/guest_answer.h"
#include "maps/format.h"
#include "schema/vm.h"

/* Where words end: longer ones, such as a build-id, cannot be wrapped. */
enum { LONGEST_WORD = 40 };

static size_t longest_word(const char *line, size_t size)
{
	size_t word = 0, longest = 0;

	for (size_t i = 0; i < size; i++) {
		word = line[i] == ' ' ? 0 : word + 1;
		longest = word > longest ? word : longest;
	}
	return longest;
}

static void expect_lines_fit(struct vp_buffer *text, size_t width)
{
	for (const char *line = vp_buffer_text(text); *line;) {
		size_t size = strcspn(line, "\n");
		if (size > width && longest_word(line, size) < LONGEST_WORD)
			fail_msg("%zu of %zu columns: '%.*s'", size, width, (int)size, line);
		line += size + (line[size] != 0);
	}
}

static void add_answer(vp_guest_answers *answers, const struct vp_vm *vm)
{
	static char banner[] =
	    "Linux version 6.1.0-56-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian "
	    "12.2.0-14+deb12u1) 12.2.0, GNU ld (GNU Binutils for Debian) 2.40) #1 SMP Debian";
	static char names[][16] = {"systemd", "fifteen letters", "kworker/u128:3+"};
	struct vp_guest_answer answer = {
	    .vm = vm,
	    .finding = {.text = 0xffffffff9a000000,
			.gpa = 0x3fe000000,
			.paging = {.levels = 5},
			.scanned = true,
			.derived = true,
			.build_id = {.size = 20},
			.banner = banner,
			.dropped = "line 100000 has an address that is outside of the kernel"}};

	for (uint32_t i = 0; i < VP_ARRAY_SIZE(names); i++) {
		struct vp_guest_process process = {.tgid = 4000000 + i, .comm = names[i]};
		vp_vec_push(&answer.processes, process);
	}
	vp_vec_push(answers, answer);
}

static void expect_fits(const vp_guest_answers *answers, size_t width)
{
	struct vp_buffer text = {0}, wrapped = {0};

	vp_render_guests_text(answers, width, &text);
	vp_text_wrap(&text, width, true, &wrapped);
	expect_lines_fit(&wrapped, width);
	assert_non_null(strstr(vp_buffer_text(&wrapped), "kworker/u128:3+"));
	assert_non_null(strstr(vp_buffer_text(&wrapped), "5-level paging"));
	vp_buffer_deinit(&text);
	vp_buffer_deinit(&wrapped);
}

static void test_widths(void **state)
{
	struct vp_vm vms[] = {{.name = "web", .pid = 4000000},
			      {.name = "a VM of a longer name", .pid = 4000001}};
	static const size_t widths[] = {60, 80, 100};
	vp_guest_answers answers = {0};

	for (size_t count = 1; count <= VP_ARRAY_SIZE(vms); count++) {
		add_answer(&answers, &vms[count - 1]);
		for (size_t i = 0; i < VP_ARRAY_SIZE(widths); i++)
			expect_fits(&answers, widths[i]);
	}
	vp_vec_each (&answers, answer)
		vp_vec_deinit(&answer->processes);
	vp_vec_deinit(&answers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_widths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
