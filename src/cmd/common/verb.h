/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands ("verbs"), and their common frame: options, --help, errors, exit status. */
#ifndef VP_CMD_COMMON_VERB_H
#define VP_CMD_COMMON_VERB_H

#include "base/buffer.h"
#include "base/macros.h"
#include "cmd/common/options.h"

/* A command: a file in cmd/ with one function in main.c's list. */
struct vp_verb {
	const char *name;
	const char *usage;   /* printed after "vperf NAME " */
	const char *summary; /* one line */
	bool takes_command;  /* options end at the first operand; the rest is COMMAND */
	/* Prints its own errors and returns the exit status. argv[0] is the command's name. */
	int (*run)(int argc, char **argv);
};

/*
 * Parses the options and calls `act`; `operands` has the operands, which are freed afterwards.
 * --help prints help instead. An error is printed to stderr as "vperf COMMAND: SENTENCE". Returns
 * the exit status.
 */
int vp_verb_run(const struct vp_verb *verb, const struct vp_option *options, size_t n_options,
		int argc, char **argv, struct vp_texts *operands,
		struct vp_error *(*act)(void *context), void *context);
/* Prints a sentence, cleaned, to stderr: "vperf COMMAND: SENTENCE". */
void vp_verb_say(const char *verb, const char *sentence);
/* The recording given as operand or by -i, or `otherwise`. Errors: more than one. */
struct vp_error *vp_verb_recording(const struct vp_texts *operands, const char *input,
				   const char *otherwise, const char **ret) VP_MUST_CHECK;
/* Prints the buffer to stdout. */
struct vp_error *vp_verb_print(const struct vp_buffer *text) VP_MUST_CHECK;
/* Prints text for people: on a terminal, notes are divided at its width, or all lines. */
struct vp_error *vp_verb_print_text(const struct vp_buffer *text, bool all) VP_MUST_CHECK;

/* Prints that a file was written, with its size. */
void vp_verb_say_written(const char *verb, const char *path);
/* Writes the buffer to the file of option -o; "-" is standard output. */
struct vp_error *vp_verb_write(const char *path, const struct vp_buffer *text) VP_MUST_CHECK;

const struct vp_verb *vp_verb_record(void);
const struct vp_verb *vp_verb_report(void);
const struct vp_verb *vp_verb_info(void);
const struct vp_verb *vp_verb_account(void);
const struct vp_verb *vp_verb_steal(void);
const struct vp_verb *vp_verb_exits(void);
const struct vp_verb *vp_verb_top(void);
const struct vp_verb *vp_verb_check(void);
const struct vp_verb *vp_verb_guests(void);
const struct vp_verb *vp_verb_model(void);
const struct vp_verb *vp_verb_stat(void);
const struct vp_verb *vp_verb_stat_report(void); /* also in vperf-report */
const struct vp_verb *vp_verb_script(void);
const struct vp_verb *vp_verb_timeline(void);
const struct vp_verb *vp_verb_sched(void);
const struct vp_verb *vp_verb_critical(void);
const struct vp_verb *vp_verb_snapshot(void);
const struct vp_verb *vp_verb_html(void);
const struct vp_verb *vp_verb_diagnose(void);
const struct vp_verb *vp_verb_pull(void);
const struct vp_verb *vp_verb_diff(void);
const struct vp_verb *vp_verb_export(void);
const struct vp_verb *vp_verb_import(void);
const struct vp_verb *vp_verb_lend(void);
const struct vp_verb *vp_verb_selftest(void);
const struct vp_verb *vp_verb_metrics(void);
const struct vp_verb *vp_verb_fleet(void);
const struct vp_verb *vp_verb_store(void);

#endif
