/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Problems of a recording: lost records, damaged bytes, a missing end. */
#ifndef VP_ANALYZE_COMMON_HEALTH_H
#define VP_ANALYZE_COMMON_HEALTH_H

#include "base/macros.h"
#include "base/vec.h"
#include "schema/vm.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_reader.h"

struct vp_health_stream {
	char *path;
	uint32_t cpu;
	enum vp_stream_class class;
	struct vp_stream_health health;
};

struct vp_health {
	unsigned classes; /* classes (VP_STREAMS()) of the streams that are read */
	VP_VEC(struct vp_health_stream) streams;
	uint64_t records, lost, damaged;
	uint32_t cut_off; /* streams that end within a packet */
};

typedef VP_VEC(char *) vp_sentences;

/* Adds the results of reading the streams; call it after the last record. */
void vp_health_add(const vp_stream_readers *streams, struct vp_health *health);
void vp_health_deinit(struct vp_health *health);
/* Number of lost records of these streams, from the streams or from the recorder, whichever is
 * larger. */
uint64_t vp_health_lost(const struct vp_health *health, const struct vp_recording *recording);
/* Number of records per stream class, and of lost ones. For an interrupted recording they are known
 * only for the streams that were read. */
struct vp_losses {
	uint64_t records[VP_STREAM_CLASSES], lost[VP_STREAM_CLASSES];
	uint64_t period_ns; /* time that a sample represents */
};
void vp_health_losses(const struct vp_health *health, const struct vp_recording *recording,
		      struct vp_losses *ret);
/* Appends a sentence per problem. */
void vp_health_sentences(const struct vp_health *health, const struct vp_recording *recording,
			 vp_sentences *sentences);

/* Reads `recording` and `vms`; if `vms` is damaged, names of VMs are missing and there is a
 * sentence about it. */
struct vp_error *vp_recording_open(const char *directory, struct vp_recording *recording,
				   vp_vms *vms, vp_sentences *sentences) VP_MUST_CHECK;

#endif
