/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A profile: samples of a recording by function and process, as sorted rows from a view's
 * totals. */
#ifndef VP_ANALYZE_PROFILE_PROFILE_H
#define VP_ANALYZE_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze/profile/pass.h"
#include "analyze/profile/resolve.h"
#include "analyze/profile/stack.h"
#include "analyze/profile/tick_counts.h"
#include "analyze/profile/totals.h"
#include "analyze/profile/view.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/vm.h"
#include "store/trace_reader.h"

/* Texts are numbers in vp_profile.texts, or VP_NONE: unknown, or not unique in the row. */
struct vp_profile_row {
	uint32_t part;
	uint32_t kind;
	uint32_t function, module, process, pid;
	uint32_t vm;   /* VP_NONE: the host */
	uint32_t vcpu; /* its number */
	uint64_t samples;
	uint64_t total; /* with stacks: samples with the row anywhere in the stack */
	uint32_t first_reason, reasons; /* in vp_profile.reasons, most frequent first */
};

struct vp_profile {
	enum vp_view view;
	unsigned columns;
	struct vp_intern texts;
	vp_profile_parts parts;
	VP_VEC(struct vp_profile_row) rows;
	size_t frames; /* number of distinct frames; same as rows, which do not exist with a sink */
	vp_profile_reasons reasons;
	vp_profile_nodes nodes;
	vp_walk_counts walks;
	uint64_t routes[VP_ROUTES];
	uint64_t unattributed; /* samples without a function */
	struct vp_pass_counts counts;
	uint32_t jobs;        /* number of threads used */
	uint64_t first, last; /* ns; of the records */
};

/*
 * Processes the whole recording with the threads of the options, one segment of time each. The
 * result does not depend on their number. `vms` may grow. Errors: an unknown VM, or no VM for view
 * guest.
 */
struct vp_error *vp_profile_make(const struct vp_profile_options *options,
				 const struct vp_recording *recording, vp_vms *vms,
				 const vp_stream_readers *streams, const struct vp_naming *naming,
				 struct vp_profile *ret) VP_MUST_CHECK;
void vp_profile_deinit(struct vp_profile *profile);

/* Checks that there is one VM for view guest. */
struct vp_error *vp_profile_check_vms(const struct vp_profile_options *options,
				      const vp_vms *vms) VP_MUST_CHECK;
/* Moves frames and counts to a profile without rows; then vp_profile_sort() sorts all of it. */
void vp_profile_take(struct vp_profile *profile, struct vp_frames *frames,
		     struct vp_totals *totals);
void vp_profile_sort(struct vp_profile *profile, bool by_callees);

/* The rows of the part, or NULL. */
static inline const struct vp_profile_row *vp_profile_rows(const struct vp_profile *profile,
							   const struct vp_profile_part *part)
{
	return part->rows ? &profile->rows.at[part->first_row] : NULL;
}

/* The text with that number, owned by the profile, or NULL. */
static inline const char *vp_profile_text(const struct vp_profile *profile, uint32_t text)
{
	return text == VP_NONE ? NULL : vp_intern_text(&profile->texts, text);
}

#endif
