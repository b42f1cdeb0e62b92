/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/instrument_guest_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/epoll.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"
#include "collect/agent/guest_clock.h"
#include "collect/guests/guest_state.h"
#include "host/host.h"
#include "host/vm_scan.h"
#include "schema/agent_outcome.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "session/guest_events.h"
#include "session/instrument.h"
#include "store/packet.h"
#include "store/trace_writer.h"
#include "xen/xen_counters.h"

enum {
	SETTLE_MS = 5000, /* for agents to start before the recording */
	END_MS = 10000,   /* for their remaining data */
	SLICE_MS = 20,
	HASTE_MS = 300, /* for a snapshot: the host's rings fill meanwhile */
};

struct instrument {
	struct vp_instrument base;
	struct vp_instrument_guest_trace_options options;
	struct vp_guest_clock clock;
	VP_VEC(struct vp_guest_events *) guests;
	struct vp_guest_lister *lister;   /* lists vCPUs' counters that only KVM's memory has */
	struct vp_xen_counters *counters; /* counters in guests of Xen; NULL on KVM */
	int epoll;
	uint64_t began;     /* 0: not yet */
	uint64_t forgotten; /* events of VMs that were forgotten */
	bool said_counters;
};

static struct instrument *guest_trace_of(const struct vp_instrument *base)
{
	return (struct instrument *)base;
}

static struct vp_error *guest_trace_open(struct vp_instrument *base, struct vp_services *services)
{
	struct instrument *self = guest_trace_of(base);

	self->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (self->epoll < 0)
		return vp_error_errno(errno, "cannot wait for guest events");
	vp_guest_clock_read(&self->clock);
	if (!self->clock.has_counter)
		return vp_error_new(
		    "guest events need a time-stamp counter, which this machine lacks");
	if (!vp_session_hypervisor(self->base.session)
		 ->has_counter_times) /* then it prints a warning */
		vp_session_warn_of_clock(self->base.session);
	if (!vp_session_hypervisor(self->base.session)->has_processes)
		return vp_xen_counters_open(&self->counters);
	return vp_host_vendor() == VP_VENDOR_ARM ? vp_guest_lister_new(&self->lister) : NULL;
}

static bool instrument_guest_trace_is_asked(const struct instrument *self, const struct vp_vm *vm)
{
	vp_vec_each (&self->guests, guest)
		if (vp_guest_events_vm(*guest) == vp_vm_id(vm))
			return true;
	return false;
}

/* Reads the offsets of the vCPUs' counters to the host's from KVM. */
static void instrument_guest_trace_read_counters(struct instrument *self, struct vp_vm *vm)
{
	if (self->counters)
		return;
	vp_vm_read_tsc(vm);
	if (!self->lister)
		return;
	VP_AUTO_ERROR struct vp_error *error = vp_guest_lister_read_counters(self->lister, vm);
	if (error && !vp_vm_has_exited(vm) && !self->said_counters) {
		self->said_counters = true;
		VP_NOTICE(self->base.session,
			  "VM '%s': the offset of its time-stamp counters is unknown, times of its "
			  "guest's events may be wrong: %s",
			  vm->name, vp_error_message(error));
	}
}

static void instrument_guest_trace_wait_for(struct instrument *self,
					    const struct vp_guest_events *guest)
{
	struct epoll_event wanted = {.events = EPOLLIN};

	if (vp_guest_events_fd(guest) >= 0)
		epoll_ctl(self->epoll, EPOLL_CTL_ADD, vp_guest_events_fd(guest), &wanted);
}

static void instrument_guest_trace_ask(struct instrument *self, struct vp_vm *vm)
{
	struct vp_session *session = self->base.session;
	VP_AUTO_FREE char *part = vp_vm_part(vp_session_vms(session), vm);
	const struct vp_guest_events_options options = {
	    .directory = vp_session_directory(session),
	    .port = self->options.port,
	    .sets = self->options.sets,
	    .max_bytes = vp_session_options(session)->agent_bytes,
	    .compression = vp_session_options(session)->compression,
	    .flight_bytes = vp_session_options(session)->flight
				? vp_session_options(session)->flight->bytes
				: 0,
	    .notices = vp_session_notices(session),
	    .clock = &self->clock,
	    .counters = self->counters,
	};

	instrument_guest_trace_read_counters(self, vm);
	struct vp_guest_events *guest = vp_guest_events_new(&options, vm, part);

	vp_vec_push(&self->guests, guest);
	instrument_guest_trace_wait_for(self, guest);
	if (self->began)
		vp_guest_events_begin(guest, self->began);
}

static void ask_all(struct instrument *self)
{
	struct vp_session *session = self->base.session;

	vp_vec_each (vp_session_vms(session), vm)
		if (!vm->end && !vp_vm_is_host(vm) && vp_session_is_chosen(session, vm) &&
		    !instrument_guest_trace_is_asked(self, vm))
			instrument_guest_trace_ask(self, vm);
}

