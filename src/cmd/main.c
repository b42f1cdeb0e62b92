/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf VERB …: finds the verb and runs it. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/nearest.h"
#include "base/text.h"
#include "cmd/common/command.h"
#include "cmd/common/terminal.h"
#include "cmd/common/verb.h"
#include <bpf/libbpf.h>

static const struct vp_verb *(*const verbs[])(void) = {
    vp_verb_record, vp_verb_diagnose, vp_verb_report, vp_verb_account,  vp_verb_steal,
    vp_verb_exits,  vp_verb_top,      vp_verb_stat,   vp_verb_script,   vp_verb_timeline,
    vp_verb_sched,  vp_verb_critical, vp_verb_guests, vp_verb_info,     vp_verb_check,
    vp_verb_model,  vp_verb_export,   vp_verb_import, vp_verb_snapshot, vp_verb_html,
    vp_verb_lend};

static const struct vp_verb *find_verb(const char *name)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(verbs); i++)
		if (!strcmp(name, verbs[i]()->name))
			return verbs[i]();
	return NULL;
}

static void help(FILE *out)
{
	fprintf(out, "vperf: show where the time of a virtualized Linux host goes\n\nUsage: vperf "
		     "VERB [OPTION]... (see 'vperf VERB --help' for options)\n\nVerbs:\n");
	for (size_t i = 0; i < VP_ARRAY_SIZE(verbs); i++)
		fprintf(out, "  %-10s %s\n", verbs[i]()->name, verbs[i]()->summary);
}

/* Of base/alloc.h: nothing of vperf has a useful way on. */
void vp_alloc_failed(void)
{
	static const char message[] = "vperf: out of memory\n";
	vp_terminal_end();
	ssize_t written = vp_write(STDERR_FILENO, message, sizeof(message) - 1);

	(void)written;
	_exit(VP_ERROR_FAILURE);
}

/* libbpf's own messages are for who debugs vperf. */
static int print_of_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	return getenv("VPERF_DEBUG") ? vfprintf(stderr, format, args) : 0;
}

/* What could not be printed is a failure. */
static int flushed(int status)
{
	return (fflush(stdout) || ferror(stdout)) && !status ? 1 : status;
}

/* The exit status of a word that is no verb. */
static int unknown_word(const char *word)
{
	struct vp_nearest nearest;

	vp_nearest_init(&nearest, (struct vp_slice){word, strlen(word)});
	for (size_t i = 0; i < VP_ARRAY_SIZE(verbs); i++)
		vp_nearest_add(&nearest, verbs[i]()->name);
	VP_AUTO_FREE char *meant = word[0] == '-' ? vp_strdup("") : vp_nearest_text(&nearest);
	VP_AUTO_FREE char *clean = vp_text_cleaned(word);
	fprintf(stderr, "vperf: unknown %s '%s'%s\nTry 'vperf --help'.\n",
		word[0] == '-' ? "option" : "verb", clean, meant);
	return VP_ERROR_USAGE;
}

/* "vperf help", and "vperf help VERB", which is "vperf VERB --help". */
static int show_help(const char *name)
{
	char *words[] = {(char *)name, "--help", NULL};
	const struct vp_verb *verb = name ? find_verb(name) : NULL;

	if (name && !verb)
		return unknown_word(name);
	if (verb)
		return verb->run(2, words);
	help(stdout);
	return 0;
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(word, *words))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	static const char *const help_words[] = {"--help", "-h", "help", NULL};
	static const char *const version_words[] = {"--version", "-v", "-V", "version", NULL};

	if (!vp_open_standard_files())
		return VP_ERROR_FAILURE;
	vp_command_raise_file_limit();
	if (argc < 2) {
		help(stderr);
		return VP_ERROR_USAGE;
	}
	if (is_one_of(argv[1], help_words))
		return flushed(show_help(argc > 2 ? argv[2] : NULL));
	if (is_one_of(argv[1], version_words)) {
		printf("vperf %s\n", VPERF_VERSION);
		return flushed(0);
	}
	libbpf_set_print(print_of_libbpf);
	const struct vp_verb *verb = find_verb(argv[1]);
	return verb ? flushed(verb->run(argc - 1, argv + 1)) : unknown_word(argv[1]);
}
