/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs at VM exits and entries that call those of another instrument. */
#ifndef VP_COLLECT_PROGRAMS_EXIT_PROGRAMS_H
#define VP_COLLECT_PROGRAMS_EXIT_PROGRAMS_H

/* Descriptors: whose exit_hook() and entry_hook() may be replaced, or 0. */
struct vp_exit_programs {
	int exit, entry;
};

#endif
