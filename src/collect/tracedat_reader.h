/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of trace-cmd, read by a process that may do nothing else: what it says is to be checked. */
#ifndef VP_COLLECT_TRACEDAT_READER_H
#define VP_COLLECT_TRACEDAT_READER_H

#include <sys/types.h>

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"

/* Of a file: its begin; its guests and vCPUs; names; then of CPU by CPU the events; its end. */
enum vp_tracedat_kind {
	VP_TRACEDAT_BEGIN,   /* bytes: event classes as text; number: its id */
	VP_TRACEDAT_SPAN,    /* times of its first and last event: bytes, two u64 */
	VP_TRACEDAT_CPUS,    /* number: how many */
	VP_TRACEDAT_GUEST,   /* number: the guest's id; bytes: its name */
	VP_TRACEDAT_THREAD,  /* cpu: of the guest that was told last; number: the host's thread */
	VP_TRACEDAT_VCPU,    /* cpu: of whatever guest; number: a thread that entered one */
	VP_TRACEDAT_NAMES,   /* bytes: lines "TID NAME" */
	VP_TRACEDAT_EVENTS,  /* bytes: records of the classes, in order of time */
	VP_TRACEDAT_MISSED,  /* number: places of a CPU where events are missing */
	VP_TRACEDAT_STRANGE, /* number: entries of a CPU that are no events */
	VP_TRACEDAT_END,
	VP_TRACEDAT_PROBLEM /* bytes: a sentence; the last of all */
};

struct vp_tracedat_news {
	uint32_t kind; /* enum vp_tracedat_kind */
	uint32_t cpu;
	uint64_t number;
	uint32_t size, reserved; /* bytes behind it */
};

struct vp_tracedat_reader;

/* Errors: the file cannot be opened, there is no such process. */
struct vp_error *vp_tracedat_reader_start(const char *path,
					  struct vp_tracedat_reader **ret) VP_MUST_CHECK;
/* What it says next; valid until the next call. Errors: what it says of the file, or that it ended
 * too early. */
struct vp_error *vp_tracedat_reader_next(struct vp_tracedat_reader *reader,
					 struct vp_tracedat_news *ret,
					 struct vp_slice *bytes) VP_MUST_CHECK;
void vp_tracedat_reader_free(struct vp_tracedat_reader *reader);

#endif
