/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks who may read the documents: client certificates, and users with bcrypt passwords. */
#ifndef VP_SERVE_HTTP_ACCESS_H
#define VP_SERVE_HTTP_ACCESS_H

#include <microhttpd.h>
#include <stdint.h>

#include "serve/web_config.h"

/* A bcrypt hash costs CPU time, so valid passwords are kept as digests, and wrong ones are limited.
 */
enum {
	VP_HTTP_KNOWN = 16, /* valid passwords */
	VP_HTTP_WRONG_PER_SECOND = 10,
	VP_HTTP_DIGEST = 32,
};

struct vp_http_access {
	const struct vp_web_config *config; /* NULL: all clients have access */
	unsigned char known[VP_HTTP_KNOWN][VP_HTTP_DIGEST];
	unsigned n_known, next_known;
	unsigned wrong; /* passwords since `second` */
	uint64_t second;
};

enum vp_http_grant {
	VP_HTTP_GRANTED,
	VP_HTTP_NO_CERTIFICATE,
	VP_HTTP_NO_USER,
	VP_HTTP_TOO_MANY_WRONG,
};

/* `now`: CLOCK_MONOTONIC, ns. */
enum vp_http_grant vp_http_access_check(struct vp_http_access *access,
					struct MHD_Connection *connection, uint64_t now);

#endif
