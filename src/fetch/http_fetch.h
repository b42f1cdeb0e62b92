/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP requests to servers, from a process that has no rights but to connect to them. Their answers
 * are parsed there. */
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
	const char *type; /* of the body, which is POSTed; NULL: a GET */
	const void *body;
	size_t size;
	const char *ca_file; /* certificates that are trusted; NULL: the system's */
	unsigned seconds;    /* for all of it */
	size_t limit;        /* bytes of the answer at most */
};

/* The server's answer, whatever its status. Errors: no answer, a too large one, no process. */
struct vp_error *vp_fetch(const struct vp_fetch *fetch, unsigned *status,
			  struct vp_buffer *answer) VP_MUST_CHECK;

enum { VP_FETCH_HEADERS_SIZE = 65536 };
/* Lines of a file of headers; `#` begins a comment. `text` gets the lines, and `ret` points to
 * them. Errors: no such file, a line without a colon, or with characters that are no text. */
struct vp_error *vp_fetch_headers(const char *path, struct vp_buffer *text, const char ***ret,
				  size_t *count) VP_MUST_CHECK;

#endif
