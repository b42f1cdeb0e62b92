/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call trees without frame pointers, in code of their own; each calls `at_end` once. */
#ifndef VP_TESTS_CALL_TREES_H
#define VP_TESTS_CALL_TREES_H

void tree_level_1(unsigned x);
void tree_level_2(unsigned x);
void tree_level_3(unsigned x);
void tree_level_4(unsigned x);
void tree_level_5(unsigned x);
void tree_level_6(unsigned x);
int tree_compare(const void *left, const void *right);
void tree_interrupted(void);
void tree_cleanup(unsigned *x);
void tree_with_cleanup(unsigned x);
void tree_throws(unsigned x);
void tree_never_returns(void) __attribute__((noreturn));
void tree_ends(unsigned x) __attribute__((noreturn));

/* tree_level_1 … tree_level_6 */
void tree_plain(void (*at_end)(void));
/* qsort() … tree_compare */
void tree_sorted(void (*at_end)(void));
/* tree_interrupted, raise(), the signal's frame, tree_level_6; on a stack of its own if wanted */
void tree_signal(void (*at_end)(void), int own_stack);
/* tree_exception, tree_with_cleanup, which an exception leaves, tree_cleanup, tree_level_6 */
void tree_exception(void (*at_end)(void));
/* tree_without_return, tree_ends, which ends with its call, tree_never_returns */
void tree_without_return(void (*at_end)(void));

#endif
