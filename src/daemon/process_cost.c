/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/process_cost.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/macros.h"

enum { MAX_DEPTH = 8 };

struct times {
	unsigned long own, ended; /* ticks: of the process; of its descendants that were reaped */
	unsigned long resident;   /* pages */
};

static bool read_times(pid_t process, struct times *ret)
{
	unsigned long user, system, ended_user, ended_system;
	char text[1024];

	VP_AUTO_FREE char *path = vp_format("/proc/%d/stat", (int)process);
	VP_AUTO_FCLOSE FILE *file = fopen(path, "re");
	size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	text[size] = 0;
	/* The process name, in parentheses, may contain any characters. */
	const char *fields = strrchr(text, ')');
	if (!fields || sscanf(fields,
			      ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu %*d "
			      "%*d %*d %*d %*u %*u %lu",
			      &user, &system, &ended_user, &ended_system, &ret->resident) != 5)
		return false;
	ret->own = user + system;
	ret->ended = ended_user + ended_system;
	return true;
}

static uint64_t cpu_ticks(pid_t process, unsigned depth);

static uint64_t ticks_of_children(const char *path, unsigned depth)
{
	VP_AUTO_FCLOSE FILE *file = fopen(path, "re");
	uint64_t sum = 0;
	int child;

	while (file && fscanf(file, "%d", &child) == 1)
		sum += cpu_ticks(child, depth);
	return sum;
}

/* The kernel lists the children of each thread. */
static uint64_t ticks_of_descendants(pid_t process, unsigned depth)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%d/task", (int)process);
	DIR *threads = opendir(path);
	uint64_t sum = 0;

	for (const struct dirent *thread; threads && (thread = readdir(threads));) {
		VP_AUTO_FREE char *children = vp_format("%s/%s/children", path, thread->d_name);
		if (thread->d_name[0] != '.')
			sum += ticks_of_children(children, depth);
	}
	if (threads)
		closedir(threads);
	return sum;
}

static uint64_t cpu_ticks(pid_t process, unsigned depth)
{
	struct times times;

	if (!read_times(process, &times))
		return 0;
	return times.own + times.ended +
	       (depth < MAX_DEPTH ? ticks_of_descendants(process, depth + 1) : 0);
}

void vp_process_cost_add(pid_t process, struct vp_process_cost *cost)
{
	struct times times;

	if (!process || !read_times(process, &times))
		return;
	cost->cpu_ns += cpu_ticks(process, 0) * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
	cost->memory += times.resident * (uint64_t)sysconf(_SC_PAGESIZE);
}
