/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slices of pCPUs, vCPUs and guests' threads: a line each. */
#ifndef VP_RENDER_RENDER_TRACKS_H
#define VP_RENDER_RENDER_TRACKS_H

#include "analyze/trace/tracks.h"
#include "base/clock_text.h"

struct vp_tracks_layout {
	struct vp_tracks *tracks;   /* names of VMs */
	bool of_threads;            /* the guest's thread is whose the track is */
	bool is_first;              /* nothing was printed before: JSON has its version */
	struct vp_clock_text clock; /* of times, in text */
	bool in_export; /* JSON lines are of type "track_slice": exports have "slice" for a state of
			   vCPU accounting */
};

struct vp_tracks_format {
	const char *name;
	/* Before the first slice; or NULL. */
	void (*begin)(struct vp_buffer *out);
	void (*slice)(const struct vp_track_slice *slice, const struct vp_tracks_layout *layout,
		      struct vp_buffer *out);
};

/* text, jsonl or csv; NULL: unknown. */
const struct vp_tracks_format *vp_tracks_format_named(const char *name);

/* "guest", "preempted", …; "exact", "uncertain", NULL if it is not known. */
const char *vp_track_state_name(enum vp_track_state state);
const char *vp_track_certainty_name(enum vp_track_certainty certainty);

#endif
