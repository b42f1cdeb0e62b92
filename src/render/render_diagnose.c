/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/render_diagnose.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/report/diagnose_rules.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "schema/account_grade.h"
#include "stats/mean.h"
#include "store/recording.h"

/* Evidence command of findings with a guest physical address, in addition to the rule's. */
static const char by_address[] = "exits --by address";

static void put_recording(const struct vp_account_recording *rec, struct vp_buffer *out)
{
	if (rec->arguments)
		vp_buffer_string(out, rec->arguments);
	else
		vp_text_put_word(rec->path, out);
}

static void put_command(const char *verb, const struct vp_finding *finding,
			const struct vp_account_recording *rec, struct vp_buffer *out)
{
	vp_buffer_printf(out, "vperf %s", verb);
	if (finding->vm != VP_FINDING_OF_NO_VM) {
		vp_buffer_string(out, " --vm");
		vp_text_put_word(rec->vms.at[finding->vm].name, out);
	}
	put_recording(rec, out);
}

static void render_diagnose_put_head(const struct vp_finding *finding,
				     const struct vp_account_recording *rec, struct vp_buffer *out)
{
	const struct vp_rule *rule = finding->rule;
	char lost[VP_DURATION_SIZE];

	VP_AUTO_FREE char *vm = finding->vm == VP_FINDING_OF_NO_VM
				    ? NULL
				    : vp_text_cleaned(rec->vms.at[finding->vm].name);
	if (rule->records) {
		vp_buffer_printf(out, "%s%s lost %" PRIu64 " %s", vm ? "VM " : "vperf",
				 vm ? vm : "", finding->count, rule->records);
		if (finding->percent > 0)
			vp_buffer_printf(out, ", %.1f%% of them", finding->percent);
		vp_buffer_printf(out, ": %s\n", finding->words.what);
		return;
	}
	vp_buffer_printf(out, "VM %s loses %s, %.1f%% of its vCPUs' time, to %s\n", vm,
			 vp_text_duration(finding->ns, lost), finding->percent,
			 finding->words.what);
	if (finding->count)
		vp_buffer_printf(out, "   %" PRIu64 " times%s", finding->count,
				 finding->who ? "; " : "\n");
	else if (finding->who)
		vp_buffer_string(out, "   ");
}

static bool has_text(const char *text)
{
	return text && text[0];
}

/* One line per other VM that loses time to the same cause. */
static void put_victims(const struct vp_diagnosis *diagnosis, const struct vp_finding *finding,
			const struct vp_account_recording *rec, struct vp_buffer *out)
{
	size_t cause = (size_t)(finding - diagnosis->findings.at) + 1;
	char lost[VP_DURATION_SIZE];

	vp_vec_each (&diagnosis->findings, other) {
		if (other->cause != cause)
			continue;
		VP_AUTO_FREE char *vm = vp_text_cleaned(rec->vms.at[other->vm].name);
		vp_buffer_printf(out, "   same cause: VM %s loses %s, %.1f%%\n", vm,
				 vp_text_duration(other->ns, lost), other->percent);
	}
}

static void put_verification(const struct vp_account_recording *rec, struct vp_buffer *out)
{
	if (rec->arguments) { /* a store: the recording continues */
		vp_buffer_string(out, "vperf diagnose of a later --time");
		return;
	}
	vp_buffer_string(out, "vperf diff");
	vp_text_put_word(rec->path, out);
	vp_buffer_string(out, " AFTER");
}

static void put_location(const struct vp_finding *finding, struct vp_buffer *out)
{
	vp_buffer_string(out, "   where:  ");
	if (has_text(finding->pcpus))
		vp_buffer_printf(out, "pCPU%s %s", strpbrk(finding->pcpus, "-,") ? "s" : "",
				 finding->pcpus);
	if (finding->cgroup)
		vp_buffer_printf(out, "%scgroup %s", has_text(finding->pcpus) ? ", " : "",
				 finding->cgroup);
	vp_buffer_string(out, "\n");
}

/* All exits were counted, but only some were timed. */
static bool is_estimated(const struct vp_finding *finding, const struct vp_account_recording *rec)
{
	return rec->recording.account_grade == VP_ACCOUNT_SAMPLED &&
	       has_text(finding->rule->reasons);
}

/* The lines "since" and "share". */
static void put_history(const struct vp_finding *finding, const struct vp_account_recording *rec,
			struct vp_buffer *out)
{
	const struct vp_recording *recording = &rec->recording;
	char date[VP_TEXT_DATE_SIZE];

	if (!finding->seconds)
		return;
	if (finding->held_percent > 0) {
		vp_buffer_string(out, "   since:  ");
		if (recording->realtime_offset)
			vp_buffer_printf(
			    out, "%s, ",
			    vp_text_date(finding->since + (uint64_t)recording->realtime_offset,
					 date));
		vp_buffer_printf(out, "+%.3f s, in %.0f%% of the time\n",
				 (double)(finding->since - recording->start) / 1e9,
				 finding->held_percent);
	}
	if (finding->has_interval)
		vp_buffer_printf(out,
				 "   share:  95%% interval %.1f%% to %.1f%%, from "
				 "%" PRIu32 " seconds\n",
				 finding->low, finding->high, finding->seconds);
	else
		vp_buffer_printf(out,
				 "   share:  %s for this recording; too short for an interval "
				 "(%" PRIu32 " of at least %d seconds)\n",
				 is_estimated(finding, rec) ? "estimated" : "exact",
				 finding->seconds, VP_MEAN_MIN);
}

static void put_finding(const struct vp_diagnosis *diagnosis, const struct vp_finding *finding,
			size_t number, const struct vp_account_recording *rec,
			struct vp_buffer *out)
{
	const struct vp_rule *rule = finding->rule;
	VP_AUTO_FREE char *who = finding->who ? vp_text_cleaned(finding->who) : NULL;
	char most[VP_DURATION_SIZE];

