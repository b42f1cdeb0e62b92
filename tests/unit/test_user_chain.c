/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call chains by unwind tables: of this process itself, at known places and at each instruction of
 * known call trees, against the unwinder of the C compiler's library. And forged tables.
 */
#include "unit.h"

#include "unwind/quick_chain.h"
#include "unwind/user_chain.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unwind.h>

#include "call_trees.h"

enum { MAX_MODULES = 64, MAX_FRAMES = 256, MAX_STACK = 1 << 16 };

struct module {
	struct vp_eh_frame tables;
	uint64_t start, end; /* of its code */
};

static struct module modules[MAX_MODULES];
static size_t n_modules;

/* The tables are in memory: addresses are those of the process. */
static int note_module(struct dl_phdr_info *info, size_t size, void *context)
{
	struct module module = {.tables.is_64_bit = true};
	const ElfW(Phdr) *header = NULL, *around = NULL;

	(void)size, (void)context;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type == PT_GNU_EH_FRAME)
			header = segment;
		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X) {
			module.start = info->dlpi_addr + segment->p_vaddr;
			module.end = module.start + segment->p_memsz;
		}
	}
	for (int i = 0; header && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type == PT_LOAD &&
		    header->p_vaddr - segment->p_vaddr < segment->p_memsz)
			around = segment;
	}
	if (header && around && n_modules < MAX_MODULES) {
		uint64_t at = info->dlpi_addr + header->p_vaddr;
		uint64_t end = info->dlpi_addr + around->p_vaddr + around->p_memsz;
		int32_t distance;
		memcpy(&distance, (const char *)at + 4, sizeof(distance));
		uint64_t frame = at + 4 + (uint64_t)(int64_t)distance;
		module.tables.header =
		    (struct vp_section_bytes){(const void *)at, header->p_memsz, at};
		module.tables.frame =
		    (struct vp_section_bytes){(const void *)frame, end - frame, frame};
		modules[n_modules++] = module;
	}
	return 0;
}

static const struct module *module_of(uint64_t address)
{
	for (size_t i = 0; i < n_modules; i++)
		if (address >= modules[i].start && address < modules[i].end)
			return &modules[i];
	return NULL;
}

/* Generated code without an unwind table and without frame pointers, in a page. It sets RBP to its
 * second argument, has the third and the fourth on its stack, and calls the first. */
enum { GENERATED = 4096 };
typedef void (*generated_function)(void (*call)(void), uint64_t rbp, uint64_t one, uint64_t other);
static generated_function generated __attribute__((used)), generated_big;
enum { BIG_FRAME = 0x4000 };

static bool is_generated_code(uint64_t address)
{
	return generated && address - (uint64_t)(uintptr_t)generated < GENERATED;
}

/* A copy of the stack, as a sample has it; what is beyond is read where it is. */
struct copy {
	uint64_t from, size;
	char bytes[MAX_STACK];
};

__attribute__((no_sanitize("address"))) static void copy_bytes(char *to, uint64_t from,
							       uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		to[i] = ((const volatile char *)from)[i];
}

/* A page of the stack that cannot be read. */
enum { HOLE = 4096 };
static uint64_t hole;

static unsigned reads;

static bool read_copy(void *context, uint64_t address, void *bytes, size_t size)
{
	const struct copy *copy = context;

	if (module_of(address) || is_generated_code(address)) { /* code */
		copy_bytes(bytes, address, size);
		return true;
	}
	reads++;
	if (address - hole < HOLE)
		return false;
	if (address < copy->from || size > copy->size || address - copy->from > copy->size - size)
		return false;
	memcpy(bytes, copy->bytes + (address - copy->from), size);
	return true;
}

static struct vp_quick_rows quick_rows;
static uint32_t quick, not_quick;
enum { VERSION = 7, OTHER_VERSION = VERSION + VP_QUICK_ROWS };

static enum vp_cfi_result find_row(void *context, uint64_t address, struct vp_cfi_row *row,
				   struct vp_slice *expressions)
{
	const struct module *module = module_of(address);
	uint32_t work = 100000;

	(void)context;
	if (!module)
		return VP_CFI_NONE;
	*expressions = (struct vp_slice){module->tables.frame.bytes, module->tables.frame.size};
	enum vp_cfi_result result = vp_cfi_find(&module->tables, address, &work, row);
	if (result == VP_CFI_FOUND)
		vp_quick_rows_put(&quick_rows, VERSION, address, row);
	return result;
}

static bool is_code_here(void *context, uint64_t address)
{
	(void)context;
	return module_of(address) || is_generated_code(address);
}

static bool has_table_here(void *context, uint64_t address)
{
	(void)context;
	return module_of(address);
}

static bool is_same(const struct vp_user_chain *one, const struct vp_user_chain *other)
{
	bool same = one->count == other->count && one->end == other->end &&
		    one->by_table == other->by_table && one->has_link == other->has_link;

	for (uint32_t i = 0; same && i < one->count; i++)
		same = one->ips[i] == other->ips[i] && one->fps[i] == other->fps[i];
	return same;
}

