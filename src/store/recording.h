/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directory of a recording: who made it, when, of which machines. Plain text, `KEY VALUE` a
 * line:
 *
 *   recording        what was recorded and how (struct vp_recording)
 *   vms              the VMs that were seen (struct vp_vm), their vCPU threads and clocks
 *   recipe           of intervals, what was counted over which (schema/recipe.h)
 *   host/            CTF trace of the host: metadata, and a file for each stream (packet.h)
 *   host.maps        the host's symbol map (maps/format.h)
 *   guest-NAME.maps  the guest's symbol map, from its memory
 *   agent-NAME.maps  the same as its agent gave it
 *   guest-NAME.orc   with call chains: the unwind tables of the guest's kernel (maps/orc.h)
 *
 * `recording` is written at the start without its `end` line and again at the end with it: a
 * recording without was interrupted.
 */
#ifndef VP_STORE_RECORDING_H
#define VP_STORE_RECORDING_H

/* The version of all that is in the directory, in the first line of `recording` and `vms`: higher
 * whenever an older vperf would misread it. Others are refused. */
#define VP_RECORDING_FORMAT "8"
/* Formats of earlier releases, which are read as well: 6 and, with compressed streams, 7 (0.2). */
#define VP_RECORDING_FORMATS_READ "6", "7", VP_RECORDING_FORMAT
#define VP_RECORDING_MAGIC "vperf-recording "

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "schema/account_grade.h"
#include "schema/guest_sampling.h"
#include "schema/snapshot_cause.h"
#include "schema/vm.h"
#include "schema/weighting.h"
#include "store/packet.h"

struct vp_recording {
	char *tool; /* version of vperf */
	char *hostname;
	char *kernel;      /* release of the host's kernel */
	char *trigger;     /* what takes the samples ("cpu-clock"), or ends the intervals if
			      there are no samples; or "" */
	char *instruments; /* that recorded, by name: "profile account" */
	enum vp_account_grade account_grade; /* of instrument "account"; before 0.3: exact */
	char *command;                       /* what was run, or "" */
	char *note;                          /* why something is missing, or "" */
	char *imported;                      /* the format that it was imported from; or NULL */
	/* How guests were sampled, if not with this host, and the cost: numbers, and a sentence;
	 * "": none. vp_recording_open() makes the sentence of the numbers, as for `note` and
	 * `cause`; recordings before 0.3 have the sentences only. */
	struct vp_guest_sampling guests;
	char *guest_sampling;
	/* Only the processes, threads or pCPUs that -p, -t or -C chose were sampled. */
	bool selected;
	/* The sampling event was throttled: how often it happened, and how many of these the
	 * samples stand for; 0: it was not. */
	uint64_t events_counted, events_sampled;
	uint64_t period_ns; /* wanted time between two samples of a pCPU */
	bool by_time;       /* the trigger ticks with wall time, idle or not (cpu-clock) */
	enum vp_weighting weighting;
	uint64_t events; /* of a sample without a sample_period record; for VP_WEIGHTING_EVENTS */
	bool chains;     /* call chains were taken */
	uint32_t compression; /* zstd's level at which streams are compressed; 0: they are not */
	uint32_t pcpus;       /* how many were sampled */
	uint64_t start, end;  /* host CLOCK_MONOTONIC, ns; end 0: interrupted */
	/* CLOCK_REALTIME - CLOCK_MONOTONIC of the host, by the metadata of its trace; 0: not known
	 */
	int64_t realtime_offset;
	/* As counted by the recorder, by class of streams; 0 if interrupted. */
	uint64_t records[VP_STREAM_CLASSES], lost[VP_STREAM_CLASSES];
	/* For a flight recorder's snapshot: `start` is the start of the complete part. */
	char *mode; /* "flight", or "" */
	struct vp_snapshot_cause snapshot_cause;
	char *cause;    /* the same as a sentence, or "" */
	uint64_t begun; /* when the recorder began */
};

void vp_recording_deinit(struct vp_recording *recording);
/* Advice about something missing, with options of vperf record: "" if another program recorded
 * it. */
const char *vp_recording_advice(const struct vp_recording *recording, const char *advice);
/* The same, of the recording in the directory. */
const char *vp_recording_advice_at(const char *path, const char *advice);
/* Whether it is known how far samples are apart: perf's files may lack it. */
static inline bool vp_recording_has_period(const struct vp_recording *recording)
{
	return recording->period_ns > 1;
}
/* The unit of weights: "samples", "ns", or the name of the event. */
const char *vp_recording_unit(const struct vp_recording *recording);
/* Nanoseconds per unit of weight; 0: weights are no times. */
uint64_t vp_recording_unit_ns(const struct vp_recording *recording);
/* Says that this program records on this machine now. `command` may be NULL. */
void vp_recording_describe(struct vp_recording *recording, const char *command);
/* Whether the instrument of that name recorded; adds one. */
bool vp_recording_has_instrument(const struct vp_recording *recording, const char *name);
void vp_recording_add_instrument(struct vp_recording *recording, const char *name);

/* Paths in the recording's directory `path`, to be freed. The symbol map of the VM's guest, or of
 * the host if `vm` is NULL. */
char *vp_recording_maps_path(const char *path, const vp_vms *vms, const struct vp_vm *vm);
/* The symbol map from the VM's agent. */
char *vp_recording_agent_path(const char *path, const vp_vms *vms, const struct vp_vm *vm);
/* The unwind tables (maps/orc.h) of the VM's guest kernel. */
char *vp_recording_orc_path(const char *path, const vp_vms *vms, const struct vp_vm *vm);

/* The recipe of a recording of intervals; others have none. */
char *vp_recording_recipe_path(const char *path);
/* Whether the recording in directory `path` has a recipe. */
bool vp_recording_has_intervals(const char *path);
/* Whether there are intervals and nothing else, in a recording that can be read. */
bool vp_recording_is_of_intervals(const char *path);

/* Write and read the files `recording` and `vms` in directory `path`. Errors: a file cannot be
 * written or read, is not part of a recording, or is of another format version; a malformed line.
 */
struct vp_error *vp_recording_write(const char *path,
				    const struct vp_recording *recording) VP_MUST_CHECK;
struct vp_error *vp_recording_read(const char *path, struct vp_recording *ret) VP_MUST_CHECK;
struct vp_error *vp_vms_write(const char *path, const vp_vms *vms) VP_MUST_CHECK;
struct vp_error *vp_vms_read(const char *path, vp_vms *ret) VP_MUST_CHECK;

#endif
