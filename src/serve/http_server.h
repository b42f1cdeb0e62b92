/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Serves a few documents over HTTP from a confined process. It receives finished documents through
 * shared memory; client requests never reach the process that writes them. */
#ifndef VP_SERVE_HTTP_SERVER_H
#define VP_SERVE_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/macros.h"
#include "serve/http_document.h"
#include "serve/web_config.h"

struct vp_http_server;

/*
 * Listens at `address` ("127.0.0.1:9177", "[::1]:9177", ":9177": all addresses; port 0: any free
 * port) and starts the process. `room`: maximum size of a document; `limits`: NULL: the defaults;
 * `web`: TLS and users, or NULL. Errors: invalid address, port in use, fork failed.
 */
struct vp_error *vp_http_server_start(const char *address, const struct vp_http_document *documents,
				      size_t count, size_t room,
				      const struct vp_http_limits *limits,
				      const struct vp_web_config *web,
				      struct vp_http_server **ret) VP_MUST_CHECK;
/* Replaces the process by one with another configuration; connections are closed, new ones wait
 * until it has started. */
struct vp_error *vp_http_server_restart(struct vp_http_server *server,
					const struct vp_web_config *web) VP_MUST_CHECK;
/* "127.0.0.1:9177", with the actual port. */
const char *vp_http_server_address(const struct vp_http_server *server);
/* Replaces a document from the next request on; false: larger than `room`, and the old one stays.
 * Does not block. */
bool vp_http_server_put(struct vp_http_server *server, size_t document, const void *bytes,
			size_t size);
/* A descriptor that is readable when there may be asks; -1: none, since documents do not age. */
int vp_http_server_asks(const struct vp_http_server *server);
/* The next document that a client wants and that is older than the limit; false: none. */
bool vp_http_server_next_ask(struct vp_http_server *server, size_t *document);
/* Pid of the process, whose CPU time counts as vperf's. */
pid_t vp_http_server_process(const struct vp_http_server *server);
/* Whether the process has exited. */
bool vp_http_server_has_ended(struct vp_http_server *server);
/* Kills the process; NULL is allowed. */
void vp_http_server_stop(struct vp_http_server *server);

#endif
