/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestreader/java_frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "runtime/java_frame_layout.h"
#include "runtime/process_memory.h"
#include "unwind/cfi.h"
#include "unwind/user_arch.h"

enum {
	WORD = 8,
	CACHED = 4096,             /* layouts, of all processes of a guest */
	LOOKUPS_PER_SECOND = 2000, /* of names, about 20 us each, 100 us for a forged one */
};
#define SECOND 1000000000ULL
/* Time for which a layout is used: code may be replaced. */
#define CACHE_NS 100000000ULL
/* Distances from the frame pointer: interpreter_frame_sender_sp_offset and
 * interpreter_frame_method_offset in HotSpot's frame_x86.hpp and frame_aarch64.hpp, JDK 8 to 25. */
#define SENDER_BELOW 8
#define METHOD_BELOW 24

struct cached_frame {
	uint64_t addr, time; /* addr 0: none */
	uint32_t tgid;
	bool found, named; /* named: its name was looked up */
	struct vp_java_frame frame;
};

struct vp_java_frames {
	struct cached_frame cache[CACHED];
	uint64_t second;
	unsigned lookups;
};

struct vp_java_frames *vp_java_frames_new(void)
{
	return vp_alloc(sizeof(struct vp_java_frames));
}

void vp_java_frames_free(struct vp_java_frames *frames)
{
	free(frames);
}

static bool is_in_heap(const struct vp_java_vm *vm, uint64_t addr)
{
	for (unsigned i = 0; i < vm->n_heaps; i++)
		if (addr >= vm->heaps[i].low && addr < vm->heaps[i].high)
			return true;
	return false;
}

/* Code heaps grow: reads them again, once for a stack, for generated code that is in none. */
static bool is_in_grown_heap(struct vp_java_stack *stack, uint64_t addr)
{
	const struct vp_process_memory memory = {stack->program->read, stack->program->context};
	const struct vp_user_program *program = stack->program;
	struct vp_java_vm now = stack->vm;

	if (stack->reread || !program->is_generated ||
	    !program->is_generated(program->context, addr))
		return false;
	stack->reread = true;
	now.memory = &memory;
	struct vp_error *error = vp_java_heaps_read(&now);
	if (!error) {
		stack->vm = now;
		stack->vm.memory = NULL;
	}
	vp_error_free(error);
	return is_in_heap(&stack->vm, addr);
}

/* The layout of the frame of an instruction; NULL: not Java's, or invalid. */
static struct cached_frame *frame_at(struct vp_java_stack *stack, uint64_t addr)
{
	const struct vp_process_memory memory = {stack->program->read, stack->program->context};
	uint64_t hash = vp_hash64(addr ^ vp_hash64(stack->tgid));
	struct cached_frame *cached = &stack->frames->cache[hash % CACHED];
	uint64_t age = stack->time - cached->time;

	if (!is_in_heap(&stack->vm, addr) && !is_in_grown_heap(stack, addr))
		return NULL;
	/* Samples of different pCPUs are not sorted by time. */
	if (cached->addr != addr || cached->tgid != stack->tgid ||
	    (age > CACHE_NS && age < -CACHE_NS)) {
		*cached =
		    (struct cached_frame){.addr = addr, .time = stack->time, .tgid = stack->tgid};
		stack->vm.memory = &memory;
		cached->found = vp_java_frame_find(&stack->vm, addr, &cached->frame);
		stack->vm.memory = NULL;
	}
	return cached->found ? cached : NULL;
}

static bool read_word(const struct vp_java_stack *stack, uint64_t addr, uint64_t *ret)
{
	return stack->program->read(stack->program->context, addr, ret, sizeof(*ret));
}

static const struct vp_user_arch *arch_of(const struct vp_java_stack *stack)
{
	return stack->program->arch;
}

static bool has_link(const struct vp_java_stack *stack)
{
	return arch_of(stack)->link != VP_DWARF_NONE;
}

static uint64_t fp_of(const struct vp_java_stack *stack, const struct vp_user_registers *now)
{
	return now->value[arch_of(stack)->fp];
}

static uint64_t sp_of(const struct vp_java_stack *stack, const struct vp_user_registers *now)
{
	return now->value[arch_of(stack)->sp];
}

/* Return addresses may have a signature. */
static enum vp_user_step step_to(const struct vp_java_stack *stack, struct vp_user_registers *now,
				 uint64_t ip, uint64_t sp, uint64_t fp)
{
	const struct vp_user_arch *arch = arch_of(stack);

	*now = (struct vp_user_registers){.known = 1ULL << arch->ip | 1ULL << arch->sp |
						   1ULL << arch->fp};
	now->value[arch->ip] = ip & arch->address;
	now->value[arch->sp] = sp;
	now->value[arch->fp] = fp;
	return VP_USER_STEP_DONE;
}

