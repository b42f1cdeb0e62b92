/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slices of a recording (tracks.h) by track, for pictures: each pCPU, vCPU and guest thread has its
 * slices in order of time. Their number is limited: beyond that, short adjacent slices are merged
 * into one, which has their number. No time is lost, and every slice of at least `shortest` ns is
 * kept. */
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
	uint64_t main;       /* ns of it in `state`, which was the longest */
	/* Shares of a merged slice: ns in each state. */
	float parts[VP_TRACK_STATES];
	uint32_t label;  /* in vp_track_store.labels, or VP_NONE */
	uint32_t pcpu;   /* VP_NO_PCPU: none */
	uint32_t merged; /* slices that it was made of, at least 1 */
	enum vp_track_state state;
};

struct vp_stored_track {
	enum vp_stored_track_kind kind;
	uint32_t number; /* of the pCPU, of the vCPU (or VP_VCPU_UNKNOWN), or the guest's tid */
	uint32_t vm;     /* its number; not of a pCPU */
	uint32_t name;   /* of a thread: in `texts`, or VP_NONE */
	VP_VEC(struct vp_stored_slice) slices;
};

/* The thread of the slice, and for a vCPU thread the VM. */
struct vp_track_label {
	uint32_t text; /* in `texts` */
	uint32_t vm;   /* VP_NONE: none */
};

struct vp_track_store {
	size_t most; /* slices */
	size_t slices;
	uint64_t shortest; /* ns; 0: all slices are as recorded */
	struct vp_intern texts;
	struct vp_key_set label_keys;
	struct vp_map track_of;
	size_t threads;
	bool left_out; /* there were more threads of guests than there is room for */
	VP_VEC(struct vp_track_label) labels;
	VP_VEC(struct vp_stored_track) tracks;
};

void vp_track_store_init(struct vp_track_store *store, size_t most);
void vp_track_store_deinit(struct vp_track_store *store);
/* As vp_tracks_options.take. */
void vp_track_store_take(struct vp_track_store *store, const struct vp_track_slice *slice);
/* After the last slice: keeps to the bound. */
void vp_track_store_close(struct vp_track_store *store);

#endif
