/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/instrument_intervals.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/macros.h"
#include "base/vec.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_state.h"
#include "collect/guests/guest_watch.h"
#include "collect/programs/hypervisor.h"
#include "collect/programs/hypervisor_intervals.h"
#include "collect/programs/intervals_source.h"
#include "schema/agent_outcome.h"
#include "schema/interval.h"
#include "schema/memory_outcome.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "session/admit.h"
#include "session/guest_agents.h"
#include "session/hypervisor_choice.h"
#include "session/instrument.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/trace_writer.h"

enum {
	BOOT_MS = 30000,   /* time for a new guest to boot its kernel */
	CHECK_S = 10,      /* a rebooted guest has other counters */
	AGENTS_MS = 10000, /* time for agents' replies */
};

struct instrument {
	struct vp_instrument base;
	struct vp_instrument_intervals_options options;
	struct vp_intervals *intervals;
	/* In place of `intervals`: the hypervisor counts; NULL: it does not. */
	const struct vp_hypervisor_intervals_ops *ops;
	struct vp_hypervisor_intervals *own;
	bool in_memory;                 /* read guest memory */
	struct vp_guest_agents *agents; /* NULL: agents are not asked */
	struct vp_admission admission;
	uint64_t n_intervals;
	bool stopped;
	VP_VEC(struct vp_task) new_threads; /* vCPUs to be watched */
};

static struct instrument *intervals_of(const struct vp_instrument *base)
{
	return (struct instrument *)base;
}

static void note(const struct instrument *self, struct vp_error *error)
{
	if (error)
		VP_NOTICE(self->base.session, "%s", vp_error_message(error));
	vp_error_free(error);
}

/* Processes a record of the programs: an interval with its values, or the name of a new vCPU's
 * thread. */
static void instrument_intervals_take_records(void *context, uint32_t pcpu, char *records,
					      size_t size)
{
	struct instrument *self = context;
	struct vp_session *session = self->base.session;
	const struct vp_record_header *first = (const void *)records;
	struct vp_run run = {
	    .bytes = records, .size = size, .n = 1, .first = first->time, .last = first->time};

	if (first->id == VP_ID_interval) {
		const struct vp_interval *interval = (const void *)records;
		run.n += interval->values;
		self->n_intervals++;
		if (self->options.recipe->per == VP_PER_VCPU)
			vp_admit(session, &self->admission, records);
	} else {
		const struct vp_task *task = (const void *)records;
		vp_session_vm(session, task->pid);
		vp_vec_push(&self->new_threads, *task);
	}
	vp_trace_append_run(vp_session_trace(session),
			    (struct vp_stream_id){VP_STREAM_INTERVALS, pcpu}, &run);
}

/* If intervals are closed by events, each thread needs an event of its own. */
static void watch_new_threads(struct instrument *self)
{
	vp_vec_each (&self->new_threads, task)
		if (!vp_intervals_is_watched(self->intervals, task->tid))
			note(self, vp_intervals_watch(self->intervals, task->pid, task->tid,
						      VP_VCPU_UNKNOWN));
	self->new_threads.count = 0;
}

static struct vp_error *watch_vm(struct instrument *self, const struct vp_vm *vm)
{
	if (!vp_session_is_chosen(self->base.session, vm))
		return NULL;
	vp_vec_each (&vm->vcpus, vcpu)
		if (vcpu->tid && !vp_intervals_is_watched(self->intervals, vcpu->tid))
			VP_TRY(
			    vp_intervals_watch(self->intervals, vm->pid, vcpu->tid, vcpu->number));
	return NULL;
}

static struct vp_error *watch_all(struct instrument *self)
{
	const struct vp_instrument_intervals_options *options = &self->options;

	if (options->recipe->per == VP_PER_TASK)
		return vp_intervals_watch(self->intervals, options->task, options->task,
					  VP_VCPU_UNKNOWN);
	if (options->recipe->per == VP_PER_VCPU)
		vp_vec_each (vp_session_vms(self->base.session), vm)
			VP_TRY(watch_vm(self, vm));
	return NULL;
}