/* Receives the guests' events; times up to `until` are known. */
static void receive_all(struct instrument *self, int timeout_ms)
{
	vp_vec_each (&self->guests, guest)
		vp_guest_events_receive(*guest, timeout_ms);
}

/* Round robin: an agent that floods this process does not starve the others. */
static void receive_while(struct instrument *self,
			  bool (*wanted)(const struct vp_guest_events *guest), uint64_t deadline)
{
	bool more = true;

	while (more && vp_clock_monotonic() < deadline) {
		more = false;
		vp_vec_each (&self->guests, guest)
			if (wanted(*guest)) {
				vp_guest_events_receive(*guest, SLICE_MS);
				more |= wanted(*guest);
			}
	}
}

static struct vp_error *guest_trace_prepare(struct vp_instrument *base)
{
	struct instrument *self = guest_trace_of(base);
	uint64_t deadline = vp_clock_monotonic() + SETTLE_MS * 1000000ULL;

	ask_all(self);
	vp_vec_each (&self->guests, guest)
		while (vp_guest_events_is_asking(*guest) && vp_clock_monotonic() < deadline)
			vp_guest_events_receive(*guest, SLICE_MS);
	return NULL;
}

static struct vp_error *guest_trace_start(struct vp_instrument *base, uint64_t now)
{
	struct instrument *self = guest_trace_of(base);

	receive_all(self, 0); /* earlier data */
	self->began = now;
	vp_vec_each (&self->guests, guest)
		vp_guest_events_begin(*guest, now);
	return NULL;
}

static int guest_trace_fd(const struct vp_instrument *base)
{
	return guest_trace_of(base)->epoll;
}

static struct vp_error *guest_trace_drain(struct vp_instrument *base)
{
	receive_all(guest_trace_of(base), 0);
	return NULL;
}

/* Reads new or changed offsets of vCPUs' counters from KVM, after a suspend or migration of the
 * VM. */
static void instrument_guest_trace_update_vcpus(struct instrument *self)
{
	vp_vec_each (&self->guests, guest) {
		struct vp_vm *vm =
		    vp_vms_find(vp_session_vms(self->base.session), vp_guest_events_vm(*guest));
		if (vm && !vm->end) {
			instrument_guest_trace_read_counters(self, vm);
			vp_guest_events_update_vcpu(*guest, vm);
		}
	}
}

/* A domain cannot be destroyed while pages of a vchan are mapped, and nothing else ends the
 * connection. */
static bool guest_trace_has_ended(const struct instrument *self, const struct vp_vm *vm)
{
	return vm->end || (self->counters && vp_xen_counters_is_gone(self->counters, vm));
}

/* Reconnects to agents: a guest that has rebooted has a new agent. */
static void ask_again(struct instrument *self, uint64_t now)
{
	vp_vec_each (&self->guests, guest) {
		const struct vp_vm *vm =
		    vp_vms_find(vp_session_vms(self->base.session), vp_guest_events_vm(*guest));
		if (vm && guest_trace_has_ended(self, vm))
			vp_guest_events_give_up(*guest);
		else if (vm && vp_guest_events_again(*guest, vm, now))
			instrument_guest_trace_wait_for(self, *guest);
	}
}

static void guest_trace_second(struct vp_instrument *base, uint64_t now)
{
	struct instrument *self = guest_trace_of(base);

	vp_guest_clock_read(&self->clock);
	ask_all(self);
	instrument_guest_trace_update_vcpus(self);
	ask_again(self, now);
	vp_vec_each (&self->guests, guest) {
		vp_guest_events_flush(*guest);
		if (vp_session_options(base->session)->flight)
			vp_guest_events_forget(
			    *guest, vp_trace_writer_reach(vp_session_trace(base->session)));
	}
}

static void guest_trace_request_flush(struct vp_instrument *base)
{
	struct instrument *self = guest_trace_of(base);
	uint64_t deadline = vp_clock_monotonic() + HASTE_MS * 1000000ULL;

	vp_vec_each (&self->guests, guest)
		vp_guest_events_request_flush(*guest);
	receive_while(self, vp_guest_events_flush_pending, deadline);
}

static struct vp_error *guest_trace_put_streams(struct vp_instrument *base, const char *directory,
						uint64_t from)
{
	const vp_vms *vms = vp_session_vms(base->session);
	struct vp_error *error = NULL;

	vp_vec_each (&guest_trace_of(base)->guests, guest) {
		const struct vp_vm *vm = vp_vms_find(vms, vp_guest_events_vm(*guest));
		/* The name is that in the snapshot's list of VMs. */
		VP_AUTO_FREE char *part = vm ? vp_vm_part(vms, vm) : NULL;
		VP_AUTO_FREE char *path = vp_format("%s/%s", directory, part ? part : "");
		if (part)
			error = vp_session_first_of(error,
						    vp_guest_events_snapshot(*guest, path, from));
	}
	return error;
}

