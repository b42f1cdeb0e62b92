/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call chains: unwind tables and what is made of them, and the way from records to stacks. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "export/exporters.h"
#include "guest_builder.h"
#include "guestmem/symbols/guest_orc.h"
#include "made_report.h"
#include "render/render_report.h"
#include "render/render_table.h"
#include "symbol/unwind.h"
#include "timeline/chain.h"

#define NAME "test_chains.rec"

/*
 * A kernel of four functions at 0x1000, 0x2000, …: `inner` has one word and its return address on
 * the stack, `outer` goes by RBP; `irq` is on registers, `entry` on those of user space; from
 * 0x5000 on there is nothing.
 */
static const char tables[] = "vperf-orc 1\n"
			     "kernel 6.1 abcd\n"
			     "r sp 16 none 0 call\n"
			     "r bp 16 prev -16 call\n"
			     "r sp 8 none 0 regs\n"
			     "r sp 0 none 0 iret-regs\n"
			     "r none 0 none 0 undefined\n"
			     "r none 0 none 0 outermost\n"
			     "a 1000 0\n"
			     "d 1000 1\n"
			     "d 1000 2\n"
			     "d 1000 3\n"
			     "d 1000 4\n"
			     "a 6000 5\n"
			     "end 14\n";

enum { STACK = 0x10000, WORDS = 16 };

static struct vp_orc parse(void)
{
	struct vp_orc orc;

	expect_no_error(vp_orc_parse("tables", tables, sizeof(tables) - 1, &orc));
	assert_true(orc.whole);
	return orc;
}

static void test_tables(void **state)
{
	struct vp_orc orc = parse();

	assert_int_equal(orc.entries.count, 6);
	assert_null(vp_orc_find(&orc, 0xfff));
	assert_int_equal(vp_orc_find(&orc, 0x1000)->sp_offset, 16);
	assert_int_equal(vp_orc_find(&orc, 0x1fff)->sp_reg, VP_ORC_SP);
	assert_int_equal(vp_orc_find(&orc, 0x2000)->bp_offset, -16);
	assert_int_equal(vp_orc_find(&orc, 0x4001)->kind, VP_ORC_IRET_REGS);
	assert_int_equal(vp_orc_find(&orc, UINT64_MAX)->kind, VP_ORC_OUTERMOST);
	vp_orc_deinit(&orc);
}

static void test_tables_malformed(void **state)
{
	static const struct {
		const char *text, *said;
	} bad[] = {{"", "expected 'vperf-orc 1'"},
		   {"vperf-orc 2\n", "expected 'vperf-orc 1'"},
		   {"vperf-orc 1\nr sp 16 none 0 jump\n", "line 2"},
		   {"vperf-orc 1\nr sp 99999 none 0 call\n", "line 2"},
		   {"vperf-orc 1\na 1000 0\n", "line 2"}, /* a rule that there is not */
		   {"vperf-orc 1\nr sp 8 none 0 call\na x 0\n", "line 3"},
		   {"vperf-orc 1\nwhat\n", "line 2"},
		   {"vperf-orc 1\nend 7\n", "line 2"}};
	struct vp_orc orc;

	for (size_t i = 0; i < VP_ARRAY_SIZE(bad); i++)
		expect_error(vp_orc_parse("it", bad[i].text, strlen(bad[i].text), &orc),
			     bad[i].said);
	/* What is cut off can be used, and is known to be cut off; order is no matter of the text.
	 */
	static const char cut[] = "vperf-orc 1\nr sp 8 none 0 call\na 2000 0\na 1000 0\n";
	expect_no_error(vp_orc_parse("it", cut, sizeof(cut) - 1, &orc));
	assert_false(orc.whole);
	assert_int_equal(orc.entries.at[0].from, 0x1000);
	vp_orc_deinit(&orc);
}

static void test_tables_written(void **state)
{
	const struct vp_orc_rule call = {16, -16, VP_ORC_BP, VP_ORC_PREV_SP, VP_ORC_CALL, 0};
	const struct vp_orc_rule regs = {-8, 0, VP_ORC_SP_INDIRECT, VP_ORC_NONE, VP_ORC_REGS, 0};
	const struct vp_build_id id = vp_build_id_of("\1\2", 2);
	struct vp_orc_writer writer;
	struct vp_orc orc;

	vp_orc_writer_init(&writer, "6.1 x", &id);
	vp_orc_write(&writer, 0xffffffff81000000, &call);
	vp_orc_write(&writer, 0xffffffff81000010, &regs);
	vp_orc_write(&writer, 0xffffffff80000000, &call);
	vp_orc_writer_finish(&writer);
	expect_no_error(vp_orc_parse("it", writer.text.bytes, writer.text.size, &orc));
	assert_true(orc.whole);
	assert_int_equal(orc.rules.count, 2);
	assert_memory_equal(vp_orc_find(&orc, 0xffffffff8100000f), &call, sizeof(call));
	assert_memory_equal(vp_orc_find(&orc, 0xffffffff81000010), &regs, sizeof(regs));
	assert_memory_equal(vp_orc_find(&orc, 0xffffffff80000000), &call, sizeof(call));
	vp_orc_deinit(&orc);
	vp_orc_writer_deinit(&writer);
}

