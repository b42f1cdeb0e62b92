/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbol maps, written at the end of a recording. */
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/meanwhile.h"
#include "base/vec.h"
#include "collect/agent/agent_client.h"
#include "collect/guests/guest_watch.h"
#include "host/host_maps.h"
#include "schema/agent_outcome.h"
#include "schema/memory_outcome.h"
#include "schema/vm.h"
#include "session/instrument.h"
#include "session/session.h"
#include "session/session_private.h"
#include "store/recording.h"

/* Limit for the symbol maps of all guests. */
enum { GUESTS_MS = 60000 };
/* The first names are written after this time; the time between writes is at least as long as a
 * write took, times this. */
#define NAMES_FIRST_NS 15000000000ULL
#define NAMES_COST 300

static struct vp_error *write_host_maps(struct vp_session *session, const char *directory,
					uint64_t from, const struct vp_meanwhile *meanwhile)
{
	VP_AUTO_FREE char *path = vp_recording_maps_path(directory, &session->vms, NULL);
	char *problem;

	vp_session_say(session, false, "writing host symbols");
	struct vp_error *error = vp_host_maps_write(session->host_maps, path, from,
						    session->options.with_symbols, meanwhile);
	while ((problem = vp_host_maps_take_problem(session->host_maps)))
		vp_vec_push(&session->notices, problem);
	return error;
}

/* Unwind tables for the guest kernel's part of stacks. */
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

static struct vp_error *session_maps_read_guest(struct vp_session *session, const struct vp_vm *vm,
						const char *directory)
{
	VP_AUTO_FREE char *path = vp_recording_maps_path(directory, &session->vms, vm);
	bool written = false;
	struct vp_error *error = vp_guest_watch_dump(session->guest_watch, vm, path, &written);

	if (!error && written && !vm->end && session->services.unwind_tables)
		error = read_unwind_tables(session, vm, directory);
	struct vp_memory_outcome outcome;
	if (vp_guest_watch_outcome(session->guest_watch, vm, &outcome)) {
		VP_AUTO_FREE char *state = vp_memory_outcome_text(&outcome);
		if (!written && !vm->end)
			VP_NOTICE(session, "VM '%s': %s", vm->name, state);
		free(outcome.problem);
	}
	return error;
}

/* Drains instruments while reading takes long, if recording is still in progress. */
struct draining {
	struct vp_session *session;
	struct vp_error *error; /* the first error */
};

static void drain(void *context)
{
	struct draining *draining = context;

	if (!draining->session->info.end)
		draining->error =
		    vp_session_first_of(draining->error, vp_session_keep_up(draining->session));
}

static struct vp_error *write_guests(struct vp_session *session, const char *directory)
{
	struct vp_error *error = NULL;

	/* By index: VMs may be added meanwhile. */
	for (size_t i = 0; i < session->vms.count; i++)
		if (vp_session_is_chosen(session, &session->vms.at[i]))
			error = vp_session_first_of(
			    error,
			    session_maps_read_guest(session, &session->vms.at[i], directory));
	return error;
}

struct vp_error *vp_session_write_maps(struct vp_session *session, const char *directory,
				       uint64_t from)
{
	struct draining draining = {.session = session};
	const struct vp_meanwhile meanwhile = {drain, &draining};
	struct vp_error *error = write_host_maps(session, directory, from, &meanwhile);

	if (session->guest_watch) {
		vp_session_say(session, false, "reading guest symbol maps");
		vp_guest_watch_write(session->guest_watch, session->services.unwind_tables,
				     GUESTS_MS, &meanwhile);
		error = vp_session_first_of(error, write_guests(session, directory));
	}
	return vp_session_first_of(error, draining.error);
}

void vp_session_write_names_meanwhile(struct vp_session *session, uint64_t now)
{
	uint64_t longest = session->options.names_ns;

	if (!longest || session->flight || !vp_session_needs_names(session))
		return;
	if (!session->names_wait) {
		session->names_wait = longest < NAMES_FIRST_NS ? longest : NAMES_FIRST_NS;
		session->names_at = now + session->names_wait;
	}
	if (now < session->names_at)
		return;
	/* Errors: it is tried again, at the end at the latest, and reported then. */
	vp_error_free(vp_session_write_maps(session, session->dir.now, 0));
	vp_session_note_guests(session);
	uint64_t end = vp_clock_monotonic(), least = NAMES_COST * (end - now);
	session->names_wait = session->names_wait < longest / 2 ? 2 * session->names_wait : longest;
	session->names_at = end + (session->names_wait > least ? session->names_wait : least);
}

