/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks of a sample. Host: from perf's stack walker in the kernel. Guest user space: a copy of the
 * top of the stack, which is unwound with DWARF tables when the ring is drained, else by frame
 * pointers. Guest kernel, which has no frame pointers: a copy of the stack, unwound later with the
 * kernel's ORC tables. Records are assembled in the pCPU's ring, or, by perf, where it would be,
 * and are submitted at once. */
#ifndef VP_BPF_CHAIN_BPF_H
#define VP_BPF_CHAIN_BPF_H

#include "bpf/guest_pages.bpf.h"
#include "bpf/interpreter.bpf.h"
#include "bpf/kvm_compat.bpf.h"
#include "bpf/sampler_abi.h"
#include "bpf/sampler_ring.bpf.h"
#include "bpf/sampler_vcpu.bpf.h"
#include "schema/chain_end.h"
#include "schema/chain_frames.h"
#include "schema/user_stack.h"

/* x86-64 Linux: stacks of tasks and of interrupts (without KASAN). */
enum { KERNEL_STACK_BYTES = 16384 };
/* Upper limit of user space with 5 levels of page tables. */
#define USER_END (1ULL << 56)

/* arch/x86/include/asm/pgtable_64_types.h */
#define CPU_ENTRY_AREA 0xfffffe0000000000ULL
#define CPU_ENTRY_AREA_SIZE (1ULL << 39)

/* Words of struct pt_regs, at the top of a task's stack; since v6.9 (FRED) with two words above. */
enum { REGS_BP = 4, REGS_IP = 16, REGS_CS = 17, REGS_SP = 19, REGS_SS = 20, REGS_WORDS = 21 };
enum { REGS_R15 = 0, REGS_R14, REGS_R13, REGS_R12, REGS_BX = 5, REGS_R11, REGS_R10, REGS_R9 };
enum { REGS_R8 = 9, REGS_AX, REGS_CX, REGS_DX, REGS_SI, REGS_DI };
enum { TOP_WORDS = REGS_WORDS + 2, USER_CS = 0x33, USER_SS = 0x2b };
/* The frame that the processor pushes: RIP, CS, RFLAGS, RSP and SS. */
enum { FRAME_BYTES = 5 * 8 };

/* Space for the largest sample, and for what the verifier assumes of a copy. */
#define CHAIN_ROOM                                                                                 \
	(VP_CHAIN_BYTES + sizeof(struct vp_interpreted) + sizeof(struct vp_user_stack) + PAGE_BYTES)
_Static_assert(VP_RING_SPARE >= VP_SAMPLE_SPARE + CHAIN_ROOM, "a ring has no space for stacks");

struct chain_maker {
	__u32 used;   /* bytes of records in the ring */
	__u32 before; /* bytes of this sample that precede them there */
	__u32 copy;   /* bytes of records before the copy of a stack */
	/* Time, thread and VM of the sample. */
	__u64 time;
	__u32 tid, vm;
	__u32 pid, guest_pid; /* of the VMM; of the guest's process, 0: not known */
	__u32 guest_tid;
	__u64 task;                           /* the guest's address of its task_struct */
	__u64 general[VP_USER_REGISTERS + 1]; /* 64-bit Arm: and PSTATE */
	__u32 has_general;
	/* The guest's page-table root, and the last translated page. */
	__u64 root, page, page_hva;
	__u64 ip, sp, bp; /* start of the user-space walk */
	/* 64-bit Arm: x30 (0: not needed), and the bits of an address that count. */
	__u64 link, va_mask;
	__u64 vcpu; /* KVM's */
	__u32 count, end;
	__u64 frames[VP_CHAIN_FRAMES];
	__u64 top[TOP_WORDS];
	__u64 piece[VP_CHAIN_PIECE / 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct chain_maker);
} chain_makers SEC(".maps");

static __always_inline struct chain_maker *chain_maker(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&chain_makers, &zero);
}

static __always_inline __u64 hva_in_page(struct chain_maker *maker, __u64 va)
{
	__u64 page = va & ~(PAGE_BYTES - 1ULL);

	if (maker->page != page) {
		maker->page = page;
		maker->page_hva = hva_of_va(maker->vm, maker->root, page);
	}
	return maker->page_hva ? maker->page_hva + (va - page) : 0;
}

