/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A loop whose instructions are known: six each time round. It is at its own address, and no copy
 * of it at another. */
#ifndef VP_TESTS_LAB_KNOWN_LOOP_H
#define VP_TESTS_LAB_KNOWN_LOOP_H

static __attribute__((noinline, noclone)) void known_loop(unsigned long loops)
{
	__asm__ volatile("1:\n"
			 "	nop\n"
			 "	nop\n"
			 "	nop\n"
			 "	nop\n"
#ifdef __aarch64__
			 "	subs %0, %0, #1\n"
			 "	b.ne 1b\n"
#else
			 "	dec %0\n"
			 "	jne 1b\n"
#endif
			 : "+r"(loops)
			 :
			 : "cc");
}

#endif
