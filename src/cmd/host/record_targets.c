/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/host/record_targets.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/pcpus.h"
#include "base/vec.h"

/* PIDFD_THREAD (Linux 6.9): a pidfd of a thread instead of its process. */
enum { OF_THREAD = O_EXCL };

/* Parses a list of ids. Each must exist in /proc, because a mistyped id would record nothing. */
static struct vp_error *read_numbers(const char *option, const char *what, const char *of_many,
				     const char *text, struct vp_profile_ids *ret)
{
	const char *all = text;

	while (text) {
		char *end;
		unsigned long number = strtoul(text, &end, 10);
		if (end == text || (*end && *end != ',') || text[0] == '-' || text[0] == '+' ||
		    !number || number > INT32_MAX)
			return vp_error_usage("option --%s: expected numbers of %s, separated by "
					      "commas, not '%s'",
					      option, of_many, all);
		VP_AUTO_FREE char *path = vp_format("/proc/%lu", number);
		if (access(path, F_OK))
			return vp_error_new("option --%s: there is no %s %lu", option, what,
					    number);
		vp_vec_push(ret, (uint32_t)number);
		text = *end ? end + 1 : NULL;
	}
	return NULL;
}

static struct vp_error *read_pcpus(const char *text, struct vp_pcpus *ret)
{
	struct vp_pcpus online = {0};

	VP_AUTO_ERROR struct vp_error *error = vp_pcpus_parse(text, "option --cpu", ret);
	if (error || !ret->count)
		return vp_error_usage(
		    "option --cpu: expected a list of pCPUs such as 0-3,8, not '%s'", text);
	VP_TRY(vp_pcpus_online(&online));
	struct vp_error *missing = NULL;
	vp_vec_each (ret, pcpu) {
		bool found = false;
		vp_vec_each (&online, other)
			found |= *other == *pcpu;
		if (!found && !missing)
			missing = vp_error_new("option --cpu: pCPU %d is not online", *pcpu);
	}
	vp_vec_deinit(&online);
	return missing;
}

static void watch_end(struct vp_target_ends *ends, uint32_t id, int flags)
{
	/* One-shot: the descriptor of an ended process stays readable. */
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)id, flags);

	ends->running++;
	if (fd < 0 || epoll_ctl(ends->epoll, EPOLL_CTL_ADD, fd, &event)) {
		if (fd >= 0)
			close(fd);
		vp_vec_push(&ends->unwatched, id);
		return;
	}
	vp_vec_push(&ends->fds, (uint32_t)fd);
}

static struct vp_error *watch_ends(struct vp_record_targets *targets)
{
	struct vp_target_ends *ends = &targets->ends;

	if (!targets->chosen.pids.count && !targets->chosen.tids.count)
		return NULL;
	ends->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (ends->epoll < 0) {
		ends->epoll = 0;
		return vp_error_errno(errno, "cannot watch processes");
	}
	vp_vec_each (&targets->chosen.pids, pid)
		watch_end(ends, *pid, 0);
	vp_vec_each (&targets->chosen.tids, tid)
		watch_end(ends, *tid, OF_THREAD);
	return NULL;
}

static bool is_there(uint32_t id)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%u", id);

	return !access(path, F_OK);
}

bool vp_record_targets_ended(struct vp_record_targets *targets)
{
	struct vp_target_ends *ends = &targets->ends;
	struct vp_profile_ids left = {0};
	struct epoll_event event;
	struct pollfd any = {.fd = ends->epoll, .events = POLLIN};

	if (!ends->epoll)
		return false;
	while (vp_poll(&any, 1, 0) > 0 && vp_epoll_wait(ends->epoll, &event, 1) > 0)
		ends->running--;
	vp_vec_each (&ends->unwatched, id)
		if (is_there(*id))
			vp_vec_push(&left, *id);
	ends->running -= ends->unwatched.count - left.count;
	vp_vec_deinit(&ends->unwatched);
	ends->unwatched = left;
	return !ends->running;
}

struct vp_error *vp_record_targets_check(struct vp_record_targets *targets)
{
	VP_TRY(read_numbers("pid", "process", "processes", targets->pids, &targets->chosen.pids));
	VP_TRY(read_numbers("tid", "thread", "threads", targets->tids, &targets->chosen.tids));
	if (targets->cpus)
		VP_TRY(read_pcpus(targets->cpus, &targets->chosen.pcpus));
	return watch_ends(targets);
}

void vp_record_targets_deinit(struct vp_record_targets *targets)
{
	vp_vec_deinit(&targets->chosen.pids);
	vp_vec_deinit(&targets->chosen.tids);
	vp_vec_deinit(&targets->chosen.pcpus);
	vp_vec_each (&targets->ends.fds, fd)
		close((int)*fd);
	vp_vec_deinit(&targets->ends.fds);
	vp_vec_deinit(&targets->ends.unwatched);
	if (targets->ends.epoll)
		close(targets->ends.epoll);
}
