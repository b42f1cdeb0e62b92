/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The documents that vperfd serves, and vperfd's own cost. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/daemon/vperfd.h"
#include "daemon/hour_page.h"
#include "export/export_metrics.h"
#include "export/process_cost.h"
#include "serve/http_document.h"
#include "serve/http_server.h"
#include "serve/web_config.h"
#include "store/history.h"
#include "store/kept_findings.h"
#include "store/retention.h"

/* 1,000 VMs with four vCPUs each need 8 MiB. */
enum { DOCUMENT_ROOM = 64 << 20 };
/* The two formats of /metrics, in the order of enum vp_metrics_format, and the last hour. */
enum { PAGE = VP_METRICS_FORMATS, PAGE_JSON, DOCUMENTS };
/* Documents are written when a client wants them. Accounting is read once a second, so newer ones
 * than that have nothing new. */
enum { FRESH_MS = 500 };
/* Least seconds between two starts of the process that serves HTTP. */
enum { SERVE_RETRY_S = 10 };

static struct vp_error *read_web_config(const struct vperfd *daemon, struct vp_web_config *ret)
{
	*ret = (struct vp_web_config){0};
	return daemon->config.web_config[0] ? vp_web_config_read(daemon->config.web_config, ret)
					    : NULL;
}

/* Whether the key's file can be read; "": none. */
static struct vp_error *check_file(const struct vperfd *daemon, const char *key, const char *path)
{
	return path[0] && access(path, R_OK)
		   ? vp_error_errno(errno, "%s: key '%s': cannot read '%s'", daemon->config_path,
				    key, path)
		   : NULL;
}

struct vp_error *vperfd_check_files(const struct vperfd *daemon)
{
	struct vp_web_config web;

	VP_TRY(check_file(daemon, "web-config", daemon->config.web_config));
	VP_TRY(check_file(daemon, "ca-file", daemon->config.profiles_ca));
	VP_TRY(check_file(daemon, "header-file", daemon->config.header_file));
	VP_TRY(read_web_config(daemon, &web));
	vp_web_config_deinit(&web);
	return NULL;
}

struct vp_error *vperfd_serve(struct vperfd *daemon)
{
	static const struct vp_http_document documents[DOCUMENTS] = {
	    [VP_METRICS_TEXT] = {"/metrics", "text/plain; version=0.0.4; charset=utf-8", NULL},
	    [VP_METRICS_OPENMETRICS] =
		{"/metrics", "application/openmetrics-text; version=1.0.0; charset=utf-8",
		 "application/openmetrics-text"},
	    [PAGE] = {"/", "text/html; charset=utf-8", NULL},
	    [PAGE_JSON] = {"/hour.json", "application/json", NULL}};

	static const struct vp_http_limits limits = {VP_HTTP_IDLE_SECONDS, VP_HTTP_REQUEST_SECONDS,
						     FRESH_MS};

	if (!strcmp(daemon->config.listen, "off"))
		return NULL;
	struct vp_web_config web;
	VP_TRY(read_web_config(daemon, &web));
	struct vp_error *error =
	    vp_http_server_start(daemon->config.listen, documents, DOCUMENTS, DOCUMENT_ROOM,
				 &limits, &web, &daemon->server);
	bool tls = web.certificate.text != NULL;
	vp_web_config_deinit(&web);
	VP_TRY(error);
	VPERFD_SAY(tls ? "metrics at https://%s/metrics" : "metrics at http://%s/metrics",
		   vp_http_server_address(daemon->server));
	return NULL;
}

struct vp_error *vperfd_serve_again(struct vperfd *daemon)
{
	struct vp_web_config web;

	if (!daemon->server)
		return NULL;
	VP_AUTO_ERROR struct vp_error *invalid = read_web_config(daemon, &web);
	if (invalid) {
		VPERFD_SAY("TLS and users unchanged: %s", vp_error_message(invalid));
		return NULL;
	}
	struct vp_error *error = vp_http_server_restart(daemon->server, &web);
	vp_web_config_deinit(&web);
	return error;
}

static uint64_t count_recordings(const vp_history *history)
{
	uint64_t count = 0;

	vp_vec_each (history, kept)
		count += !kept->problem;
	return count;
}

