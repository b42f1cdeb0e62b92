/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/nearest.h"
#include "base/text.h"
#include "base/text_wrap.h"
#include "cmd/common/command.h"
#include "cmd/common/options.h"
#include "cmd/common/terminal.h"

static const struct vp_verb *find_verb(const struct vp_program *program, const char *name)
{
	for (size_t i = 0; i < program->n_verbs; i++)
		if (!strcmp(name, program->verbs[i]()->name))
			return program->verbs[i]();
	return NULL;
}

/* Prints the commands of a group that the program has. */
static void help_group(const struct vp_program *program, const char *title,
		       const char *const *names, struct vp_buffer *out)
{
	bool begun = false;

	for (; *names; names++) {
		const struct vp_verb *verb = find_verb(program, *names);
		if (!verb)
			continue;
		vp_buffer_printf(out, "%s%s%s  %-10s %s\n", begun ? "" : "\n", begun ? "" : title,
				 begun ? "" : "\n", verb->name, verb->summary);
		begun = true;
	}
}

static void help(const struct vp_program *program, FILE *out)
{
	static const struct {
		const char *title, *names[9];
	} groups[] = {{"Record", {"record", "stat", "top", "snapshot", "metrics", "lend"}},
		      {"Where did the time go?",
		       {"diagnose", "report", "account", "steal", "exits", "html", "diff"}},
		      {"What happened when?", {"script", "timeline", "sched", "critical"}},
		      {"Data", {"info", "store", "export", "import", "model"}},
		      {"Host", {"check", "selftest", "guests"}}};

	struct vp_buffer text = {0}, wrapped = {0};

	vp_buffer_printf(&text,
			 "%s: %s\n\nUsage: %s COMMAND [OPTION]... (options: '%s help COMMAND', "
			 "'man vperf-COMMAND')\n",
			 program->name, program->summary, program->name, program->name);
	for (size_t i = 0; i < VP_ARRAY_SIZE(groups); i++)
		help_group(program, groups[i].title, groups[i].names, &text);
	vp_text_wrap(&text, vp_terminal_width(), true, &wrapped);
	fwrite(wrapped.bytes, 1, wrapped.size, out);
	vp_buffer_deinit(&text);
	vp_buffer_deinit(&wrapped);
}

/* Declared in base/alloc.h: vperf exits if it is out of memory. */
void vp_alloc_failed(void)
{
	static const char message[] = "vperf: out of memory\n";
	vp_terminal_end();
	ssize_t written = vp_write(STDERR_FILENO, message, sizeof(message) - 1);

	(void)written;
	_exit(VP_ERROR_FAILURE);
}

/* A failed write to stdout makes the exit status nonzero. */
static int flushed(int status)
{
	return (fflush(stdout) || ferror(stdout)) && !status ? 1 : status;
}

/* Reports an unknown command; returns the exit status. */
static int unknown_word(const struct vp_program *program, const char *word)
{
	struct vp_nearest nearest;

	vp_nearest_init(&nearest, (struct vp_slice){word, strlen(word)});
	for (size_t i = 0; i < program->n_verbs; i++)
		vp_nearest_add(&nearest, program->verbs[i]()->name);
	VP_AUTO_FREE char *meant = word[0] == '-' ? vp_strdup("") : vp_nearest_text(&nearest);
	VP_AUTO_FREE char *clean = vp_text_cleaned(word);
	fprintf(stderr, "%s: unknown %s '%s'%s\nTry '%s --help'.\n", program->name,
		word[0] == '-' ? "option" : "command", clean, meant, program->name);
	return VP_ERROR_USAGE;
}

/* "vperf help" and "vperf help COMMAND", which is the same as "vperf COMMAND --help". A command may
 * have a second word, such as "stat report". */
static int show_help(const struct vp_program *program, const char *name, const char *second)
{
	char *words[] = {(char *)name, "--help", NULL, NULL};
	const struct vp_verb *verb = name ? find_verb(program, name) : NULL;

	if (name && !verb)
		return unknown_word(program, name);
	if (verb && second) {
		words[1] = (char *)second;
		words[2] = "--help";
	}
	if (verb)
		return verb->run(second ? 3 : 2, words);
	help(program, stdout);
	return 0;
}

static bool program_is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(word, *words))
			return true;
	return false;
}

int vp_program_run(const struct vp_program *program, int argc, char **argv)
{
	static const char *const help_words[] = {"--help", "-h", "help", NULL};
	static const char *const version_words[] = {"--version", "-v", "-V", "version", NULL};

	if (!vp_open_standard_files())
		return VP_ERROR_FAILURE;
	vp_command_raise_file_limit();
	if (argc < 2) {
		help(program, stderr);
		return VP_ERROR_USAGE;
	}
	if (program_is_one_of(argv[1], help_words))
		return flushed(
		    show_help(program, argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL));
	if (program_is_one_of(argv[1], version_words)) {
		printf("%s %s\n", program->name, VPERF_VERSION);
		return flushed(0);
	}
	const struct vp_verb *verb = find_verb(program, argv[1]);
	return verb ? flushed(verb->run(argc - 1, argv + 1)) : unknown_word(program, argv[1]);
}