/* The rows that the chain was made of make the same chain, or none. */
static void expect_same_by_rows(const struct vp_user_program *program,
				const struct vp_user_registers *registers,
				const struct vp_user_chain *expected)
{
	struct vp_user_chain found;

	if (vp_quick_chain_make(&quick_rows, VERSION, program, registers, &found)) {
		assert_true(is_same(&found, expected));
		quick++;
	} else {
		not_quick++;
	}
	assert_false(vp_quick_chain_make(&quick_rows, OTHER_VERSION, program, registers, &found));
}

static uint64_t stack_end; /* of the process's own stack */
static uint64_t largest_copy = MAX_STACK;
static struct vp_user_chain with_guess;
static struct vp_user_guess last_guess;
static bool has_guess;

static void chain_from(const ucontext_t *at, struct vp_user_chain *ret)
{
	static const uint8_t order[VP_DWARF_X86_REGISTERS] = {
	    REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
	    REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
	static struct copy copy;
	struct vp_user_registers registers = {.known = (1U << VP_DWARF_X86_REGISTERS) - 1};
	const struct vp_user_arch arch = vp_user_arch_x86();
	const struct vp_user_program program = {.arch = &arch,
						.read = read_copy,
						.find = find_row,
						.is_code = is_code_here,
						.has_table = has_table_here,
						.last = &last_guess,
						.context = &copy};

	for (unsigned i = 0; i < VP_DWARF_X86_REGISTERS; i++)
		registers.value[i] = (uint64_t)at->uc_mcontext.gregs[order[i]];
	copy.from = registers.value[VP_DWARF_RSP] - 128;
	bool own = copy.from < stack_end && stack_end - copy.from < MAX_STACK;
	copy.size = own ? stack_end - copy.from : 8192;
	copy.size = copy.size < largest_copy ? copy.size : largest_copy;
	copy_bytes(copy.bytes, copy.from, copy.size);
	vp_user_chain_make(&program, &registers, ret);
	expect_same_by_rows(&program, &registers, ret);
	reads = 0;
	has_guess =
	    ret->end != VP_CHAIN_WHOLE && vp_user_chain_guess(&program, &registers, &with_guess);
}

/* The truth, by the library that throws C++'s exceptions. */
struct truth {
	uint64_t ips[MAX_FRAMES];
	bool exact[MAX_FRAMES];
	uint32_t count;
};

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *where)
{
	struct truth *truth = where;
	int exact;

	if (truth->count == MAX_FRAMES)
		return _URC_END_OF_STACK;
	truth->ips[truth->count] = (uint64_t)_Unwind_GetIPInfo(context, &exact);
	truth->exact[truth->count++] = exact;
	return _URC_NO_REASON;
}

static struct vp_user_chain chain;
static struct truth truth;

/* Both chains from here: frame 0 is this function. */
__attribute__((noinline)) static void take_both(void)
{
	ucontext_t here;

	truth.count = 0;
	_Unwind_Backtrace(note_frame, &truth);
	getcontext(&here);
	chain_from(&here, &chain);
}

static void expect_same(const struct vp_user_chain *found, const struct truth *expected,
			uint32_t from)
{
	assert_int_equal(found->end, VP_CHAIN_WHOLE);
	/* The library's last one is the outermost function, or 0 behind it. */
	uint32_t count = expected->count - (expected->ips[expected->count - 1] == 0);
	assert_int_equal(found->count, count - from);
	for (uint32_t i = 1; i < found->count; i++)
		assert_int_equal(found->ips[i],
				 expected->ips[from + i] + expected->exact[from + i]);
	assert_int_equal(found->by_table, found->count - 1);
}

/* The frames' functions, by symbol, have these among them, innermost first. */
static void expect_functions(const struct vp_user_chain *found, const uintptr_t *functions,
			     size_t count)
{
	size_t next = 0;

	for (uint32_t i = 1; i < found->count && next < count; i++) {
		struct vp_eh_frame_entry entry;
		const struct module *module = module_of(found->ips[i] - 1);
		assert_non_null(module);
		if (vp_eh_frame_find(&module->tables, found->ips[i] - 1, &entry) &&
		    entry.start == functions[next])
			next++;
	}
	assert_int_equal(next, count);
}

#define EXPECT_FUNCTIONS(...)                                                                      \
	expect_functions(&chain, (const uintptr_t[]){__VA_ARGS__},                                 \
			 sizeof((const uintptr_t[]){__VA_ARGS__}) / sizeof(uintptr_t))

static void test_plain(void **state)
{
	(void)state;
	tree_plain(take_both);
	expect_same(&chain, &truth, 0);
	EXPECT_FUNCTIONS((uintptr_t)tree_level_6, (uintptr_t)tree_level_5, (uintptr_t)tree_level_4,
			 (uintptr_t)tree_level_3, (uintptr_t)tree_level_2, (uintptr_t)tree_level_1,
			 (uintptr_t)tree_plain, (uintptr_t)test_plain);
}

