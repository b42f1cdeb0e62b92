/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Data sources at the level of the kernel: BPF programs, perf events, agents. Each source is a file
 * of its own with a line in the list of probe.c. Here it lists its requirements for `vperf check`;
 * its instrument (session/instrument.h) opens and drains it.
 */
#ifndef VP_HOST_SOURCE_H
#define VP_HOST_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* A feature that this host may lack. */
struct vp_probe {
	const char *name;
	const char *cost; /* limitation without it */
	bool needed;      /* nothing can be recorded without it */
	/* True if available; `detail`: what was found, or why not. */
	bool (*run)(char *detail, size_t size);
};

struct vp_source {
	const struct vp_probe *probes;
	size_t n_probes;
};

/* Result of a check: returns `found` and sets the detail. */
bool vp_probe_report(bool found, char *detail, size_t size, const char *text);
/* Result of a check that tried to open something; consumes the error. `missing`: NULL, or a
 * feature that it lacks even so. */
bool vp_probe_report_opened(struct vp_error *error, const char *missing, char *detail, size_t size);

const struct vp_source *vp_source_host(void);        /* requirements of all others */
const struct vp_source *vp_source_sampler(void);     /* sampler.c */
const struct vp_source *vp_source_account(void);     /* account.c */
const struct vp_source *vp_source_intervals(void);   /* intervals.c */
const struct vp_source *vp_source_trace(void);       /* tracer.c */
const struct vp_source *vp_source_tracepoints(void); /* tracepoints.c */
const struct vp_source *vp_source_conditions(void);  /* conditions.c */
const struct vp_source *vp_source_lend(void);        /* lend.c */
const struct vp_source *vp_source_machine(void); /* checks that do not depend on the hypervisor */

#endif
