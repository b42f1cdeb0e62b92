/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf export: converts a recording to the format of another program. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/common/naming.h"
#include "analyze/profile/frame.h"
#include "analyze/profile/pass.h"
#include "analyze/profile/view.h"
#include "analyze/report/export.h"
#include "analyze/report/report.h"
#include "analyze/report/report_joined.h"
#include "analyze/report/report_make.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/macros.h"
#include "base/nearest.h"
#include "base/vec.h"
#include "cmd/common/command.h"
#include "cmd/common/event_options.h"
#include "cmd/common/formats.h"
#include "cmd/common/naming_options.h"
#include "cmd/common/options.h"
#include "cmd/common/store_options.h"
#include "cmd/common/unfinished.h"
#include "cmd/common/verb.h"
#include "store/decompress.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_export(void)
{
	return &verb;
}

struct export
{
	struct vp_event_options which;
	const char *output;
	struct vp_naming_words words;
	bool list, shared;
	const struct vp_export_format *format;
	struct vp_naming_options naming;
	struct vp_new_file file;
	char *directory; /* for formats that write a directory */
};

static struct vp_error *cmd_export_list_formats(void)
{
	size_t count;
	const struct vp_export_format *formats = vp_export_formats(&count);

	for (size_t i = 0; i < count; i++)
		printf("%-11s %s\n", formats[i].name, formats[i].summary);
	return NULL;
}

/* The first operand. */
static struct vp_error *unknown_format(const char *name)
{
	struct vp_nearest nearest;
	size_t count;
	const struct vp_export_format *formats = vp_export_formats(&count);

	vp_nearest_init(&nearest, (struct vp_slice){name, strlen(name)});
	for (size_t i = 0; i < count; i++)
		vp_nearest_add(&nearest, formats[i].name);
	VP_AUTO_FREE char *meant = vp_nearest_text(&nearest);
	return vp_error_usage("there is no format '%s'%s: 'vperf export --list' lists them", name,
			      meant);
}

static struct vp_error *choose_format(struct export *export)
{
	struct vp_texts *operands = &export->which.operands;

	if (!operands->count)
		return vp_error_usage("expected a format: 'vperf export --list' lists them");
	export->format = vp_export_format_named(operands->at[0]);
	if (!export->format)
		return unknown_format(operands->at[0]);
	operands->count--;
	memmove(operands->at, operands->at + 1, operands->count * sizeof(*operands->at));
	return NULL;
}

static struct vp_error *cmd_export_choose_all(struct export *export)
{
	VP_TRY(choose_format(export));
	export->which.joins = export->format->exporter && export->format->exporter()->totals;
	VP_TRY(vp_event_options_check(&export->which));
	if (!export->output && isatty(STDOUT_FILENO))
		return vp_error_usage("expected -o FILE, or - for standard output");
	if (export->output && !strcmp(export->output, "-"))
		export->output = NULL;
	return vp_naming_words_check(&export->words, export->which.directory, &export->naming);
}

static struct vp_error *cmd_export_write_piece(void *context, struct vp_buffer *out)
{
	const struct export *export = context;
	struct vp_error *error = NULL;
	int status;

	if (!export->output)
		error = vp_verb_print(out);
	else if ((status = vp_fd_write_all(export->file.fd, out->bytes, out->size)))
		error = vp_error_errno(-status, "cannot write '%s'", export->output);
	out->size = 0;
	return error;
}

static struct vp_profile_options options_of(const struct export *export)
{
	const struct vp_event_options *which = &export->which;

	return (struct vp_profile_options){.view = VP_VIEW_UNIFIED,
					   .vm = which->vm,
					   .from = which->from,
					   .to = which->to == UINT64_MAX ? 0 : which->to,
					   .pcpus = which->pcpus.at,
					   .n_pcpus = which->pcpus.count,
					   .columns = VP_COLUMNS_ALL,
					   .chains = true,
					   .jobs = 2,
					   .max_jobs = true};
}

static struct vp_error *cmd_export_write_all(struct export *export, struct vp_report *result)
{
	const struct vp_exporter *exporter = export->format->exporter();
	const struct vp_export_writer writer = {export, export->directory, cmd_export_write_piece};
	struct vp_profile_options options = options_of(export);
	struct vp_buffer out = {0};

