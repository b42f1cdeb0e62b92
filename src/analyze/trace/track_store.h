/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slices of a recording (tracks.h) by track, for display: pCPUs, vCPUs and guest threads with
 * slices in order of time. Their number is limited: beyond that, short adjacent slices are merged.
 * No time is lost, and every slice of at least `shortest` ns is kept.
 */
#ifndef VP_ANALYZE_TRACE_TRACK_STORE_H
#define VP_ANALYZE_TRACE_TRACK_STORE_H

#include "analyze/common/key_set.h"
#include "analyze/trace/tracks.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "timeline/guests.h"

enum vp_stored_track_kind { VP_STORED_PCPU, VP_STORED_VCPU, VP_STORED_THREAD };

struct vp_stored_slice {
	uint64_t begin, end; /* CLOCK_MONOTONIC, ns */
	uint64_t main;       /* ns in `state`, the dominant state */
	/* Shares of a merged slice: ns in each state. */
	float parts[VP_TRACK_STATES];
	uint32_t label;  /* in vp_track_store.labels, or VP_NONE */
	uint32_t pcpu;   /* VP_NO_PCPU: none */
	uint32_t merged; /* number of merged slices, at least 1 */
	enum vp_track_state state;
};

struct vp_stored_track {
	enum vp_stored_track_kind kind;
	uint32_t number; /* of the pCPU, of the vCPU (or VP_VCPU_UNKNOWN), or the guest's tid */
	uint32_t vm;     /* number of the VM; not for a pCPU */
	uint32_t name;   /* for a thread: in `texts`, or VP_NONE */
	VP_VEC(struct vp_stored_slice) slices;
};

/* The thread of a slice; for a vCPU thread, also the VM. */
struct vp_track_label {
	uint32_t text; /* in `texts` */
	uint32_t vm;   /* VP_NONE: none */
};

struct vp_track_store {
	size_t most; /* maximum number of slices */
	size_t slices;
	uint64_t shortest; /* ns; 0: all slices are as recorded */
	struct vp_intern texts;
	struct vp_key_set label_keys;
	struct vp_map track_of;
	size_t threads;
	bool left_out; /* there were too many guest threads */
	VP_VEC(struct vp_track_label) labels;
	VP_VEC(struct vp_stored_track) tracks;
};

void vp_track_store_init(struct vp_track_store *store, size_t most);
void vp_track_store_deinit(struct vp_track_store *store);
/* For vp_tracks_options.take. */
void vp_track_store_take(struct vp_track_store *store, const struct vp_track_slice *slice);
/* After the last slice: enforces the limit. */
void vp_track_store_close(struct vp_track_store *store);

#endif
