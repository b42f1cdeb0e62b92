/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes recordings and reports with vperf's own commands, and collects their output. */
#include "cmd/host/selftest_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "cmd/common/command.h"
#include "selftest/guest.h"

enum {
	MAX_OUTPUT = 1 << 30,
	MAX_MESSAGE = 256,
	MAX_WORDS = 32,
	WARM_MS = 300,
	ALONE_MS = 1000,
	BUSY_MS = 3000,
	SHARED_MS = 2000,
	HALT_US = 2000,
	NS_PER_MS = 1000000,
	POLL_US = 5000, /* interval of checking whether a process has ended */
};

#define THIEF "vperf-thief"

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static struct vp_error *expect_time(const struct vp_selftest *test, const char *what)
{
	if (vp_command_stop_wanted())
		return vp_error_new("interrupted");
	if (test->deadline && monotonic_ns() > test->deadline)
		return vp_error_new("the time limit has passed before %s (--timeout)", what);
	return NULL;
}

static void selftest_steps_say(const struct vp_selftest *test, const char *what)
{
	if (!test->quiet)
		fprintf(stderr, "vperf selftest: %s\n", what);
}

/* In a child process: binds it to the guest's pCPU, and to the lifetime of its parent. */
static void become_child(const char *name, int pcpu)
{
	cpu_set_t set;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	CPU_ZERO(&set);
	CPU_SET((size_t)pcpu, &set);
	(void)!sched_setaffinity(0, sizeof(set), &set);
}

static void end_child(pid_t *pid)
{
	if (*pid <= 0)
		return;
	kill(*pid, SIGKILL);
	vp_waitpid(*pid, NULL, 0);
	*pid = 0;
}

struct request {
	struct vp_guest_work work;
	pid_t thief; /* or 0 */
};

struct reply {
	struct vp_guest_done done;
	struct vp_guest_cpu_time thief_begin, thief_end;
	char message[MAX_MESSAGE]; /* text of an error, or "" */
};

static void selftest_steps_put_message(struct reply *reply, struct vp_error *error)
{
	if (error)
		snprintf(reply->message, sizeof(reply->message), "%s", vp_error_message(error));
	vp_error_free(error);
}

/* The guest's process: its only thread is the vCPU thread. */
static noreturn void serve_guest(int channel, int pcpu)
{
	struct vp_guest *guest;
	struct request request;
	struct reply reply = {0};

	become_child("vperf-guest", pcpu);
	selftest_steps_put_message(&reply, vp_guest_new(&guest));
	while (vp_send(channel, &reply, sizeof(reply), MSG_NOSIGNAL) == (ssize_t)sizeof(reply) &&
	       guest &&
	       vp_recv(channel, &request, sizeof(request), 0) == (ssize_t)sizeof(request)) {
		reply = (struct reply){0};
		if (request.thief)
			reply.thief_begin = vp_guest_cpu_time_read(request.thief);
		selftest_steps_put_message(&reply, vp_guest_run(guest, &request.work, &reply.done));
		if (request.thief)
			reply.thief_end = vp_guest_cpu_time_read(request.thief);
	}
	_exit(0);
}

static struct vp_error *guest_answer(struct vp_selftest *test, struct reply *reply)
{
	for (;;) {
		struct pollfd file = {.fd = test->channel, .events = POLLIN};
		int ready = vp_poll_or_signal(&file, 1, 200);
		if (ready > 0)
			break;
		VP_TRY(expect_time(test, "the guest was done"));
	}
	if (vp_recv(test->channel, reply, sizeof(*reply), 0) != (ssize_t)sizeof(*reply))
		return vp_error_new("the guest's process ended");
	return reply->message[0] ? vp_error_new("%s", reply->message) : NULL;
}

