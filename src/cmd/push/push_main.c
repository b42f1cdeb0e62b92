/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf-push: sends the output of a command to a server by HTTP. vperfd runs it to send profiles.
 * The process that talks to the server is confined. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "cmd/common/options.h"
#include "cmd/common/verb.h"
#include "fetch/gzip.h"
#include "fetch/http_fetch.h"

enum { BODY_MOST = 256 << 20, ANSWER_MOST = 1 << 20, ANSWER_SHOWN = 200, PIECE = 1 << 16 };

static const struct vp_verb verb = {
    .name = "push",
    .usage = "--url URL [--header-file FILE] -- COMMAND [ARG]...",
    .summary = "send the output of a command, a profile, to a server",
    .takes_command = true,
};

struct push {
	const char *url, *header_file, *ca_file, *type;
	uint64_t timeout_ns;
	bool quiet, plain;
	struct vp_texts command;
	bool again; /* the server may accept it later */
};

/* Declared in base/alloc.h. */
void vp_alloc_failed(void)
{
	static const char message[] = "vperf push: out of memory\n";
	ssize_t written = vp_write(STDERR_FILENO, message, sizeof(message) - 1);

	(void)written;
	_exit(VP_ERROR_FAILURE);
}

static struct vp_error *push_read_all(int fd, struct vp_buffer *ret)
{
	ssize_t got;

	do {
		char piece[PIECE];
		got = vp_read(fd, piece, sizeof(piece));
		if (got > 0)
			vp_buffer_append(ret, piece, (size_t)got);
	} while (got > 0 && ret->size <= BODY_MOST);
	return ret->size > BODY_MOST
		   ? vp_error_new("the command's output is more than %d MiB", BODY_MOST >> 20)
		   : NULL;
}

static struct vp_error *push_run_command(const struct push *push, struct vp_buffer *ret)
{
	VP_AUTO_FREE char **words = vp_realloc_array(NULL, push->command.count + 1, sizeof(*words));
	int ends[2], status = 0;

	memcpy(words, push->command.at, push->command.count * sizeof(*words));
	words[push->command.count] = NULL;
	if (pipe2(ends, O_CLOEXEC))
		return vp_error_errno(errno, "cannot make a pipe");
	pid_t process = fork();
	if (!process) {
		int null = push->quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
		if (null >= 0)
			dup2(null, STDERR_FILENO);
		dup2(ends[1], STDOUT_FILENO);
		execvp(words[0], words);
		_exit(127);
	}
	close(ends[1]);
	struct vp_error *error = process < 0 ? vp_error_errno(errno, "cannot start a process")
					     : push_read_all(ends[0], ret);
	close(ends[0]);
	if (process > 0)
		vp_waitpid(process, &status, 0);
	if (!error && status)
		error = vp_error_new("'%s' has failed (%s %d)", words[0],
				     WIFSIGNALED(status) ? "signal" : "status",
				     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return error;
}

/* HTTP status codes of a server that is overloaded or restarting. */
static bool may_work_later(unsigned status)
{
	return status == 408 || status == 429 || status >= 500;
}

static struct vp_error *push_judge(struct push *push, unsigned status, struct vp_buffer *answer)
{
	struct vp_buffer shown = {0};

	if (status >= 200 && status < 300)
		return NULL;
	push->again = may_work_later(status);
	vp_text_clean(answer->bytes, answer->size < ANSWER_SHOWN ? answer->size : ANSWER_SHOWN,
		      &shown);
	struct vp_error *error = vp_error_new("%s: status %u%s%s", push->url, status,
					      shown.size ? ": " : "", vp_buffer_text(&shown));
	vp_buffer_deinit(&shown);
	return error;
}

static struct vp_error *push_send(struct push *push, const struct vp_buffer *body)
{
	struct vp_buffer packed = {0}, lines = {0}, answer = {0};
	VP_VEC(const char *) headers = {0};
	VP_AUTO_FREE const char **own = NULL;
	size_t n_own = 0;
	unsigned status = 0;
	struct vp_error *error =
	    push->header_file ? vp_fetch_headers(push->header_file, &lines, &own, &n_own) : NULL;

	if (!push->plain)
		vp_vec_push(&headers, "Content-Encoding: gzip");
	for (size_t i = 0; i < n_own; i++)
		vp_vec_push(&headers, own[i]);
	if (push->plain)
		vp_buffer_append(&packed, body->bytes, body->size);
	else
		vp_gzip(body->bytes, body->size, &packed);
	const struct vp_fetch fetch = {.url = push->url,
				       .headers = headers.at,
				       .n_headers = headers.count,
				       .type = push->type,
				       .body = packed.bytes,
				       .size = packed.size,
				       .ca_file = push->ca_file,
				       .seconds = (unsigned)(push->timeout_ns / 1000000000),
				       .limit = ANSWER_MOST};
	if (!error) {
		error = vp_fetch(&fetch, &status, &answer);
		push->again = error != NULL;
	}
	if (!error)
		error = push_judge(push, status, &answer);
	vp_vec_deinit(&headers);
	vp_buffer_deinit(&packed);
	vp_buffer_deinit(&lines);
	vp_buffer_deinit(&answer);
	return error;
}

static struct vp_error *push_with(void *context)
{
	struct push *push = context;
	struct vp_buffer body = {0};

	if (!push->url)
		return vp_error_usage("expected --url URL");
	if (!push->command.count)
		return vp_error_usage("expected a command");
	if (push->timeout_ns < 1000000000)
		return vp_error_usage("option --timeout: expected at least one second");
	struct vp_error *error = push_run_command(push, &body);
	if (!error)
		error = push_send(push, &body);
	vp_buffer_deinit(&body);
	return error;
}

int main(int argc, char **argv)
{
	struct push push = {.type = "application/x-protobuf", .timeout_ns = 30000000000ULL};
	const struct vp_option options[] = {
	    {0, "url", VP_OPTION_TEXT, &push.url, "URL", "send to this address"},
	    {0, "header-file", VP_OPTION_TEXT, &push.header_file, "FILE",
	     "send the headers in FILE, one per line, such as a token"},
	    {0, "ca-file", VP_OPTION_TEXT, &push.ca_file, "FILE",
	     "trust the certificates in FILE (default: the system's)"},
	    {0, "content-type", VP_OPTION_TEXT, &push.type, "TYPE",
	     "type of the output (default: application/x-protobuf)"},
	    {0, "no-compression", VP_OPTION_FLAG, &push.plain, NULL, "do not compress the output"},
	    {'q', "quiet", VP_OPTION_FLAG, &push.quiet, NULL, "do not show the command's messages"},
	    {0, "timeout", VP_OPTION_SECONDS, &push.timeout_ns, "TIME", "timeout (default: 30)"},
	};

	if (!vp_open_standard_files())
		return VP_ERROR_FAILURE;
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &push.command,
				 push_with, &push);
	return status == VP_ERROR_FAILURE && push.again ? EX_TEMPFAIL : status;
}
