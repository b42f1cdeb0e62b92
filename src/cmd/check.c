/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf check: what this host can do for vperf. */
#include <json.h>
#include <stdio.h>

#include "cmd/options.h"
#include "collect/probe.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_check(void)
{
	return &verb;
}

static void print_text(const struct vp_probe *probe, bool found, const char *detail)
{
	printf("%-4s %-25s %s\n", found ? "yes" : "no", probe->name, detail);
	if (!found)
		printf("     %-25s without it: %s\n", "", probe->cost);
}

static json_object *json_of(const struct vp_probe *probe, bool found, const char *detail)
{
	json_object *object = json_object_new_object();

	json_object_object_add(object, "name", json_object_new_string(probe->name));
	json_object_object_add(object, "found", json_object_new_boolean(found));
	json_object_object_add(object, "detail", json_object_new_string(detail));
	json_object_object_add(object, "needed", json_object_new_boolean(probe->needed));
	json_object_object_add(object, "without", json_object_new_string(probe->cost));
	return object;
}

static int run_check(int argc, char **argv)
{
	bool json = false, help;
	struct vp_texts rest = {0};
	const struct vp_option options[] = {
	    {0, "json", VP_OPTION_FLAG, &json, NULL, "print JSON instead of a table"},
	};
	struct vp_error *error =
	    vp_options_parse(options, VP_ARRAY_SIZE(options), argc, argv, false, &rest, &help);

	if (!error && rest.count)
		error = vp_error_usage("unexpected word '%s'", rest.at[0]);
	vp_vec_deinit(&rest);
	if (error)
		return vp_cmd_fail(&verb, error);
	if (help) {
		vp_options_help(&verb, options, VP_ARRAY_SIZE(options));
		return 0;
	}

	size_t count;
	const struct vp_probe *probes = vp_probes(&count);
	json_object *array = json_object_new_array();
	int status = 0;
	for (size_t i = 0; i < count; i++) {
		char detail[512];
		bool found = probes[i].run(detail, sizeof(detail));
		status |= probes[i].needed && !found;
		if (json)
			json_object_array_add(array, json_of(&probes[i], found, detail));
		else
			print_text(&probes[i], found, detail);
	}
	if (json)
		puts(json_object_to_json_string_ext(array, JSON_C_TO_STRING_PRETTY));
	json_object_put(array);
	return status;
}

static const struct vp_verb verb = {
    .name = "check",
    .usage = "[--json]",
    .summary = "what this host can do for vperf, and what each missing thing costs",
    .run = run_check,
};
