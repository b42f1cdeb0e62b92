/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The events of several recordings of a host in order of time. */
#ifndef VP_ANALYZE_TRACE_SCRIPT_JOINED_H
#define VP_ANALYZE_TRACE_SCRIPT_JOINED_H

#include "analyze/common/health.h"
#include "analyze/common/recording_parts.h"
#include "analyze/trace/script.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/macros.h"

struct vp_script_joined;

/* `options` applies to each part, within its window; `parts` is not copied. Parts that cannot be
 * used become notes. Errors: none can be used. */
struct vp_error *vp_script_joined_open(const vp_recording_parts *parts,
				       const struct vp_script_options *options,
				       struct vp_script_joined **ret) VP_MUST_CHECK;
void vp_script_joined_close(struct vp_script_joined *joined);
/* The next event, with fields in columns of all parts, and its part; NULL at the end. */
const struct vp_script_event *vp_script_joined_next(struct vp_script_joined *joined, size_t *part);
/* Names of all possible fields of all parts. */
const struct vp_intern *vp_script_joined_columns(const struct vp_script_joined *joined);
/* Appends the problems of all parts; complete after the last event. */
void vp_script_joined_notes(struct vp_script_joined *joined, vp_sentences *notes);

#endif
