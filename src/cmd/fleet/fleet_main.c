/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf fleet: queries a metrics engine for the hosts and VMs that need attention. It is a separate
 * program, vperf-fleet, because of libcurl. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/common/table.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/io.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"
#include "cmd/common/choice.h"
#include "cmd/common/options.h"
#include "cmd/common/time_options.h"
#include "cmd/common/verb.h"
#include "fetch/http_fetch.h"
#include "fleet/fleet_answer.h"
#include "fleet/fleet_query.h"
#include "fleet/fleet_tables.h"
#include "render/render_account.h"
#include "render/render_table.h"

#define SECOND UINT64_C(1000000000)
enum { ANSWER_MOST = 256 << 20, RANGE_MOST_S = 7 * 86400, LIMIT_MOST = 1000, SHOWN = 200 };

static const struct vp_verb verb = {
    .name = "fleet",
    .usage = "[--url URL] [--tenant ID] [--time TIME]",
    .summary = "find the hosts and VMs that need attention, from the metrics of many hosts",
};

struct fleet {
	const char *url, *header_file, *tenant, *ca_file, *match, *time, *format;
	bool json;
	uint64_t range_ns, timeout_ns, limit;
	struct vp_texts headers, operands;
	struct vp_buffer header_lines;
	VP_VEC(const char *) sent; /* request headers */
	char *tenant_header, *time_word;
	vp_fleet_texts warnings;
};

/* Declared in base/alloc.h. */
void vp_alloc_failed(void)
{
	static const char message[] = "vperf fleet: out of memory\n";
	ssize_t written = vp_write(STDERR_FILENO, message, sizeof(message) - 1);

	(void)written;
	_exit(VP_ERROR_FAILURE);
}

static void fleet_put_form(struct vp_buffer *out, const char *key, const char *value)
{
	vp_buffer_printf(out, "%s%s=", out->size ? "&" : "", key);
	for (; *value; value++)
		if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~",
			   *value))
			vp_buffer_append(out, value, 1);
		else
			vp_buffer_printf(out, "%%%02X", (unsigned char)*value);
}

/* Keeps each distinct warning once: many queries return the same one. */
static void fleet_take_warnings(struct fleet *fleet, struct vp_fleet_answer *answer)
{
	vp_vec_each (&answer->warnings, warning) {
		bool known = false;
		vp_vec_each (&fleet->warnings, other)
			known |= !strcmp(*other, *warning);
		if (!known)
			vp_vec_push(&fleet->warnings, vp_strdup(*warning));
	}
}

static struct vp_error *fleet_read_answer(const char *url, unsigned status,
					  const struct vp_buffer *answer,
					  struct vp_fleet_answer *ret)
{
	VP_AUTO_ERROR struct vp_error *error =
	    vp_fleet_answer_parse(answer->bytes, answer->size, ret);
	struct vp_buffer shown = {0};

	if (!error)
		return NULL;
	vp_text_clean(answer->bytes, answer->size < SHOWN ? answer->size : SHOWN, &shown);
	struct vp_error *whole =
	    status == 200 || strstr(vp_error_message(error), ": ")
		? vp_error_new("%s: %s", url, vp_error_message(error))
		: vp_error_new("%s: status %u: %s", url, status, vp_buffer_text(&shown));
	vp_buffer_deinit(&shown);
	return whole;
}

static struct vp_error *fleet_ask(void *context, const char *query, struct vp_fleet_answer *ret)
{
	struct fleet *fleet = context;
	struct vp_buffer form = {0}, answer = {0};
	unsigned status = 0;
	size_t size = strlen(fleet->url);
	VP_AUTO_FREE char *url = vp_format(
	    "%.*s/api/v1/query", (int)(size - (size && fleet->url[size - 1] == '/')), fleet->url);

