/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process that serves HTTP clients. */
#ifndef VP_SERVE_HTTP_PROCESS_H
#define VP_SERVE_HTTP_PROCESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "serve/http_document.h"
#include "serve/http_pages.h"
#include "serve/web_config.h"

struct vp_http_serving;

/* Serves clients of the listening socket `fd`; -1: only those of vp_http_serving_add(). `asks`: a
 * socket for the numbers of documents that are older than the limit; -1: none. `web`: TLS and
 * users, or NULL. NULL: libmicrohttpd cannot start, or the certificate and the key are not valid.
 */
struct vp_http_serving *vp_http_serving_start(int fd, int asks,
					      const struct vp_http_document *documents,
					      const struct vp_http_pages *pages,
					      const struct vp_http_limits *limits,
					      const struct vp_web_config *web);
/* Adds a connected client; false: too many clients, and the connection is closed. */
bool vp_http_serving_add(struct vp_http_serving *serving, int fd, const struct sockaddr *address,
			 socklen_t size);
/* Serves clients for up to that time; false: libmicrohttpd failed. */
bool vp_http_serving_step(struct vp_http_serving *serving, int milliseconds);

/* Confines this process and serves the documents on the listening socket until it is killed. */
void vp_http_process(int fd, int asks, const struct vp_http_document *documents,
		     const struct vp_http_pages *pages, const struct vp_http_limits *limits,
		     const struct vp_web_config *web) __attribute__((noreturn));

#endif
