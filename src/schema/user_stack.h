/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A copy of a program's registers and stack, passed from the sampling program to the reader of the
 * guest's memory. It has a record header but is never written to a recording: the call chain
 * replaces it.
 */
#ifndef VP_SCHEMA_USER_STACK_H
#define VP_SCHEMA_USER_STACK_H

#include <linux/types.h>

enum {
	VP_ID_USER_STACK = 0xfff0,  /* not a record of the schema */
	VP_ID_INTERPRETED = 0xfff1, /* the same */
	VP_INTERPRETED_FRAMES = 64,
	/* Maximum size of a copy, see user_stack_bytes(). */
	VP_USER_STACK_BYTES = 32768,
	/* Bytes below the stack pointer (red zone), where leaf functions may save registers. */
	VP_USER_STACK_BELOW = 128,
	/* In DWARF order: x86-64 has 17, of which the last is RIP; 64-bit Arm x0 to x30, SP, PC. */
	VP_USER_REGISTERS = 33,
	VP_USER_X86_REGISTERS = 17,
	VP_USER_X86_BP = 6,
	VP_USER_X86_SP = 7,
	VP_USER_X86_IP = 16,
	/* The sizes of copies are kept by a hash of the address space, in these units. */
	VP_STACK_SIZES = 1024,
	VP_STACK_UNIT = 512,
	/* Minimum size of a copy: the chain that replaces it must fit. */
	VP_USER_STACK_LEAST = 2560,
};

struct vp_user_stack {
	__u64 time;
	__u16 id;
	__u16 size; /* total size, a multiple of 8 */
	__u32 vm;   /* process of the VMM */
	__u32 tid;  /* thread of the sample */
	__u32 guest_pid;
	__u64 task;       /* guest address of its task_struct */
	__u64 as_root;    /* page-table root */
	__u64 known;      /* bit per register */
	__u32 bytes;      /* valid bytes of `stack`; the rest is undefined */
	__u32 has_frames; /* the chain by frame pointers follows */
	__u64 from;       /* guest address of the first byte of `stack` */
	__u64 registers[VP_USER_REGISTERS];
	unsigned char stack[VP_USER_STACK_BYTES];
};

/* With page-table isolation a process has two adjacent page-table roots. */
#define VP_STACK_SIZE_OF(as_root) ((as_root) >> 13 & (VP_STACK_SIZES - 1))

/* A frame is the address of a code object. Its lowest bit: it is the outermost one that its
 * function of the interpreter executes. */
#define VP_INTERPRETED_ENTRY 1ULL

/* The frames of an interpreter in that thread, innermost first: before the copy of the stack. */
struct vp_interpreted {
	__u64 time;
	__u16 id;
	__u16 size;
	__u32 vm, tid;
	__u32 count;
	__u64 frames[VP_INTERPRETED_FRAMES];
};

#endif
