/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drives a recording: the sampler and the VM scan on one side, the directory on the other. */
#ifndef VP_RECORDING_RECORDER_H
#define VP_RECORDING_RECORDER_H

#include "base/error.h"
#include "collect/agent_client.h"
#include "collect/trigger.h"
#include "recording/recording.h"

struct vp_recorder;

struct vp_recorder_options {
	const char *directory;
	struct vp_trigger_options trigger;
	size_t buffer_pages;         /* per pCPU, a power of two */
	const char *command;         /* for the record, or NULL */
	const char *const *vm_names; /* only these VMs' guests; all if n_vm_names is 0 */
	size_t n_vm_names;
	bool no_samples;   /* the account alone */
	bool with_account; /* of the vCPUs' time */
	bool with_states;  /* … and every stretch of it */
	bool ask_agents;
	bool read_memory; /* name guests' samples by their memory */
	bool with_chains; /* call chains of all samples */
	bool with_symbols;
	unsigned agent_port;
	unsigned agent_seconds; /* for one agent's whole answer */
	size_t agent_bytes;     /* of one agent's answer at most */
	/* Called before each thing that may take seconds once sampling is over; may be NULL. When
	 * it names an agent, the recording is complete but for agents' answers. */
	void (*progress)(const char *what, bool only_agents_left);
};

struct vp_recorder_totals {
	uint64_t samples; /* late ticks included */
	uint64_t late, lost;
	size_t vms;
};

/* Makes the directory, loads the programs, finds the VMs. Nothing is sampled yet. */
struct vp_error *vp_recorder_open(const struct vp_recorder_options *options,
				  struct vp_recorder **ret) VP_MUST_CHECK;
struct vp_error *vp_recorder_start(struct vp_recorder *recorder) VP_MUST_CHECK;
/* Waits up to `timeout_ms` for records and writes what there is. */
struct vp_error *vp_recorder_step(struct vp_recorder *recorder, int timeout_ms) VP_MUST_CHECK;
/* Stops sampling and writes what is left: records, maps, agents' answers, the end. */
struct vp_error *vp_recorder_finish(struct vp_recorder *recorder) VP_MUST_CHECK;
struct vp_recorder_totals vp_recorder_totals(const struct vp_recorder *recorder);
/* A sentence about something that was lost or is missing, or NULL; each is handed out once. */
char *vp_recorder_take_notice(struct vp_recorder *recorder);
void vp_recorder_free(struct vp_recorder *recorder);

#endif