static struct vp_error *intervals_open(struct vp_instrument *base, struct vp_services *services)
{
	struct instrument *self = intervals_of(base);
	struct vp_intervals_options how = {
	    .recipe = self->options.recipe,
	    .ring_bytes = self->options.ring_bytes,
	    .exit_programs = services->exit_programs,
	    .kernel = vp_session_kernel_btf(base->session),
	    .only_watched = vp_session_options(base->session)->n_vm_names > 0,
	    .take = instrument_intervals_take_records,
	    .context = self,
	};

	VP_TRY(vp_intervals_open(&how, &self->intervals));
	char *missing = vp_intervals_missing(self->intervals);
	if (missing)
		vp_vec_push(vp_session_notices(base->session), missing);
	return watch_all(self);
}

/* With samples, these fields are about them; the recipe describes the intervals. */
static void intervals_describe(const struct vp_instrument *base, struct vp_recording *info)
{
	const struct vp_recipe *recipe = intervals_of(base)->options.recipe;

	if (vp_recording_has_instrument(info, "profile"))
		return;
	free(info->trigger);
	info->trigger = vp_strdup(recipe->unit_name);
	info->period_ns = recipe->unit == VP_UNIT_TIME ? recipe->width : 1;
}

static struct vp_error *intervals_identify(void *context, uint32_t number,
					   const struct vp_guest_state *state,
					   const struct vp_guest_finding *finding)
{
	return vp_intervals_identify(context, state, finding);
}

static void intervals_forget(void *context, uint32_t pid)
{
	vp_intervals_forget(context, pid);
}

static void intervals_outcome(void *context, uint32_t pid, const struct vp_guest_finding *finding,
			      struct vp_memory_outcome *ret)
{
	vp_memory_outcome_count(ret, VP_MEMORY_COUNTERS, finding->counts.count,
				finding->cpus.count);
}

static void intervals_watch_guests(struct vp_instrument *base)
{
	struct instrument *self = intervals_of(base);
	const struct vp_guest_watch_client user = {.context = self->intervals,
						   .name = "intervals",
						   .check_s = CHECK_S,
						   .identify = intervals_identify,
						   .forget = intervals_forget,
						   .outcome = intervals_outcome};

	self->in_memory = self->options.read_guest_memory &&
			  vp_intervals_guest_events(self->intervals) & VP_GUEST_IN_MEMORY;
	if (self->in_memory)
		vp_session_watch_guests(base->session, &user);
}

/* Whether to ask the VM's agent: counters that are unknown by now are not in guest memory. A
 * booting guest gets some time. */
static bool is_agents_turn(const struct instrument *self, const struct vp_vm *vm)
{
	const struct vp_session *session = self->base.session;
	uint64_t waited = vp_clock_monotonic() - vm->start;

	return vp_session_is_chosen(session, vm) && !vm->end &&
	       !vp_guest_agents_asked(self->agents, vm) &&
	       (!self->in_memory || vm->at_start ||
		vp_guest_watch_has_found(vp_session_guest_watch(session), vm) ||
		waited > BOOT_MS * 1000000ULL);
}

static void ask_agents(struct instrument *self)
{
	vp_vec_each (vp_session_vms(self->base.session), vm)
		if (is_agents_turn(self, vm))
			vp_guest_agents_ask(self->agents, vm);
		else
			vp_guest_agents_again(self->agents, vm);
}

/* Requests counters that are not in guest memory from agents. */
static void watch_agents(struct instrument *self)
{
	struct vp_session *session = self->base.session;

	if (!self->options.ask_agents || !vp_intervals_guest_events(self->intervals))
		return;
	self->agents = vp_guest_agents_new(self->intervals, self->options.agent_port,
					   vp_session_notices(session));
	if (vp_session_vms(session)->count)
		vp_session_say(session, false, "waiting for the guest agents");
	ask_agents(self);
	vp_guest_agents_settle(self->agents, AGENTS_MS);
}

static struct vp_error *intervals_put_files(struct vp_instrument *base, const char *directory)
{
	VP_AUTO_FREE char *path = vp_recording_recipe_path(directory);
	struct vp_buffer text = {0};

	vp_recipe_write(intervals_of(base)->options.recipe, &text);
	struct vp_error *error = vp_file_publish(path, text.bytes, text.size);
	vp_buffer_deinit(&text);
	return error;
}

static struct vp_error *intervals_prepare(struct vp_instrument *base)
{
	struct vp_error *error = intervals_put_files(base, vp_session_directory(base->session));

