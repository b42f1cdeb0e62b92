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

/* Limits of a connection, seconds, and of the age of what it receives. */
struct vp_http_limits {
	unsigned idle;    /* without receiving a byte */
	unsigned request; /* for one request and its reply, regardless of progress */
	/* Milliseconds. An older document is asked for (vp_http_server_next_ask()) when a client
	 * requests it; 0: never. */
	unsigned fresh_ms;
};

/* A document; one with `accept` is sent to clients whose Accept header contains it. */
struct vp_http_document {
	const char *path, *type; /* "/metrics"; Content-Type */
	const char *accept;      /* or NULL: for all other clients */
};

#endif