static struct vp_error *guest_trace_stop(struct vp_instrument *base)
{
	uint64_t now = vp_clock_monotonic();

	vp_vec_each (&guest_trace_of(base)->guests, guest)
		vp_guest_events_stop(*guest, now);
	return NULL;
}

static struct vp_error *guest_trace_finish(struct vp_instrument *base, uint64_t end)
{
	struct instrument *self = guest_trace_of(base);
	uint64_t deadline = vp_clock_monotonic() + END_MS * 1000000ULL;

	receive_while(self, vp_guest_events_is_open, deadline);
	instrument_guest_trace_update_vcpus(self);
	vp_vec_each (&self->guests, guest) {
		const struct vp_vm *vm =
		    vp_vms_find(vp_session_vms(base->session), vp_guest_events_vm(*guest));
		if (vm && vp_guest_events_is_open(*guest))
			VP_NOTICE(base->session,
				  "VM '%s': its agent did not end within %d s: its last events are "
				  "missing",
				  vm->name, END_MS / 1000);
		vp_guest_events_flush(*guest);
	}
	return NULL;
}

static void guest_trace_conclude(struct vp_instrument *base)
{
	struct instrument *self = guest_trace_of(base);

	vp_vec_each (&self->guests, guest) {
		struct vp_vm *vm =
		    vp_vms_find(vp_session_vms(base->session), vp_guest_events_vm(*guest));
		uint64_t lost = vp_guest_events_lost(*guest);
		if (!vm)
			continue;
		vm->guest_events = vp_guest_events_count(*guest);
		vm->guest_events_lost = lost;
		const struct vp_agent_outcome outcome = vp_guest_events_outcome(*guest);
		VP_AUTO_FREE char *text = vp_agent_outcome_text(&outcome);
		vp_session_note_agent(base->session, vm, &outcome);
		if (vp_guest_events_count(*guest))
			VP_NOTICE(base->session, "VM '%s': its agent: %s", vm->name, text);
		if (lost)
			VP_NOTICE(base->session,
				  "VM '%s': %" PRIu64
				  " events of its guest were lost: the recorder did not keep up",
				  vm->name, lost);
	}
	if (self->clock.future || self->clock.past)
		VP_NOTICE(base->session,
			  "%" PRIu64 " guest events had times outside of the recording",
			  self->clock.future + self->clock.past);
}

/* Guest events are in traces of their own. */
static uint64_t guest_trace_lost(const struct vp_instrument *base, struct vp_stream_id id)
{
	return 0;
}

static void guest_trace_put_total(const struct vp_instrument *base, struct vp_buffer *out)
{
	uint64_t count = guest_trace_of(base)->forgotten;

	vp_vec_each (&guest_trace_of(base)->guests, guest)
		count += vp_guest_events_count(*guest);
	vp_buffer_printf(out, "%" PRIu64 " events of guests, ", count);
}

static void guest_trace_forget_vm(struct vp_instrument *base, uint32_t id)
{
	struct instrument *self = guest_trace_of(base);
	size_t kept = 0;

	vp_vec_each (&self->guests, guest) {
		if (vp_guest_events_vm(*guest) != id) {
			self->guests.at[kept++] = *guest;
			continue;
		}
		self->forgotten += vp_guest_events_count(*guest);
		vp_guest_events_free(*guest);
	}
	self->guests.count = kept;
}

static void guest_trace_free(struct vp_instrument *base)
{
	struct instrument *self = guest_trace_of(base);

	vp_vec_each (&self->guests, guest)
		vp_guest_events_free(*guest);
	vp_vec_deinit(&self->guests);
	vp_guest_clock_deinit(&self->clock);
	vp_guest_lister_free(self->lister);
	vp_xen_counters_close(self->counters);
	if (self->epoll >= 0)
		close(self->epoll);
	free(base);
}

struct vp_instrument *
vp_instrument_guest_trace(const struct vp_instrument_guest_trace_options *options)
{
	static const struct vp_instrument_ops ops = {
	    .name = "guest-trace",
	    .open = guest_trace_open,
	    .prepare = guest_trace_prepare,
	    .start = guest_trace_start,
	    .fd = guest_trace_fd,
	    .drain = guest_trace_drain,
	    .second = guest_trace_second,
	    .stop = guest_trace_stop,
	    .finish = guest_trace_finish,
	    .request_flush = guest_trace_request_flush,
	    .put_streams = guest_trace_put_streams,
	    .conclude = guest_trace_conclude,
	    .lost = guest_trace_lost,
	    .put_total = guest_trace_put_total,
	    .forget_vm = guest_trace_forget_vm,
	    .free = guest_trace_free,
	};
	struct instrument *self = vp_alloc(sizeof(*self));

	*self = (struct instrument){.options = *options, .epoll = -1};
	self->base.ops = &ops;
	return &self->base;
}