/* The VMM's address of a piece of guest memory within one page; 0: none. */
static __always_inline __u64 hva_of_piece(struct chain_maker *maker, __u64 va, __u32 size)
{
	return (va & (PAGE_BYTES - 1)) <= PAGE_BYTES - size ? hva_in_page(maker, va) : 0;
}

static __always_inline bool read_guest_word(struct chain_maker *maker, __u64 va, __u64 *ret)
{
	__u64 hva = hva_of_piece(maker, va, sizeof(*ret));

	return hva && !bpf_probe_read_user(ret, sizeof(*ret), (void *)hva);
}

/* The two words at a frame pointer. */
struct user_frame {
	__u64 next, ip;
};

/* The frame is nearly always within one page, and then read at once. */
static __always_inline bool read_user_frame(struct chain_maker *maker, __u64 bp,
					    struct user_frame *ret)
{
	__u64 hva = hva_in_page(maker, bp);

	if (!hva)
		return false;
	if ((bp & (PAGE_BYTES - 1)) <= PAGE_BYTES - sizeof(*ret))
		return !bpf_probe_read_user(ret, sizeof(*ret), (void *)hva);
	return !bpf_probe_read_user(&ret->next, sizeof(ret->next), (void *)hva) &&
	       read_guest_word(maker, bp + sizeof(ret->next), &ret->ip);
}

/* Where the records are; NULL: impossible, but required by the verifier. */
static __always_inline char *chain_records(struct chain_maker *maker)
{
	struct vp_ring *ring = ring_here();
	__u64 before = maker->before;

	barrier_var(before);
	return ring && before <= VP_SAMPLE_SPARE
		   ? (char *)(ring + 1) + (ring->head & (ring_size - 1)) + before
		   : 0;
}

/* Reserves a record of that size in chain_records(); NULL: full. The barrier keeps the compiler
 * from adding before comparing: the verifier would lose the sum's bounds. */
static __always_inline void *next_record(struct chain_maker *maker, char *records, __u32 size)
{
	__u64 used = maker->used;

	barrier_var(used);
	if (!records || used > CHAIN_ROOM - size)
		return 0;
	barrier_var(used);
	maker->used = used + size;
	return records + used;
}

/* Bytes of records so far, bounded for the verifier. */
static __always_inline __u64 chain_size(const struct chain_maker *maker)
{
	__u64 used = maker->used;

	barrier_var(used);
	if (used > VP_CHAIN_BYTES + sizeof(struct vp_interpreted) + sizeof(struct vp_user_stack))
		return 0;
	barrier_var(used);
	return used;
}

/* Converts maker->frames to records. */
__noinline int put_frames(__u32 mode)
{
	struct chain_maker *maker = chain_maker();

	if (!maker)
		return 0;
	char *records = chain_records(maker);
	for (__u32 i = 0; i < VP_CHAIN_FRAMES / VP_CHAIN_FRAMES_PER_RECORD; i++) {
		__u32 first = i * VP_CHAIN_FRAMES_PER_RECORD, left = maker->count - first;
		struct vp_chain_frames *record = next_record(maker, records, sizeof(*record));
		if (!record)
			break;
		record->time = maker->time;
		record->id = VP_ID_chain_frames;
		record->mode = mode;
		record->tid = maker->tid;
		record->count =
		    left < VP_CHAIN_FRAMES_PER_RECORD ? left : VP_CHAIN_FRAMES_PER_RECORD;
		record->end = left <= VP_CHAIN_FRAMES_PER_RECORD ? maker->end : VP_CHAIN_GOES_ON;
		record->flags = !i && maker->link ? VP_CHAIN_LINK : 0;
		for (__u32 j = 0; j < VP_CHAIN_FRAMES_PER_RECORD; j++)
			record->ips[j] = j < left ? maker->frames[first + j] : 0;
		if (left <= VP_CHAIN_FRAMES_PER_RECORD)
			break;
	}
	return 0;
}

