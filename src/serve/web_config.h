/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TLS, client certificates and users of the HTTP server: the web configuration file of Prometheus'
 * exporter-toolkit (YAML). */
#ifndef VP_SERVE_WEB_CONFIG_H
#define VP_SERVE_WEB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/vec.h"

enum { VP_WEB_BCRYPT_SIZE = 60, VP_WEB_BCRYPT_MOST = 14 };

enum vp_web_clients {
	VP_WEB_NO_CLIENT_CERT,
	VP_WEB_VERIFY_IF_GIVEN,
	VP_WEB_REQUIRE_AND_VERIFY,
};

struct vp_web_user {
	char *name, *hash; /* bcrypt */
};

/* A file named by the configuration, and its contents. */
struct vp_web_file {
	char *path; /* as in the configuration; NULL: none */
	char *text; /* PEM; NULL: not read yet */
};

struct vp_web_config {
	struct vp_web_file certificate, key, client_ca;
	enum vp_web_clients clients;
	bool only_tls13;
	VP_VEC(struct vp_web_user) users;
};

/* Parses `size` bytes of YAML. Errors name `path`, the line and the key, with a suggestion for an
 * unknown name. */
struct vp_error *vp_web_config_parse(const char *path, const char *text, size_t size,
				     struct vp_web_config *ret) VP_MUST_CHECK;
/* Reads a configuration and the files that it names; relative names start at its directory. */
struct vp_error *vp_web_config_read(const char *path, struct vp_web_config *ret) VP_MUST_CHECK;
/* Erases keys and hashes from memory. */
void vp_web_config_deinit(struct vp_web_config *config);

#endif
