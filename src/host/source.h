/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where records come from: programs in the kernel, perf's events, agents. Each source is a file of
 * its own here, with a line in probe.c's list; what it can do on this host `vperf check` asks it.
 * How it is opened and drained is its instrument's business (session/instrument.h).
 */
#ifndef VP_HOST_SOURCE_H
#define VP_HOST_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* A thing that this host may lack. */
struct vp_probe {
	const char *name;
	const char *cost; /* of doing without it */
	bool needed;      /* nothing can be recorded without */
	/* True if it is there; `detail` gets what was found or why not. */
	bool (*run)(char *detail, size_t size);
};

struct vp_source {
	const struct vp_probe *probes;
	size_t n_probes;
};

/* For a probe: whether it was found, with that detail. */
bool vp_probe_say(bool found, char *detail, size_t size, const char *text);
/* For a probe that opened something, if it could: consumes the error. `missing` is what it lacks
 * all the same, or NULL. */
bool vp_probe_say_opened(struct vp_error *error, const char *missing, char *detail, size_t size);

const struct vp_source *vp_source_host(void);        /* what all others need */
const struct vp_source *vp_source_sampler(void);     /* sampler.c */
const struct vp_source *vp_source_account(void);     /* account.c */
const struct vp_source *vp_source_intervals(void);   /* intervals.c */
const struct vp_source *vp_source_trace(void);       /* tracer.c */
const struct vp_source *vp_source_tracepoints(void); /* tracepoints.c */
const struct vp_source *vp_source_conditions(void);  /* conditions.c */
const struct vp_source *vp_source_lend(void);        /* lend.c */
const struct vp_source *vp_source_machine(void);     /* what does not depend on the hypervisor */

#endif
