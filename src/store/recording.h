/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The directory of a recording. Text files have a line `KEY VALUE` per item:
 *
 *     recording        what was recorded and how (struct vp_recording)
 *     vms              the VMs (struct vp_vm), their vCPU threads and clocks
 *     recipe           for intervals: the recipe (schema/recipe.h)
 *     host/            CTF trace of the host: metadata, and one file per stream (packet.h)
 *     host.maps        the host's symbol map (maps/format.h)
 *     guest-NAME.maps  the guest's symbol map, from its memory
 *     agent-NAME.maps  the guest's symbol map, from its agent
 *     guest-NAME.orc   with stacks: unwind tables of the guest kernel (maps/orc.h)
 *
 * `recording` is written at the start without its `end` line, and again at the end with it: without
 * that line, the recording was interrupted.
 */
#ifndef VP_STORE_RECORDING_H
#define VP_STORE_RECORDING_H

/* Format version of the directory, in the first line of `recording` and `vms`; incremented whenever
 * an older vperf would misread it. Unknown versions are refused. */
#define VP_RECORDING_FORMAT "8"
/* Supported formats of earlier releases: 6 and, with compressed streams, 7 (0.2). */
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
	char *kernel;      /* release of the host kernel */
	char *boot;        /* id of the host's boot, to which `start` and `end` belong; or "" */
	char *trigger;     /* sampling event ("cpu-clock"), or without samples the event that ends
			      intervals; or "" */
	char *instruments; /* names of the data sources: "profile account" */
	enum vp_account_grade account_grade; /* grade of "account"; exact before 0.3 */
	char *command;                       /* recorded command, or "" */
	char *note;                          /* reason of missing data, or "" */
	char *imported;                      /* original format of an imported recording; or NULL */
	/*
	 * How guests were sampled, if separately from the host, and the cost: as numbers and as a
	 * sentence; "": none. vp_recording_open() makes the sentence from the numbers, also for
	 * `note` and `cause`; recordings before 0.3 have only sentences.
	 */
	struct vp_guest_sampling guests;
	char *guest_sampling;
	/* Sampling was limited to processes, threads or pCPUs (-p, -t, -C). */
	bool selected;
	/* With a throttled sampling event: events counted, and events that the samples represent;
	 * 0: not throttled. */
	uint64_t events_counted, events_sampled;
	uint64_t period_ns; /* requested time between two samples of a pCPU */
	bool by_time; /* the sampling event is a clock that ticks also on idle pCPUs (cpu-clock) */
	enum vp_weighting weighting;
	uint64_t events;           /* weight of a sample without a sample_period record; with
				      VP_WEIGHTING_EVENTS */
	bool chains;               /* stacks were recorded */
	uint32_t compression;      /* zstd level of the streams; 0: not compressed */
	uint32_t pcpus;            /* number of sampled pCPUs; in Xen's dom0, of its vCPUs … */
	uint32_t hypervisor_pcpus; /* … and of Xen's pCPUs; otherwise, and before 0.3, 0 */
	uint64_t start, end;       /* host CLOCK_MONOTONIC, ns; end 0: interrupted */
	/* CLOCK_REALTIME - CLOCK_MONOTONIC of the host, from the trace's metadata; 0: unknown */
	int64_t realtime_offset;
	/* Counts of the recorder, by stream class; 0 if interrupted. */
	uint64_t records[VP_STREAM_CLASSES], lost[VP_STREAM_CLASSES];
	/* For a snapshot of a flight recorder: `start` is the start of its complete part. */
	char *mode; /* "flight", or "" */
	struct vp_snapshot_cause snapshot_cause;
	char *cause;    /* snapshot_cause as a sentence, or "" */
	uint64_t begun; /* start of the recorder */
};

void vp_recording_deinit(struct vp_recording *recording);
/* `advice` about missing data, which names options of vperf record; "" if another program made the
 * recording. */
const char *vp_recording_advice(const struct vp_recording *recording, const char *advice);
/* The same for the recording in directory `path`. */
const char *vp_recording_advice_at(const char *path, const char *advice);
/* Whether the sampling period is known: perf.data files may lack it. */
static inline bool vp_recording_has_period(const struct vp_recording *recording)
{
	return recording->period_ns > 1;
}
/* Number of pCPUs that the host's vCPUs share. */
static inline uint32_t vp_recording_shared_pcpus(const struct vp_recording *recording)
{
	return recording->hypervisor_pcpus ? recording->hypervisor_pcpus : recording->pcpus;
}
/* Unit of weights: "samples", "ns", or the name of the event. */
const char *vp_recording_unit(const struct vp_recording *recording);
/* Nanoseconds per unit of weight; 0: weights are not times. */
uint64_t vp_recording_unit_ns(const struct vp_recording *recording);
/* Fills in the fields about this program, this machine and the time. `command` may be NULL. */
void vp_recording_describe(struct vp_recording *recording, const char *command);
/* Whether the data source was recorded; adds it to the list. */
bool vp_recording_has_instrument(const struct vp_recording *recording, const char *name);
void vp_recording_add_instrument(struct vp_recording *recording, const char *name);

/* Paths in the recording's directory `path`, to be freed. The symbol map of the VM's guest; of the
 * host if `vm` is NULL. */
char *vp_recording_maps_path(const char *path, const vp_vms *vms, const struct vp_vm *vm);
/* The guest's symbol map from the VM's agent. */
char *vp_recording_agent_path(const char *path, const vp_vms *vms, const struct vp_vm *vm);
/* The unwind tables (maps/orc.h) of the VM's guest kernel. */
char *vp_recording_orc_path(const char *path, const vp_vms *vms, const struct vp_vm *vm);

/* The recipe; only recordings of intervals have one. */
char *vp_recording_recipe_path(const char *path);
/* Whether the recording in directory `path` has intervals. */
bool vp_recording_has_intervals(const char *path);
/* Whether it has intervals only, and can be read. */
bool vp_recording_is_of_intervals(const char *path);

/*
 * Write and read the files `recording` and `vms` in directory `path`. Errors: a file cannot be
 * written or read, is not part of a recording, or has an unsupported format version; a malformed
 * line.
 */
struct vp_error *vp_recording_write(const char *path,
				    const struct vp_recording *recording) VP_MUST_CHECK;
struct vp_error *vp_recording_read(const char *path, struct vp_recording *ret) VP_MUST_CHECK;
struct vp_error *vp_vms_write(const char *path, const vp_vms *vms) VP_MUST_CHECK;
struct vp_error *vp_vms_read(const char *path, vp_vms *ret) VP_MUST_CHECK;

#endif