static void test_sorted(void **state)
{
	(void)state;
	tree_sorted(take_both);
	expect_same(&chain, &truth, 0);
	EXPECT_FUNCTIONS((uintptr_t)tree_compare, (uintptr_t)tree_sorted, (uintptr_t)test_sorted);
}

static void test_signal(void **state)
{
	(void)state;
	tree_signal(take_both, false);
	expect_same(&chain, &truth, 0);
	EXPECT_FUNCTIONS((uintptr_t)tree_level_6, (uintptr_t)tree_interrupted,
			 (uintptr_t)tree_signal, (uintptr_t)test_signal);
}

/* The handler's stack is elsewhere; beyond it the copy ends. */
static void test_signal_on_own_stack(void **state)
{
	(void)state;
	tree_signal(take_both, true);
	assert_int_equal(chain.end, VP_CHAIN_UNREADABLE);
	EXPECT_FUNCTIONS((uintptr_t)tree_level_6);
	for (uint32_t i = 1; i < chain.count; i++)
		assert_int_equal(chain.ips[i], truth.ips[i] + truth.exact[i]);
}

static void test_exception(void **state)
{
	(void)state;
	tree_exception(take_both);
	expect_same(&chain, &truth, 0);
	/* Between them is a part of tree_with_cleanup() that is elsewhere. */
	EXPECT_FUNCTIONS((uintptr_t)tree_level_6, (uintptr_t)tree_cleanup,
			 (uintptr_t)tree_exception, (uintptr_t)test_exception);
}

static void test_last_call(void **state)
{
	(void)state;
	tree_without_return(take_both);
	expect_same(&chain, &truth, 0);
	EXPECT_FUNCTIONS((uintptr_t)tree_never_returns, (uintptr_t)tree_ends,
			 (uintptr_t)tree_without_return, (uintptr_t)test_last_call);
}