/* The chain's first addresses; returns how many. */
static __always_inline __u32 chain_first(struct chain_maker *maker)
{
	maker->frames[0] = maker->ip;
	maker->frames[1] = maker->link;
	return maker->link ? 2 : 1;
}

/* Adds the address of frame number `i`, counted from 0; returns how many addresses there are. A
 * function that has a frame has put the link register there. */
static __always_inline __u32 chain_add(struct chain_maker *maker, __u32 i, __u32 at, __u64 ip)
{
	if (!i && maker->link && maker->link == ip) {
		maker->link = 0;
		return at;
	}
	barrier_var(at);
	if (at < VP_CHAIN_FRAMES)
		maker->frames[at] = ip;
	return at + 1;
}

/* Walks user space from the maker's ip, sp and bp: at bp are the caller's bp and the return
 * address. Frames must ascend; otherwise the code uses the register for something else. */
__noinline int walk_user_frames(void)
{
	struct chain_maker *maker = chain_maker();

	if (!maker)
		return 0;
	__u64 bp = maker->bp, above = maker->sp;
	__u32 at = chain_first(maker), end = VP_CHAIN_TOO_DEEP;
	for (__u32 i = 0; i < VP_CHAIN_FRAMES && at < VP_CHAIN_FRAMES; i++) {
		struct user_frame frame = {};
		if (!bp) {
			end = VP_CHAIN_WHOLE;
			break;
		}
		if (bp & 7 || bp < above || bp >= USER_END) {
			end = VP_CHAIN_NO_FRAME;
			break;
		}
		if (!read_user_frame(maker, bp, &frame)) {
			end = VP_CHAIN_UNREADABLE;
			break;
		}
		frame.ip &= maker->va_mask;
		if (!frame.ip || frame.ip >= USER_END) {
			end = frame.next ? VP_CHAIN_NO_FRAME : VP_CHAIN_WHOLE;
			break;
		}
		at = chain_add(maker, i, at, frame.ip);
		above = bp + sizeof(frame);
		bp = frame.next & maker->va_mask;
	}
	maker->count = at;
	maker->end = end;
	return 0;
}

/* Units to copy of stacks of these address spaces, set by the recorder; 0: unknown yet. */
__u8 stack_sizes[VP_STACK_SIZES];

/* Bytes to copy: what was needed before. On 64-bit Arm, a signal's frame has more than 4 KiB. Its
 * handler, and other code without frame records, has x29 of an outer function. */
static __always_inline __u32 user_stack_bytes(const struct chain_maker *maker)
{
	enum { SIGNAL_LEAST = 2048, SIGNAL_MOST = 6656 };
	bool is_signal =
	    vendor == VP_VENDOR_ARM && maker->bp - maker->sp - SIGNAL_LEAST < SIGNAL_MOST;
	__u32 bytes = stack_sizes[VP_STACK_SIZE_OF(maker->root)] * VP_STACK_UNIT;

	if (!bytes || bytes > VP_USER_STACK_BYTES)
		return VP_USER_STACK_BYTES;
	return is_signal && bytes < SIGNAL_MOST ? SIGNAL_MOST : bytes;
}

/* Where to copy from. 64-bit Arm has no red zone. The page before that of the stack pointer may
 * never have been used. */
static __always_inline __u64 user_stack_from(struct chain_maker *maker)
{
	__u64 from = maker->sp & ~7ULL, below = (maker->sp - VP_USER_STACK_BELOW) & ~7ULL;

	return vendor == VP_VENDOR_ARM     ? from
	       : hva_in_page(maker, below) ? below
					   : from & ~(PAGE_BYTES - 1ULL);
}

/* Pages of an unaligned copy. */
enum { USER_STACK_PIECES = (VP_USER_STACK_BYTES - 1) / PAGE_BYTES + 2 };

/* Space that the verifier needs for a copy. */
#define COPY_ROOM (sizeof(struct vp_user_stack) + PAGE_BYTES)

/*
 * Copies a part of the stack up to the end of its page, at most `most` bytes, to the place of
 * `stack` that is at `at`. `hva`: its address in the VMM. Returns the bytes. A function of its own:
 * in a loop of pages, the verifier of Linux 5.10 has too many states to look at.
 */
