/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf store: recordings kept by vperfd, gaps between them, findings. */
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "cmd/common/choice.h"
#include "cmd/common/options.h"
#include "cmd/common/terminal.h"
#include "cmd/common/verb.h"
#include "render/render_history.h"
#include "store/history.h"
#include "store/kept_findings.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_store(void)
{
	return &verb;
}

struct store {
	const char *format;
	bool json;
	struct vp_texts operands;
};

static struct vp_error *store_with(void *context)
{
	const struct store *store = context;
	const struct vp_format_words words = {store->format, store->json, false};
	struct vp_listed_store listed = {0};
	struct vp_buffer out = {0};
	const char *format;

	VP_TRY(vp_choose_text_or_json(&words, &format));
	if (store->operands.count > 1)
		return vp_error_usage("expected one store, not '%s' and '%s'",
				      store->operands.at[0], store->operands.at[1]);
	listed.path = store->operands.count ? store->operands.at[0] : "/var/lib/vperf";
	VP_TRY(vp_history_read(listed.path, &listed.history));
	struct vp_error *error =
	    vp_kept_findings_read(listed.path, &listed.findings, &listed.bad_findings);
	if (!error && !strcmp(format, "json"))
		vp_render_history_json(&listed, &out);
	else if (!error)
		vp_render_history_text(&listed, vp_terminal_width(),
				       isatty(STDOUT_FILENO) && !getenv("NO_COLOR"), &out);
	if (!error)
		error = strcmp(format, "json") != 0 ? vp_verb_print_text(&out, true)
						    : vp_verb_print(&out);
	vp_buffer_deinit(&out);
	vp_history_deinit(&listed.history);
	vp_kept_findings_deinit(&listed.findings);
	return error;
}

static int run_store(int argc, char **argv)
{
	struct store store = {0};
	const struct vp_option options[] = {
	    {0, "format", VP_OPTION_TEXT, &store.format, "FORMAT", "text or json (default: text)"},
	    {0, "json", VP_OPTION_FLAG, &store.json, NULL, "same as --format json"},
	};

	return vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &store.operands,
			   store_with, &store);
}

static const struct vp_verb verb = {
    .name = "store",
    .usage = "[--json] [DIR]",
    .summary = "list the recordings that vperfd keeps, gaps and findings",
    .run = run_store,
};
