/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/tracefs/trace_instance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/io.h"
#include "maps/proc.h"

#define PREFIX "vperf-"

enum { SWITCHES_MAX = 1 << 16, MAX_NAMES = 64, REMOVE_TRIES = 100, REMOVE_WAIT_US = 20000 };

struct vp_trace_instance {
	char *tracing, *path;
	int alive; /* write end of the keeper's pipe: the keeper exits when this process does */
	pid_t keeper;
};

static int write_file(const char *path, const char *text)
{
	VP_AUTO_CLOSE int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	return fd < 0 ? -errno : vp_fd_write_all(fd, text, strlen(text));
}

static struct vp_error *set(const struct vp_trace_instance *own, const char *name, const char *text)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s", own->path, name);
	int result = write_file(path, text);

	return result ? vp_error_errno(-result, "cannot write '%s' to '%s'", text, path) : NULL;
}

/* An instance in use cannot be removed: descriptors may be closed shortly later. */
static void remove_directory(const char *path)
{
	for (int tries = 0; rmdir(path) && errno == EBUSY && tries < REMOVE_TRIES; tries++)
		vp_sleep_us(REMOVE_WAIT_US);
}

/* "vperf-PID" or "vperf-PID-N" of a process that has exited. */
static bool is_leftover(const char *name)
{
	char *end;

	if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) != 0)
		return false;
	long pid = strtol(name + sizeof(PREFIX) - 1, &end, 10);
	return pid > 0 && (!*end || *end == '-') && kill((pid_t)pid, 0) && errno == ESRCH;
}

static void trace_instance_remove_leftover(const char *tracing)
{
	VP_AUTO_FREE char *path = vp_format("%s/instances", tracing);
	DIR *directory = opendir(path);

	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		if (!is_leftover(entry->d_name))
			continue;
		VP_AUTO_FREE char *instance = vp_format("%s/%s", path, entry->d_name);
		rmdir(instance);
	}
	if (directory)
		closedir(directory);
}

static struct vp_error *trace_instance_make_directory(struct vp_trace_instance *own)
{
	for (int number = 0; number < MAX_NAMES; number++) {
		char *path =
		    number ? vp_format("%s/instances/" PREFIX "%d-%d", own->tracing, (int)getpid(),
				       number)
			   : vp_format("%s/instances/" PREFIX "%d", own->tracing, (int)getpid());
		if (!mkdir(path, 0700)) {
			own->path = path;
			return NULL;
		}
		int result = errno;
		struct vp_error *error = vp_error_errno(result, "cannot make '%s'", path);
		free(path);
		if (result != EEXIST)
			return error;
		vp_error_free(error);
	}
	return vp_error_new("cannot create a tracing instance in '%s'", own->tracing);
}

/* The keeper: a separate process that shares only the pipe with this one, and removes the
 * instance when this one has exited. */
static void trace_instance_keep(const char *path, int alive)
{
	char byte;

	setsid(); /* not in the terminal's foreground process group: a Ctrl-C must not end it */
	signal(SIGTERM, SIG_IGN);
	if (dup2(alive, 0) < 0)
		_exit(1);
	close_range(1, ~0U, 0);
	(void)!vp_read(0, &byte, 1);
	remove_directory(path);
	_exit(0);
}

static struct vp_error *start_keeper(struct vp_trace_instance *own)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return vp_error_errno(errno, "cannot create a pipe");
	own->keeper = fork();
	if (!own->keeper) {
		close(ends[1]);
		trace_instance_keep(own->path, ends[0]);
	}
	close(ends[0]);
	own->alive = ends[1];
	return own->keeper < 0 ? vp_error_errno(errno, "cannot start a process") : NULL;
}

