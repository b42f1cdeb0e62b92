/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/hour_page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock_text.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "base/vec.h"

#define SECOND 1000000000ULL
#define HOUR (3600 * SECOND)
#define MEGABYTE 1000000.0
/* Width of a minute and height of the bars, in the picture's units. */
enum { MINUTE_WIDTH = 4, BARS_HEIGHT = 32 };

/* Escapes markup; control characters become '?'. */
static void put_escaped(const char *text, struct vp_buffer *out)
{
	VP_AUTO_FREE char *clean = vp_text_cleaned(text);

	for (const char *at = clean; *at; at++) {
		static const char marks[] = "&<>\"'";
		const char *mark = strchr(marks, *at);
		if (mark)
			vp_buffer_printf(out, "&#%d;", *mark);
		else
			vp_buffer_append(out, at, 1);
	}
}

static int hour_page_compare(const void *a, const void *b)
{
	const struct vp_hour_vm *const *x = a, *const *y = b;
	uint64_t sums[2][VP_HOUR_PARTS];

	vp_hour_sum(*x, sums[0]);
	vp_hour_sum(*y, sums[1]);
	if (sums[0][VP_HOUR_STOLEN] != sums[1][VP_HOUR_STOLEN])
		return sums[0][VP_HOUR_STOLEN] < sums[1][VP_HOUR_STOLEN] ? 1 : -1;
	return strcmp((*x)->name, (*y)->name);
}

typedef VP_VEC(const struct vp_hour_vm *) hour_rows;

/* The VMs, those with the most steal first. */
static hour_rows sorted_vms(const struct vp_hour *hour)
{
	hour_rows rows = {0};

	vp_vec_each (&hour->vms, vm)
		vp_vec_push(&rows, vm);
	if (rows.count)
		qsort(rows.at, rows.count, sizeof(rows.at[0]), hour_page_compare);
	return rows;
}

static uint64_t time_of(const uint64_t ns[VP_HOUR_PARTS])
{
	return ns[VP_HOUR_USED] + ns[VP_HOUR_STOLEN] + ns[VP_HOUR_IDLE];
}

/* One path of bars, the present minute at the right: `part` on top of the parts before it. */
static void put_bars(const struct vp_hour_page *page, const struct vp_hour_vm *vm,
		     enum vp_hour_part part, struct vp_buffer *out)
{
	vp_buffer_string(out, "<path class=\"");
	vp_buffer_string(out, part == VP_HOUR_USED ? "used\" d=\"" : "steal\" d=\"");
	for (unsigned ago = VP_HOUR_MINUTES; ago-- > 0;) {
		const uint64_t *ns = vp_hour_minute(page->hour, vm, ago);
		double all = (double)time_of(ns), below = 0;
		if (!ns[part])
			continue;
		for (unsigned i = 0; i < part; i++)
			below += (double)ns[i];
		vp_buffer_printf(
		    out, "M%u %.1fv-%.1fh%dv%.1fz", (VP_HOUR_MINUTES - 1 - ago) * MINUTE_WIDTH,
		    BARS_HEIGHT * (1 - below / all), BARS_HEIGHT * (double)ns[part] / all,
		    MINUTE_WIDTH - 1, BARS_HEIGHT * (double)ns[part] / all);
	}
	vp_buffer_string(out, "\"/>");
}

static double worst_minute(const struct vp_hour_vm *vm)
{
	double worst = 0;

	for (size_t i = 0; i < VP_HOUR_MINUTES; i++) {
		double steal = vp_hour_steal(vm->ns[i]);
		worst = steal > worst ? steal : worst;
	}
	return worst;
}

static void put_vm_row(const struct vp_hour_page *page, const struct vp_hour_vm *vm,
		       struct vp_buffer *out)
{
	uint64_t sum[VP_HOUR_PARTS];
	/* The present minute may have just begun. */
	const uint64_t *last = vp_hour_minute(page->hour, vm, 1);