	vp_buffer_printf(out, "%zu. ", number);
	render_diagnose_put_head(finding, rec, out);
	if (who)
		vp_buffer_printf(out, "most of it: %s, %s\n", who,
				 vp_text_duration(finding->most, most));
	if (finding->detail)
		vp_buffer_printf(out, "   %s\n", finding->detail);
	if (finding->address)
		vp_buffer_printf(out, "   most at %s, %" PRIu64 " times\n", finding->address,
				 finding->address_count);
	put_victims(diagnosis, finding, rec, out);
	if (has_text(finding->pcpus) || finding->cgroup)
		put_location(finding, out);
	put_history(finding, rec, out);
	vp_buffer_string(out, "   see:    ");
	put_command(rule->evidence, finding, rec, out);
	if (finding->address) {
		vp_buffer_string(out, "\n           ");
		put_command(by_address, finding, rec, out);
	}
	vp_buffer_printf(out, "\n   try:    %s\n", finding->words.advice);
	for (const char *line = finding->commands; line && *line; line += strcspn(line, "\n") + 1)
		vp_buffer_printf(out, "           %.*s\n", (int)strcspn(line, "\n"), line);
	if (!rule->records) {
		vp_buffer_string(out, "   verify: record again, then ");
		put_verification(rec, out);
		vp_buffer_string(out, "\n");
	}
	vp_buffer_printf(out, "   source: %s\n\n", finding->words.source);
}

void vp_render_diagnosis_text(const struct vp_diagnosis *diagnosis,
			      const struct vp_account_recording *rec, struct vp_buffer *out)
{
	size_t number = 0;

	vp_vec_each (&diagnosis->findings, finding)
		if (!finding->cause)
			put_finding(diagnosis, finding, ++number, rec, out);
	if (!number)
		vp_buffer_string(out, "Nothing stands out.\n");
}

static void put_json_history(const struct vp_finding *finding,
			     const struct vp_account_recording *rec, struct vp_json *json)
{
	static const char *const keys[] = {"low_percent", "high_percent"};
	const double values[] = {finding->low, finding->high};
	struct vp_buffer verify = {0};

	vp_json_count(json, "seconds", finding->seconds);
	if (finding->held_percent > 0) {
		vp_json_count(json, "since_ns", finding->since);
		vp_json_number(json, "held_percent", finding->held_percent);
	} else {
		vp_json_null(json, "since_ns");
		vp_json_null(json, "held_percent");
	}
	for (size_t i = 0; i < VP_ARRAY_SIZE(keys); i++)
		if (finding->has_interval)
			vp_json_number(json, keys[i], values[i]);
		else
			vp_json_null(json, keys[i]);
	put_verification(rec, &verify);
	vp_json_text(json, "verify", finding->rule->records ? NULL : vp_buffer_text(&verify));
	vp_buffer_deinit(&verify);
}

static void render_diagnose_put_json(const struct vp_finding *finding, size_t index,
				     const struct vp_account_recording *rec, struct vp_json *json)
{
	struct vp_buffer command = {0}, addresses = {0};

	put_command(finding->rule->evidence, finding, rec, &command);
	if (finding->address)
		put_command(by_address, finding, rec, &addresses);
	vp_json_line(json);
	vp_json_object(json, NULL);
	vp_json_text(json, "id", finding->rule->id);
	vp_json_text(json, "vm",
		     finding->vm == VP_FINDING_OF_NO_VM ? NULL : rec->vms.at[finding->vm].name);
	vp_json_count(json, "ns", finding->ns);
	vp_json_number(json, "percent", finding->percent);
	vp_json_count(json, "count", finding->count);
	vp_json_text(json, "top_cause", finding->who);
	vp_json_count(json, "top_cause_ns", finding->most);
	/* Old keys, for one more release. */
	vp_json_text(json, "most", finding->who);
	vp_json_count(json, "most_ns", finding->most);
	vp_json_text(json, "address", finding->address);
	vp_json_count(json, "address_count", finding->address_count);
	vp_json_text(json, "records", finding->rule->records);
	vp_json_text(json, "detail", finding->detail);
	vp_json_text(json, "what", finding->words.what);
	vp_json_text(json, "evidence", vp_buffer_text(&command));
	vp_json_text(json, "address_evidence",
		     finding->address ? vp_buffer_text(&addresses) : NULL);
	vp_json_text(json, "advice", finding->words.advice);
	vp_json_text(json, "source", finding->words.source);
	vp_json_text(json, "pcpus", has_text(finding->pcpus) ? finding->pcpus : NULL);
	vp_json_text(json, "cgroup", finding->cgroup);
	vp_json_array(json, "commands");
	for (const char *line = finding->commands; line && *line; line += strcspn(line, "\n") + 1) {
		VP_AUTO_FREE char *text = vp_strndup(line, strcspn(line, "\n"));
		vp_json_text(json, NULL, text);
	}
	vp_json_array_end(json);
	put_json_history(finding, rec, json);
	vp_json_count(json, "cause", finding->cause ? finding->cause - 1 : index);
	vp_json_object_end(json);
	vp_buffer_deinit(&command);
	vp_buffer_deinit(&addresses);
}

void vp_render_diagnosis_json(const struct vp_diagnosis *diagnosis,
			      const struct vp_account_recording *rec, struct vp_json *json)
{
	vp_json_line(json);
	vp_json_array(json, "findings");
	vp_vec_each (&diagnosis->findings, finding)
		render_diagnose_put_json(finding, (size_t)(finding - diagnosis->findings.at), rec,
					 json);
	vp_json_array_end(json);
}