__noinline int copy_user_page(__u64 hva, __u32 at, __u32 most)
{
	struct chain_maker *maker = chain_maker();

	if (!maker)
		return 0;
	char *records = chain_records(maker);
	__u64 copy = maker->copy, place = at;
	__u64 size = PAGE_BYTES - (hva & (PAGE_BYTES - 1));
	if (size > most)
		size = most;
	/* Compared here, and not before: the verifier of Linux 5.10 loses the bounds of spilled
	 * values. */
	barrier_var(copy);
	barrier_var(place);
	barrier_var(size);
	if (!hva || !records || copy > CHAIN_ROOM - COPY_ROOM || place >= VP_USER_STACK_BYTES ||
	    size > PAGE_BYTES)
		return 0;
	char *to = records + copy;
	to += offsetof(struct vp_user_stack, stack) + place;
	return bpf_probe_read_user(to, size, (void *)hva) ? 0 : (int)size;
}

/* Copies the stack from that address on, up to a page that cannot be read; returns the bytes. */
static __always_inline __u32 copy_user_stack(struct chain_maker *maker, __u64 from)
{
	__u32 most = user_stack_bytes(maker), bytes = 0;

	for (__u32 i = 0; i < USER_STACK_PIECES && bytes < most; i++) {
		__u64 hva = hva_in_page(maker, from + bytes);
		__u32 size = hva ? copy_user_page(hva, bytes, most - bytes) : 0;
		if (!size)
			break;
		bytes += size;
	}
	return bytes < most ? bytes : most;
}

/* Otherwise stacks of guest user space are unwound by frame pointers only. */
const volatile __u32 copies_user_stacks = 1;

/*
 * Copies the top of the user space's stack, and its registers; returns whether it did. The verifier
 * needs more space than a copy has; unused space is returned.
 */
__noinline int put_user_stack(void)
{
	struct chain_maker *maker = chain_maker();

	if (!copies_user_stacks || !maker || !maker->has_general || !maker->guest_pid || !maker->sp)
		return 0;
	__u64 from = user_stack_from(maker);
	maker->copy = maker->used;
	struct vp_user_stack *copy = next_record(maker, chain_records(maker), COPY_ROOM);
	if (!copy)
		return 0;
	__u32 bytes = copy_user_stack(maker, from);
	copy->time = maker->time;
	copy->id = VP_ID_USER_STACK;
	copy->vm = maker->pid;
	copy->tid = maker->tid;
	copy->guest_pid = maker->guest_pid;
	copy->task = maker->task;
	copy->as_root = maker->root;
	copy->known =
	    (1ULL << (vendor == VP_VENDOR_ARM ? VP_USER_REGISTERS : VP_USER_X86_REGISTERS)) - 1;
	copy->bytes = bytes;
	copy->has_frames = vendor == VP_VENDOR_ARM;
	copy->from = from;
	__builtin_memcpy(copy->registers, maker->general, sizeof(copy->registers));
	if (vendor != VP_VENDOR_ARM) {
		copy->registers[VP_USER_X86_BP] = maker->bp;
		copy->registers[VP_USER_X86_SP] = maker->sp;
		copy->registers[VP_USER_X86_IP] = maker->ip;
	}
	__u32 room = bytes > VP_USER_STACK_LEAST ? bytes : VP_USER_STACK_LEAST;
	room &= ~7U;
	copy->size = sizeof(*copy) - VP_USER_STACK_BYTES + room;
	if (bytes)
		maker->used -= VP_USER_STACK_BYTES + PAGE_BYTES - room;
	else
		maker->used -= COPY_ROOM;
	return bytes != 0;
}

