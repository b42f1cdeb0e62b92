/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands shared by guest_lend.bpf.c and lend_kernel.c, in addition to protocol/lent.h. */
#ifndef VP_GUEST_LEND_COMMAND_H
#define VP_GUEST_LEND_COMMAND_H

enum { VP_LEND_MAX_CPUS = 512, VP_LEND_MAX_ADOPTED = 8192 };

/* Commands of the program `command`, by its second argument: none; set the marker of all cells;
 * give the thread of that slot the extra cell; count that thread's children. */
enum vp_lend_command { VP_LEND_OWN, VP_LEND_MARK, VP_LEND_CLEAR, VP_LEND_INHERIT };

#endif