	vp_hour_sum(vm, sum);
	double all = (double)time_of(sum);
	vp_buffer_string(out, "<tr><th scope=\"row\">");
	put_escaped(vm->name, out);
	vp_buffer_printf(out,
			 "</th><td>%zu</td><td>%.1f%%</td><td>%.2f%%</td><td>%.2f%%</td>"
			 "<td>%.2f%%</td><td><svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
			 "role=\"img\" aria-label=\"steal by minute: %.2f%%, at most %.2f%%\">",
			 vm->vcpus, all > 0 ? 100 * (double)sum[VP_HOUR_USED] / all : 0,
			 100 * vp_hour_steal(last), 100 * vp_hour_steal(sum),
			 100 * worst_minute(vm), VP_HOUR_MINUTES * MINUTE_WIDTH, BARS_HEIGHT,
			 VP_HOUR_MINUTES * MINUTE_WIDTH, BARS_HEIGHT, 100 * vp_hour_steal(sum),
			 100 * worst_minute(vm));
	put_bars(page, vm, VP_HOUR_USED, out);
	put_bars(page, vm, VP_HOUR_STOLEN, out);
	vp_buffer_string(out, "</svg></td></tr>\n");
}

static void put_vms(const struct vp_hour_page *page, struct vp_buffer *out)
{
	hour_rows rows = sorted_vms(page->hour);

	if (!rows.count) {
		vp_buffer_string(out, "<p>No VM ran in the last hour.</p>\n");
		return;
	}
	vp_buffer_string(out, "<table><tr><th scope=\"col\">VM</th><th scope=\"col\">vCPUs</th>"
			      "<th scope=\"col\">Used</th><th scope=\"col\">Steal, last minute</th>"
			      "<th scope=\"col\">Steal, last hour</th>"
			      "<th scope=\"col\">Worst minute</th><th scope=\"col\">"
			      "<span class=\"key used\"></span> used "
			      "<span class=\"key steal\"></span> steal, by minute</th></tr>\n");
	for (size_t i = 0; i < rows.count && i < VP_HOUR_PAGE_VMS; i++)
		put_vm_row(page, rows.at[i], out);
	vp_buffer_string(out, "</table>\n");
	if (rows.count > VP_HOUR_PAGE_VMS)
		vp_buffer_printf(out,
				 "<p>%zu more VMs have less steal: <a href=\"/hour.json\">"
				 "hour.json</a> has all.</p>\n",
				 rows.count - VP_HOUR_PAGE_VMS);
	vp_vec_deinit(&rows);
}

/* Index of the first finding to list. */
static size_t first_finding(const struct vp_hour_page *page)
{
	size_t first = page->findings->count > VP_HOUR_PAGE_FINDINGS
			   ? page->findings->count - VP_HOUR_PAGE_FINDINGS
			   : 0;

	while (first < page->findings->count &&
	       page->findings->at[first].time + HOUR < page->realtime)
		first++;
	return first;
}

/* Offset of the zone in an RFC 3339 time, after seconds and nine more digits. */
enum { ZONE = 29 };

/* The command for the five minutes before the finding, and one after it. */
static void put_command(const struct vp_hour_page *page, const struct vp_kept_finding *finding,
			struct vp_buffer *out)
{
	static const struct vp_clock_text clock = {.form = VP_CLOCK_FORM_RFC3339};
	char from[VP_CLOCK_TEXT_SIZE], to[VP_CLOCK_TEXT_SIZE];

	vp_clock_text(&clock, finding->time - 300 * SECOND, from);
	vp_clock_text(&clock, finding->time + 60 * SECOND, to);
	vp_buffer_string(out, "<code>vperf diagnose --store ");
	put_escaped(page->store, out);
	vp_buffer_printf(out, " --time %.19s%s,%.19s%s</code>", from, from + ZONE, to, to + ZONE);
}

static void put_findings(const struct vp_hour_page *page, struct vp_buffer *out)
{
	size_t first = first_finding(page);
	char date[VP_TEXT_DATE_SIZE];

	if (first == page->findings->count) {
		vp_buffer_string(out, "<p>No finding in the last hour.</p>\n");
		return;
	}
	vp_buffer_string(out, "<ol reversed>\n");
	for (size_t i = page->findings->count; i-- > first;) {
		const struct vp_kept_finding *finding = &page->findings->at[i];
		vp_buffer_printf(out, "<li>%s<br>", vp_text_date(finding->time, date));
		put_escaped(finding->texts[VP_KEPT_SENTENCE], out);
		vp_buffer_string(out, "<br>");
		put_command(page, finding, out);
		vp_buffer_string(out, "</li>\n");
	}
	vp_buffer_string(out, "</ol>\n");
}