/* inner ← outer ← irq's registers ← inner ← entry's registers of user space. */
static void fill_stack(struct vp_chain_stack *pieces)
{
	const uint64_t words[3 * WORDS] = {
	    /* inner: its word, and back into outer */
	    0, 0x2010,
	    /* outer, by RBP = STACK + 24: the caller's RBP, and back into irq */
	    7, STACK + 0x500, 0x3020,
	    /* a word, and pt_regs: RBP the fifth, IP, CS, flags, SP and SS the last */
	    1, [6 + 4] = STACK + 0x600, [6 + 16] = 0x1008, 0x10, 0, STACK + 8 * 30, 0x18,
	    /* inner once more, at 30: back into entry, whose frame is the processor's */
	    [31] = 0x4000 + 1, [32] = 0x7f0012345678, 0x33, 0, 0x7ffc00000000, 0x2b};

	for (size_t i = 0; i < 3; i++) {
		pieces[i] = (struct vp_chain_stack){.tid = 1001,
						    .address = STACK + i * sizeof(pieces[i].words)};
		memcpy(pieces[i].words, words + i * WORDS, sizeof(pieces[i].words));
	}
}

static const struct vp_unwind_registers at_inner = {0x1004, STACK, STACK + 24};

static void test_unwind(void **state)
{
	static const uint64_t expected[] = {0x1004, 0x200f, 0x301f, 0x1008, 0x4000};
	struct vp_orc orc = parse();
	struct vp_chain_stack pieces[3];
	struct vp_unwind unwind;

	fill_stack(pieces);
	vp_unwind_kernel(&orc, &at_inner, pieces, 3, &unwind);
	assert_int_equal(unwind.end, VP_UNWIND_USER);
	assert_int_equal(unwind.user_ip, 0x7f0012345678);
	assert_int_equal(unwind.count, VP_ARRAY_SIZE(expected));
	assert_memory_equal(unwind.at, expected, sizeof(expected));
	vp_orc_deinit(&orc);
}

static void test_unwind_ends(void **state)
{
	struct vp_orc orc = parse();
	struct vp_chain_stack pieces[3];
	struct vp_unwind unwind;
	struct vp_unwind_registers from = at_inner;

	fill_stack(pieces);
	vp_unwind_kernel(&orc, &at_inner, pieces, 1, &unwind); /* the registers' end is beyond it */
	assert_int_equal(unwind.end, VP_UNWIND_NO_STACK);
	assert_int_equal(unwind.count, 3);
	from.ip = 0x5000;
	vp_unwind_kernel(&orc, &from, pieces, 3, &unwind);
	assert_int_equal(unwind.end, VP_UNWIND_NO_RULE);
	assert_int_equal(unwind.count, 1);
	from.ip = 0x6001;
	vp_unwind_kernel(&orc, &from, pieces, 3, &unwind);
	assert_int_equal(unwind.end, VP_UNWIND_OUTERMOST);
	from = (struct vp_unwind_registers){0x1004, UINT64_MAX - 4, 0};
	vp_unwind_kernel(&orc, &from, pieces, 3, &unwind);
	assert_int_equal(unwind.end, VP_UNWIND_NO_STACK);
	/* A frame that returns to itself, for ever. */
	pieces[0].words[1] = 0x2010;
	pieces[0].words[3] = STACK + 24;
	pieces[0].words[4] = 0x2010;
	vp_unwind_kernel(&orc, &at_inner, pieces, 3, &unwind);
	assert_int_equal(unwind.end, VP_UNWIND_TOO_DEEP);
	assert_int_equal(unwind.count, VP_UNWIND_FRAMES);
	vp_orc_deinit(&orc);
}

/* What a rule needs is known only where registers were saved. */
static void test_unwind_registers(void **state)
{
	static const char text[] = "vperf-orc 1\nr r13 8 none 0 call\nr sp 0 none 0 regs\n"
				   "a 1000 0\na 2000 1\nend 5\n";
	struct vp_unwind_registers from = {0x1000, STACK, 0};
	struct vp_chain_stack pieces[3] = {0};
	struct vp_unwind unwind;
	struct vp_orc orc;

	expect_no_error(vp_orc_parse("it", text, sizeof(text) - 1, &orc));
	for (size_t i = 0; i < 3; i++)
		pieces[i].address = STACK + i * sizeof(pieces[i].words);
	vp_unwind_kernel(&orc, &from, pieces, 3, &unwind);
	assert_int_equal(unwind.end, VP_UNWIND_NO_REGISTER);
	/* Interrupted at 0x1004, with R13 = STACK + 8 * 40, whence the call at 0x1007 is returned
	 * to. */
	pieces[0].words[2] = STACK + 8 * 40;
	pieces[1].words[0] = 0x1004;
	pieces[1].words[1] = 0x10;
	pieces[2].words[40 - 32] = 0x1008;
	from.ip = 0x2000;
	vp_unwind_kernel(&orc, &from, pieces, 3, &unwind);
	assert_int_equal(unwind.count, 3);
	assert_int_equal(unwind.at[1], 0x1004);
	assert_int_equal(unwind.at[2], 0x1007);
	assert_int_equal(unwind.end, VP_UNWIND_NO_REGISTER);
	vp_orc_deinit(&orc);
}

