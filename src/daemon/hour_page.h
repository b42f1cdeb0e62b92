/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page that vperfd serves at /, and the same as JSON: the last hour of the host's VMs. */
#ifndef VP_DAEMON_HOUR_PAGE_H
#define VP_DAEMON_HOUR_PAGE_H

#include <stdint.h>

#include "base/buffer.h"
#include "daemon/recent_hour.h"
#include "store/kept_findings.h"

/* VMs and findings on the page; the JSON text has all VMs. */
enum { VP_HOUR_PAGE_VMS = 200, VP_HOUR_PAGE_FINDINGS = 50 };

struct vp_hour_page {
	const struct vp_hour *hour;
	const vp_kept_findings *findings; /* oldest first; those of the last hour are listed */
	const char *host, *store;         /* name of the host, directory of the store */
	const char *recording;            /* the open one; or "" */
	uint64_t bytes, recordings;       /* of the store */
	uint64_t realtime;                /* now, ns */
};

/* Both append to `out`. Names of VMs are untrusted. */
void vp_hour_page_html(const struct vp_hour_page *page, struct vp_buffer *out);
void vp_hour_page_json(const struct vp_hour_page *page, struct vp_buffer *out);

#endif
