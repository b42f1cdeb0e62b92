/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf-agent: tells the host which processes a guest had. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest/agent.h"
#include "maps/agent_protocol.h"

static const char usage[] =
    "usage: vperf-agent serve [--port N] [--no-symbols]\n"
    "       vperf-agent dump FILE|- [--no-symbols]\n"
    "\n"
    "Tells vperf on the host which processes, mappings and symbols this guest has.\n"
    "\n"
    "  serve         watch processes begin and end, and answer the host over vsock\n"
    "  dump          write what the agent that serves knows, or else what is there now\n"
    "  --port N      vsock port to serve on (9733)\n"
    "  --no-symbols  leave out the symbols of programs and libraries\n"
    "  --help, --version\n";

struct options {
	unsigned port;
	bool no_symbols;
};

static struct vp_error *dump(const char *path, const struct options *options)
{
	bool to_stdout = !strcmp(path, "-"), served;
	VP_AUTO_FREE char *temporary = vp_format("%s.tmp", path);
	VP_AUTO_CLOSE int fd =
	    to_stdout ? dup(1) : open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return vp_error_errno(errno, "cannot create '%s'", temporary);
	VP_TRY(vp_agent_ask(fd, !options->no_symbols, &served));
	if (!served) {
		struct vp_agent agent;
		vp_agent_start(&agent);
		vp_agent_note(&agent, "no agent was serving, so only processes that lived at the "
				      "time of the dump are known");
		vp_agent_catch_up(&agent);
		int result = vp_agent_dump(&agent, fd, !options->no_symbols);
		vp_agent_stop(&agent);
		if (result)
			return vp_error_errno(-result, "cannot write '%s'", path);
	}
	if (!to_stdout && rename(temporary, path))
		return vp_error_errno(errno, "cannot write '%s'", path);
	return NULL;
}

static struct vp_error *parse_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {{"port", required_argument, NULL, 'p'},
					      {"no-symbols", no_argument, NULL, 'n'},
					      {"help", no_argument, NULL, 'h'},
					      {"version", no_argument, NULL, 'v'},
					      {0}};
	char *end;

	opterr = 0;
	for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		switch (option) {
		case 'p':
			options->port = (unsigned)strtoul(optarg, &end, 10);
			if (!*optarg || *end || !options->port)
				return vp_error_usage("--port: expected a number above 0, got '%s'",
						      optarg);
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

static struct vp_error *run(int argc, char **argv)
{
	struct options options = {.port = VP_AGENT_PORT};

	VP_TRY(parse_options(argc, argv, &options));
	if (argc - optind == 1 && !strcmp(argv[optind], "serve"))
		return vp_agent_serve(options.port, !options.no_symbols);
	if (argc - optind == 2 && !strcmp(argv[optind], "dump"))
		return dump(argv[optind + 1], &options);
	return vp_error_usage("expected 'serve' or 'dump FILE|-', see --help");
}

int main(int argc, char **argv)
{
	struct vp_error *error = run(argc, argv);
	int status = error ? (int)vp_error_kind(error) : 0;

	if (error)
		fprintf(stderr, "vperf-agent: %s\n", vp_error_message(error));
	vp_error_free(error);
	return status;
}