/* Whether this is the only instance, and no event outside of it is enabled. */
static bool trace_instance_traces_alone(const struct vp_trace_instance *own)
{
	VP_AUTO_FREE char *path = vp_format("%s/instances", own->tracing);
	VP_AUTO_FREE char *switches = vp_format("%s/events/enable", own->tracing);
	DIR *directory = opendir(path);
	struct vp_buffer enabled = {0};
	size_t instances = 0;

	for (struct dirent *entry; directory && (entry = readdir(directory));)
		instances += entry->d_name[0] != '.';
	if (directory)
		closedir(directory);
	vp_error_free(vp_file_read(switches, SWITCHES_MAX, &enabled));
	bool alone = instances == 1 && !strcmp(vp_buffer_text(&enabled), "0\n");
	vp_buffer_deinit(&enabled);
	return alone;
}

/* At switches and wakeups the kernel stores thread names in a list (record-cmd), which costs
 * more than the event itself and is not used here. Only off if no other tracer is active: an
 * instance's setting applies to all events enabled at that time. */
static void trace_instance_go_without_names(const struct vp_trace_instance *own)
{
	if (trace_instance_traces_alone(own))
		vp_error_free(set(own, "trace_options", "norecord-cmd"));
}

static struct vp_error *trace_instance_make(struct vp_trace_instance *own, size_t bytes)
{
	VP_AUTO_FREE char *size = vp_format("%zu", bytes >> 10);

	trace_instance_remove_leftover(own->tracing);
	VP_TRY(trace_instance_make_directory(own));
	VP_TRY(start_keeper(own));
	VP_TRY(set(own, "tracing_on", "0"));
	VP_TRY(set(own, "trace_clock", "mono"));
	VP_TRY(set(own, "options/overwrite", "0"));
	VP_TRY(set(own, "buffer_percent", "25"));
	trace_instance_go_without_names(own);
	return set(own, "buffer_size_kb", size);
}

struct vp_error *vp_trace_instance_new(const char *tracing, size_t bytes,
				       struct vp_trace_instance **ret)
{
	struct vp_trace_instance *own = vp_alloc(sizeof(*own));

	*own = (struct vp_trace_instance){.tracing = vp_strdup(tracing), .alive = -1};
	struct vp_error *error = trace_instance_make(own, bytes);
	if (error)
		vp_trace_instance_free(own);
	else
		*ret = own;
	return error;
}

void vp_trace_instance_free(struct vp_trace_instance *own)
{
	if (!own)
		return;
	if (own->path)
		remove_directory(own->path);
	if (own->alive >= 0)
		close(own->alive);
	if (own->keeper > 0)
		vp_waitpid(own->keeper, NULL, 0);
	free(own->path);
	free(own->tracing);
	free(own);
}

struct vp_error *vp_trace_instance_add(struct vp_trace_instance *own, const char *name,
				       const char *filter)
{
	VP_AUTO_FREE char *folder = vp_format("events/%s", name);

	*strchr(folder, ':') = '/';
	VP_AUTO_FREE char *switches = vp_format("%s/enable", folder);
	VP_AUTO_FREE char *rule = vp_format("%s/%s/filter", own->path, folder);
	int result = filter ? write_file(rule, filter) : 0;
	if (result)
		return vp_error_usage("option --filter: the kernel rejects '%s' for event '%s': %s",
				      filter, name, strerror(-result));
	return set(own, switches, "1");
}

struct vp_error *vp_trace_instance_switch(struct vp_trace_instance *own, bool on)
{
	return set(own, "tracing_on", on ? "1" : "0");
}

struct vp_error *vp_trace_instance_open_pages(struct vp_trace_instance *own, uint32_t pcpu,
					      int *ret)
{
	VP_AUTO_FREE char *path =
	    vp_format("%s/per_cpu/cpu%" PRIu32 "/trace_pipe_raw", own->path, pcpu);

	*ret = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return *ret < 0 ? vp_error_errno(errno, "cannot open '%s'", path) : NULL;
}

struct vp_error *vp_trace_instance_lost(const struct vp_trace_instance *own, uint32_t pcpu,
					uint64_t *ret)
{
	return vp_proc_ftrace_lost(own->path, pcpu, ret);
}