/* Copies the stack from `from` to `to` to records; pieces do not cross pages. */
__noinline int put_guest_stack(__u64 from, __u64 to, __u32 most)
{
	struct chain_maker *maker = chain_maker();

	if (!maker)
		return 0;
	char *records = chain_records(maker);
	from &= ~(VP_CHAIN_PIECE - 1ULL);
	for (__u32 i = 0; i < VP_CHAIN_PIECES; i++) {
		__u64 hva = i < most && from < to ? hva_in_page(maker, from) : 0;
		if (!hva || bpf_probe_read_user(maker->piece, sizeof(maker->piece), (void *)hva))
			break;
		struct vp_chain_stack *record = next_record(maker, records, sizeof(*record));
		if (!record)
			break;
		record->time = maker->time;
		record->id = VP_ID_chain_stack;
		record->reserved = 0;
		record->tid = maker->tid;
		record->address = from;
		__builtin_memcpy(record->words, maker->piece, sizeof(record->words));
		from += VP_CHAIN_PIECE;
	}
	return 0;
}

/* RFLAGS: those that are always set in user space, and all that there are. */
enum { FLAGS_OF_USER = 0x202, FLAGS = 0x3fffff };

/*
 * Around SYSCALL and SYSRET, RCX has the address in user space, and R11 its flags. Registers that
 * look otherwise are those of an exception or an interrupt.
 */
static __always_inline bool is_syscall(const struct chain_maker *maker)
{
	__u64 ip = maker->general[2], flags = maker->general[11];

	return maker->has_general && ip && ip < USER_END && !(flags & ~(__u64)FLAGS) &&
	       (flags & FLAGS_OF_USER) == FLAGS_OF_USER;
}

/* RSP of user space, where the kernel puts it before it has a stack. */
static __always_inline __u64 sp_before_stack(struct chain_maker *maker)
{
	enum { TSS_SP2 = 20 };
	__u64 tss = 0, sp = 0;

	if (!read_task_segment((struct kvm_vcpu *)maker->vcpu, &tss) ||
	    !read_guest_word(maker, tss + TSS_SP2, &sp))
		return 0;
	return sp < USER_END ? sp : 0;
}

/* Takes general register number `to` if it has been saved; else it is still in the processor. */
#define TAKE_REGISTER(to, word)                                                                    \
	do {                                                                                       \
		if ((word) >= first)                                                               \
			maker->general[to] = regs[word];                                           \
	} while (0)

/*
 * Reads the user-space registers at the top of a stack of the kernel; 0: it was not in user space.
 * `sp`: the stack pointer, if it is in that stack; only the registers above it are saved there. If
 * the address is not among these, it is in RCX. `sp` 0: all registers are saved.
 */
__noinline int find_user_regs(__u64 top, __u64 sp)
{
	struct chain_maker *maker = chain_maker();

	if (!maker)
		return 0;
	__u64 at = top - sizeof(maker->top), hva = hva_of_piece(maker, at, sizeof(maker->top));
	__u64 *regs = maker->top + 2;
	__u32 first = 0;
	if (!hva || bpf_probe_read_user(maker->top, sizeof(maker->top), (void *)hva))
		return 0;
	if ((regs[REGS_CS] & 0xffff) == USER_CS && (regs[REGS_SS] & 0xffff) == USER_SS)
		at += 2 * sizeof(*regs);
	else
		regs = maker->top;
	/* Those of an earlier entry are of user space, too. */
	if ((regs[REGS_CS] & 0xffff) != USER_CS || (regs[REGS_SS] & 0xffff) != USER_SS)
		return 0;
	if (sp > at)
		first = (sp - at) / sizeof(*regs);
	if (first > REGS_WORDS || (first > REGS_IP && !is_syscall(maker)))
		return 0;
	maker->ip = first > REGS_IP ? maker->general[2] : regs[REGS_IP];
	maker->sp = first > REGS_SP ? sp_before_stack(maker) : regs[REGS_SP];
	if (REGS_BP >= first)
		maker->bp = regs[REGS_BP];
	TAKE_REGISTER(0, REGS_AX);
	TAKE_REGISTER(1, REGS_DX);
	TAKE_REGISTER(2, REGS_CX);
	TAKE_REGISTER(3, REGS_BX);
	TAKE_REGISTER(4, REGS_SI);
	TAKE_REGISTER(5, REGS_DI);
	TAKE_REGISTER(8, REGS_R8);
	TAKE_REGISTER(9, REGS_R9);
	TAKE_REGISTER(10, REGS_R10);
	TAKE_REGISTER(11, REGS_R11);
	TAKE_REGISTER(12, REGS_R12);
	TAKE_REGISTER(13, REGS_R13);
	TAKE_REGISTER(14, REGS_R14);
	TAKE_REGISTER(15, REGS_R15);
	maker->has_general |= !first;
	return 1;
}