static struct vp_error *guest_start(struct vp_selftest *test)
{
	struct reply reply;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return vp_error_errno(errno, "cannot make a socket");
	test->guest = fork();
	if (test->guest == 0) {
		close(pair[0]);
		serve_guest(pair[1], test->pcpu);
	}
	close(pair[1]);
	test->channel = pair[0];
	if (test->guest < 0)
		return vp_error_errno(errno, "cannot start a process");
	test->vm = vp_format("vm-%d", test->guest);
	return guest_answer(test, &reply);
}

static struct vp_error *guest_work(struct vp_selftest *test, const struct vp_guest_work *work,
				   struct reply *reply)
{
	struct request request = {.work = *work, .thief = test->thief};

	if (vp_send(test->channel, &request, sizeof(request), MSG_NOSIGNAL) < 0)
		return vp_error_errno(errno, "the guest's process ended");
	return guest_answer(test, reply);
}

static struct vp_error *thief_start(struct vp_selftest *test)
{
	test->thief = fork();
	if (test->thief < 0)
		return vp_error_errno(errno, "cannot start a process");
	if (test->thief == 0) {
		become_child(THIEF, test->pcpu);
		close_range(STDERR_FILENO + 1, ~0U,
			    0); /* the recorder waits for the end of this pipe */
		for (volatile unsigned turns = 0;; turns++)
			;
	}
	return NULL;
}

static noreturn void become_vperf(const char *const *words, int out, int err)
{
	const char *argv[MAX_WORDS + 2] = {"vperf"};
	size_t count = 1;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGPIPE, SIG_DFL);
	for (; *words && count <= MAX_WORDS; words++)
		argv[count++] = *words;
	if (dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
		execv("/proc/self/exe", (char *const *)argv);
	_exit(127);
}

/* Starts this program with those arguments; its output goes to NAME.out and NAME.err. */
static struct vp_error *vperf_start(const struct vp_selftest *test, const char *name,
				    const char *const *words, pid_t *ret)
{
	VP_AUTO_FREE char *out = vp_format("%s/%s.out", test->folder, name);
	VP_AUTO_FREE char *err = vp_format("%s/%s.err", test->folder, name);
	int files[2] = {open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
			open(err, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
	struct vp_error *error = NULL;

	if (files[0] < 0 || files[1] < 0)
		error = vp_error_errno(errno, "cannot create '%s'", out);
	*ret = error ? -1 : fork();
	if (*ret == 0)
		become_vperf(words, files[0], files[1]);
	if (!error && *ret < 0)
		error = vp_error_errno(errno, "cannot start a process");
	for (size_t i = 0; i < 2; i++)
		if (files[i] >= 0)
			close(files[i]);
	return error;
}

/* Error from the first line on its stderr, or its exit status. */
static struct vp_error *vperf_error(const struct vp_selftest *test, const char *name, int status)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s.err", test->folder, name);
	struct vp_buffer text = {0};

	vp_error_free(vp_file_read(path, MAX_OUTPUT, &text));
	const char *line = vp_buffer_text(&text);
	size_t size = strcspn(line, "\n");
	struct vp_error *error =
	    size ? vp_error_new("%s: %.*s", name, (int)size, line)
		 : vp_error_new("%s: ended with status %d", name,
				WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	vp_buffer_deinit(&text);
	return error;
}

static struct vp_error *vperf_wait(const struct vp_selftest *test, const char *name, pid_t *pid,
				   int most)
{
	int status;

	while (vp_waitpid(*pid, &status, WNOHANG) == 0) {
		struct vp_error *error = expect_time(test, name);
		if (error) {
			end_child(pid);
			return error;
		}
		vp_sleep_us(POLL_US);
	}
	*pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) <= most)
		return NULL;
	return vperf_error(test, name, status);
}

