/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cmd/common/account_options.h"

#include <stdio.h>
#include <string.h>

#include "analyze/account/account.h"
#include "analyze/common/recording_parts.h"
#include "analyze/report/account_trace.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/vec.h"
#include "cmd/common/choice.h"
#include "cmd/common/terminal.h"
#include "cmd/common/time_options.h"
#include "render/render_account.h"
#include "render/render_table.h"

static struct vp_error *choose_account_format(struct vp_account_options *options)
{
	const char *name;

	VP_TRY(vp_choose_table_format(&options->format, &name));
	options->chosen = !strcmp(name, "json")  ? VP_FORMAT_JSON
			  : !strcmp(name, "csv") ? VP_FORMAT_CSV
						 : VP_FORMAT_TEXT;
	return NULL;
}

/* Sorts and limits the last table, which has one row per vCPU. */
static struct vp_error *arrange(const struct vp_account_options *options,
				struct vp_named_table *tables, size_t n_tables)
{
	struct vp_table *table = &tables[n_tables - 1].table;
	VP_VEC(const char *) keys = {0};
	size_t column;

	if (!options->sort)
		return NULL;
	vp_vec_each (&table->columns, other)
		vp_vec_push(&keys, other->key);
	struct vp_error *error = vp_choose("sort", options->sort, keys.at, keys.count, &column);
	vp_vec_deinit(&keys);
	if (error)
		return error;
	vp_table_sort(table, column);
	for (size_t i = 0; i < n_tables; i++)
		vp_table_limit(&tables[i].table, options->limit);
	return NULL;
}

struct vp_error *vp_account_options_check(struct vp_account_options *options)
{
	char *end;

	VP_TRY(choose_account_format(options));
	if (options->vcpu) {
		options->number = strtoull(options->vcpu, &end, 10);
		if (end == options->vcpu || *end || options->vcpu[0] == '-')
			return vp_error_usage("option --vcpu: expected a number, not '%s'",
					      options->vcpu);
		options->has_vcpu = true;
	}
	VP_TRY((options->joins ? vp_store_options_choose_parts : vp_store_options_choose)(
	    &options->store, &options->operands, options->input, "vperf.data", &options->time,
	    &options->directory));
	if (options->joins && vp_store_options_has_several(&options->store))
		return NULL;
	return vp_time_option_window(options->time, options->directory, &options->window);
}

void vp_account_options_deinit(struct vp_account_options *options)
{
	vp_store_options_deinit(&options->store);
}

struct vp_error *vp_account_options_open(const struct vp_account_options *options,
					 struct vp_account_recording *rec,
					 struct vp_account_view *view)
{
	if (options->joins && vp_store_options_has_several(&options->store))
		VP_TRY(
		    vp_account_trace_open_joined(options->store.store, &options->store.parts, rec));
	else if (options->needs_exits)
		VP_TRY(vp_account_trace_open_recorded(options->directory, &options->window, rec));
	else
		VP_TRY(vp_account_trace_open(options->directory, &options->window, rec));
	struct vp_error *error = vp_account_view_init(view, &rec->account, options->vm);
	if (error) {
		vp_account_recording_close(rec);
		return error;
	}
	view->cgroups = &rec->cgroups;
	view->seconds = rec->duration;
	view->has_vcpu = options->has_vcpu;
	view->vcpu = options->number;
	view->limit = options->sort ? 0 : options->limit;
	view->window = options->window;
	return NULL;
}

static void print_json(const struct vp_account_recording *rec, const struct vp_named_table *tables,
		       size_t n_tables, struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_answer(&json);
	vp_render_account_json(rec, &json);
	for (size_t i = 0; i < n_tables; i++)
		vp_render_table_json(&tables[i].table, tables[i].key, &json);
	vp_json_line(&json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

/* Omits columns without data, unless verbose. */
static void account_options_put_table(const struct vp_named_table *named, bool verbose, bool colour,
				      struct vp_buffer *out)
{
	struct vp_table large, shown;

	if (verbose) {
		vp_render_table_text(&named->table, colour, out);
		return;
	}
	size_t hidden = vp_table_without_small(&named->table, "percent", named->least, &large);
	vp_table_without_zeros(&large, &shown);
	vp_render_table_fitted(&shown, vp_terminal_width(), colour, out);
	if (hidden)
		vp_buffer_printf(out, "(%zu row%s below %.2f%%: -v shows all)\n", hidden,
				 hidden == 1 ? "" : "s", named->least);
	vp_table_deinit(&shown);
	vp_table_deinit(&large);
}

static bool all_ok(const struct vp_account_checks *checks)
{
	return checks->closes && (!checks->sampled || checks->samples_agree) &&
	       checks->exits_agree && checks->parts_sum && checks->all_counted;
}

static void account_options_print_text(const struct vp_account_recording *rec, const char *verb,
				       const struct vp_named_table *tables, size_t n_tables,
				       bool checks, bool verbose, struct vp_buffer *out)
{
	bool colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");

	vp_render_account_head(rec, verb, out);
	for (size_t i = 0; i < n_tables; i++) {
		account_options_put_table(&tables[i], verbose, colour, out);
		vp_buffer_string(out, "\n");
	}
	if (checks && !verbose && all_ok(&rec->checks))
		vp_buffer_string(out, "Check: ok\n");
	else if (checks)
		vp_render_checks(&rec->checks, out);
}

struct vp_error *vp_account_print(const struct vp_account_options *options,
				  const struct vp_account_recording *rec, const char *verb,
				  struct vp_named_table *tables, size_t n_tables, bool checks)
{
	struct vp_buffer out = {0};

	VP_TRY(arrange(options, tables, n_tables));
	if (options->chosen == VP_FORMAT_JSON)
		print_json(rec, tables, n_tables, &out);
	else if (options->chosen == VP_FORMAT_CSV)
		vp_render_table_csv(&tables[0].table, true, &out);
	else
		account_options_print_text(rec, verb, tables, n_tables, checks, options->verbose,
					   &out);
	if (options->chosen == VP_FORMAT_CSV)
		vp_vec_each (&rec->notes, note)
			vp_verb_say(verb, *note);
	struct vp_error *error = options->chosen == VP_FORMAT_TEXT ? vp_verb_print_text(&out, false)
								   : vp_verb_print(&out);
	vp_buffer_deinit(&out);
	return error;
}