void vp_hour_page_html(const struct vp_hour_page *page, struct vp_buffer *out)
{
	static const char head[] =
	    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
	    "<meta http-equiv=\"refresh\" content=\"30\">"
	    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	    "style-src 'unsafe-inline'\">\n<style>\n"
	    ":root{color-scheme:light dark;--used:light-dark(#14506e,#5fa8cc);"
	    "--steal:light-dark(#f07f3c,#ffb27d)}\n"
	    "body{font:15px/1.5 system-ui,sans-serif;margin:1.5em;max-width:75em}\n"
	    "div{overflow-x:auto}table{border-collapse:collapse}"
	    "th,td{padding:.2em .8em .2em 0;text-align:right;vertical-align:middle}"
	    "th:first-child{text-align:left}tr{border-bottom:1px solid #8888}"
	    ".used{fill:var(--used);background:var(--used)}"
	    ".steal{fill:var(--steal);background:var(--steal)}"
	    ".key{display:inline-block;width:.8em;height:.8em}"
	    "code{overflow-wrap:anywhere}\n</style>\n<title>vperfd: ";
	char date[VP_TEXT_DATE_SIZE];

	vp_buffer_string(out, head);
	put_escaped(page->host, out);
	vp_buffer_string(out, "</title></head>\n<body><main><h1>");
	put_escaped(page->host, out);
	vp_buffer_printf(out, ": the last hour</h1>\n<p>%s. ", vp_text_date(page->realtime, date));
	if (page->recording[0]) {
		vp_buffer_string(out, "Recording to ");
		put_escaped(page->recording, out);
	} else {
		vp_buffer_string(out, "<strong>Not recording</strong>");
	}
	vp_buffer_printf(out,
			 "; the store has %" PRIu64 " recording%s, %.0f MB. "
			 "<a href=\"/metrics\">Metrics</a>, <a href=\"/hour.json\">JSON</a></p>\n"
			 "<h2>VMs</h2>\n<div>",
			 page->recordings, page->recordings == 1 ? "" : "s",
			 (double)page->bytes / MEGABYTE);
	put_vms(page, out);
	vp_buffer_string(out, "</div>\n<h2>Findings</h2>\n");
	put_findings(page, out);
	vp_buffer_string(out, "</main></body></html>\n");
}

static void put_vm_json(const struct vp_hour_page *page, const struct vp_hour_vm *vm,
			struct vp_json *json)
{
	static const char *const keys[] = {
	    [VP_HOUR_USED] = "used_ns", [VP_HOUR_STOLEN] = "steal_ns", [VP_HOUR_IDLE] = "idle_ns"};

	vp_json_line(json);
	vp_json_object(json, NULL);
	vp_json_text(json, "vm", vm->name);
	vp_json_count(json, "vcpus", vm->vcpus);
	for (size_t part = 0; part < VP_HOUR_PARTS; part++) {
		vp_json_array(json, keys[part]);
		for (unsigned ago = VP_HOUR_MINUTES; ago-- > 0;)
			vp_json_count(json, NULL, vp_hour_minute(page->hour, vm, ago)[part]);
		vp_json_array_end(json);
	}
	vp_json_object_end(json);
}

void vp_hour_page_json(const struct vp_hour_page *page, struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);
	hour_rows rows = sorted_vms(page->hour);

	vp_json_answer(&json);
	vp_json_text(&json, "host", page->host);
	vp_json_count(&json, "time_ns", page->realtime);
	vp_json_text(&json, "recording", page->recording[0] ? page->recording : NULL);
	vp_json_array(&json, "vms");
	vp_vec_each (&rows, vm)
		put_vm_json(page, *vm, &json);
	vp_json_array_end(&json);
	vp_json_array(&json, "findings");
	for (size_t i = first_finding(page); i < page->findings->count; i++) {
		const struct vp_kept_finding *finding = &page->findings->at[i];
		vp_json_line(&json);
		vp_json_object(&json, NULL);
		vp_json_count(&json, "time_ns", finding->time);
		vp_json_text(&json, "rule", finding->texts[VP_KEPT_RULE]);
		vp_json_text(&json, "vm", finding->texts[VP_KEPT_VM]);
		vp_json_text(&json, "sentence", finding->texts[VP_KEPT_SENTENCE]);
		vp_json_object_end(&json);
	}
	vp_json_array_end(&json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
	vp_vec_deinit(&rows);
}