/* The same where a system call has no stack of the kernel yet or any more. With page-table
 * isolation, RSP is used to change CR3. */
static __always_inline bool find_syscall_regs(struct chain_maker *maker)
{
	if (!is_syscall(maker))
		return false;
	maker->ip = maker->general[2];
	if (!(((maker->sp ^ maker->root) & CR3_ROOT_BITS)))
		maker->sp = sp_before_stack(maker);
	return true;
}

/* Adds the Python frame that was read, or notes at the last one that it is the outermost of its C
 * function. */
static __always_inline void add_python_frame(struct chain_maker *maker,
					     const struct python_walk *walk)
{
	bool is_entry = python_is_entry(walk);
	__u32 at = maker->count;

	if (is_entry && walk->layout.entry_is_empty) {
		at--;
		barrier_var(at);
		if (at < VP_INTERPRETED_FRAMES)
			maker->frames[at] |= VP_INTERPRETED_ENTRY;
		return;
	}
	barrier_var(at);
	if (at < VP_INTERPRETED_FRAMES)
		maker->frames[at] = (walk->code & ~7ULL) | (is_entry ? VP_INTERPRETED_ENTRY : 0);
	maker->count = at + 1;
}

/* Walks the frames of a Python thread, after python_begin(). */
__noinline int put_python_frames(void)
{
	struct chain_maker *maker = chain_maker();
	struct python_walk *walk = python_walk();

	if (!maker || !walk)
		return 0;
	maker->count = 0;
	for (__u32 i = 0; i < VP_INTERPRETED_FRAMES; i++) {
		if (!python_step())
			break;
		add_python_frame(maker, walk);
	}
	struct vp_interpreted *record =
	    maker->count ? next_record(maker, chain_records(maker), sizeof(*record)) : 0;
	if (!record)
		return 0;
	record->time = maker->time;
	record->id = VP_ID_INTERPRETED;
	record->size = sizeof(*record);
	record->vm = maker->pid;
	record->tid = maker->tid;
	record->count = maker->count;
	__builtin_memcpy(record->frames, maker->frames, sizeof(record->frames));
	return 0;
}

static __always_inline void find_python_frames(struct chain_maker *maker)
{
	struct vp_interpreter *interpreter = maker->guest_pid && maker->has_general
						 ? find_interpreter(maker->pid, maker->guest_pid)
						 : 0;

	if (interpreter && interpreter->kind == VP_INTERPRETER_PYTHON &&
	    python_begin(maker->pid, maker->guest_pid, maker->guest_tid, maker->vm, maker->root))
		put_python_frames();
}

static __always_inline void put_user_frames(struct chain_maker *maker)
{
	if (maker->end != VP_CHAIN_WHOLE) {
		maker->frames[0] = maker->ip;
		maker->count = 1;
		put_frames(VP_MODE_GUEST_USER);
		return;
	}
	find_python_frames(maker);
	/* The recorder walks the frame pointers in a copy that is not unwound. On 64-bit Arm it
	 * would need to know which bits of an address count. */
	if (put_user_stack() && vendor != VP_VENDOR_ARM)
		return;
	walk_user_frames();
	put_frames(VP_MODE_GUEST_USER);
}

/* System calls leave by an entry stack, at the top of which is RSP; with page-table isolation, the
 * task's stack has no address any more. */
static __always_inline bool find_leaving_regs(struct chain_maker *maker, __u64 top)
{
	__u64 sp = 0;

	if (!is_syscall(maker) || !read_guest_word(maker, top - sizeof(sp), &sp) || sp >= USER_END)
		return false;
	maker->ip = maker->general[2];
	maker->sp = sp;
	return true;
}

static __always_inline bool is_entry_stack(__u64 sp)
{
	return sp - CPU_ENTRY_AREA - 1 < CPU_ENTRY_AREA_SIZE;
}

/* Top of another stack: interrupt stacks are aligned to their size; the small entry stacks are in
 * the CPU entry area. An empty stack's pointer is the top. */
