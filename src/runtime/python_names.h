/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of a Python process's sampled code objects, each valid from a time on. */
#ifndef VP_RUNTIME_PYTHON_NAMES_H
#define VP_RUNTIME_PYTHON_NAMES_H

#include "runtime/code_names.h"
#include "runtime/python.h"

/* Notes a sample of the code object at `time_ns`; false: it has no name. */
bool vp_python_names_see(struct vp_code_names *names, struct vp_python *python, uint64_t code,
			 uint64_t time_ns);

#endif
