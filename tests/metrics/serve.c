/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Serves one document with a web configuration until standard input ends; a line there: reads the
 * configuration again. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "serve/http_server.h"
#include "serve/web_config.h"

void vp_alloc_failed(void)
{
	abort();
}

static int fail(struct vp_error *error)
{
	fprintf(stderr, "%s\n", vp_error_message(error));
	vp_error_free(error);
	return 1;
}

int main(int argc, char **argv)
{
	static const struct vp_http_document documents[] = {{"/metrics", "text/plain", NULL}};
	struct vp_http_server *server;
	struct vp_web_config web;
	struct vp_error *error;
	char line[16];

	if (argc != 2) {
		fprintf(stderr, "usage: serve WEB-CONFIG\n");
		return 2;
	}
	if ((error = vp_web_config_read(argv[1], &web)))
		return fail(error);
	if ((error =
		 vp_http_server_start("127.0.0.1:0", documents, 1, 1 << 20, NULL, &web, &server)))
		return fail(error);
	vp_web_config_deinit(&web);
	vp_http_server_put(server, 0, "vperf_up 1\n", 11);
	puts(vp_http_server_address(server));
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if ((error = vp_web_config_read(argv[1], &web)))
			return fail(error);
		if ((error = vp_http_server_restart(server, &web)))
			return fail(error);
		vp_web_config_deinit(&web);
		puts("again");
		fflush(stdout);
	}
	vp_http_server_stop(server);
	return 0;
}
