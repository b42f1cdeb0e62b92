/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/java_frame_layout.h"

#include "base/macros.h"
#include "runtime/java_scopes.h"
#include "runtime/java_tables.h"
#include "runtime/process_memory.h"

enum {
	WORD = 8,
	MAX_FRAME = 1 << 20,
	NO_FRAME = 0xffff,  /* 16 bits of -1: the code allocates no frame */
	MAX_PROLOGUE = 256, /* bytes; longer ones do not exist */
	LONGEST_SEQUENCE = 32,
};

bool vp_java_frame_find(const struct vp_java_vm *vm, uint64_t addr, struct vp_java_frame *ret)
{
	const struct vp_java_layout *at = &vm->tables.at;
	struct vp_java_code code;
	uint32_t words = 0;
	uint16_t complete = NO_FRAME;

	if (at->blob_frame_size == VP_JAVA_NONE || at->blob_frame_complete == VP_JAVA_NONE ||
	    !vp_java_code_find(vm, addr, &code))
		return false;
	*ret = (struct vp_java_frame){.kind = code.kind, .start = code.start, .end = code.end};
	if (!vp_java_code_begin(vm, &code, &ret->begin) || ret->begin < code.start ||
	    addr < ret->begin ||
	    !vp_process_u32(vm->memory, code.start + at->blob_frame_size, &words) ||
	    !vp_process_u16(vm->memory, code.start + at->blob_frame_complete, &complete))
		return false;
	/* A frame has at least RBP and the return address. */
	ret->size = words >= 2 && words <= MAX_FRAME / WORD ? words * WORD : 0;
	ret->complete = complete < MAX_PROLOGUE ? complete : 0;
	ret->method = code.kind == VP_JAVA_METHOD ? code.method : 0;
	if (!ret->method || !vp_java_scopes_read(vm, &code, addr - ret->begin, &ret->scope))
		ret->scope.n_inlined = 0;
	return true;
}

/* Instructions around an address; bytes outside of the block are 0. */
struct sequence {
	uint8_t bytes[2 * LONGEST_SEQUENCE];
	unsigned at; /* index of the address */
};

static void read_sequence(const struct vp_process_memory *memory, const struct vp_java_frame *frame,
			  uint64_t addr, struct sequence *ret)
{
	uint64_t before = addr - frame->begin, after = frame->end - addr;

	*ret = (struct sequence){.at = LONGEST_SEQUENCE};
	before = before < LONGEST_SEQUENCE ? before : LONGEST_SEQUENCE;
	after = after < LONGEST_SEQUENCE ? after : LONGEST_SEQUENCE;
	if (!vp_process_read(memory, addr - before, ret->bytes + ret->at - before,
			     (size_t)(before + after)))
		memset(ret->bytes, 0, sizeof(ret->bytes));
}

/* Whether these bytes end at index `at`, followed by `operand` bytes of any value; goes back before
 * them. */
static bool ends_with(const struct sequence *sequence, unsigned *at, const char *bytes,
		      unsigned size, unsigned operand)
{
	if (*at < size + operand ||
	    memcmp(sequence->bytes + *at - size - operand, bytes, size) != 0)
		return false;
	*at -= size + operand;
	return true;
}

/* Whether these bytes start at index `at`; goes on after them and `operand` bytes. */
static bool starts_with(const struct sequence *sequence, unsigned *at, const char *bytes,
			unsigned size, unsigned operand)
{
	if (size + operand > sizeof(sequence->bytes) - *at ||
	    memcmp(sequence->bytes + *at, bytes, size) != 0)
		return false;
	*at += size + operand;
	return true;
}

/* push %rbp, with `mov %rsp, %rbp` of native methods. */
static bool ends_with_push(const struct sequence *sequence, unsigned *at)
{
	if (!ends_with(sequence, at, "\x48\x8b\xec", 3, 0))
		ends_with(sequence, at, "\x48\x89\xe5", 3, 0);
	return ends_with(sequence, at, "\x55", 1, 0);
}

/* sub $n, %rsp */
static bool ends_with_allocation(const struct sequence *sequence, unsigned *at)
{
	return ends_with(sequence, at, "\x48\x81\xec", 3, 4) ||
	       ends_with(sequence, at, "\x48\x83\xec", 3, 1);
}

/* In a prologue: stack check, then `push %rbp; sub $n, %rsp` or `sub $n, %rsp; mov %rbp,
 * n-16(%rsp)`, then a barrier. */
static enum vp_java_frame_state state_in_prologue(const struct sequence *sequence)
{
	unsigned at = sequence->at;

	ends_with(sequence, &at, "\x0f\x85", 2, 4);     /* jne, of the barrier */
	ends_with(sequence, &at, "\x41\x81\x7f", 3, 5); /* cmp $n, n(%r15) */
	if (ends_with(sequence, &at, "\x48\x89\x6c\x24", 4, 1) ||
	    ends_with(sequence, &at, "\x48\x89\xac\x24", 4, 4))
		return VP_JAVA_FRAME_COMPLETE;
	if (ends_with_allocation(sequence, &at))
		return ends_with_push(sequence, &at) ? VP_JAVA_FRAME_COMPLETE
						     : VP_JAVA_FRAME_WITHOUT_POINTER;
	return ends_with_push(sequence, &at) ? VP_JAVA_FRAME_POINTER_ON_TOP
					     : VP_JAVA_FRAME_NOT_BUILT;
}

/* Whether only a safepoint check of known form comes before the `ret`. */
static bool is_before_return(const struct sequence *sequence, unsigned at)
{
	if (starts_with(sequence, &at, "\x49\x3b\xa7", 3, 4) || /* cmp n(%r15), %rsp */
	    starts_with(sequence, &at, "\x49\x3b\x67", 3, 1)) {
		/* Followed by a jump. */
	} else if (!starts_with(sequence, &at, "\x85\x05", 2, 4)) { /* test %eax, n(%rip) */
		starts_with(sequence, &at, "\x4d\x8b\x97", 3, 4);   /* mov n(%r15), %r10 */
		starts_with(sequence, &at, "\x41\x85\x02", 3, 0);   /* test %eax, (%r10) */
	}
	if (!starts_with(sequence, &at, "\x0f\x87", 2, 4)) /* ja */
		starts_with(sequence, &at, "\x77", 1, 1);
	return starts_with(sequence, &at, "\xc3", 1, 0) || starts_with(sequence, &at, "\xc2", 1, 2);
}

enum vp_java_frame_state vp_java_frame_state(const struct vp_process_memory *memory,
					     const struct vp_java_frame *frame, uint64_t addr)
{
	struct sequence sequence;
	unsigned at;

	read_sequence(memory, frame, addr, &sequence);
	at = sequence.at;
	if (is_before_return(&sequence, at))
		return VP_JAVA_FRAME_NOT_BUILT;
	if (starts_with(&sequence, &at, "\x5d", 1, 0) && is_before_return(&sequence, at))
		return VP_JAVA_FRAME_POINTER_ON_TOP;
	return addr - frame->begin < frame->complete ? state_in_prologue(&sequence)
						     : VP_JAVA_FRAME_COMPLETE;
}
