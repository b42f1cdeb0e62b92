/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call trees without frame pointers: compiled with -O2 -fomit-frame-pointer, as programs are. Each
 * has `leaf` called at its end. */
#include "call_trees.h"

#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#define NOT_INLINE __attribute__((noipa))

static void (*leaf)(void);
static volatile unsigned sink;

NOT_INLINE void tree_level_6(unsigned x)
{
	sink += x;
	leaf();
	sink += x;
}

/* Saves all registers that it must. */
NOT_INLINE void tree_level_5(unsigned x)
{
	unsigned a = sink + x, b = sink + a, c = sink + b, d = sink + c, e = sink + d, f = sink + e;

	tree_level_6(a + b);
	sink += a ^ b ^ c ^ d ^ e ^ f;
}

/* Its frame's size is known when it runs: it needs a frame pointer. */
NOT_INLINE void tree_level_4(unsigned x)
{
	char *bytes = alloca(x % 100 + 40);

	memset(bytes, (int)x, x % 100 + 40);
	tree_level_5(x);
	sink += (unsigned)bytes[x % 10];
}

/* Its stack is aligned by its own code: the CFA is an expression. */
NOT_INLINE void tree_level_3(unsigned x)
{
	_Alignas(64) volatile char bytes[256];

	bytes[x % 256] = 1;
	tree_level_4(x + (unsigned)bytes[x % 256]);
	bytes[x % 256] = 2;
}

NOT_INLINE void tree_level_2(unsigned x)
{
	volatile char bytes[600];

	bytes[x % 600] = 1;
	tree_level_3(x + (unsigned)bytes[x % 600]);
	bytes[x % 600] = 2;
}

NOT_INLINE void tree_level_1(unsigned x)
{
	tree_level_2(x + 1);
	sink++;
}

void tree_plain(void (*at_end)(void))
{
	leaf = at_end;
	tree_level_1(7);
	sink++;
}

static unsigned compared;

NOT_INLINE int tree_compare(const void *left, const void *right)
{
	int a, b;

	memcpy(&a, left, sizeof(a));
	memcpy(&b, right, sizeof(b));
	if (compared++ == 3)
		leaf();
	return a < b ? -1 : a > b;
}

void tree_sorted(void (*at_end)(void))
{
	int numbers[16];

	leaf = at_end;
	compared = 0;
	for (int i = 0; i < 16; i++)
		numbers[i] = (i * 7 + 3) % 16;
	qsort(numbers, 16, sizeof(*numbers), tree_compare);
	sink += (unsigned)numbers[3];
}

static void tree_handler(int number)
{
	(void)number;
	tree_level_6(1);
	sink++;
}

NOT_INLINE void tree_interrupted(void)
{
	raise(SIGUSR1);
	sink++;
}

void tree_signal(void (*at_end)(void), int own_stack)
{
	static char bytes[(1 << 16) + 8192]; /* the test copies what is above, too */
	stack_t stack = {.ss_sp = bytes, .ss_size = 1 << 16}, before;
	struct sigaction action = {.sa_handler = tree_handler,
				   .sa_flags = own_stack ? SA_ONSTACK : 0};

	leaf = at_end;
	sigaltstack(&stack, &before);
	sigaction(SIGUSR1, &action, NULL);
	tree_interrupted();
	signal(SIGUSR1, SIG_DFL);
	sigaltstack(&before, NULL);
}

static jmp_buf stopped;

static _Unwind_Reason_Code stop_at_end(int version, _Unwind_Action actions,
				       _Unwind_Exception_Class kind,
				       struct _Unwind_Exception *exception,
				       struct _Unwind_Context *context, void *parameter)
{
	(void)version, (void)kind, (void)exception, (void)context, (void)parameter;
	if (actions & _UA_END_OF_STACK)
		longjmp(stopped, 1);
	return _URC_NO_REASON;
}

NOT_INLINE void tree_cleanup(unsigned *x)
{
	tree_level_6(*x);
	sink++;
}

static struct _Unwind_Exception exception;

NOT_INLINE void tree_throws(unsigned x)
{
	sink += x;
	_Unwind_ForcedUnwind(&exception, stop_at_end, NULL);
}

/* As a destructor, which an exception runs. */
NOT_INLINE void tree_with_cleanup(unsigned x)
{
	__attribute__((cleanup(tree_cleanup))) unsigned here = x;

	tree_throws(x + 1);
	sink += here;
}

NOT_INLINE void tree_exception(void (*at_end)(void))
{
	leaf = at_end;
	if (!setjmp(stopped))
		tree_with_cleanup(3);
	sink++;
}

NOT_INLINE __attribute__((noreturn)) void tree_never_returns(void)
{
	leaf();
	longjmp(stopped, 1);
}

/* The call is its last instruction: the address to return to is another function's. */
NOT_INLINE __attribute__((noreturn)) void tree_ends(unsigned x)
{
	volatile char bytes[200];

	bytes[x % 200] = 1;
	sink += (unsigned)bytes[x % 7];
	tree_never_returns();
}

NOT_INLINE void tree_without_return(void (*at_end)(void))
{
	leaf = at_end;
	if (!setjmp(stopped))
		tree_ends(3);
	sink++;
}
