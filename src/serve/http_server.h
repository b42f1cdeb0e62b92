/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Serves a few documents over HTTP from a process without rights. That process gets finished bytes
 * through memory that both share; what clients send never reaches the process that made them.
 */
#ifndef VP_SERVE_HTTP_SERVER_H
#define VP_SERVE_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"
#include "serve/http_document.h"

struct vp_http_server;

/*
 * Listens at `address` ("127.0.0.1:9177", "[::1]:9177", ":9177": all addresses; port 0: any) and
 * starts the process. `room`: bytes of a document at most. Errors: no such address, the port is in
 * use, no process.
 */
struct vp_error *vp_http_server_start(const char *address, const struct vp_http_document *documents,
				      size_t count, size_t room,
				      struct vp_http_server **ret) VP_MUST_CHECK;
/* "127.0.0.1:9177": with the port that it has. */
const char *vp_http_server_address(const struct vp_http_server *server);
/* A document's new bytes, from the next request on; false: they are more than `room`, and the old
 * ones stay. Never waits. */
bool vp_http_server_put(struct vp_http_server *server, size_t document, const void *bytes,
			size_t size);
/* Whether the process has ended by itself. */
bool vp_http_server_has_ended(struct vp_http_server *server);
/* Ends the process; NULL is fine. */
void vp_http_server_stop(struct vp_http_server *server);

#endif
