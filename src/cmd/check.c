/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf check: what this host can do for vperf. */
#include <json.h>
#include <stdio.h>

#include "base/text.h"
#include "cmd/verb.h"
#include "collect/probe.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_check(void)
{
	return &verb;
}

struct check {
	bool json;
	bool lacks; /* something that is needed */
	struct vp_texts operands;
};

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

static void check_probe(struct check *check, const struct vp_probe *probe, json_object *array)
{
	char detail[512];
	bool found = probe->run(detail, sizeof(detail));
	VP_AUTO_FREE char *clean = vp_text_cleaned(detail);

	check->lacks |= probe->needed && !found;
	if (check->json)
		json_object_array_add(array, json_of(probe, found, clean));
	else
		print_text(probe, found, clean);
}

static struct vp_error *check_with(void *context)
{
	struct check *check = context;
	const struct vp_source *source;

	if (check->operands.count)
		return vp_error_usage("unexpected word '%s'", check->operands.at[0]);
	json_object *array = json_object_new_array();
	for (size_t number = 0; (source = vp_source(number)); number++)
		for (size_t i = 0; i < source->n_probes; i++)
			check_probe(check, &source->probes[i], array);
	if (check->json)
		puts(json_object_to_json_string_ext(array, JSON_C_TO_STRING_PRETTY));
	json_object_put(array);
	return NULL;
}

static int run_check(int argc, char **argv)
{
	struct check check = {0};
	const struct vp_option options[] = {
	    {0, "json", VP_OPTION_FLAG, &check.json, NULL, "print JSON instead of a table"},
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &check.operands, check_with, &check);

	return status ? status : check.lacks;
}

static const struct vp_verb verb = {
    .name = "check",
    .usage = "[--json]",
    .summary = "what this host can do for vperf, and what each missing thing costs",
    .run = run_check,
};
