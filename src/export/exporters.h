/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The exporters; cmd/common/formats.c lists them with the formats of reports. */
#ifndef VP_EXPORT_EXPORTERS_H
#define VP_EXPORT_EXPORTERS_H

#include "analyze/report/export.h"

/* One line per stack, for flame graph tools: MACHINE;PROCESS;FUNCTION COUNT; with stacks, all
 * functions, outermost first. */
const struct vp_exporter *vp_exporter_folded(void);
/* Samples in the format of perf script, and slices as lines. */
const struct vp_exporter *vp_exporter_script(void);
/* One JSON object per line: the recording, then each sample and each slice. */
const struct vp_exporter *vp_exporter_jsonl(void);
/* CSV: one line per sample and slice. */
const struct vp_exporter *vp_exporter_csv(void);
/* JSON events for chrome://tracing. */
const struct vp_exporter *vp_exporter_chrome(void);
/* Profiles with stacks: JSON for speedscope, protocol buffers for pprof. */
const struct vp_exporter *vp_exporter_speedscope(void);
const struct vp_exporter *vp_exporter_pprof(void);
/* The same for stores of profiles, with few labels: requests of Pyroscope and Parca, as JSON. */
const struct vp_exporter *vp_exporter_pyroscope(void);
const struct vp_exporter *vp_exporter_parca(void);
/* One OpenTelemetry profile per machine. */
const struct vp_exporter *vp_exporter_otlp(void);
/* A Perfetto trace (protocol buffers). */
const struct vp_exporter *vp_exporter_perfetto(void);
/* A directory that perf can read as perf.data. */
const struct vp_exporter *vp_exporter_perf(void);
/* A directory of CTF traces with LTTng's layout. */
const struct vp_exporter *vp_exporter_ctf(void);
/* A directory of trace-cmd files. */
const struct vp_exporter *vp_exporter_tracedat(void);

#endif
