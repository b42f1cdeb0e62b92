/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Renders slices of pCPUs, vCPUs and guest threads, one per line. */
#ifndef VP_RENDER_RENDER_TRACKS_H
#define VP_RENDER_RENDER_TRACKS_H

#include "analyze/trace/tracks.h"
#include "base/clock_text.h"

struct vp_tracks_layout {
	struct vp_tracks *tracks;   /* source of VM names */
	bool of_threads;            /* the track is that of the guest thread */
	bool is_first;              /* no slice was printed so far: JSON prints its version */
	struct vp_clock_text clock; /* format of times in text */
	bool in_export; /* type of JSON lines is "track_slice": in exports, "slice" is a state of
			   vCPU accounting */
};

struct vp_tracks_format {
	const char *name;
	/* Called before the first slice; or NULL. */
	void (*begin)(struct vp_buffer *out);
	void (*slice)(const struct vp_track_slice *slice, const struct vp_tracks_layout *layout,
		      struct vp_buffer *out);
};

/* The format "text", "jsonl" or "csv"; NULL: unknown name. */
const struct vp_tracks_format *vp_tracks_format_named(const char *name);

/* "guest", "preempted", …; "exact", "uncertain", NULL: unknown. */
const char *vp_track_state_name(enum vp_track_state state);
const char *vp_track_certainty_name(enum vp_track_certainty certainty);

#endif