/* The frame pointer, if any, and the return address are the last words below `end`. */
static enum vp_user_step step_at(const struct vp_java_stack *stack, struct vp_user_registers *now,
				 uint64_t end, bool with_pointer)
{
	uint64_t ip, fp = fp_of(stack, now);

	if (!read_word(stack, end - WORD, &ip) ||
	    (with_pointer && !read_word(stack, end - 2UL * WORD, &fp)))
		return VP_USER_STEP_FAILED;
	return step_to(stack, now, ip, end, fp);
}

/* Whether the address is one that code may return to. */
static bool is_return(const struct vp_java_stack *stack, uint64_t addr)
{
	const struct vp_user_program *program = stack->program;

	addr &= arch_of(stack)->address;
	return addr && program->is_code(program->context, addr - 1);
}

/* To the caller of code without a frame, whose return address is on top of the stack, or in the
 * link register. */
static enum vp_user_step step_without_frame(const struct vp_java_stack *stack,
					    struct vp_user_registers *now)
{
	const unsigned link = arch_of(stack)->link;
	uint64_t sp = sp_of(stack, now), ip;

	if (has_link(stack))
		return now->known >> link & 1 && is_return(stack, now->value[link])
			   ? step_to(stack, now, now->value[link], sp, fp_of(stack, now))
			   : VP_USER_STEP_FAILED;
	return read_word(stack, sp, &ip) && is_return(stack, ip)
		   ? step_to(stack, now, ip, sp + WORD, fp_of(stack, now))
		   : VP_USER_STEP_FAILED;
}

/* The caller's stack pointer that an interpreted frame has, which is not right above the frame: the
 * locals are between. On 64-bit Arm, an interpreted caller's may be below the frame's end: the
 * callee uses the rest of its expression stack. */
static bool find_sender(const struct vp_java_stack *stack, uint64_t fp, uint64_t *ret)
{
	const uint64_t end = fp + 2UL * WORD;

	if (!read_word(stack, fp - SENDER_BELOW, ret) || *ret % WORD)
		return false;
	if (*ret >= end)
		return true;
	*ret = end;
	return has_link(stack);
}

/* Interpreted frames are found by the frame pointer. */
static enum vp_user_step step_interpreted(const struct vp_java_stack *stack,
					  struct vp_user_registers *now, bool exact)
{
	uint64_t fp = fp_of(stack, now), ip, next, sender;

	if (fp % WORD == 0 && fp >= sp_of(stack, now) && read_word(stack, fp, &next) &&
	    read_word(stack, fp + WORD, &ip) && find_sender(stack, fp, &sender) &&
	    is_return(stack, ip))
		return step_to(stack, now, ip, sender, next);
	/* Before the frame is built. */
	return exact ? step_without_frame(stack, now) : VP_USER_STEP_FAILED;
}

static enum vp_user_step step_compiled(const struct vp_java_stack *stack,
				       const struct vp_java_frame *frame,
				       struct vp_user_registers *now, bool exact)
{
	const struct vp_process_memory memory = {stack->program->read, stack->program->context};
	uint64_t sp = sp_of(stack, now), ip = now->value[arch_of(stack)->ip];
	enum vp_java_frame_state state = VP_JAVA_FRAME_COMPLETE;

	if (exact)
		state = has_link(stack) ? vp_java_frame_state_arm(&memory, frame, ip)
					: vp_java_frame_state(&memory, frame, ip);
	switch (state) {
	case VP_JAVA_FRAME_POINTER_ON_TOP:
		return step_at(stack, now, sp + 2UL * WORD, true);
	case VP_JAVA_FRAME_NOT_BUILT:
		return step_without_frame(stack, now);
	case VP_JAVA_FRAME_WITHOUT_POINTER:
		if (!has_link(stack))
			return step_at(stack, now, sp + frame->size, false);
		now->value[arch_of(stack)->sp] += frame->size;
		return step_without_frame(stack, now);
	default:
		return step_at(stack, now, sp + frame->size, true);
	}
}

/* Whether a stub has a frame record: the link register is stale, or has the record's address. */
static bool has_record(const struct vp_java_stack *stack, const struct vp_java_frame *frame,
		       const struct vp_user_registers *now)
{
	const struct vp_user_arch *arch = arch_of(stack);
	uint64_t link = now->value[arch->link] & arch->address, ip;

	return (link >= frame->start && link < frame->end) ||
	       (read_word(stack, fp_of(stack, now) + WORD, &ip) && (ip & arch->address) == link);
}

/* Stubs have no frame, or one with a frame pointer. */
static enum vp_user_step step_stub(const struct vp_java_stack *stack,
				   const struct vp_java_frame *frame, struct vp_user_registers *now)
{
	struct vp_user_registers caller = *now;

	if ((has_link(stack) && has_record(stack, frame, now)) ||
	    step_without_frame(stack, &caller) != VP_USER_STEP_DONE)
		return VP_USER_STEP_NONE;
	*now = caller;
	return VP_USER_STEP_DONE;
}

