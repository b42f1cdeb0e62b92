/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "table/model_file.h"

#include <json-c/json.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/vec.h"
#include "stats/data.h"
#include "stats/prepare.h"

/* Deeper trees are invalid: a child has at most 4/5 of its parent's rows. */
enum { DEEPEST = 512 };
#define LARGEST_FILE ((size_t)1 << 30)
#define FORMAT "vperf model tree 1"

static void model_file_add(struct json_object *object, const char *key, struct json_object *value)
{
	json_object_object_add(object, key, value);
}

static void add_number(struct json_object *object, const char *key, double value)
{
	model_file_add(object, key, json_object_new_double(value));
}

static struct json_object *save_columns(const struct vp_m5 *tree, const struct vp_data *data)
{
	struct json_object *columns = json_object_new_array();

	for (size_t i = 0; i < data->columns.count; i++) {
		const struct vp_column *column = &data->columns.at[i];
		struct json_object *object = json_object_new_object();
		model_file_add(object, "name", json_object_new_string(column->name));
		add_number(object, "replacement", tree->inputs.replacement[i]);
		if (column->type == VP_DATA_NOMINAL) {
			struct json_object *labels = json_object_new_array();
			struct json_object *ranks = json_object_new_array();
			for (size_t l = 0; l < column->labels.count; l++) {
				json_object_array_add(labels,
						      json_object_new_string(column->labels.at[l]));
				json_object_array_add(
				    ranks, json_object_new_int64(tree->inputs.ranks[i][l]));
			}
			model_file_add(object, "labels", labels);
			model_file_add(object, "ranks", ranks);
		}
		json_object_array_add(columns, object);
	}
	return columns;
}

static struct json_object *save_inputs(const struct vp_m5 *tree)
{
	struct json_object *inputs = json_object_new_array();

	vp_vec_each (&tree->inputs.at, input) {
		struct json_object *object = json_object_new_object();
		model_file_add(object, "name", json_object_new_string(input->name));
		model_file_add(object, "column", json_object_new_int64((int64_t)input->column));
		if (input->nominal)
			model_file_add(object, "rank", json_object_new_int64(input->rank));
		json_object_array_add(inputs, object);
	}
	return inputs;
}

static struct json_object *save_node(const struct vp_m5 *tree, const struct vp_m5_node *node)
{
	struct json_object *object = json_object_new_object();

	model_file_add(object, "rows", json_object_new_int64((int64_t)node->rows));
	add_number(object, "rmse", node->rmse);
	add_number(object, "mean", node->mean);
	if (node->left) {
		model_file_add(object, "input", json_object_new_int64((int64_t)node->input));
		add_number(object, "cut", node->cut);
		model_file_add(object, "left", save_node(tree, node->left));
		model_file_add(object, "right", save_node(tree, node->right));
		return object;
	}
	struct json_object *coefficients = json_object_new_array();
	for (size_t i = 0; i < tree->inputs.at.count; i++)
		json_object_array_add(coefficients,
				      json_object_new_double(node->model.coefficients[i]));
	model_file_add(object, "coefficients", coefficients);
	add_number(object, "constant", node->model.intercept);
	return object;
}

void vp_model_save(const struct vp_m5 *tree, const struct vp_data *data, struct vp_buffer *text)
{
	struct json_object *root = json_object_new_object();

	model_file_add(root, "format", json_object_new_string(FORMAT));
	model_file_add(root, "target", json_object_new_int64((int64_t)data->target));
	add_number(root, "deviation", tree->deviation);
	add_number(root, "minimum", tree->options.minimum);
	model_file_add(root, "unpruned", json_object_new_boolean(tree->options.unpruned));
	model_file_add(root, "unsmoothed", json_object_new_boolean(tree->options.unsmoothed));
	model_file_add(root, "regression", json_object_new_boolean(tree->options.regression));
	model_file_add(root, "nonneg", json_object_new_boolean(tree->options.nonneg));
	model_file_add(root, "columns", save_columns(tree, data));
	model_file_add(root, "inputs", save_inputs(tree));
	model_file_add(root, "root", save_node(tree, tree->root));
	vp_buffer_string(text, json_object_to_json_string_ext(root, JSON_C_TO_STRING_SPACED));
	vp_buffer_string(text, "\n");
	json_object_put(root);
}

/* State of the parser, with the first error. */
struct loader {
	const char *path;
	struct vp_m5 *tree;
	struct vp_data *schema;
	const char *wrong;
};

static struct json_object *model_file_get(struct loader *loader, struct json_object *object,
					  const char *key, enum json_type type)
{
	struct json_object *value = NULL;

	if (!object || !json_object_object_get_ex(object, key, &value) ||
	    !json_object_is_type(value, type)) {
		if (!loader->wrong)
			loader->wrong = key;
		return NULL;
	}
	return value;
}

