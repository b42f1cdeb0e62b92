/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/xen_sampler.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/vec.h"
#include "bpf/xen_pmu_abi.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_state.h"
#include "schema/guest_sampling.h"
#include "schema/records.h"
#include "schema/schema.h"
#include "xen/context.h"
#include "xen/domains.h"
#include "xen/frames.h"
#include "xen/guest_samples.h"
#include "xen/library.h"
#include "xen/states.h"
#include "xen/xen_pmu.h"

#define SECOND 1000000000ULL
#define LIST_NS (SECOND / 10) /* interval of the domain list */

struct sampled_vcpu {
	uint32_t number;
	bool known;        /* `accounted` is valid */
	bool is_new;       /* created while guests were sampled: no earlier CPU time */
	uint64_t cpu_time; /* at its last sample, ns */
	uint64_t
	    accounted; /* CPU time represented by samples, or time up to which contexts were read */
	struct vp_xen_last last;
	struct vp_xen_weights weights; /* if the accounting reports exits */
};

/* A domain, present or ended. */
struct sampled {
	struct vp_xen_domain domain;
	bool gone;
	struct vp_xen_reported reported;
	VP_VEC(struct sampled_vcpu) vcpus;
};

/* A context whose weight is not known yet; or a counter interrupt, with only time and address. */
struct pending_sample {
	uint16_t domain, vcpu; /* a reserved domain id: the sample is in Xen */
	uint32_t pcpu;
	bool counted;
	union vp_any_record task, sample;
};

/* Maximum time from a guest's exit to the counter interrupt that caused it. */
#define MAX_EXIT_NS 2000000ULL

enum { LAST_EXITS = 8 };

/* A pCPU's last exits for interrupts: the trace may have been read further than the counter
 * interrupts. */
struct last_exits {
	struct vp_xen_exit at[LAST_EXITS]; /* time 0: unused, or a counter interrupt was matched */
	unsigned next;
};

struct vp_guest_sampler {
	struct vp_guest_sampler_options options;
	struct vp_xen *xen;
	struct vp_xen_frames frames; /* empty while there is no PV guest */
	char *frames_problem;        /* mapping error, or NULL */
	struct vp_xen_pmu *pmu;      /* NULL: guests are not interrupted by counters */
	pthread_t thread;
	bool running;
	atomic_bool ending;
	pthread_mutex_t lock; /* protects the following */
	VP_VEC(struct sampled) domains;
	bool listed;        /* domains were listed once */
	uint64_t next_list; /* time of the next domain list */
	VP_VEC(union vp_any_record) records;
	VP_VEC(struct pending_sample) pending; /* sorted by time */
	VP_VEC(struct last_exits) exits;       /* with `pmu`: per pCPU */
	bool reported;                         /* the accounting reports exits … */
	uint64_t known;                        /* … and has reported all up to this time */
	uint64_t
	    counted_at_exits; /* counter interrupts in Xen that were matched with a guest's exit */
	struct vp_guest_sampler_totals totals;
};

enum { MAX_RECORDS = 1 << 18 }; /* maximum queued records */

static struct sampled *sampled_of(struct vp_guest_sampler *sampler, uint32_t domain)
{
	vp_vec_each (&sampler->domains, sampled)
		if (sampled->domain.id == domain)
			return sampled;
	struct sampled *sampled = vp_vec_push_slot(&sampler->domains);
	*sampled = (struct sampled){.domain = {.id = (uint16_t)domain}, .gone = true};
	return sampled;
}

/* Ends the vCPUs; their remaining CPU time has no samples. */
static void leave_vcpus(struct vp_guest_sampler *sampler, struct sampled *sampled)
{
	if (sampler->reported) /* they may have run until now, which accounting will show */
		return;
	vp_vec_each (&sampled->vcpus, vcpu)
		if (vcpu->known && vcpu->cpu_time > vcpu->accounted)
			sampler->totals.unsampled_ns += vcpu->cpu_time - vcpu->accounted;
	sampled->vcpus.count = 0;
}

/* Without Xen's M2P table, processes of PV guests are unknown. */
static void need_frames(struct vp_guest_sampler *sampler)
{
	if (sampler->frames.count || sampler->frames_problem)
		return;
	VP_AUTO_ERROR struct vp_error *error = vp_xen_frames_map(sampler->xen, &sampler->frames);
	if (error)
		sampler->frames_problem = vp_strdup(vp_error_message(error));
}

