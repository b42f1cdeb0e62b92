/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP requests to servers, from a process that may only connect to them. The responses are
 * received there. */
#ifndef VP_FETCH_HTTP_FETCH_H
#define VP_FETCH_HTTP_FETCH_H

#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"

struct vp_fetch {
	const char *url;            /* http or https */
	const char *const *headers; /* "Name: value" */
	size_t n_headers;
	const char *type; /* Content-Type of the body, which is POSTed; NULL: a GET request */
	const void *body;
	size_t size;
	const char *ca_file; /* trusted certificates; NULL: the system's */
	unsigned seconds;    /* timeout of the whole request */
	size_t limit;        /* maximum size of the response, bytes */
};

/* Returns the response, whatever its status. Errors: no response, a response above the limit, fork
 * failed. */
struct vp_error *vp_fetch(const struct vp_fetch *fetch, unsigned *status,
			  struct vp_buffer *answer) VP_MUST_CHECK;

enum { VP_FETCH_HEADERS_SIZE = 65536 };
/* Reads a file of headers, one per line; `#` starts a comment. `text` owns the lines that `ret`
 * points to. Errors: no such file, a line without a colon, or control characters. */
struct vp_error *vp_fetch_headers(const char *path, struct vp_buffer *text, const char ***ret,
				  size_t *count) VP_MUST_CHECK;

#endif