	fleet_put_form(&form, "query", query);
	if (fleet->time_word)
		fleet_put_form(&form, "time", fleet->time_word);
	const struct vp_fetch fetch = {.url = url,
				       .headers = fleet->sent.at,
				       .n_headers = fleet->sent.count,
				       .type = "application/x-www-form-urlencoded",
				       .body = form.bytes,
				       .size = form.size,
				       .ca_file = fleet->ca_file,
				       .seconds = (unsigned)(fleet->timeout_ns / SECOND),
				       .limit = ANSWER_MOST};
	struct vp_error *error = vp_fetch(&fetch, &status, &answer);
	if (!error)
		error = fleet_read_answer(url, status, &answer, ret);
	if (!error)
		fleet_take_warnings(fleet, ret);
	vp_buffer_deinit(&form);
	vp_buffer_deinit(&answer);
	return error;
}

static struct vp_error *fleet_check_headers(struct fleet *fleet)
{
	const char **lines = NULL;
	size_t count = 0;

	if (fleet->header_file)
		VP_TRY(vp_fetch_headers(fleet->header_file, &fleet->header_lines, &lines, &count));
	for (size_t i = 0; i < count; i++)
		vp_vec_push(&fleet->sent, lines[i]);
	free(lines);
	for (size_t i = 0; i < fleet->headers.count; i++) {
		if (!strchr(fleet->headers.at[i], ':') || !vp_text_is_clean(fleet->headers.at[i]))
			return vp_error_usage("option --header: expected 'NAME: VALUE', not '%s'",
					      fleet->headers.at[i]);
		vp_vec_push(&fleet->sent, fleet->headers.at[i]);
	}
	if (fleet->tenant) {
		if (!vp_text_is_clean(fleet->tenant))
			return vp_error_usage("option --tenant: expected text");
		fleet->tenant_header = vp_format("X-Scope-OrgID: %s", fleet->tenant);
		vp_vec_push(&fleet->sent, fleet->tenant_header);
	}
	return NULL;
}

static struct vp_error *fleet_check(struct fleet *fleet)
{
	uint64_t time;

	if (fleet->operands.count)
		return vp_error_usage("unexpected argument '%s'", fleet->operands.at[0]);
	if (fleet->range_ns < SECOND || fleet->range_ns > RANGE_MOST_S * SECOND)
		return vp_error_usage("option --range: expected a second to a week");
	if (fleet->timeout_ns < SECOND)
		return vp_error_usage("option --timeout: expected at least one second");
	if (fleet->limit > LIMIT_MOST)
		return vp_error_usage("option --limit: expected at most %d", LIMIT_MOST);
	if (fleet->time && !vp_time_date_parse(fleet->time, &time))
		return vp_error_usage("option --time: expected an RFC 3339 time such as "
				      "2026-11-25T16:49:05Z, not '%s'",
				      fleet->time);
	if (fleet->time)
		fleet->time_word =
		    vp_format("%" PRIu64 ".%03" PRIu64, time / SECOND, time % SECOND / 1000000);
	return fleet_check_headers(fleet);
}

static const struct {
	const char *key, *title, *nothing;
} fleet_parts[VP_FLEET_TABLES] = {
    [VP_FLEET_VCPUS] = {"vcpus", "vCPUs with the most steal (percent of the vCPU's time)",
			"no vCPU has steal"},
    [VP_FLEET_PAIRS] =
	{"pairs", "VMs that take CPU time from another VM (percent of a pCPU), and the reverse",
	 "no VM takes CPU time from another"},
    [VP_FLEET_HOSTS] =
	{"hosts",
	 "hosts on which vCPUs wait (percent of a vCPU), and the largest share that a "
	 "VM loses to overcommit",
	 "no vCPU waits"},
    [VP_FLEET_CHANGES] =
	{"changes", "steal of VMs, compared with the day before (percent of a vCPU, all hosts)",
	 "no changes, or no metrics of the day before"},
};

static void fleet_print_text(const struct vp_fleet *result, struct vp_buffer *out)
{
	for (size_t i = 0; i < VP_FLEET_TABLES; i++) {
		bool any = vp_table_rows(&result->tables[i]) > 0;
		vp_buffer_printf(out, "%s# %s\n", i ? "\n" : "",
				 any ? fleet_parts[i].title : fleet_parts[i].nothing);
		if (any)
			vp_render_table_text(&result->tables[i],
					     isatty(STDOUT_FILENO) && !getenv("NO_COLOR"), out);
	}
}

