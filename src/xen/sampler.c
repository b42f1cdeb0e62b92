/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "collect/clock.h"
#include "xen/domains.h"
#include "xen/frames.h"
#include "xen/guest_samples.h"
#include "xen/states.h"

#define SECOND 1000000000ULL
#define LIST_NS (SECOND / 10) /* between two looks for new domains */

struct sampled_vcpu {
	uint32_t number;
	bool known;         /* since when is `accounted` */
	bool came;          /* while guests were sampled: it had no CPU time before */
	uint64_t cpu_time;  /* then, ns */
	uint64_t accounted; /* CPU time up to which samples stand for it */
	struct vp_xen_last last;
};

/* A domain, or one that was. */
struct sampled {
	struct vp_xen_domain domain;
	bool gone;
	struct vp_xen_told told;
	VP_VEC(struct sampled_vcpu) vcpus;
};

struct vp_guest_sampler {
	struct vp_guest_sampler_options options;
	struct vp_xen *xen;
	struct vp_xen_frames frames; /* empty as long as there is no PV guest */
	pthread_t thread;
	bool running;
	atomic_bool ending;
	pthread_mutex_t lock; /* on what follows */
	VP_VEC(struct sampled) domains;
	bool listed;        /* the domains, once */
	uint64_t next_list; /* when they are to be listed again */
	VP_VEC(union vp_any_record) records;
	struct vp_guest_sampler_totals totals;
};

enum { MOST_RECORDS = 1 << 18 }; /* that wait to be taken */

uint64_t vp_xen_periods_due(uint64_t cpu_time, uint64_t period, uint64_t *accounted)
{
	int64_t passed = (int64_t)(cpu_time - *accounted) + (int64_t)(period / 2);
	uint64_t due = passed > 0 ? (uint64_t)passed / period : 0;

	*accounted += due * period;
	return due;
}

static struct sampled *sampled_of(struct vp_guest_sampler *sampler, uint32_t domain)
{
	vp_vec_each (&sampler->domains, sampled)
		if (sampled->domain.id == domain)
			return sampled;
	struct sampled *sampled = vp_vec_push_slot(&sampler->domains);
	*sampled = (struct sampled){.domain = {.id = (uint16_t)domain}, .gone = true};
	return sampled;
}

/* What is left of the vCPUs' CPU time goes without samples. */
static void leave_vcpus(struct vp_guest_sampler *sampler, struct sampled *sampled)
{
	vp_vec_each (&sampled->vcpus, vcpu)
		if (vcpu->known && vcpu->cpu_time > vcpu->accounted)
			sampler->totals.unsampled_ns += vcpu->cpu_time - vcpu->accounted;
	sampled->vcpus.count = 0;
}

static void take_domain(struct vp_guest_sampler *sampler, const struct vp_xen_domain *domain)
{
	struct sampled *sampled = sampled_of(sampler, domain->id);

	sampled->domain = *domain;
	sampled->gone = false;
	if (!(domain->flags & VP_XEN_HVM) && !sampler->frames.count) /* without it: no processes */
		vp_error_free(vp_xen_frames_map(sampler->xen, &sampler->frames));
	for (uint32_t i = (uint32_t)sampled->vcpus.count;
	     i <= domain->last_vcpu && domain->last_vcpu != UINT32_MAX; i++)
		vp_vec_push(&sampled->vcpus,
			    ((struct sampled_vcpu){.number = i, .came = sampler->listed}));
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
			vp_xen_told_forget(&sampled->told);
		}
}

static bool put(struct vp_guest_sampler *sampler, const union vp_any_record *record)
{
	if (sampler->records.count >= MOST_RECORDS) {
		sampler->totals.lost++;
		return false;
	}
	vp_vec_push(&sampler->records, *record);
	return true;
}

static void put_sample(struct vp_guest_sampler *sampler, struct sampled *sampled,
		       struct sampled_vcpu *vcpu, const struct vp_xen_place *place)
{
	union vp_any_record task, sample;

	vp_xen_sample_make(&sampled->told, place, &vcpu->last, &task, &sample);
	if (task.header.id)
		put(sampler, &task);
	sampler->totals.samples++;
	sampler->totals.late += place->periods - 1;
	sample.guest_sample.flags |= VP_LATE;
	for (uint64_t i = 1; i < place->periods; i++)
		put(sampler, &sample);
	sample.guest_sample.flags &= (uint16_t)~VP_LATE;
	put(sampler, &sample);
}

static void sample_vcpu(struct vp_guest_sampler *sampler, struct sampled *sampled,
			struct sampled_vcpu *vcpu)
{
	const uint64_t period = sampler->options.period_ns;
	struct vp_xen_place place = {.domain = sampled->domain.id, .vcpu = vcpu->number};

	place.periods = vp_xen_periods_due(vcpu->cpu_time, period, &vcpu->accounted);
	if (!place.periods)
		return;
	place.time = vp_clock_monotonic();
	bool read =
	    vp_xen_context_read(sampler->xen, &sampled->domain, vcpu->number, &place.context);
	uint64_t pause = vp_clock_monotonic() - place.time;
	if (!read) {
		sampler->totals.unsampled_ns += place.periods * period;
		return;
	}
	if (!(sampled->domain.flags & VP_XEN_HVM))
		place.context.root = vp_xen_frames_translate(&sampler->frames, place.context.root);
	sampler->totals.pause += pause;
	if (pause > sampler->totals.most_ns)
		sampler->totals.most_ns = pause;
	put_sample(sampler, sampled, vcpu, &place);
}

