/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/child.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "daemon/push_queue.h"

#define SECOND UINT64_C(1000000000)

/*
 * Most bytes of a recorder's buffers, all pCPUs together: vperf record's default of 2 or 4 MiB per
 * pCPU would exceed vperfd's limit of memory on large hosts. The smallest buffers hold the records
 * of 0.1 s of a busy pCPU.
 */
enum { USUAL_BYTES = 16 << 20, STACK_BYTES = 32 << 20 };
enum { LEAST_BYTES = 128 << 10, LEAST_LARGE_BYTES = 256 << 10 };
enum { MOST_BYTES = 2 << 20, MOST_TRACE_BYTES = 4 << 20 };

static void child_add(struct vp_daemon_words *words, const char *word)
{
	if (words->count + 1 < VP_DAEMON_WORDS)
		words->at[words->count++] = word;
}

static void child_add_made(struct vp_daemon_words *words, const char *format, ...) VP_PRINTF(2, 3);

static void child_add_made(struct vp_daemon_words *words, const char *format, ...)
{
	va_list args;
	char *word = words->room[words->used++];

	va_start(args, format);
	vsnprintf(word, VP_DAEMON_WORD, format, args);
	va_end(args);
	child_add(words, word);
}

static void begin_words(const struct vp_daemon_config *config, const char *program,
			const char *path, struct vp_daemon_words *ret)
{
	const char *const first[] = {program, "record", "-q", "--no-agent", "-o", path};

	*ret = (struct vp_daemon_words){0};
	for (size_t i = 0; i < VP_ARRAY_SIZE(first); i++)
		child_add(ret, first[i]);
	if (config->compression)
		child_add_made(ret, "-z%" PRIu64, config->compression);
}

/* Adds the size of the buffers, a power of two of pages per pCPU. */
static void add_buffers(uint64_t all, uint32_t pcpus, uint64_t least, uint64_t most,
			struct vp_daemon_words *words)
{
	uint64_t page = (uint64_t)getpagesize(), bytes = most;

	while (bytes > least && bytes * pcpus > all)
		bytes /= 2;
	child_add_made(words, "--mmap-pages=%" PRIu64, bytes / page ? bytes / page : 1);
}

/* The default is left to vperf record, which has another grade on Xen. */
static void add_account(const struct vp_daemon_config *config, struct vp_daemon_words *words)
{
	if (strcmp(config->account, VP_DAEMON_ACCOUNT) != 0)
		child_add_made(words, "--account=%s", config->account);
}

void vp_daemon_record_words(const struct vp_daemon_config *config, const char *program,
			    const char *path, uint32_t pcpus, struct vp_daemon_words *ret)
{
	begin_words(config, program, path, ret);
	add_account(config, ret);
	if (config->names_ns)
		child_add_made(ret, "--names-every=%" PRIu64, config->names_ns / SECOND);
	if (config->frequency) {
		child_add_made(ret, "--freq=%" PRIu64, config->frequency);
		child_add(ret, "--stagger");
		add_buffers(USUAL_BYTES, pcpus, LEAST_BYTES, MOST_BYTES, ret);
	} else {
		child_add(ret, "--no-samples");
	}
}

void vp_daemon_flight_words(const struct vp_daemon_config *config, const char *program,
			    const char *path, uint32_t pcpus, struct vp_daemon_words *ret)
{
	const uint64_t ring = config->flight_bytes;

	begin_words(config, program, path, ret);
	child_add(ret, "--quiet-vms"); /* the permanent recorder reports them */
	child_add(ret, "--no-samples");
	child_add(ret, "--no-account");
	child_add_made(ret, "--trace=%s", config->flight_events);
	child_add(ret, "--flight");
	child_add_made(ret, "%" PRIu64 "K", ring >> 10);
	add_buffers(ring < USUAL_BYTES ? ring : USUAL_BYTES, pcpus, LEAST_LARGE_BYTES,
		    MOST_TRACE_BYTES, ret);
}

void vp_daemon_samples_words(const struct vp_daemon_config *config, const char *program,
			     const char *path, uint32_t pcpus, struct vp_daemon_words *ret)
{
	begin_words(config, program, path, ret);
	child_add(ret, "--quiet-vms");
	child_add(ret, "-g");
	add_account(config, ret);
	child_add_made(ret, "--freq=%" PRIu64, config->samples_frequency);
	child_add_made(ret, "--duration=%" PRIu64, config->samples_ns / SECOND);
	add_buffers(STACK_BYTES, pcpus, LEAST_LARGE_BYTES, MOST_BYTES, ret);
}

void vp_daemon_snapshot_words(const char *program, const char *path, struct vp_daemon_words *ret)
{
	const char *const all[] = {program, "snapshot", path};

	*ret = (struct vp_daemon_words){0};
	for (size_t i = 0; i < VP_ARRAY_SIZE(all); i++)
		child_add(ret, all[i]);
}

void vp_daemon_push_words(const struct vp_daemon_config *config, const char *pusher,
			  const char *program, const struct vp_push *push,
			  struct vp_daemon_words *ret)
{
	*ret = (struct vp_daemon_words){0};
	child_add(ret, pusher);
	child_add(ret, "--quiet");
	child_add(ret, "--url");
	child_add(ret, config->profiles_url);
	if (config->header_file[0]) {
		child_add(ret, "--header-file");
		child_add(ret, config->header_file);
	}
	if (config->profiles_ca[0]) {
		child_add(ret, "--ca-file");
		child_add(ret, config->profiles_ca);
	}
	if (strcmp(config->profiles_format, "otlp") != 0)
		child_add(ret, "--content-type=application/json");
	/* Parca's gateway from JSON to gRPC does not decompress. */
	if (!strcmp(config->profiles_format, "parca"))
		child_add(ret, "--no-compression");
	child_add(ret, "--");
	child_add(ret, program);
	child_add(ret, "export");
	child_add(ret, config->profiles_format);
	if (push->to_s)
		child_add_made(ret, "--time=+%" PRIu64 ",+%" PRIu64, push->from_s, push->to_s);
	else
		child_add_made(ret, "--time=+%" PRIu64 ",", push->from_s);
	child_add(ret, "-o");
	child_add(ret, "-");
	child_add(ret, push->path);
}

/* In the child: sets up its descriptors and executes the program. */
static void child_become(const struct vp_daemon_words *words, int output, pid_t parent)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, 0);
	dup2(output >= 0 ? output : null, 1);

	/* SIGTERM lets a recorder complete its recording. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_DFL);
	execv(words->at[0], (char *const *)words->at);
	_exit(127);
}

struct vp_error *vp_child_start(const struct vp_daemon_words *words, int output, pid_t *ret)
{
	pid_t parent = getpid();

	if (access(words->at[0], X_OK))
		return vp_error_errno(errno, "cannot run '%s'", words->at[0]);
	*ret = fork();
	if (!*ret)
		child_become(words, output, parent);
	return *ret > 0 ? NULL : vp_error_errno(errno, "cannot start a process");
}

bool vp_child_has_ended(pid_t child, bool *failed)
{
	int status = 0;

	if (!vp_waitpid(child, &status, WNOHANG))
		return false;
	if (failed)
		*failed =
		    WIFSIGNALED(status) ? WTERMSIG(status) != SIGTERM : WEXITSTATUS(status) != 0;
	return true;
}