static void generate(void)
{
	static const char code[] = "\x55"                 /* push %rbp */
				   "\x48\x89\xf5"         /* mov %rsi, %rbp */
				   "\x48\x83\xec\x40"     /* sub $64, %rsp */
				   "\x48\x89\x54\x24\x10" /* mov %rdx, 16(%rsp) */
				   "\x48\x89\x4c\x24\x18" /* mov %rcx, 24(%rsp) */
				   "\xff\xd7"             /* call *%rdi */
				   "\x48\x83\xc4\x40"     /* add $64, %rsp */
				   "\x5d\xc3";            /* pop %rbp; ret */
	/* The same with a larger frame. */
	static const char big[] = "\x55"
				  "\x48\x89\xf5"
				  "\x48\x81\xec\x00\x40\x00\x00" /* sub $BIG_FRAME, %rsp */
				  "\xff\xd7"
				  "\x48\x81\xc4\x00\x40\x00\x00"
				  "\x5d\xc3";
	char *at =
	    mmap(NULL, GENERATED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	memcpy(at, code, sizeof(code));
	memcpy(at + GENERATED / 2, big, sizeof(big));
	assert_int_equal(mprotect(at, GENERATED, PROT_READ | PROT_EXEC), 0);
	memcpy(&generated, &at, sizeof(at));
	at += GENERATED / 2;
	memcpy(&generated_big, &at, sizeof(at));
}

static struct truth outer_truth;
static uint64_t decoys[2], wrong_rbp;

/* Frame 0 is this function's caller. */
__attribute__((noinline)) static void note_outer(struct truth *to)
{
	to->count = 0;
	_Unwind_Backtrace(note_frame, to);
}

__attribute__((noinline)) static void call_generated(void)
{
	note_outer(&outer_truth);
	generated(take_both, wrong_rbp, decoys[0], decoys[1]);
	__asm__ volatile(""); /* no tail call */
}

__attribute__((noinline)) static void call_generated_twice(void)
{
	generated(call_generated, wrong_rbp, decoys[0], decoys[1]);
	__asm__ volatile("");
}

/* Jumps to the generated code, and to the function that calls that jump. */
void enter_generated(void (*call)(void), uint64_t rbp, uint64_t one, uint64_t other);
void jump_to_caller(void);
void call_enter(void);
__asm__(".pushsection .text\n"
	"enter_generated: .cfi_startproc\n"
	"jmp *generated(%rip)\n"
	".cfi_endproc\n"
	"jump_to_caller: .cfi_startproc\n"
	".byte 0xe9\n"
	".long call_enter - . - 4\n"
	".cfi_endproc\n"
	".popsection");

__attribute__((noinline)) void call_enter(void)
{
	enter_generated(take_both, wrong_rbp, decoys[0], decoys[1]);
	__asm__ volatile("");
}

/* The end of the chain, from `first` on, is the caller's. */
static void expect_outer(uint32_t first, const struct truth *of)
{
	uint32_t count = of->count - (of->ips[of->count - 1] == 0);

	/* Of the truth, frames 0 and 1 are note_outer() and its caller. */
	assert_int_equal(with_guess.count - first, count - 2);
	for (uint32_t i = 0; first + i < with_guess.count; i++)
		assert_int_equal(with_guess.ips[first + i], of->ips[2 + i]);
}

/* Frames from here on: take_both(), the generated code, its caller. */
static void expect_guess(uint32_t at)
{
	assert_true(with_guess.count > at + 2);
	assert_true(is_generated_code(with_guess.ips[at]));
	assert_true(with_guess.ips[at + 1] & VP_CHAIN_GUESSED_IP);
	assert_ptr_equal(module_of(with_guess.ips[at + 1] & ~VP_CHAIN_GUESSED_IP),
			 module_of((uintptr_t)call_generated));
}

/* Generated code without a frame pointer: the first return address from which the chain is whole
 * is the caller. Others on the stack are not: one that is no return address, and one of a function
 * that was not called from there. */
static void test_guess(void **state)
{
	(void)state;
	generate();
	decoys[0] = (uintptr_t)tree_plain;
	take_both();
	decoys[1] = chain.ips[2];
	for (wrong_rbp = 1; wrong_rbp; wrong_rbp = wrong_rbp == 1 ? (uintptr_t)&truth : 0) {
		call_generated();
		assert_int_not_equal(chain.end, VP_CHAIN_WHOLE);
		assert_true(has_guess);
		assert_int_equal(with_guess.end, VP_CHAIN_WHOLE);
		expect_guess(1);
		expect_outer(3, &outer_truth);
	}
	/* The copy ends before the caller. */
	wrong_rbp = 1;
	largest_copy = 256;
	call_generated();
	largest_copy = MAX_STACK;
	assert_false(has_guess);
	/* Nothing to guess. */
	take_both();
	assert_false(has_guess);
}

/* Overwrites what functions that have returned have left on the stack. */
__attribute__((noinline)) static void clear_below(void)
{
	char bytes[2 * BIG_FRAME];

	memset(bytes, 0, sizeof(bytes));
	__asm__ volatile("" : : "r"(bytes) : "memory");
}

__attribute__((noinline)) static void call_with_hole(void)
{
	uint64_t above = (uintptr_t)__builtin_frame_address(0) - BIG_FRAME / 2;

	note_outer(&outer_truth);
	clear_below();
	hole = above & -(uint64_t)HOLE;
	generated_big(take_both, wrong_rbp, decoys[0], decoys[1]);
	__asm__ volatile("");
}

/* The caller is beyond a part of the stack that was never used. */
static void test_guess_beyond_hole(void **state)
{
	(void)state;
	wrong_rbp = 1;
	decoys[0] = decoys[1] = 0;
	last_guess = (struct vp_user_guess){0};
	for (unsigned i = 0; i < 2; i++) {
		call_with_hole();
		hole = 0;
		assert_true(has_guess);
		expect_guess(1);
		expect_outer(3, &outer_truth);
		/* The second time, the stack is not searched. */
		assert_true(i ? reads < BIG_FRAME / 32 : reads > BIG_FRAME / 32);
	}
}

/* Functions between generated code are in the chain. */
static void test_two_guesses(void **state)
{
	struct truth outermost;

	(void)state;
	wrong_rbp = 1;
	decoys[0] = decoys[1] = 0;
	note_outer(&outermost);
	call_generated_twice();
	assert_true(has_guess);
	expect_guess(1);
	expect_guess(3);
	uint32_t count = outermost.count - (outermost.ips[outermost.count - 1] == 0);
	assert_int_equal(with_guess.count, 5 + count - 1);
	for (uint32_t i = 6; i < with_guess.count; i++)
		assert_int_equal(with_guess.ips[i], outermost.ips[i - 4]);
}

/* Code with a table has jumped to generated code, and its caller to the function that called it. */
static void test_guess_by_jumps(void **state)
{
	struct vp_eh_frame_entry entry;

	(void)state;
	wrong_rbp = 1;
	decoys[0] = decoys[1] = 0;
	note_outer(&outer_truth);
	jump_to_caller();
	assert_true(has_guess);
	expect_guess(1);
	uint64_t caller = (with_guess.ips[2] & ~VP_CHAIN_GUESSED_IP) - 1;
	assert_true(vp_eh_frame_find(&module_of(caller)->tables, caller, &entry));
	assert_int_equal(entry.start, (uintptr_t)call_enter);
	/* Frame 3 is this function, frame 1 of the truth. */
	assert_int_equal(with_guess.ips[4], outer_truth.ips[2]);
}

/* Code at 0x1000 up to a return address at 0x1007, PLT entries, and pointers. */
static bool read_code_bytes(void *context, uint64_t address, void *bytes, size_t size)
{
	static const uint64_t pointers[] = {0x4004, 0x5000};
	static const char plt[] = "\xff\x25\xf2\xfe\xff\xff\xf3\x0f\x1e\xfa\xf2\xff\x25\xfb\xff"
				  "\xff\xff";
	const struct {
		uint64_t at;
		const void *bytes;
		size_t size;
	} memory[] = {{0x1000, context, 7}, {0x2000, pointers, 16}, {0x2108, plt, sizeof(plt)}};

	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
		uint64_t at = address - memory[i].at;
		if (at >= memory[i].size || size > memory[i].size - at)
			continue;
		memcpy(bytes, (const char *)memory[i].bytes + at, size);
		return true;
	}
	return false;
}

