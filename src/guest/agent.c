/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest/agent.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/io.h"
#include "maps/proc.h"

/* Maximum delay from an event's time to its arrival in the buffer. */
#define SETTLE_NS 10000000ULL
/* Minimum distance of clock pairs. */
#define CLOCK_EVERY_NS 1000000000ULL
enum { MAX_CLOCKS = 256 };
/* Maximum bytes of a process's /proc/PID/maps. */
enum { MAX_MAPS = 64 << 20 };

static uint64_t agent_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void vp_agent_note(struct vp_agent *agent, const char *format, ...)
{
	va_list args;
	char *note;

	va_start(args, format);
	if (vasprintf(&note, format, args) < 0)
		vp_alloc_failed();
	va_end(args);
	vp_vec_push(&agent->notes, note);
}

void vp_agent_note_clock(struct vp_agent *agent)
{
	size_t count = agent->clocks.count, kept = 1;

	if (count && agent_now_ns() - agent->clocks.at[count - 1].mono_ns < CLOCK_EVERY_NS)
		return;
	if (count == MAX_CLOCKS) { /* keeps the first one, and every second one after it */
		for (size_t i = 2; i < count; i += 2)
			agent->clocks.at[kept++] = agent->clocks.at[i];
		agent->clocks.count = kept;
	}
	struct vp_agent_clock *now = vp_vec_push_slot(&agent->clocks);
	vp_clock_pair(CLOCK_MONOTONIC, VP_AGENT_CLOCK_TRIES, &now->mono_ns, &now->tsc,
		      &now->error_ns);
}

struct scan {
	struct vp_tracker *tracker;
	uint32_t pid;
	bool any;
};

static bool agent_note_mapping(void *context, const struct vp_proc_mapping *mapping)
{
	struct scan *scan = context;
	struct vp_tracker_event event = {.time_ns = agent_now_ns(), .tgid = scan->pid};

	/* The page at the top that emulates old system calls belongs to no file and is in all
	 * processes. */
	if (!strcmp(mapping->path, "[vsyscall]"))
		return true;
	if (!scan->any) { /* kernel threads have no mappings */
		event.kind = VP_TRACKER_EXISTING;
		vp_proc_comm(scan->pid, event.comm);
		vp_tracker_add(scan->tracker, &event);
		event.kind = VP_TRACKER_COMM;
		vp_tracker_add(scan->tracker, &event);
		scan->any = true;
	}
	event = (struct vp_tracker_event){
	    .time_ns = event.time_ns,
	    .kind = VP_TRACKER_MAP_SEEN,
	    .tgid = scan->pid,
	    .start = mapping->start,
	    .end = mapping->end,
	    .pgoff = mapping->pgoff,
	    .image = vp_tracker_image(scan->tracker, NULL, mapping->path),
	};
	vp_tracker_add(scan->tracker, &event);
	return true;
}

static void agent_note_process(void *context, uint32_t pid)
{
	struct scan scan = {.tracker = context, .pid = pid};
	size_t bytes = MAX_MAPS;

	vp_proc_mappings(pid, &bytes, agent_note_mapping, &scan);
}

static void agent_scan_processes(struct vp_agent *agent)
{
	struct vp_error *error = vp_proc_processes(agent_note_process, &agent->tracker);

	if (error)
		vp_agent_note(agent, "%s", vp_error_message(error));
	vp_error_free(error);
	if (!agent->task_events)
		return;
	error = vp_task_watch_scan(agent->task_events, &agent->tracker);
	if (error)
		vp_agent_note(agent, "%s", vp_error_message(error));
	vp_error_free(error);
}

void vp_agent_start(struct vp_agent *agent)
{
	*agent = (struct vp_agent){0};
	vp_tracker_init(&agent->tracker);
	vp_agent_note_clock(agent);

	struct vp_error *error = vp_task_watch_open(&agent->task_events);
	if (error)
		vp_agent_note(agent,
			      "%s, so CR3 is unknown and user-space samples cannot be attributed "
			      "to processes",
			      vp_error_message(error));
	else if (!vp_task_watch_has_roots(agent->task_events))
		vp_agent_note(
		    agent,
		    "the kernel's direct map was not found, so page-table roots are unknown");
	vp_error_free(error);

	error = vp_perf_open(!agent->task_events, &agent->perf);
	if (error)
		vp_agent_note(
		    agent,
		    "%s, so mappings are known only for processes alive at the time of the dump",
		    vp_error_message(error));
	vp_error_free(error);
	agent_scan_processes(agent);
	vp_agent_drain(agent);
}

void vp_agent_stop(struct vp_agent *agent)
{
	vp_task_watch_close(agent->task_events);
	vp_perf_close(agent->perf);
	vp_tracker_deinit(&agent->tracker);
	vp_vec_each (&agent->notes, note)
		free(*note);
	vp_vec_deinit(&agent->notes);
	vp_vec_deinit(&agent->clocks);
}

void vp_agent_drain(struct vp_agent *agent)
{
	uint64_t now = agent_now_ns();

	if (agent->perf)
		vp_perf_drain(agent->perf, &agent->tracker);
	if (agent->task_events)
		vp_task_watch_drain(agent->task_events, &agent->tracker);
	vp_tracker_apply(&agent->tracker, now - SETTLE_NS);
}

void vp_agent_catch_up(struct vp_agent *agent)
{
	agent_scan_processes(agent);
	uint64_t until = agent_now_ns();
	vp_sleep_ns(SETTLE_NS);
	vp_agent_drain(agent);
	vp_tracker_apply(&agent->tracker, until);
}