/* Runs a command and reads its output to `text`. Exit statuses up to `most` are not errors. */
static struct vp_error *vperf_output(const struct vp_selftest *test, const char *name,
				     const char *const *words, int most, struct vp_buffer *text)
{
	VP_AUTO_FREE char *path = vp_format("%s/%s.out", test->folder, name);
	pid_t pid;

	VP_TRY(vperf_start(test, name, words, &pid));
	VP_TRY(vperf_wait(test, name, &pid, most));
	return vp_file_read(path, MAX_OUTPUT, text);
}

static struct vp_error *vperf_json(const struct vp_selftest *test, const char *name,
				   const char *const *words, struct json_object **ret)
{
	struct vp_buffer text = {0};
	struct vp_error *error = vperf_output(test, name, words, 0, &text);

	*ret = error ? NULL : json_tokener_parse(vp_buffer_text(&text));
	if (!error && !*ret)
		error = vp_error_new("%s: its output is not JSON", name);
	vp_buffer_deinit(&text);
	return error;
}

/* The recorder. Its COMMAND is `cat` of a pipe, so that recording starts when the pipe gets a
 * reader, and ends when the pipe is closed. */
struct recorder {
	pid_t pid;
	int pipe;
};

static struct vp_error *await_reader(struct vp_selftest *test, struct recorder *recorder,
				     const char *name, const char *path)
{
	int status;

	while ((recorder->pipe = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) {
		if (errno != ENXIO && errno != EINTR)
			return vp_error_errno(errno, "cannot open '%s'", path);
		VP_TRY(expect_time(test, "the recorder was ready"));
		if (vp_waitpid(recorder->pid, &status, WNOHANG) == recorder->pid) {
			recorder->pid = 0;
			return vperf_error(test, name, status);
		}
		vp_sleep_us(POLL_US);
	}
	return NULL;
}

static struct vp_error *recorder_start(struct vp_selftest *test, const char *name,
				       const char *directory, struct recorder *recorder)
{
	VP_AUTO_FREE char *path = vp_format("%s/pipe", test->folder);
	const struct vp_selftest_facts *facts = &test->facts;
	const char *words[MAX_WORDS + 1] = {"record", "-q", "--no-agent", "--no-guest-memory"};
	const char *others[] = {"--vm", test->vm, "-o", directory, "--", "cat", path};
	size_t count = 4;

	if (facts->no_samples)
		words[count++] = "--no-samples";
	if (facts->no_account)
		words[count++] = "--no-account";
	for (size_t i = 0; i < VP_ARRAY_SIZE(others); i++)
		words[count++] = others[i];
	*recorder = (struct recorder){.pipe = -1};
	if (mkfifo(path, 0600) && errno != EEXIST)
		return vp_error_errno(errno, "cannot create '%s'", path);
	VP_TRY(vperf_start(test, name, words, &recorder->pid));
	return await_reader(test, recorder, name, path);
}

static struct vp_error *recorder_end(struct vp_selftest *test, const char *name,
				     struct recorder *recorder)
{
	close(recorder->pipe);
	recorder->pipe = -1;
	return vperf_wait(test, name, &recorder->pid, 0);
}

/* Writes the guest's symbols in System.map format. */
static struct vp_error *selftest_steps_write_symbols(const struct vp_selftest *test,
						     const char *path)
{
	struct vp_guest_symbol symbol;
	struct vp_buffer text = {0};

	for (size_t i = 0; vp_guest_symbol(i, &symbol); i++)
		vp_buffer_printf(&text, "%016llx T %s\n", (unsigned long long)symbol.address,
				 symbol.name);
	struct vp_error *error = vp_file_publish(path, text.bytes, text.size);
	vp_buffer_deinit(&text);
	return error;
}

static void selftest_steps_take_lines(struct vp_selftest_recording *recording, const char *vm,
				      struct vp_buffer *text)
{
	char *more = (char *)vp_buffer_text(text), *line;

	while ((line = strsep(&more, "\n")) != NULL) {
		struct json_object *sample = *line ? json_tokener_parse(line) : NULL;
		if (sample)
			vp_facts_take_sample(recording, vm, sample);
		json_object_put(sample);
	}
}

static struct vp_error *read_samples(struct vp_selftest *test, const char *directory,
				     const char *symbols, struct vp_selftest_recording *recording)
{
	const char *report[] = {"report",   directory, "--kallsyms", symbols,
				"--format", "json",    NULL};
	const char *export[] = {"export", "jsonl", directory, "--kallsyms",
				symbols,  "-o",    "-",       NULL};
	struct vp_buffer text = {0};
	struct json_object *json;

	VP_TRY(vperf_json(test, "report", report, &json));
	vp_facts_take_report(recording, test->vm, json);
	json_object_put(json);
	struct vp_error *error = vperf_output(test, "export", export, 0, &text);
	if (!error)
		selftest_steps_take_lines(recording, test->vm, &text);
	vp_buffer_deinit(&text);
	return error;
}

static struct vp_error *read_account(struct vp_selftest *test, const char *directory,
				     struct vp_selftest_recording *recording)
{
	const char *account[] = {"account", directory, "--vm", test->vm, "--format", "json", NULL};
	const char *exits[] = {"exits",    directory,  "--vm", test->vm, "--by",
			       "function", "--format", "json", NULL};
	const char *steal[] = {"steal", directory, "--vm", test->vm, "--format", "json", NULL};
	struct json_object *json;

	VP_TRY(vperf_json(test, "account", account, &json));
	vp_facts_take_account(recording, test->vm, json);
	json_object_put(json);
	VP_TRY(vperf_json(test, "exits", exits, &json));
	vp_facts_take_exits(recording, test->vm, json);
	json_object_put(json);
	VP_TRY(vperf_json(test, "steal", steal, &json));
	vp_facts_take_steal(recording, test->vm, test->thief_name ? test->thief_name : "", json);
	json_object_put(json);
	return NULL;
}

static struct vp_error *read_recording(struct vp_selftest *test, const char *directory,
				       struct vp_selftest_recording *recording)
{
	VP_AUTO_FREE char *path = vp_format("%s/symbols", test->folder);
	VP_AUTO_FREE char *symbols = vp_format("%s=%s", test->vm, path);
	const char *info[] = {"info", directory, "--json", NULL};
	struct json_object *json;

	VP_TRY(selftest_steps_write_symbols(test, path));
	VP_TRY(vperf_json(test, "info", info, &json));
	vp_facts_take_info(recording, json);
	json_object_put(json);
	if (!test->facts.no_samples)
		VP_TRY(read_samples(test, directory, symbols, recording));
	if (!test->facts.no_account)
		VP_TRY(read_account(test, directory, recording));
	return NULL;
}

/* Records the work, with the thief running at the same time if there is one. */
static struct vp_error *record_work(struct vp_selftest *test, const char *name,
				    const char *directory, const struct vp_guest_work *work,
				    bool thief, struct reply *reply)
{
	struct recorder recorder;
	struct vp_error *error = recorder_start(test, name, directory, &recorder);

	if (!error && thief)
		error = thief_start(test);
	if (!error)
		error = guest_work(test, work, reply);
	if (!error)
		error = recorder_end(test, name, &recorder);
	if (error && recorder.pid > 0)
		end_child(&recorder.pid);
	if (recorder.pipe >= 0)
		close(recorder.pipe);
	return error;
}

static struct vp_error *step_quiet(struct vp_selftest *test, struct reply *reply)
{
	VP_AUTO_FREE char *directory = vp_format("%s/known", test->folder);
	struct vp_selftest_facts *facts = &test->facts;

	VP_TRY(record_work(test, "record", directory, &facts->work, false, reply));
	facts->quiet = reply->done;
	return read_recording(test, directory, &facts->quiet_recording);
}

static struct vp_error *step_shared(struct vp_selftest *test, struct reply *reply)
{
	VP_AUTO_FREE char *directory = vp_format("%s/shared", test->folder);
	const struct vp_guest_work work = {.busy_ns = (uint64_t)SHARED_MS * NS_PER_MS};
	struct vp_selftest_facts *facts = &test->facts;

	VP_TRY(record_work(test, "record", directory, &work, true, reply));
	facts->shared = reply->done;
	facts->thief_begin = reply->thief_begin;
	facts->thief_end = reply->thief_end;
	test->thief_name = vp_format("%s/%d", THIEF, test->thief);
	end_child(&test->thief);
	return read_recording(test, directory, &facts->shared_recording);
}

static struct vp_error *step_probes(struct vp_selftest *test)
{
	const char *words[] = {"check", "--json", NULL};
	struct vp_buffer text = {0};
	struct vp_error *error = vperf_output(test, "check", words, 1, &text);
	struct json_object *json = error ? NULL : json_tokener_parse(vp_buffer_text(&text));

	if (json) {
		vp_facts_take_check(&test->facts, json);
		test->probes = vp_strdup(vp_buffer_text(&text));
	} else if (!error) {
		error = vp_error_new("check: its output is not JSON");
	}
	json_object_put(json);
	vp_buffer_deinit(&text);
	return error;
}

static struct vp_error *selftest_steps_make_folder(struct vp_selftest *test)
{
	const char *where = getenv("TMPDIR");

	test->folder = vp_format("%s/vperf-selftest.XXXXXX", where && *where ? where : "/tmp");
	if (mkdtemp(test->folder))
		return NULL;
	struct vp_error *error = vp_error_errno(errno, "cannot create '%s'", test->folder);
	free(test->folder);
	test->folder = NULL;
	return error;
}

struct vp_error *vp_selftest_run(struct vp_selftest *test)
{
	struct vp_selftest_facts *facts = &test->facts;
	struct vp_guest_work alone = {.busy_ns = (uint64_t)WARM_MS * NS_PER_MS};
	struct reply reply;

	test->channel = -1;
	facts->work = (struct vp_guest_work){.busy_ns = (uint64_t)BUSY_MS * NS_PER_MS,
					     .exits = {[VP_GUEST_CPUID] = 2000,
						       [VP_GUEST_PORT] = 1000,
						       [VP_GUEST_MMIO] = 500,
						       [VP_GUEST_MSR] = 200,
						       [VP_GUEST_HYPERCALL] = 1000,
						       [VP_GUEST_HALT] = 500},
					     .halt_us = HALT_US};
	VP_TRY(selftest_steps_make_folder(test));
	selftest_steps_say(test, "1 of 5: features of this host (vperf check)");
	VP_TRY(step_probes(test));
	selftest_steps_say(test, "2 of 5: a guest alone, without a recording");
	VP_TRY(guest_start(test));
	VP_TRY(guest_work(test, &alone, &reply));
	alone.busy_ns = (uint64_t)ALONE_MS * NS_PER_MS;
	alone.counts = true;
	VP_TRY(guest_work(test, &alone, &reply));
	facts->before = reply.done;
	if (vp_facts_records_nothing(facts))
		return NULL;
	selftest_steps_say(test, "3 of 5: a recording of known work: samples, VM exits, halts");
	VP_TRY(step_quiet(test, &reply));
	selftest_steps_say(test, "4 of 5: the guest alone again");
	VP_TRY(guest_work(test, &alone, &reply));
	facts->after = reply.done;
	selftest_steps_say(test, "5 of 5: a recording with a known thief on the guest's pCPU");
	return step_shared(test, &reply);
}

void vp_selftest_deinit(struct vp_selftest *test, bool keep)
{
	end_child(&test->thief);
	end_child(&test->guest);
	if (test->channel >= 0)
		close(test->channel);
	if (test->folder && !keep)
		vp_file_remove_all(test->folder);
	vp_facts_deinit(&test->facts);
	free(test->folder);
	free(test->vm);
	free(test->thief_name);
	free(test->probes);
}
