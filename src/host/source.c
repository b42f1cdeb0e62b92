/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/source.h"

#include <stdio.h>

bool vp_probe_report(bool found, char *detail, size_t size, const char *text)
{
	snprintf(detail, size, "%s", text);
	return found;
}

bool vp_probe_report_opened(struct vp_error *error, const char *missing, char *detail, size_t size)
{
	bool found = !error;

	vp_probe_report(found, detail, size,
			error     ? vp_error_message(error)
			: missing ? missing
				  : "loaded and attached");
	vp_error_free(error);
	return found;
}
