/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process that serves HTTP clients. */
#ifndef VP_SERVE_HTTP_PROCESS_H
#define VP_SERVE_HTTP_PROCESS_H

#include "serve/http_document.h"
#include "serve/http_pages.h"

/* Confines this process and serves the documents on the listening socket, until it is killed. */
void vp_http_process(int fd, const struct vp_http_document *documents,
		     const struct vp_http_pages *pages) __attribute__((noreturn));

#endif
