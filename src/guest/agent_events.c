/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends events of this guest's kernel to the host: see protocol/events_protocol.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/vec.h"
#include "guest/agent.h"
#include "guest/cpus.h"
#include "guest/serve_vchan.h"
#include "maps/proc.h"
#include "protocol/events_protocol.h"
#include "vchan/xen_time.h"

#define TRACEFS "/sys/kernel/tracing"

enum {
	POLL_MS = 40, /* interval of checks for full pages: the ring holds much more than arrives in
			 that time */
	LOST_MS = 1000,
	CLOCK_MS = 10, /* minimum distance of clock pairs */
	CLOCK_TRIES = 8,
	PIPE_BYTES = 1 << 18,
	MESSAGE_BYTES = 1 << 16, /* as much as vsock sends at once */
	FORMAT_MAX = 1 << 16,
};

/* The host can relate only the guest's CPU counter to its own. On 64-bit Arm no trace clock is
 * the counter itself; this one is the counter times a constant. */
#if defined(__aarch64__)
#define TRACE_CLOCK "mono_raw"
enum { CLOCK_IS_COUNTER = 0 };
#else
#define TRACE_CLOCK "x86-tsc"
enum { CLOCK_IS_COUNTER = 1 };
#endif

struct cpu {
	int pages; /* trace_pipe_raw, or -1 */
	uint32_t vcpu;
	bool is_known;  /* its vCPU number is known */
	uint64_t lost;  /* last value sent to the host */
	uint64_t stamp; /* version of Xen's time info sent last */
};

struct session {
	int host, signals;
	unsigned ring_kib; /* per CPU */
	int pipe[2];
	char *path; /* of the ftrace instance */
	VP_VEC(struct cpu) cpus;
	char *page, *message;
	size_t page_size;
	uint64_t ms_to_lost;
	uint64_t clock_ns;          /* time of the last counter message to the host */
	struct vp_xen_times *times; /* NULL: not a Xen guest */
};

static struct vp_error *agent_events_put_file(const struct session *session, const char *name,
					      const char *text)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s", session->path, name);
	VP_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
	int result = fd < 0 ? -errno : vp_fd_write_all(fd, text, strlen(text));

	return result ? vp_error_errno(-result, "cannot write '%s' to '%s'", text, path) : NULL;
}

static struct vp_error *gone(int errnum)
{
	return vp_error_errno(errnum, "the host has closed the connection");
}

static struct vp_error *agent_events_put_head(const struct session *session,
					      enum vp_events_kind kind, uint32_t vcpu, size_t size)
{
	const struct vp_events_frame frame = {.kind = kind, .vcpu = vcpu, .size = (uint32_t)size};
	int result = vp_fd_write_all(session->host, &frame, sizeof(frame));

	return result ? gone(-result) : NULL;
}

static struct vp_error *agent_events_put_frame(const struct session *session,
					       enum vp_events_kind kind, uint32_t vcpu,
					       const void *bytes, size_t size)
{
	VP_TRY(agent_events_put_head(session, kind, vcpu, size));
	int result = vp_fd_write_all(session->host, bytes, size);
	return result ? gone(-result) : NULL;
}

/* Removes instances of killed agents, whose events are still enabled. */
static void remove_stale(void)
{
	DIR *directory = opendir(TRACEFS "/instances");

	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		static const char head[] = "vperf-agent-";
		if (strncmp(entry->d_name, head, sizeof(head) - 1) != 0 ||
		    !kill((pid_t)atol(entry->d_name + sizeof(head) - 1), 0))
			continue;
		VP_AUTO_FREE char *path = vp_format(TRACEFS "/instances/%s", entry->d_name);
		rmdir(path);
	}
	if (directory)
		closedir(directory);
}

/* Mounts tracefs in a private mount namespace if it is not mounted. */
static struct vp_error *find_tracefs(void)
{
	if (!access(TRACEFS "/instances", F_OK))
		return NULL;
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tracefs", TRACEFS, "tracefs", 0, NULL))
		return vp_error_errno(errno, "cannot mount tracefs");
	return NULL;
}

/* Whether this is the only instance, and no event outside of it is enabled. */
static bool agent_events_traces_alone(void)
{
	DIR *directory = opendir(TRACEFS "/instances");
	struct vp_buffer enabled = {0};
	size_t instances = 0;

	for (struct dirent *entry; directory && (entry = readdir(directory));)
		instances += entry->d_name[0] != '.';
	if (directory)
		closedir(directory);
	struct vp_error *error = vp_file_read(TRACEFS "/events/enable", FORMAT_MAX, &enabled);
	bool alone = !error && instances == 1 && !strcmp(vp_buffer_text(&enabled), "0\n");
	vp_error_free(error);
	vp_buffer_deinit(&enabled);
	return alone;
}