/* Calls end there, of each form; other instructions do not. */
static void test_call_before(void **state)
{
	static const struct {
		const char *code; /* seven bytes up to the return address */
		enum vp_user_call call;
		uint64_t target;
	} codes[] = {
	    {"\0\0\xe8\1\2\0\0", VP_USER_CALL_TARGET, 0x1208},
	    {"\0\0\xe8\xf0\xff\xff\xff", VP_USER_CALL_TARGET, 0xff7},
	    {"\0\0\xe8\x01\x11\0\0", VP_USER_CALL_TARGET, 0x4004}, /* a PLT entry */
	    {"\0\xff\x15\x01\x10\0\0", VP_USER_CALL_TARGET, 0x5000},
	    {"\0\xff\x15\x01\x90\0\0", VP_USER_CALL_SOMEWHERE, 0}, /* unreadable */
	    {"\0\0\0\0\0\xff\xd0", VP_USER_CALL_SOMEWHERE, 0},
	    {"\0\0\0\0\0\xff\x13", VP_USER_CALL_SOMEWHERE, 0},
	    {"\0\0\0\0\xff\x14\xc7", VP_USER_CALL_SOMEWHERE, 0},
	    {"\0\0\0\0\xff\x53\x08", VP_USER_CALL_SOMEWHERE, 0},
	    {"\0\0\0\xff\x54\x24\x08", VP_USER_CALL_SOMEWHERE, 0},
	    {"\0\xff\x93\1\2\3\4", VP_USER_CALL_SOMEWHERE, 0},
	    {"\xff\x94\x24\1\2\3\4", VP_USER_CALL_SOMEWHERE, 0},
	    {"\xff\x14\xc5\1\2\3\4", VP_USER_CALL_SOMEWHERE, 0},
	    {"\0\0\0\0\0\xff\xe0", VP_USER_CALL_NONE, 0},
	    {"\0\0\0\0\0\xff\x15", VP_USER_CALL_NONE, 0},
	    {"\0\0\0\0\0\xff\x14", VP_USER_CALL_NONE, 0},
	    {"\0\0\0\0\xff\x13\0", VP_USER_CALL_NONE, 0},
	    {"\0\0\xe9\1\2\3\4", VP_USER_CALL_NONE, 0},
	};
	const struct vp_user_arch arch = vp_user_arch_x86();

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		uint64_t target = 0;
		enum vp_user_call call =
		    arch.call_before(read_code_bytes, (void *)codes[i].code, 0x1007, &target);
		if (call != codes[i].call ||
		    (call == VP_USER_CALL_TARGET && target != codes[i].target))
			fail_msg("code %zu: %d, %lx", i, (int)call, (unsigned long)target);
	}
}

static uint32_t steps, whole, wrong, stubs;
static struct vp_user_chain previous;

static bool is_truth(const struct vp_user_chain *found, uint32_t from, uint32_t count)
{
	bool same = found->count == count - from;

	for (uint32_t i = 1; same && i < found->count; i++)
		same = found->ips[i] == truth.ips[from + i] + truth.exact[from + i];
	return same;
}

/* A PLT entry without an unwind table: it was called by the instruction before, or is as it was
 * before. */
static bool is_stub_after_previous(const struct vp_user_chain *found)
{
	uint32_t more = found->count - previous.count;
	uint64_t size = found->ips[1] - previous.ips[0];
	bool same = more == 0 || (more == 1 && (size == 5 || size == 6));

	for (uint32_t i = 1; same && i < previous.count; i++)
		same = found->ips[i + more] == previous.ips[i];
	return same;
}

/* After each instruction. Frame 0 of the truth is this handler, then the signal's frame. */
static void on_step(int number, siginfo_t *info, void *context)
{
	struct vp_user_chain found;
	uint32_t from = 0;

	(void)number, (void)info;
	truth.count = 0;
	_Unwind_Backtrace(note_frame, &truth);
	chain_from(context, &found);
	while (from < truth.count && truth.ips[from] != found.ips[0])
		from++;
	uint32_t count = truth.count - (truth.count && truth.ips[truth.count - 1] == 0);
	bool is_stub = steps && from + 1 == count;
	wrong += is_stub ? !is_stub_after_previous(&found) : !is_truth(&found, from, count);
	whole += found.end == VP_CHAIN_WHOLE;
	stubs += is_stub;
	steps++;
	previous = found;
}

/* The trap flag: bit 8. */
#define STEP_ON() __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "cc", "memory")
#define STEP_OFF() __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "cc", "memory")

