/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the method that an interpreter in a guest executes at a sample. HotSpot's interpreter keeps
 * it at a fixed offset from the frame pointer. V8 does so with the function, also in compiled code.
 * In Python, the thread's state leads to its frames, and these to their code objects. The
 * processes, the ranges of their interpreters, and the threads are set by user space.
 */
#ifndef VP_BPF_INTERPRETER_BPF_H
#define VP_BPF_INTERPRETER_BPF_H

#include "bpf/guest_pages.bpf.h"
#include "bpf/kvm_arm.bpf.h"
#include "bpf/kvm_compat.bpf.h"
#include "bpf/sampler_abi.h"

/* By pid of the VMM << 32 | tgid in the guest. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VP_INTERPRETERS);
	__type(key, __u64);
	__type(value, struct vp_interpreter);
} interpreters SEC(".maps");

/* Threads of Python processes, by pid of the VMM << 32 | tid in the guest. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VP_INTERPRETED_THREADS);
	__type(key, __u64);
	__type(value, struct vp_interpreted_thread);
} interpreted_threads SEC(".maps");

/* Number of entries of both: samples skip the lookup if 0. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} interpreter_count SEC(".maps");

/* Three words below the frame pointer: interpreter_frame_method_offset in HotSpot's frame_x86.hpp
 * and frame_aarch64.hpp, JDK 8 to 25. */
#define METHOD_BELOW_FRAME 24

static __always_inline struct vp_interpreter *find_interpreter(__u32 pid, __u32 guest_pid)
{
	__u64 key = (__u64)pid << 32 | guest_pid;
	__u32 zero = 0, *count = bpf_map_lookup_elem(&interpreter_count, &zero);

	return count && *count ? bpf_map_lookup_elem(&interpreters, &key) : 0;
}

/* Empty frames before the innermost one that has a function. */
enum { MOST_EMPTY_FRAMES = 2 };

/* A walk over the frames of a Python thread, or over the data of V8's innermost frame, in the
 * pCPU's own memory: older kernels limit the stack of nested functions to 512 bytes. */
struct python_walk {
	struct vp_interpreted_layout layout;
	__u64 root;
	__u64 frame; /* the next one; 0: none */
	__u64 page, page_hva;
	__u64 word, code, owner; /* what was read */
	__u32 vm, native_id;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct python_walk);
} python_walks SEC(".maps");

static __always_inline struct python_walk *python_walk(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&python_walks, &zero);
}

/* Reads a word; remembers where its page is. */
static __always_inline bool read_python_word(struct python_walk *walk, __u64 va, __u64 *ret)
{
	if (va & (sizeof(*ret) - 1))
		return false;
	if (walk->page != (va & ~(PAGE_BYTES - 1ULL))) {
		walk->page = va & ~(PAGE_BYTES - 1ULL);
		walk->page_hva = hva_of_va(walk->vm, walk->root, walk->page);
	}
	return walk->page_hva &&
	       !bpf_probe_read_user(ret, sizeof(*ret),
				    (void *)(walk->page_hva + (va & (PAGE_BYTES - 1))));
}

/* Finds the state of a Python thread; 0: unknown. `process`, `thread`: keys. */
__noinline int python_find(__u64 process, __u64 thread)
{
	struct python_walk *walk = python_walk();
	struct vp_interpreter *interpreter = bpf_map_lookup_elem(&interpreters, &process);
	struct vp_interpreted_thread *known = bpf_map_lookup_elem(&interpreted_threads, &thread);

	if (!walk || !interpreter || !known || known->tgid != (__u32)process)
		return 0;
	walk->layout = interpreter->layout;
	walk->native_id = known->native_id;
	walk->frame = known->state;
	walk->page = 1; /* none */
	return 1;
}

/* Goes from the thread's state to its innermost frame; 0: unknown. */
__noinline int python_first(void)
{
	struct python_walk *walk = python_walk();

	if (!walk)
		return 0;
	walk->code = walk->frame;
	walk->frame = 0;
	if (!read_python_word(walk, walk->code + walk->layout.native_id, &walk->word) ||
	    walk->word != walk->native_id ||
	    !read_python_word(walk, walk->code + walk->layout.frame, &walk->word))
		return 0;
	if (walk->layout.frame_in != VP_INTERPRETED_DIRECT)
		return read_python_word(walk, walk->word + walk->layout.frame_in, &walk->frame);
	walk->frame = walk->word;
	return 1;
}

