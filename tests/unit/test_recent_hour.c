/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The last hour of vCPU time by minute, and the page and the JSON text made of it. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/macros.h"
#include "base/vec.h"
#include "daemon/hour_page.h"
#include "daemon/recent_hour.h"
#include "schema/account_terms.h"
#include "store/kept_findings.h"

#define SECOND 1000000000ULL
#define MINUTE (60 * SECOND)

enum { NOON = 29000000 }; /* number of a minute since 1970 */

/* VM 1000 + N is called `names[N]`. */
struct host {
	vp_vms vms;
	struct vp_account_counters counters;
	struct vp_hour hour;
};

static void add_vm(struct host *host, const char *name)
{
	uint32_t id = 1000 + (uint32_t)host->vms.count;
	struct vp_vm vm = {.pid = id, .name = strdup(name)};
	struct vp_counted_vm counted = {.id = vp_vm_id(&vm)};

	vp_vec_push(&counted.vcpus, ((struct vp_counted_vcpu){.number = 0}));
	vp_vec_push(&counted.vcpus, ((struct vp_counted_vcpu){.number = 1}));
	vp_vec_push(&host->vms, vm);
	vp_vec_push(&host->counters.vms, counted);
}

/* Both vCPUs run, wait and sleep for these numbers of seconds. */
static void spend(struct host *host, size_t vm, uint64_t used, uint64_t stolen, uint64_t idle)
{
	vp_vec_each (&host->counters.vms.at[vm].vcpus, vcpu) {
		vcpu->ns[VP_STATE_GUEST] += used * SECOND / 2;
		vcpu->ns[VP_STATE_VMM] += used * SECOND / 2;
		vcpu->ns[VP_STATE_PREEMPTED] += stolen * SECOND;
		vcpu->ns[VP_STATE_HALTED] += idle * SECOND;
	}
}

static void at_minute(struct host *host, uint64_t minute)
{
	vp_hour_add(&host->hour, &host->counters, &host->vms, (NOON + minute) * MINUTE + SECOND);
}

static void end(struct host *host)
{
	vp_hour_deinit(&host->hour);
	vp_account_counters_deinit(&host->counters);
	vp_vms_deinit(&host->vms);
}

static void expect_minute(const struct host *host, size_t vm, unsigned ago, uint64_t used,
			  uint64_t stolen, uint64_t idle)
{
	const uint64_t *ns = vp_hour_minute(&host->hour, &host->hour.vms.at[vm], ago);

	assert_int_equal(ns[VP_HOUR_USED], used * SECOND);
	assert_int_equal(ns[VP_HOUR_STOLEN], stolen * SECOND);
	assert_int_equal(ns[VP_HOUR_IDLE], idle * SECOND);
}

/* Growth is in the minute in which it was counted; after an hour it is gone. */
static void test_minutes(void **state)
{
	struct host host = {0};

	add_vm(&host, "db");
	spend(&host, 0, 10, 20, 30);
	at_minute(&host, 0);
	spend(&host, 0, 2, 0, 0);
	at_minute(&host, 0);
	expect_minute(&host, 0, 0, 24, 40, 60);
	spend(&host, 0, 4, 1, 0);
	at_minute(&host, 3);
	expect_minute(&host, 0, 0, 8, 2, 0);
	expect_minute(&host, 0, 1, 0, 0, 0);
	expect_minute(&host, 0, 3, 24, 40, 60);
	at_minute(&host, 59);
	expect_minute(&host, 0, 59, 24, 40, 60);
	at_minute(&host, 60);
	expect_minute(&host, 0, 0, 0, 0, 0);
	expect_minute(&host, 0, 57, 8, 2, 0);
	end(&host);
}

/* Time that is counted a moment after the minute was over is in the next; a clock that is set
 * clears the hour, since its minutes have no place there. */
static void test_clock(void **state)
{
	struct host host = {0};

	add_vm(&host, "db");
	spend(&host, 0, 6, 0, 0);
	at_minute(&host, 1);
	spend(&host, 0, 1, 0, 0);
	at_minute(&host, 0);
	expect_minute(&host, 0, 0, 14, 0, 0);
	at_minute(&host, 1000);
	for (unsigned ago = 0; ago < VP_HOUR_MINUTES; ago++)
		expect_minute(&host, 0, ago, 0, 0, 0);
	spend(&host, 0, 3, 0, 0);
	at_minute(&host, 5);
	expect_minute(&host, 0, 0, 6, 0, 0);
	expect_minute(&host, 0, 1, 0, 0, 0);
	end(&host);
}

