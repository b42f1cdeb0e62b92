/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A copy of a program's registers and stack, from the sampling program to the reader of the guest's
 * memory. It has the header of a record, but no such record exists: the call chain replaces it
 * before anything is written.
 */
#ifndef VP_SCHEMA_USER_STACK_H
#define VP_SCHEMA_USER_STACK_H

#include <linux/types.h>

enum {
	VP_ID_USER_STACK = 0xfff0, /* no record has it */
	VP_USER_STACK_BYTES = 4096,
	/* Below the stack pointer: where a function that calls none may have registers saved. */
	VP_USER_STACK_BELOW = 128,
	VP_USER_REGISTERS = 17, /* in DWARF's order: the last one is RIP */
	/* Fewer bytes are not written: its place must do for the chain. */
	VP_USER_STACK_LEAST = 1024,
};

struct vp_user_stack {
	__u64 time;
	__u16 id;
	__u16 size; /* of all of this, a multiple of 8 */
	__u32 vm;   /* process of the VMM */
	__u32 tid;  /* thread of the sample */
	__u32 guest_pid;
	__u64 task;    /* the guest's address of its task_struct */
	__u64 as_root; /* page-table root */
	__u32 known;   /* a bit for each register */
	__u32 bytes;   /* of `stack` that were read, the others are anything */
	__u64 from;    /* address of the first byte of `stack` */
	__u64 registers[VP_USER_REGISTERS];
	unsigned char stack[VP_USER_STACK_BYTES];
};

#endif
