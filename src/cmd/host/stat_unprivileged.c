/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/host/stat_unprivileged.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "base/vec.h"
#include "cmd/common/command.h"
#include "cmd/common/verb.h"
#include "host/perf_event.h"
#include "schema/interval.h"

/* Maximum delay until the end of COMMAND is noticed. */
enum { STEP_MS = 50 };

struct count {
	const char *name; /* name in the recipe */
	bool is_time;
	bool user_only; /* the kernel allows only user space */
	int fd;
	int problem; /* errno of the failed open */
};

typedef VP_VEC(struct count) count_vec;

/* Layout of a read with PERF_FORMAT_TOTAL_TIME_ENABLED and …_RUNNING. */
struct reading {
	uint64_t value, enabled, running;
};

/* Events that only the kernel causes: with the kernel excluded, the count is 0. */
static bool counts_kernel_only(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
		attr->config == PERF_COUNT_SW_CPU_MIGRATIONS);
}

static void open_count(const struct vp_recipe_event *event, pid_t pid, struct count *count)
{
	struct perf_event_attr attr = vp_perf_event_attr(&event->event);

	attr.disabled = 1;
	attr.enable_on_exec = 1;
	attr.inherit = 1;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	count->fd = vp_perf_event_open(&attr, pid, -1, -1);
	if (count->fd < 0 && errno == EACCES && !attr.exclude_kernel &&
	    !counts_kernel_only(&attr)) {
		attr.exclude_kernel = 1;
		attr.exclude_hv = 1;
		count->user_only = true;
		count->fd = vp_perf_event_open(&attr, pid, -1, -1);
	}
	count->problem = count->fd < 0 ? errno : 0;
}

static void open_counts(const struct vp_recipe *recipe, pid_t pid, count_vec *ret)
{
	vp_vec_each (&recipe->events, event) {
		struct count count = {.name = event->name,
				      .is_time = !strcmp(event->event.unit, "ns"),
				      .fd = -1,
				      .problem = EOPNOTSUPP};
		if (event->event.source == VP_FROM_COUNTER)
			open_count(event, pid, &count);
		vp_vec_push(ret, count);
	}
}

/* Error if no event could be opened. */
static struct vp_error *expect_open(const count_vec *counts)
{
	bool forbidden = false;

	vp_vec_each (counts, count) {
		if (count->fd >= 0)
			return NULL;
		forbidden |= count->problem == EACCES || count->problem == EPERM;
	}
	return vp_error_new("%s: counting requires root (try sudo)",
			    forbidden ? "the kernel does not allow counters without root "
					"(kernel.perf_event_paranoid)"
				      : "none of these events can be counted without root");
}

static void put_count(const struct count *count, struct vp_buffer *out)
{
	VP_AUTO_FREE char *name = vp_format("%s%s", count->name, count->user_only ? ":u" : "");
	struct reading reading = {0};
	char time[VP_DURATION_SIZE];

	vp_buffer_printf(out, "%-26s", name);
	if (count->fd < 0) {
		vp_buffer_printf(out, "  %20s\n",
				 count->problem == EACCES || count->problem == EPERM
				     ? "not permitted"
				     : "not supported");
		return;
	}
	if (vp_read(count->fd, &reading, sizeof(reading)) != sizeof(reading) || !reading.running) {
		vp_buffer_printf(out, "  %20s  %8.2f%%\n", "not counted", 0.0);
		return;
	}
	double share = (double)reading.running / (double)reading.enabled;
	double sum = (double)reading.value / share;
	if (count->is_time)
		vp_buffer_printf(out, "  %20s", vp_text_duration((uint64_t)sum, time));
	else
		vp_buffer_printf(out, "  %20.0f", sum);
	vp_buffer_printf(out, "  %8.2f%%\n", 100 * share);
}

static struct vp_error *print(const count_vec *counts)
{
	struct vp_buffer out = {0};
	bool user_only = false;

	vp_buffer_printf(&out, "%-26s  %20s  %9s\n", "event", "sum", "running %");
	vp_vec_each (counts, count) {
		put_count(count, &out);
		user_only |= count->user_only || count->problem == EACCES;
	}
	if (user_only)
		vp_buffer_string(&out, ":u counts user space only: the kernel allows users no more "
				       "(kernel.perf_event_paranoid)\n");
	vp_buffer_string(&out, "Counted without root: no intervals, and no recording.\n");
	bool written = !vp_fd_write_all(STDERR_FILENO, out.bytes, out.size);
	vp_buffer_deinit(&out);
	return written ? NULL : vp_error_new("cannot write to standard error");
}

static struct vp_error *run(const struct vp_unprivileged *options, struct vp_command *command,
			    int *status)
{
	uint64_t since;

	VP_TRY(vp_command_go(command));
	since = vp_clock_monotonic();
	while (!vp_command_stop_wanted() && !vp_command_ended(command, status) &&
	       (!options->duration_ns || vp_clock_monotonic() - since < options->duration_ns))
		if (vp_poll_or_signal(NULL, 0, STEP_MS) < 0)
			return vp_error_errno(errno, "cannot wait for COMMAND");
	if (command->pid)
		kill(command->pid, SIGTERM);
	return NULL;
}

struct vp_error *vp_stat_unprivileged(const struct vp_unprivileged *options,
				      const struct vp_recipe *recipe, int *status)
{
	struct vp_command command = {0};
	count_vec counts = {0};

	vp_command_catch_signals();
	VP_TRY(vp_command_prepare(options->command, &command));
	open_counts(recipe, command.pid, &counts);
	struct vp_error *error = expect_open(&counts);
	if (!error)
		error = run(options, &command, status);
	if (!error && !options->quiet)
		error = print(&counts);
	vp_vec_each (&counts, count)
		if (count->fd >= 0)
			close(count->fd);
	vp_vec_deinit(&counts);
	return error;
}
