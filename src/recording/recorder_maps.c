/* SPDX-License-Identifier: GPL-2.0-or-later */
/* At the end of a recording: who and what was there to be sampled. */
#include "recording/recorder_private.h"

#include <string.h>

#include "collect/agent_client.h"

struct vp_error *vp_recorder_write_host_maps(struct vp_recorder *recorder)
{
	VP_AUTO_FREE char *path =
	    vp_recording_maps_path(recorder->options.directory, &recorder->vms, NULL);

	return vp_host_maps_write(recorder->host_maps, path, recorder->options.with_symbols);
}

/* The tables that the guest kernel's part of call chains needs. */
static struct vp_error *read_unwind_tables(struct vp_recorder *recorder, const struct vp_vm *vm)
{
	VP_AUTO_FREE char *path =
	    vp_recording_orc_path(recorder->options.directory, &recorder->vms, vm);
	struct vp_error *problem;
	struct vp_error *error =
	    vp_guest_watch_unwind_tables(recorder->guest_watch, vm, path, &problem);

	if (problem)
		NOTICE(recorder, "VM '%s': no call chains of its kernel: %s", vm->name,
		       vp_error_message(problem));
	vp_error_free(problem);
	return error;
}

/* Has map text made of the guests' memory; how that went goes into `vms`. */
struct vp_error *vp_recorder_read_guests(struct vp_recorder *recorder)
{
	struct vp_error *error = NULL;

	vp_vec_each (&recorder->vms, vm) {
		VP_AUTO_FREE char *path =
		    vp_recording_maps_path(recorder->options.directory, &recorder->vms, vm);
		bool written = false;
		if (!error && vp_recorder_is_chosen(recorder, vm))
			error = vp_guest_watch_dump(recorder->guest_watch, vm, path, &written);
		if (!error && written && !vm->end && recorder->options.with_chains)
			error = read_unwind_tables(recorder, vm);
		free(vm->memory);
		vm->memory = vp_guest_watch_state(recorder->guest_watch, vm);
		if (!written && vm->memory[0] && !vm->end)
			NOTICE(recorder, "VM '%s': %s", vm->name, vm->memory);
	}
	return error;
}

/* One sentence; a new string. */
static char *outcome_of(const struct vp_error *error, const struct vp_agent_result *result,
			unsigned port)
{
	VP_AUTO_FREE char *standing = vp_agent_port_standing(port);

	if (!error)
		return VP_TAKE(standing);
	return result->bytes ? vp_format("%s; what came is %s", vp_error_message(error),
					 standing + strlen("ok: "))
			     : vp_strdup(vp_error_message(error));
}

/* Asks the VM's agent, if it has a vsock device; how that went goes into `vms`. */
static void ask_agent(struct vp_recorder *recorder, struct vp_vm *vm)
{
	const struct vp_recorder_options *options = &recorder->options;
	VP_AUTO_FREE char *path = vp_recording_agent_path(options->directory, &recorder->vms, vm);
	struct vp_agent_limits limits = {.bytes = options->agent_bytes,
					 .seconds_idle = options->agent_seconds,
					 .seconds_total = options->agent_seconds,
					 .no_symbols = !options->with_symbols};
	struct vp_agent_result result = {0};
	VP_AUTO_FREE char *what = vp_format("asking the agent of VM '%s'", vm->name);
	vp_recorder_say(recorder, true, what);
	struct vp_error *error =
	    vp_agent_fetch(vm->cid, options->agent_port, path, &limits, &result);

	free(vm->agent);
	vm->agent = outcome_of(error, &result, options->agent_port);
	if (error)
		NOTICE(recorder, "VM '%s': %s", vm->name, vm->agent);
	vp_error_free(error);
}

void vp_recorder_ask_agents(struct vp_recorder *recorder)
{
	vp_vec_each (&recorder->vms, vm) {
		if (!vp_recorder_is_chosen(recorder, vm)) {
			free(vm->agent);
			vm->agent = vp_strdup("not asked: another VM was chosen with --vm");
		} else if (!vm->end && vm->cid) {
			ask_agent(recorder, vm);
		}
	}
}