static void take_domain(struct vp_guest_sampler *sampler, const struct vp_xen_domain *domain)
{
	struct sampled *sampled = sampled_of(sampler, domain->id);

	sampled->domain = *domain;
	sampled->gone = false;
	if (!(domain->flags & VP_XEN_HVM))
		need_frames(sampler);
	for (uint32_t i = (uint32_t)sampled->vcpus.count;
	     i <= domain->last_vcpu && domain->last_vcpu != UINT32_MAX; i++)
		vp_vec_push(&sampled->vcpus,
			    ((struct sampled_vcpu){.number = i, .is_new = sampler->listed}));
}

static void list_domains(struct vp_guest_sampler *sampler)
{
	struct vp_xen_domain domain;

	vp_vec_each (&sampler->domains, sampled)
		sampled->gone = true;
	for (uint32_t next = 1; vp_xen_domain_next(sampler->xen, next, &domain);
	     next = domain.id + 1u)
		take_domain(sampler, &domain);
	sampler->listed = true;
	vp_vec_each (&sampler->domains, sampled)
		if (sampled->gone) {
			leave_vcpus(sampler, sampled);
			vp_xen_reported_forget(&sampled->reported);
		}
}

static bool xen_sampler_put(struct vp_guest_sampler *sampler, const union vp_any_record *record)
{
	if (sampler->records.count >= MAX_RECORDS) {
		sampler->totals.lost++;
		return false;
	}
	vp_vec_push(&sampler->records, *record);
	return true;
}

static void xen_sampler_put_sample(struct vp_guest_sampler *sampler,
				   const struct vp_guest_sample *sample, uint64_t periods)
{
	union vp_any_record record = {.guest_sample = *sample};

	sampler->totals.late += periods - 1;
	record.guest_sample.flags |= VP_LATE;
	for (uint64_t i = 1; i < periods; i++)
		xen_sampler_put(sampler, &record);
	record.guest_sample.flags &= (uint16_t)~VP_LATE;
	xen_sampler_put(sampler, &record);
}

static void put_context(struct vp_guest_sampler *sampler, struct sampled *sampled,
			struct sampled_vcpu *vcpu, const struct vp_xen_raw_sample *raw)
{
	struct pending_sample pending_sample = {.domain = (uint16_t)raw->domain,
						.vcpu = (uint16_t)raw->vcpu};

	vp_xen_sample_make(&sampled->reported, raw, &vcpu->last, &pending_sample.task,
			   &pending_sample.sample);
	sampler->totals.samples++;
	if (sampler->reported) {
		vp_vec_push(&sampler->pending, pending_sample);
		return;
	}
	if (pending_sample.task.header.id)
		xen_sampler_put(sampler, &pending_sample.task);
	xen_sampler_put_sample(sampler, &pending_sample.sample.guest_sample, raw->periods);
}

static void sample_vcpu(struct vp_guest_sampler *sampler, struct sampled *sampled,
			struct sampled_vcpu *vcpu)
{
	const uint64_t period =
	    sampler->reported ? sampler->options.poll_ns : sampler->options.period_ns;
	struct vp_xen_raw_sample raw = {.domain = sampled->domain.id, .vcpu = vcpu->number};

	raw.periods = vp_xen_periods_due(vcpu->cpu_time, period, &vcpu->accounted);
	if (!raw.periods)
		return;
	raw.time = vp_clock_monotonic();
	bool read = vp_xen_context_read(sampler->xen, &sampled->domain, vcpu->number, &raw.context);
	uint64_t pause = vp_clock_monotonic() - raw.time;
	if (!read) {
		sampler->totals.unsampled_ns += sampler->reported ? 0 : raw.periods * period;
		return;
	}
	if (!(sampled->domain.flags & VP_XEN_HVM))
		raw.context.root = vp_xen_frames_translate(&sampler->frames, raw.context.root);
	sampler->totals.pause += pause;
	if (pause > sampler->totals.max_ns)
		sampler->totals.max_ns = pause;
	put_context(sampler, sampled, vcpu, &raw);
}

/* A blocked vCPU is not sampled: its CPU time is charged at the next sample that finds it
 * running. */
static void xen_sampler_sample_vcpu(struct vp_guest_sampler *sampler, struct sampled *sampled,
				    struct sampled_vcpu *vcpu)
{
	const struct vp_xen *xen = sampler->xen;
	struct vp_xen_vcpu now;

