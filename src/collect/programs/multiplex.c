/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/multiplex.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/ioctl.h>

#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "base/pcpus.h"
#include "bpf/intervals_abi.h"
#include "schema/interval.h"

struct switcher {
	pthread_t thread;
	bool started;
	uint32_t tid;
	int pcpu, failure, delay; /* errno values */
	sem_t ready;
	struct ring_buffer *requests;
	int leaders[VP_SETS_MAX];
	uint64_t on, wanted; /* set numbers, from 0 */
};

struct vp_multiplex {
	size_t count;
	struct switcher *switchers;
};

static int take_request(void *context, void *bytes, size_t size)
{
	struct switcher *switcher = context;
	const struct vp_set_request *request = bytes;

	if (size >= sizeof(*request) && request->set < VP_SETS_MAX)
		switcher->wanted = request->set;
	return 0;
}

static void switch_group(int leader, unsigned long how)
{
	if (leader >= 0)
		ioctl(leader, how, 0); /* already worked when the counters were opened */
}

static void switch_sets(struct switcher *switcher)
{
	if (switcher->on == switcher->wanted)
		return;
	switch_group(switcher->leaders[switcher->on], PERF_EVENT_IOC_DISABLE);
	switch_group(switcher->leaders[switcher->wanted], PERF_EVENT_IOC_ENABLE);
	switcher->on = switcher->wanted;
}

/* Binds the thread to its pCPU, with priority over all threads that are not real-time. */
static void multiplex_settle(struct switcher *switcher)
{
	struct sched_param first = {.sched_priority = sched_get_priority_max(SCHED_FIFO)};
	size_t size = CPU_ALLOC_SIZE(switcher->pcpu + 1);
	cpu_set_t *pcpus = CPU_ALLOC(switcher->pcpu + 1);

	CPU_ZERO_S(size, pcpus);
	CPU_SET_S(switcher->pcpu, size, pcpus);
	switcher->tid = (uint32_t)gettid();
	switcher->failure = sched_setaffinity(0, size, pcpus) ? errno : 0;
	switcher->delay = sched_setscheduler(0, SCHED_FIFO, &first) ? errno : 0;
	CPU_FREE(pcpus);
}

static void *run_switcher(void *context)
{
	struct switcher *switcher = context;

	multiplex_settle(switcher);
	sem_post(&switcher->ready);
	while (ring_buffer__poll(switcher->requests, -1) >= 0 || errno == EINTR)
		switch_sets(switcher);
	return NULL;
}

static struct vp_error *start_switcher(const struct vp_counters *counters, int pcpu, int ring,
				       struct switcher *switcher)
{
	switcher->pcpu = pcpu;
	for (uint32_t set = 0; set < VP_SETS_MAX; set++)
		switcher->leaders[set] = vp_counters_leader(counters, set + 1, pcpu);
	switcher->requests = ring_buffer__new(ring, take_request, switcher, NULL);
	if (!switcher->requests)
		return vp_error_errno(errno, "cannot map a ring buffer");
	sem_init(&switcher->ready, 0, 0);
	int failure = pthread_create(&switcher->thread, NULL, run_switcher, switcher);
	if (failure)
		return vp_error_errno(failure, "cannot start a thread");
	switcher->started = true;
	while (sem_wait(&switcher->ready))
		;
	if (switcher->failure)
		return vp_error_errno(switcher->failure, "cannot pin a thread to pCPU %d", pcpu);
	return NULL;
}

struct vp_error *vp_multiplex_start(const struct vp_counters *counters,
				    const struct vp_pcpus *pcpus, const int *rings,
				    struct vp_multiplex **ret)
{
	struct vp_multiplex *multiplex = vp_alloc(sizeof(*multiplex));
	struct vp_error *error = NULL;

	multiplex->count = pcpus->count;
	multiplex->switchers = vp_alloc(pcpus->count * sizeof(*multiplex->switchers));
	for (size_t i = 0; !error && i < pcpus->count; i++)
		error = start_switcher(counters, pcpus->at[i], rings[i], &multiplex->switchers[i]);
	if (error)
		vp_multiplex_stop(multiplex);
	else
		*ret = multiplex;
	return error;
}

uint32_t vp_multiplex_thread(const struct vp_multiplex *multiplex, size_t i)
{
	return multiplex->switchers[i].tid;
}

int vp_multiplex_delay(const struct vp_multiplex *multiplex)
{
	for (size_t i = 0; i < multiplex->count; i++)
		if (multiplex->switchers[i].delay)
			return multiplex->switchers[i].delay;
	return 0;
}

void vp_multiplex_stop(struct vp_multiplex *multiplex)
{
	if (!multiplex)
		return;
	for (size_t i = 0; i < multiplex->count; i++) {
		struct switcher *switcher = &multiplex->switchers[i];
		if (switcher->started) {
			pthread_cancel(switcher->thread); /* it is waiting, or about to */
			pthread_join(switcher->thread, NULL);
			sem_destroy(&switcher->ready);
		}
		ring_buffer__free(switcher->requests);
	}
	free(multiplex->switchers);
	free(multiplex);
}
