/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A store's file `findings`: findings of vperfd and what it kept for them, one per line, fields
 * separated by tabs. VM and thread names are untrusted and cleaned. */
#ifndef VP_STORE_KEPT_FINDINGS_H
#define VP_STORE_KEPT_FINDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

/* Text fields, in the order in the file. */
enum vp_kept_text {
	VP_KEPT_RULE,
	VP_KEPT_VM,
	VP_KEPT_UUID,
	VP_KEPT_WHO,      /* top cause, or "" */
	VP_KEPT_IN,       /* recording with that time; names in the store, or "" … */
	VP_KEPT_TRACE,    /* … snapshot of the flight recorder … */
	VP_KEPT_PROFILE,  /* … and samples */
	VP_KEPT_SENTENCE, /* for human readers */
	VP_KEPT_TEXTS
};

struct vp_kept_finding {
	uint64_t time;      /* CLOCK_REALTIME, ns */
	uint64_t permyriad; /* share of the VM's vCPU time, in hundredths of a percent */
	char *texts[VP_KEPT_TEXTS];
};

typedef VP_VEC(struct vp_kept_finding) vp_kept_findings;

/* Appends the line of a finding; texts are cleaned. NULL is written as "". */
void vp_kept_finding_put(uint64_t time, uint64_t permyriad, const char *const texts[VP_KEPT_TEXTS],
			 struct vp_buffer *out);
/* Appends it to the file of the store at `path`; a truncated last line is ended first. */
struct vp_error *vp_kept_finding_append(const char *path,
					const struct vp_buffer *line) VP_MUST_CHECK;
/* Drops findings older than `since`, then the oldest beyond 1 MiB. */
struct vp_error *vp_kept_findings_trim(const char *path, uint64_t since) VP_MUST_CHECK;
/* Parses such lines; malformed ones are skipped and counted in *bad. */
void vp_kept_findings_parse(const char *text, size_t size, vp_kept_findings *ret, uint64_t *bad);
/* Reads all findings; a missing file is empty. Malformed lines are skipped and counted in *bad. */
struct vp_error *vp_kept_findings_read(const char *path, vp_kept_findings *ret,
				       uint64_t *bad) VP_MUST_CHECK;
void vp_kept_findings_deinit(vp_kept_findings *findings);

#endif
