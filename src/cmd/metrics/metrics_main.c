/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf metrics: vCPU accounting as counters for Prometheus. It is a separate program,
 * vperf-metrics, because of the HTTP library. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/account/account.h"
#include "analyze/account/account_counters.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/command.h"
#include "cmd/common/options.h"
#include "cmd/common/verb.h"
#include "collect/programs/account_source.h"
#include "collect/programs/hypervisor.h"
#include "export/export_metrics.h"
#include "export/process_cost.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "serve/http_document.h"
#include "serve/http_server.h"
#include "serve/web_config.h"
#include "session/account_writer.h"
#include "session/hypervisor_choice.h"
#include <bpf/libbpf.h>

static const struct vp_verb verb = {
    .name = "metrics",
    .usage = "[--listen ADDRESS:PORT] [--web-config FILE] [--textfile FILE] [-d SECONDS]",
    .summary = "serve counters of vCPU time, VM exits and steal to Prometheus",
};
static volatile sig_atomic_t stop_wanted, reload_wanted;

#define LEAST_DELAY_NS 100000000ULL
#define MOST_DELAY_NS (3600 * 1000000000ULL)
/* 1,000 VMs with four vCPUs each need 8 MiB. */
enum { DOCUMENT_ROOM = 64 << 20 };
#define GATHER_NS 100000000ULL

static const char usual_address[] = "127.0.0.1:9757";
static const char landing[] = "vperf metrics: see /metrics\n";

/* The two formats of /metrics, in the order of enum vp_metrics_format, and the page at /. */
enum { LANDING = VP_METRICS_FORMATS, DOCUMENTS };

struct metrics {
	const char *listen, *textfile, *web_config;
	uint64_t count, delay_ns;
	bool once;
	struct vp_texts operands;
	vp_vms vms;
	struct vp_account account; /* of the present interval */
	struct vp_account_counters counters;
	struct vp_process_cost cost;
	uint64_t ended; /* CLOCK_MONOTONIC of the end of the latest interval, ns */
	struct vp_http_server *server;
};

static void cmd_metrics_on_signal(int signal)
{
	stop_wanted = 1;
}

static void cmd_metrics_on_reload(int signal)
{
	reload_wanted = 1;
}

static void cmd_metrics_take(void *context, struct vp_record_header *record)
{
	struct metrics *metrics = context;
	uint32_t pid = ((struct vp_vcpu_account *)record)->vm; /* VMs are not numbered */

	if (record->id == VP_ID_vcpu_account && !vp_vms_latest(&metrics->vms, pid))
		vp_hypervisor_here()->scan_one(&metrics->vms, pid, false);
	vp_account_take(&metrics->account, record);
}

static void put_formats(struct metrics *metrics, struct vp_buffer *texts)
{
	struct vp_clock_reading clock = vp_clock_read();

	vp_process_cost_update(&metrics->cost);
	const struct vp_metrics_self self = {.cpu_ns = metrics->cost.cpu_ns,
					     .memory = metrics->cost.memory,
					     .realtime_ns = clock.realtime,
					     .accounted_ns = clock.realtime -
							     (clock.monotonic - metrics->ended)};

	for (int format = 0; format < VP_METRICS_FORMATS; format++)
		vp_export_metrics(&metrics->counters, &metrics->vms, &self, format, &texts[format]);
}

static struct vp_error *publish(struct metrics *metrics)
{
	struct vp_buffer texts[VP_METRICS_FORMATS] = {0};
	struct vp_error *error = NULL;

	put_formats(metrics, texts);
	/* Replaces the file atomically: the collector of node_exporter never reads a partial
	 * file. */
	if (metrics->textfile)
		error = vp_verb_write(metrics->textfile, &texts[VP_METRICS_TEXT]);
	for (size_t i = 0; metrics->server && !error && i < VP_METRICS_FORMATS; i++)
		if (!vp_http_server_put(metrics->server, i, texts[i].bytes, texts[i].size))
			error = vp_error_new("the metrics of all VMs take more than %d MiB",
					     DOCUMENT_ROOM >> 20);
	if (!error && metrics->once)
		error = vp_verb_print(&texts[VP_METRICS_TEXT]);
	for (size_t i = 0; i < VP_METRICS_FORMATS; i++)
		vp_buffer_deinit(&texts[i]);
	return error;
}

