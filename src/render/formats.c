/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/formats.h"

#include <string.h>

#include "render/report.h"

static const struct vp_report_format formats[] = {
    {"text", true, vp_render_report_text, NULL}, {"json", true, vp_render_report_json, NULL},
    {"csv", false, vp_render_report_csv, NULL},  {"folded", false, NULL, vp_exporter_folded},
    {"script", false, NULL, vp_exporter_script}, {"jsonl", true, NULL, vp_exporter_jsonl},
};

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
