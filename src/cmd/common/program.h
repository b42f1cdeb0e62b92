/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program with commands. */
#ifndef VP_CMD_COMMON_PROGRAM_H
#define VP_CMD_COMMON_PROGRAM_H

#include <stddef.h>

#include "cmd/common/verb.h"

struct vp_program {
	const char *name;
	const char *summary;
	const struct vp_verb *(*const *verbs)(void);
	size_t n_verbs;
};

/* Runs the command in argv; returns the exit status. */
int vp_program_run(const struct vp_program *program, int argc, char **argv);

#endif
