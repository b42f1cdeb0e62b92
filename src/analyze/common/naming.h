/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbol maps of all machines of a recording, and the clocks of guests. Missing names are notes,
 * not errors. */
#ifndef VP_ANALYZE_COMMON_NAMING_H
#define VP_ANALYZE_COMMON_NAMING_H

#include "base/macros.h"
#include "base/vec.h"
#include "maps/orc.h"
#include "schema/vm.h"
#include "store/recording.h"
#include "store/trace_reader.h"
#include "symbol/names.h"
#include "symbol/unwind.h"
#include "timeline/clock_map.h"

/* A file given by the user for a VM: NAME=FILE. */
struct vp_naming_file {
	const char *vm, *path;
};
typedef VP_VEC(struct vp_naming_file) vp_naming_files;

struct vp_naming_options {
	const char *directory;   /* directory of the recording */
	const char *symfs;       /* folder with the machines' files, or NULL */
	bool no_host_files;      /* use only names in the recording, not files of this machine */
	vp_naming_files maps;    /* guests' symbol maps */
	vp_naming_files kernels; /* guests' System.map or kallsyms */
};

struct vp_naming_machine {
	struct vp_names *names;  /* NULL: no symbol map; its fallback is the agent's */
	struct vp_names *kernel; /* kernel names given by the user, or NULL */
	struct vp_orc unwind;    /* unwind tables of its kernel; empty: none */
	struct vp_clock_map clock;
	bool complete; /* the symbol map is complete */
	char *state;   /* a sentence about the symbol map */
	/* If the symbol map is from guest memory: the same about the agent's; empty without an
	 * agent. */
	struct vp_clock_map agent_clock;
	char *agent_state;
};

struct vp_naming {
	struct vp_naming_machine host;
	VP_VEC(struct vp_naming_machine) vms; /* by number of the VM */
	VP_VEC(char *) notes;
};

/* Errors: only about files given by the user; other missing data are in states and notes. */
struct vp_error *vp_naming_load(const struct vp_naming_options *options,
				const struct vp_recording *recording, const vp_vms *vms,
				const vp_stream_readers *streams,
				struct vp_naming *ret) VP_MUST_CHECK;
void vp_naming_deinit(struct vp_naming *naming);
/* A sentence about files of this machine that provided names, to be freed; NULL: none. */
char *vp_naming_files_used(const struct vp_naming *naming);
/* The machine of a VM, or with VP_NONE the host; never NULL. */
const struct vp_naming_machine *vp_naming_machine(const struct vp_naming *naming, uint32_t vm);

/* Host times between which a lookup of the CR3 or pid yields `space`; `from` > `to`: only for this
 * lookup. */
void vp_naming_lifetime(const struct vp_naming_machine *machine, uint32_t space, uint64_t *from,
			uint64_t *to);
/* Host times around `time` between which no process of the machine starts or ends. */
void vp_naming_period(const struct vp_naming_machine *machine, uint64_t time, uint64_t *from,
		      uint64_t *to);

#endif
