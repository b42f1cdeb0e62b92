/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the programs that write events (schema/trace_records.h), and hands the records over. */
#ifndef VP_COLLECT_PROGRAMS_TRACER_H
#define VP_COLLECT_PROGRAMS_TRACER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "collect/programs/exit_event.h"
#include "collect/programs/identity.h"
#include "collect/programs/rings.h"
#include "schema/trace_event.h"

struct vp_tracer;

struct vp_kernel_btf;

struct vp_tracer_options {
	unsigned sets;      /* bits of enum vp_trace_set */
	size_t ring_bytes;  /* per pCPU: a power of two, at least a page */
	vp_records_fn take; /* gets records of events, and vp_tasks that name their threads */
	void *context;
	const struct vp_exit_event *exit_event; /* NULL, or opened before */
	struct vp_kernel_btf *kernel;           /* read before, or NULL */
};

/* Loads and attaches the programs of the sets. Nothing is written yet. */
struct vp_error *vp_tracer_open(const struct vp_tracer_options *options,
				struct vp_tracer **ret) VP_MUST_CHECK;
void vp_tracer_begin(struct vp_tracer *tracer);
/* A descriptor that can be read once a good part of a ring is full. */
int vp_tracer_fd(const struct vp_tracer *tracer);
/* Hands over what there is. */
struct vp_error *vp_tracer_drain(struct vp_tracer *tracer) VP_MUST_CHECK;
/* Writes no more; what is left can still be drained. */
void vp_tracer_end(struct vp_tracer *tracer);
void vp_tracer_free(struct vp_tracer *tracer);

/* Whether the address of the guest kernel's switch counter is known. */
bool vp_tracer_can_see(const struct vp_guest_finding *finding);
/* Enables guest switches of such a guest, with the set `guest`: as vp_identity_set(). */
struct vp_error *vp_tracer_identify(struct vp_tracer *tracer, uint32_t number,
				    const struct vp_guest_state *state,
				    const struct vp_guest_finding *finding) VP_MUST_CHECK;
/* Ends that for the VM of VMM process `pid`; as long as that runs, the trace has a mark. */
void vp_tracer_forget(struct vp_tracer *tracer, uint32_t pid);
struct vp_identity *vp_tracer_identity(struct vp_tracer *tracer);

/* Records of that pCPU that found no room, since the start. */
uint64_t vp_tracer_lost(const struct vp_tracer *tracer, uint32_t pcpu);
/* Events that the kernel told no program, because it was at work on the pCPU already. */
uint64_t vp_tracer_missed(const struct vp_tracer *tracer);
/* A sentence on what is not available on this machine, or NULL. */
const char *vp_tracer_missing(const struct vp_tracer *tracer);

#endif