/* RBP of interrupted code is with its other registers: the handler's own is another one. */
static void test_unwind_interrupted(void **state)
{
	static const char text[] = "vperf-orc 1\nr bp 16 none 0 call\nr sp 0 none 0 regs\n"
				   "a 1000 0\na 2000 1\nend 5\n";
	struct vp_unwind_registers from = {0x2000, STACK, STACK + 8};
	struct vp_chain_stack pieces[3] = {0};
	struct vp_unwind unwind;
	struct vp_orc orc;

	expect_no_error(vp_orc_parse("it", text, sizeof(text) - 1, &orc));
	for (size_t i = 0; i < 3; i++)
		pieces[i].address = STACK + i * sizeof(pieces[i].words);
	pieces[0].words[2] = 0x9999; /* where the handler's would lead */
	pieces[0].words[4] = STACK + 8 * 40;
	pieces[1].words[0] = 0x1004;
	pieces[1].words[1] = 0x10;
	pieces[2].words[41 - 32] = 0x3008;
	vp_unwind_kernel(&orc, &from, pieces, 3, &unwind);
	assert_true(unwind.count >= 3);
	assert_int_equal(unwind.at[1], 0x1004);
	assert_int_equal(unwind.at[2], 0x3007);
	vp_orc_deinit(&orc);
}

static struct guest_builder guest;

/* The tables of the guest as it is, read from its memory and parsed again. */
static struct vp_orc orc_of_guest(void)
{
	static const vp_kernel_packs none;
	struct vp_guest_snapshot snapshot;
	struct vp_guest_kernel kernel;
	struct vp_buffer bytes = {0};
	struct vp_orc orc;
	size_t entries;
	char text[4096];

	built_snapshot(&guest, &bytes);
	expect_no_error(vp_guest_snapshot_init(bytes.bytes, bytes.size, &snapshot));
	expect_no_error(vp_guest_kernel_find(&snapshot.memory, snapshot.vcpus.at,
					     snapshot.vcpus.count, &none, 42, &kernel));
	VP_AUTO_CLOSE int fd = memfd_create("orc", MFD_CLOEXEC);
	expect_no_error(vp_guest_orc_write(&kernel, fd, &entries));
	assert_int_equal(entries, BUILT_ORC);
	ssize_t size = pread(fd, text, sizeof(text), 0);
	assert_true(size > 0);
	expect_no_error(vp_orc_parse("it", text, (size_t)size, &orc));
	vp_guest_kernel_deinit(&kernel);
	vp_guest_snapshot_deinit(&snapshot);
	vp_buffer_deinit(&bytes);
	return orc;
}

static void expect_rule(const struct vp_orc *orc, uint32_t at, uint8_t sp_reg, uint8_t bp_reg,
			uint8_t kind)
{
	const struct vp_orc_rule *rule = vp_orc_find(orc, BUILT_TEXT + at);

	assert_non_null(rule);
	assert_int_equal(rule->sp_reg, sp_reg);
	assert_int_equal(rule->bp_reg, bp_reg);
	assert_int_equal(rule->kind, kind);
}

/* The tables that guests have: `end` or not, and the older and the newer numbers of registers. The
 * built guest's BTF has all members, `end` among them. */
static void test_guest_tables(void **state)
{
	built_kernel(&guest, BUILT_OLD);
	built_orc(&guest, 0, 0x100, 8, 0, 0x05, 0);    /* sp + 8, call */
	built_orc(&guest, 1, 0x110, 16, -16, 0x15, 0); /* sp, bp from the frame */
	built_orc(&guest, 2, 0x120, 0, 0, 0x05, 1);    /* registers */
	built_orc(&guest, 3, 0x130, 0, 0, 0x00, 0x8);  /* outermost */
	built_orc(&guest, 4, 0x140, 0, 0, 0x00, 0);    /* nothing */
	struct vp_orc orc = orc_of_guest();
	expect_rule(&orc, 0x108, VP_ORC_SP, VP_ORC_NONE, VP_ORC_CALL);
	expect_rule(&orc, 0x11f, VP_ORC_SP, VP_ORC_PREV_SP, VP_ORC_CALL);
	expect_rule(&orc, 0x120, VP_ORC_SP, VP_ORC_NONE, VP_ORC_REGS);
	expect_rule(&orc, 0x130, VP_ORC_NONE, VP_ORC_NONE, VP_ORC_OUTERMOST);
	expect_rule(&orc, 0x140, VP_ORC_NONE, VP_ORC_NONE, VP_ORC_UNDEFINED);
	vp_orc_deinit(&orc);

	for (unsigned i = 0; i < BUILT_ORC; i++)
		built_orc(&guest, i, 0x100 + 16 * i, 8, 0, i == 1 ? 0x83 : 0x03, 0);
	orc = orc_of_guest();
	expect_rule(&orc, 0x100, VP_ORC_SP, VP_ORC_NONE, VP_ORC_CALL);
	expect_rule(&orc, 0x110, VP_ORC_SP, VP_ORC_PREV_SP, VP_ORC_CALL);
	vp_orc_deinit(&orc);
}