static void nothing(void)
{
}

static void test_each_instruction(void **state)
{
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO}, before;

	(void)state;
	steps = whole = wrong = stubs = quick = not_quick = 0;
	assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
	STEP_ON();
	tree_plain(nothing);
	tree_sorted(nothing);
	STEP_OFF();
	assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
	assert_true(steps > 300 && stubs < steps / 10);
	assert_int_equal(wrong, 0);
	assert_int_equal(whole, steps);
	assert_true(quick > 9 * not_quick);
}

/* A row that needs another register than RSP and RBP is not used: this one takes the CFA from R10,
 * as functions with aligned stacks do. */
static void test_quick_register(void **state)
{
	static struct copy empty;
	struct vp_user_registers registers = {.known = (1U << VP_DWARF_X86_REGISTERS) - 1};
	struct vp_cfi_row row = {.cfa = {.kind = VP_CFI_IS, .value = 16},
				 .cfa_register = 10,
				 .return_register = VP_DWARF_RIP,
				 .of[VP_DWARF_RIP] = {.kind = VP_CFI_AT, .value = -8}};
	const struct vp_user_arch arch = vp_user_arch_x86();
	const struct vp_user_program program = {.arch = &arch,
						.read = read_copy,
						.find = find_row,
						.is_code = is_code_here,
						.context = &empty};
	struct vp_user_chain found;

	(void)state;
	registers.value[VP_DWARF_RIP] = 0x1000;
	registers.value[VP_DWARF_RSP] = 0x2000;
	registers.value[10] = 0x2000;
	empty.from = 0x2000;
	empty.size = 64; /* the return address is 0 */
	vp_quick_rows_put(&quick_rows, VERSION, 0x1000, &row);
	assert_false(vp_quick_chain_make(&quick_rows, VERSION, &program, &registers, &found));
	row.cfa_register = VP_DWARF_RSP;
	vp_quick_rows_put(&quick_rows, VERSION, 0x1000, &row);
	assert_true(vp_quick_chain_make(&quick_rows, VERSION, &program, &registers, &found));
	assert_int_equal(found.count, 1);
	assert_int_equal(found.end, VP_CHAIN_WHOLE);
}

/* A table of one function at 0x1000 whose CIE has those instructions, and whose own are `own`. */
struct forged {
	char header[20], frame[600];
	struct vp_eh_frame tables;
};

static void forge(struct forged *forged, const void *own, size_t size)
{
	static const char cie[] = "\x14\0\0\0\0\0\0\0\1zR\0\1\x78\x10\1\x1b\x0c\7\x8\x90\1\0\0";
	const uint32_t at = sizeof(cie) - 1, base = 0x9000;
	uint32_t words[] = {(uint32_t)size + 13, at + 4, 0x1000 - (base + at + 8), 0x100};
	int32_t header[] = {0, 0, 1, 0x1000 - 0x8000, (int32_t)(base + at) - 0x8000};

	memset(forged, 0, sizeof(*forged));
	assert_true(size + at + 24 < sizeof(forged->frame));
	memcpy(forged->frame, cie, at);
	memcpy(forged->frame + at, words, sizeof(words));
	memcpy(forged->frame + at + sizeof(words) + 1, own, size);
	memcpy(header, "\1\x1b\3\x3b", 4);
	memcpy(forged->header, header, sizeof(header));
	forged->tables =
	    (struct vp_eh_frame){.header = {forged->header, sizeof(forged->header), 0x8000},
				 .frame = {forged->frame, sizeof(forged->frame), base},
				 .is_64_bit = true};
}

#define FORGE(forged, own) forge(forged, own, sizeof(own) - 1)

static enum vp_cfi_result find_in(const struct forged *forged, uint64_t address,
				  struct vp_cfi_row *row)
{
	uint32_t work = 1000;

	return vp_cfi_find(&forged->tables, address, &work, row);
}

