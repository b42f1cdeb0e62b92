/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/fleet_answer.h"

#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

enum { DEPTH_MOST = 16 };

static const char *const label_names[VP_FLEET_LABELS] = {
    [VP_FLEET_INSTANCE] = "instance",   [VP_FLEET_VM] = "vm",
    [VP_FLEET_VCPU] = "vcpu",           [VP_FLEET_THIEF] = "thief",
    [VP_FLEET_UUID] = "uuid",           [VP_FLEET_NAMESPACE] = "namespace",
    [VP_FLEET_RECORDING] = "recording",
};

static struct json_object *answer_member(struct json_object *object, const char *key,
					 enum json_type type)
{
	struct json_object *member = NULL;

	return json_object_is_type(object, json_type_object) &&
		       json_object_object_get_ex(object, key, &member) &&
		       json_object_is_type(member, type)
		   ? member
		   : NULL;
}

static const char *answer_text(struct json_object *object, const char *key)
{
	struct json_object *member = answer_member(object, key, json_type_string);

	return member ? json_object_get_string(member) : "";
}

/* Parses [TIME, "VALUE"]; false: not a finite number. */
static bool answer_value(struct json_object *series, double *ret)
{
	struct json_object *pair = answer_member(series, "value", json_type_array);
	struct json_object *value =
	    pair && json_object_array_length(pair) == 2 ? json_object_array_get_idx(pair, 1) : NULL;
	char *end;

	if (!json_object_is_type(value, json_type_string))
		return false;
	const char *text = json_object_get_string(value);
	*ret = strtod(text, &end);
	return *text && !*end && isfinite(*ret);
}

static void answer_take(struct json_object *item, struct vp_fleet_answer *ret)
{
	struct json_object *labels = answer_member(item, "metric", json_type_object);
	struct vp_fleet_series series;

	if (!labels || !answer_value(item, &series.value))
		return;
	for (size_t i = 0; i < VP_FLEET_LABELS; i++)
		series.labels[i] = vp_text_cleaned(answer_text(labels, label_names[i]));
	vp_vec_push(&ret->series, series);
}

static struct vp_error *answer_read(struct json_object *root, struct vp_fleet_answer *ret)
{
	struct json_object *data = answer_member(root, "data", json_type_object);
	struct json_object *result = answer_member(data, "result", json_type_array);
	struct json_object *warnings = answer_member(root, "warnings", json_type_array);

	if (!strcmp(answer_text(root, "status"), "error"))
		return vp_error_new("%s: %s", answer_text(root, "errorType"),
				    answer_text(root, "error"));
	if (!result || strcmp(answer_text(data, "resultType"), "vector") != 0)
		return vp_error_new("expected the answer of a Prometheus query API");
	for (size_t i = 0; i < json_object_array_length(result); i++)
		answer_take(json_object_array_get_idx(result, i), ret);
	for (size_t i = 0; warnings && i < json_object_array_length(warnings); i++)
		vp_vec_push(&ret->warnings, vp_text_cleaned(json_object_get_string(
						json_object_array_get_idx(warnings, i))));
	return NULL;
}

struct vp_error *vp_fleet_answer_parse(const char *text, size_t size, struct vp_fleet_answer *ret)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MOST);
	struct json_object *root =
	    tokener && size < INT_MAX ? json_tokener_parse_ex(tokener, text, (int)size) : NULL;

	*ret = (struct vp_fleet_answer){0};
	struct vp_error *error = answer_read(root, ret);
	json_object_put(root);
	if (tokener)
		json_tokener_free(tokener);
	if (error)
		vp_fleet_answer_deinit(ret);
	return error;
}

void vp_fleet_answer_deinit(struct vp_fleet_answer *answer)
{
	vp_vec_each (&answer->series, series)
		for (size_t i = 0; i < VP_FLEET_LABELS; i++)
			free(series->labels[i]);
	vp_vec_deinit(&answer->series);
	vp_vec_each (&answer->warnings, warning)
		free(*warning);
	vp_vec_deinit(&answer->warnings);
}