/* Starts the process that serves HTTP again if it was killed; clients cannot end it. */
static struct vp_error *serve_if_ended(struct vperfd *daemon, uint64_t now)
{
	if (now < daemon->serve_at || !vp_http_server_has_ended(daemon->server))
		return NULL;
	daemon->serve_at = now + SERVE_RETRY_S * 1000000000ULL;
	vperfd_say("the process that serves HTTP has ended: it is started again");
	return vperfd_serve_again(daemon);
}

static const char *open_recording(const struct vperfd *daemon)
{
	const char *path = daemon->rotation.open.path;

	return path ? strrchr(path, '/') + 1 : "";
}

/* A page that does not fit is not replaced. */
static void publish_page(struct vperfd *daemon)
{
	char host[256] = "";
	vp_kept_findings findings = {0};
	uint64_t bad;
	struct vp_buffer html = {0}, json = {0};

	gethostname(host, sizeof(host) - 1);
	VP_AUTO_ERROR struct vp_error *error =
	    vp_kept_findings_read(daemon->config.directory, &findings, &bad);
	const struct vp_hour_page page = {.hour = &daemon->hour,
					  .findings = &findings,
					  .host = host,
					  .store = daemon->config.directory,
					  .recording = open_recording(daemon),
					  .bytes = vp_history_bytes(&daemon->history),
					  .recordings = count_recordings(&daemon->history),
					  .realtime = vp_clock_read().realtime};
	vp_hour_page_html(&page, &html);
	vp_hour_page_json(&page, &json);
	vp_http_server_put(daemon->server, PAGE, html.bytes, html.size);
	vp_http_server_put(daemon->server, PAGE_JSON, json.bytes, json.size);
	vp_buffer_deinit(&html);
	vp_buffer_deinit(&json);
	vp_kept_findings_deinit(&findings);
}

static struct vp_error *publish_metrics(struct vperfd *daemon, enum vp_metrics_format format)
{
	VP_VEC(struct vp_metrics_finding) findings = {0};
	struct vp_error *error = NULL;
	struct vp_buffer text = {0};

	vp_vec_each (&daemon->held, held)
		vp_vec_push(&findings, ((struct vp_metrics_finding){held->vm, held->rule,
								    held->percent / 100}));
	const struct vp_metrics_store store = {.recording = open_recording(daemon),
					       .bytes = vp_history_bytes(&daemon->history),
					       .recordings = count_recordings(&daemon->history),
					       .fired = daemon->n_fired,
					       .sent = daemon->pushes.sent,
					       .overflowed = daemon->pushes.overflowed,
					       .refused = daemon->pushes.refused,
					       .waiting = daemon->pushes.waiting.count,
					       .spooled = daemon->spooled,
					       .spool_dropped = daemon->spool_dropped,
					       .findings = findings.at,
					       .n_findings = findings.count};
	vp_process_cost_update(&daemon->cost);
	const struct vp_metrics_self self = {.cpu_ns = daemon->cost.cpu_ns,
					     .memory = daemon->cost.memory,
					     .realtime_ns = vp_clock_read().realtime,
					     .accounted_ns = daemon->counters.realtime,
					     .store = &store};
	vp_export_metrics(&daemon->counters, &daemon->tail.vms, &self, format, &text);
	if (!vp_http_server_put(daemon->server, (size_t)format, text.bytes, text.size))
		error = vp_error_new("the metrics of all VMs take more than %d MiB",
				     DOCUMENT_ROOM >> 20);
	vp_buffer_deinit(&text);
	vp_vec_deinit(&findings);
	return error;
}

struct vp_error *vperfd_publish(struct vperfd *daemon)
{
	size_t document;

	if (!daemon->server)
		return NULL;
	VP_TRY(serve_if_ended(daemon, vp_clock_monotonic()));
	while (vp_http_server_next_ask(daemon->server, &document))
		if (document >= PAGE)
			publish_page(daemon);
		else
			VP_TRY(publish_metrics(daemon, (enum vp_metrics_format)document));
	return NULL;
}

struct vp_error *vperfd_serve_until(struct vperfd *daemon, uint64_t time)
{
	struct pollfd asks = {.fd = daemon->server ? vp_http_server_asks(daemon->server) : -1,
			      .events = POLLIN};

	for (uint64_t now; (now = vp_clock_monotonic()) < time;) {
		int timeout_ms = (int)((time - now + 999999) / 1000000);
		if (vp_poll_or_signal(&asks, 1, timeout_ms) <= 0)
			return NULL;
		VP_TRY(vperfd_publish(daemon));
	}
	return NULL;
}
