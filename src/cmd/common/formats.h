/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The formats of 'vperf report': renderers of its tables, and exporters; and those of 'vperf
 * export'.
 */
#ifndef VP_CMD_COMMON_FORMATS_H
#define VP_CMD_COMMON_FORMATS_H

#include "base/macros.h"
#include "export/exporters.h"

struct vp_report_format {
	const char *name;
	bool has_notes; /* they are part of the output */
	/* One of both. */
	void (*render)(const struct vp_report *report, bool colour, struct vp_buffer *out);
	const struct vp_exporter *(*exporter)(void);
};

/* Formats of 'vperf export'. */
struct vp_export_format {
	const char *name;
	const char *summary;                         /* one line */
	const struct vp_exporter *(*exporter)(void); /* NULL: all files, without compression */
};

const struct vp_export_format *vp_export_formats(size_t *count);
/* NULL if the name is unknown. */
const struct vp_export_format *vp_export_format_named(const char *name);

/* All of them; the first is the usual one. */
const struct vp_report_format *vp_report_formats(size_t *count);
/* NULL if the name is unknown. */
const struct vp_report_format *vp_report_format_named(const char *name);
/* "text, json, csv or …", as a new string. */
char *vp_report_format_names(void) VP_MUST_CHECK;

#endif
