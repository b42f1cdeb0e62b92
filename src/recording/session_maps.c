/* SPDX-License-Identifier: GPL-2.0-or-later */
/* At the end of a recording: who and what was there to be measured. */
#include <string.h>

#include "collect/agent_client.h"
#include "recording/instrument.h"

static struct vp_error *write_host_maps(struct vp_session *session, const char *directory,
					uint64_t from)
{
	VP_AUTO_FREE char *path = vp_recording_maps_path(directory, &session->vms, NULL);
	char *problem;

	vp_session_say(session, false, "writing host symbols");
	struct vp_error *error =
	    vp_host_maps_write(session->host_maps, path, from, session->options.with_symbols);
	while ((problem = vp_host_maps_take_problem(session->host_maps)))
		vp_vec_push(&session->notices, problem);
	return error;
}

/* The tables that the guest kernel's part of call chains needs. */
static struct vp_error *read_unwind_tables(struct vp_session *session, const struct vp_vm *vm,
					   const char *directory)
{
	VP_AUTO_FREE char *path = vp_recording_orc_path(directory, &session->vms, vm);
	struct vp_error *problem;
	struct vp_error *error =
	    vp_guest_watch_unwind_tables(session->guest_watch, vm, path, &problem);

	if (problem)
		VP_NOTICE(session, "VM '%s': no guest kernel call chains: %s", vm->name,
			  vp_error_message(problem));
	vp_error_free(problem);
	return error;
}

static struct vp_error *read_guest(struct vp_session *session, const struct vp_vm *vm,
				   const char *directory)
{
	VP_AUTO_FREE char *path = vp_recording_maps_path(directory, &session->vms, vm);
	bool written = false;
	struct vp_error *error = vp_guest_watch_dump(session->guest_watch, vm, path, &written);

	if (!error && written && !vm->end && session->wants_unwind_tables)
		error = read_unwind_tables(session, vm, directory);
	VP_AUTO_FREE char *state = vp_guest_watch_state(session->guest_watch, vm);
	if (!written && state[0] && !vm->end)
		VP_NOTICE(session, "VM '%s': %s", vm->name, state);
	return error;
}

/* Reading may take long: the rings are emptied meanwhile, if there is still something recorded. */
static struct vp_error *go_on(struct vp_session *session)
{
	return session->about.end ? NULL : vp_session_drain(session);
}

struct vp_error *vp_session_write_maps(struct vp_session *session, const char *directory,
				       uint64_t from)
{
	struct vp_error *error = write_host_maps(session, directory, from);

	if (!session->guest_watch)
		return error;
	vp_session_say(session, false, "reading guest symbol maps");
	/* By number: there may be one VM more meanwhile. */
	for (size_t i = 0; i < session->vms.count; i++) {
		struct vp_error *problem = go_on(session);
		error = vp_session_first_of(error, problem);
		if (vp_session_is_chosen(session, &session->vms.at[i]))
			error = vp_session_first_of(
			    error, read_guest(session, &session->vms.at[i], directory));
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
	return result->bytes ? vp_format("%s; the part received is %s", vp_error_message(error),
					 standing + strlen("ok: "))
			     : vp_strdup(vp_error_message(error));
}

/* Asks the VM's agent, if it has a vsock device; how that went goes into `vms`. */
static void ask_agent(struct vp_session *session, struct vp_vm *vm)
{
	const struct vp_session_options *options = &session->options;
	VP_AUTO_FREE char *path = vp_recording_agent_path(session->place.now, &session->vms, vm);
	struct vp_agent_limits limits = {.bytes = options->agent_bytes,
					 .seconds_idle = options->agent_seconds,
					 .seconds_total = options->agent_seconds,
					 .no_symbols = !options->with_symbols};
	struct vp_agent_result result = {0};
	VP_AUTO_FREE char *what = vp_format("asking the agent of VM '%s'", vm->name);
	vp_session_say(session, true, what);
	const struct vp_agent_address address = vp_agent_address_of(vm, options->agent_port);
	struct vp_error *error = vp_agent_fetch(&address, path, &limits, &result);

	VP_AUTO_FREE char *outcome = outcome_of(error, &result, options->agent_port);
	vp_session_note_agent(session, vm, outcome);
	if (error)
		VP_NOTICE(session, "VM '%s': %s", vm->name, outcome);
	vp_error_free(error);
}

void vp_session_ask_agents(struct vp_session *session)
{
	vp_vec_each (&session->vms, vm) {
		if (!vp_session_is_chosen(session, vm))
			vp_session_note_agent(session, vm, "not asked: not selected by --vm");
		else if (!vm->end && (vm->cid || vm->vsock))
			ask_agent(session, vm);
	}
}
