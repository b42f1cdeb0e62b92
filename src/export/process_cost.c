/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "export/process_cost.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/macros.h"

enum { MAX_DEPTH = 8 };

static uint64_t usage_ns(int who)
{
	struct rusage usage;

	if (getrusage(who, &usage))
		return 0;
	return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * 1000000000 +
	       ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000;
}

/* CPU time of a process and of its descendants that were reaped; 0 if it has ended. */
static uint64_t cpu_ns(pid_t process)
{
	unsigned long user, system, ended_user, ended_system;
	char text[1024];

	VP_AUTO_FREE char *path = vp_format("/proc/%d/stat", (int)process);
	VP_AUTO_FCLOSE FILE *file = fopen(path, "re");
	size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[size] = 0;
	/* The process name, in parentheses, may contain any characters. */
	const char *fields = strrchr(text, ')');
	if (!fields ||
	    sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &user,
		   &system, &ended_user, &ended_system) != 4)
		return 0;
	return (user + system + ended_user + ended_system) *
	       (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
}

static uint64_t resident_bytes(pid_t process)
{
	unsigned long resident;

	VP_AUTO_FREE char *path = vp_format("/proc/%d/statm", (int)process);
	VP_AUTO_FCLOSE FILE *file = fopen(path, "re");
	if (!file || fscanf(file, "%*u %lu", &resident) != 1)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Confined processes are forked, and have most pages in common with their parent. Without the
 * right to read how pages are shared, all resident ones count. */
static uint64_t memory_bytes(pid_t process)
{
	char line[256];
	uint64_t kib;

	VP_AUTO_FREE char *path = vp_format("/proc/%d/smaps_rollup", (int)process);
	VP_AUTO_FCLOSE FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Pss: %" SCNu64, &kib) == 1)
			return kib * 1024;
	return resident_bytes(process);
}

static void add_descendants(pid_t process, unsigned depth, struct vp_process_cost *cost);

static void add_children(const char *path, unsigned depth, struct vp_process_cost *cost)
{
	VP_AUTO_FCLOSE FILE *file = fopen(path, "re");
	int child;

	while (file && fscanf(file, "%d", &child) == 1) {
		cost->cpu_ns += cpu_ns(child);
		cost->memory += memory_bytes(child);
		if (depth < MAX_DEPTH)
			add_descendants(child, depth + 1, cost);
	}
}

/* The kernel lists the children of each thread. */
static void add_descendants(pid_t process, unsigned depth, struct vp_process_cost *cost)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%d/task", (int)process);
	DIR *threads = opendir(path);

	for (const struct dirent *thread; threads && (thread = readdir(threads));) {
		VP_AUTO_FREE char *children = vp_format("%s/%s/children", path, thread->d_name);
		if (thread->d_name[0] != '.')
			add_children(children, depth, cost);
	}
	if (threads)
		closedir(threads);
}

void vp_process_cost_update(struct vp_process_cost *cost)
{
	struct vp_process_cost now = {usage_ns(RUSAGE_SELF) + usage_ns(RUSAGE_CHILDREN),
				      memory_bytes(getpid())};

	add_descendants(getpid(), 0, &now);
	cost->cpu_ns = now.cpu_ns > cost->cpu_ns ? now.cpu_ns : cost->cpu_ns;
	cost->memory = now.memory;
}