/* VMs that do not run have no records. */
static void note_without_records(struct metrics *metrics, uint64_t now)
{
	const struct vp_account *account = &metrics->account;

	for (size_t i = 0; i < metrics->vms.count; i++) {
		struct vp_vm *vm = &metrics->vms.at[i];
		if (vm->end || (i < account->of_vms.count && account->of_vms.at[i].times.first))
			continue;
		if (vp_hypervisor_here()->is_gone(vm))
			vm->end = now;
		else
			vp_account_counters_note(&metrics->counters, vp_vm_id(vm));
	}
}

static struct vp_error *end_interval(struct metrics *metrics, struct vp_account_writer *writer,
				     uint64_t now)
{
	if (vp_hypervisor_here()->scan_new)
		vp_hypervisor_here()->scan_new(&metrics->vms, false);
	vp_account_init(&metrics->account, &metrics->vms);
	vp_account_writer_write(writer, now, false);
	metrics->ended = now;
	vp_account_counters_add(&metrics->counters, &metrics->account);
	note_without_records(metrics, now);
	vp_account_deinit(&metrics->account);
	if (metrics->server && vp_http_server_has_ended(metrics->server))
		return vp_error_new("the process that serves HTTP has ended");
	return publish(metrics);
}

static void wait_until(struct vp_account_writer *writer, uint64_t time)
{
	const struct vp_account_ops *ops;
	struct vp_account_source *source = vp_account_writer_source(writer, &ops);

	for (uint64_t now; !stop_wanted && (now = vp_clock_monotonic()) < time;) {
		vp_sleep_ns(time - now > GATHER_NS ? GATHER_NS : time - now);
		ops->gather(source, vp_clock_monotonic());
	}
}

static struct vp_error *read_web_config(const struct metrics *metrics, struct vp_web_config *ret)
{
	*ret = (struct vp_web_config){0};
	return metrics->web_config ? vp_web_config_read(metrics->web_config, ret) : NULL;
}

/* An invalid configuration changes nothing. */
static struct vp_error *reload(struct metrics *metrics)
{
	struct vp_web_config web;

	reload_wanted = 0;
	if (!metrics->server)
		return NULL;
	VP_AUTO_ERROR struct vp_error *invalid = read_web_config(metrics, &web);
	if (invalid) {
		VP_AUTO_FREE char *text =
		    vp_format("TLS and users unchanged: %s", vp_error_message(invalid));
		vp_verb_say(verb.name, text);
		return NULL;
	}
	struct vp_error *error = vp_http_server_restart(metrics->server, &web);
	vp_web_config_deinit(&web);
	return error;
}

/* A vCPU that first ran while the programs were loaded may have no event later. */
static void find_late_vms(struct metrics *metrics)
{
	const struct vp_hypervisor *hypervisor = vp_hypervisor_here();

	if (!hypervisor->scan_new)
		return;
	vp_vec_each (&metrics->vms, vm)
		hypervisor->read_vcpus(vm);
	hypervisor->scan_new(&metrics->vms, true);
}

static struct vp_error *count_intervals(struct metrics *metrics, struct vp_account_writer *writer)
{
	const struct vp_account_ops *ops;
	struct vp_account_source *source = vp_account_writer_source(writer, &ops);

	VP_TRY(ops->prepare(source));
	find_late_vms(metrics);
	uint64_t due = vp_clock_monotonic();
	ops->begin(source, &metrics->vms, due);
	for (uint64_t i = 0; !stop_wanted && (!metrics->count || i < metrics->count); i++) {
		due += metrics->delay_ns;
		wait_until(writer, due);
		if (reload_wanted)
			VP_TRY(reload(metrics));
		VP_TRY(end_interval(metrics, writer, vp_clock_monotonic()));
	}
	return NULL;
}

static struct vp_error *start_server(struct metrics *metrics)
{
	const struct vp_http_document documents[DOCUMENTS] = {
	    [VP_METRICS_TEXT] = {"/metrics", vp_metrics_type(VP_METRICS_TEXT), NULL},
	    [VP_METRICS_OPENMETRICS] = {"/metrics", vp_metrics_type(VP_METRICS_OPENMETRICS),
					"application/openmetrics-text"},
	    [LANDING] = {"/", "text/plain; charset=utf-8", NULL}};

