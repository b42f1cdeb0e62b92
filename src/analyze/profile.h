/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile: where the ticks of a recording went, by function and process: a view's totals as rows
 * in order.
 */
#ifndef VP_ANALYZE_PROFILE_H
#define VP_ANALYZE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/view.h"

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
	unsigned columns;  /* enum vp_frame_column; 0: the view's usual ones */
	bool per_process;  /* usual columns, and the pid */
	bool chains;       /* call chains, too: stacks and what rows' callees took */
	bool needs_chains; /* a recording without call chains is an error */
	bool
	    by_callees; /* rows with most samples of their own and of what they called come first */
	const struct vp_sample_sink *sink; /* who wants the samples one by one too, or NULL */
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

struct vp_profile {
	enum vp_view view;
	unsigned columns;
	struct vp_intern texts;
	vp_profile_parts parts;
	VP_VEC(struct vp_profile_row) rows;
	vp_profile_reasons reasons;
	vp_profile_nodes nodes;
	uint64_t walks[VP_WALKS][VP_WALK_ENDS];
	uint64_t routes[VP_ROUTES];
	uint64_t guest_samples;
	uint64_t unattributed; /* samples whose function is not known */
	uint64_t ticks;        /* of all pCPUs, whatever the view shows */
	uint64_t late, filled; /* ticks taken late; filled in for idle pCPUs */
	uint64_t no_root;      /* guest samples without address-space root */
	uint64_t first, last;  /* ns; of the records */
};

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
