/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile: where the ticks of a recording went, by function and process. Three views count
 * differently (view_host.c, view_guest.c, view_unified.c) and fill the same struct.
 */
#ifndef VP_ANALYZE_PROFILE_H
#define VP_ANALYZE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/naming.h"
#include "base/intern.h"
#include "timeline/timeline.h"

enum vp_view { VP_VIEW_HOST, VP_VIEW_GUEST, VP_VIEW_UNIFIED };

/* What a row counts. OS and USER are the guest's, or the host's in a row without a VM. */
enum vp_kind { VP_KIND_OS, VP_KIND_USER, VP_KIND_IDLE, VP_KIND_STEAL, VP_KIND_VM, VP_KINDS };

/* What rows are told apart by; a column that is left out is not a reason for another row. */
enum vp_profile_column {
	VP_COLUMN_FUNCTION = 1,
	VP_COLUMN_MODULE = 2,
	VP_COLUMN_PROCESS = 4,
	VP_COLUMN_PID = 8,
	VP_COLUMN_VM = 16,
	VP_COLUMN_VCPU = 32,
};

/* How a guest sample got its process or, failing that, its name. */
enum vp_route {
	VP_ROUTE_NONE,
	VP_ROUTE_CR3,    /* process by address-space root */
	VP_ROUTE_KERNEL, /* no process, but a name from the guest kernel's symbols */
	VP_ROUTE_MEMORY, /* process by the guest's current task, read from its memory */
	VP_ROUTES
};

/* Whose frames a walk was after, and how it ended. */
enum vp_walk { VP_WALK_GUEST_USER, VP_WALK_GUEST_KERNEL, VP_WALK_HOST, VP_WALKS };
enum vp_walk_end {
	VP_WALK_WHOLE,
	VP_WALK_NO_FRAME,    /* code without frame pointers */
	VP_WALK_TOO_DEEP,    /* more frames than are taken */
	VP_WALK_UNREADABLE,  /* a page that could not be read then */
	VP_WALK_NO_RULE,     /* kernel code without unwind table */
	VP_WALK_NO_STACK,    /* beyond the bytes of the kernel's stack that were kept */
	VP_WALK_NO_REGISTER, /* a register that is not known there */
	VP_WALK_NOT_WALKED,  /* registers, address space or tables are not known */
	VP_WALK_ENDS
};

struct vp_profile_options {
	enum vp_view view;
	const char *vm;   /* a name or a pid, or NULL */
	const char *comm; /* only rows of this process, or NULL */
	uint64_t pid;     /* only rows of this process, or 0 */
	const int *pcpus; /* only ticks of these pCPUs, if n_pcpus is not 0 */
	size_t n_pcpus;
	bool has_vcpu;
	uint64_t vcpu;
	bool per_vcpu;
	unsigned columns; /* enum vp_profile_column; 0: the view's usual ones */
	bool per_process; /* usual columns, and the pid */
	bool chains;      /* call chains, too: stacks and what rows' callees took */
	bool
	    by_callees; /* rows with most samples of their own and of what they called come first */
};

/* Why the vCPU had left the guest, for the ticks of a steal row. */
struct vp_profile_reason {
	uint32_t row;
	struct vp_exit exit;
	uint64_t count;
};

/* Texts are numbers in vp_profile.texts, or VP_NONE: unknown, or not the same for all of the row.
 */
struct vp_profile_row {
	uint32_t part;
	uint32_t kind;
	uint32_t function, module, process, pid;
	uint32_t vm;   /* VP_NONE: the host */
	uint32_t vcpu; /* its number */
	uint64_t samples;
	uint64_t total;                 /* with chains: in which it is anywhere in the stack */
	uint32_t first_reason, reasons; /* in vp_profile.reasons, most frequent first */
};

/* A place in the tree of stacks: a row, called by that of its parent. */
struct vp_profile_node {
	uint32_t parent; /* a lower number; VP_NONE: nobody called it */
	uint32_t row;
	uint64_t samples; /* of stacks that end here */
};

/* The whole of a view, or one vCPU of it. */
struct vp_profile_part {
	uint32_t vm;   /* VP_NONE: not of one VM */
	uint32_t vcpu; /* its number; VP_NONE: all */
	uint64_t samples;
	uint64_t kinds[VP_KINDS];
	size_t first_row, rows; /* most samples first */
};

struct vp_profile {
	enum vp_view view;
	unsigned columns;
	struct vp_intern texts;
	VP_VEC(struct vp_profile_part) parts;
	VP_VEC(struct vp_profile_row) rows;
	VP_VEC(struct vp_profile_reason) reasons;
	VP_VEC(struct vp_profile_node) nodes;
	uint64_t walks[VP_WALKS][VP_WALK_ENDS];
	uint64_t routes[VP_ROUTES];
	uint64_t guest_samples;
	uint64_t unattributed; /* samples whose function is not known */
	uint64_t ticks;        /* of all pCPUs, whatever the view shows */
	uint64_t late, filled; /* ticks taken late; filled in for idle pCPUs */
	uint64_t no_root;      /* guest samples without address-space root */
	uint64_t first, last;  /* ns; of the records */
};

const char *vp_route_name(enum vp_route route);
const char *vp_kind_name(uint32_t kind);
const char *vp_walk_name(enum vp_walk walk);
const char *vp_walk_end_name(enum vp_walk_end end);

/* The VMs that `vm` (a name or a pid) means, as a new array of flags; all if it is NULL. */
struct vp_error *vp_profile_choose_vms(const vp_vms *vms, const char *vm, bool **ret) VP_MUST_CHECK;

/* Goes through the whole recording. `vms` may grow. Errors: an unknown VM, or none for view guest.
 */
struct vp_error *vp_profile_make(const struct vp_profile_options *options,
				 const struct vp_recording *recording, vp_vms *vms,
				 const vp_stream_readers *streams, const struct vp_naming *naming,
				 struct vp_profile *ret) VP_MUST_CHECK;
void vp_profile_deinit(struct vp_profile *profile);

/* The part's rows, or NULL if it has none. */
static inline const struct vp_profile_row *vp_profile_rows(const struct vp_profile *profile,
							   const struct vp_profile_part *part)
{
	return part->rows ? &profile->rows.at[part->first_row] : NULL;
}

static inline const char *vp_profile_text(const struct vp_profile *profile, uint32_t text)
{
	return text == VP_NONE ? NULL : vp_intern_text(&profile->texts, text);
}

#endif
