/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What lend.bpf.c and lend_kernel.c share beside protocol/lent.h. */
#ifndef VP_GUEST_LEND_COMMAND_H
#define VP_GUEST_LEND_COMMAND_H

enum { VP_LEND_MOST_CPUS = 512, VP_LEND_MOST_ADOPTED = 8192 };

/* What the program `command` does with its second argument: nothing; has all cells begin with it;
 * makes the thread of that place nobody's; has what that thread makes counted as its family. */
enum vp_lend_command { VP_LEND_OWN, VP_LEND_MARK, VP_LEND_CLEAR, VP_LEND_ADOPT };

#endif