static void test_rows(void **state)
{
	struct forged forged;
	struct vp_cfi_row row;

	(void)state;
	/* at 1: CFA is RSP + 16, RBP at CFA - 16; at 4: CFA by RBP; at 0x44: as at first, but the
	 * CFA is RSP + 24 and RBX is undefined; at 0x144 nothing any more */
	FORGE(&forged, "\x41\x0a\x0e\x10\x86\2\x43\x0d\6\2\x40\x0b\x0e\x18\7\3\3\0\1\x0e\x30");
	assert_int_equal(find_in(&forged, 0xfff, &row), VP_CFI_NONE);
	assert_int_equal(find_in(&forged, 0x1100, &row), VP_CFI_NONE);
	assert_int_equal(find_in(&forged, 0x1000, &row), VP_CFI_FOUND);
	assert_int_equal(row.cfa.value, 8);
	assert_int_equal(row.of[VP_DWARF_RBP].kind, VP_CFI_SAME);
	assert_int_equal(row.of[VP_DWARF_RIP].kind, VP_CFI_AT);
	assert_int_equal(row.of[VP_DWARF_RIP].value, -8);
	assert_int_equal(find_in(&forged, 0x1003, &row), VP_CFI_FOUND);
	assert_int_equal(row.cfa.value, 16);
	assert_int_equal(row.cfa_register, VP_DWARF_RSP);
	assert_int_equal(row.of[VP_DWARF_RBP].value, -16);
	assert_int_equal(find_in(&forged, 0x1004, &row), VP_CFI_FOUND);
	assert_int_equal(row.cfa.value, 16);
	assert_int_equal(row.cfa_register, VP_DWARF_RBP);
	assert_int_equal(find_in(&forged, 0x1044, &row), VP_CFI_FOUND);
	assert_int_equal(row.cfa.value, 24);
	assert_int_equal(row.cfa_register, VP_DWARF_RSP);
	assert_int_equal(row.of[VP_DWARF_RBP].kind, VP_CFI_SAME);
	assert_int_equal(row.of[VP_DWARF_RBX].kind, VP_CFI_UNDEFINED);
	assert_int_equal(find_in(&forged, 0x10ff, &row), VP_CFI_FOUND);
	assert_int_equal(row.cfa.value, 24);
}

/* What compilers do not write is refused, and the work is bounded. */
static void test_forged_rows(void **state)
{
	char instructions[500];
	struct forged forged;
	struct vp_cfi_row row;
	uint32_t work = 100;

	(void)state;
	FORGE(&forged, "\x0b"); /* nothing was remembered */
	assert_int_equal(find_in(&forged, 0x1000, &row), VP_CFI_BAD);
	FORGE(&forged, "\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a"); /* too much */
	assert_int_equal(find_in(&forged, 0x1000, &row), VP_CFI_BAD);
	FORGE(&forged, "\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a");
	assert_int_equal(find_in(&forged, 0x1000, &row), VP_CFI_FOUND);
	FORGE(&forged, "\x3f"); /* unknown */
	assert_int_equal(find_in(&forged, 0x1000, &row), VP_CFI_BAD);
	FORGE(&forged, "\x0c\x21\x08"); /* the CFA by a register that does not exist */
	assert_int_equal(find_in(&forged, 0x1000, &row), VP_CFI_BAD);
	FORGE(&forged, "\x0e\xff\xff\xff\xff\x0f"); /* 4 GiB of stack */
	assert_int_equal(find_in(&forged, 0x1000, &row), VP_CFI_BAD);
	FORGE(&forged, "\x0f\x7f\x77"); /* an expression that ends after the table */
	assert_int_equal(find_in(&forged, 0x1000, &row), VP_CFI_BAD);
	FORGE(&forged, "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"); /* a number without end */
	assert_int_equal(find_in(&forged, 0x1000, &row), VP_CFI_BAD);
	memset(instructions, 0x0a, sizeof(instructions));
	for (size_t i = 1; i < sizeof(instructions); i += 2)
		instructions[i] = 0x0b;
	forge(&forged, instructions, sizeof(instructions));
	assert_int_equal(find_in(&forged, 0x1000, &row), VP_CFI_FOUND);
	assert_int_equal(vp_cfi_find(&forged.tables, 0x1000, &work, &row), VP_CFI_BAD);
	assert_int_equal(work, 0);
}

static bool read_none(void *context, uint64_t address, void *bytes, size_t size)
{
	(void)context;
	if (address != 0x80 || size != 8)
		return false;
	memcpy(bytes, "\x11\0\0\0\0\0\0\x80", 8);
	return true;
}

static bool compute(const char *bytes, size_t size, const uint64_t *start, uint64_t *ret)
{
	static const uint64_t registers[VP_DWARF_REGISTERS] = {
	    [VP_DWARF_RSP] = 0x78, [VP_DWARF_RIP] = 0x100b};
	const struct vp_cfi_state state = {.registers = registers,
					   .known = 1U << VP_DWARF_RSP | 1U << VP_DWARF_RIP,
					   .read = read_none};

	return vp_cfi_compute((struct vp_slice){bytes, size}, &state, start, ret);
}

static void expect_result(const char *bytes, size_t size, const uint64_t *start, uint64_t expected)
{
	uint64_t value;

	assert_true(compute(bytes, size, start, &value));
	assert_int_equal(value, expected);
}

static void expect_no_result(const char *bytes, size_t size)
{
	uint64_t value;

	assert_false(compute(bytes, size, NULL, &value));
}

#define EXPECT_VALUE(bytes, start, expected)                                                       \
	expect_result(bytes, sizeof(bytes) - 1, start, expected)
#define EXPECT_FAILURE(bytes) expect_no_result(bytes, sizeof(bytes) - 1)

