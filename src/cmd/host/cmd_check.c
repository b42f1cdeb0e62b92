/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf check: features available on this host. */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "cmd/common/choice.h"
#include "cmd/common/options.h"
#include "cmd/common/verb.h"
#include "collect/programs/hypervisor.h"
#include "host/source.h"
#include "session/hypervisor_choice.h"

static const struct vp_verb verb;

const struct vp_verb *vp_verb_check(void)
{
	return &verb;
}

struct check {
	bool json;
	bool lacks; /* a required feature is missing */
	bool without_kvm;
	size_t probes, missing;
	struct vp_buffer names; /* of missing features */
	struct vp_buffer absent, present;
	const char *format;
	struct vp_texts operands;
};

static void cmd_check_print_text(const struct vp_probe *probe, bool found, const char *detail,
				 struct vp_buffer *out)
{
	vp_buffer_printf(out, "%-4s %-25s %s\n", found ? "yes" : "no", probe->name, detail);
	if (!found)
		vp_buffer_printf(out, "     %-25s without it: %s\n", "", probe->cost);
}

/* Prints whether this host can be recorded, and which features are missing. */
static void put_verdict(const struct check *check, struct vp_buffer *out)
{
	vp_buffer_printf(out, "This host can%s be recorded%s", check->lacks ? "not" : "",
			 !check->lacks && check->without_kvm ? ", but has no KVM and so no VMs"
							     : "");
	if (check->missing)
		vp_buffer_printf(out, "; %zu of %zu features %s missing: %s", check->missing,
				 check->probes, check->missing == 1 ? "is" : "are",
				 vp_buffer_text((struct vp_buffer *)&check->names));
	vp_buffer_string(out, ".");
}

static void cmd_check_put_json(const struct vp_probe *probe, bool found, const char *detail,
			       struct vp_json *json)
{
	vp_json_object(json, NULL);
	vp_json_text(json, "name", probe->name);
	vp_json_bool(json, "found", found);
	vp_json_text(json, "detail", detail);
	vp_json_bool(json, "needed", probe->needed);
	vp_json_text(json, "without", probe->cost);
	vp_json_object_end(json);
}

static void cmd_check_end_json(const struct check *check, struct vp_json *json)
{
	struct vp_buffer verdict = {0};

	put_verdict(check, &verdict);
	vp_json_array_end(json);
	vp_json_text(json, "verdict", vp_buffer_text(&verdict));
	vp_json_bool(json, "can_record", !check->lacks);
	vp_json_count(json, "missing", check->missing);
	vp_json_object_end(json);
	vp_buffer_deinit(&verdict);
}

static void check_probe(struct check *check, const struct vp_probe *probe, struct vp_json *json)
{
	char detail[512];
	bool found = probe->run(detail, sizeof(detail));
	VP_AUTO_FREE char *clean = vp_text_cleaned(detail);

	check->lacks |= probe->needed && !found;
	check->without_kvm |= !found && !strcmp(probe->name, "KVM");
	check->probes++;
	check->missing += !found;
	if (!found)
		vp_buffer_printf(&check->names, "%s%s", check->names.size ? ", " : "", probe->name);
	if (check->json)
		cmd_check_put_json(probe, found, clean, json);
	else
		cmd_check_print_text(probe, found, clean, found ? &check->present : &check->absent);
}

static struct vp_error *check_with(void *context)
{
	struct check *check = context;
	const struct vp_hypervisor *hypervisor = vp_hypervisor_here();
	const struct vp_source *source;

	const struct vp_format_words words = {check->format, check->json, false};
	const char *format;
	VP_TRY(vp_choose_text_or_json(&words, &format));
	check->json = !strcmp(format, "json");
	if (check->operands.count)
		return vp_error_usage("unexpected argument '%s'", check->operands.at[0]);
	struct vp_buffer out = {0};
	struct vp_json json = vp_json_to(&out);
	vp_json_pretty(&json, true);
	vp_json_answer(&json);
	vp_json_array(&json, "features");
	for (size_t number = 0; (source = hypervisor->source(number)); number++)
		for (size_t i = 0; i < source->n_probes; i++)
			check_probe(check, &source->probes[i], &json);
	cmd_check_end_json(check, &json);
	vp_buffer_string(&out, "\n");
	if (!check->json) {
		out.size = 0;
		put_verdict(check, &out);
		vp_buffer_string(&out, "\n\n");
		vp_buffer_append(&out, check->absent.bytes, check->absent.size);
		vp_buffer_append(&out, check->present.bytes, check->present.size);
	}
	struct vp_error *error = check->json ? vp_verb_print(&out) : vp_verb_print_text(&out, true);
	vp_buffer_deinit(&out);
	vp_buffer_deinit(&check->names);
	vp_buffer_deinit(&check->absent);
	vp_buffer_deinit(&check->present);
	return error;
}

static int run_check(int argc, char **argv)
{
	struct check check = {0};
	const struct vp_option options[] = {
	    {0, "format", VP_OPTION_TEXT, &check.format, "FORMAT", "text or json (default: text)"},
	    {0, "json", VP_OPTION_FLAG, &check.json, NULL, "same as --format json"},
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &check.operands, check_with, &check);

	return status ? status : check.lacks;
}

static const struct vp_verb verb = {
    .name = "check",
    .usage = "[--json]",
    .summary = "check what this host supports, and what each missing feature costs",
    .run = run_check,
};
