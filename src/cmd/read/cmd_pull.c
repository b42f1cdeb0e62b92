/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf pull: copies recordings from another host's store by ssh. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/options.h"
#include "cmd/common/time_options.h"
#include "cmd/common/verb.h"

enum { LIST_MOST = 64 << 20, WORDS_MOST = 16, PIECE = 1 << 16, TAR_CHANGED = 1 };

static const struct vp_verb verb;

const struct vp_verb *vp_verb_pull(void)
{
	return &verb;
}

struct pull {
	const char *time, *store, *output;
	struct vp_texts operands;
	const char *host;
	VP_VEC(char *) names;
	uint64_t bytes;
};

/* A recording in the other host's list. */
struct listed {
	const char *name;
	uint64_t start, end; /* CLOCK_REALTIME, ns */
	uint64_t bytes;
};

/* Quotes a word for the remote shell. */
static void pull_put_quoted(const char *word, struct vp_buffer *out)
{
	vp_buffer_string(out, " '");
	for (; *word; word++)
		if (*word == '\'')
			vp_buffer_string(out, "'\\''");
		else
			vp_buffer_append(out, word, 1);
	vp_buffer_string(out, "'");
}

/* Starts a program with these descriptors as standard input and output; -1: inherited. */
static pid_t pull_start(const char *const *words, int in, int out)
{
	pid_t process = fork();

	if (process)
		return process;
	if (in >= 0)
		dup2(in, STDIN_FILENO);
	if (out >= 0)
		dup2(out, STDOUT_FILENO);
	execvp(words[0], (char *const *)words);
	fprintf(stderr, "vperf pull: cannot run %s: %s\n", words[0], strerror(errno));
	_exit(127);
}