static void test_chain_records(void **state)
{
	struct vp_chain chain = {0};
	struct vp_chain_frames frames = {.id = VP_ID_chain_frames,
					 .tid = 5,
					 .mode = VP_MODE_USER,
					 .count = 8,
					 .end = VP_CHAIN_GOES_ON,
					 .ips = {1, 2, 3, 4, 5, 6, 7, 8}};
	struct vp_chain_stack stack = {.id = VP_ID_chain_stack, .tid = 5};

	vp_chain_take(&chain, (void *)&frames);
	frames.count = 2;
	frames.end = VP_CHAIN_WHOLE;
	vp_chain_take(&chain, (void *)&frames);
	assert_int_equal(chain.host_user.count, 10);
	assert_int_equal(chain.host_user.ips[9], 2);
	assert_int_equal(chain.host_user.end, VP_CHAIN_WHOLE);
	assert_false(vp_chain_use(&chain, 6, false)); /* another thread's */
	vp_chain_take(&chain, (void *)&frames);
	assert_int_equal(chain.host_user.count, 2); /* that sample came between */
	assert_true(vp_chain_use(&chain, 5, true));
	assert_true(vp_chain_use(&chain, 5, false));
	assert_false(vp_chain_use(&chain, 5, false));
	/* No return address: in the copy the table is wrong, in what was read later the stack. */
	for (uint32_t later = 0; later < 2; later++)
		for (uint32_t other = 0; other < 2; other++) {
			chain.used = true;
			frames.end = other ? VP_CHAIN_NO_TABLE : VP_CHAIN_BAD_TABLE;
			frames.flags = VP_CHAIN_BY_TABLES | (later ? VP_CHAIN_READ_LATER : 0);
			vp_chain_take(&chain, (void *)&frames);
			assert_int_equal(chain.host_user.end, other   ? VP_CHAIN_NO_TABLE
							      : later ? VP_CHAIN_CHANGED
								      : VP_CHAIN_BAD_TABLE);
		}
	frames.end = VP_CHAIN_WHOLE;
	frames.flags = 0;
	/* More than there may be, and counts that lie. */
	frames.count = 60000;
	for (unsigned i = 0; i < 100; i++) {
		vp_chain_take(&chain, (void *)&frames);
		vp_chain_take(&chain, (void *)&stack);
	}
	assert_int_equal(chain.host_user.count, VP_CHAIN_LONGEST);
	assert_int_equal(chain.n_stack, VP_CHAIN_STACKS);
}

/* What begins a chain: registers, another thread's record, the first one after a sample. */
static void test_chain_begins(void **state)
{
	struct vp_chain chain = {0};
	struct vp_guest_regs regs = {.id = VP_ID_guest_regs, .tid = 5, .ip = 77};
	struct vp_chain_stack stack = {.id = VP_ID_chain_stack, .tid = 5, .address = 0x100};
	struct vp_chain_frames frames = {.id = VP_ID_chain_frames,
					 .tid = 5,
					 .mode = VP_MODE_KERNEL,
					 .count = 2,
					 .end = VP_CHAIN_WHOLE,
					 .ips = {1, 2}};

	vp_chain_take(&chain, (void *)&stack);
	vp_chain_take(&chain, (void *)&stack);
	vp_chain_take(&chain, (void *)&frames);
	frames.mode = VP_MODE_GUEST_USER;
	vp_chain_take(&chain, (void *)&frames);
	assert_int_equal(chain.n_stack, 2);
	assert_int_equal(chain.host_kernel.count, 2);
	assert_int_equal(chain.guest_user.count, 2);
	assert_false(chain.has_regs);
	vp_chain_take(&chain, (void *)&regs);
	assert_true(chain.has_regs && chain.regs.ip == 77);
	assert_int_equal(chain.n_stack + chain.host_kernel.count + chain.guest_user.count, 0);
	vp_chain_take(&chain, (void *)&stack);
	assert_int_equal(chain.stack[0].address, 0x100);
	frames.tid = 6; /* nobody had the chain of thread 5 */
	frames.mode = VP_MODE_USER;
	vp_chain_take(&chain, (void *)&frames);
	assert_false(chain.has_regs);
	assert_int_equal(chain.n_stack, 0);
	assert_int_equal(chain.tid, 6);
	assert_false(vp_chain_use(&chain, 5, true));
	assert_true(vp_chain_use(&chain, 6, false));
	frames.mode = VP_MODE_KERNEL;
	vp_chain_take(&chain, (void *)&frames); /* of the next sample */
	assert_int_equal(chain.host_user.count, 0);
	assert_int_equal(chain.host_kernel.count, 2);
	frames.mode = VP_MODE_GUEST_KERNEL; /* none of these are walked */
	vp_chain_take(&chain, (void *)&frames);
	assert_int_equal(chain.host_kernel.count + chain.host_user.count + chain.guest_user.count,
			 2);
}

static const char maps[] = "vperf-maps 1\n"
			   "machine guest vm0\n"
			   "k 1000 0 T inner\n"
			   "k 2000 0 T outer\n"
			   "k 3000 0 T irq\n"
			   "k 4000 0 T entry\n"
			   "k 5000 0 T end\n"
			   "a 1 81 1000 0 0 worker\n"
			   "m 1 7f0012340000 7f0012350000 0 0 - /usr/bin/worker\n"
			   "i - /usr/bin/worker\n"
			   "s 5000 1000 compute\n"
			   "s 8000 1000 main\n"
			   "end 12\n";

static const uint64_t user[] = {0x7f0012345678, 0x7f0012348000 + 1};

/* A sample of the guest's user space, one of its kernel, one of KVM at work for that. The kernel
 * was entered from `below`, as far as the walk of the task's user space says. */
