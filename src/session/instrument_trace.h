/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data source: events of the host's scheduler, KVM and interrupts. */
#ifndef VP_SESSION_INSTRUMENT_TRACE_H
#define VP_SESSION_INSTRUMENT_TRACE_H

#include <stddef.h>
#include <stdint.h>

struct vp_instrument_trace_options {
	unsigned sets;     /* bits of enum vp_trace_set */
	size_t ring_bytes; /* per pCPU, a power of two */
};

struct vp_instrument *vp_instrument_trace(const struct vp_instrument_trace_options *options);
/* Writes a record of the BPF programs to the pCPU's stream, with its VM's number. */
void vp_instrument_trace_ingest(void *instrument, uint32_t pcpu, char *record, size_t size);

#endif
