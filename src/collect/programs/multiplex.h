/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Multiplexes counter sets: a thread bound to each pCPU enables the set that the BPF programs
 * request. The interrupted thread continues afterwards. */
#ifndef VP_COLLECT_PROGRAMS_MULTIPLEX_H
#define VP_COLLECT_PROGRAMS_MULTIPLEX_H

#include "base/error.h"
#include "base/macros.h"
#include "collect/programs/counter_sets.h"

struct vp_multiplex;

/* Starts the threads. `rings`: descriptors of the pCPUs' ring buffers of struct vp_set_request, in
 * the order of `pcpus`. The counters must outlive them. */
struct vp_error *vp_multiplex_start(const struct vp_counters *counters,
				    const struct vp_pcpus *pcpus, const int *rings,
				    struct vp_multiplex **ret) VP_MUST_CHECK;
/* tid of the thread of the pCPU at that index in `pcpus`. */
uint32_t vp_multiplex_thread(const struct vp_multiplex *multiplex, size_t i);
/* errno of the failure to get real-time priority, without which the threads may have to wait for
 * others; or 0. */
int vp_multiplex_delay(const struct vp_multiplex *multiplex);
/* Ends the threads; NULL is allowed. */
void vp_multiplex_stop(struct vp_multiplex *multiplex);

#endif
