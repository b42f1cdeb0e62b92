/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * move-vcpus together|apart MS PROGRAM [ARGUMENT]...: on a host, while the program runs, the
 * threads of all vCPUs are moved to another pCPU each MS ms: all to one that is chosen at random,
 * or each to one of its own. Says 'moved=N' on stderr, the number of threads that were, and leaves
 * them where they were before. Its exit status is the program's.
 */
#include <dirent.h>
#include <err.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

static struct {
	pid_t tid;
	cpu_set_t before;
} threads[MAX_THREADS];
static unsigned n_threads;

/* QEMU's names of them: "CPU 0/KVM". */
static bool is_vcpu(const char *process, const char *thread)
{
	char path[600], name[16] = "";

	snprintf(path, sizeof(path), "/proc/%s/task/%s/comm", process, thread);
	FILE *file = fopen(path, "r");
	if (!file)
		return false;
	bool has_name = fgets(name, sizeof(name), file);
	fclose(file);
	return has_name && !strncmp(name, "CPU ", 4) && strstr(name, "/KVM");
}

static void take_thread(pid_t tid)
{
	if (n_threads == MAX_THREADS)
		return;
	threads[n_threads].tid = tid;
	if (!sched_getaffinity(tid, sizeof(cpu_set_t), &threads[n_threads].before))
		n_threads++;
}

static void find_of_process(const char *process)
{
	char path[300];
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%s/task", process);
	DIR *tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (is_vcpu(process, entry->d_name))
			take_thread(atoi(entry->d_name));
	if (tasks)
		closedir(tasks);
}

static void find_threads(void)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;

	while (processes && (entry = readdir(processes)))
		if (atoi(entry->d_name) > 0)
			find_of_process(entry->d_name);
	if (processes)
		closedir(processes);
	if (!n_threads)
		errx(1, "there are no threads of vCPUs");
}

static unsigned move_to(pid_t thread, unsigned number)
{
	cpu_set_t cpu, before;

	CPU_ZERO(&cpu);
	CPU_SET(number, &cpu);
	bool moves =
	    !sched_getaffinity(thread, sizeof(before), &before) && !CPU_EQUAL(&cpu, &before);
	sched_setaffinity(thread, sizeof(cpu), &cpu);
	return moves;
}

/* This thread comes last: on the pCPU that they leave, none of them ran meanwhile. */
static unsigned move_all(bool together)
{
	unsigned pcpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	unsigned place = (unsigned)random() % pcpus, moved = 0;

	for (unsigned i = 0; i < n_threads; i++)
		moved += move_to(threads[i].tid, together ? place : (unsigned)random() % pcpus);
	move_to(0, place);
	return moved;
}

static int watch(pid_t pid, bool together, useconds_t us)
{
	const struct sched_param first = {.sched_priority = 1};
	unsigned moved = 0;
	int status = 0;

	find_threads();
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		err(1, "sched_setscheduler");
	while (!waitpid(pid, &status, WNOHANG)) {
		moved += move_all(together);
		usleep(us);
	}
	for (unsigned i = 0; i < n_threads; i++)
		sched_setaffinity(threads[i].tid, sizeof(cpu_set_t), &threads[i].before);
	fprintf(stderr, "moved=%u\n", moved);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	if (argc < 4 || (strcmp(argv[1], "together") != 0 && strcmp(argv[1], "apart") != 0))
		errx(2, "usage: move-vcpus together|apart MS PROGRAM [ARGUMENT]...");
	pid_t pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		execvp(argv[3], argv + 3);
		err(1, "%s", argv[3]);
	}
	return watch(pid, argv[1][0] == 't', (useconds_t)(atoi(argv[2]) * 1000));
}
