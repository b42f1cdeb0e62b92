/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads the programs that write events (schema/trace_records.h) and passes on their records. */
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
	vp_records_fn take; /* receives events, and vp_tasks with the names of their threads */
	void *context;
	const struct vp_exit_event *exit_event; /* already open, or NULL */
	struct vp_kernel_btf *kernel;           /* already parsed, or NULL */
};

/* Loads and attaches the programs of the sets. Nothing is recorded yet. */
struct vp_error *vp_tracer_open(const struct vp_tracer_options *options,
				struct vp_tracer **ret) VP_MUST_CHECK;
void vp_tracer_begin(struct vp_tracer *tracer);
/* A descriptor that is readable when a good part of a ring is full. */
int vp_tracer_fd(const struct vp_tracer *tracer);
/* Passes on available records. */
struct vp_error *vp_tracer_drain(struct vp_tracer *tracer) VP_MUST_CHECK;
/* Stops recording; the rest can still be drained. */
void vp_tracer_end(struct vp_tracer *tracer);
void vp_tracer_free(struct vp_tracer *tracer);

/* Whether the address of the guest kernel's switch counter is known. */
bool vp_tracer_can_see(const struct vp_guest_finding *finding);
/* With the set `guest`, enables guest switches of that guest: as vp_identity_set(). */
struct vp_error *vp_tracer_identify(struct vp_tracer *tracer, uint32_t number,
				    const struct vp_guest_state *state,
				    const struct vp_guest_finding *finding) VP_MUST_CHECK;
/* Disables them for the VM of VMM process `pid`; while that runs, the trace has a mark. */
void vp_tracer_forget(struct vp_tracer *tracer, uint32_t pid);
struct vp_identity *vp_tracer_identity(struct vp_tracer *tracer);

/* Number of records of that pCPU lost since the start. */
uint64_t vp_tracer_lost(const struct vp_tracer *tracer, uint32_t pcpu);
/* Number of events missed because a BPF program was running on the pCPU already. */
uint64_t vp_tracer_missed(const struct vp_tracer *tracer);
/* A sentence about data not available on this machine, or NULL. */
const char *vp_tracer_missing(const struct vp_tracer *tracer);

#endif
