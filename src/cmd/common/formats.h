/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Formats of 'vperf report' (renderers and exporters) and of 'vperf export'. */
#ifndef VP_CMD_COMMON_FORMATS_H
#define VP_CMD_COMMON_FORMATS_H

#include "base/macros.h"
#include "export/exporters.h"

struct vp_report_format {
	const char *name;
	bool has_notes; /* the format includes notes */
	/* One of the two is set. */
	void (*render)(const struct vp_report *report, bool colour, struct vp_buffer *out);
	const struct vp_exporter *(*exporter)(void);
};

/* A format of 'vperf export'. */
struct vp_export_format {
	const char *name;
	const char *summary;                         /* one line */
	const struct vp_exporter *(*exporter)(void); /* NULL: all files, decompressed */
};

const struct vp_export_format *vp_export_formats(size_t *count);
/* NULL: unknown name. */
const struct vp_export_format *vp_export_format_named(const char *name);

/* All formats; the first is the default. */
const struct vp_report_format *vp_report_formats(size_t *count);
/* NULL: unknown name. */
const struct vp_report_format *vp_report_format_named(const char *name);
/* "text, json, csv or …", as a new string. */
char *vp_report_format_names(void) VP_MUST_CHECK;

#endif
