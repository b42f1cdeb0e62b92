/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A store's file `findings`: what vperfd found and what it kept of it, a line each, with tabs
 * between the fields. Names in it are tenants' texts, cleaned. */
#ifndef VP_STORE_KEPT_FINDINGS_H
#define VP_STORE_KEPT_FINDINGS_H

#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

/* In the order of the fields. */
enum vp_kept_text {
	VP_KEPT_RULE,
	VP_KEPT_VM,
	VP_KEPT_UUID,
	VP_KEPT_WHO,      /* who took most of it, or "" */
	VP_KEPT_IN,       /* the recording that has the moment; names in the store, or "" … */
	VP_KEPT_TRACE,    /* … the flight recorder's snapshot … */
	VP_KEPT_PROFILE,  /* … samples */
	VP_KEPT_SENTENCE, /* for people */
	VP_KEPT_TEXTS
};

struct vp_kept_finding {
	uint64_t time;      /* CLOCK_REALTIME, ns */
	uint64_t permyriad; /* of the time of the VM's vCPUs: hundredths of a percent */
	char *texts[VP_KEPT_TEXTS];
};

typedef VP_VEC(struct vp_kept_finding) vp_kept_findings;

/* Appends a finding's line; the texts are cleaned. NULL stands for "". */
void vp_kept_finding_put(uint64_t time, uint64_t permyriad, const char *const texts[VP_KEPT_TEXTS],
			 struct vp_buffer *out);
/* Appends it to the file of the store at `path`; a line that was cut off before it is ended. */
struct vp_error *vp_kept_finding_append(const char *path,
					const struct vp_buffer *line) VP_MUST_CHECK;
/* Drops what is older than `since`, and of the rest the oldest beyond a MiB. */
struct vp_error *vp_kept_findings_trim(const char *path, uint64_t since) VP_MUST_CHECK;
/* Reads them; none if there is no file. Malformed lines are left out and counted in *bad. */
struct vp_error *vp_kept_findings_read(const char *path, vp_kept_findings *ret,
				       uint64_t *bad) VP_MUST_CHECK;
void vp_kept_findings_deinit(vp_kept_findings *findings);

#endif
