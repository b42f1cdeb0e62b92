/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of a Python process's sampled code objects, each valid from a time on. */
#ifndef VP_RUNTIME_PYTHON_NAMES_H
#define VP_RUNTIME_PYTHON_NAMES_H

#include "runtime/code_names.h"
#include "runtime/python.h"

/* Notes a sample if the code's identity was compared shortly before; false: it was not. */
bool vp_python_names_lately(struct vp_code_names *names, uint64_t code, uint64_t time_ns);
/* Notes a sample of the code object at `time_ns`; false: it has no name. */
bool vp_python_names_see(struct vp_code_names *names, struct vp_python *python, uint64_t code,
			 uint64_t time_ns);

#endif
