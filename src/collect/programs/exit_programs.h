/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs at VM exits and entries that call the programs of another instrument. */
#ifndef VP_COLLECT_PROGRAMS_EXIT_PROGRAMS_H
#define VP_COLLECT_PROGRAMS_EXIT_PROGRAMS_H

/* Descriptors of programs whose exit_hook() and entry_hook() can be replaced; 0: none. */
struct vp_exit_programs {
	int exit, entry;
};

#endif
