/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/verb.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/text_wrap.h"
#include "base/vec.h"
#include "cmd/common/pager.h"
#include "cmd/common/terminal.h"

static bool may_page; /* output may go through a pager */

static void print_help(const struct vp_verb *verb, const struct vp_option *options,
		       size_t n_options)
{
	VP_AUTO_FREE char *usage = vp_format("Usage: vperf %s", verb->name);

	VP_AUTO_FREE char *name = vp_format("vperf %s:", verb->name);

	vp_options_wrap(name, verb->summary);
	printf("\n");
	vp_options_wrap(usage, verb->usage);
	printf("\nOptions:\n");
	vp_options_help(options, n_options);
}

void vp_verb_say(const char *verb, const char *sentence)
{
	VP_AUTO_FREE char *clean = vp_text_cleaned(sentence);

	fprintf(stderr, "vperf %s: %s\n", verb, clean);
}

/* Returns the error's exit status. */
static int verb_fail(const struct vp_verb *verb, struct vp_error *error)
{
	int status = (int)vp_error_kind(error);

	vp_verb_say(verb->name, vp_error_message(error));
	if (status == VP_ERROR_USAGE)
		fprintf(stderr, "Try 'vperf %s --help'.\n", verb->name);
	vp_error_free(error);
	return status;
}

/* Commands with a single, possibly long output. */
static bool is_paged(const char *name)
{
	static const char *const names[] = {"report",   "account", "steal",    "exits", "diagnose",
					    "script",   "sched",   "critical", "info",  "check",
					    "timeline", "guests",  "model",    "diff",  "store"};

	for (size_t i = 0; i < VP_ARRAY_SIZE(names); i++)
		if (!strncmp(name, names[i], strlen(names[i])) &&
		    strchr(" ", name[strlen(names[i])]))
			return true;
	return false;
}

int vp_verb_run(const struct vp_verb *verb, const struct vp_option *options, size_t n_options,
		int argc, char **argv, struct vp_texts *operands,
		struct vp_error *(*act)(void *context), void *context)
{
	bool help;

	may_page = is_paged(verb->name);
	struct vp_error *error =
	    vp_options_parse(options, n_options, argc, argv, verb->takes_command, operands, &help);

	if (!error && help)
		print_help(verb, options, n_options);
	else if (!error)
		error = act(context);
	vp_vec_deinit(operands);
	return error ? verb_fail(verb, error) : 0;
}

struct vp_error *vp_verb_recording(const struct vp_texts *operands, const char *input,
				   const char *otherwise, const char **ret)
{
	size_t given = operands->count + (input != NULL);

	if (given > 1)
		return vp_error_usage("expected one recording, not %zu: '%s' and '%s'", given,
				      input ? input : operands->at[0], operands->at[input ? 0 : 1]);
	*ret = operands->count ? operands->at[0] : input ? input : otherwise;
	return NULL;
}

struct vp_error *vp_verb_print(const struct vp_buffer *text)
{
	if (may_page)
		vp_pager_begin();
	/* stdio reports an interrupted write as an error */
	bool written = !fflush(stdout) && !vp_fd_write_all(STDOUT_FILENO, text->bytes, text->size);

	return written ? NULL : vp_error_new("cannot write to standard output");
}

struct vp_error *vp_verb_print_text(const struct vp_buffer *text, bool all)
{
	struct vp_buffer wrapped = {0};

	vp_text_wrap(text, vp_terminal_width(), all, &wrapped);
	struct vp_error *error = vp_verb_print(&wrapped);
	vp_buffer_deinit(&wrapped);
	return error;
}

void vp_verb_say_written(const char *verb, const char *path)
{
	static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
	struct stat status;
	size_t unit = 0;

	if (stat(path, &status) || !S_ISREG(status.st_mode))
		return;
	double size = (double)status.st_size;
	for (; size >= 1000 && unit + 1 < VP_ARRAY_SIZE(units); unit++)
		size /= 1000;
	VP_AUTO_FREE char *sentence =
	    vp_format("wrote '%s' (%.*f %s)", path, unit && size < 100 ? 1 : 0, size, units[unit]);
	vp_verb_say(verb, sentence);
}

struct vp_error *vp_verb_write(const char *path, const struct vp_buffer *text)
{
	return strcmp(path, "-") ? vp_file_publish_output(path, text->bytes, text->size)
				 : vp_verb_print(text);
}