static void fleet_print_json(const struct fleet *fleet, const struct vp_fleet *result,
			     struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_answer(&json);
	for (size_t i = 0; i < VP_FLEET_TABLES; i++)
		vp_render_table_json(&result->tables[i], fleet_parts[i].key, &json);
	vp_json_array(&json, "warnings");
	vp_vec_each (&fleet->warnings, warning)
		vp_json_text(&json, NULL, *warning);
	vp_json_array_end(&json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

static struct vp_error *fleet_print(struct fleet *fleet, const char *format)
{
	const struct vp_fleet_engine engine = {fleet_ask, fleet};
	const struct vp_fleet_options options = {fleet->match, fleet->range_ns / SECOND,
						 fleet->limit};
	struct vp_buffer out = {0};
	struct vp_fleet result;

	VP_TRY(vp_fleet_make(&engine, &options, &result));
	vp_vec_each (&fleet->warnings, warning)
		vp_verb_say(verb.name, *warning);
	if (!strcmp(format, "json"))
		fleet_print_json(fleet, &result, &out);
	else
		fleet_print_text(&result, &out);
	struct vp_error *error = vp_verb_print(&out);
	vp_fleet_deinit(&result);
	vp_buffer_deinit(&out);
	return error;
}

static struct vp_error *fleet_with(void *context)
{
	struct fleet *fleet = context;
	const struct vp_format_words words = {fleet->format, fleet->json, false};
	const char *format;
	struct vp_error *error = vp_choose_text_or_json(&words, &format);

	if (!error)
		error = fleet_check(fleet);
	if (!error)
		error = fleet_print(fleet, format);
	vp_vec_each (&fleet->warnings, warning)
		free(*warning);
	vp_vec_deinit(&fleet->warnings);
	vp_vec_deinit(&fleet->sent);
	vp_vec_deinit(&fleet->headers);
	vp_buffer_deinit(&fleet->header_lines);
	free(fleet->tenant_header);
	free(fleet->time_word);
	return error;
}

int main(int argc, char **argv)
{
	const char *url = getenv("VPERF_FLEET_URL");
	struct fleet fleet = {.url = url && *url ? url : "http://127.0.0.1:9090",
			      .match = "",
			      .range_ns = 300 * SECOND,
			      .timeout_ns = 30 * SECOND,
			      .limit = 10};
	const struct vp_option options[] = {
	    {0, "url", VP_OPTION_TEXT, &fleet.url, "URL",
	     "URL of the metrics server, up to /api/v1 (default: $VPERF_FLEET_URL, or "
	     "http://127.0.0.1:9090)"},
	    {0, "tenant", VP_OPTION_TEXT, &fleet.tenant, "ID",
	     "send ID in the header X-Scope-OrgID"},
	    {0, "header", VP_OPTION_TEXTS, &fleet.headers, "HEADER",
	     "send this header; can be repeated"},
	    {0, "header-file", VP_OPTION_TEXT, &fleet.header_file, "FILE",
	     "send the headers in FILE, one per line, such as a token"},
	    {0, "ca-file", VP_OPTION_TEXT, &fleet.ca_file, "FILE",
	     "trust the certificates in FILE (default: the system's)"},
	    {0, "match", VP_OPTION_TEXT, &fleet.match, "MATCHERS",
	     "only series with these labels, such as 'cluster=\"a\"'"},
	    {0, "time", VP_OPTION_TEXT, &fleet.time, "TIME",
	     "evaluate at this RFC 3339 time (default: now)"},
	    {0, "range", VP_OPTION_SECONDS, &fleet.range_ns, "TIME",
	     "average over this time (default: 5m)"},
	    {0, "limit", VP_OPTION_COUNT, &fleet.limit, "N", "rows of each table (default: 10)"},
	    {0, "timeout", VP_OPTION_SECONDS, &fleet.timeout_ns, "TIME",
	     "timeout of a query (default: 30)"},
	    {0, "format", VP_OPTION_TEXT, &fleet.format, "FORMAT", "text or json (default: text)"},
	    {0, "json", VP_OPTION_FLAG, &fleet.json, NULL, "same as --format json"},
	};

	if (!vp_open_standard_files())
		return VP_ERROR_FAILURE;
	return vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &fleet.operands,
			   fleet_with, &fleet);
}
