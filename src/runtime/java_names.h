/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of a Java process's code, each valid from a time on. Code is replaced and its address
 * reused, so names are read soon after a sample. A compiled method is identified by its compile id,
 * and its name is read once. Instructions of methods that were inlined into it have a name of their
 * own from their first sample on.
 */
#ifndef VP_RUNTIME_JAVA_NAMES_H
#define VP_RUNTIME_JAVA_NAMES_H

#include "runtime/code_names.h"
#include "runtime/java.h"

/* Notes a sample at that address at `time_ns`. *ret, unless NULL, is the block. False: no code, or
 * no name. */
bool vp_java_names_see(struct vp_code_names *names, const struct vp_java_vm *vm, uint64_t addr,
		       uint64_t time_ns, struct vp_java_code *ret);
/* Notes a sample of an interpreted method. Its name belongs to the address of the Method. */
bool vp_java_names_see_method(struct vp_code_names *names, struct vp_java_vm *vm, uint64_t method,
			      uint64_t time_ns);
/* Reads the names of all code at `time_ns`; *damaged: the list is incomplete. */
void vp_java_names_see_all(struct vp_code_names *names, const struct vp_java_vm *vm,
			   uint64_t time_ns, bool *damaged);

#endif
