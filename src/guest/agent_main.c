/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf-agent: sends the host the guest's symbol map, counts and events. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "guest/agent.h"
#include "protocol/agent_protocol.h"

static const char usage[] =
    "usage: vperf-agent serve [--port N] [--ring KIB] [--no-symbols]\n       vperf-agent dump "
    "FILE|- "
    "[--no-symbols]\n\nReports this guest's processes, mappings and symbols to vperf on the "
    "host.\n\n  serve         track processes and serve the host, over vsock or on Xen a vchan\n  "
    "dump "
    "         "
    "write the running agent's symbol map; without an agent, one of the present state\n  --port N  "
    "    vsock port to listen on, or number of the vchan (733)\n  --ring KIB    buffer per CPU for "
    "this kernel's events while the host traces them (4096)\n  --no-symbols  omit symbols of "
    "programs and libraries\n  "
    "--help, "
    "--version\n";

enum { USUAL_RING_KIB = 4096, MAX_RING_KIB = 1 << 20 };

struct options {
	unsigned port, ring_kib;
	bool no_symbols;
};

static struct vp_error *dump_into(int fd, const char *path, const struct options *options)
{
	struct vp_agent agent;
	bool served;

	VP_TRY(vp_agent_fetch_running(fd, !options->no_symbols, &served));
	if (served)
		return NULL;
	vp_agent_start(&agent);
	vp_agent_note(
	    &agent, "no agent was running: only processes alive at the time of the dump are known");
	vp_agent_catch_up(&agent);
	int result = vp_agent_dump(&agent, fd, !options->no_symbols);
	vp_agent_stop(&agent);
	return result ? vp_error_errno(-result, "cannot write '%s'", path) : NULL;
}

/* A regular file is replaced at once; a device or pipe is written to. */
static struct vp_error *dump(const char *path, const struct options *options)
{
	VP_AUTO_NEW_FILE struct vp_new_file file = {.fd = -1};

	if (!strcmp(path, "-"))
		return dump_into(STDOUT_FILENO, "standard output", options);
	int result = vp_new_file_create_output(&file, path, 0600);
	if (result)
		return vp_error_errno(-result, "cannot write '%s'", path);
	VP_TRY(dump_into(file.fd, path, options));
	result = vp_new_file_publish(&file);
	return result ? vp_error_errno(-result, "cannot write '%s'", path) : NULL;
}

static struct vp_error *parse_number(const char *option, unsigned most, unsigned *ret)
{
	char *end;
	unsigned long long number = strtoull(optarg, &end, 10);

	if (!*optarg || *end || optarg[0] == '-' || !number || number > most)
		return vp_error_usage("%s: expected a number from 1 to %u, got '%s'", option, most,
				      optarg);
	*ret = (unsigned)number;
	return NULL;
}

static struct vp_error *parse_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
	    {"port", required_argument, NULL, 'p'}, {"ring", required_argument, NULL, 'r'},
	    {"no-symbols", no_argument, NULL, 'n'}, {"help", no_argument, NULL, 'h'},
	    {"version", no_argument, NULL, 'v'},    {0}};
	opterr = 0;
	for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		switch (option) {
		case 'p':
			VP_TRY(parse_number("--port", UINT32_MAX - 1, &options->port));
			break;
		case 'r':
			VP_TRY(parse_number("--ring", MAX_RING_KIB, &options->ring_kib));
			break;
		case 'n':
			options->no_symbols = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case 'v':
			puts("vperf-agent " VPERF_VERSION);
			exit(0);
		default:
			return vp_error_usage("unknown option or missing value: '%s'",
					      argv[optind - 1]);
		}
	}
	return NULL;
}

static struct vp_error *agent_main_run(int argc, char **argv)
{
	struct options options = {.port = VP_AGENT_PORT, .ring_kib = USUAL_RING_KIB};

	VP_TRY(parse_options(argc, argv, &options));
	if (argc - optind == 1 && !strcmp(argv[optind], "serve"))
		return vp_agent_serve(&(struct vp_agent_serve_options){
		    options.port, options.ring_kib, !options.no_symbols});
	if (argc - optind == 2 && !strcmp(argv[optind], "dump"))
		return dump(argv[optind + 1], &options);
	return vp_error_usage("expected 'serve' or 'dump FILE|-', see --help");
}

/* Defined for base/alloc.h. */
void vp_alloc_failed(void)
{
	static const char message[] = "vperf-agent: out of memory\n";
	ssize_t written = vp_write(STDERR_FILENO, message, sizeof(message) - 1);

	(void)written;
	_exit(1);
}

int main(int argc, char **argv)
{
	struct rlimit before;

	if (!vp_open_standard_files())
		return VP_ERROR_FAILURE;
	vp_raise_file_limit(&before);
	struct vp_error *error = agent_main_run(argc, argv);
	int status = error ? (int)vp_error_kind(error) : 0;

	if (error)
		fprintf(stderr, "vperf-agent: %s\n", vp_error_message(error));
	vp_error_free(error);
	return status;
}