	struct vp_web_config web;
	VP_TRY(read_web_config(metrics, &web));
	struct vp_error *error = vp_http_server_start(metrics->listen, documents, DOCUMENTS,
						      DOCUMENT_ROOM, NULL, &web, &metrics->server);
	bool tls = web.certificate.text != NULL;
	vp_web_config_deinit(&web);
	VP_TRY(error);
	vp_http_server_put(metrics->server, LANDING, landing, strlen(landing));
	const char *address = vp_http_server_address(metrics->server);
	VP_AUTO_FREE char *text = vp_format(
	    tls ? "metrics at https://%s/metrics" : "metrics at http://%s/metrics", address);
	vp_verb_say(verb.name, text);
	return NULL;
}

static struct vp_error *cmd_metrics_check(struct metrics *metrics)
{
	if (metrics->operands.count)
		return vp_error_usage("unexpected argument '%s'", metrics->operands.at[0]);
	if (metrics->delay_ns < LEAST_DELAY_NS || metrics->delay_ns > MOST_DELAY_NS)
		return vp_error_usage("option --delay: expected 0.1 to 3600 seconds");
	if (metrics->web_config && !metrics->listen && (metrics->textfile || metrics->once))
		return vp_error_usage("--web-config needs --listen");
	if (metrics->once && metrics->listen)
		return vp_error_usage("--once and --listen are mutually exclusive");
	if (metrics->once)
		metrics->count = 1;
	if (!metrics->listen && !metrics->textfile && !metrics->once)
		metrics->listen = usual_address;
	if (geteuid() != 0)
		return vp_error_new("watching the host requires root (try sudo)");
	return NULL;
}

static struct vp_error *metrics_with(void *context)
{
	struct metrics *metrics = context;
	struct vp_account_writer *writer = NULL;
	const struct sigaction action = {.sa_handler = cmd_metrics_on_signal};
	const struct vp_account_source_options options = {0};
	const struct vp_account_ops *ops;

	VP_TRY(cmd_metrics_check(metrics));
	const struct vp_hypervisor *hypervisor = vp_hypervisor_here();
	/* First, so that the HTTP process inherits no other descriptors. */
	if (metrics->listen)
		VP_TRY(start_server(metrics));
	VP_TRY(hypervisor->scan(&metrics->vms, true));
	VP_TRY(vp_account_writer_open(hypervisor->account(), &metrics->vms, hypervisor->vendor(),
				      &options, cmd_metrics_take, metrics, &writer));
	const struct vp_account_source *source = vp_account_writer_source(writer, &ops);
	if (ops->missing(source))
		vp_verb_say(verb.name, ops->missing(source));
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &(struct sigaction){.sa_handler = cmd_metrics_on_reload}, NULL);
	struct vp_error *error = count_intervals(metrics, writer);
	vp_account_writer_free(writer);
	return error;
}

/* Declared in base/alloc.h. */
void vp_alloc_failed(void)
{
	static const char message[] = "vperf metrics: out of memory\n";
	ssize_t written = vp_write(STDERR_FILENO, message, sizeof(message) - 1);

	(void)written;
	_exit(VP_ERROR_FAILURE);
}

/* libbpf's messages are only for debugging vperf. */
static int print_of_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	return getenv("VPERF_DEBUG") ? vfprintf(stderr, format, args) : 0;
}

int main(int argc, char **argv)
{
	struct metrics metrics = {.delay_ns = 1000000000};
	const struct vp_option options[] = {
	    {'l', "listen", VP_OPTION_TEXT, &metrics.listen, "ADDRESS:PORT",
	     "serve /metrics there (default: 127.0.0.1:9757)"},
	    {0, "web-config", VP_OPTION_TEXT, &metrics.web_config, "FILE",
	     "TLS, client certificates and users: a web configuration of exporter-toolkit"},
	    {0, "textfile", VP_OPTION_TEXT, &metrics.textfile, "FILE",
	     "write FILE after each interval, for node_exporter's textfile collector"},
	    {0, "once", VP_OPTION_FLAG, &metrics.once, NULL, "print one interval and exit"},
	    {'n', "count", VP_OPTION_COUNT, &metrics.count, "N",
	     "exit after N intervals (default: at Ctrl-C)"},
	    {'d', "delay", VP_OPTION_SECONDS, &metrics.delay_ns, "S",
	     "seconds between updates, such as 0.5 (default: 1)"},
	};

	if (!vp_open_standard_files())
		return VP_ERROR_FAILURE;
	libbpf_set_print(print_of_libbpf);
	vp_command_raise_file_limit();
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &metrics.operands, metrics_with, &metrics);

	vp_http_server_stop(metrics.server);
	vp_account_counters_deinit(&metrics.counters);
	vp_vms_deinit(&metrics.vms);
	return status;
}
