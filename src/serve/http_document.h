/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Documents of an HTTP server. */
#ifndef VP_SERVE_HTTP_DOCUMENT_H
#define VP_SERVE_HTTP_DOCUMENT_H

enum {
	VP_HTTP_CONNECTIONS = 64,
	VP_HTTP_PER_ADDRESS = 16,
	VP_HTTP_IDLE_SECONDS = 10,
	VP_HTTP_REQUEST_SECONDS = 30
};

/* Limits of a connection, seconds. */
struct vp_http_limits {
	unsigned idle;    /* without a byte */
	unsigned request; /* for a request and its answer, however the bytes come */
};

/* A document; the one with `accept` is sent to clients that have that in their Accept header. */
struct vp_http_document {
	const char *path, *type; /* "/metrics"; Content-Type */
	const char *accept;      /* or NULL: for all other clients */
};

#endif
