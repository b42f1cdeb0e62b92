/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names for every machine of a recording: the symbol map that belongs to each, and how a guest's
 * clock relates to the host's. Missing names are notes, not errors.
 */
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

/* A file that the user names for a VM: NAME=FILE. */
struct vp_naming_file {
	const char *vm, *path;
};
typedef VP_VEC(struct vp_naming_file) vp_naming_files;

struct vp_naming_options {
	const char *directory;   /* of the recording */
	const char *symfs;       /* folder that holds the machines' files, or NULL */
	bool no_host_files;      /* names come from the recording only, not from this machine */
	vp_naming_files maps;    /* guests' dumps */
	vp_naming_files kernels; /* guests' System.map or kallsyms */
};

struct vp_naming_machine {
	struct vp_names *names;  /* NULL: there is no symbol map; its second is the agent's */
	struct vp_names *kernel; /* kernel names that the user gave, or NULL */
	struct vp_orc unwind;    /* of its kernel; without entries: there are no tables */
	struct vp_clock_map clock;
	bool complete; /* the symbol map has its end */
	char *state;   /* one sentence on the symbol map */
	/* With a symbol map from guest memory, that of the agent, as above; empty without an
	 * agent. */
	struct vp_clock_map agent_clock;
	char *agent_state;
};

struct vp_naming {
	struct vp_naming_machine host;
	VP_VEC(struct vp_naming_machine) vms; /* by number of the VM */
	VP_VEC(char *) notes;
};

/* Errors: only files that the user named; whatever else is missing is in states and notes. */
struct vp_error *vp_naming_load(const struct vp_naming_options *options,
				const struct vp_recording *recording, const vp_vms *vms,
				const vp_stream_readers *streams,
				struct vp_naming *ret) VP_MUST_CHECK;
void vp_naming_deinit(struct vp_naming *naming);
/* A sentence on this machine's files that gave names, to be freed; NULL: none did. */
char *vp_naming_files_used(const struct vp_naming *naming);
/* The names of a VM, or with VP_NONE those of the host; never NULL. */
const struct vp_naming_machine *vp_naming_machine(const struct vp_naming *naming, uint32_t vm);

/*
 * Host times between which `space` stays the answer for its root or pid; `from` > `to` if it is
 * good for one look-up only.
 */
void vp_naming_lifetime(const struct vp_naming_machine *machine, uint32_t space, uint64_t *from,
			uint64_t *to);
/* Host times around `time` between which no process of the machine begins or ends. */
void vp_naming_period(const struct vp_naming_machine *machine, uint64_t time, uint64_t *from,
		      uint64_t *to);

#endif