enum vp_user_step vp_java_frames_step(struct vp_java_stack *stack, struct vp_user_registers *now,
				      bool exact)
{
	const struct vp_user_arch *arch = arch_of(stack);
	const uint64_t needed = 1ULL << arch->fp | 1ULL << arch->sp;
	uint64_t addr = now->value[arch->ip] - !exact;
	const struct cached_frame *cached = frame_at(stack, addr);
	const struct vp_java_frame *frame = cached ? &cached->frame : NULL;

	if (!frame || (now->known & needed) != needed)
		return VP_USER_STEP_NONE;
	if (frame->kind == VP_JAVA_INTERPRETER)
		return step_interpreted(stack, now, exact);
	if (frame->size)
		return step_compiled(stack, frame, now, exact);
	return exact ? step_stub(stack, frame, now) : VP_USER_STEP_NONE;
}

/* A chain in progress. */
struct new_chain {
	struct vp_user_chain *chain;
	uint64_t ips[VP_CHAIN_LONGEST];
	uint64_t fps[VP_CHAIN_LONGEST];
	uint32_t count;
	bool full;
};

static void put_frame(struct new_chain *to, uint64_t ip, uint64_t fp)
{
	if (to->count == VP_CHAIN_LONGEST) {
		to->full = true;
		return;
	}
	to->ips[to->count] = ip;
	to->fps[to->count++] = fp;
}

/* The address of a method, as the innermost frame or a caller. */
static void put_method(struct new_chain *to, uint64_t method, uint64_t fp,
		       struct vp_java_found *found)
{
	if (to->count < VP_CHAIN_LONGEST)
		found->methods[found->n_methods++] = method;
	put_frame(to, method + (to->count != 0), fp);
}

/* The method of an interpreted frame; 0: unreadable. */
static uint64_t method_of(const struct vp_java_stack *stack, uint64_t fp)
{
	uint64_t method, constants;

	return fp && read_word(stack, fp - METHOD_BELOW, &method) && method && method % WORD == 0 &&
		       read_word(stack, method + stack->vm.tables.at.method_const, &constants) &&
		       constants
		   ? method
		   : 0;
}

/* Whether to look up the name of the code; notes that it is done. */
static bool may_look_up(struct vp_java_stack *stack, struct cached_frame *cached)
{
	struct vp_java_frames *frames = stack->frames;

	if (stack->time / SECOND != frames->second) {
		frames->second = stack->time / SECOND;
		frames->lookups = 0;
	}
	if (cached->named || frames->lookups == LOOKUPS_PER_SECOND)
		return false;
	frames->lookups++;
	cached->named = true;
	return true;
}

static bool has_inlined(const struct vp_java_frame *frame)
{
	return frame && frame->scope.n_inlined;
}

/* A frame of compiled code, or not of Java: its address, whose name is that of the innermost method
 * there. Callers with inlined methods are addresses of methods: their code was not sampled. */
static void put_code(struct new_chain *to, uint32_t number, const struct vp_java_frame *frame,
		     struct vp_java_found *found)
{
	uint64_t ip = to->chain->ips[number], fp = to->chain->fps[number];
	unsigned first = number == 0;

	if (first || !has_inlined(frame))
		put_frame(to, ip, fp);
	if (!has_inlined(frame))
		return;
	for (unsigned i = first; i < frame->scope.n_inlined; i++)
		put_method(to, frame->scope.inlined[i], fp, found);
	put_method(to, frame->method, fp, found);
}

static void put_one(struct vp_java_stack *stack, struct new_chain *to, uint32_t number,
		    struct vp_java_found *found)
{
	uint64_t ip = to->chain->ips[number], fp = to->chain->fps[number];
	/* All addresses except the first are return addresses. */
	uint64_t addr = ip - (number != 0);
	struct cached_frame *cached = frame_at(stack, addr);
	const struct vp_java_frame *frame = cached ? &cached->frame : NULL;
	uint64_t method = frame && frame->kind == VP_JAVA_INTERPRETER ? method_of(stack, fp) : 0;

	if (method) {
		put_method(to, method, fp, found);
		return;
	}
	if (cached && !(number && has_inlined(frame)) && to->count < VP_CHAIN_LONGEST &&
	    may_look_up(stack, cached))
		found->code[found->n_code++] = addr;
	put_code(to, number, frame, found);
}

void vp_java_frames_put(struct vp_java_stack *stack, struct vp_user_chain *chain,
			struct vp_java_found *found)
{
	struct new_chain to = {.chain = chain};

	found->n_methods = found->n_code = 0;
	for (uint32_t i = 0; i < chain->count; i++)
		put_one(stack, &to, i, found);
	memcpy(chain->ips, to.ips, to.count * sizeof(*to.ips));
	memcpy(chain->fps, to.fps, to.count * sizeof(*to.fps));
	chain->count = to.count;
	if (to.full)
		chain->end = VP_CHAIN_TOO_DEEP;
}
