/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of a Java process's code, each with the time from which on it is valid. Code is replaced
 * and its place is used again, so names are read soon after the sample. A compiled method is known
 * by its number, and its name is read once.
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
	uint64_t last_ns;  /* when it was seen last */
	uint64_t identity; /* changes if the place is used again */
	uint32_t name;     /* in `texts` */
	uint32_t before;   /* index + 1 of the one that had the place before; 0: none */
};

struct vp_java_names {
	VP_VEC(struct vp_java_birth) births;
	struct vp_map latest; /* address → its latest birth */
	struct vp_intern texts;
	uint64_t failed; /* times that no name was found */
};

void vp_java_names_deinit(struct vp_java_names *names);
/* A sample hit that address at `time_ns`. *ret, unless NULL, is the block. False if there is no
 * code or it has no name. */
bool vp_java_names_see(struct vp_java_names *names, const struct vp_java_vm *vm, uint64_t addr,
		       uint64_t time_ns, struct vp_java_code *ret);
/* The interpreter executed that method then. Its name is that of the Method's address. */
bool vp_java_names_see_method(struct vp_java_names *names, const struct vp_java_vm *vm,
			      uint64_t method, uint64_t time_ns);
/* Reads the names of all code that is there at `time_ns`; *damaged: not all of it. */
void vp_java_names_see_all(struct vp_java_names *names, const struct vp_java_vm *vm,
			   uint64_t time_ns, bool *damaged);

#endif
