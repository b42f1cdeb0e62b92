/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of a Java process's code, each valid from a time on. Code is replaced and its address
 * reused, so names are read soon after a sample. A compiled method is identified by its compile id,
 * and its name is read once.
 */
#ifndef VP_RUNTIME_JAVA_NAMES_H
#define VP_RUNTIME_JAVA_NAMES_H

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "runtime/java.h"

enum { VP_JAVA_MAX_NAMES = 1 << 20 };

struct vp_java_birth {
	uint64_t addr, size;
	uint64_t from_ns;
	uint64_t last_ns;  /* time of the last sample */
	uint64_t identity; /* changes when the address is reused */
	uint32_t name;     /* index in `texts` */
	uint32_t before;   /* index + 1 of the previous code at the address; 0: none */
};

struct vp_java_names {
	VP_VEC(struct vp_java_birth) births;
	struct vp_map latest; /* address → its latest code */
	struct vp_intern texts;
	uint64_t failed; /* number of failed name lookups */
};

void vp_java_names_deinit(struct vp_java_names *names);
/* Notes a sample at that address at `time_ns`. *ret, unless NULL, is the block. False: no code, or
 * no name. */
bool vp_java_names_see(struct vp_java_names *names, const struct vp_java_vm *vm, uint64_t addr,
		       uint64_t time_ns, struct vp_java_code *ret);
/* Notes a sample of an interpreted method. Its name belongs to the address of the Method. */
bool vp_java_names_see_method(struct vp_java_names *names, const struct vp_java_vm *vm,
			      uint64_t method, uint64_t time_ns);
/* Reads the names of all code at `time_ns`; *damaged: the list is incomplete. */
void vp_java_names_see_all(struct vp_java_names *names, const struct vp_java_vm *vm,
			   uint64_t time_ns, bool *damaged);

#endif
