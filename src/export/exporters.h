/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The exporters; cmd/common/formats.c lists them with the formats of reports. */
#ifndef VP_EXPORT_EXPORTERS_H
#define VP_EXPORT_EXPORTERS_H

#include "analyze/report/export.h"

/* One line per stack, as flame graph tools read it: MACHINE;PROCESS;FUNCTION COUNT, with call
 * chains all functions from the outermost on. */
const struct vp_exporter *vp_exporter_folded(void);
/* Each sample as perf script prints it, and each slice as a line. */
const struct vp_exporter *vp_exporter_script(void);
/* A JSON object per line: what was recorded, then each sample and each slice. */
const struct vp_exporter *vp_exporter_jsonl(void);
/* Values separated by commas: a line for each sample, slice and period. */
const struct vp_exporter *vp_exporter_csv(void);
/* Events in JSON, of chrome://tracing. */
const struct vp_exporter *vp_exporter_chrome(void);
/* Profiles of stacks: speedscope's JSON, pprof's protocol buffer. */
const struct vp_exporter *vp_exporter_speedscope(void);
const struct vp_exporter *vp_exporter_pprof(void);
/* A trace of protocol buffers, Perfetto's. */
const struct vp_exporter *vp_exporter_perfetto(void);
/* A directory that perf reads as perf.data. */
const struct vp_exporter *vp_exporter_perf(void);
/* A directory of CTF traces in LTTng's layout. */
const struct vp_exporter *vp_exporter_ctf(void);
/* A directory of trace-cmd's files. */
const struct vp_exporter *vp_exporter_tracedat(void);

#endif
