/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/turns.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/ioctl.h>

#include <bpf/libbpf.h>

#include "base/alloc.h"
#include "bpf/intervals.h"

struct switcher {
	pthread_t thread;
	bool started;
	uint32_t tid;
	int pcpu, failure, delay; /* errno values */
	sem_t ready;
	struct ring_buffer *requests;
	int leaders[VP_SETS_MAX];
	uint64_t on, wanted; /* sets, from 0 */
};

struct vp_turns {
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
		ioctl(leader, how, 0); /* it worked when the counters were opened */
}

static void switch_sets(struct switcher *switcher)
{
	if (switcher->on == switcher->wanted)
		return;
	switch_group(switcher->leaders[switcher->on], PERF_EVENT_IOC_DISABLE);
	switch_group(switcher->leaders[switcher->wanted], PERF_EVENT_IOC_ENABLE);
	switcher->on = switcher->wanted;
}

/* Binds the thread to its pCPU, before all that is not real-time there. */
static void settle(struct switcher *switcher)
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

	settle(switcher);
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

struct vp_error *vp_turns_start(const struct vp_counters *counters, const struct vp_pcpus *pcpus,
				const int *rings, struct vp_turns **ret)
{
	struct vp_turns *turns = vp_alloc(sizeof(*turns));
	struct vp_error *error = NULL;

	turns->count = pcpus->count;
	turns->switchers = vp_alloc(pcpus->count * sizeof(*turns->switchers));
	for (size_t i = 0; !error && i < pcpus->count; i++)
		error = start_switcher(counters, pcpus->at[i], rings[i], &turns->switchers[i]);
	if (error)
		vp_turns_stop(turns);
	else
		*ret = turns;
	return error;
}

uint32_t vp_turns_thread(const struct vp_turns *turns, size_t i)
{
	return turns->switchers[i].tid;
}

int vp_turns_delay(const struct vp_turns *turns)
{
	for (size_t i = 0; i < turns->count; i++)
		if (turns->switchers[i].delay)
			return turns->switchers[i].delay;
	return 0;
}

void vp_turns_stop(struct vp_turns *turns)
{
	if (!turns)
		return;
	for (size_t i = 0; i < turns->count; i++) {
		struct switcher *switcher = &turns->switchers[i];
		if (switcher->started) {
			pthread_cancel(switcher->thread); /* it waits, or will do so soon */
			pthread_join(switcher->thread, NULL);
			sem_destroy(&switcher->ready);
		}
		ring_buffer__free(switcher->requests);
	}
	free(turns->switchers);
	free(turns);
}