	if (!exporter->totals)
		return vp_export_stream(&export->naming, &options, exporter, &writer, result);
	if (exporter->columns)
		options.columns = exporter->columns;
	if (vp_store_options_has_several(&export->which.store))
		VP_TRY(vp_report_joined_make(export->which.store.store, &export->which.store.parts,
					     &export->naming, &options, result));
	else
		VP_TRY(vp_report_make(&export->naming, &options, result));
	vp_export_totals(result, exporter, &out);
	struct vp_error *error = cmd_export_write_piece(export, &out);
	vp_buffer_deinit(&out);
	if (error)
		vp_report_deinit(result);
	return error;
}

/* Writes to a temporary file and renames it when it is complete. */
static struct vp_error *export_to_file(struct export *export)
{
	struct vp_report result;
	int status;

	VP_TRY(cmd_export_write_all(export, &result));
	vp_vec_each (&result.notes, note)
		vp_verb_say(verb.name, *note);
	vp_report_deinit(&result);
	status = export->output && !export->directory ? vp_new_file_publish(&export->file) : 0;
	if (status)
		return vp_error_errno(-status, "cannot write '%s'", export->output);
	if (export->output && !export->directory)
		vp_verb_say_written(verb.name, export->output);
	return NULL;
}

static struct vp_error *decompress(struct export *export)
{
	const struct vp_event_options *which = &export->which;
	uint64_t damaged;

	if (which->time || which->vm || which->cpus)
		return vp_error_usage("format %s exports the whole recording: expected no %s",
				      export->format->name,
				      which->time ? "--time"
				      : which->vm ? "--vm"
						  : "--cpu");
	VP_TRY(vp_recording_decompress(which->directory, export->directory, &damaged));
	if (damaged) {
		VP_AUTO_FREE char *note = vp_format(
		    "%" PRIu64 " bytes of the recording are damaged and left out", damaged);
		vp_verb_say(verb.name, note);
	}
	return NULL;
}

static struct vp_error *export_to_directory(struct export *export)
{
	if (!export->output)
		return vp_error_usage("format %s is a directory: expected -o DIR",
				      export->format->name);
	vp_unfinished_hold();
	if (mkdir(export->output, 0755)) {
		int errnum = errno;
		vp_unfinished_end();
		return vp_error_errno(errnum, "cannot make '%s'", export->output);
	}
	vp_unfinished_begin(export->output);
	export->directory = realpath(export->output, NULL);
	if (!export->directory)
		return vp_error_errno(errno, "cannot find '%s'", export->output);
	struct vp_error *error =
	    export->format->exporter ? export_to_file(export) : decompress(export);
	vp_unfinished_end();
	if (error)
		rmdir(export->output); /* fails if the directory has files */
	free(export->directory);
	return error;
}

static struct vp_error *export_with(void *context)
{
	struct export *export = context;
	int status;

	if (export->list)
		return cmd_export_list_formats();
	VP_TRY(cmd_export_choose_all(export));
	vp_command_keep_private(export->shared);
	if (!export->format->exporter || export->format->exporter()->directory)
		return export_to_directory(export);
	if (!export->output)
		return export_to_file(export);
	vp_unfinished_hold();
	status = vp_new_file_create_output(&export->file, export->output, 0644);
	vp_unfinished_begin(export->file.name);
	if (status)
		return vp_error_errno(-status, "cannot write '%s'", export->output);
	struct vp_error *error = export_to_file(export);
	vp_unfinished_end();
	vp_new_file_deinit(&export->file);
	return error;
}

static int run_export(int argc, char **argv)
{
	struct export export = {0};
	const struct vp_option options[] = {
	    {'o', "output", VP_OPTION_TEXT, &export.output, "FILE",
	     "write to FILE; -: to standard output"},
	    {0, "shared", VP_OPTION_FLAG, &export.shared, NULL,
	     "let others read the output, as the umask allows (default: only you)"},
	    {0, "list", VP_OPTION_FLAG, &export.list, NULL, "list the formats"},
	    VP_EVENT_OPTIONS(&export.which),
	    VP_NAMING_OPTIONS(&export.words),
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &export.which.operands, export_with, &export);

	vp_event_options_deinit(&export.which);
	vp_naming_words_deinit(&export.words, &export.naming);
	return status;
}

static const struct vp_verb verb = {
    .name = "export",
    .usage = "FORMAT [-o FILE] [--vm NAME] [OPTION]... [DIR]",
    .summary = "convert a recording for other tools: perf, Perfetto, CTF, pprof, ...",
    .run = run_export,
};
