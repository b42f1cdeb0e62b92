/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf model: explains one column by the others, for any table of numbers. */
#include "cmd/read/cmd_model.h"
#include "base/cursor.h"
#include "base/nearest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/model/intervals.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/vec.h"
#include "stats/data.h"
#include "store/recording.h"
#include "table/reader.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_model(void)
{
	return &verb;
}

/* Limit of the number of values, 4 GiB: a nominal column becomes as many numeric columns as it has
 * labels, minus one. */
#define MAX_NUMBERS ((size_t)1 << 29)

static struct vp_error *check_labels(const struct vp_data *data, const char *path)
{
	size_t inputs = 0;

	vp_vec_each (&data->columns, column) {
		inputs += column->labels.count;
		if (inputs > MAX_NUMBERS / data->rows)
			return vp_error_new("%s: column '%s' has %zu different values, each a "
					    "predictor for %zu rows: expected fewer",
					    path, column->name, column->labels.count, data->rows);
	}
	return NULL;
}

static struct vp_error *cmd_model_check_rows(const struct vp_data *data, const char *path)
{
	const char *target = data->columns.at[data->target].name;
	size_t known;

	free(vp_data_known_rows(data, &known));
	if (!known)
		return vp_error_new("%s: column '%s', the target, is missing in every row", path,
				    target);
	if (known == 1)
		return vp_error_new(
		    "%s: column '%s', the target: expected at least 2 rows that have "
		    "it, found 1",
		    path, target);
	return NULL;
}

/* Finds the workload column, which is not a predictor and only used by checks. */
static struct vp_error *find_workload(const struct vp_model_options *options, struct vp_data *data,
				      const char *path)
{
	size_t index = vp_data_find(data, options->workload);

	if (index == VP_DATA_NONE || index == data->target)
		return vp_error_new("%s: option --workload: expected a column other than the "
				    "target, not '%s'",
				    path, options->workload);
	if (strcmp(options->operands.at[0], "check"))
		vp_data_column_remove(data, index);
	return NULL;
}

/* Reads a file, or an interval recording: events per 1000 instructions, if those were counted. */
static struct vp_error *read_data(const struct vp_model_options *options, const char *path,
				  struct vp_data *data)
{
	struct vp_interval_recording rec;

	if (!vp_recording_has_intervals(path))
		return vp_dataset_read(path, data);
	VP_TRY(vp_interval_recording_open(path, &rec));
	struct vp_interval_choice choice = {.base = vp_interval_usual_base(&rec),
					    .per = 1000,
					    .subjects = options->workload != NULL};
	struct vp_error *error = vp_interval_data(&rec, &choice, data);
	vp_interval_recording_close(&rec);
	return error;
}

static struct vp_error *words_error(const struct vp_data *data, const char *path)
{
	const struct vp_column *target = &data->columns.at[data->target];
	VP_AUTO_FREE char *column_number =
	    target->line ? vp_format("%s:%zu", path, target->line) : vp_strdup(path);

	return vp_error_new("%s: column %zu ('%s') is nominal: expected a numeric target",
			    column_number, data->target + 1, target->name);
}

struct vp_error *vp_model_read(const struct vp_model_options *options, const char *path,
			       struct vp_data *data)
{
	struct vp_error *error = NULL;

	VP_TRY(read_data(options, path, data));
	if (options->target)
		data->target = vp_data_find(data, options->target);
	if (data->target == VP_DATA_NONE)
		error = vp_error_new("%s: no column '%s'", path, options->target);
	else if (data->columns.at[data->target].type != VP_DATA_NUMERIC)
		error = words_error(data, path);
	if (!error)
		error = cmd_model_check_rows(data, path);
	if (!error && options->workload)
		error = find_workload(options, data, path);
	if (!error)
		error = check_labels(data, path);
	if (error)
		vp_data_deinit(data);
	return error;
}

struct vp_error *vp_model_publish(const char *path, struct vp_buffer *text)
{
	struct vp_error *error = vp_verb_write(path, text);

	vp_buffer_deinit(text);
	return error;
}

struct vp_error *vp_model_folds(const struct vp_model_options *options, const struct vp_data *data,
				size_t *folds)
{
	*folds = options->folds;
	if (*folds == 1)
		return vp_error_usage("option --cv: expected at least 2 folds");
	if (*folds > data->rows)
		return vp_error_new(
		    "option --cv: expected at most as many folds as rows (%zu), not %zu",
		    data->rows, *folds);
	return NULL;
}

