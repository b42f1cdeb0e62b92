/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures a thread's CPU time, and the steal in it.
 *
 * The hypervisor reports to the guest kernel how long each vCPU waited for a pCPU. The kernel
 * shows it in /proc/stat per CPU, not per thread, so the steal of all CPUs that the thread may
 * have run on is only an upper bound. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "counters/set.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* The kernel updates steal at its ticks (at most 10 ms) and shows whole clock ticks. */
enum { STEAL_SLACK_TICKS = 2, PIECE = 1 << 12, MAX_CPUS = 8192 };

int vp_counters_clocks_open(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1,
				       .exclude_hv = 1,
				       .read_format = PERF_FORMAT_TOTAL_TIME_RUNNING};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static uint64_t read_on_cpu(int fd)
{
	uint64_t reading[2] = {0}; /* value, time running */

	return fd >= 0 && read(fd, reading, sizeof(reading)) == sizeof(reading) ? reading[1] : 0;
}

/* The CPU that the thread is bound to, or -1. */
static int only_cpu(void)
{
	cpu_set_t set[MAX_CPUS / CPU_SETSIZE];

	if (sched_getaffinity(0, sizeof(set), set) || CPU_COUNT_S(sizeof(set), set) != 1)
		return -1;
	for (int cpu = 0; cpu < MAX_CPUS; cpu++)
		if (CPU_ISSET_S(cpu, sizeof(set), set))
			return cpu;
	return -1;
}

static uint64_t tick_ns(void)
{
	long ticks = sysconf(_SC_CLK_TCK);

	return 1000000000 / (uint64_t)(ticks > 0 ? ticks : 100);
}

/* Parses steal, the eighth number of a line "cpuN ..." or "cpu " of /proc/stat (proc(5)). */
static bool parse_steal(const char *line, const char *name, uint64_t *ns)
{
	unsigned long long steal;
	size_t size = strlen(name);

	if (strncmp(line, name, size) != 0 ||
	    sscanf(line + size, "%*u %*u %*u %*u %*u %*u %*u %llu", &steal) != 1)
		return false;
	*ns = steal * tick_ns();
	return true;
}

uint64_t vp_counters_steal_of(int fd, int cpu)
{
	char text[PIECE + 1], name[24] = "cpu ";
	size_t size = 0;
	uint64_t ns = 0;
	ssize_t got;

	if (cpu >= 0)
		snprintf(name, sizeof(name), "cpu%d ", cpu);
	while ((got = read(fd, text + size, PIECE - size)) > 0 || (got < 0 && errno == EINTR)) {
		char *line = text, *end;
		size += got > 0 ? (size_t)got : 0;
		text[size] = 0;
		for (; (end = strchr(line, '\n')); line = end + 1)
			if (parse_steal(line, name, &ns))
				return ns;
		/* CPU lines are short and precede the long line of interrupts. */
		size -= (size_t)(line - text);
		if (size == PIECE)
			return 0;
		memmove(text, line, size);
	}
	return 0;
}

static uint64_t read_steal(int cpu)
{
	int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	uint64_t ns = fd < 0 ? 0 : vp_counters_steal_of(fd, cpu);

	if (fd >= 0)
		close(fd);
	return ns;
}

void vp_counters_clocks_read(int fd, struct vp_counters_clocks *ret)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	ret->wall = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
	ret->on_cpu = read_on_cpu(fd);
	ret->cpu = only_cpu();
	ret->steal = read_steal(ret->cpu);
}

/* In user space of a PV guest, CPUID is the processor's and shows no hypervisor. */
static bool is_xen(void)
{
	static const char xen[] = {'x', 'e', 'n'};
	char name[sizeof(xen)];
	int fd = open("/sys/hypervisor/type", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	ssize_t got = read(fd, name, sizeof(name));
	close(fd);
	return got == sizeof(name) && !memcmp(name, xen, sizeof(xen));
}

static enum vp_counters_hypervisor find_hypervisor(void)
{
	if (is_xen())
		return VP_SHOWS_STEAL;
#if defined(__x86_64__)
	enum { HYPERVISOR_BIT = 1U << 31, KVM_FEATURES = 0x40000001, KVM_STEAL_TIME = 1 << 5 };
	uint32_t a = 0, b = 0, c = 0, d = 0;
	char name[13] = {0};

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & HYPERVISOR_BIT))
		return VP_BARE_METAL;
	__cpuid(0x40000000, a, b, c, d);
	memcpy(name, &b, 4);
	memcpy(name + 4, &c, 4);
	memcpy(name + 8, &d, 4);
	if (strcmp(name, "KVMKVMKVM") != 0)
		return VP_MAY_SHOW_STEAL;
	__cpuid(KVM_FEATURES, a, b, c, d);
	return a & KVM_STEAL_TIME ? VP_SHOWS_STEAL : VP_MAY_SHOW_STEAL;
#else
	return VP_MAY_SHOW_STEAL;
#endif
}

static uint64_t min_of(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

void vp_counters_bound_stolen(enum vp_counters_hypervisor hypervisor, unsigned cpus,
			      const struct vp_counters_clocks *start,
			      const struct vp_counters_clocks *now, struct vperf_times *ret)
{
	if (hypervisor == VP_BARE_METAL) {
		ret->known |= VPERF_KNOWN_STOLEN;
		return;
	}
	ret->stolen_most = ret->known & VPERF_KNOWN_ON_CPU ? ret->on_cpu : ret->wall;
	/* No steal so far: it may not be reported at all. */
	if (hypervisor == VP_MAY_SHOW_STEAL && !now->steal)
		return;
	ret->known |= VPERF_KNOWN_STOLEN;
	if (start->cpu == now->cpu)
		ret->stolen_most =
		    min_of(ret->stolen_most, now->steal - start->steal +
						 STEAL_SLACK_TICKS * tick_ns() * (uint64_t)cpus);
}

static unsigned cpus_of(const struct vp_counters_clocks *clocks)
{
	long cpus = clocks->cpu >= 0 ? 1 : sysconf(_SC_NPROCESSORS_ONLN);

	return cpus > 0 ? (unsigned)cpus : 1;
}

void vp_counters_clocks_between(int fd, const struct vp_counters_clocks *start,
				struct vperf_times *ret)
{
	struct vp_counters_clocks now;

	vp_counters_clocks_read(fd, &now);
	*ret = (struct vperf_times){.size = ret->size, .wall = now.wall - start->wall};
	if (now.on_cpu) {
		ret->known |= VPERF_KNOWN_ON_CPU;
		ret->on_cpu = now.on_cpu - start->on_cpu;
	}
	vp_counters_bound_stolen(find_hypervisor(), cpus_of(&now), start, &now, ret);
}
