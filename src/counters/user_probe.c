/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests whether this group can be read in user space, and whether that is faster than read(2). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "counters/counters_event.h"
#include "counters/set.h"
#include "counters/user_read.h"

enum { TRIAL_READS = 64, TRIALS = 5, CHILD_READS = 1000 };

static bool map_pages(struct vp_counters_group *group)
{
	for (unsigned i = 0; i < group->n; i++) {
		void *page =
		    mmap(NULL, (size_t)getpagesize(), PROT_READ, MAP_SHARED, group->fds[i], 0);
		if (page == MAP_FAILED)
			return false;
		group->pages[i] = page;
		if (!group->pages[i]->cap_user_rdpmc)
			return false;
	}
	return VP_COUNTERS_HAVE_USER_READ;
}

/* In a child process: reads a counter of its own. */
static void read_and_end(const struct vp_counters_event *event)
{
	struct vp_counters_group group;
	uint64_t values[VPERF_MAX_EVENTS];

	signal(SIGILL, SIG_DFL);
	signal(SIGSEGV, SIG_DFL);
	prctl(PR_SET_DUMPABLE, 0);
	if (!vp_counters_group_open(event, 1, &(struct vperf_options){0}, &group, NULL) &&
	    map_pages(&group) && !vp_counters_group_enable(&group, true))
		for (int i = 0; i < CHILD_READS; i++)
			vp_counters_group_user(&group, values);
	_exit(0);
}

/* The guest kernel may permit the instruction although the hypervisor does not emulate it (arm64
 * before v6.4, 0c2f9acf6ae7). It is then an illegal instruction, so a child process tries it
 * that may be killed. Its exit sends no signal to the parent. */
static bool survives(const struct vp_counters_event *event)
{
	int status = 0;
	long child = syscall(SYS_clone, 0UL, NULL, NULL, NULL, 0UL);

	if (child == 0)
		read_and_end(event);
	if (child < 0)
		return false;
	while (waitpid((pid_t)child, &status, __WCLONE) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static uint64_t user_probe_now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Duration of a read, ns: the minimum of several, as interruptions only add. */
static uint64_t time_reads(const struct vp_counters_group *group,
			   int (*read_group)(const struct vp_counters_group *, uint64_t *))
{
	uint64_t values[VPERF_MAX_EVENTS], least = UINT64_MAX;

	for (int trial = 0; trial < TRIALS; trial++) {
		uint64_t begin = user_probe_now_ns();
		for (int i = 0; i < TRIAL_READS; i++)
			read_group(group, values);
		uint64_t took = (user_probe_now_ns() - begin) / TRIAL_READS;
		least = took < least ? took : least;
	}
	return least;
}

/* A group on counters has an index per event; the page has 0 if user-space reads are disabled
 * (rdpmc). */
static bool are_on_counters(const struct vp_counters_group *group)
{
	for (unsigned i = 0; i < group->n; i++)
		if (!((volatile struct perf_event_mmap_page *)group->pages[i])->index)
			return false;
	return true;
}

bool vp_counters_prefer_user(struct vp_counters_group *group, const struct vp_counters_event *first,
			     bool asked, char *why, size_t size)
{
	if (!map_pages(group)) {
		snprintf(why, size,
			 "the kernel does not allow reads of all of these in user space");
		return false;
	}
	if (!survives(first)) {
		snprintf(why, size,
			 "this system kills a process that reads a counter in user space");
		return false;
	}
	if (vp_counters_group_enable(group, true) || !are_on_counters(group)) {
		vp_counters_group_enable(group, false);
		snprintf(why, size,
			 "the kernel does not allow reads in user space: see "
			 "kernel.perf_user_access and /sys/devices/cpu/rdpmc");
		return false;
	}
	uint64_t user = time_reads(group, vp_counters_group_user);
	uint64_t call = time_reads(group, vp_counters_group_call);
	vp_counters_group_enable(group, false);
	snprintf(why, size, "a read takes %llu ns in user space and %llu ns by a system call",
		 (unsigned long long)user, (unsigned long long)call);
	return asked || user < call;
}