static double get_number(struct loader *loader, struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	if (object && json_object_object_get_ex(object, key, &value) &&
	    (json_object_is_type(value, json_type_double) ||
	     json_object_is_type(value, json_type_int)))
		return json_object_get_double(value);
	if (!loader->wrong)
		loader->wrong = key;
	return 0;
}

/* Reads an integer below `limit`. */
static size_t get_index(struct loader *loader, struct json_object *object, const char *key,
			size_t limit)
{
	struct json_object *value = model_file_get(loader, object, key, json_type_int);
	int64_t index = value ? json_object_get_int64(value) : 0;

	if (index >= 0 && (size_t)index < limit)
		return (size_t)index;
	if (!loader->wrong)
		loader->wrong = key;
	return 0;
}

static bool get_flag(struct loader *loader, struct json_object *object, const char *key)
{
	return json_object_get_boolean(model_file_get(loader, object, key, json_type_boolean));
}

static char *get_text(struct loader *loader, struct json_object *object, const char *key)
{
	struct json_object *value = model_file_get(loader, object, key, json_type_string);

	return vp_strdup(value ? json_object_get_string(value) : "");
}

static size_t length(struct json_object *array)
{
	return array ? json_object_array_length(array) : 0;
}

static void load_labels(struct loader *loader, struct json_object *object, size_t index)
{
	struct vp_column *column = &loader->schema->columns.at[index];
	struct json_object *labels = model_file_get(loader, object, "labels", json_type_array);
	struct json_object *ranks = model_file_get(loader, object, "ranks", json_type_array);
	size_t n = length(labels);

	if (length(ranks) != n && !loader->wrong)
		loader->wrong = "ranks";
	if (loader->wrong)
		return;
	column->type = VP_DATA_NOMINAL;
	loader->tree->inputs.ranks[index] = vp_alloc((n + 1) * sizeof(uint32_t));
	for (size_t l = 0; l < n; l++) {
		const char *label = json_object_get_string(json_object_array_get_idx(labels, l));
		vp_vec_push(&column->labels, vp_strdup(label ? label : ""));
		loader->tree->inputs.ranks[index][l] =
		    (uint32_t)json_object_get_int(json_object_array_get_idx(ranks, l));
	}
	double replacement = loader->tree->inputs.replacement[index];
	if (!(replacement >= 0 && replacement < (double)n))
		loader->wrong = "replacement";
}

static void load_columns(struct loader *loader, struct json_object *root)
{
	struct json_object *columns = model_file_get(loader, root, "columns", json_type_array);
	struct vp_inputs *inputs = &loader->tree->inputs;
	size_t n = length(columns);

	inputs->columns = n;
	inputs->replacement = vp_alloc(n * sizeof(double));
	inputs->ranks = vp_alloc(n * sizeof(*inputs->ranks));
	for (size_t i = 0; i < n && !loader->wrong; i++) {
		struct json_object *object = json_object_array_get_idx(columns, i);
		struct json_object *labels;
		if (!json_object_is_type(object, json_type_object)) {
			loader->wrong = "columns";
			return;
		}
		vp_data_column_add(loader->schema, get_text(loader, object, "name"),
				   VP_DATA_NUMERIC);
		inputs->replacement[i] = get_number(loader, object, "replacement");
		if (json_object_object_get_ex(object, "labels", &labels))
			load_labels(loader, object, i);
	}
	loader->schema->target = get_index(loader, root, "target", n);
}

static void load_inputs(struct loader *loader, struct json_object *root)
{
	struct json_object *array = model_file_get(loader, root, "inputs", json_type_array), *rank;

	for (size_t i = 0; i < length(array) && !loader->wrong; i++) {
		struct json_object *object = json_object_array_get_idx(array, i);
		struct vp_input input = {0};
		if (!json_object_is_type(object, json_type_object)) {
			loader->wrong = "inputs";
			return;
		}
		input.column = get_index(loader, object, "column", loader->schema->columns.count);
		input.nominal = json_object_object_get_ex(object, "rank", &rank);
		if (input.nominal)
			input.rank = (uint32_t)get_index(loader, object, "rank", UINT32_MAX);
		if (!loader->wrong &&
		    input.nominal !=
			(loader->schema->columns.at[input.column].type == VP_DATA_NOMINAL))
			loader->wrong = "rank";
		input.name = get_text(loader, object, "name");
		vp_vec_push(&loader->tree->inputs.at, input);
	}
}

static void load_leaf(struct loader *loader, struct json_object *object, struct vp_m5_node *node)
{
	struct json_object *coefficients =
	    model_file_get(loader, object, "coefficients", json_type_array);
	size_t n = loader->tree->inputs.at.count;

	if (length(coefficients) != n && !loader->wrong)
		loader->wrong = "coefficients";
	for (size_t i = 0; i < n && !loader->wrong; i++)
		node->model.coefficients[i] =
		    json_object_get_double(json_object_array_get_idx(coefficients, i));
	node->model.intercept = get_number(loader, object, "constant");
}