static void make_recording_from(uint16_t flags, const uint64_t *below)
{
	static const uint64_t host[] = {0xffffffff81000000, 0xffffffff81000100};
	struct vp_guest_regs regs = {.vm = 1000,
				     .tid = 1001,
				     .mode = VP_MODE_GUEST_USER,
				     .flags = VP_HAS_AS_ROOT | VP_HAS_STACK,
				     .ip = 0x400000,
				     .as_root = 0x1000};
	struct vp_chain_stack pieces[3];
	struct made made;

	made_begin(&made, NAME, 1);
	regs.ip = user[0];
	made_regs(&made, 0, 1, &regs);
	made_frames(&made, 0, 1, 1001, VP_MODE_GUEST_USER, user, 2, VP_CHAIN_NO_FRAME);
	made_guest_at(&made, 0, 1, VP_MODE_GUEST_USER, user[0]);
	fill_stack(pieces);
	regs.mode = VP_MODE_GUEST_KERNEL;
	regs.flags = flags;
	regs.ip = at_inner.ip;
	regs.sp = at_inner.sp;
	regs.bp = at_inner.bp;
	for (uint64_t tick = 2; tick < 4; tick++) {
		made_regs(&made, 0, tick, &regs);
		for (size_t i = 0; i < 3; i++)
			made_stack(&made, 0, tick, &pieces[i]);
		made_frames(&made, 0, tick, 1001, VP_MODE_GUEST_USER, below, 2, VP_CHAIN_NO_FRAME);
		if (tick == 2)
			made_guest_at(&made, 0, tick, VP_MODE_GUEST_KERNEL, at_inner.ip);
	}
	made_frames(&made, 0, 3, 1001, VP_MODE_KERNEL, host, 2, VP_CHAIN_WHOLE);
	made_in_kvm(&made, 0, 3, 0, 0, MADE_NPF);
	made_idle(&made, 0, 4);
	made_end(&made, 5);
	temporary_file(NAME "/guest-vm0.maps", maps, sizeof(maps) - 1);
	temporary_file(NAME "/guest-vm0.orc", tables, sizeof(tables) - 1);
}

static void make_recording_with(uint16_t flags)
{
	make_recording_from(flags, user);
}

static void make_recording(void)
{
	make_recording_with(VP_HAS_AS_ROOT | VP_HAS_STACK);
}

static struct vp_report report_on(bool by_callees)
{
	return made_report(NAME, &(struct vp_profile_options){.view = VP_VIEW_UNIFIED,
							      .chains = true,
							      .by_callees = by_callees});
}

/* Without the kernel's stack pointer (Intel) user space stands behind what was hit in the kernel.
 */
static void test_no_stack_pointer(void **state)
{
	struct vp_buffer out = {0};

	make_recording_with(VP_HAS_AS_ROOT);
	struct vp_report report = report_on(false);
	vp_export_totals(&report, vp_exporter_folded(), &out);
	assert_string_equal(vp_buffer_text(&out),
			    "host;[idle] 1\n"
			    "[vm0];worker;main;compute 1\n"
			    "[vm0];worker;main;compute;inner_[k] 1\n"
			    "[vm0];worker;main;compute;inner_[k];[hypervisor];"
			    "0xffffffff810000ff_[k];0xffffffff81000000_[k] 1\n");
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_USER][VP_WALK_NO_FRAME], 3);
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_KERNEL][VP_WALK_NO_POINTER], 2);
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

static void test_folded(void **state)
{
	make_recording();
	struct vp_report report = report_on(false);
	struct vp_buffer out = {0};

	vp_export_totals(&report, vp_exporter_folded(), &out);
	assert_string_equal(
	    vp_buffer_text(&out),
	    "host;[idle] 1\n"
	    "[vm0];worker;main;compute 1\n"
	    "[vm0];worker;main;compute;entry_[k];inner_[k];irq_[k];outer_[k];inner_[k] 1\n"
	    "[vm0];worker;main;compute;entry_[k];inner_[k];irq_[k];outer_[k];inner_[k];[hypervisor]"
	    ";"
	    "0xffffffff810000ff_[k];0xffffffff81000000_[k] 1\n");
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_USER][VP_WALK_NO_FRAME], 3);
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_KERNEL][VP_WALK_WHOLE], 2);
	assert_int_equal(report.profile.walks[VP_WALK_HOST][VP_WALK_WHOLE], 1);
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

/* A guest sample with the link register's address as the second of its chain. */
static void made_linked(struct made *made, uint64_t tick, uint32_t mode, const uint64_t *ips,
			uint32_t count)
{
	struct vp_guest_regs regs = {.vm = 1000,
				     .tid = 1001,
				     .mode = (uint16_t)mode,
				     .flags = VP_HAS_AS_ROOT | VP_HAS_STACK,
				     .ip = ips[0],
				     .as_root = 0x1000};

	made_regs(made, 0, tick, &regs);
	made_flagged_frames(made, 0, tick, 1001, mode, ips, count, VP_CHAIN_WHOLE, VP_CHAIN_LINK);
	if (mode == VP_MODE_GUEST_KERNEL)
		made_frames(made, 0, tick, 1001, VP_MODE_GUEST_USER, user, 2, VP_CHAIN_WHOLE);
	made_guest_at(made, 0, tick, mode, ips[0]);
}

/* 64-bit Arm: the kernel's chain comes walked, and the link register may have the caller of a
 * function that has no frame, or be from a call that has returned. */
