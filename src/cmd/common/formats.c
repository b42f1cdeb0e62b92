/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/formats.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "render/render_report.h"

static const struct vp_report_format formats[] = {
    {"text", true, vp_render_report_text, NULL}, {"json", true, vp_render_report_json, NULL},
    {"csv", false, vp_render_report_csv, NULL},  {"folded", false, NULL, vp_exporter_folded},
    {"script", false, NULL, vp_exporter_script}, {"jsonl", true, NULL, vp_exporter_jsonl},
};

static const struct vp_export_format exports[] = {
    {"folded", "one line per stack and its samples: flame graph tools", vp_exporter_folded},
    {"speedscope", "stacks with their time: speedscope", vp_exporter_speedscope},
    {"pprof", "stacks with labels vm, vcpu, state: pprof", vp_exporter_pprof},
    {"otlp", "CPU time per VM and process: OpenTelemetry, stores of profiles", vp_exporter_otlp},
    {"pyroscope", "the same as pprof in a request of Pyroscope (JSON)", vp_exporter_pyroscope},
    {"parca", "the same as pprof in a request of Parca (JSON)", vp_exporter_parca},
    {"perfetto", "tracks of pCPUs, vCPUs and guest threads, and samples: Perfetto",
     vp_exporter_perfetto},
    {"chrome", "the same as JSON: chrome://tracing, Perfetto", vp_exporter_chrome},
    {"perf", "a directory for perf report and perf script: VMs are guest machines",
     vp_exporter_perf},
    {"ctf", "a directory of CTF traces of host and guests, with LTTng's event names: Trace Compass",
     vp_exporter_ctf},
    {"babeltrace", "a directory with the recording, uncompressed: babeltrace2", NULL},
    {"trace.dat", "a directory of trace.dat files of host and guests: trace-cmd, KernelShark",
     vp_exporter_tracedat},
    {"csv", "one line per sample and slice", vp_exporter_csv},
    {"jsonl", "the same as JSON lines", vp_exporter_jsonl},
    {"script", "samples and slices as perf script prints them", vp_exporter_script},
};

const struct vp_export_format *vp_export_formats(size_t *count)
{
	*count = VP_ARRAY_SIZE(exports);
	return exports;
}

const struct vp_export_format *vp_export_format_named(const char *name)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(exports); i++)
		if (!strcmp(exports[i].name, name))
			return &exports[i];
	return NULL;
}

const struct vp_report_format *vp_report_formats(size_t *count)
{
	*count = VP_ARRAY_SIZE(formats);
	return formats;
}

const struct vp_report_format *vp_report_format_named(const char *name)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

char *vp_report_format_names(void)
{
	struct vp_buffer names = {0};

	for (size_t i = 0; i < VP_ARRAY_SIZE(formats); i++)
		vp_buffer_printf(&names, "%s%s",
				 !i                               ? ""
				 : i + 1 < VP_ARRAY_SIZE(formats) ? ", "
								  : " or ",
				 formats[i].name);
	char *text = vp_strdup(vp_buffer_text(&names));
	vp_buffer_deinit(&names);
	return text;
}