static void test_expressions(void **state)
{
	const uint64_t start = 40;
	char many[100];
	uint64_t value;

	(void)state;
	/* of a PLT: RSP + 8 + ((RIP & 15) >= 11) << 3 */
	EXPECT_VALUE("\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22", NULL, 0x88);
	EXPECT_VALUE("\x77\x08\x80\0\x3f\x1a\x3c\x2a\x33\x24\x22", NULL, 0x80);
	EXPECT_VALUE("\x77\x08\x06", NULL, 0x8000000000000011); /* memory */
	EXPECT_VALUE("\x77\x08\x06\x34\x26", NULL, 0xf800000000000001);
	EXPECT_VALUE("\x77\x08\x06\x34\x25", NULL, 0x0800000000000001);
	EXPECT_VALUE("\x23\x02\x35\x1c", &start, 37);
	EXPECT_VALUE("\x32\x33\x14\x1e\x22", NULL, 8);             /* over, times, plus */
	EXPECT_VALUE("\x32\x33\x16\x1c", NULL, 1);                 /* swap, minus */
	EXPECT_VALUE("\x32\x33\x34\x15\2\x22\x13", NULL, 3);       /* pick, plus, drop */
	EXPECT_VALUE("\x09\xfe\x12\x22\x1f\x20", NULL, ~4ULL);     /* -2 twice, neg, not */
	EXPECT_VALUE("\x0b\xff\xff\x0a\xff\xff\x22", NULL, 65534); /* -1 + 65535 */
	EXPECT_VALUE("\x0d\xff\xff\xff\xff\x0c\1\0\0\0\x2d", NULL, 1);
	EXPECT_VALUE("\x11\x7f\x10\x7f\x2b", NULL, 0);
	EXPECT_FAILURE("");
	EXPECT_FAILURE("\x22");
	EXPECT_FAILURE("\x30\x06");     /* no memory */
	EXPECT_FAILURE("\x73\x08");     /* RBX is not known */
	EXPECT_FAILURE("\x92\x21\0");   /* no register */
	EXPECT_FAILURE("\x30\x15\1");   /* beyond the stack */
	EXPECT_FAILURE("\x2f\xfd\xff"); /* a jump back */
	memset(many, 0x30, 17);         /* too many values, and too many operations */
	assert_true(compute(many, 16, NULL, &value));
	assert_false(compute(many, 17, NULL, &value));
	memset(many, 0x96, sizeof(many));
	many[0] = 0x30;
	assert_true(compute(many, 64, NULL, &value));
	assert_false(compute(many, 65, NULL, &value));
}

/* Operations on -2 and 3, on 3 and -2, and on 3 and 3. */
static void test_operators(void **state)
{
	static const struct {
		unsigned char code;
		uint64_t results[3];
	} operators[] = {
	    {0x1a, {2, 2, 3}},
	    {0x21, {-1ULL, -1ULL, 3}},
	    {0x27, {-3ULL, -3ULL, 0}},
	    {0x22, {1, 1, 6}},
	    {0x1c, {-5ULL, 5, 0}},
	    {0x1e, {-6ULL, -6ULL, 9}},
	    {0x24, {-16ULL, 0, 24}},               /* shl; more than 63: nothing is left */
	    {0x25, {0x1fffffffffffffffULL, 0, 0}}, /* shr */
	    {0x26, {-1ULL, 0, 0}},                 /* shra */
	    {0x29, {0, 0, 1}},                     /* eq */
	    {0x2e, {1, 1, 0}},                     /* ne */
	    {0x2a, {0, 1, 1}},                     /* ge */
	    {0x2b, {0, 1, 0}},                     /* gt */
	    {0x2c, {1, 0, 1}},                     /* le */
	    {0x2d, {1, 0, 0}},                     /* lt */
	};
	char bytes[] = "\x09\xfe\x09\x03?";

	(void)state;
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		for (size_t j = 0; j < 3; j++) {
			bytes[1] = j == 0 ? -2 : 3;
			bytes[3] = j == 1 ? -2 : 3;
			bytes[4] = (char)operators[i].code;
			expect_result(bytes, sizeof(bytes) - 1, NULL, operators[i].results[j]);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_operators),
	    cmocka_unit_test(test_plain),
	    cmocka_unit_test(test_sorted),
	    cmocka_unit_test(test_signal),
	    cmocka_unit_test(test_signal_on_own_stack),
	    cmocka_unit_test(test_exception),
	    cmocka_unit_test(test_last_call),
	    cmocka_unit_test(test_guess),
	    cmocka_unit_test(test_two_guesses),
	    cmocka_unit_test(test_guess_beyond_hole),
	    cmocka_unit_test(test_guess_by_jumps),
	    cmocka_unit_test(test_call_before),
	    cmocka_unit_test(test_each_instruction),
	    cmocka_unit_test(test_quick_register),
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_forged_rows),
	    cmocka_unit_test(test_expressions),
	};

	pthread_attr_t attributes;
	void *stack;
	size_t size;

	dl_iterate_phdr(note_module, NULL);
	if (pthread_getattr_np(pthread_self(), &attributes) ||
	    pthread_attr_getstack(&attributes, &stack, &size))
		return 1;
	stack_end = (uint64_t)stack + size;
	pthread_attr_destroy(&attributes);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
