/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of a process's generated code and interpreted functions, each valid from a time on.
 * Runtimes free code and reuse its address: if the identity of the code there has changed, its name
 * is read again. */
#ifndef VP_RUNTIME_CODE_NAMES_H
#define VP_RUNTIME_CODE_NAMES_H

#include "base/buffer.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"

enum { VP_CODE_MAX_NAMES = 1 << 20 };

struct vp_code_birth {
	uint64_t addr, size;
	uint64_t from_ns;
	uint64_t last_ns;    /* time of the last sample */
	uint64_t checked_ns; /* time of the last comparison of identities */
	uint64_t identity;   /* changes when the address is reused */
	uint32_t name;       /* index in `texts` */
	uint32_t before;     /* index + 1 of the previous code at the address; 0: none */
};

struct vp_code_names {
	VP_VEC(struct vp_code_birth) births;
	struct vp_map latest; /* address → its latest code */
	struct vp_intern texts;
	uint64_t failed; /* number of failed name lookups */
};

void vp_code_names_deinit(struct vp_code_names *names);
/* Returns the latest code at that address; NULL: none, or its identity differs. */
struct vp_code_birth *vp_code_names_known(struct vp_code_names *names, uint64_t addr,
					  uint64_t identity);
/* Extends the code's lifetime to another sample. Samples of several pCPUs are not in time order. */
void vp_code_names_again(struct vp_code_names *names, struct vp_code_birth *birth,
			 uint64_t time_ns);
/* Notes a sample if the identity there was compared shortly before; false: it was not. */
bool vp_code_names_lately(struct vp_code_names *names, uint64_t addr, uint64_t time_ns);
/* Adds code; false: VP_CODE_MAX_NAMES reached. */
bool vp_code_names_add(struct vp_code_names *names, const struct vp_code_birth *birth);

/* Interpreted functions, identified by the address of their data. */
struct vp_code_source {
	/* A value that changes if the address is reused; false: no function. */
	bool (*identity)(void *context, uint64_t addr, uint64_t *ret);
	/* Appends the name; false: none. */
	bool (*name)(void *context, uint64_t addr, struct vp_buffer *name);
	void *context;
};

/* Notes a sample of the function at `time_ns`; false: it has no name. */
bool vp_code_names_see(struct vp_code_names *names, const struct vp_code_source *source,
		       uint64_t addr, uint64_t time_ns);

#endif
