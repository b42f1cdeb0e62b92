/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/unfinished.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"

enum { ATTEMPTS = 100, PATIENCE_S = 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *unfinished; /* a path, or NULL */
static sigset_t ends;
static pthread_barrier_t started;

/* Retries, because other threads may still write to the directory. */
static void remove_all(const char *path)
{
	struct stat status;

	for (int i = 0; i < ATTEMPTS && !lstat(path, &status); i++)
		vp_file_remove_all(path);
}

/* Ends the program like the signal's default action. */
static void *wait_for_signal(void *context)
{
	struct timespec until;
	sigset_t one;
	int number;

	pthread_barrier_wait(&started);
	if (sigwait(&ends, &number))
		return NULL;
	/* No timeout is needed: output cannot become complete any more. If opening the output
	 * blocks, for example a pipe without a reader, there is nothing to remove. */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	if (!pthread_mutex_timedlock(&lock, &until) && unfinished)
		remove_all(unfinished);
	sigemptyset(&one);
	sigaddset(&one, number);
	signal(number, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
	raise(number);
	return NULL;
}

/* Ignored signals, as under nohup, stay ignored. */
static void choose_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	struct sigaction now;

	sigemptyset(&ends);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!sigaction(numbers[i], NULL, &now) && now.sa_handler == SIG_DFL)
			sigaddset(&ends, numbers[i]);
}

/* Returns when the thread is waiting: a fork during its start could copy locks that it holds. */
static void start_waiting(void)
{
	static bool is_waiting;
	pthread_t thread;

	if (is_waiting)
		return;
	choose_signals();
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	pthread_barrier_init(&started, NULL, 2);
	is_waiting = !pthread_create(&thread, NULL, wait_for_signal, NULL);
	if (!is_waiting) {
		pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
		return;
	}
	pthread_barrier_wait(&started);
	pthread_detach(thread);
}

void vp_unfinished_hold(void)
{
	start_waiting();
	pthread_mutex_lock(&lock);
}

void vp_unfinished_begin(const char *path)
{
	unfinished = path ? vp_strdup(path) : NULL;
	pthread_mutex_unlock(&lock);
}

void vp_unfinished_end(void)
{
	pthread_mutex_trylock(&lock); /* another thread may hold it */
	free(unfinished);
	unfinished = NULL;
	pthread_mutex_unlock(&lock);
}