static struct vp_agent_outcome session_maps_outcome_of(const struct vp_error *error,
						       const struct vp_agent_result *result,
						       uint32_t port)
{
	return (struct vp_agent_outcome){.request = VP_AGENT_SYMBOL_MAP,
					 .status = !error          ? VP_AGENT_SERVED
						   : result->bytes ? VP_AGENT_TRUNCATED
								   : VP_AGENT_FAILED,
					 .port = port,
					 .problem =
					     error ? vp_strdup(vp_error_message(error)) : NULL};
}

/* Requests the symbol map of a VM's agent in a thread: a guest that does not answer must not delay
 * others. */
struct asking {
	char *path;
	struct vp_agent_address address;
	struct vp_agent_limits limits;
	struct vp_agent_result result;
	struct vp_error *error;
	pthread_t thread;
	bool started;
};

static void *session_maps_ask(void *context)
{
	struct asking *asking = context;

	asking->error =
	    vp_agent_fetch(&asking->address, asking->path, &asking->limits, &asking->result);
	return NULL;
}

static void start_asking(struct vp_session *session, const struct vp_vm *vm, struct asking *asking)
{
	const struct vp_session_options *options = &session->options;

	*asking =
	    (struct asking){.path = vp_recording_agent_path(session->dir.now, &session->vms, vm),
			    .address = vp_agent_address_of(vm, options->agent_port),
			    .limits = {.bytes = options->agent_bytes,
				       .seconds_idle = options->agent_seconds,
				       .seconds_total = options->agent_seconds,
				       .no_symbols = !options->with_symbols}};
	asking->started = !pthread_create(&asking->thread, NULL, session_maps_ask, asking);
	if (!asking->started) /* without a thread: sequentially */
		session_maps_ask(asking);
}

/* Stores the outcome in `vms`. */
static void end_asking(struct vp_session *session, struct vp_vm *vm, struct asking *asking)
{
	if (asking->started)
		pthread_join(asking->thread, NULL);
	const struct vp_agent_outcome outcome = session_maps_outcome_of(
	    asking->error, &asking->result,
	    vp_agent_port_shown(session->options.agent_port, vm->has_domain));
	VP_AUTO_FREE char *text = vp_agent_outcome_text(&outcome);
	vp_session_note_agent(session, vm, &outcome);
	/* A missing agent is not a problem if names come from guest memory. */
	bool is_missed = session->options.agent_port || strncmp(vm->memory, "ok", 2) != 0;
	if (asking->error && is_missed)
		VP_NOTICE(session, "VM '%s': %s", vm->name, text);
	vp_error_free(asking->error);
	free(asking->path);
}

static bool has_agent(const struct vp_session *session, const struct vp_vm *vm)
{
	const struct vp_agent_address address =
	    vp_agent_address_of(vm, session->options.agent_port);

	return vp_session_is_chosen(session, vm) && !vm->end && vp_agent_is_addressed(&address);
}

void vp_session_ask_agents(struct vp_session *session)
{
	VP_AUTO_FREE struct asking *askings =
	    vp_realloc_array(NULL, session->vms.count + 1, sizeof(*askings));
	size_t count = 0;

	vp_vec_each (&session->vms, vm)
		count += has_agent(session, vm);
	VP_AUTO_FREE char *what =
	    vp_format("querying the agents of %zu VM%s", count, count == 1 ? "" : "s");
	if (count)
		vp_session_say(session, true, what);
	for (size_t i = 0; i < session->vms.count; i++)
		if (has_agent(session, &session->vms.at[i]))
			start_asking(session, &session->vms.at[i], &askings[i]);
	for (size_t i = 0; i < session->vms.count; i++) {
		struct vp_vm *vm = &session->vms.at[i];
		if (!vp_session_is_chosen(session, vm))
			vp_session_note_agent(
			    session, vm,
			    &(struct vp_agent_outcome){.status = VP_AGENT_NOT_SELECTED});
		else if (has_agent(session, vm))
			end_asking(session, vm, &askings[i]);
	}
}