	if (xen->call.vcpu_getinfo(xen->control, sampled->domain.id, vcpu->number, &now) ||
	    !now.online)
		return;
	if (!vcpu->known) {
		vcpu->accounted = now.cpu_time;
		sampler->totals.unsampled_ns +=
		    vcpu->is_new && !sampler->reported ? now.cpu_time : 0;
	}
	vcpu->known = true;
	vcpu->cpu_time = now.cpu_time;
	if (!now.blocked)
		sample_vcpu(sampler, sampled, vcpu);
}

static void xen_sampler_sample_all(struct vp_guest_sampler *sampler)
{
	uint64_t now = vp_clock_monotonic();

	if (now >= sampler->next_list) {
		sampler->next_list = now + LIST_NS;
		list_domains(sampler);
	}
	vp_vec_each (&sampler->domains, sampled)
		vp_vec_each (&sampled->vcpus, vcpu)
			if (!sampled->gone)
				xen_sampler_sample_vcpu(sampler, sampled, vcpu);
}

static void sleep_until(uint64_t time)
{
	const struct timespec until = {.tv_sec = (time_t)(time / SECOND),
				       .tv_nsec = (long)(time % SECOND)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static void *xen_sampler_run(void *context)
{
	struct vp_guest_sampler *sampler = context;
	const uint64_t period = sampler->options.poll_ns;
	uint64_t next = vp_clock_monotonic();

	while (!sampler->ending) {
		pthread_mutex_lock(&sampler->lock);
		xen_sampler_sample_all(sampler);
		pthread_mutex_unlock(&sampler->lock);
		uint64_t now = vp_clock_monotonic();
		next += period;
		if (next < now) /* missed samples are not repeated */
			next += (now - next + period - 1) / period * period;
		sleep_until(next);
	}
	return NULL;
}

static void sampler_free(struct vp_guest_sampler *sampler);

static struct vp_error *sampler_open(const struct vp_guest_sampler_options *options,
				     struct vp_guest_sampler **ret)
{
	struct vp_guest_sampler *sampler = vp_alloc(sizeof(*sampler));

	sampler->options = *options;
	pthread_mutex_init(&sampler->lock, NULL);
	/* A handle of its own: handles are not thread-safe. */
	struct vp_error *error = vp_xen_open(&sampler->xen);
	if (!error && options->interrupts == VP_INTERRUPTS_COUNTERS)
		error =
		    vp_xen_pmu_open(sampler->xen, 1000000000 / options->period_ns, &sampler->pmu);
	if (error)
		sampler_free(sampler);
	else
		*ret = sampler;
	return error;
}

static struct vp_error *sampler_begin(struct vp_guest_sampler *sampler)
{
	sigset_t all, before;

	/* Signals are delivered to the main thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failure = pthread_create(&sampler->thread, NULL, xen_sampler_run, sampler);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sampler->running = !failure;
	if (failure)
		return vp_error_errno(failure, "cannot start the thread that samples guests");
	return sampler->pmu ? vp_xen_pmu_begin(sampler->pmu) : NULL;
}

static struct vp_error *sampler_end(struct vp_guest_sampler *sampler)
{
	struct vp_error *error = sampler->pmu ? vp_xen_pmu_end(sampler->pmu) : NULL;

	if (!sampler->running)
		return error;
	sampler->ending = true;
	pthread_join(sampler->thread, NULL);
	sampler->running = false;
	vp_vec_each (&sampler->domains, sampled)
		leave_vcpus(sampler, sampled);
	return error;
}

/* Destination of these exits. */
struct sink {
	struct vp_guest_sampler *sampler;
	struct sampled *sampled;
};

static void take_weighed(void *context, const struct vp_guest_sample *sample, uint64_t periods)
{
	const struct sink *sink = context;
	struct vp_guest_sampler_totals *totals = &sink->sampler->totals;
	bool named = sample->flags & VP_BY_MEMORY;

	xen_sampler_put_sample(sink->sampler, sample, periods);
	if (!(sample->flags & VP_AT_INTERRUPT))
		return;
	totals->exits++;
	totals->exit_periods += periods;
	totals->unknown_periods += sample->flags & VP_HAS_AS_ROOT ? 0 : periods;
	*(named ? &sink->sampled->reported.counts.named
		: &sink->sampled->reported.counts.unnamed) +=
	    sink->sampled->reported.known ? periods : 0;
}

static struct sampled_vcpu *xen_sampler_vcpu_of(struct vp_guest_sampler *sampler, uint32_t domain,
						uint32_t number)
{
	struct sampled *sampled = sampled_of(sampler, domain);

	while (sampled->vcpus.count <= number)
		vp_vec_push(&sampled->vcpus,
			    ((struct sampled_vcpu){.number = (uint32_t)sampled->vcpus.count,
						   .is_new = sampler->listed}));
	return &sampled->vcpus.at[number];
}

bool vp_xen_sampler_wants_account(const struct vp_guest_sampler *sampler)
{
	return sampler->options.interrupts != VP_INTERRUPTS_NONE;
}

bool vp_xen_sampler_wants_exits(const struct vp_guest_sampler *sampler)
{
	return sampler->options.interrupts != VP_INTERRUPTS_NONE;
}

/* Sorts counter interrupts by time: they are drained per dom0 vCPU. */
static void take_counted(void *context, const struct vp_xen_pmu_sample *raw)
{
	struct vp_guest_sampler *sampler = context;
	struct pending_sample pending_sample = {
	    .domain = (uint16_t)raw->domain,
	    .vcpu = (uint16_t)raw->vcpu,
	    .pcpu = raw->pcpu,
	    .counted = true,
	    .sample.guest_sample = {.time = raw->time, .id = VP_ID_guest_sample, .ip = raw->ip}};
	size_t at = sampler->pending.count;

	vp_vec_push(&sampler->pending, pending_sample);
	for (; at && sampler->pending.at[at - 1].sample.header.time > raw->time; at--)
		sampler->pending.at[at] = sampler->pending.at[at - 1];
	sampler->pending.at[at] = pending_sample;
}

/* The pCPU's last exit within MAX_EXIT_NS before `time`, or NULL. */
static struct vp_xen_exit *last_exit(struct vp_guest_sampler *sampler, uint32_t pcpu, uint64_t time)
{
	struct vp_xen_exit *ret = NULL;

	for (size_t i = 0; pcpu < sampler->exits.count && i < LAST_EXITS; i++) {
		struct vp_xen_exit *exit = &sampler->exits.at[pcpu].at[i];
		if (exit->time && exit->time <= time && exit->time + MAX_EXIT_NS >= time &&
		    (!ret || ret->time < exit->time))
			ret = exit;
	}
	return ret;
}

/* A counter interrupted Xen. On AMD, this is also where Xen receives interrupts that hit HVM and
 * PVH guests: after the guest's exit, which is then the pCPU's last one. */
static void weigh_at_exit(struct vp_guest_sampler *sampler,
			  const struct pending_sample *pending_sample)
{
	uint64_t time = pending_sample->sample.header.time;
	struct vp_xen_exit *exit = last_exit(sampler, pending_sample->pcpu, time);

	if (!exit)
		return;
	vp_xen_weights_exit(&xen_sampler_vcpu_of(sampler, exit->domain, exit->vcpu)->weights,
			    sampler->options.period_ns, time, exit->ran, exit->ip);
	exit->time = 0;
	sampler->counted_at_exits++;
}

static void xen_sampler_weigh(struct vp_guest_sampler *sampler,
			      const struct pending_sample *pending_sample,
			      struct vp_xen_runner runner)
{
	if (pending_sample->counted && pending_sample->domain >= VP_XEN_DOMID_FIRST_RESERVED) {
		weigh_at_exit(sampler, pending_sample);
		return;
	}
	const struct vp_guest_sample *sample = &pending_sample->sample.guest_sample;
	struct vp_xen_weights *weights =
	    &xen_sampler_vcpu_of(sampler, pending_sample->domain, pending_sample->vcpu)->weights;
	struct sink sink = {sampler, sampled_of(sampler, pending_sample->domain)};
	struct vp_xen_ran ran = {.ns = weights->ran};

	if (pending_sample->task.header.id)
		xen_sampler_put(sampler, &pending_sample->task);
	runner.ran(runner.context, pending_sample->domain, pending_sample->vcpu, sample->time,
		   &ran);
	if (pending_sample->counted) {
		vp_xen_weights_exit(weights, sampler->options.period_ns, sample->time, ran.ns,
				    sample->ip);
		return;
	}
	vp_xen_weights_context(weights, sampler->options.period_ns, ran, sample,
			       (struct vp_xen_weighed){take_weighed, &sink});
}

uint64_t vp_xen_sampler_weigh(struct vp_guest_sampler *sampler, uint64_t time,
			      struct vp_xen_runner runner)
{
	uint64_t next = UINT64_MAX;
	size_t done = 0;

	pthread_mutex_lock(&sampler->lock);
	sampler->reported = true;
	if (sampler->pmu)
		vp_xen_pmu_drain(sampler->pmu, take_counted, sampler);
	while (done < sampler->pending.count &&
	       sampler->pending.at[done].sample.header.time <= time)
		xen_sampler_weigh(sampler, &sampler->pending.at[done++], runner);
	sampler->pending.count -= done;
	if (sampler->pending.count) {
		memmove(sampler->pending.at, sampler->pending.at + done,
			sampler->pending.count * sizeof(*sampler->pending.at));
		next = sampler->pending.at[0].sample.header.time;
	}
	pthread_mutex_unlock(&sampler->lock);
	return next;
}

void vp_xen_sampler_exit(struct vp_guest_sampler *sampler, const struct vp_xen_exit *exit)
{
	pthread_mutex_lock(&sampler->lock);
	if (sampler->pmu) {
		while (sampler->exits.count <= exit->pcpu)
			vp_vec_push(&sampler->exits, ((struct last_exits){0}));
		struct last_exits *last = &sampler->exits.at[exit->pcpu];
		last->at[last->next++ % LAST_EXITS] = *exit;
	} else {
		vp_xen_weights_exit(
		    &xen_sampler_vcpu_of(sampler, exit->domain, exit->vcpu)->weights,
		    sampler->options.period_ns, exit->time, exit->ran, exit->ip);
	}
	pthread_mutex_unlock(&sampler->lock);
}

/* Exits without a context for a long time. */
static void flush_exits(struct vp_guest_sampler *sampler, struct sampled *sampled, uint64_t before)
{
	struct sink sink = {sampler, sampled};

	vp_vec_each (&sampled->vcpus, vcpu) {
		const struct vp_guest_sample who = {
		    .id = VP_ID_guest_sample,
		    .vm = vp_xen_vm_number(sampled->domain.id),
		    .tid = vp_xen_tid(sampled->domain.id, vcpu->number),
		    .vcpu = (uint16_t)vcpu->number};
		if (vcpu->weights.exits.count && vcpu->weights.exits.at[0].time < before)
			vp_xen_weights_flush(&vcpu->weights, &who,
					     (struct vp_xen_weighed){take_weighed, &sink});
	}
}

/* The remaining CPU time is not represented by samples. */
static void leave_rest(struct vp_guest_sampler *sampler, struct vp_xen_weights *weights)
{
	if (weights->ran <= weights->accounted)
		return;
	sampler->totals.unsampled_ns += weights->ran - weights->accounted;
	weights->accounted = weights->ran;
}

void vp_xen_sampler_known(struct vp_guest_sampler *sampler, uint64_t time,
			  struct vp_xen_runner runner)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->known = time;
	vp_vec_each (&sampler->domains, sampled) {
		flush_exits(sampler, sampled, time == UINT64_MAX ? time : time - SECOND);
		vp_vec_each (&sampled->vcpus, vcpu) {
			struct vp_xen_ran ran;
			if (runner.ran(runner.context, sampled->domain.id, vcpu->number, time,
				       &ran))
				vcpu->weights.ran = ran.ns;
			if (time == UINT64_MAX)
				leave_rest(sampler, &vcpu->weights);
		}
	}
	pthread_mutex_unlock(&sampler->lock);
}

static int xen_sampler_by_time(const void *one, const void *other)
{
	const struct vp_record_header *a = one, *b = other;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return (a->id != VP_ID_guest_task) - (b->id != VP_ID_guest_task);
}

/* Time up to which all records have arrived. */
static uint64_t complete_until(const struct vp_guest_sampler *sampler)
{
	uint64_t until = sampler->reported ? sampler->known : UINT64_MAX;

	if (sampler->pending.count && sampler->pending.at[0].sample.header.time < until)
		until = sampler->pending.at[0].sample.header.time;
	vp_vec_each (&sampler->domains, sampled)
		vp_vec_each (&sampled->vcpus, vcpu)
			if (vcpu->weights.exits.count && vcpu->weights.exits.at[0].time < until)
				until = vcpu->weights.exits.at[0].time;
	return until;
}

static void sampler_drain(struct vp_guest_sampler *sampler,
			  void (*take)(void *context, union vp_any_record *record), void *context)
{
	VP_VEC(union vp_any_record) taken = {0};
	size_t done = 0;

	/* Consuming a record may look up its VM. */
	pthread_mutex_lock(&sampler->lock);
	uint64_t until = complete_until(sampler);
	memcpy(&taken, &sampler->records, sizeof(taken));
	memset(&sampler->records, 0, sizeof(sampler->records));
	if (sampler->reported && taken.count)
		qsort(taken.at, taken.count, sizeof(*taken.at), xen_sampler_by_time);
	while (done < taken.count && taken.at[done].header.time < until)
		done++;
	for (size_t i = done; i < taken.count; i++)
		vp_vec_push(&sampler->records, taken.at[i]);
	pthread_mutex_unlock(&sampler->lock);
	for (size_t i = 0; i < done; i++)
		take(context, &taken.at[i]);
	vp_vec_deinit(&taken);
}

static struct vp_error *sampler_identify(struct vp_guest_sampler *sampler,
					 const struct vp_guest_state *state,
					 const struct vp_guest_finding *finding)
{
	pthread_mutex_lock(&sampler->lock);
	struct vp_error *error =
	    vp_xen_reported_init(&sampled_of(sampler, state->pid - 1)->reported, state, finding);
	pthread_mutex_unlock(&sampler->lock);
	return error;
}

static void sampler_forget(struct vp_guest_sampler *sampler, uint32_t pid)
{
	pthread_mutex_lock(&sampler->lock);
	vp_xen_reported_forget(&sampled_of(sampler, pid - 1)->reported);
	pthread_mutex_unlock(&sampler->lock);
}

static void add_counted(const struct vp_guest_sampler *sampler,
			struct vp_guest_sampler_totals *totals)
{
	const struct vp_xen_pmu_totals counted = vp_xen_pmu_totals(sampler->pmu);

	totals->own = counted.of[VP_XEN_PMU_DOM0];
	totals->hypervisor = counted.of[VP_XEN_PMU_XEN] - sampler->counted_at_exits;
	totals->lost += counted.lost;
	totals->pcpus = counted.n_pcpus;
}

static struct vp_guest_sampler_totals sampler_totals(struct vp_guest_sampler *sampler)
{
	pthread_mutex_lock(&sampler->lock);
	struct vp_guest_sampler_totals totals = sampler->totals;
	totals.problem = sampler->frames_problem;
	if (sampler->pmu)
		add_counted(sampler, &totals);
	pthread_mutex_unlock(&sampler->lock);
	return totals;
}

static struct vp_guest_sampler_counts sampler_counts(struct vp_guest_sampler *sampler, uint32_t pid)
{
	pthread_mutex_lock(&sampler->lock);
	struct vp_guest_sampler_counts counts = sampled_of(sampler, pid - 1)->reported.counts;
	pthread_mutex_unlock(&sampler->lock);
	return counts;
}

static void sampler_free(struct vp_guest_sampler *sampler)
{
	if (!sampler)
		return;
	vp_error_free(sampler_end(sampler));
	vp_xen_pmu_free(sampler->pmu);
	vp_vec_each (&sampler->domains, sampled) {
		vp_xen_reported_forget(&sampled->reported);
		vp_vec_each (&sampled->vcpus, vcpu)
			vp_xen_weights_deinit(&vcpu->weights);
		vp_vec_deinit(&sampled->vcpus);
	}
	vp_vec_deinit(&sampler->pending);
	vp_vec_deinit(&sampler->exits);
	vp_vec_deinit(&sampler->domains);
	vp_vec_deinit(&sampler->records);
	pthread_mutex_destroy(&sampler->lock);
	vp_xen_frames_unmap(&sampler->frames);
	free(sampler->frames_problem);
	vp_xen_close(sampler->xen);
	free(sampler);
}

const struct vp_guest_sampler_ops *vp_guest_sampler_xen(void)
{
	static const struct vp_guest_sampler_ops ops = {
	    .method = VP_GUEST_SAMPLING_CONTEXTS,
	    .open = sampler_open,
	    .begin = sampler_begin,
	    .end = sampler_end,
	    .drain = sampler_drain,
	    .identify = sampler_identify,
	    .forget = sampler_forget,
	    .totals = sampler_totals,
	    .counts = sampler_counts,
	    .free = sampler_free,
	};

	return &ops;
}