static void test_link_register(void **state)
{
	static const uint64_t returned[] = {0x7f0012345678, 0x7f0012345100, 0x7f0012348001};
	static const uint64_t leaf[] = {0x7f0012345678, 0x7f0012348101, 0x7f0012348001};
	static const uint64_t kernel[] = {0x1004, 0x2011, 0x3021, 0x4001};
	static const uint64_t kernel_returned[] = {0x2010, 0x2005, 0x4001};
	struct vp_buffer out = {0};
	struct made made;

	made_begin(&made, NAME, 1);
	made_linked(&made, 1, VP_MODE_GUEST_USER, returned, 3);
	made_linked(&made, 2, VP_MODE_GUEST_USER, leaf, 3);
	made_linked(&made, 3, VP_MODE_GUEST_KERNEL, kernel, 4);
	made_linked(&made, 4, VP_MODE_GUEST_KERNEL, kernel_returned, 3);
	made_end(&made, 5);
	temporary_file(NAME "/guest-vm0.maps", maps, sizeof(maps) - 1);
	struct vp_report report = report_on(false);
	vp_export_totals(&report, vp_exporter_folded(), &out);
	assert_string_equal(vp_buffer_text(&out),
			    "[vm0];worker;main;compute 1\n"
			    "[vm0];worker;main;compute;entry_[k];outer_[k] 1\n"
			    "[vm0];worker;main;compute;entry_[k];irq_[k];outer_[k];inner_[k] 1\n"
			    "[vm0];worker;main;main;compute 1\n");
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_USER][VP_WALK_WHOLE], 4);
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_KERNEL][VP_WALK_WHOLE], 2);
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

/* A guessed caller is marked in the stack, and the stack is counted apart. Without the flag, the
 * bit is a part of the address. */
static void test_guessed(void **state)
{
	static const uint64_t ips[] = {0x7f0012345678, 0x7f0012348001 | VP_CHAIN_GUESSED_IP};
	struct vp_guest_regs regs = {.vm = 1000,
				     .tid = 1001,
				     .mode = VP_MODE_GUEST_USER,
				     .flags = VP_HAS_AS_ROOT | VP_HAS_STACK,
				     .ip = ips[0],
				     .as_root = 0x1000};
	struct vp_buffer out = {0};
	struct made made;

	made_begin(&made, NAME, 1);
	for (uint64_t tick = 1; tick < 3; tick++) {
		made_regs(&made, 0, tick, &regs);
		made_flagged_frames(&made, 0, tick, 1001, VP_MODE_GUEST_USER, ips, 2,
				    VP_CHAIN_WHOLE, tick == 1 ? VP_CHAIN_GUESSED : 0);
		made_guest_at(&made, 0, tick, VP_MODE_GUEST_USER, ips[0]);
	}
	made_end(&made, 3);
	temporary_file(NAME "/guest-vm0.maps", maps, sizeof(maps) - 1);
	struct vp_report report = report_on(false);
	vp_export_totals(&report, vp_exporter_folded(), &out);
	assert_string_equal(vp_buffer_text(&out), "[vm0];worker;0x80007f0012348000;compute 1\n"
						  "[vm0];worker;main;[guessed];compute 1\n");
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_USER][VP_WALK_GUESSED], 1);
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_USER][VP_WALK_WHOLE], 1);
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

/* In the first instructions of a system call the kernel has no stack: user space is that of the
 * sample, if the recorder knew these instructions. */
static void test_entry(void **state)
{
	struct vp_guest_regs regs = {.vm = 1000,
				     .tid = 1001,
				     .mode = VP_MODE_GUEST_KERNEL,
				     .ip = 0x6001,
				     .sp = 0x7ffc00001000,
				     .as_root = 0x1000};
	struct vp_buffer out = {0};
	struct made made;

	made_begin(&made, NAME, 1);
	for (uint64_t tick = 1; tick < 3; tick++) {
		regs.flags = VP_HAS_AS_ROOT | VP_HAS_STACK | (tick == 1 ? VP_KNOWS_ENTRY : 0);
		made_regs(&made, 0, tick, &regs);
		made_frames(&made, 0, tick, 1001, VP_MODE_GUEST_USER, user, 2, VP_CHAIN_WHOLE);
		made_guest_at(&made, 0, tick, VP_MODE_GUEST_KERNEL, regs.ip);
	}
	made_end(&made, 3);
	temporary_file(NAME "/guest-vm0.maps", maps, sizeof(maps) - 1);
	temporary_file(NAME "/guest-vm0.orc", tables, sizeof(tables) - 1);
	struct vp_report report = report_on(false);
	vp_export_totals(&report, vp_exporter_folded(), &out);
	assert_string_equal(vp_buffer_text(&out), "[vm0];worker;end_[k] 1\n"
						  "[vm0];worker;main;compute;end_[k] 1\n");
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_USER][VP_WALK_WHOLE], 1);
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_KERNEL][VP_WALK_WHOLE], 2);
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

/* What lies at the top of the task's stack is of another time: the kernel's own chain leads
 * elsewhere. */
static void test_other_user_space(void **state)
{
	static const uint64_t elsewhere[] = {0x7f0012345000, 0x7f0012348000 + 1};
	struct vp_buffer out = {0};

	make_recording_from(VP_HAS_AS_ROOT | VP_HAS_STACK, elsewhere);
	struct vp_report report = report_on(false);
	vp_export_totals(&report, vp_exporter_folded(), &out);
	assert_string_equal(
	    vp_buffer_text(&out),
	    "host;[idle] 1\n"
	    "[vm0];worker;entry_[k];inner_[k];irq_[k];outer_[k];inner_[k] 1\n"
	    "[vm0];worker;entry_[k];inner_[k];irq_[k];outer_[k];inner_[k];[hypervisor];"
	    "0xffffffff810000ff_[k];0xffffffff81000000_[k] 1\n"
	    "[vm0];worker;main;compute 1\n");
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_USER][VP_WALK_NO_FRAME], 1);
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_USER][VP_WALK_NOT_WALKED], 2);
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_KERNEL][VP_WALK_WHOLE], 2);
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