/* One that is blocked is not at work: its CPU time waits for a look that finds it so. */
static void look_at_vcpu(struct vp_guest_sampler *sampler, struct sampled *sampled,
			 struct sampled_vcpu *vcpu)
{
	const struct vp_xen *xen = sampler->xen;
	struct vp_xen_vcpu now;

	if (xen->call.vcpu_getinfo(xen->control, sampled->domain.id, vcpu->number, &now) ||
	    !now.online)
		return;
	if (!vcpu->known) {
		vcpu->accounted = now.cpu_time;
		sampler->totals.unsampled_ns += vcpu->came ? now.cpu_time : 0;
	}
	vcpu->known = true;
	vcpu->cpu_time = now.cpu_time;
	if (!now.blocked)
		sample_vcpu(sampler, sampled, vcpu);
}

static void look_at_all(struct vp_guest_sampler *sampler)
{
	uint64_t now = vp_clock_monotonic();

	if (now >= sampler->next_list) {
		sampler->next_list = now + LIST_NS;
		list_domains(sampler);
	}
	vp_vec_each (&sampler->domains, sampled)
		vp_vec_each (&sampled->vcpus, vcpu)
			look_at_vcpu(sampler, sampled, vcpu);
}

static void sleep_until(uint64_t time)
{
	const struct timespec until = {.tv_sec = (time_t)(time / SECOND),
				       .tv_nsec = (long)(time % SECOND)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static void *run(void *context)
{
	struct vp_guest_sampler *sampler = context;
	const uint64_t period = sampler->options.period_ns;
	uint64_t next = vp_clock_monotonic();

	while (!sampler->ending) {
		pthread_mutex_lock(&sampler->lock);
		look_at_all(sampler);
		pthread_mutex_unlock(&sampler->lock);
		uint64_t now = vp_clock_monotonic();
		next += period;
		if (next < now) /* looks that are missed are not made up for */
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
	/* Its own: a handle is for one thread. */
	struct vp_error *error = vp_xen_open(&sampler->xen);
	if (error)
		sampler_free(sampler);
	else
		*ret = sampler;
	return error;
}

static struct vp_error *sampler_begin(struct vp_guest_sampler *sampler)
{
	sigset_t all, before;

	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failure = pthread_create(&sampler->thread, NULL, run, sampler);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sampler->running = !failure;
	return failure ? vp_error_errno(failure, "cannot start the thread that samples guests")
		       : NULL;
}

static void sampler_end(struct vp_guest_sampler *sampler)
{
	if (!sampler->running)
		return;
	sampler->ending = true;
	pthread_join(sampler->thread, NULL);
	sampler->running = false;
	vp_vec_each (&sampler->domains, sampled)
		leave_vcpus(sampler, sampled);
}

static void sampler_drain(struct vp_guest_sampler *sampler,
			  void (*take)(void *context, union vp_any_record *record), void *context)
{
	VP_VEC(union vp_any_record) taken = {0};

	/* Taking a record may mean to look for its VM. */
	pthread_mutex_lock(&sampler->lock);
	memcpy(&taken, &sampler->records, sizeof(taken));
	memset(&sampler->records, 0, sizeof(sampler->records));
	pthread_mutex_unlock(&sampler->lock);
	vp_vec_each (&taken, record)
		take(context, record);
	vp_vec_deinit(&taken);
}

static struct vp_error *sampler_identify(struct vp_guest_sampler *sampler,
					 const struct vp_guest_state *state,
					 const struct vp_guest_finding *finding)
{
	pthread_mutex_lock(&sampler->lock);
	struct vp_error *error =
	    vp_xen_told_init(&sampled_of(sampler, state->pid - 1)->told, state, finding);
	pthread_mutex_unlock(&sampler->lock);
	return error;
}

static void sampler_forget(struct vp_guest_sampler *sampler, uint32_t pid)
{
	pthread_mutex_lock(&sampler->lock);
	vp_xen_told_forget(&sampled_of(sampler, pid - 1)->told);
	pthread_mutex_unlock(&sampler->lock);
}

static struct vp_guest_sampler_totals sampler_totals(struct vp_guest_sampler *sampler)
{
	pthread_mutex_lock(&sampler->lock);
	struct vp_guest_sampler_totals totals = sampler->totals;
	pthread_mutex_unlock(&sampler->lock);
	return totals;
}

static struct vp_guest_sampler_counts sampler_counts(struct vp_guest_sampler *sampler, uint32_t pid)
{
	pthread_mutex_lock(&sampler->lock);
	struct vp_guest_sampler_counts counts = sampled_of(sampler, pid - 1)->told.counts;
	pthread_mutex_unlock(&sampler->lock);
	return counts;
}

static void sampler_free(struct vp_guest_sampler *sampler)
{
	if (!sampler)
		return;
	sampler_end(sampler);
	vp_vec_each (&sampler->domains, sampled) {
		vp_xen_told_forget(&sampled->told);
		vp_vec_deinit(&sampled->vcpus);
	}
	vp_vec_deinit(&sampler->domains);
	vp_vec_deinit(&sampler->records);
	pthread_mutex_destroy(&sampler->lock);
	vp_xen_frames_unmap(&sampler->frames);
	vp_xen_close(sampler->xen);
	free(sampler);
}

const struct vp_guest_sampler_ops *vp_guest_sampler_xen(void)
{
	static const struct vp_guest_sampler_ops ops = {
	    .how = "by the vCPU's context from Xen",
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