struct vp_m5_options vp_model_tree_options(const struct vp_model_options *options)
{
	return (struct vp_m5_options){
	    .unpruned = options->unpruned,
	    .unsmoothed = options->unsmoothed,
	    .regression = options->regression,
	    .minimum = options->minimum ? (double)options->minimum : 4,
	    .nonneg = options->nonneg,
	};
}

/* By bit number in choose_options(). */
static const struct {
	const char *name;
	struct vp_error *(*run)(const struct vp_model_options *options, struct vp_buffer *out);
	size_t least, most; /* number of files */
	struct vp_verb verb;
} kinds[] = {
    {"linear",
     vp_model_linear,
     1,
     1,
     {.name = "model linear",
      .usage = "[--groups FILE] [OPTION]... DATA",
      .summary = "explain a column by a multiple linear regression on the others"}},
    {"tree",
     vp_model_tree,
     0,
     1,
     {.name = "model tree",
      .usage = "[--save FILE | --load FILE --predict FILE] [OPTION]... [DATA]",
      .summary = "explain a column by an M5' model tree of the others"}},
    {"compare",
     vp_model_compare,
     2,
     2,
     {.name = "model compare",
      .usage = "[--path NAME] [OPTION]... NATIVE VIRT",
      .summary = "compare the same work native and virtualized"}},
    {"check",
     vp_model_check,
     1,
     1,
     {.name = "model check",
      .usage = "[--workload NAME] [OPTION]... DATA",
      .summary = "find rows that neither a regression nor a tree explains"}},
};

static struct vp_error *choose_model_format(struct vp_model_options *options)
{
	static const char *const names[] = {[VP_MODEL_TEXT] = "text",
					    [VP_MODEL_JSON] = "json",
					    [VP_MODEL_CSV] = "csv",
					    [VP_MODEL_DOT] = "dot"};

	const char *format;
	size_t chosen;

	VP_TRY(vp_choose_format(&options->format, names, VP_ARRAY_SIZE(names), &format));
	VP_TRY(vp_choose("format", format, names, VP_ARRAY_SIZE(names), &chosen));
	options->chosen = (enum vp_model_format)chosen;
	return NULL;
}

static struct vp_error *unknown_kind(const char *kind)
{
	struct vp_nearest nearest;

	vp_nearest_init(&nearest, (struct vp_slice){kind, strlen(kind)});
	for (size_t i = 0; i < VP_ARRAY_SIZE(kinds); i++)
		vp_nearest_add(&nearest, kinds[i].name);
	VP_AUTO_FREE char *meant = vp_nearest_text(&nearest);
	return vp_error_usage("unknown model kind '%s'%s", kind, meant);
}

static struct vp_error *run_kind(struct vp_model_options *options, struct vp_buffer *out)
{
	const char *kind = options->operands.count ? options->operands.at[0] : NULL;
	size_t files = kind ? options->operands.count - 1 : 0;

	VP_TRY(choose_model_format(options));
	for (size_t i = 0; kind && i < VP_ARRAY_SIZE(kinds); i++) {
		if (strcmp(kind, kinds[i].name))
			continue;
		if (files < kinds[i].least || files > kinds[i].most)
			return vp_error_usage("expected %zu data file%s, not %zu", kinds[i].most,
					      kinds[i].most == 1 ? "" : "s", files);
		return kinds[i].run(options, out);
	}
	return kind ? unknown_kind(kind)
		    : vp_error_usage("expected a model kind: linear, tree, compare or check");
}

static struct vp_error *run_and_print(void *context)
{
	struct vp_model_options *options = context;
	struct vp_buffer out = {0}, clean = {0};
	struct vp_error *error = run_kind(options, &out);

	/* Names of columns and values are untrusted, so they are cleaned. */
	vp_text_clean_lines(out.bytes, out.size, &clean);
	if (!error)
		error = vp_verb_print(&clean);
	vp_buffer_deinit(&out);
	vp_buffer_deinit(&clean);
	return error;
}

/* An option, and the kinds of models that it applies to. */
struct model_option {
	struct vp_option option;
	unsigned kinds;
};

enum { LINEAR = 1, TREE = 2, COMPARE = 4, CHECK = 8, TREES = TREE | COMPARE | CHECK, ALL = 15 };
enum { MAX_OPTIONS = 18 };