/* At switches and wakeups the kernel stores thread names in a list (record-cmd), which costs
 * more than the event itself. Events contain the names here. Only off if no other tracer is
 * active: an instance's setting applies to all events enabled at that time. */
static void agent_events_go_without_names(const struct session *session)
{
	if (agent_events_traces_alone())
		vp_error_free(agent_events_put_file(session, "trace_options", "norecord-cmd"));
}

static struct vp_error *make_instance(struct session *session)
{
	VP_TRY(find_tracefs());
	remove_stale();
	char *path = vp_format(TRACEFS "/instances/vperf-agent-%d", (int)getpid());
	if (mkdir(path, 0700)) {
		struct vp_error *error = vp_error_errno(errno, "cannot make '%s'", path);
		free(path);
		return error;
	}
	session->path = path;
	VP_TRY(agent_events_put_file(session, "tracing_on", "0"));
	VP_TRY(agent_events_put_file(session, "trace_clock", TRACE_CLOCK));
	VP_TRY(agent_events_put_file(session, "options/overwrite", "0"));
	agent_events_go_without_names(session);
	VP_AUTO_FREE char *size = vp_format("%u", session->ring_kib);
	vp_error_free(agent_events_put_file(session, "buffer_size_kb",
					    size)); /* on failure, keeps the present size */
	return NULL;
}

/* If the kernel has the event: sends its format and enables it. */
static struct vp_error *agent_events_add_event(struct session *session, const char *name)
{
	VP_AUTO_FREE char *folder = vp_format("events/%s", name);
	struct vp_buffer text = {0};

	*strchr(folder, ':') = '/';
	VP_AUTO_FREE char *path = vp_format("%s/%s/format", session->path, folder);
	VP_AUTO_FREE char *enable = vp_format("%s/enable", folder);
	if (access(path, F_OK))
		return NULL;
	vp_buffer_printf(&text, "%s\n", name);
	struct vp_error *error = vp_file_read(path, FORMAT_MAX, &text);
	if (!error)
		error = agent_events_put_frame(session, VP_EVENTS_FORMAT, 0, text.bytes, text.size);
	vp_buffer_deinit(&text);
	return error ? error : agent_events_put_file(session, enable, "1");
}

static struct vp_error *agent_events_add_events(struct session *session, unsigned sets)
{
	const struct {
		struct vp_events_frame frame;
		uint32_t page_size;
	} agent_events_begin = {
	    {VP_EVENTS_BEGIN, 0, sizeof(agent_events_begin.page_size), VP_EVENTS_CAN_FLUSH},
	    (uint32_t)session->page_size};
	const char *name;

	for (size_t i = 0; (name = vp_events_of_sets(sets, i)); i++)
		VP_TRY(agent_events_add_event(session, name));
	int result =
	    vp_fd_write_all(session->host, &agent_events_begin, sizeof(agent_events_begin));
	return result ? gone(-result) : NULL;
}

static void add_tasks_of(void *context, uint32_t pid)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%" PRIu32 "/task", pid);
	DIR *directory = opendir(path);

	for (struct dirent *entry; directory && (entry = readdir(directory));) {
		struct vp_events_task task = {.pid = pid, .tid = (uint32_t)atol(entry->d_name)};
		if (task.tid && vp_proc_comm(task.tid, task.comm))
			vp_buffer_append(context, &task, sizeof(task));
	}
	if (directory)
		closedir(directory);
}

static struct vp_error *send_tasks(const struct session *session)
{
	enum { MAX = VP_EVENTS_FRAME_MAX / sizeof(struct vp_events_task) };
	struct vp_buffer tasks = {0};
	struct vp_error *error = vp_proc_processes(add_tasks_of, &tasks);

	if (!error)
		error = agent_events_put_frame(session, VP_EVENTS_TASKS, 0, tasks.bytes,
					       tasks.size < MAX * sizeof(struct vp_events_task)
						   ? tasks.size
						   : MAX * sizeof(struct vp_events_task));
	vp_buffer_deinit(&tasks);
	return error;
}

/* Opens the rings of all possible CPUs; memory is allocated when they come online. */
static void open_cpus(struct session *session)
{
	for (uint32_t cpu = 0; cpu < VP_EVENTS_VCPUS_MAX; cpu++) {
		VP_AUTO_FREE char *path =
		    vp_format("%s/per_cpu/cpu%" PRIu32 "/trace_pipe_raw", session->path, cpu);
		int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			break;
		vp_vec_push(&session->cpus, ((struct cpu){.pages = fd, .vcpu = cpu}));
	}
}