static __always_inline __u64 top_of_other_stack(__u64 sp)
{
	return ((sp - 1) | ((is_entry_stack(sp) ? PAGE_BYTES : KERNEL_STACK_BYTES) - 1)) + 1;
}

/*
 * The task's own stack below an interrupt stack. Since v5.12 (a0cfc74d0b00 "x86/irq: Provide macro
 * for inlining irq stack switching") the topmost word of the interrupt stack has its address;
 * before, or on another stack, only its outermost part is known.
 */
static __always_inline void stack_before_interrupt(struct chain_maker *maker, __u64 stack,
						   __u64 top_of_other)
{
	__u64 top = stack + KERNEL_STACK_BYTES, from = 0;

	if (!read_guest_word(maker, top_of_other - sizeof(from), &from) ||
	    from - stack >= KERNEL_STACK_BYTES)
		from = top - VP_CHAIN_OUTER_PIECES * VP_CHAIN_PIECE;
	put_guest_stack(from, top, VP_CHAIN_OUTER_PIECES);
}

/* The user space from which the kernel was entered. `stack`: the task's, 0: unknown. */
static __always_inline bool find_user_before(struct chain_maker *maker, __u64 stack, __u64 top,
					     bool own)
{
	__u64 sp = maker->sp;

	if (own)
		return find_user_regs(top, sp);
	/* The processor saves on an entry stack first; after it, system calls leave by one. */
	if (is_entry_stack(sp) && top - sp >= FRAME_BYTES && find_user_regs(top, sp))
		return true;
	if (stack && find_user_regs(stack + KERNEL_STACK_BYTES, 0))
		return true;
	/* Task stacks are aligned to their size, too: it may be one although none is known. */
	return is_entry_stack(sp) ? find_leaving_regs(maker, top) : find_user_regs(top, sp);
}

/* The present stack of the guest kernel, and that user space. */
static __always_inline void put_kernel_chain(struct chain_maker *maker,
					     const struct vp_identity_vcpu *identity,
					     const struct guest_current *current)
{
	__u64 stack = 0, sp = maker->sp;

	if (sp < USER_END) {
		if (find_syscall_regs(maker))
			put_user_frames(maker);
		return;
	}
	if (current->known && identity->off_stack)
		bpf_probe_read_user(&stack, sizeof(stack),
				    (void *)identity->task_hva + identity->off_stack);
	if (current->known)
		maker->end = memory_of_task(identity, maker->root);
	bool own = stack && sp - stack - 1 < KERNEL_STACK_BYTES;
	__u64 top = own ? stack + KERNEL_STACK_BYTES : top_of_other_stack(sp);
	put_guest_stack(sp, top, VP_CHAIN_PIECES);
	if (stack && !own)
		stack_before_interrupt(maker, stack, top);
	if (find_user_before(maker, stack, top, own))
		put_user_frames(maker);
}

/* Without stack registers (Intel): the user space from which the kernel was entered, from the top
 * of the task's stack. */
static __always_inline void put_chain_before_entry(struct chain_maker *maker,
						   const struct vp_identity_vcpu *identity,
						   const struct guest_current *current)
{
	__u64 stack = 0;

	if (current->known && identity->off_stack &&
	    !bpf_probe_read_user(&stack, sizeof(stack),
				 (void *)identity->task_hva + identity->off_stack) &&
	    stack && find_user_regs(stack + KERNEL_STACK_BYTES, 0))
		put_user_frames(maker);
}

/* The sampled vCPU thread, and its guest RIP. */
struct chain_subject {
	struct kvm_vcpu *vcpu;
	__u32 pid, number, cpl, flags; /* flags: as in a guest_sample */
	__u64 ip, as_root;
};