/* A VM that has ended stays for an hour. */
static void test_forgets(void **state)
{
	struct host host = {0};

	add_vm(&host, "db");
	spend(&host, 0, 1, 0, 0);
	at_minute(&host, 0);
	vp_vec_deinit(&host.counters.vms.at[0].vcpus);
	host.counters.vms.count = 0;
	at_minute(&host, 59);
	assert_int_equal(host.hour.vms.count, 1);
	at_minute(&host, 60);
	assert_int_equal(host.hour.vms.count, 0);
	end(&host);
}

static void expect_part(struct vp_buffer *text, const char *part)
{
	if (!strstr(vp_buffer_text(text), part))
		fail_msg("no '%s' in:\n%s", part, vp_buffer_text(text));
}

/* Two minutes of two VMs, the second of which attacks the page, and two findings. */
static void test_page(void **state)
{
	struct host host = {0};
	char *texts[VP_KEPT_TEXTS] = {[VP_KEPT_RULE] = "overcommit",
				      [VP_KEPT_VM] = "<b>",
				      [VP_KEPT_SENTENCE] = "VM <b> loses 20 s"};
	struct vp_kept_finding kept[2] = {{.time = (NOON - 90) * MINUTE}, {.time = NOON * MINUTE}};
	struct vp_buffer html = {0}, json = {0};

	memcpy(kept[0].texts, texts, sizeof(texts));
	memcpy(kept[1].texts, texts, sizeof(texts));
	const vp_kept_findings findings = {.at = kept, .count = 2};
	add_vm(&host, "db");
	add_vm(&host, "<b onclick='x'>&\"\033[2J");
	spend(&host, 0, 30, 0, 30);
	spend(&host, 1, 30, 20, 10);
	at_minute(&host, 0);
	spend(&host, 0, 0, 0, 60);
	spend(&host, 1, 0, 0, 60);
	at_minute(&host, 1);
	const struct vp_hour_page page = {.hour = &host.hour,
					  .findings = &findings,
					  .host = "node1",
					  .store = "/var/lib/vperf",
					  .recording = "",
					  .bytes = 12400000,
					  .recordings = 1,
					  .realtime = (NOON + 1) * MINUTE};
	setenv("TZ", "UTC", 1);
	vp_hour_page_html(&page, &html);
	vp_hour_page_json(&page, &json);
	/* The one with more steal is first; its last whole minute has a third of steal. */
	expect_part(&html, "</th></tr>\n<tr><th scope=\"row\">&#60;b onclick=&#39;x&#39;&#62;&#38;"
			   "&#34;?[2J</th><td>2</td><td>25.0%</td><td>33.33%</td><td>16.67%</td>"
			   "<td>33.33%</td>");
	expect_part(&html, "<tr><th scope=\"row\">db</th><td>2</td><td>25.0%</td><td>0.00%</td>");
	/* Half of the bar is used time; a third is steal, on top of it. */
	expect_part(&html, "<path class=\"used\" d=\"M232 32.0v-16.0h3v16.0z\"/>"
			   "<path class=\"steal\" d=\"M232 16.0v-10.7h3v10.7z\"/>");
	expect_part(&html, "Not recording</strong>; the store has 1 recording, 12 MB.");
	expect_part(&html, "VM &#60;b&#62; loses 20 s<br><code>vperf diagnose --store "
			   "/var/lib/vperf --time 2025-02-19T21:15:00+00:00,"
			   "2025-02-19T21:21:00+00:00</code>");
	assert_null(strstr(vp_buffer_text(&html), "<b"
						  " "));
	assert_null(strstr(vp_buffer_text(&html), "VM <b>"));
	assert_null(strchr(vp_buffer_text(&html), '\033'));
	expect_part(&json, "\"vm\": \"db\"");
	expect_part(&json, "0, 0, 40000000000, 0], \"idle_ns\": [");
	const char *first = strstr(vp_buffer_text(&json), "\"sentence\"");
	assert_non_null(first);
	assert_null(
	    strstr(first + 1, "\"sentence\"")); /* the other one is an hour and a half old */
	temporary_file("test_recent_hour.html", html.bytes, html.size);
	temporary_file("test_recent_hour.json", json.bytes, json.size);
	vp_buffer_deinit(&html);
	vp_buffer_deinit(&json);
	end(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_minutes),
	    cmocka_unit_test(test_clock),
	    cmocka_unit_test(test_forgets),
	    cmocka_unit_test(test_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
