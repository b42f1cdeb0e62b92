/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the profile. */
#ifndef VP_SESSION_INSTRUMENT_PROFILE_PRIVATE_H
#define VP_SESSION_INSTRUMENT_PROFILE_PRIVATE_H

#include "base/vec.h"
#include "collect/programs/sampler.h"
#include "collect/programs/trigger.h"
#include "schema/records.h"
#include "session/admit.h"
#include "session/instrument.h"
#include "session/instrument_profile.h"

enum { VP_PROFILE_ADMISSIONS = 32 };

/* State of a pCPU from its latest records. */
struct vp_profile_stream {
	uint32_t tid; /* the thread whose name was recorded last */
	char comm[VP_COMM_SIZE];
	uint64_t late_from; /* a sample after this time is more than a period late */
	uint64_t lost;      /* records lost before this drain */
	uint64_t events;    /* weight of the next sample; 0: that of the sampling event */
	uint64_t last_time; /* of the last record that does not belong to the next sample */
	bool may_fill;      /* a gap in this drain is not a loss: no record was lost */
	/* Cached admissions, by thread: vCPUs take turns on a pCPU. */
	struct vp_admission admissions[VP_PROFILE_ADMISSIONS];
};

struct vp_profile_instrument {
	struct vp_instrument base;
	struct vp_instrument_profile_options options;
	struct vp_trigger trigger;
	struct vp_sampler *sampler;
	VP_VEC(struct vp_profile_stream) streams; /* by pCPU */
	uint64_t samples, late;
	/* With VP_WEIGHTING_EVENTS: events that the samples represent, in total and at most per
	 * sample. */
	uint64_t events, max_events;
};

/* The state of that pCPU. */
struct vp_profile_stream *vp_profile_stream(struct vp_profile_instrument *profile, uint32_t pcpu);
/* A vp_records_fn that writes records to the trace; `context` is the profile. */
void vp_profile_ingest(void *context, uint32_t pcpu, char *records, size_t size);
/* Replaces copies of stacks among the records by call chains, in place; returns their new size. */
size_t vp_profile_unwind_stacks(struct vp_profile_instrument *profile, char *records, size_t size);

#endif