static int pull_wait(pid_t process)
{
	int status = -1;

	if (process > 0)
		vp_waitpid(process, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static struct vp_error *pull_list(const struct pull *pull, struct vp_buffer *ret)
{
	struct vp_buffer command = {0};
	int ends[2];
	ssize_t got;

	vp_buffer_string(&command, "vperf store --json");
	pull_put_quoted(pull->store, &command);
	const char *const words[] = {"ssh", "--", pull->host, vp_buffer_text(&command), NULL};
	if (pipe2(ends, O_CLOEXEC))
		return vp_error_errno(errno, "cannot make a pipe");
	pid_t process = pull_start(words, -1, ends[1]);
	close(ends[1]);
	do {
		char piece[PIECE];
		got = vp_read(ends[0], piece, sizeof(piece));
		if (got > 0)
			vp_buffer_append(ret, piece, (size_t)got);
	} while (got > 0 && ret->size < LIST_MOST);
	close(ends[0]);
	int status = pull_wait(process);
	vp_buffer_deinit(&command);
	return status
		   ? vp_error_new("'vperf store' on %s has failed (status %d)", pull->host, status)
		   : NULL;
}

/* Whether it is a valid name of an entry: it is used in a local path and in a remote command
 * line. */
static bool is_entry_name(const char *name)
{
	return name && *name >= '0' && *name <= '9' &&
	       strspn(name, "0123456789TZ-.abcdefghijklmnopqrstuvwxyz") == strlen(name) &&
	       !strstr(name, "..");
}

static const char *pull_member_text(struct json_object *object, const char *key)
{
	struct json_object *member;

	return json_object_object_get_ex(object, key, &member) ? json_object_get_string(member)
							       : NULL;
}

static bool pull_read_listed(struct json_object *entry, struct listed *ret)
{
	const char *start = pull_member_text(entry, "start"), *end = pull_member_text(entry, "end");
	const char *kind = pull_member_text(entry, "kind");
	struct json_object *bytes;

	ret->name = pull_member_text(entry, "name");
	ret->bytes = json_object_object_get_ex(entry, "bytes", &bytes)
			 ? (uint64_t)json_object_get_int64(bytes)
			 : 0;
	return is_entry_name(ret->name) && !pull_member_text(entry, "problem") && kind &&
	       (!strcmp(kind, "recording") || !strcmp(kind, "snapshot") ||
		!strcmp(kind, "samples")) &&
	       start && end && vp_time_date_parse(start, &ret->start) &&
	       vp_time_date_parse(end, &ret->end);
}

static struct vp_error *pull_choose(struct pull *pull, struct json_object *recordings)
{
	uint64_t first = UINT64_MAX, last = 0, from, to;
	VP_VEC(struct listed) all = {0};

	for (size_t i = 0; i < json_object_array_length(recordings); i++) {
		struct listed listed;
		if (!pull_read_listed(json_object_array_get_idx(recordings, i), &listed))
			continue;
		first = listed.start < first ? listed.start : first;
		last = listed.end > last ? listed.end : last;
		vp_vec_push(&all, listed);
	}
	struct vp_error *error = all.count
				     ? vp_time_option_of_store(pull->time, first, last, &from, &to)
				     : vp_error_new("the store on %s has no recording", pull->host);
	for (size_t i = 0; !error && i < all.count; i++)
		if (all.at[i].start <= to && all.at[i].end >= from) {
			vp_vec_push(&pull->names, vp_strdup(all.at[i].name));
			pull->bytes += all.at[i].bytes;
		}
	vp_vec_deinit(&all);
	if (!error && !pull->names.count)
		error = vp_error_new("the store on %s has nothing of that time", pull->host);
	return error;
}

static struct vp_error *pull_find(struct pull *pull)
{
	struct vp_buffer text = {0};
	struct json_object *recordings = NULL;
	struct vp_error *error = pull_list(pull, &text);
	struct json_object *list = error ? NULL : json_tokener_parse(vp_buffer_text(&text));

	if (!error && (!json_object_is_type(list, json_type_object) ||
		       !json_object_object_get_ex(list, "recordings", &recordings) ||
		       !json_object_is_type(recordings, json_type_array)))
		error = vp_error_new("'vperf store --json' on %s: expected JSON with recordings",
				     pull->host);
	if (!error)
		error = pull_choose(pull, recordings);
	json_object_put(list);
	vp_buffer_deinit(&text);
	return error;
}

/* Pipes tar on that host into a local tar, which keeps existing files. */
static struct vp_error *pull_copy(const struct pull *pull)
{
	struct vp_buffer command = {0};
	int ends[2];

	vp_buffer_string(&command, "tar -cf - -C");
	pull_put_quoted(pull->store, &command);
	vp_buffer_string(&command, " --");
	vp_vec_each (&pull->names, name)
		pull_put_quoted(*name, &command);
	const char *const there[] = {"ssh", "--", pull->host, vp_buffer_text(&command), NULL};
	const char *const here[] = {"tar",
				    "-xf",
				    "-",
				    "-C",
				    pull->output,
				    "--no-same-owner",
				    "--no-same-permissions",
				    "--keep-old-files",
				    NULL};
	if (pipe2(ends, O_CLOEXEC))
		return vp_error_errno(errno, "cannot make a pipe");
	pid_t sender = pull_start(there, -1, ends[1]);
	pid_t receiver = pull_start(here, ends[0], -1);
	close(ends[0]);
	close(ends[1]);
	int sent = pull_wait(sender), received = pull_wait(receiver);
	vp_buffer_deinit(&command);
	if (received)
		return vp_error_new("cannot unpack into '%s' (status %d): expected a directory "
				    "without these recordings",
				    pull->output, received);
	/* tar reports changed files for a recording in progress; the copy is valid. */
	return sent && sent != TAR_CHANGED
		   ? vp_error_new("tar on %s has failed (status %d)", pull->host, sent)
		   : NULL;
}

static struct vp_error *pull_check(struct pull *pull)
{
	if (pull->operands.count != 1)
		return vp_error_usage("expected a host, as ssh knows it");
	pull->host = pull->operands.at[0];
	if (!*pull->host || *pull->host == '-')
		return vp_error_usage("'%s': expected a host, as ssh knows it", pull->host);
	if (!pull->time)
		return vp_error_usage("expected --time FROM,TO");
	return NULL;
}

static struct vp_error *pull_with(void *context)
{
	struct pull *pull = context;

	VP_TRY(pull_check(pull));
	umask(077);
	VP_AUTO_FREE char *usual = vp_format("vperf.%s", pull->host);
	for (char *c = usual; *c; c++)
		if (*c == '/')
			*c = '_';
	if (!pull->output)
		pull->output = usual;
	struct vp_error *error = pull_find(pull);
	if (!error && mkdir(pull->output, 0700) && errno != EEXIST)
		error = vp_error_errno(errno, "cannot make '%s'", pull->output);
	if (!error)
		error = pull_copy(pull);
	if (!error)
		printf("%zu recording%s of %s, %.1f MB, in '%s'\n", pull->names.count,
		       pull->names.count == 1 ? "" : "s", pull->host, (double)pull->bytes / 1e6,
		       pull->output);
	vp_vec_each (&pull->names, name)
		free(*name);
	vp_vec_deinit(&pull->names);
	return error;
}

static int run_pull(int argc, char **argv)
{
	struct pull pull = {.store = "/var/lib/vperf"};
	const struct vp_option options[] = {
	    {0, "time", VP_OPTION_TEXT, &pull.time, "FROM,TO",
	     "recordings that overlap this time: times of day, RFC 3339 times, or +OFFSET "
	     "since "
	     "the store's start"},
	    {0, "store", VP_OPTION_TEXT, &pull.store, "DIR",
	     "the store on that host (default: /var/lib/vperf)"},
	    {'o', "output", VP_OPTION_TEXT, &pull.output, "DIR",
	     "local directory, which becomes a store (default: vperf.HOST)"},
	};

	return vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &pull.operands,
			   pull_with, &pull);
}

static const struct vp_verb verb = {
    .name = "pull",
    .usage = "HOST --time FROM,TO [--store DIR] [-o DIR]",
    .summary = "copy recordings of another host's vperfd by ssh",
    .run = run_pull,
};