/* In the host's view a vCPU's stack is the host's: user space, then the kernel. */
static void test_host_stacks(void **state)
{
	static const uint64_t inside[] = {0x400000}, of_user[] = {0x1000, 0x2001};
	static const uint64_t of_kernel[] = {0xffffffff81000000};
	const struct vp_naming_options naming = {.directory = NAME};
	struct vp_profile_options options = {.view = VP_VIEW_HOST, .chains = true};
	struct vp_guest_regs regs = {.vm = 2000,
				     .tid = 2002,
				     .mode = VP_MODE_GUEST_USER,
				     .flags = VP_HAS_AS_ROOT,
				     .ip = 0x400000};
	struct vp_buffer out = {0};
	struct vp_report report;
	struct made made;

	made_begin(&made, NAME, 2);
	for (uint64_t tick = 1; tick < 3; tick++) {
		made_regs(&made, 0, tick, &regs);
		made_frames(&made, 0, tick, 2002, VP_MODE_GUEST_USER, inside, 1, VP_CHAIN_WHOLE);
		made_frames(&made, 0, tick, 2002, VP_MODE_USER, of_user, 2, VP_CHAIN_WHOLE);
		made_frames(&made, 0, tick, 2002, VP_MODE_KERNEL, of_kernel, 1, VP_CHAIN_TOO_DEEP);
		made_in_kvm(&made, 0, tick, 1, 1, MADE_NPF);
	}
	made_frames(&made, 0, 3, 77, VP_MODE_USER, of_user, 2, VP_CHAIN_UNREADABLE);
	made_host(&made, 0, 3, 77, VP_MODE_USER);
	/* What was hit is counted, whatever the walk was of; other ends of walks. */
	made_frames(&made, 0, 4, 78, VP_MODE_USER, of_user, 1, VP_CHAIN_FAILED);
	made_host(&made, 0, 4, 78, VP_MODE_USER);
	made_frames(&made, 0, 5, 79, VP_MODE_USER, of_user, 0, VP_CHAIN_WHOLE);
	made_host(&made, 0, 5, 79, VP_MODE_USER);
	made_frames(&made, 0, 6, 80, VP_MODE_USER, of_user, 1, VP_CHAIN_EXITED);
	made_host(&made, 0, 6, 80, VP_MODE_USER);
	made_end(&made, 7);
	expect_no_error(vp_report_make(&naming, &options, &report));
	vp_export_totals(&report, vp_exporter_folded(), &out);
	assert_string_equal(vp_buffer_text(&out),
			    "host;[unknown];0xffffffff82000000 1\n"
			    "host;[unknown];0x1000;0xffffffff82000000 2\n"
			    "host;[unknown];0x2000;0x1000;0xffffffff82000000 1\n"
			    "host;[unknown];0x2000;0x1000;0xffffffff81000000_[k] 2\n");
	static const uint64_t ends[VP_WALK_ENDS] = {[VP_WALK_TOO_DEEP] = 2,
						    [VP_WALK_UNREADABLE] = 1,
						    [VP_WALK_EXITED] = 1,
						    [VP_WALK_NOT_WALKED] = 2};
	assert_memory_equal(report.profile.walks[VP_WALK_HOST], ends, sizeof(ends));
	out.size = 0;
	vp_report_deinit(&report);
	/* In the unified view, the guest's are in place of the VMM's. */
	options.view = VP_VIEW_UNIFIED;
	expect_no_error(vp_report_make(&naming, &options, &report));
	vp_export_totals(&report, vp_exporter_folded(), &out);
	assert_non_null(strstr(vp_buffer_text(&out), "\n[vm1];[unknown];0x400000;[hypervisor];"
						     "0xffffffff81000000_[k] 2\n"));
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

static void test_walk_names(void **state)
{
	static const char *const walks[] = {"guest user space", "guest kernels", "the host"};
	static const char *const ends[] = {"whole",
					   "whole with guessed callers",
					   "ended at code without frame pointers",
					   "too deep",
					   "unreadable page",
					   "no unwind table",
					   "invalid unwind table",
					   "stack changed before it was read",
					   "process had exited",
					   "stack copy too short",
					   "unknown register",
					   "unknown stack pointer",
					   "not unwound"};

	for (enum vp_walk walk = 0; walk < VP_WALKS; walk++)
		assert_string_equal(vp_walk_name(walk), walks[walk]);
	for (enum vp_walk_end end = 0; end < VP_WALK_ENDS; end++)
		assert_string_equal(vp_walk_end_name(end), ends[end]);
}

static const struct vp_profile_row *row_of(const struct vp_report *report, const char *function)
{
	const struct vp_profile_row *row = made_report_row(report, function);

	if (!row)
		fail_msg("there is no row of '%s'", function);
	return row;
}

/* A function that is twice in a stack counts once; one that only calls has no samples of its own.
 */
static void test_totals(void **state)
{
	make_recording();
	struct vp_report report = report_on(true);

	assert_int_equal(row_of(&report, "main")->samples, 0);
	assert_int_equal(row_of(&report, "main")->total, 3);
	assert_int_equal(row_of(&report, "inner")->samples, 1);
	assert_int_equal(row_of(&report, "inner")->total, 2);
	assert_int_equal(row_of(&report, "[hypervisor]")->total, 1);
	assert_int_equal(row_of(&report, "[idle]")->total, 1);
	assert_true(row_of(&report, "compute") < row_of(&report, "inner"));
	vp_report_deinit(&report);
}

/* Each column that there may be, with each row's own. */
static void test_report_table(void **state)
{
	const struct vp_naming_options naming = {.directory = NAME};
	struct vp_profile_options options = {.view = VP_VIEW_UNIFIED,
					     .chains = true,
					     .by_callees = true,
					     .per_process = true,
					     .per_vcpu = true};
	struct vp_buffer out = {0};
	struct vp_table table = {0};
	struct vp_report report;

	make_recording();
	expect_no_error(vp_report_make(&naming, &options, &report));
	report.limit = 3;
	vp_report_table(&report, &report.profile.parts.at[0], &table);
	vp_render_table_csv(&table, true, &out);
	assert_string_equal(vp_buffer_text(&out),
			    "children,percent,samples,kind,vm,vcpu,process,pid,module,function\n"
			    "75,25,1,user,vm0,0,worker,81,/usr/bin/worker,compute\n"
			    "75,0,0,user,vm0,0,worker,81,/usr/bin/worker,main\n"
			    "50,0,0,kernel,vm0,0,worker,81,[kernel],entry\n");
	vp_table_deinit(&table);
	vp_report_deinit(&report);
	/* Labels stand in the innermost column there is; where a column is not known, it is empty.
	 */
	static const struct {
		unsigned columns;
		const char *csv;
	} columns[] = {{VP_COLUMN_PROCESS, "percent,samples,kind,process\n"
					   "50,2,,worker\n25,1,kernel,\n25,1,idle,[idle]\n"},
		       {VP_COLUMN_MODULE | VP_COLUMN_PROCESS,
			"percent,samples,kind,process,module\n"
			"25,1,kernel,,\n25,1,idle,,[idle]\n"
			"25,1,user,worker,/usr/bin/worker\n25,1,kernel,worker,[kernel]\n"},
		       {VP_COLUMN_VM | VP_COLUMN_PID, "percent,samples,kind,vm,pid\n"
						      "50,2,,vm0,81\n25,1,kernel,host,1000\n"
						      "25,1,idle,host,\n"}};
	options = (struct vp_profile_options){.view = VP_VIEW_UNIFIED};
	for (size_t i = 0; i < VP_ARRAY_SIZE(columns); i++) {
		options.columns = columns[i].columns;
		expect_no_error(vp_report_make(&naming, &options, &report));
		table = (struct vp_table){0};
		out.size = 0;
		vp_report_table(&report, &report.profile.parts.at[0], &table);
		vp_render_table_csv(&table, true, &out);
		assert_string_equal(vp_buffer_text(&out), columns[i].csv);
		vp_table_deinit(&table);
		vp_report_deinit(&report);
	}
	vp_buffer_deinit(&out);
}

static void test_graph(void **state)
{
	make_recording();
	struct vp_report report = report_on(false);
	struct vp_buffer out = {0};

	report.graph.shown = true;
	vp_render_report_text(&report, false, &out);
	assert_non_null(strstr(vp_buffer_text(&out), "  inner\n"
						     "            |\n"
						     "            ---inner\n"
						     "               outer\n"
						     "               irq\n"
						     "               inner\n"
						     "               entry\n"
						     "               compute\n"
						     "               main\n"
						     "\n"));
	/* Rows that only called others are not listed by samples of their own. */
	assert_null(strstr(vp_buffer_text(&out), "  irq\n            |"));
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

/* Without tables, the kernel's part is the function that was hit. */
static void test_no_tables(void **state)
{
	struct vp_naming_options naming = {.directory = NAME};
	struct vp_profile_options options = {.view = VP_VIEW_UNIFIED, .chains = true};
	struct vp_buffer out = {0};
	struct vp_report report;

	make_recording();
	assert_int_equal(unlink(NAME "/guest-vm0.orc"), 0);
	expect_no_error(vp_report_make(&naming, &options, &report));
	vp_export_totals(&report, vp_exporter_folded(), &out);
	assert_non_null(strstr(vp_buffer_text(&out), "[vm0];worker;inner_[k] 1\n"));
	assert_int_equal(report.profile.walks[VP_WALK_GUEST_KERNEL][VP_WALK_NOT_WALKED], 2);
	vp_buffer_deinit(&out);
	vp_report_deinit(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tables),
	    cmocka_unit_test(test_tables_malformed),
	    cmocka_unit_test(test_tables_written),
	    cmocka_unit_test(test_unwind),
	    cmocka_unit_test(test_unwind_ends),
	    cmocka_unit_test(test_unwind_registers),
	    cmocka_unit_test(test_unwind_interrupted),
	    cmocka_unit_test(test_guest_tables),
	    cmocka_unit_test(test_chain_records),
	    cmocka_unit_test(test_no_stack_pointer),
	    cmocka_unit_test(test_folded),
	    cmocka_unit_test(test_totals),
	    cmocka_unit_test(test_graph),
	    cmocka_unit_test(test_report_table),
	    cmocka_unit_test(test_chain_begins),
	    cmocka_unit_test(test_no_tables),
	    cmocka_unit_test(test_other_user_space),
	    cmocka_unit_test(test_entry),
	    cmocka_unit_test(test_host_stacks),
	    cmocka_unit_test(test_link_register),
	    cmocka_unit_test(test_guessed),
	    cmocka_unit_test(test_walk_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