/* Options of the kind; without a kind all of them, but --help lists only those common to all. */
static size_t choose_options(struct vp_model_options *o, const struct vp_verb *kind,
			     struct vp_option ret[MAX_OPTIONS])
{
	const struct model_option all[MAX_OPTIONS] = {
	    {{0, "target", VP_OPTION_TEXT, &o->target, "NAME", "target column (default: the last)"},
	     ALL},
	    {{0, "groups", VP_OPTION_TEXT, &o->groups, "FILE", "groups of columns"},
	     LINEAR | COMPARE},
	    {{0, "nonneg", VP_OPTION_FLAG, &o->nonneg, NULL, "nonnegative coefficients only"}, ALL},
	    {{0, "cv", VP_OPTION_COUNT, &o->folds, "FOLDS", "cross-validate, as WEKA does"}, ALL},
	    {{0, "format", VP_OPTION_TEXT, &o->format.format, "FORMAT",
	      kind == &kinds[1].verb ? "text, json, csv or dot (default: text)"
				     : "text, json or csv (default: text)"},
	     ALL},
	    {{0, "json", VP_OPTION_FLAG, &o->format.json, NULL, "same as --format json"}, ALL},
	    {{0, "csv", VP_OPTION_FLAG, &o->format.csv, NULL, "same as --format csv"}, ALL},
	    {{'N', "unpruned", VP_OPTION_FLAG, &o->unpruned, NULL, "do not prune the tree"}, TREES},
	    {{'U', "unsmoothed", VP_OPTION_FLAG, &o->unsmoothed, NULL, "do not smooth the tree"},
	     TREES},
	    {{'R', "regression", VP_OPTION_FLAG, &o->regression, NULL,
	      "regression tree: leaves are constants"},
	     TREES},
	    {{'M', "min", VP_OPTION_COUNT, &o->minimum, "ROWS",
	      "minimum rows to split a node of the tree (default: 4)"},
	     TREES},
	    {{0, "predict", VP_OPTION_TEXT, &o->predict, "FILE", "predict these rows"}, TREE},
	    {{0, "save", VP_OPTION_TEXT, &o->save, "FILE", "save the tree to FILE"}, TREE},
	    {{0, "load", VP_OPTION_TEXT, &o->load, "FILE", "load the tree from FILE"}, TREE},
	    {{0, "path", VP_OPTION_TEXT, &o->path, "NAME",
	      "path length column (default: number of rows)"},
	     COMPARE},
	    {{0, "svg", VP_OPTION_TEXT, &o->svg, "FILE", "write an SVG chart"}, COMPARE},
	    {{0, "merged", VP_OPTION_TEXT, &o->merged, "FILE",
	      "write both data sets to one CSV file"},
	     COMPARE},
	    {{0, "workload", VP_OPTION_TEXT, &o->workload, "NAME",
	      kind == &kinds[3].verb ? "workload column: also leave one workload out"
				     : "workload column: not a predictor"},
	     ALL},
	};
	size_t count = 0;

	for (size_t i = 0; i < MAX_OPTIONS; i++)
		for (size_t k = 0; k < VP_ARRAY_SIZE(kinds); k++)
			if ((!kind || kind == &kinds[k].verb) && all[i].kinds & 1u << k) {
				ret[count] = all[i].option;
				if (!kind && all[i].kinds != ALL)
					ret[count].help = NULL;
				count++;
				break;
			}
	return count;
}

/* "vperf model KIND" has its own options and help. */
static int run_model(int argc, char **argv)
{
	struct vp_model_options chosen = {0};
	struct vp_option options[MAX_OPTIONS];
	const struct vp_verb *kind = NULL;

	for (size_t i = 0; argc > 1 && i < VP_ARRAY_SIZE(kinds); i++)
		if (!strcmp(argv[1], kinds[i].name))
			kind = &kinds[i].verb;
	size_t count = choose_options(&chosen, kind, options);
	return vp_verb_run(kind ? kind : &verb, options, count, argc, argv, &chosen.operands,
			   run_and_print, &chosen);
}

static const struct vp_verb verb = {
    .name = "model",
    .usage = "KIND [OPTION]... DATA [DATA] (KIND: linear, tree, compare or check; options: "
	     "'vperf model KIND --help')",
    .summary = "fit regression and model trees to event counts",
    .run = run_model,
};