/* Starts a walk over the frames of a thread in VM number `vm`; false: unknown. */
static __always_inline bool python_begin(__u32 pid, __u32 tgid, __u32 tid, __u32 vm, __u64 root)
{
	struct python_walk *walk = python_walk();

	if (!walk)
		return false;
	walk->vm = vm;
	walk->root = root;
	return python_find((__u64)pid << 32 | tgid, (__u64)pid << 32 | tid) && python_first();
}

/* Reads the frame that is the next one, and goes on to its caller; 0: it cannot be read. */
__noinline int python_step(void)
{
	struct python_walk *walk = python_walk();

	if (!walk || !walk->frame)
		return 0;
	walk->word = walk->frame;
	walk->frame = 0;
	return read_python_word(walk, walk->word + walk->layout.code, &walk->code) &&
	       read_python_word(walk, walk->word + (walk->layout.owner & ~7U), &walk->owner) &&
	       read_python_word(walk, walk->word + walk->layout.previous, &walk->frame);
}

/* Whether the frame that was read is the outermost one of its C function. */
static __always_inline bool python_is_entry(const struct python_walk *walk)
{
	return (walk->owner >> ((walk->layout.owner & 7) * 8) & 0xff) == walk->layout.entry_value;
}

/* The code object of the innermost frame that has one; 0: unknown. After python_begin(). Since
 * CPython 3.14, the lowest bit of the pointer may be set: a reference that is not counted. */
static __always_inline __u64 python_code(void)
{
	struct python_walk *walk = python_walk();

	if (!walk)
		return 0;
	for (int i = 0; i < MOST_EMPTY_FRAMES; i++) {
		if (!python_step())
			return 0;
		if (!walk->layout.entry_is_empty || !python_is_entry(walk))
			return walk->code & 6 ? 0 : walk->code & ~1ULL;
	}
	return 0;
}

/* Whether the word is a pointer to an object of V8's: its lowest bits are 01. */
static __always_inline bool is_v8_object(__u64 word)
{
	return (word & 3) == 1;
}

/* Goes from the frame pointer of V8's innermost frame to its SharedFunctionInfo, walk->code; 0: not
 * a frame of JavaScript. Then walk->frame is the next one, or 0. */
__noinline int v8_function(void)
{
	struct python_walk *walk = python_walk();

	if (!walk || !read_python_word(walk, walk->frame - walk->layout.context_below, &walk->word))
		return 0;
	if (!is_v8_object(walk->word)) {
		if (!read_python_word(walk, walk->frame, &walk->frame))
			walk->frame = 0;
		return 0;
	}
	if (!read_python_word(walk, walk->frame - walk->layout.function_below, &walk->word) ||
	    !is_v8_object(walk->word) ||
	    !read_python_word(walk, walk->word - 1 + walk->layout.shared, &walk->code) ||
	    !is_v8_object(walk->code))
		return 0;
	walk->code--;
	return 1;
}

/* The SharedFunctionInfo of the innermost frame; 0: unknown. */
static __always_inline __u64 v8_shared(const struct vp_interpreter *interpreter, __u32 vm,
				       __u64 root, __u64 frame)
{
	struct python_walk *walk = python_walk();

	if (!walk)
		return 0;
	walk->layout = interpreter->layout;
	walk->vm = vm;
	walk->root = root;
	walk->frame = frame;
	walk->page = 1; /* none */
	/* A builtin may have a frame of its own. */
	if (v8_function() || (walk->frame != frame && walk->frame && v8_function()))
		return walk->code;
	return 0;
}

/* The method, code object or SharedFunctionInfo of the innermost frame; 0: unknown. Inline: older
 * kernels limit the stack of nested functions to 512 bytes. */
static __always_inline __u64 interpreted_method(const struct vp_interpreter *interpreter,
						struct kvm_vcpu *vcpu, __u32 pid, __u32 number,
						__u32 tgid, __u32 tid, __u64 root)
{
	__u32 memo = VP_IDENTITY_VCPUS;
	struct vp_identity_vcpu *identity = find_identity(pid, number, &memo);
	__u64 word = 0, hva;

	if (!identity || !root)
		return 0;
	if (interpreter->kind == VP_INTERPRETER_PYTHON)
		return python_begin(pid, tgid, tid, identity->vm, root) ? python_code() : 0;
	if ((!read_frame_pointer(vcpu, &word) && !read_arm_frame_pointer(vcpu, &word)) ||
	    word & (sizeof(word) - 1))
		return 0;
	if (interpreter->kind == VP_INTERPRETER_V8)
		return v8_shared(interpreter, identity->vm, root, word);
	hva = hva_of_va(identity->vm, root, word - METHOD_BELOW_FRAME);
	if (!hva || bpf_probe_read_user(&word, sizeof(word), (void *)hva))
		return 0;
	return word;
}

#endif