static struct vp_m5_node *load_node(struct loader *loader, struct json_object *object, int depth)
{
	struct vp_m5_node *node = vp_m5_node_new(loader->tree->inputs.at.count);
	struct json_object *left;

	if (depth > DEEPEST)
		loader->wrong = "left";
	node->rows = get_index(loader, object, "rows", SIZE_MAX);
	node->rmse = get_number(loader, object, "rmse");
	node->mean = get_number(loader, object, "mean");
	if (loader->wrong || !json_object_object_get_ex(object, "left", &left)) {
		load_leaf(loader, object, node);
		return node;
	}
	node->input = get_index(loader, object, "input", loader->tree->inputs.at.count);
	node->cut = get_number(loader, object, "cut");
	node->left =
	    load_node(loader, model_file_get(loader, object, "left", json_type_object), depth + 1);
	node->right =
	    load_node(loader, model_file_get(loader, object, "right", json_type_object), depth + 1);
	return node;
}

static void load_all(struct loader *loader, struct json_object *root)
{
	struct vp_m5 *tree = loader->tree;
	VP_AUTO_FREE char *format = get_text(loader, root, "format");

	if (strcmp(format, FORMAT))
		loader->wrong = "format";
	tree->deviation = get_number(loader, root, "deviation");
	tree->options.minimum = get_number(loader, root, "minimum");
	tree->options.unpruned = get_flag(loader, root, "unpruned");
	tree->options.unsmoothed = get_flag(loader, root, "unsmoothed");
	tree->options.regression = get_flag(loader, root, "regression");
	tree->options.nonneg = get_flag(loader, root, "nonneg");
	load_columns(loader, root);
	load_inputs(loader, root);
	if (loader->wrong)
		return;
	tree->target = vp_strdup(loader->schema->columns.at[loader->schema->target].name);
	tree->root = load_node(loader, model_file_get(loader, root, "root", json_type_object), 0);
	vp_m5_number(tree);
}

struct vp_error *vp_model_load(const char *path, struct vp_m5 **tree, struct vp_data *schema)
{
	struct loader loader = {.path = path, .tree = vp_alloc(sizeof(**tree)), .schema = schema};
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read(path, LARGEST_FILE, &text);

	*schema = (struct vp_data){0};
	*tree = loader.tree;
	if (!error) {
		struct json_object *root = json_tokener_parse(vp_buffer_text(&text));
		if (!json_object_is_type(root, json_type_object))
			loader.wrong = "format";
		else
			load_all(&loader, root);
		json_object_put(root);
	}
	vp_buffer_deinit(&text);
	if (!error && loader.wrong)
		error = vp_error_new("'%s' is not a model written by --save: wrong or missing '%s'",
				     path, loader.wrong);
	if (error) {
		vp_m5_free(loader.tree);
		vp_data_deinit(schema);
	}
	return error;
}

static struct vp_error *align_column(const struct vp_column *as, const struct vp_column *from,
				     size_t rows, const char *path, struct vp_column *to)
{
	for (size_t l = 0; l < as->labels.count; l++)
		vp_vec_push(&to->labels, vp_strdup(as->labels.at[l]));
	for (size_t row = 0; row < rows; row++) {
		double value = from ? from->values[row] : NAN;
		to->values[row] = value;
		if (isnan(value) || as->type == VP_DATA_NUMERIC)
			continue;
		size_t label = vp_column_find_label(as, from->labels.at[(size_t)value]);
		if (label == VP_DATA_NONE)
			return vp_error_new("%s: column '%s': value '%s' is not in the model", path,
					    as->name, from->labels.at[(size_t)value]);
		to->values[row] = (double)label;
	}
	return NULL;
}

struct vp_error *vp_model_align(const struct vp_data *schema, const struct vp_data *data,
				const char *path, struct vp_data *aligned)
{
	struct vp_error *error = NULL;

	*aligned = (struct vp_data){
	    .name = vp_strdup(data->name), .rows = data->rows, .target = schema->target};
	for (size_t i = 0; i < schema->columns.count && !error; i++) {
		const struct vp_column *as = &schema->columns.at[i];
		size_t index = vp_data_find(data, as->name);
		const struct vp_column *from =
		    index == VP_DATA_NONE ? NULL : &data->columns.at[index];
		struct vp_column *to = vp_data_column_add(aligned, vp_strdup(as->name), as->type);
		to->values = vp_alloc(data->rows * sizeof(double));
		if (!from && i != schema->target)
			error = vp_error_new("%s: expected a column '%s', which the model uses",
					     path, as->name);
		else if (from && from->type != as->type)
			error = vp_error_new("%s: column '%s': expected %s, as the model does",
					     path, as->name,
					     as->type == VP_DATA_NUMERIC ? "numbers" : "words");
		else
			error = align_column(as, from, data->rows, path, to);
	}
	if (error)
		vp_data_deinit(aligned);
	return error;
}
