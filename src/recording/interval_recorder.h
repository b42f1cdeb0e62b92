/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drives a recording of intervals: the counting programs on one side, the directory on the other.
 */
#ifndef VP_RECORDING_INTERVAL_RECORDER_H
#define VP_RECORDING_INTERVAL_RECORDER_H

#include "base/error.h"
#include "schema/recipe.h"

struct vp_interval_recorder;

struct vp_interval_recorder_options {
	const char *directory;
	const struct vp_recipe *recipe; /* outlives the recorder */
	size_t ring_bytes;              /* per pCPU, a power of two */
	const char *command;            /* for the record, or NULL */
	uint32_t task;                  /* with `per task`: whose intervals, with all it starts */
	const char *const *vm_names;    /* only these VMs' vCPUs; all if n_vm_names is 0 */
	size_t n_vm_names;
	/* Called before each thing that may take seconds; may be NULL. */
	void (*progress)(const char *what);
	/* What guests' kernels count: where it may come from. */
	bool read_guest_memory, ask_agents;
	unsigned agent_port; /* vsock; 0: the usual one */
};

struct vp_interval_totals {
	uint64_t intervals, lost;
	size_t vms;
};

/* Makes the directory, loads the programs, finds the VMs. Nothing is counted yet. */
struct vp_error *vp_interval_recorder_open(const struct vp_interval_recorder_options *options,
					   struct vp_interval_recorder **ret) VP_MUST_CHECK;
struct vp_error *vp_interval_recorder_start(struct vp_interval_recorder *recorder) VP_MUST_CHECK;
/* Waits up to `timeout_ms` for intervals and writes what there is. */
struct vp_error *vp_interval_recorder_step(struct vp_interval_recorder *recorder,
					   int timeout_ms) VP_MUST_CHECK;
/* Closes the last intervals and writes what is left. */
struct vp_error *vp_interval_recorder_finish(struct vp_interval_recorder *recorder) VP_MUST_CHECK;
struct vp_interval_totals vp_interval_recorder_totals(const struct vp_interval_recorder *recorder);
/* A sentence about something that was lost or is missing, or NULL; each is handed out once. */
char *vp_interval_recorder_take_notice(struct vp_interval_recorder *recorder);
void vp_interval_recorder_free(struct vp_interval_recorder *recorder);

#endif