static struct vp_error *note_vcpu(void *context, uint32_t cpu, uint32_t vcpu)
{
	struct session *session = context;

	if (cpu < session->cpus.count) {
		session->cpus.at[cpu].vcpu = vcpu;
		session->cpus.at[cpu].is_known = true;
	}
	return NULL;
}

static struct vp_error *agent_events_update_vcpu(struct session *session, struct cpu *cpu)
{
	if (cpu->is_known)
		return NULL;
	if (!session->times)
		return vp_guest_cpus(note_vcpu, session);
	cpu->is_known =
	    vp_xen_times_vcpu(session->times, (uint32_t)(cpu - session->cpus.at), &cpu->vcpu);
	return NULL;
}

/* Sends the relation of Xen's time to the CPU's counter, if it has changed. */
static struct vp_error *send_time(struct session *session, struct cpu *cpu)
{
	struct vp_xen_time time;

	if (!session->times ||
	    !vp_xen_times_read(session->times, (uint32_t)(cpu - session->cpus.at), &time) ||
	    time.tsc == cpu->stamp)
		return NULL;
	cpu->stamp = time.tsc;
	const struct vp_events_time sent = {time.tsc, time.ns, time.mul, time.shift};
	VP_TRY(agent_events_update_vcpu(session, cpu));
	return agent_events_put_frame(session, VP_EVENTS_TIME, cpu->vcpu, &sent, sizeof(sent));
}

static struct vp_error *send_times(struct session *session)
{
	vp_vec_each (&session->cpus, cpu)
		VP_TRY(send_time(session, cpu));
	return NULL;
}

/* Sends the counter's value, at most every CLOCK_MS. */
static struct vp_error *send_clock(struct session *session)
{
	struct vp_events_clock clock;

	if (CLOCK_IS_COUNTER)
		return NULL;
	vp_clock_pair(CLOCK_MONOTONIC_RAW, CLOCK_TRIES, &clock.ns, &clock.counter, &clock.error_ns);
	if (session->clock_ns && clock.ns - session->clock_ns < CLOCK_MS * 1000000ULL)
		return NULL;
	session->clock_ns = clock.ns;
	return agent_events_put_frame(session, VP_EVENTS_CLOCK, 0, &clock, sizeof(clock));
}

/* Reads pages from the pipe, which then no longer belong to the ring, and sends them by copying:
 * splice() to a socket makes a message per page, which is slower. */
static struct vp_error *send_pages(struct session *session, struct cpu *cpu, size_t size)
{
	VP_TRY(agent_events_update_vcpu(session, cpu));
	VP_TRY(send_clock(session));
	VP_TRY(send_time(session, cpu));
	VP_TRY(agent_events_put_head(session, VP_EVENTS_PAGES, cpu->vcpu, size));
	while (size) {
		size_t most = size < MESSAGE_BYTES ? size : MESSAGE_BYTES;
		ssize_t taken = vp_read(session->pipe[0], session->message, most);
		if (taken <= 0)
			return vp_error_errno(taken ? errno : EPIPE, "cannot read its pipe");
		int result = vp_fd_write_all(session->host, session->message, (size_t)taken);
		if (result)
			return gone(-result);
		size -= (size_t)taken;
	}
	return NULL;
}

/* Sends the full pages. */
static struct vp_error *send_cpu(struct session *session, struct cpu *cpu, bool *any)
{
	ssize_t size =
	    splice(cpu->pages, NULL, session->pipe[1], NULL, PIPE_BYTES, SPLICE_F_NONBLOCK);

	if (size < 0 && errno != EAGAIN && errno != EINTR)
		return vp_error_errno(errno, "cannot splice its ring's pages");
	*any |= size > 0;
	return size > 0 ? send_pages(session, cpu, (size_t)size) : NULL;
}

static struct vp_error *send_full(struct session *session, bool *any)
{
	*any = false;
	vp_vec_each (&session->cpus, cpu)
		VP_TRY(send_cpu(session, cpu, any));
	return NULL;
}

/* Sends the last, partial pages; at most a ring's size, since more may arrive meanwhile. */
static struct vp_error *send_rest(struct session *session)
{
	vp_vec_each (&session->cpus, cpu) {
		size_t left = ((size_t)session->ring_kib << 10) / session->page_size + 1;
		ssize_t size;
		while (left-- &&
		       (size = vp_read(cpu->pages, session->page, session->page_size)) > 0) {
			VP_TRY(agent_events_update_vcpu(session, cpu));
			VP_TRY(send_clock(session));
			VP_TRY(send_time(session, cpu));
			VP_TRY(agent_events_put_frame(session, VP_EVENTS_PAGES, cpu->vcpu,
						      session->page, (size_t)size));
		}
	}
	return NULL;
}