	if (!error)
		watch_agents(intervals_of(base));
	return error;
}

static struct vp_error *intervals_start(struct vp_instrument *base, uint64_t now)
{
	return vp_intervals_begin(intervals_of(base)->intervals);
}

static int intervals_fd(const struct vp_instrument *base)
{
	return vp_intervals_fd(intervals_of(base)->intervals);
}

static struct vp_error *intervals_drain(struct vp_instrument *base)
{
	struct instrument *self = intervals_of(base);

	VP_TRY(vp_intervals_drain(self->intervals));
	if (self->stopped)
		return NULL;
	watch_new_threads(self);
	if (self->agents) {
		ask_agents(self);
		vp_guest_agents_step(self->agents);
	}
	return NULL;
}

static struct vp_error *intervals_add_pcpu(struct vp_instrument *base, uint32_t pcpu)
{
	VP_TRY(vp_intervals_add_pcpu(intervals_of(base)->intervals, pcpu));
	vp_session_add_pcpu(base->session, pcpu, VP_STREAMS(VP_STREAM_INTERVALS));
	return NULL;
}

static struct vp_error *intervals_stop(struct vp_instrument *base)
{
	intervals_of(base)->stopped = true;
	return vp_intervals_end(intervals_of(base)->intervals);
}

static void note_agents(struct instrument *self)
{
	if (!self->agents)
		return;
	vp_vec_each (vp_session_vms(self->base.session), vm) {
		struct vp_agent_outcome outcome;
		if (vp_guest_agents_outcome(self->agents, vm, &outcome))
			vp_session_note_agent(self->base.session, vm, &outcome);
	}
	/* The agent serves only one client, and its symbol map is requested next. */
	vp_guest_agents_free(self->agents);
	self->agents = NULL;
}

static void note_guests(const struct instrument *self)
{
	vp_vec_each (vp_session_vms(self->base.session), vm)
		if (self->in_memory && vm->memory[0] && strncmp(vm->memory, "ok", 2) != 0)
			VP_NOTICE(self->base.session,
				  "VM '%s': the guest kernel's counters are not available: %s",
				  vm->name, vm->memory);
}

static void intervals_conclude(struct vp_instrument *base)
{
	struct instrument *self = intervals_of(base);
	uint64_t homeless = vp_intervals_lost(self->intervals).subjects;

	if (homeless)
		VP_NOTICE(base->session,
			  "%" PRIu64 " threads have no intervals: the table was full", homeless);
	if (self->options.recipe->per == VP_PER_VCPU && !self->n_intervals)
		VP_NOTICE(base->session,
			  "no vCPU ran: no intervals (--native counts COMMAND itself)");
	note_agents(self);
	note_guests(self);
}

/* The BPF programs keep one loss counter; it is reported with the first stream. */
static uint64_t intervals_lost(const struct vp_instrument *base, struct vp_stream_id id)
{
	const struct instrument *self = intervals_of(base);
	bool first = (int)id.pcpu == vp_session_pcpus(base->session)->at[0];

	return first && self->intervals ? vp_intervals_lost(self->intervals).intervals : 0;
}

static void intervals_put_total(const struct vp_instrument *base, struct vp_buffer *out)
{
	vp_buffer_printf(out, "%" PRIu64 " interval%s, ", intervals_of(base)->n_intervals,
			 intervals_of(base)->n_intervals == 1 ? "" : "s");
}

static void intervals_forget_vm(struct vp_instrument *base, uint32_t id)
{
	if (intervals_of(base)->agents)
		vp_guest_agents_forget(intervals_of(base)->agents, id);
}

static void intervals_free(struct vp_instrument *base)
{
	struct instrument *self = intervals_of(base);

	vp_guest_agents_free(self->agents);
	vp_intervals_free(self->intervals);
	vp_vec_deinit(&self->new_threads);
	free(self);
}

/* The hypervisor's vCPUs may have no CPU of the host: all intervals are in the first stream. */
static void take_own(void *context, uint32_t pcpu, char *records, size_t size)
{
	struct instrument *self = context;
	struct vp_session *session = self->base.session;
	const struct vp_interval *interval = (const void *)records;
	struct vp_run run = {.bytes = records,
			     .size = size,
			     .n = 1 + interval->values,
			     .first = interval->time,
			     .last = interval->time};
	(void)pcpu;
	vp_admit(session, &self->admission, records);
	if (self->admission.is_unselected)
		return;
	self->n_intervals++;
	vp_trace_append_run(
	    vp_session_trace(session),
	    (struct vp_stream_id){VP_STREAM_INTERVALS, (uint32_t)vp_session_pcpus(session)->at[0]},
	    &run);
}

