/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 'vperf guests': its text, also on narrow terminals, its JSON and its CSV. */
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

/* A VM on x86 by its registers, one on 64-bit Arm from a pack, one without Linux. */
static void make_three(vp_guest_answers *answers, struct vp_vm vms[3])
{
	static char banner[] = "Linux version 6.1", problem[] = "no Linux was found";
	static char names[][16] = {"init", "a \"b\", c"};
	const struct vp_guest_current_address cpus[] = {
	    {.vcpu = 1, .cpu = 2, .current_gpa = 0x1234}, {.vcpu = 3, .cpu = 4}};
	struct vp_guest_answer answer = {
	    .vm = &vms[0],
	    .finding = {.text = 0xffffffff9a000000,
			.gpa = 0x3000000,
			.direct_map = 0xffff888000000000,
			.paging = {.levels = 4},
			.build_id = {.size = 4, .bytes = {1, 2, 3, 0xff}},
			.banner = banner}};

	for (uint32_t i = 0; i < VP_ARRAY_SIZE(names); i++) {
		vp_vec_push(&answer.finding.cpus, cpus[i]);
		vp_vec_push(&answer.processes,
			    ((struct vp_guest_process){
				.tgid = i + 1, .comm = names[i], .root = 0x1000 * i}));
	}
	vp_vec_push(answers, answer);
	answer = (struct vp_guest_answer){.vm = &vms[1],
					  .finding = {.text = 0xffff800008000000,
						      .gpa = 0x40200000,
						      .paging = {.levels = 3, .halves = true},
						      .scanned = true,
						      .cached = true,
						      .banner = banner}};
	vp_vec_push(&answer.processes, ((struct vp_guest_process){.tgid = 9, .comm = names[0]}));
	vp_vec_push(&answer.finding.cpus, cpus[0]);
	vp_vec_push(answers, answer);
	answer = (struct vp_guest_answer){.vm = &vms[2], .problem = problem};
	vp_vec_push(answers, answer);
}

static void free_answers(vp_guest_answers *answers)
{
	vp_vec_each (answers, answer) {
		vp_vec_deinit(&answer->processes);
		vp_vec_deinit(&answer->finding.cpus);
	}
	vp_vec_deinit(answers);
}

/* Removes the lines' ends and indents. */
static void unindent(struct vp_buffer *json)
{
	const char *line = vp_buffer_text(json);
	char *to = json->bytes;

	for (; *line; line += *line == '\n') {
		line += strspn(line, " ");
		size_t size = strcspn(line, "\n");
		memmove(to, line, size);
		to += size;
		line += size;
	}
	json->size = (size_t)(to - json->bytes);
}

static void test_formats(void **state)
{
	struct vp_vm vms[] = {
	    {.name = "web", .pid = 11}, {.name = "arm", .pid = 12}, {.name = "dos", .pid = 13}};
	vp_guest_answers answers = {0};
	struct vp_buffer out = {0};

	make_three(&answers, vms);
	vp_render_guests_csv(&answers, &out);
	assert_string_equal(vp_buffer_text(&out), "vm,pid,process\n"
						  "web,1,init\n"
						  "web,2,\"a \"\"b\"\", c\"\n"
						  "arm,9,init\n");
	out.size = 0;
	vp_render_guests_text(&answers, 100, &out);
	assert_string_equal(
	    vp_buffer_text(&out),
	    "VM web (process 11)\n"
	    "  Linux version 6.1\n"
	    "  build-id 010203ff, at 0xffffffff9a000000 (KASLR slide 0x19000000, physical "
	    "0x3000000)"
	    ", 4-level paging\n"
	    "  found from the vCPU registers, symbols and BTF read; 2 CPUs, 2 processes\n"
	    "VM arm (process 12)\n"
	    "  Linux version 6.1\n"
	    "  build-id -, at 0xffff800008000000 (physical 0x40200000), 3-level paging\n"
	    "  found by memory scan, cached kernel pack; 1 CPU, 1 process\n"
	    "VM dos (process 13)\n"
	    "  no Linux was found\n"
	    "VM   PID  Process\n"
	    "web    1  init\n"
	    "web    2  a \"b\", c\n"
	    "arm    9  init\n");
	out.size = 0;
	vp_render_guests_json(&answers, &out);
	unindent(&out);
	assert_string_equal(
	    vp_buffer_text(&out),
	    "{\"version\":1,\"vms\":[{\"vm\":\"web\",\"pid\":11,\"problem\":null,\"kernel\":{\"ban"
	    "ner\":\"Linux version 6.1\",\"build_id\":\"010203ff\",\"text\":\"0xffffffff9a000"
	    "000\",\"kaslr_slide\":\"0x19000000\",\"physical\":\"0x3000000\",\"direct_map\":\"0"
	    "xffff888000000000\",\"paging_levels\":4,\"found_by\":\"registers\",\"pack\":\"re"
	    "ad\",\"derived\":false,\"dropped_pack\":null,\"cpus\":[{\"vcpu\":1,\"cpu\":2,\"cur"
	    "rent_at\":\"0x1234\"},{\"vcpu\":3,\"cpu\":4,\"current_at\":\"0x0\"}]},\"processes\""
	    ":[{\"pid\":1,\"process\":\"init\",\"root\":\"0x0\"},{\"pid\":2,\"process\":\"a "
	    "\\\"b\\\","
	    " c\",\"root\":\"0x1000\"}]},"
	    "{\"vm\":\"arm\",\"pid\":12,\"problem\":null,\"kernel\":{\"banner\":\"Linux version "
	    "6.1\",\"build_id\":\"-\",\"text\":\"0xffff800008000000\",\"kaslr_slide\":\"0x0\",\"p"
	    "hysical\":\"0x40200000\",\"direct_map\":\"0x0\",\"paging_levels\":3,\"found_by\":"
	    "\"scan\",\"pack\":\"cached\",\"derived\":false,\"dropped_pack\":null,\"cpus\":[{\"v"
	    "cpu\":1,\"cpu\":2,\"current_at\":\"0x1234\"}]},\"processes\":[{\"pid\":9,\"process"
	    "\":\"init\",\"root\":\"0x0\"}]},"
	    "{\"vm\":\"dos\",\"pid\":13,\"problem\":\"no Linux was found\",\"kernel\":null,\"pro"
	    "cesses\":[]}]}");
	vp_buffer_deinit(&out);
	free_answers(&answers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_widths),
	    cmocka_unit_test(test_formats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