static __always_inline void put_guest_regs(struct chain_maker *maker,
					   const struct chain_subject *subject,
					   const struct guest_current *current, bool with_stack)
{
	struct vp_guest_regs *record = next_record(maker, chain_records(maker), sizeof(*record));

	if (!record)
		return;
	record->time = maker->time;
	record->id = VP_ID_guest_regs;
	record->flags = (subject->flags & (VP_HAS_AS_ROOT | VP_HAS_CPL)) |
			(current->known ? VP_BY_MEMORY : 0) |
			(with_stack ? VP_HAS_STACK | VP_KNOWS_ENTRY : 0);
	record->vm = subject->pid;
	record->tid = maker->tid;
	record->mode = subject->cpl == 3 ? VP_MODE_GUEST_USER : VP_MODE_GUEST_KERNEL;
	record->reserved = 0;
	record->reserved_2 = 0;
	record->guest_pid = current->tgid;
	record->guest_tid = current->tid;
	record->ip = subject->ip;
	record->sp = maker->sp;
	record->bp = maker->bp;
	record->as_root = subject->as_root;
}

#include "bpf/chain_arm.bpf.h"

/* Starts the stacks of a sample, after `before` bytes of it in the ring; NULL: impossible, but
 * required by the verifier. */
static __always_inline struct chain_maker *chain_begin(__u32 tid, __u64 time, __u32 before)
{
	struct chain_maker *maker = chain_maker();

	if (!maker)
		return 0;
	maker->used = 0;
	maker->before = before;
	maker->time = time;
	maker->tid = tid;
	maker->link = 0;
	maker->end = VP_CHAIN_WHOLE;
	return maker;
}

/* The guest's part. Only a known page-table root can be walked. */
static __always_inline void chain_of_guest(struct chain_maker *maker,
					   const struct chain_subject *subject,
					   const struct guest_current *current)
{
	__u32 memo = VP_IDENTITY_VCPUS;
	struct vp_identity_vcpu *identity = find_identity(subject->pid, subject->number, &memo);

	bool with_root = identity && subject->flags & VP_HAS_AS_ROOT;
	maker->ip = subject->ip;
	maker->sp = maker->bp = 0;
	maker->pid = subject->pid;
	maker->guest_pid = current->known ? current->tgid : 0;
	maker->guest_tid = current->tid;
	maker->task = current->task;
	maker->va_mask = ~0ULL;
	bool with_stack = vendor != VP_VENDOR_ARM && with_root &&
			  read_stack_registers(subject->vcpu, &maker->sp, &maker->bp);
	put_guest_regs(maker, subject, current, with_stack);
	if (vendor == VP_VENDOR_ARM) {
		if (with_root && identity) {
			maker->vcpu = (__u64)subject->vcpu;
			maker->vm = identity->vm;
			maker->root = subject->as_root;
			chain_of_arm_guest(subject->cpl == 3);
		}
		return;
	}
	if (!with_root || !identity ||
	    (!with_stack &&
	     (vendor != VP_VENDOR_INTEL || !read_frame_pointer(subject->vcpu, &maker->bp))))
		return;
	maker->vcpu = (__u64)subject->vcpu;
	maker->has_general = with_stack && read_general_registers(subject->vcpu, maker->general);
	maker->vm = identity->vm;
	maker->root = subject->as_root;
	maker->page = 1; /* none */
	if (subject->cpl == 3)
		put_user_frames(maker);
	else if (with_stack)
		put_kernel_chain(maker, identity, current);
	else
		put_chain_before_entry(maker, identity, current);
}

/* The host's part, of the interrupted code. */
static __always_inline void chain_of_host(struct chain_maker *maker, void *context)
{
	long bytes = bpf_get_stack(context, maker->frames, sizeof(maker->frames), 0);

	maker->link = 0;

	maker->count = bytes > 0 ? bytes / sizeof(__u64) : 0;
	maker->end = maker->count < VP_CHAIN_FRAMES ? VP_CHAIN_WHOLE : VP_CHAIN_TOO_DEEP;
	if (maker->count)
		put_frames(VP_MODE_KERNEL);
	bytes = bpf_get_stack(context, maker->frames, sizeof(maker->frames), BPF_F_USER_STACK);
	maker->count = bytes > 0 ? bytes / sizeof(__u64) : 0;
	maker->end = maker->count < VP_CHAIN_FRAMES ? VP_CHAIN_WHOLE : VP_CHAIN_TOO_DEEP;
	if (maker->count)
		put_frames(VP_MODE_USER);
}

#endif
