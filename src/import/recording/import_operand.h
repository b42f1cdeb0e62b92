/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses an operand of 'vperf import': PATH, NAME:PATH or NAME@PID:PATH. */
#ifndef VP_IMPORT_RECORDING_IMPORT_OPERAND_H
#define VP_IMPORT_RECORDING_IMPORT_OPERAND_H

#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

struct vp_import_operand {
	char *path;
	char *name;   /* name of the guest's VM, or NULL */
	uint32_t pid; /* pid of its VMM, or tid of a vCPU thread; or 0 */
};

/* An existing path is taken as PATH. Errors: an invalid name or number. */
struct vp_error *vp_import_operand_parse(const char *text,
					 struct vp_import_operand *ret) VP_MUST_CHECK;
void vp_import_operand_deinit(struct vp_import_operand *operand);

#endif