static struct vp_error *send_lost(struct session *session)
{
	vp_vec_each (&session->cpus, cpu) {
		uint64_t lost;
		VP_TRY(
		    vp_proc_ftrace_lost(session->path, (uint32_t)(cpu - session->cpus.at), &lost));
		if (lost == cpu->lost)
			continue;
		VP_TRY(agent_events_update_vcpu(session, cpu));
		VP_TRY(agent_events_put_frame(session, VP_EVENTS_LOST, cpu->vcpu, &lost,
					      sizeof(lost)));
		cpu->lost = lost;
	}
	return NULL;
}

enum request { MORE, FLUSH, STOP };

/* Waits for the host's request, or for the end of this process. */
static enum request wait_for_request(const struct session *session, bool any)
{
	struct pollfd fds[] = {{.fd = session->host, .events = POLLIN},
			       {.fd = session->signals, .events = POLLIN}};
	char byte;

	if (!vp_poll(fds, VP_ARRAY_SIZE(fds), any ? 0 : POLL_MS))
		return MORE;
	return !fds[1].revents && vp_recv(session->host, &byte, 1, MSG_DONTWAIT) == 1 ? FLUSH
										      : STOP;
}

/* Sends everything up to now. */
static struct vp_error *agent_events_flush(struct session *session)
{
	bool any;

	VP_TRY(send_full(session, &any));
	VP_TRY(send_rest(session));
	VP_TRY(send_lost(session));
	return agent_events_put_frame(session, VP_EVENTS_FLUSHED, 0, NULL, 0);
}

static struct vp_error *send_all(struct session *session)
{
	bool any = false;
	enum request request;

	VP_TRY(send_clock(session));
	VP_TRY(send_times(session));
	VP_TRY(agent_events_put_file(session, "tracing_on", "1"));
	while ((request = wait_for_request(session, any)) != STOP) {
		if (request == FLUSH)
			VP_TRY(agent_events_flush(session));
		VP_TRY(send_full(session, &any));
		session->ms_to_lost += any ? 0 : POLL_MS;
		if (session->ms_to_lost < LOST_MS)
			continue;
		session->ms_to_lost = 0;
		VP_TRY(send_lost(session));
	}
	VP_TRY(agent_events_put_file(session, "tracing_on", "0"));
	do
		VP_TRY(send_full(session, &any));
	while (any);
	VP_TRY(send_rest(session));
	VP_TRY(send_lost(session));
	return agent_events_put_frame(session, VP_EVENTS_END, 0, NULL, 0);
}

static struct vp_error *agent_events_begin(struct session *session, unsigned sets)
{
	const struct timeval timeout = {.tv_sec = VP_EVENTS_STALL_S};
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	session->signals = signalfd(-1, &signals, SFD_CLOEXEC);
	if (session->signals < 0 || pipe2(session->pipe, O_CLOEXEC))
		return vp_error_errno(errno, "cannot create a pipe");
	fcntl(session->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
	setsockopt(session->host, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	VP_TRY(make_instance(session));
	open_cpus(session);
	if (vp_vchan_is_here())
		VP_TRY(vp_xen_times_open(&session->times));
	int result = vp_fd_write_all(session->host, VP_EVENTS_HEAD, sizeof(VP_EVENTS_HEAD) - 1);
	return result ? gone(-result) : agent_events_add_events(session, sets);
}

static void agent_events_end(struct session *session)
{
	vp_vec_each (&session->cpus, cpu)
		close(cpu->pages);
	if (session->path && rmdir(session->path))
		fprintf(stderr, "vperf-agent: cannot remove '%s': %s\n", session->path,
			strerror(errno));
	vp_vec_deinit(&session->cpus);
	vp_xen_times_close(session->times);
	free(session->path);
	free(session->page);
	free(session->message);
}

int vp_events_serve(int fd, unsigned sets, unsigned ring_kib)
{
	struct session session = {
	    .host = fd, .ring_kib = ring_kib, .page_size = (size_t)getpagesize()};

	session.page = vp_alloc(session.page_size);
	session.message = vp_alloc(MESSAGE_BYTES);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	struct vp_error *error = agent_events_begin(&session, sets);
	bool begun = !error;
	if (begun)
		error = send_tasks(&session);
	if (!error)
		error = send_all(&session);
	if (error && !begun) {
		VP_AUTO_FREE char *line = vp_format("error %s\n", vp_error_message(error));
		int ignored = vp_fd_write_all(fd, line, strlen(line));
		(void)ignored;
	}
	agent_events_end(&session);
	int result = error ? -EIO : 0;
	vp_error_free(error);
	return result;
}