static struct vp_error *own_open(struct vp_instrument *base, struct vp_services *services)
{
	struct instrument *self = intervals_of(base);
	const struct vp_hypervisor_intervals_options how = {.recipe = self->options.recipe,
							    .paravirtual =
								self->options.paravirtual,
							    .take = take_own,
							    .context = self};

	VP_TRY(self->ops->open(&how, &self->own));
	char *missing = self->ops->missing(self->options.recipe, self->options.paravirtual);
	if (missing)
		vp_vec_push(vp_session_notices(base->session), missing);
	return NULL;
}

static struct vp_error *own_prepare(struct vp_instrument *base)
{
	return intervals_put_files(base, vp_session_directory(base->session));
}

static struct vp_error *own_start(struct vp_instrument *base, uint64_t now)
{
	return intervals_of(base)->ops->begin(intervals_of(base)->own, now);
}

static struct vp_error *own_drain(struct vp_instrument *base)
{
	if (!intervals_of(base)->stopped)
		intervals_of(base)->ops->drain(intervals_of(base)->own);
	return NULL;
}

static struct vp_error *own_stop(struct vp_instrument *base)
{
	intervals_of(base)->stopped = true;
	intervals_of(base)->ops->end(intervals_of(base)->own);
	return NULL;
}

static void own_conclude(struct vp_instrument *base)
{
	if (!intervals_of(base)->n_intervals)
		VP_NOTICE(base->session, "no intervals: no vCPU had an event");
}

static uint64_t own_lost(const struct vp_instrument *base, struct vp_stream_id id)
{
	const struct instrument *self = intervals_of(base);
	bool first = (int)id.pcpu == vp_session_pcpus(base->session)->at[0];

	return first && self->own ? self->ops->lost(self->own) : 0;
}

static void own_free(struct vp_instrument *base)
{
	struct instrument *self = intervals_of(base);

	if (self->own)
		self->ops->free(self->own);
	free(self);
}

static const struct vp_instrument_ops *own_ops(void)
{
	static const struct vp_instrument_ops ops = {.name = "intervals",
						     .classes = VP_STREAMS(VP_STREAM_INTERVALS),
						     .often = true,
						     .open = own_open,
						     .describe = intervals_describe,
						     .prepare = own_prepare,
						     .put_files = intervals_put_files,
						     .start = own_start,
						     .drain = own_drain,
						     .stop = own_stop,
						     .conclude = own_conclude,
						     .lost = own_lost,
						     .put_total = intervals_put_total,
						     .free = own_free};

	return &ops;
}

struct vp_instrument *vp_instrument_intervals(const struct vp_instrument_intervals_options *options)
{
	static const struct vp_instrument_ops ops = {
	    .name = "intervals",
	    .classes = VP_STREAMS(VP_STREAM_INTERVALS),
	    .uses = VP_SERVICE_EXIT_PROGRAMS,
	    .open = intervals_open,
	    .describe = intervals_describe,
	    .watch_guests = intervals_watch_guests,
	    .prepare = intervals_prepare,
	    .put_files = intervals_put_files,
	    .start = intervals_start,
	    .fd = intervals_fd,
	    .drain = intervals_drain,
	    .add_pcpu = intervals_add_pcpu,
	    .stop = intervals_stop,
	    .conclude = intervals_conclude,
	    .lost = intervals_lost,
	    .put_total = intervals_put_total,
	    .forget_vm = intervals_forget_vm,
	    .free = intervals_free,
	};
	struct instrument *self = vp_alloc(sizeof(*self));

	const struct vp_hypervisor *here = vp_hypervisor_here();
	const struct vp_recipe *recipe = options->recipe;
	self->base.ops = &ops;
	self->options = *options;
	if (here->intervals && recipe->per == VP_PER_VCPU && !recipe->native) {
		self->ops = here->intervals();
		self->base.ops = own_ops();
	}
	return &self->base;
}
